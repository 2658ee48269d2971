"""The photo and what is drawn onto it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.path import Path
from matplotlib.patheffects import withStroke
from PIL import Image

from geocalib.cameras import Camera
from geocalib.errors import ImageError
from geocalib.geometry.horizon import horizon
from geocalib.imaging.read import ImageSource, read_photo
from geocalib.overlay import curves
from geocalib.overlay.box import Box
from geocalib.overlay.draw import HORIZON, Array, array, draw_arrows, latitude_colours, signed
from geocalib.overlay.lines import draw_lines
from geocalib.result.calibration import Calibration
from geocalib.result.evidence import Traces

LONGEST_SIDE = 1600
"""Pixels of a picture's longer side, at most."""
FONT = "DejaVu Sans"
"""Comes with matplotlib, so that the pictures are the same everywhere."""
BOX = "#ffc400"
POINTS_ACROSS = 1000
"""Points (the unit of strokes and letters) along the longer side of a picture."""
LEAST_POINT = 0.4
"""Pixels: strokes and letters of small pictures are no thinner than this allows."""
LEAST_LETTER = 7.0
"""Pixels: smaller letters are left out."""
LABEL = 13.0
"""Size of the letters, points."""
MOST_ARROWS = 13
"""Along the longer side of the image."""
LEAST_SPACING = 14.0
"""Pixels from one arrow to the next."""


@dataclass(frozen=True)
class Label:
    """A word on the photo."""

    text: str
    place: Array
    """(2,) pixels of its middle."""
    half: Array
    """(2,) pixels from its middle to its sides."""
    colour: Any


def load(photo: ImageSource, calibration: Calibration, size: tuple[int, int]) -> Image.Image:
    """The photo of a calibration, resampled to size (width, height)."""
    # Decoded to no fewer pixels than are drawn: twice the short side wanted are kept.
    picture = read_photo(photo, math.ceil(min(size) / 2))
    if picture.size != (calibration.width, calibration.height):
        raise ImageError(
            f"{picture.name} is {picture.size[0]}x{picture.size[1]} pixels, but its calibration "
            f"is of {calibration.width}x{calibration.height}; give the photo it was made from"
        )
    image = Image.fromarray(picture.pixels)
    if image.size == size and picture.shown == (0, 0, *size):
        return image
    return image.resize(size, Image.Resampling.BICUBIC, box=picture.shown)


def drawn_camera(calibration: Calibration, size: tuple[int, int]) -> Camera:
    """The calibration's camera, of the photo resampled to size (width, height)."""
    return calibration.cameras.resize(*size)


def annotate(
    image: Image.Image,
    calibration: Calibration,
    box: Box | None = None,
    lines: Traces | None = None,
) -> Image.Image:
    """The image with the calibration's horizon, latitudes and up-vectors, and the box and the
    straight lines if given."""
    camera, gravity = drawn_camera(calibration, image.size), calibration.gravity
    point = max(LEAST_POINT, max(image.size) / POINTS_ACROSS)
    figure, axes = blank(image.size, point)
    if lines is not None:
        draw_lines(axes, lines, camera, image.size[0] / calibration.width)
    labels = _draw_latitudes(axes, camera, gravity, point)
    spacing = max(max(image.size) / MOST_ARROWS, LEAST_SPACING)
    points, up = curves.up_arrows(camera, gravity, spacing)
    taken = np.zeros(points.shape[1], bool)
    for label in labels:
        room = label.half[:, None] + 0.25 * spacing
        taken |= (np.abs(points - label.place[:, None]) < room).all(0)
    if box is not None:
        _draw_box(axes, box)
        for face in box.faces:
            taken |= Path(face.outline).contains_points(points.T)
    draw_arrows(axes, points[:, ~taken], up[:, ~taken], np.ones((~taken).sum()), 0.8 * spacing)
    return Image.alpha_composite(image.convert("RGBA"), rendered(figure)).convert("RGB")


def blank(size: tuple[int, int], point: float = 1.0) -> tuple[Figure, Axes]:
    """A transparent figure of size (width, height) in pixels, and axes that span it, y down.

    point: pixels of the unit of strokes and letters.
    """
    width, height = size
    dpi = 72 * point
    # A little more than whole: matplotlib rounds pixels down.
    figure = Figure(figsize=((width + 1e-6) / dpi, (height + 1e-6) / dpi), dpi=dpi)
    figure.patch.set_alpha(0)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(height, 0), autoscale_on=False)
    axes.set_axis_off()
    return figure, axes


