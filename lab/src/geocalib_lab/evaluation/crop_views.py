"""The views of a panorama in a set: single ones, of shared cameras, or of rigs.

By default the sampling is the published one: 16 crops of 640x640 pixels per panorama, roll and
pitch uniform within 45 degrees, vFoV uniform from 20 to 105 degrees, any heading.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from geocalib.cameras import Camera
from geocalib.errors import ConfigError
from geocalib.localize.rotation import to_quaternion
from geocalib.rig import RigDescription
from geocalib_lab.panoramas.panorama import PanoramaBank
from geocalib_lab.panoramas.views import ViewConfig, Views, sample_views

PER_PANORAMA = 16
SIZE = (640, 640)
"""Width and height, pixels."""

TRIES = 8
"""Views to try for each crop of a shared camera: a group must not lack one that is black."""


@dataclass(frozen=True)
class CropConfig:
    """How crops are drawn from panoramas."""

    per_panorama: int = PER_PANORAMA
    """Crops, or shots of a rig."""
    size: tuple[int, int] = SIZE
    distorted: bool = False
    """Whether k1 (H / f)^2 is normal with sigma 0.07, within 0.3; else there is no distortion."""
    people: bool = False
    """Whether they are nearly level, as people hold cameras, and not spread evenly."""
    seed: int = 0
    same_camera: int | None = None
    """So many crops, of different panoramas as far as there are as many, have one camera."""
    rig: RigDescription | None = None
    """The cameras of every shot; those with one lens have the same field of view in a shot."""

    def __post_init__(self) -> None:
        if self.per_panorama < 1 or min(self.size) < 1:
            size = "x".join(map(str, self.size))
            raise ConfigError(
                f"there are no {self.per_panorama} crops of {size} pixels; give 1 or more"
            )
        if self.same_camera is not None and self.same_camera < 1:
            raise ConfigError(f"no camera takes {self.same_camera} crops; give 1 or more")
        if self.same_camera is not None and self.rig is not None:
            raise ConfigError("a set is of shared cameras or of rigs; give one of them")

    @property
    def views(self) -> ViewConfig:
        """As narrow and as sharp as they come, of all panoramas alike."""
        return ViewConfig(
            published_share=float(not self.people),
            distorted_share=float(self.distorted),
            largest_magnification=math.inf,
        )


@dataclass(frozen=True, eq=False)
class Crop:
    """A picture to cut out."""

    name: str
    """The name of its file, without the suffix."""
    camera: Camera
    """The camera, a batch of 1."""
    gravity: Tensor
    """(3,) in the camera frame."""
    panorama_from_camera: Tensor
    """(3, 3)."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Further cells of the table: camera, rig, rotation."""


def draw_crops(
    bank: PanoramaBank, stem: str, place: tuple[int, int], config: CropConfig
) -> Iterator[list[Crop]]:
    """For each crop of the bank's only panorama, the views to try until one is not black.

    stem: how the names of files begin. place: which panorama it is, and of how many.
    """
    if config.rig is not None:
        return _of_rigs(bank, stem, config, config.rig)
    if config.same_camera is not None:
        return _of_shared_cameras(bank, stem, place, config, config.same_camera)
    return _single(bank, stem, config)


def _draw(bank: PanoramaBank, count: int, config: CropConfig, *of: object) -> Views:
    """Views that depend on the seed and on what they are of."""
    words = " ".join(map(str, (config.seed, *of)))
    generator = torch.Generator().manual_seed(zlib.crc32(words.encode()))
    return sample_views(bank, count, config.views, *config.size, generator)


def _single(bank: PanoramaBank, stem: str, config: CropConfig) -> Iterator[list[Crop]]:
    # As many as usual, so that fewer crops are the first of more.
    views = _draw(bank, max(config.per_panorama, PER_PANORAMA), config, *bank.names)
    for number in range(config.per_panorama):
        camera = views.camera[number : number + 1]
        gravity, rotation = views.gravity[number], views.panorama_from_camera[number]
        yield [Crop(f"{stem}_{number:02d}", camera, gravity, rotation)]


def _of_shared_cameras(
    bank: PanoramaBank, stem: str, place: tuple[int, int], config: CropConfig, together: int
) -> Iterator[list[Crop]]:
    panorama, panoramas = place
    groups = config.per_panorama * panoramas // together
    for number in range(config.per_panorama):
        # Neighbours in a group are neighbours in the folder, not in a panorama.
        group = (number * panoramas + panorama) // together
        if group >= groups:
            return
        camera = _draw(bank, 1, config, "camera", group).camera
        views = _draw(bank, TRIES, config, *bank.names, number)
        poses = zip(views.gravity, views.panorama_from_camera, strict=True)
        columns = {"camera": f"{group:04d}"}
        yield [Crop(f"{stem}_{number:02d}", camera, *pose, columns) for pose in poses]


def _of_rigs(
    bank: PanoramaBank, stem: str, config: CropConfig, rig: RigDescription
) -> Iterator[list[Crop]]:
    lenses = list(dict.fromkeys(camera.intrinsics for camera in rig.cameras))
    count = len(lenses) * max(config.per_panorama, PER_PANORAMA)
    views = _draw(bank, count, config, *bank.names)
    for number in range(config.per_panorama):
        shot, first = f"{stem}_{number:02d}", number * len(lenses)
        panorama_from_rig = views.panorama_from_camera[first].double()
        for camera in rig.cameras:
            lens = first + lenses.index(camera.intrinsics)
            rotation = torch.from_numpy(camera.camera_from_rig)
            numbers = to_quaternion(camera.camera_from_rig).tolist()
            columns = {
                "camera": f"{shot}-{camera.intrinsics}",
                "rig": shot,
                "rotation": " ".join(map(repr, numbers)),
            }
            yield [
                Crop(
                    f"{shot}_{camera.name.replace('/', '-')}",
                    views.camera[lens : lens + 1],
                    rotation @ views.gravity[first].double(),
                    panorama_from_rig @ rotation.T,
                    columns,
                )
            ]
