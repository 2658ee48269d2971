"""Two more sets for ``benchmarks/lines.py``: ``python benchmarks/line_sets.py OUT SET ...``.

OUT/bent: every other photograph of the sets, as a lens that bends a little would have taken it,
which its table does not tell. OUT/town: frames of ``benchmarks/video.py``.
"""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

import video
from geocalib.cameras import Camera
from geocalib.evaluation.datasets import Sample, read_dataset
from geocalib.geometry.fields import pixel_grid
from geocalib.geometry.gravity import to_roll_pitch
from geocalib.imaging import read_photo

BENDS = (0.03, 0.1)
"""Least and most of k1 (H / f)^2, either way."""
SHOWN = 0.85
"""Of each side: what a lens bends inwards is missing at the rim."""
TOWNS, FRAMES = (0, 1), 10
COLUMNS = ("image", "width", "height", "roll_deg", "pitch_deg", "vfov_deg")

Picture = npt.NDArray[np.uint8]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("sets", type=Path, nargs="+", help="folders of photographs by pinholes")
    options = parser.parse_args()
    samples = [sample for path in options.sets for sample in read_dataset(path)]
    write(options.out / "bent", bent(samples[::2]))
    write(options.out / "town", towns())


def bent(samples: Iterable[Sample]) -> Iterable[tuple[Sample, Picture]]:
    """Photographs, their middles bent, with what is true of them."""
    draws = np.random.default_rng(0)
    for sample in samples:
        assert sample.vfov_deg is not None
        old = read_photo(sample.image, None).pixels
        f = 0.5 * sample.height / math.tan(0.5 * math.radians(sample.vfov_deg))
        pinhole = Camera.create("pinhole", f=f, size=(sample.width, sample.height))
        width, height = (round(SHOWN * side) for side in (sample.width, sample.height))
        k1 = draws.choice([-1, 1]) * draws.uniform(*BENDS) * (f / height) ** 2
        lens = Camera.create("simple_radial", f=f, size=(width, height), distortion=[k1])
        rays, _ = lens.unproject(pixel_grid(width, height, lens.f).reshape(1, -1, 2))
        seen, _ = pinhole.project(rays)
        # OpenCV counts from the centre of the first pixel.
        x, y = (seen - 0.5).astype(np.float32).reshape(height, width, 2).transpose(2, 0, 1)
        picture = cv2.remap(old, x, y, cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)
        vfov_deg = math.degrees(2 * math.atan(0.5 * height / f))
        yield (
            replace(sample, width=width, height=height, vfov_deg=vfov_deg),
            picture.astype(np.uint8),
        )


def towns() -> Iterable[tuple[Sample, Picture]]:
    """Frames of rendered towns, with what is true of them."""
    width, height = video.SIZE
    vfov_deg = math.degrees(2 * math.atan(0.5 * height / video.FOCAL))
    for town in TOWNS:
        path = video.hand_held(FRAMES / video.SECONDS, town, video.HANDS["calm"])
        angles = np.rad2deg(to_roll_pitch(path.gravity.numpy())).T
        frames = video.photographed(path, town)
        for k, ((roll, pitch), frame) in enumerate(zip(angles, frames, strict=True)):
            yield Sample(Path(f"{town}-{k}.png"), width, height, roll, pitch, vfov_deg), frame


def write(folder: Path, photographs: Iterable[tuple[Sample, Picture]]) -> None:
    """A set as ``geocalib.evaluation.datasets`` reads it."""
    (folder / "images").mkdir(parents=True, exist_ok=True)
    with (folder / "images.csv").open("w", newline="", encoding="utf-8") as stream:
        table = csv.writer(stream)
        table.writerow(COLUMNS)
        for sample, picture in photographs:
            name = f"{sample.image.stem}.png"
            cv2.imwrite(str(folder / "images" / name), picture[..., ::-1])
            angles = sample.roll_deg, sample.pitch_deg, sample.vfov_deg
            table.writerow([name, sample.width, sample.height, *angles])


if __name__ == "__main__":
    main()
