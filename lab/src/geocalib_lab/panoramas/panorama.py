"""Panoramas on the device, and exact pictures of them through any camera.

A panorama is equirectangular and level: its middle row is the horizon, its top row straight up,
its centre column looks along +z of a level world frame (x right, y down, z ahead) and longitude
grows to the right. Pixel centres lie at half-integers, as everywhere.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from geocalib.cameras.camera import Camera
from geocalib.errors import PanoramaError
from geocalib.imaging.panorama import place_of

LEVELS = 5
"""Sizes kept of each panorama, each half the one before."""

UNKNOWN_SCENE = "unknown"
SYNTHETIC_SCENE = "synthetic"
"""How the names of rendered scenes begin."""


@dataclass(frozen=True)
class PanoramaBank:
    """N panoramas in the device's memory, each in ``LEVELS`` sizes."""

    pixels: Tensor
    """(P,) int32: red, green, blue and an unused byte. One gather fetches a whole pixel."""
    offset: Tensor
    """(N, LEVELS) where in ``pixels`` each size of each panorama starts."""
    width: Tensor
    """(N,) of the largest size; level l has width >> l and height >> l."""
    height: Tensor
    """(N,) of the largest size."""
    names: tuple[str, ...]
    owner: Tensor
    """(N,) number of the owner, who may have photographed many rooms of one building."""
    scene: Tensor
    """(N,) index into ``scene_names``."""
    scene_names: tuple[str, ...]
    panorama_from_world: Tensor
    """(N, 3, 3) rotations from the level world; the identity where a panorama is level."""

    def __len__(self) -> int:
        return len(self.names)

    @property
    def device(self) -> torch.device:
        """The device that the panoramas lie on."""
        return self.pixels.device

    @classmethod
    def load(
        cls,
        file: Path,
        index: Path,
        device: torch.device | str,
        manifests: Sequence[Path] = (),
    ) -> PanoramaBank:
        """The panoramas that ``decode_folder`` left in a file with its index.

        The manifests, tables with columns file and scene, tell the scenes.
        """
        entries = json.loads(index.read_text())
        scenes: dict[str, str] = {}
        for manifest in manifests:
            scenes |= read_scenes(manifest)
        names = [str(entry["name"]) for entry in entries]
        missing = [name for name in names if manifests and Path(name).name not in scenes]
        if missing:
            raise PanoramaError(
                f"{manifests[0]} has no line for {missing[0]}; add one with its scene"
            )
        pixels = np.memmap(file, dtype=np.uint8, mode="r")

        def pictures() -> Iterable[list[Tensor]]:
            for entry in entries:
                start, levels = entry["offset"], []
                for width, height in level_sizes(entry["width"], entry["height"]):
                    end = start + 3 * width * height
                    # A copy, as torch cannot share read-only memory.
                    levels.append(torch.from_numpy(np.array(pixels[start:end])).reshape(-1, 3))
                    start = end
                yield levels

        sizes = [(entry["width"], entry["height"]) for entry in entries]
        labels = [scenes.get(Path(name).name, UNKNOWN_SCENE) for name in names]
        return cls._fill(pictures(), sizes, names, labels, device)

    @classmethod
    def create(
        cls,
        images: Sequence[Tensor],
        names: Sequence[str],
        scenes: Sequence[str] | None = None,
        device: torch.device | str = "cpu",
    ) -> PanoramaBank:
        """The bank of pictures (H, W, 3) uint8 with their file names."""
        sizes = [(image.shape[1], image.shape[0]) for image in images]
        pictures = (list(_levels(image.to(device))) for image in images)
        return cls._fill(pictures, sizes, names, scenes or [UNKNOWN_SCENE] * len(names), device)

    @classmethod
    def _fill(
        cls,
        pictures: Iterable[list[Tensor]],
        sizes: Sequence[tuple[int, int]],
        names: Sequence[str],
        scenes: Sequence[str],
        device: torch.device | str,
    ) -> PanoramaBank:
        if not names:
            raise PanoramaError("a bank needs at least one panorama")
        for name, (width, height) in zip(names, sizes, strict=True):
            if min(width, height) >> (LEVELS - 1) < 1:
                raise PanoramaError(f"{name} is only {width}x{height} pixels; give a larger one")
        counts = [[w * h for w, h in level_sizes(*size)] for size in sizes]
        ends = np.cumsum(counts)
        pixels = torch.zeros(int(ends[-1]), 4, dtype=torch.uint8, device=device)
        offset = torch.from_numpy(ends.reshape(-1, LEVELS)) - torch.tensor(counts)
        for levels, starts in zip(pictures, offset.tolist(), strict=True):
            for start, level in zip(starts, levels, strict=True):
                pixels[start : start + len(level), :3] = level.to(device)
        owners = [owner_of(name) for name in names]
        scene_names = tuple(sorted(set(scenes)))
        return cls(
            pixels.view(torch.int32).squeeze(1),
            offset.to(device),
            torch.tensor([w for w, _ in sizes], device=device),
            torch.tensor([h for _, h in sizes], device=device),
            tuple(names),
            torch.tensor([sorted(set(owners)).index(owner) for owner in owners], device=device),
            torch.tensor([scene_names.index(scene) for scene in scenes], device=device),
            scene_names,
            torch.eye(3, device=device).expand(len(names), 3, 3),
        )

    @property
    def synthetic(self) -> Tensor:
        """(N,) whether a panorama was rendered, not photographed: its scene's name says so."""
        kinds = [name.startswith(SYNTHETIC_SCENE) for name in self.scene_names]
        return torch.tensor(kinds, device=self.device)[self.scene]

    def join(self, other: PanoramaBank) -> PanoramaBank:
        """The panoramas of both, on the same device."""
        scene_names = tuple(sorted({*self.scene_names, *other.scene_names}))

        def scenes(bank: PanoramaBank) -> Tensor:
            numbers = [scene_names.index(name) for name in bank.scene_names]
            return torch.tensor(numbers, device=bank.device)[bank.scene]

        return PanoramaBank(
            torch.cat([self.pixels, other.pixels]),
            torch.cat([self.offset, other.offset + len(self.pixels)]),
            torch.cat([self.width, other.width]),
            torch.cat([self.height, other.height]),
            self.names + other.names,
            torch.cat([self.owner, other.owner + self.owner.max() + 1]),
            torch.cat([scenes(self), scenes(other)]),
            scene_names,
            torch.cat([self.panorama_from_world, other.panorama_from_world]),
        )

    def levelled(self, rotations: Mapping[str, Tensor]) -> PanoramaBank:
        """The same with panorama_from_world (3, 3) of the panoramas that are named."""
        matrices = self.panorama_from_world.clone()
        for number, name in enumerate(self.names):
            if name in rotations:
                matrices[number] = rotations[name].to(matrices)
        return replace(self, panorama_from_world=matrices)


