"""Put a ball on the ground of a photo: ``python examples/insert_object.py [PHOTO] [--at X Y]``.

Where the pixel at X, Y (shares of width and height) meets the ground, the ball stands, as large and
as distorted as a real one would appear there. The photo does not tell how high the camera was: say
so with ``--height``. Without a photo it takes the rendered one beside this file.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageOps

from geocalib import Calibration, Calibrator, GeoCalibError
from geocalib.geometry.gravity import world_from_camera

TOWN = Path(__file__).parent / "town.jpg"
LIGHT = np.array([-0.5, -0.72, -0.48])  # to the sun: x right, y down, z ahead, level
SMOOTH = 3  # times as large as the photo, while drawing


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("photo", type=Path, nargs="?", default=TOWN)
    parser.add_argument("--at", type=float, nargs=2, default=(0.5, 0.85), metavar=("X", "Y"))
    parser.add_argument("--height", type=float, default=1.6, help="of the camera, metres")
    parser.add_argument("--radius", type=float, default=0.4, help="of the ball, metres")
    parser.add_argument("-o", "--out", type=Path, default=Path("out"), metavar="FOLDER")
    options = parser.parse_args(arguments)
    try:
        c = Calibrator().calibrate(options.photo)
    except GeoCalibError as error:
        print(error, file=sys.stderr)
        return 2

    ray, _ = c.camera.unproject(np.array(options.at) * [c.width, c.height])
    ray = world_from_camera(c.gravity) @ ray
    if ray[1] < 0.01:
        print("that pixel is not below the horizon; give another --at", file=sys.stderr)
        return 2
    foot = options.height / ray[1] * ray
    print(f"the ball stands {np.hypot(foot[0], foot[2]):.2f} m away")
    picture = ImageOps.exif_transpose(Image.open(options.photo)).convert("RGB")
    options.out.mkdir(parents=True, exist_ok=True)
    file = options.out / f"{options.photo.stem}-ball.jpg"
    with_ball(picture, c, foot, options.radius).save(file, quality=92)
    print(file)
    return 0


def with_ball(
    picture: Image.Image, c: Calibration, foot: NDArray[np.float64], radius: float
) -> Image.Image:
    """The picture with a ball on the ground at foot (3,), in the level frame at the camera."""
    # Longitudes by latitudes; (I, J, 3) points of the unit sphere, the first and last are poles.
    u, v = np.meshgrid(np.linspace(0, 2 * np.pi, 49), np.linspace(0, np.pi, 25), indexing="ij")
    unit = np.stack([np.sin(v) * np.cos(u), -np.cos(v), np.sin(v) * np.sin(u)], -1)
    centre = foot - [0, radius, 0]
    ball = centre + radius * unit
    light = LIGHT / np.linalg.norm(LIGHT)
    # Along the light, down to the ground.
    shadow = ball - ((ball[..., 1:2] - foot[1]) / light[1]) * light

    canvas = Image.new("RGBA", (SMOOTH * c.width, SMOOTH * c.height))
    draw = ImageDraw.Draw(canvas)
    for quad in _quads(_pixels(c, shadow)):
        draw.polygon(quad, fill=(0, 0, 0, 110))
    towards = -(unit * (ball / np.linalg.norm(ball, axis=-1, keepdims=True))).sum(-1)
    stripe = np.floor(u * 4 / np.pi).astype(int) % 2
    shade = 0.35 + 0.65 * (unit @ light).clip(min=0)
    for (i, j), quad in zip(np.ndindex(48, 24), _quads(_pixels(c, ball)), strict=True):
        if towards[i : i + 2, j : j + 2].max() > 0:
            colour = np.array([(225, 60, 40), (245, 240, 230)][stripe[i, j]]) * shade[i, j]
            draw.polygon(quad, fill=(*colour.astype(int).tolist(), 255))
    small = canvas.resize(picture.size, Image.Resampling.BOX)
    return Image.alpha_composite(picture.convert("RGBA"), small).convert("RGB")


def _pixels(c: Calibration, points: NDArray[np.float64]) -> NDArray[np.float64]:
    """(I, J, 2) pixels of the canvas of points (I, J, 3) in the level frame."""
    seen = points @ world_from_camera(c.gravity)
    pixels, _ = c.camera.project(seen)
    return SMOOTH * np.asarray(pixels)


def _quads(grid: NDArray[np.float64]) -> list[list[tuple[float, float]]]:
    """The outline of each cell of a grid (I, J, 2), row by row."""
    corners = np.stack([grid[:-1, :-1], grid[1:, :-1], grid[1:, 1:], grid[:-1, 1:]], 2)
    return [[(x, y) for x, y in quad] for quad in corners.reshape(-1, 4, 2).tolist()]


if __name__ == "__main__":
    sys.exit(main())
