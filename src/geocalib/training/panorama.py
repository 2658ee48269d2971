"""Panoramas on the device, and exact pictures of them through any camera.

A panorama is equirectangular and level: its middle row is the horizon, its top row straight up,
its centre column looks along +z of a level world frame (x right, y down, z ahead) and longitude
grows to the right. Pixel centres lie at half-integers, as everywhere.
"""

from __future__ import annotations

import csv
import json
import math
import os
import zlib
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.nn import functional

from geocalib.cameras.camera import Camera
from geocalib.errors import PanoramaError

LEVELS = 3
"""Sizes kept of each panorama, each half the one before."""

UNKNOWN_SCENE = "unknown"


def decode_folder(
    folder: Path, out_file: Path, names: Sequence[str], width: int | None = None
) -> Path:
    """Decode panoramas into one file of uint8 RGB pixels, with all cores; return its index.

    The index, a JSON file beside it, tells each panorama's name, size and offset in bytes. Wider
    panoramas than ``width`` pixels are shrunk to it. Nothing is done where the file is already
    there and made of the same pictures.
    """
    index_file = out_file.with_suffix(".json")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        entries = list(pool.map(lambda name: _describe(folder, name, width), names))
        offset = 0
        for entry in entries:
            entry["offset"] = offset
            offset += 3 * entry["width"] * entry["height"]
        if not entries:
            raise PanoramaError(f"no panoramas of {folder} are named; give at least one name")
        if _is_made_of(out_file, index_file, entries, offset):
            return index_file
        out_file.parent.mkdir(parents=True, exist_ok=True)
        # Under its name the file is always complete.
        partial = out_file.with_name(out_file.name + ".partial")
        pixels = np.memmap(partial, dtype=np.uint8, mode="w+", shape=(offset,))
        for _ in pool.map(lambda entry: _decode(folder, entry, pixels), entries):
            pass
        pixels.flush()
    index_file.unlink(missing_ok=True)
    partial.replace(out_file)
    index_file.write_text(json.dumps(entries, indent=0))
    return index_file