def level_sizes(width: int, height: int) -> list[tuple[int, int]]:
    """Width and height of every size that is kept of a panorama."""
    return [(width >> level, height >> level) for level in range(LEVELS)]


def owner_of(name: str) -> str:
    """The owner of a file: its name up to its second double underscore."""
    return "__".join(Path(name).name.split("__")[:2])


def read_scenes(manifest: Path) -> dict[str, str]:
    """The scene of each file name, from a table with columns file and scene."""
    with manifest.open(newline="") as lines:
        return {Path(row["file"]).name: row["scene"] for row in csv.DictReader(lines)}


def _levels(image: Tensor) -> Iterable[Tensor]:
    """The sizes of a picture (H, W, 3) uint8, each (pixels, 3), by averaging boxes."""
    height, width, _ = image.shape
    yield image.reshape(-1, 3)
    full = image.permute(2, 0, 1).float().contiguous()
    for w, h in level_sizes(width, height)[1:]:
        # Adaptive, so that a size that does not divide still spans the whole sphere.
        part = functional.adaptive_avg_pool2d(full, (h, w))
        yield part.round().to(torch.uint8).permute(1, 2, 0).reshape(-1, 3)


def render(
    bank: PanoramaBank,
    index: Tensor,
    camera: Camera,
    panorama_from_camera: Tensor,
    width: int,
    height: int,
    supersample: int | None = 2,
    coarser: Tensor | None = None,
) -> Tensor:
    """Pictures (B, 3, height, width), float32 in [0, 1], of panoramas (B,) through B cameras.

    panorama_from_camera (B, 3, 3): rotations to the panorama's frame. Each pixel averages
    ``supersample`` squared points (None: its centre), interpolated in the size of the panorama
    whose pixels are nearest to the points' spacing, or in one that is smaller by ``coarser`` (B,)
    halvings, where there is one. Pixels with a corner outside the camera's domain are black.
    """
    per_axis = supersample or 1
    rays, inside = _corner_rays(camera, panorama_from_camera, width, height)
    grid = _pick_level(bank, index, rays, per_axis, coarser)
    colour = torch.zeros(len(index), height * width, 4, device=rays.device)
    steps = [(step + 0.5) / per_axis for step in range(per_axis)]
    for y in steps:
        for x in steps:
            colour += _interpolate(bank, grid, *place_of(_blend(rays, x, y)))
    colour = colour * (inside.flatten(1)[..., None] / (255 * per_axis * per_axis))
    return colour[..., :3].transpose(1, 2).reshape(len(index), 3, height, width)


