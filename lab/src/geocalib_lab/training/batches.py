"""Batches of pictures with their truth, drawn and rendered on the device."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from geocalib.cameras.camera import Camera
from geocalib.geometry.fields import perspective_field, pixel_grid
from geocalib_lab.panoramas.holes import MOST_BLACK, black_share
from geocalib_lab.panoramas.panorama import PanoramaBank, render
from geocalib_lab.panoramas.views import ViewConfig, Views, sample_views
from geocalib_lab.panoramas.wide import WidePart, photograph_wide, sample_wide_views
from geocalib_lab.training.augment import augment, flip, hide_nadir
from geocalib_lab.training.config import TrainingConfig
from geocalib_lab.training.photos import PhotoBank
from geocalib_lab.training.validate import Pictures

VALIDATION_SEED = 20
"""Seed of the views for validation."""


@dataclass(frozen=True)
class Batch:
    """Pictures and what is true of them: of the first B of them, and of wide ones after these."""

    images: Tensor
    """(B + wide ones, 3, H, W) RGB in [0, 1]."""
    camera: Camera
    """simple_radial, with k1 = 0 where there is no distortion, in the size of the rendering."""
    gravity: Tensor
    """(B, 3)."""
    bends: Tensor
    """(B,) whether the camera was drawn with distortion."""
    keep: Tensor
    """(B,) whether there is enough to see."""
    view_only: Tensor
    """(B,) whether the field of view alone is known, as of most photographs."""
    wide: tuple[WidePart, ...] = ()


@dataclass
class PartClock:
    """Seconds spent in the named parts of a step. Waiting for the device at both ends makes the
    sum honest and the step slower, so few steps are timed."""

    device: torch.device
    running: bool = False
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Time what happens inside, if the clock is running."""
        if not self.running:
            yield
            return
        self._wait()
        start = time.perf_counter()
        yield
        self._wait()
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


def make_draw(
    bank: PanoramaBank,
    config: TrainingConfig,
    photo_bank: PhotoBank | None = None,
) -> Callable[[tuple[int, int], torch.Generator, PartClock], Batch]:
    """How a training run draws its batches from a bank, and from an photo_bank if there is one."""
    photos = 0 if photo_bank is None else round(config.photos.share * config.batch)
    wide = config.wide.counts(config.batch)
    ordinary = config.batch - photos - sum(wide.values())

    def draw(size: tuple[int, int], generator: torch.Generator, clock: PartClock) -> Batch:
        width, height = seen_size(size, config.detail)
        with clock.part("render"):
            views = sample_views(bank, ordinary, config.views, width, height, generator)
            images, keep = photograph(bank, views, width, height)
        with clock.part("augment"):
            latitude = _latitude(views.camera, views.gravity, width, height)
            images = hide_nadir(images, latitude, config.hidden_nadir, generator)
            none = torch.zeros_like(keep)
            batch = Batch(images, views.camera, views.gravity, views.distorted, keep, none)
            if photo_bank is not None and photos:
                batch = joined(
                    batch, draw_photos(photo_bank, photos, (width, height), config, generator)
                )
            images, gravity, camera = _some_mirrored(
                batch.images, batch.gravity, batch.camera, generator
            )
            batch = replace(batch, gravity=gravity, camera=camera)
        with clock.part("render"):
            pairs = [
                draw_wide(bank, model, count, (width, height), config, generator)
                for model, count in wide.items()
            ]
        with clock.part("augment"):
            images = torch.cat([images, *(pictures for pictures, _ in pairs)])
            batch = replace(batch, wide=tuple(part for _, part in pairs))
            images = enlarge(augment(images, config.augment, generator), size)
        return replace(batch, images=images)

    return draw


def _some_mirrored(
    images: Tensor, gravity: Tensor, camera: Camera, generator: torch.Generator
) -> tuple[Tensor, Tensor, Camera]:
    """About half of the pictures (B, 3, H, W), with what is true of them, seen in a mirror."""
    share = torch.rand(len(images), generator=generator, device=images.device)
    return flip(images, gravity, camera, share < 0.5)