def rendered(figure: Figure) -> Image.Image:
    """The pixels of a figure, (H, W, 4) RGBA."""
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    return Image.fromarray(np.array(canvas.buffer_rgba()))


def rim(width: float, colour: str = "white", alpha: float = 0.75) -> list[Any]:
    """A rim that keeps strokes (of that width in all, points) readable on any photo."""
    return [withStroke(linewidth=width, foreground=colour, alpha=alpha)]


def write(axes: Axes, place: Array, text: str, **how: Any) -> None:
    """Text as it is, centred on a place (2,) unless said otherwise."""
    defaults: dict[str, Any] = {"ha": "center", "va": "center", "family": FONT, "parse_math": False}
    axes.text(float(place[0]), float(place[1]), text, **(defaults | how))


def _draw_latitudes(axes: Axes, camera: Camera, gravity: Array, point: float) -> list[Label]:
    """Draw the lines of equal latitude and the horizon, or where it is; the labels."""
    lines = curves.level_curves(camera, gravity)
    pixels, valid = horizon(camera, gravity[None])
    labels = []
    if valid.any():
        lines[0] = curves.broken(pixels[0], valid[0], camera)
    else:
        labels.append(_draw_mark(axes, curves.horizon_mark(camera, gravity), camera, point))
    for level, curve in lines.items():
        colour: Any = HORIZON if level == 0 else latitude_colours(np.array(float(level)))
        width = 3.4 if level == 0 else 1.5
        axes.plot(
            *curve.T,
            color=colour,
            linewidth=width,
            zorder=2.5 if level == 0 else 2,
            solid_capstyle="round",
            path_effects=rim(width + 2.2),
        )
        text = "horizon" if level == 0 else signed(level)
        half = _half_extent(text, point)
        room = curves.inside(curve, camera, half)
        if len(room) > 0:
            # As on a map, at the end of the line.
            place = room[(room @ curves.scene_right(gravity)).argmax()]
            labels.append(Label(text, place, half, colour))
    if LABEL * point < LEAST_LETTER:
        return []
    for label in labels:
        write(
            axes,
            label.place,
            label.text,
            color=label.colour,
            fontsize=LABEL,
            fontweight="bold",
            zorder=4,
            path_effects=rim(4, alpha=0.95),
        )
    return labels


def _draw_mark(axes: Axes, mark: curves.Mark, camera: Camera, point: float) -> Label:
    """Draw a triangle on the border; the label to go beside it, within the image."""
    length = max(24 * point, 5.0)
    across = 0.5 * length * np.array([-mark.direction[1], mark.direction[0]])
    tip = mark.point - 0.2 * length * mark.direction
    base = tip - length * mark.direction
    corners = np.stack([tip, base + across, base - across])
    axes.fill(*corners.T, color=HORIZON, linewidth=0, zorder=5, path_effects=rim(3, alpha=1))
    text = f"horizon {mark.angle_deg:.0f}° beyond" if math.isfinite(mark.angle_deg) else "horizon"
    half = _half_extent(text, point)
    place = base - (np.abs(mark.direction) @ half) * mark.direction
    place = np.clip(place, half, np.maximum(array(camera.size[0]) - half, half))
    return Label(text, place, half, HORIZON)


def _half_extent(text: str, point: float) -> Array:
    """(2,) pixels from the middle of a label to its sides, roughly."""
    return np.array([0.37 * len(text) + 0.3, 0.8]) * LABEL * point


def _draw_box(axes: Axes, box: Box) -> None:
    for curve in box.hidden:
        axes.plot(*curve.T, color=BOX, linewidth=1.3, linestyle=(0, (3, 2.5)), zorder=5)
    for face in box.faces:
        alpha = 0.42 if face.lid else 0.26
        axes.fill(*face.outline.T, color=BOX, alpha=alpha, linewidth=0, zorder=5)
    # All rims first, so that none crosses an edge where they meet.
    for colour, width, alpha, order in (("black", 4.6, 0.6, 5.5), (BOX, 2.4, 1.0, 6)):
        for curve in box.seen:
            axes.plot(*curve.T, color=colour, linewidth=width, alpha=alpha, zorder=order)