def _corner_rays(
    camera: Camera, panorama_from_camera: Tensor, width: int, height: int
) -> tuple[Tensor, Tensor]:
    """The panorama's rays (B, height + 1, width + 1, 3) of the pixels' corners, and the pixels
    (B, height, width) that have all four of them."""
    x = torch.arange(width + 1, dtype=camera.f.dtype, device=camera.f.device)
    y = torch.arange(height + 1, dtype=camera.f.dtype, device=camera.f.device)
    corners = torch.stack(torch.meshgrid(x, y, indexing="xy"), -1)
    rays, valid = camera.unproject(corners.expand(len(camera), -1, -1, -1))
    inside = valid[:, 1:, 1:] & valid[:, 1:, :-1] & valid[:, :-1, 1:] & valid[:, :-1, :-1]
    # Not a matrix product: those are rounded to ten bits where training allows it.
    columns = panorama_from_camera[:, None, None].unbind(-1)
    turned = sum(r[..., None] * column for r, column in zip(rays.unbind(-1), columns, strict=True))
    assert isinstance(turned, Tensor)
    return turned, inside


@dataclass(frozen=True)
class _Grid:
    """The size of the panorama that serves each of N pixels, all (B, N)."""

    start: Tensor
    width: Tensor
    height: Tensor


def _pick_level(
    bank: PanoramaBank, index: Tensor, rays: Tensor, per_axis: int, coarser: Tensor | None
) -> _Grid:
    """The level whose pixels cover the area on the sphere that a point of each pixel stands for.

    rays: of the pixels' corners.
    """
    falling = rays[:, 1:, 1:] - rays[:, :-1, :-1]
    rising = rays[:, :-1, 1:] - rays[:, 1:, :-1]
    # Half the cross product of its diagonals is the area of any quadrilateral.
    area = 0.5 * torch.linalg.vector_norm(torch.linalg.cross(falling, rising), dim=-1).flatten(1)
    spacing = area.sqrt() * (bank.width[index] / (2 * math.pi * per_axis))[:, None]
    level = torch.log2(spacing.clamp(min=1e-6)).round()
    if coarser is not None:
        level = level + coarser[:, None]
    level = level.clamp(0, LEVELS - 1).long()
    return _Grid(
        bank.offset[index].gather(1, level),
        bank.width[index][:, None] >> level,
        bank.height[index][:, None] >> level,
    )


def _blend(corners: Tensor, x: float, y: float) -> Tensor:
    """Rays (B, N, 3) at (x, y), from 0 to 1, within every pixel; they bend very little there."""
    left = torch.lerp(corners[:, :-1, :-1], corners[:, 1:, :-1], y)
    right = torch.lerp(corners[:, :-1, 1:], corners[:, 1:, 1:], y)
    return torch.lerp(left, right, x).flatten(1, 2)


def _interpolate(bank: PanoramaBank, grid: _Grid, u: Tensor, v: Tensor) -> Tensor:
    """Colours (B, N, 4) from 0 to 255 at u, v (B, N)."""
    x = u * grid.width - 0.5
    y = torch.minimum((v * grid.height - 0.5).clamp(min=0), grid.height - 1)
    x_floor, y_floor = x.floor(), y.floor()
    # Around the sphere the columns go on; at the poles the rows end.
    left = torch.remainder(x_floor.long(), grid.width)
    right = (left + 1) * (left + 1 < grid.width)
    above = grid.start + y_floor.long() * grid.width
    below = torch.minimum(above + grid.width, grid.start + (grid.height - 1) * grid.width)
    along, down = (x - x_floor)[..., None], (y - y_floor)[..., None]
    upper = torch.lerp(_fetch(bank, above + left), _fetch(bank, above + right), along)
    lower = torch.lerp(_fetch(bank, below + left), _fetch(bank, below + right), along)
    return torch.lerp(upper, lower, down)


def _fetch(bank: PanoramaBank, where: Tensor) -> Tensor:
    """(B, N, 4) bytes, as floats, of the pixels at (B, N)."""
    return bank.pixels[where].unsqueeze(-1).view(torch.uint8).float()