def draw_wide(
    bank: PanoramaBank,
    model: str,
    count: int,
    size: tuple[int, int],
    config: TrainingConfig,
    generator: torch.Generator,
) -> tuple[Tensor, WidePart]:
    """Wide pictures of one model in a width and height, and what is true of them."""
    views = sample_wide_views(bank, model, count, config.views, config.wide, *size, generator)
    images, light, keep = photograph_wide(bank, views, *size)
    latitude = _latitude(views.camera, views.gravity, *size)
    images = light * hide_nadir(images, latitude, config.hidden_nadir, generator)
    images, gravity, camera = _some_mirrored(images, views.gravity, views.camera, generator)
    return images, WidePart(camera, gravity, keep, views.rim)


def draw_photos(
    photo_bank: PhotoBank,
    count: int,
    size: tuple[int, int],
    config: TrainingConfig,
    generator: torch.Generator,
) -> Batch:
    """Crops of photographs in a width and height; as if they were level if gravity is unknown."""
    images, camera, gravity = photo_bank.draw(count, size, config.photos, generator)
    yes = torch.ones(count, dtype=torch.bool, device=images.device)
    if gravity is not None:
        return Batch(images, camera, gravity, ~yes, yes, ~yes)
    level = images.new_tensor([0.0, 1.0, 0.0]).expand(count, 3)
    return Batch(images, camera, level, ~yes, yes, yes)


def joined(one: Batch, other: Batch) -> Batch:
    """Both, one after the other; their cameras are of one model."""
    first, second = one.camera, other.camera
    camera = Camera(
        first.model,
        *(
            torch.cat([getattr(first, name), getattr(second, name)])
            for name in ("f", "c", "distortion", "size", "aspect")
        ),
    )
    names = ("images", "gravity", "bends", "keep", "view_only")
    both: dict[str, Any] = {
        name: torch.cat([getattr(one, name), getattr(other, name)]) for name in names
    }
    return Batch(camera=camera, **both)


def seen_size(size: tuple[int, int], detail: int | None) -> tuple[int, int]:
    """Width and height in which pictures for an input of the given size are rendered."""
    if detail is None:
        return size
    scale = detail / min(size)
    return round(scale * size[0]), round(scale * size[1])


def enlarge(images: Tensor, size: tuple[int, int]) -> Tensor:
    """Pictures (B, 3, H, W) in the given width and height, as ``imaging.prepare`` enlarges."""
    width, height = size
    if images.shape[-2:] == (height, width):
        return images
    return functional.interpolate(images, (height, width), mode="bilinear", align_corners=False)


def photograph(bank: PanoramaBank, views: Views, width: int, height: int) -> tuple[Tensor, Tensor]:
    """Pictures (B, 3, H, W) and whether each is not too black."""
    images = render(
        bank,
        views.index,
        views.camera,
        views.panorama_from_camera,
        width,
        height,
        coarser=views.coarser,
    )
    return images, black_share(images) < MOST_BLACK


def _latitude(camera: Camera, gravity: Tensor, width: int, height: int) -> Tensor:
    """(B, 1, height, width) radians, interpolated from every fourth pixel."""
    w, h = width // 4, height // 4
    grid = pixel_grid(w, h, camera.f).reshape(1, -1, 2).expand(len(camera), -1, 2)
    _, coarse, _ = perspective_field(camera.resize(w, h), gravity, grid)
    coarse = coarse.reshape(len(camera), 1, h, w)
    return functional.interpolate(coarse, (height, width), mode="bilinear", align_corners=False)


def _part(views: Views, part: slice) -> Views:
    return Views(
        views.index[part],
        views.camera[part],
        views.gravity[part],
        views.panorama_from_camera[part],
        views.distorted[part],
        views.coarser[part],
    )