def _describe(folder: Path, name: str, width: int | None) -> dict[str, Any]:
    try:
        with Image.open(folder / name) as image:
            full_width, full_height = image.size
    except OSError as error:
        raise PanoramaError(f"cannot read panorama {folder / name}: {error}") from error
    if full_width != 2 * full_height:
        raise PanoramaError(
            f"{folder / name} is {full_width}x{full_height}; a panorama is twice as wide as high"
        )
    width = min(full_width, width or full_width) // 2 * 2
    checksum = zlib.crc32((folder / name).read_bytes())
    return {"name": name, "width": width, "height": width // 2, "checksum": checksum}


def _is_made_of(out_file: Path, index_file: Path, entries: list[dict[str, Any]], size: int) -> bool:
    if not (out_file.exists() and index_file.exists() and out_file.stat().st_size == size):
        return False
    try:
        return bool(json.loads(index_file.read_text()) == entries)
    except json.JSONDecodeError:
        return False


def _decode(folder: Path, entry: dict[str, Any], pixels: np.memmap[Any, Any]) -> None:
    width, height, start = entry["width"], entry["height"], entry["offset"]
    try:
        with Image.open(folder / entry["name"]) as image:
            picture = image.convert("RGB")
    except OSError as error:
        raise PanoramaError(f"cannot decode {folder / entry['name']}: {error}") from error
    if picture.size != (width, height):
        picture = picture.resize((width, height), Image.Resampling.BOX)
    pixels[start : start + 3 * width * height] = np.asarray(picture).ravel()


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

    def __len__(self) -> int:
        return len(self.names)

    @property
    def device(self) -> torch.device:
        """Where the panoramas are."""
        return self.pixels.device

    @classmethod
    def load(
        cls,
        file: Path,
        index: Path,
        device: torch.device | str,
        manifest: Path | None = None,
    ) -> PanoramaBank:
        """The panoramas that ``decode_folder`` left in a file with its index.

        The manifest, a table with columns file and scene, tells the scenes.
        """
        entries = json.loads(index.read_text())
        scenes = {} if manifest is None else _read_scenes(manifest)
        names = [str(entry["name"]) for entry in entries]
        missing = [name for name in names if manifest and Path(name).name not in scenes]
        if missing:
            raise PanoramaError(f"{manifest} has no line for {missing[0]}; add one with its scene")
        pixels = np.memmap(file, dtype=np.uint8, mode="r")

        def images() -> Iterable[Tensor]:
            for entry in entries:
                width, height, start = entry["width"], entry["height"], entry["offset"]
                # A copy, as torch cannot share read-only memory.
                part = np.array(pixels[start : start + 3 * width * height])
                yield torch.from_numpy(part).reshape(height, width, 3)

        sizes = [(entry["width"], entry["height"]) for entry in entries]
        labels = [scenes.get(Path(name).name, UNKNOWN_SCENE) for name in names]
        return cls._fill(images(), sizes, names, labels, device)

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
        return cls._fill(images, sizes, names, scenes or [UNKNOWN_SCENE] * len(names), device)

    @classmethod
    def _fill(
        cls,
        images: Iterable[Tensor],
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
        counts = [[(w >> level) * (h >> level) for level in range(LEVELS)] for w, h in sizes]
        ends = np.cumsum(counts)
        pixels = torch.zeros(int(ends[-1]), 4, dtype=torch.uint8, device=device)
        offset = torch.from_numpy(ends.reshape(-1, LEVELS)) - torch.tensor(counts)
        for image, starts in zip(images, offset.tolist(), strict=True):
            for start, level in zip(starts, _levels(image.to(device)), strict=True):
                pixels[start : start + len(level), :3] = level
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
        )


def owner_of(name: str) -> str:
    """Who a file belongs to: the name up to its second double underscore."""
    return "__".join(Path(name).name.split("__")[:2])


def _read_scenes(manifest: Path) -> dict[str, str]:
    with manifest.open(newline="") as lines:
        return {Path(row["file"]).name: row["scene"] for row in csv.DictReader(lines)}


def _levels(image: Tensor) -> Iterable[Tensor]:
    """The sizes of a picture (H, W, 3) uint8, each (pixels, 3), by averaging boxes."""
    height, width, _ = image.shape
    yield image.reshape(-1, 3)
    full = image.permute(2, 0, 1).float().contiguous()
    for level in range(1, LEVELS):
        # Adaptive, so that a size that does not divide still spans the whole sphere.
        part = functional.adaptive_avg_pool2d(full, (height >> level, width >> level))
        yield part.round().to(torch.uint8).permute(1, 2, 0).reshape(-1, 3)


def render(
    bank: PanoramaBank,
    index: Tensor,
    camera: Camera,
    world_from_camera: Tensor,
    width: int,
    height: int,
    supersample: int | None = 2,
) -> Tensor:
    """Pictures (B, 3, height, width), float32 in [0, 1], of panoramas (B,) through B cameras.

    world_from_camera (B, 3, 3): rotations to the panorama's level frame. Each pixel averages
    ``supersample`` squared points (None: its centre), interpolated in the size of the panorama
    whose pixels are nearest to the points' spacing. Pixels with a corner outside the camera's
    domain are black.
    """
    per_axis = supersample or 1
    rays, inside = _corner_rays(camera, world_from_camera, width, height)
    grid = _pick_level(bank, index, rays, per_axis)
    colour = torch.zeros(len(index), height * width, 4, device=rays.device)
    steps = [(step + 0.5) / per_axis for step in range(per_axis)]
    for y in steps:
        for x in steps:
            colour += _interpolate(bank, grid, *_panorama_coordinates(_blend(rays, x, y)))
    colour = colour * (inside.flatten(1)[..., None] / (255 * per_axis * per_axis))
    return colour[..., :3].transpose(1, 2).reshape(len(index), 3, height, width)


def _corner_rays(
    camera: Camera, world_from_camera: Tensor, width: int, height: int
) -> tuple[Tensor, Tensor]:
    """World rays (B, height + 1, width + 1, 3) of the pixels' corners, and the pixels
    (B, height, width) that have all four of them."""
    x = torch.arange(width + 1, dtype=camera.f.dtype, device=camera.f.device)
    y = torch.arange(height + 1, dtype=camera.f.dtype, device=camera.f.device)
    corners = torch.stack(torch.meshgrid(x, y, indexing="xy"), -1)
    rays, valid = camera.unproject(corners.expand(len(camera), -1, -1, -1))
    inside = valid[:, 1:, 1:] & valid[:, 1:, :-1] & valid[:, :-1, 1:] & valid[:, :-1, :-1]
    # Not a matrix product: those are rounded to ten bits where training allows it.
    columns = world_from_camera[:, None, None].unbind(-1)
    world = sum(r[..., None] * column for r, column in zip(rays.unbind(-1), columns, strict=True))
    assert isinstance(world, Tensor)
    return world, inside


@dataclass(frozen=True)
class _Grid:
    """The size of the panorama that serves each of N pixels, all (B, N)."""

    start: Tensor
    width: Tensor
    height: Tensor


def _pick_level(bank: PanoramaBank, index: Tensor, rays: Tensor, per_axis: int) -> _Grid:
    """The level whose pixels cover the area on the sphere that a point of each pixel stands for.

    rays: of the pixels' corners.
    """
    falling = rays[:, 1:, 1:] - rays[:, :-1, :-1]
    rising = rays[:, :-1, 1:] - rays[:, 1:, :-1]
    # Half the cross product of its diagonals is the area of any quadrilateral.
    area = 0.5 * torch.linalg.vector_norm(torch.linalg.cross(falling, rising), dim=-1).flatten(1)
    spacing = area.sqrt() * (bank.width[index] / (2 * math.pi * per_axis))[:, None]
    level = torch.log2(spacing.clamp(min=1e-6)).round().clamp(0, LEVELS - 1).long()
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


def _panorama_coordinates(rays: Tensor) -> tuple[Tensor, Tensor]:
    """Where rays (B, N, 3) of any length meet the panorama, from 0 to 1 across and down."""
    x, y, z = rays.unbind(-1)
    longitude = torch.atan2(x, z)
    latitude = torch.atan2(-y, torch.sqrt(x * x + z * z))
    return longitude / (2 * math.pi) + 0.5, 0.5 - latitude / math.pi


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
