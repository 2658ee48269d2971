"""Make every picture of the project again: ``python docs/make_pictures.py``.

The photographs of docs/conventions.md are rendered through ``Camera.unproject`` and the curves on
them are computed by ``geocalib.geometry``, so the pictures are evidence of the conventions, not
illustrations of what they should be. The photograph of the examples is
rendered, too; the README shows what the packaged weights see in a real one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Arc, Polygon, Rectangle
from PIL import Image
from torch import Tensor

from geocalib import Calibrator, Camera, perspective_field
from geocalib.geometry.gravity import from_roll_pitch
from geocalib.overlay import show
from geocalib.overlay.draw import HORIZON, draw_horizon, draw_image, draw_latitude, draw_up
from geocalib.synthetic import render_scene
from geocalib_lab.panoramas.panorama import PanoramaBank
from geocalib_lab.panoramas.views import ViewConfig, sample_views
from geocalib_lab.training.batches import photograph as photograph_views
from geocalib_lab.training.worlds import panoramas

PICTURES = Path(__file__).parent / "pictures"
EXAMPLES = Path(__file__).parents[1] / "examples"
SIZE = (420, 280)
TOWN = 3
PHOTO_SIZE = (960, 640)
PHOTO_TOWN = 8
PHOTO_CAMERA = {"roll_deg": 6.0, "pitch_deg": 8.0, "vfov_deg": 60.0}
"""What there is to find in the photograph of the examples."""
SHOWN_WIDTH = 1000
"""Pixels across the pictures of the README."""
WORLD_PHOTO_SIZE = (960, 720)
FAILURES = ((105, 1), (106, 2), (107, 1))
"""Worlds and views of docs/lines.md."""
FAILURE_WIDTH = 800
SWEEPS = (
    ("roll", "°", (-20.0, 0.0, 20.0)),
    ("pitch", "°", (-15.0, 0.0, 15.0)),
    ("vFoV", "°", (25.0, 46.0, 80.0)),
    ("k1", "", (-0.25, 0.0, 0.25)),
)
"""What the pictures of every sign show, with its unit."""
INK = "#14213d"
RED, GREEN, BLUE = "#d1242f", "#1a7f37", "#0969da"


def main(folder: Path = PICTURES) -> None:
    """The pictures of docs/conventions.md."""
    folder.mkdir(exist_ok=True)
    for name, figure in (
        ("frame", frame()),
        ("signs", signs()),
        ("every_sign", every_sign()),
        ("field", field()),
    ):
        _save(figure, folder / f"{name}.png")


def photograph(folder: Path = EXAMPLES) -> None:
    """town.jpg, which the examples calibrate, and town.json, which holds its camera."""
    width, height = PHOTO_SIZE
    f = 0.5 * height / math.tan(math.radians(0.5 * PHOTO_CAMERA["vfov_deg"]))
    angles = torch.tensor([[PHOTO_CAMERA["roll_deg"]], [PHOTO_CAMERA["pitch_deg"]]])
    camera = Camera.create("pinhole", f=f, size=(width, height), dtype=torch.float32)
    colours = render_scene(camera, from_roll_pitch(*angles.deg2rad()), PHOTO_TOWN, subpixels=3)[0]
    pixels = (255 * colours).round().to(torch.uint8).numpy()
    Image.fromarray(pixels).save(folder / "town.jpg", quality=92)
    (folder / "town.json").write_text(json.dumps(PHOTO_CAMERA) + "\n", encoding="utf-8")


def findings(folder: Path = PICTURES) -> None:
    """What the packaged weights see in a street, and the rendered town as a level camera has it."""
    calibrator = Calibrator()
    street, town = EXAMPLES / "photographs" / "leuven.jpg", EXAMPLES / "town.jpg"
    pictures = {
        "leuven": show(street, calibrator.calibrate(street, keep_fields=True)),
        "rectified": calibrator.calibrate(town).rectify(town).image,
    }
    for name, picture in pictures.items():
        picture.thumbnail((SHOWN_WIDTH, SHOWN_WIDTH), Image.Resampling.LANCZOS)
        picture.save(folder / f"{name}.jpg", quality=85)


def failures(folder: Path = PICTURES) -> None:
    """Photographs of rendered worlds in which straight lines mislead, with what was found."""
    calibrator = Calibrator()
    pictures = []
    for seed, number in FAILURES:
        photo = _world_photo(seed, number)
        picture = show(photo, calibrator.calibrate(photo, keep_fields=True))
        picture.thumbnail((FAILURE_WIDTH, FAILURE_WIDTH), Image.Resampling.LANCZOS)
        pictures.append(picture)
    sheet = Image.new("RGB", (FAILURE_WIDTH, sum(picture.height for picture in pictures)), "white")
    top = 0
    for picture in pictures:
        sheet.paste(picture, (0, top))
        top += picture.height
    sheet.save(folder / "lines-fail.jpg", quality=80)


def _world_photo(seed: int, number: int) -> Image.Image:
    """One of four views, as people take them, of a rendered world."""
    picture, kind = next(panoramas(1, 2560, seed, "cpu", supersample=1))
    bank = PanoramaBank.create([picture], [f"world__{seed}"], [kind])
    people = ViewConfig(published_share=0.0, distorted_share=0.0, largest_magnification=3.0)
    generator = torch.Generator().manual_seed(seed)
    views = sample_views(bank, 4, people, *WORLD_PHOTO_SIZE, generator)
    images, _ = photograph_views(bank, views, *WORLD_PHOTO_SIZE)
    return Image.fromarray((255 * images[number]).round().byte().permute(1, 2, 0).numpy())


def frame() -> Figure:
    """Axes, pixel centres, and gravity with the sign of latitude."""
    figure = Figure(figsize=(11, 3.1), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    _camera_frame(left)
    _pixel_centres(middle)
    _side_view(right)
    return figure


def signs() -> Figure:
    """The same town seen level, with roll, with pitch, and through a distorting lens."""
    views = (
        ("level: roll 0°, pitch 0°", 0, 0, 0.0),
        ("roll +15°: the tops of the posts lean left", 15, 0, 0.0),
        ("pitch +15°: the horizon sinks below the centre", 0, 15, 0.0),
        ("level, simple_radial with k1 = −0.25", 0, 0, -0.25),
    )
    figure = Figure(figsize=(9.6, 6.9), layout="constrained")
    for axes, (title, roll, pitch, k1) in zip(figure.subplots(2, 2).flat, views, strict=True):
        # About the shortest focal length at which this distortion still fills the corners.
        camera, gravity = _view(329.0, roll, pitch, k1)
        draw_image(axes, render_scene(camera, gravity, TOWN, subpixels=3)[0])
        draw_horizon(axes, camera, gravity)
        axes.plot(*camera.c[0].tolist(), "+", color="white", markersize=16, markeredgewidth=3.5)
        axes.plot(*camera.c[0].tolist(), "+", color=INK, markersize=15, markeredgewidth=1.5)
        axes.set_title(title, fontsize=11, color=INK)
    return figure


def every_sign() -> Figure:
    """Each quantity below, at and above its middle, all others being equal."""
    figure = Figure(figsize=(8.4, 8.3), layout="constrained")
    for row, (name, unit, values) in zip(figure.subplots(4, 3), SWEEPS, strict=True):
        for axes, value in zip(row, values, strict=True):
            seen = {"roll": 0.0, "pitch": 0.0, "k1": 0.0, "vFoV": 46.0, name: value}
            f = 0.5 * SIZE[1] / math.tan(math.radians(0.5 * seen["vFoV"]))
            camera, gravity = _view(f, seen["roll"], seen["pitch"], seen["k1"])
            draw_image(axes, render_scene(camera, gravity, TOWN, subpixels=2)[0])
            draw_horizon(axes, camera, gravity)
            sign = "+" if value > 0 and name != "vFoV" else ""
            x, y, z = (float(part) + 0.0 for part in gravity[0])
            axes.set_title(
                f"{name} {sign}{value:g}{unit}\ngravity ({x:.2f}, {y:.2f}, {z:.2f})".replace(
                    "-", "−"
                ),
                fontsize=9,
                color=INK,
            )
    return figure


def field() -> Figure:
    """The up-vectors and the latitude over one picture."""
    camera, gravity = _view(230.0, 10, -8, -0.1)
    picture = render_scene(camera, gravity, TOWN, subpixels=3)[0]
    up, latitude, _ = perspective_field(camera, gravity)
    figure = Figure(figsize=(9.6, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    draw_image(left, picture)
    draw_up(left, up[0])
    left.set_title("up: where a point moves when it rises", fontsize=11, color=INK)
    draw_image(right, picture)
    draw_latitude(right, latitude[0, 0], fill=0.25)
    right.set_title("latitude: blue above the horizon, red below", fontsize=11, color=INK)
    return figure


def _view(f: float, roll: float, pitch: float, k1: float) -> tuple[Camera, Tensor]:
    camera = Camera.create("simple_radial", f=f, size=SIZE, distortion=[k1], dtype=torch.float32)
    return camera, from_roll_pitch(*torch.deg2rad(torch.tensor([[roll], [pitch]])))


def _camera_frame(axes: Axes) -> None:
    def oblique(x: float, y: float, z: float) -> tuple[float, float]:
        return x + 0.72 * z, y - 0.34 * z

    _blank(axes, (-0.85, 2.05), (1.35, -0.88), "camera frame")
    corners = [(-0.45, -0.3, 1.3), (0.45, -0.3, 1.3), (0.45, 0.3, 1.3), (-0.45, 0.3, 1.3)]
    flat = [oblique(*corner) for corner in corners]
    for corner in flat:
        axes.plot((0, corner[0]), (0, corner[1]), color="0.6", linewidth=0.8)
    axes.add_patch(Polygon(flat, facecolor="#e8f1fb", edgecolor="0.45", alpha=0.85))
    axes.text(*oblique(-0.42, -0.2, 1.3), "image", fontsize=9, color="0.35")
    for tip, colour, name, offset in (
        ((1.0, 0.0, 0.0), RED, "x right", (0.05, 0.04)),
        ((0.0, 1.0, 0.0), GREEN, "y down", (0.08, 0.02)),
        ((0.0, 0.0, 2.4), BLUE, "z forward", (-0.62, -0.04)),
    ):
        end = oblique(*tip)
        _arrow(axes, (0, 0), end, colour)
        axes.text(end[0] + offset[0], end[1] + offset[1], name, fontsize=10.5, color=colour)
    _arrow(axes, (-0.45, 0), (-0.45, 1.0), INK)
    axes.text(-0.8, 1.08, "gravity (0, 1, 0)\nof a level camera", fontsize=9, va="top", color=INK)
    axes.plot(0, 0, "o", color=INK, markersize=6)


def _pixel_centres(axes: Axes) -> None:
    width, height = 4, 3
    _blank(axes, (-0.75, 4.75), (3.65, -0.59), "pixels of a 4 × 3 image")
    for x in range(width):
        for y in range(height):
            shade = "#e8f1fb" if (x + y) % 2 else "#f7fafd"
            axes.add_patch(Rectangle((x, y), 1, 1, facecolor=shade, edgecolor="0.7"))
            axes.plot(x + 0.5, y + 0.5, "o", color="0.55", markersize=4)
    axes.plot(0.5, 0.5, "o", color=RED, markersize=6)
    axes.text(0.5, 0.78, "(0.5, 0.5)", ha="center", fontsize=9.5, color=RED)
    for x, y, name, side in ((0, 0, "(0, 0)", -0.22), (4, 3, "(W, H)", 0.3)):
        axes.plot(x, y, "s", color=INK, markersize=5)
        axes.text(x, y + side, name, ha="center", va="center", fontsize=9.5, color=INK)
    axes.plot(2, 1.5, "+", color=BLUE, markersize=16, markeredgewidth=2)
    axes.text(
        2.08, 1.26, "principal point\n(W/2, H/2)", fontsize=9.5, color=BLUE, va="bottom", ha="left"
    )


def _side_view(axes: Axes) -> None:
    _blank(axes, (-0.55, 2.35), (1.14, -1.09), "latitude, seen from the side")
    axes.plot((-0.4, 2.3), (0, 0), color=HORIZON, linewidth=2)
    axes.text(2.3, -0.06, "horizon, latitude 0", ha="right", fontsize=9.5, color=HORIZON)
    for angle, colour, name in ((30, BLUE, "latitude +30°"), (-25, RED, "latitude −25°")):
        x, y = math.cos(math.radians(angle)), -math.sin(math.radians(angle))
        _arrow(axes, (0, 0), (1.75 * x, 1.75 * y), colour)
        # Angles grow the other way round where y points down.
        ends = sorted((0, -angle))
        axes.add_patch(Arc((0, 0), 1.7, 1.7, theta1=ends[0], theta2=ends[1], color=colour))
        axes.text(0.92, 0.5 * y + 0.03, name, fontsize=10, va="center", color=colour)
    _arrow(axes, (0, 0), (0, 0.85), INK)
    axes.text(0.07, 0.95, "gravity", fontsize=10, color=INK)
    _arrow(axes, (0, 0), (0, -0.85), "0.55")
    axes.text(0.07, -0.85, "up = −gravity", fontsize=10, color="0.4")
    axes.plot(0, 0, "o", color=INK, markersize=7)


def _blank(axes: Axes, x: Sequence[float], y: Sequence[float], title: str) -> None:
    axes.set(xlim=x, ylim=y, aspect="equal")
    axes.axis("off")
    axes.set_title(title, fontsize=11, color=INK)


def _arrow(axes: Axes, start: Sequence[float], end: Sequence[float], colour: str) -> None:
    style = {"arrowstyle": "-|>", "color": colour, "linewidth": 2, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", xy=(end[0], end[1]), xytext=(start[0], start[1]), arrowprops=style)


def _save(figure: Figure, path: Path) -> None:
    """With a palette of 256 colours, small enough for a repository."""
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=100)
    Image.open(buffer).convert("RGB").quantize(256, kmeans=2).save(path, optimize=True)


if __name__ == "__main__":
    main()
    photograph()
    findings()
    failures()