def validation_pictures(bank: PanoramaBank, config: TrainingConfig) -> list[Pictures]:
    """The fixed pictures of a bank that training is judged by.

    Views are as narrow and as sharp as they come: what to learn from is limited by the panoramas'
    resolution, what to be judged by is not.
    """
    plan, generator = config.validation, torch.Generator(bank.device)
    straight = replace(
        config.views,
        published_share=1.0,
        distorted_share=0.0,
        distortion_sigma=ViewConfig.distortion_sigma,
        distortion_limit=ViewConfig.distortion_limit,
        largest_magnification=math.inf,
        coarser=(0, 0),
    )
    people = replace(straight, published_share=0.0)
    bent = replace(straight, distorted_share=1.0)
    every = torch.arange(len(bank), device=bank.device).repeat_interleave(plan.per_panorama)
    steep = replace(people, tilted_share=1.0, tilted_pitch_deg=(50.0, 80.0), tilted_down_share=0.5)
    sets = []
    for name, model, views_config, size, count in (
        ("published", "pinhole", straight, plan.size, len(every)),
        ("people", "pinhole", people, plan.people_size, plan.people),
        ("distorted", "simple_radial", bent, plan.size, plan.distorted),
        ("steep", "pinhole", steep, plan.people_size, plan.steep),
    ):
        if count == 0:
            continue
        width, height = seen_size(size, config.detail)
        generator.manual_seed(VALIDATION_SEED)
        views = sample_views(bank, count, views_config, width, height, generator)
        if name == "published":
            views = replace(views, index=every)
        images, keep = [], []
        for first in range(0, count, plan.batch):
            part = _part(views, slice(first, first + plan.batch))
            pictures, bright = photograph(bank, part, width, height)
            images.append((255 * enlarge(pictures, size)).round().to(torch.uint8))
            keep.append(bright)
        kept = torch.cat(keep).nonzero()[:, 0]
        sets.append(
            Pictures(name, model, torch.cat(images)[kept], views.camera[kept], views.gravity[kept])
        )
    return sets + (_wide_pictures(bank, config) if plan.wide else [])


def _wide_pictures(bank: PanoramaBank, config: TrainingConfig) -> list[Pictures]:
    """Wide views that fill the picture, fitted with the model that they are drawn with; if some are
    learnt that are off centre, such ones as well."""
    plan, generator = config.validation, torch.Generator(bank.device)
    views_config = replace(config.views, coarser=(0, 0))
    wide = replace(
        config.wide,
        circular_share=0.0,
        off_centre_share=0.0,
        fov_deg=(90.0, 180.0),
        widest_pinhole_deg=120.0,
        roll_deg=30.0,
        pitch_deg=30.0,
    )
    width, height = seen_size(plan.people_size, config.detail)
    kinds = [
        ("wideucm", "ucm", wide),
        ("widekb", "kannala_brandt", wide),
        ("widepin", "pinhole", wide),
    ]
    if config.wide.off_centre_share:
        kinds.append(("wideoff", "ucm", replace(wide, off_centre_share=1.0)))
    sets = []
    for name, model, wide_config in kinds:
        generator.manual_seed(VALIDATION_SEED)
        views = sample_wide_views(
            bank, model, plan.wide, views_config, wide_config, width, height, generator
        )
        pictures, light, bright = photograph_wide(bank, views, width, height)
        images = (255 * enlarge(light * pictures, plan.people_size)).round().to(torch.uint8)
        kept = bright.nonzero()[:, 0]
        sets.append(Pictures(name, model, images[kept], views.camera[kept], views.gravity[kept]))
    return sets


def photo_pictures(photo_banks: dict[str, PhotoBank], config: TrainingConfig) -> list[Pictures]:
    """The photographs of named photo_banks to be judged by, lying and standing ones apart."""
    sets = []
    long, short = sorted(config.validation.people_size, reverse=True)
    for name, photo_bank in photo_banks.items():
        stands = photo_bank.size[:, 1] > photo_bank.size[:, 0]
        for kind, size, which in (
            ("lying", (long, short), ~stands),
            ("standing", (short, long), stands),
        ):
            index = which.nonzero()[:, 0]
            if len(index):
                whole = torch.ones_like(photo_bank.focal[index])
                images, camera = photo_bank.crop(index, seen_size(size, config.detail), whole)
                seen = (255 * enlarge(images, size)).round().to(torch.uint8)
                down = None if photo_bank.gravity is None else photo_bank.gravity[index]
                sets.append(Pictures(f"{name}-{kind}", "pinhole", seen, camera, down))
    return sets
