"""Ordinary photographs of which the focal length is known, and gravity too if the camera wrote it
down, to learn from and to judge by.

They are few and their look tells where they come from, so that a network learns them by heart
before it learns perspective: each is seen in other crops, which have other fields of view, and as a
small part of each batch.
"""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image
from torch import Tensor
from torch.nn import functional

from geocalib.cameras.camera import Camera
from geocalib.errors import ConfigError, ImageError
from geocalib.geometry.gravity import from_roll_pitch

FOCAL = "focal"
"""The column of focal lengths, in pixels of the file."""

MOTION_G = 0.03
"""Accelerations that differ from 1 g by more tell of motion, not of gravity."""

STEEP_WEIGHT = 4.0
"""How much more often photographs taken straight down or up are drawn than level ones."""


@dataclass(frozen=True)
class PhotoConfig:
    """How photographs are learnt from."""

    share: float = 0.0
    """Their part of a batch."""
    magnified: float = 1.6
    """Crops show down to this part of what the largest one would."""
    turned_deg: float = 0.0
    """Crops of photographs with gravity are turned by up to this, both ways, and look beside the
    middle as far as the photograph has room. 0: they are the middles, as they stand."""
    owners: float = 0.8
    """Part of the owners whose photographs are learnt from; the others' are judged by."""


@dataclass(frozen=True)
class PhotoBank:
    """N photographs, their middles laid upon each other, to half a pixel."""

    pixels: Tensor
    """(N, 3, S, S) uint8, beyond their edges as at them."""
    size: Tensor
    """(N, 2) widths and heights, pixels."""
    focal: Tensor
    """(N,) pixels."""
    weight: Tensor
    """(N,) how often each is drawn: an owner of many counts more than one of few, but not as many
    times."""
    gravity: Tensor | None = None
    """(N, 3) in the camera frame, where it is known."""

    def __len__(self) -> int:
        return len(self.pixels)

    def draw(
        self, count: int, size: tuple[int, int], config: PhotoConfig, generator: torch.Generator
    ) -> tuple[Tensor, Camera, Tensor | None]:
        """Crops (count, 3, H, W) in [0, 1] of photographs that lie or stand as the size does, their
        cameras, and gravity (count, 3) where it is known."""
        device = self.pixels.device

        def uniform(*shape: int) -> Tensor:
            return torch.rand(*shape, generator=generator, device=device)

        stands = self.size[:, 1] > self.size[:, 0]
        fits = torch.ones_like(stands) if size[0] == size[1] else stands == (size[1] > size[0])
        weight = torch.where(fits.any(), self.weight * fits, self.weight)
        index = torch.multinomial(weight, count, replacement=True, generator=generator)
        closer = config.magnified ** uniform(count)
        if self.gravity is None:
            return *self.crop(index, size, closer), None
        gravity = self.gravity[index]
        if config.turned_deg == 0:
            return *self.crop(index, size, closer), gravity
        turn = math.radians(config.turned_deg) * (2 * uniform(count) - 1)
        step = self._step(index, size, closer, turn)
        room = self.size[index] - step[:, None] * _extent(size, turn)
        beside = (uniform(count, 2) - 0.5) * room.clamp(min=0) / self.focal[index, None]
        pan, tilt = beside.atan().unbind(1)
        photo_from_crop = _about(1, pan) @ _about(0, -tilt) @ _about(2, turn)
        images, camera = self._seen(index, size, step, photo_from_crop)
        return images, camera, (photo_from_crop.mT @ gravity[..., None])[..., 0]

    def crop(self, index: Tensor, size: tuple[int, int], closer: Tensor) -> tuple[Tensor, Camera]:
        """The middles of photographs (B,) in a width and height, ``closer`` (B,) times as narrow as
        the largest that there are, and their cameras."""
        none = torch.zeros_like(closer)
        return self._seen(index, size, self._step(index, size, closer, none), _about(2, none))

    def _step(self, index: Tensor, size: tuple[int, int], closer: Tensor, turn: Tensor) -> Tensor:
        """(B,) pixels of the photograph for each of a crop that is turned by an angle (B,)."""
        return (self.size[index] / _extent(size, turn)).amin(1) / closer

    def _seen(
        self, index: Tensor, size: tuple[int, int], step: Tensor, photo_from_crop: Tensor
    ) -> tuple[Tensor, Camera]:
        """What cameras at the place of the photographs' (B,) see that look by rotations (B, 3, 3)
        beside them, and these cameras."""
        width, height = size
        focal = self.focal[index] / step
        across, down = (
            (torch.arange(2 * n, device=step.device, dtype=step.dtype) + 0.5) / 2 - n / 2
            for n in (width, height)
        )
        y, x = torch.meshgrid(down, across, indexing="ij")
        plane = torch.stack([x, y], -1) / focal[:, None, None, None]
        rays = functional.pad(plane, (0, 1), value=1.0) @ photo_from_crop.mT[:, None]
        # From -1 to 1, edge to edge.
        scale = 2 * self.focal[index] / self.pixels.shape[-1]
        grid = scale[:, None, None, None] * rays[..., :2] / rays[..., 2:]
        # Twice as dense, then averaged.
        dense = functional.grid_sample(
            self.pixels[index].to(step.dtype) / 255, grid, align_corners=False
        )
        camera = Camera.create("simple_radial", focal, self.size.new_tensor(size))
        return functional.avg_pool2d(dense, 2), camera


