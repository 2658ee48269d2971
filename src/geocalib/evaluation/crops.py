"""Photographs cut out of panoramas, with their truth: a set to measure on.

The sampling is the published one: 16 crops of 640x640 pixels per panorama, roll and pitch uniform
within 45 degrees, vFoV uniform from 20 to 105 degrees, any heading. The layout is the published
one, too: ``images/`` and ``images.csv``, in radians.
"""

from __future__ import annotations

import csv
import math
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from geocalib.errors import PanoramaError
from geocalib.gravity import to_roll_pitch
from geocalib.training.augment import black_share
from geocalib.training.batches import MOST_BLACK
from geocalib.training.panorama import PanoramaBank, render
from geocalib.training.views import ViewConfig, Views, sample_views

PER_PANORAMA = 16
SIZE = 640
"""Pixels on each side."""

QUALITY = 95
"""Of the JPEG files."""

SUFFIXES = (".webp", ".jpg", ".jpeg", ".png")
"""Of panoramas."""

COLUMNS = ("fname", "width", "height", "vfov", "roll", "pitch", "k1", "magnification")


def render_crops(
    panoramas: Path,
    out: Path,
    *,
    per_panorama: int = PER_PANORAMA,
    size: int = SIZE,
    distorted_share: float = 0.0,
    seed: int = 0,
    done: Callable[[], None] = lambda: None,
) -> Path:
    """Write crops of all panoramas of a folder, and return their table.

    The crops of a panorama depend on its file's name and the seed alone, and fewer crops are the
    first of more. As published, crops with 1% or more black pixels are left out. distorted_share:
    part of the crops whose k1 (H / f)^2 is normal with sigma 0.07, within 0.3; the column k1 is
    left out where it is 0. Column magnification: pixels of the crop per pixel of the panorama,
    at the centre. done: called after each panorama.
    """
    images = out / "images"
    images.mkdir(parents=True, exist_ok=True)
    config = ViewConfig(
        published_share=1.0, distorted_share=distorted_share, largest_magnification=math.inf
    )
    columns = [name for name in COLUMNS if distorted_share or name != "k1"]
    table = out / "images.csv"
    with table.open("w", newline="", encoding="utf-8") as stream:
        rows = csv.DictWriter(stream, columns, extrasaction="ignore", lineterminator="\n")
        rows.writeheader()
        for path in find_panoramas(panoramas):
            bank = PanoramaBank.create([_read(path)], [path.name])
            generator = torch.Generator().manual_seed(zlib.crc32(f"{seed} {path.name}".encode()))
            count = max(per_panorama, PER_PANORAMA)
            views = sample_views(bank, count, config, size, size, generator)
            for number in range(per_panorama):
                name = f"{path.stem}_{number:02d}.jpg"
                row = _crop(bank, views, number, size, images / name)
                if row is not None:
                    rows.writerow({"fname": name, **row})
            done()
    return table


def find_panoramas(folder: Path) -> list[Path]:
    """The pictures of a folder, sorted by name."""
    found = sorted(path for path in folder.glob("*") if path.suffix.lower() in SUFFIXES)
    if not found:
        raise PanoramaError(f"{folder} holds no panorama ({', '.join(SUFFIXES)}); put some there")
    return found


def _read(path: Path) -> torch.Tensor:
    """(H, W, 3) uint8."""
    try:
        with Image.open(path) as image:
            pixels = np.array(image.convert("RGB"))
    except OSError as error:
        raise PanoramaError(f"cannot read panorama {path}: {error}") from error
    height, width, _ = pixels.shape
    if width != 2 * height:
        raise PanoramaError(f"{path} is {width}x{height}; a panorama is twice as wide as high")
    return torch.from_numpy(pixels)


def _crop(
    bank: PanoramaBank, views: Views, number: int, size: int, file: Path
) -> dict[str, float] | None:
    """Write one crop and return its truth in radians; None if there is too little to see."""
    part = slice(number, number + 1)
    camera = views.camera[part]
    picture = render(bank, views.index[part], camera, views.world_from_camera[part], size, size)
    if black_share(picture).item() >= MOST_BLACK:
        return None
    pixels = (255 * picture[0]).round().to(torch.uint8).permute(1, 2, 0).numpy()
    Image.fromarray(pixels).save(file, quality=QUALITY, subsampling=0)
    roll, pitch = to_roll_pitch(views.gravity[number].double())
    return {
        "width": size,
        "height": size,
        "vfov": camera.vfov.item(),
        "roll": roll.item(),
        "pitch": pitch.item(),
        "k1": camera.distortion.item(),
        "magnification": camera.f.item() * 2 * math.pi / bank.width.item(),
    }