def _extent(size: tuple[int, int], turn: Tensor) -> Tensor:
    """(B, 2) width and height of the box around a rectangle that is turned by an angle (B,)."""
    width, height = size
    cos, sin = turn.cos().abs(), turn.sin().abs()
    return torch.stack([width * cos + height * sin, width * sin + height * cos], 1)


def _about(axis: int, angle: Tensor) -> Tensor:
    """(B, 3, 3) rotations by an angle (B,) about a coordinate axis."""
    one, other = (axis + 1) % 3, (axis + 2) % 3
    rotation = torch.eye(3, device=angle.device, dtype=angle.dtype).repeat(len(angle), 1, 1)
    rotation[:, one, one] = rotation[:, other, other] = angle.cos()
    rotation[:, one, other], rotation[:, other, one] = -angle.sin(), angle.sin()
    return rotation


def read_photo_bank(
    folder: Path, split: str, chosen: Callable[[str], bool], device: torch.device
) -> PhotoBank:
    """The photographs of a split of a folder, of the owners chosen. Gravity is known where the
    table tells it; what was taken in motion is then left out."""
    labels = read_photo_labels(folder, split)
    with_gravity = any(label.tilt is not None for label in labels.values())
    known = {
        image: label
        for image, label in labels.items()
        if chosen(owner_of(image)) and (label.tilt is not None or not with_gravity)
    }
    if not known:
        raise ConfigError(f"{folder} has no photographs of {split} by the chosen owners")
    bank = _read(folder, {image: label.focal for image, label in known.items()}, device)
    if not with_gravity:
        return bank
    tilts = [label.tilt for label in known.values() if label.tilt is not None]
    roll, pitch = torch.tensor(tilts, device=device).deg2rad().T
    steepness = 1 + STEEP_WEIGHT * pitch.sin().abs()
    return replace(bank, gravity=from_roll_pitch(roll, pitch), weight=bank.weight * steepness)


@dataclass(frozen=True)
class PhotoLabel:
    """What is known of one photograph."""

    focal: float
    """Pixels of the file."""
    tilt: tuple[float, float] | None
    """Roll and pitch, degrees; None if not known, or taken in motion."""


def read_photo_labels(folder: Path, split: str) -> dict[str, PhotoLabel]:
    """What ``photos.csv`` or ``phones.csv`` of a folder tells of the photographs of a split, by
    their names: gravity where there are columns ``roll_deg``, ``pitch_deg`` and ``norm_g``."""
    table = folder / "phones.csv"
    if not table.exists():
        table = folder / "photos.csv"
    try:
        with table.open(newline="") as lines:
            rows = [row for row in csv.DictReader(lines) if row["image"].startswith(f"{split}/")]
        labels = {row["image"]: PhotoLabel(float(row[FOCAL]), _tilt(row)) for row in rows}
    except FileNotFoundError:
        raise ImageError(f"{table} does not exist") from None
    except (KeyError, ValueError, TypeError, AttributeError):
        raise ImageError(f"{table} needs columns image and {FOCAL} in every row") from None
    for image, label in labels.items():
        if not label.focal > 0:
            raise ImageError(f"{table}: the {FOCAL} length of {image} is {label.focal:g} pixels")
    return labels


def _tilt(row: dict[str, str]) -> tuple[float, float] | None:
    """Roll and pitch of a row of a table, degrees, if the phone was at rest."""
    if "norm_g" not in row or not abs(float(row["norm_g"]) - 1) < MOTION_G:
        return None
    return float(row["roll_deg"]), float(row["pitch_deg"])


def owner_of(image: str) -> str:
    """The owner of a photograph: its name up to the double underscore."""
    return Path(image).name.partition("__")[0]


def _read(folder: Path, focal: dict[str, float], device: torch.device) -> PhotoBank:
    """Photographs by their names, with their focal lengths."""
    pictures = [np.asarray(Image.open(folder / image).convert("RGB")) for image in focal]
    side = max(max(picture.shape[:2]) for picture in pictures)
    pixels = np.stack([_laid(picture, side) for picture in pictures])
    sizes = [(picture.shape[1], picture.shape[0]) for picture in pictures]
    counts = Counter(map(owner_of, focal))
    weights = [counts[owner_of(image)] ** -0.5 for image in focal]
    return PhotoBank(
        torch.from_numpy(pixels).to(device),
        *(
            torch.tensor(values, dtype=torch.float32, device=device)
            for values in (sizes, list(focal.values()), weights)
        ),
    )


def _laid(picture: npt.NDArray[np.uint8], side: int) -> npt.NDArray[np.uint8]:
    """(3, side, side) with a picture (H, W, 3) in the middle."""
    rows, columns = (
        (missing // 2, missing - missing // 2) for missing in (side - n for n in picture.shape[:2])
    )
    return np.pad(picture, (rows, columns, (0, 0)), "edge").transpose(2, 0, 1)
