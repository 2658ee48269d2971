"""Perspective fields, confidences and horizons drawn with matplotlib.

Each function draws one image's quantity onto an Axes, in that image's pixels with y down, so that
any of them can be laid over another or over a photo. Nothing touches pyplot's global state.

    figure = Figure()
    axes = figure.subplots()
    draw_image(axes, photo, fields.size)
    draw_latitude(axes, fields.latitude[0, 0])
    draw_up(axes, fields.up[0])
    figure.savefig("field.png")
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, Protocol

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patheffects import withStroke
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from geocalib.arrays import Array as AnyArray
from geocalib.arrays import to_numpy
from geocalib.cameras.camera import Camera
from geocalib.errors import FieldError
from geocalib.files import write_bytes
from geocalib.geometry.fields import Fields, perspective_field
from geocalib.geometry.horizon import horizon

HORIZON = "#e6007e"
ARROW = "#14213d"
LEVEL_STEP = 10
"""Degrees from one line of equal latitude to the next."""
ARROWS_ACROSS = 15
"""Arrows along the longer side of the image."""
FADING = 0.3
"""Power of relative confidences that is drawn: they span many orders of magnitude."""
FAINTEST_LINE = 0.25
"""Confidence, as a share of the largest, below which no line is drawn."""

HALO = withStroke(linewidth=3, foreground=(1, 1, 1, 0.6))
"""A light rim that keeps lines and letters readable on a photo."""

Array = NDArray[np.float64]


def save_figure(figure: Figure, path: Path, dpi: int) -> None:
    """Write a figure as a PNG, whole or not at all."""
    # In memory first: the writer of pictures does not say why a disk takes no more.
    content = BytesIO()
    figure.set_dpi(dpi)
    # As ``figure.savefig`` does, which draws everything twice where a layout is wanted.
    FigureCanvasAgg(figure).print_png(content)  # type: ignore[no-untyped-call]
    write_bytes(path, content.getbuffer())


class Sigmas(Protocol):
    """One-sigma uncertainties, each (B,) in degrees."""

    @property
    def roll_deg(self) -> AnyArray: ...
    @property
    def pitch_deg(self) -> AnyArray: ...
    @property
    def vfov_deg(self) -> AnyArray: ...


class DrawableEstimate(Protocol):
    """What a figure shows of any estimate of B cameras, such as the result of ``fit``."""

    @property
    def camera(self) -> Camera: ...
    @property
    def gravity(self) -> AnyArray: ...
    @property
    def roll_deg(self) -> AnyArray: ...
    @property
    def pitch_deg(self) -> AnyArray: ...
    @property
    def vfov_deg(self) -> AnyArray: ...
    @property
    def sigma(self) -> Sigmas: ...


def draw_image(axes: Axes, image: AnyArray, size: tuple[int, int] | None = None) -> None:
    """Draw a photo (H, W, 3), RGB in [0, 1], stretched to size (width, height) if given.

    The size of a field whose photo has another resolution puts both into the same pixels.
    """
    image = to_numpy(image)
    if image.ndim != 3 or image.shape[2] != 3 or image.dtype.kind != "f":
        raise FieldError(
            f"image must be (H, W, 3) of floats in [0, 1], got {image.shape} of {image.dtype}"
        )
    width, height = size or (image.shape[1], image.shape[0])
    _frame(axes, width, height)
    _paint(axes, array(image.clip(0, 1)), width, height)


def draw_latitude(
    axes: Axes, latitude: AnyArray, confidence: AnyArray | None = None, fill: float = 0.5
) -> None:
    """Draw a latitude (H, W), radians, as lines every 10 degrees and bands between them.

    Blue is above the horizon, red below it, and the horizon itself is bold. Bands have the
    opacity ``fill``, faded with the confidence (H, W), if given. Lines follow
    means over a hundredth of the image, so that noise does not fray them, and end where the
    confidence is low. Pixels without a finite latitude stay empty.
    """
    height, width = _plane("latitude", latitude)
    degrees = np.rad2deg(array(latitude))
    opacity = np.isfinite(degrees) * _opacity(confidence, height, width)
    degrees = np.where(opacity > 0, degrees, 0.0)
    _frame(axes, width, height)
    if fill > 0:
        middle = LEVEL_STEP * (np.floor(degrees / LEVEL_STEP) + 0.5)
        bands = latitude_colours(middle)
        bands[..., 3] = fill * opacity
        _paint(axes, bands, width, height)
    smooth = _smooth(degrees, opacity, radius=max(width, height) // 100)
    lines = np.ma.masked_where(opacity < FAINTEST_LINE, smooth)
    if lines.count() == 0:
        return
    levels = np.arange(LEVEL_STEP - 90, 90, LEVEL_STEP)
    levels = levels[(levels > lines.min()) & (levels < lines.max())]
    x, y = np.arange(width) + 0.5, np.arange(height) + 0.5
    if 0 in levels:
        bold = axes.contour(x, y, lines, [0], colors=[HORIZON], linewidths=2.5)
        bold.set_path_effects([HALO])
    levels = levels[levels != 0]
    if levels.size > 0:
        colours = latitude_colours(levels)
        thin = axes.contour(x, y, lines, levels, colors=colours, linewidths=1.2, linestyles="solid")
        thin.set_path_effects([HALO])
        darker = colours * (0.7, 0.7, 0.7, 1)
        for label in axes.clabel(thin, fmt=signed, fontsize=8, colors=darker):
            label.set_path_effects([HALO])


def draw_up(axes: Axes, up: AnyArray, confidence: AnyArray | None = None) -> None:
    """Draw up-vectors (2, H, W) as sparse arrows, faded with the confidence (H, W) if given."""
    if up.ndim != 3 or up.shape[0] != 2:
        raise FieldError(f"up must be (2, H, W), got {tuple(up.shape)}")
    _, height, width = up.shape
    _frame(axes, width, height)
    spacing = max(width, height) / ARROWS_ACROSS
    columns, rows = (_spread(count, spacing) for count in (width, height))
    directions = array(up)[:, rows[:, None], columns].reshape(2, -1)
    opacity = _opacity(confidence, height, width)[rows[:, None], columns].ravel()
    points = np.stack([part.ravel() for part in np.meshgrid(columns + 0.5, rows + 0.5)])
    draw_arrows(axes, points, directions, opacity * np.isfinite(directions).all(0), spacing)


def draw_arrows(
    axes: Axes, points: Array, directions: Array, opacity: Array, spacing: float
) -> None:
    """Draw arrows centred on points (2, N) along unit directions (2, N) with an opacity (N,).

    spacing: pixels from one to the next, of which they take some 60 percent.
    """
    colour = np.broadcast_to(matplotlib.colors.to_rgba(ARROW), (opacity.size, 4)).copy()
    colour[:, 3] = opacity
    rim = np.ones_like(colour)
    rim[:, 3] = 0.8 * opacity
    axes.quiver(
        *points,
        *(0.62 * spacing * np.nan_to_num(directions)),
        color=colour,
        edgecolor=rim,
        linewidth=0.6,
        pivot="middle",
        # Directions and lengths in pixels of the image, whose y points down.
        angles="xy",
        units="xy",
        scale_units="xy",
        scale=1,
        width=0.075 * spacing,
        headwidth=3.6,
        headlength=3.8,
        headaxislength=3.4,
        zorder=3,
    )


def draw_confidence(axes: Axes, confidence: AnyArray) -> AxesImage:
    """Draw a confidence (H, W) from dark (none) to bright (its maximum); for a colour bar."""
    height, width = _plane("confidence", confidence)
    _frame(axes, width, height)
    image = _paint(axes, array(confidence), width, height)
    image.set_cmap("cividis")
    image.set_clim(0, max(float(confidence.max()), float(np.finfo(np.float32).tiny)))
    return image


def draw_horizon(axes: Axes, camera: Camera, gravity: AnyArray) -> None:
    """Draw the horizon of one camera under gravity (1, 3), if the image shows it."""
    camera, gravity = camera.batch(), gravity.reshape(-1, 3)
    if len(camera) != 1 or gravity.shape != (1, 3):
        raise FieldError(
            f"draw_horizon takes one camera and a (1, 3) gravity, got {len(camera)} cameras "
            f"and {tuple(gravity.shape)}"
        )
    width, height = (int(v) for v in camera.size[0].tolist())
    _frame(axes, width, height)
    points, valid = horizon(camera, gravity)
    x, y = np.where(to_numpy(valid)[0, :, None], array(points[0]), np.nan).T
    axes.plot(x, y, color=HORIZON, linewidth=2.5, zorder=2.5, path_effects=[HALO])


def draw_title(axes: Axes, estimate: DrawableEstimate, index: int = 0) -> None:
    """Head the Axes with the numbers of the index-th camera and their sigmas."""
    axes.set_title(estimate_line(estimate, index), fontsize=10)


def estimate_line(estimate: DrawableEstimate, index: int = 0) -> str:
    """Roll, pitch and vFoV of the index-th camera with their sigmas, in one line."""
    sigma = estimate.sigma
    return ", ".join(
        f"{name} {with_sigma(float(value[index]), float(error[index]), '°')}"
        for name, value, error in (
            ("roll", estimate.roll_deg, sigma.roll_deg),
            ("pitch", estimate.pitch_deg, sigma.pitch_deg),
            ("vFoV", estimate.vfov_deg, sigma.vfov_deg),
        )
    )


def with_sigma(value: float, sigma: float, unit: str = "") -> str:
    """A number with as many digits as its one-sigma uncertainty deserves.

    >>> with_sigma(12.3456, 0.0812, "°")
    '12.35° ± 0.08°'
    >>> with_sigma(-0.04, 0.1)
    '0.0 ± 0.1'
    >>> with_sigma(-0.5, 0.0)
    '-0.5 (fixed)'
    """
    if sigma == 0:
        return f"{value:z.4g}{unit} (fixed)"
    if not math.isfinite(sigma):
        return f"{value:z.1f}{unit} ± ?"
    exponent = int(f"{sigma:.0e}".partition("e")[2])
    digits = min(max(1, -exponent), 5)
    return f"{value:z.{digits}f}{unit} ± {sigma:.{digits}f}{unit}"


def fit_figure(
    fields: Fields, estimate: DrawableEstimate, index: int = 0, image: AnyArray | None = None
) -> Figure:
    """What was observed (left) beside what the estimated camera would see (right).

    image (H, W, 3): the photo, RGB in [0, 1], of any resolution, to draw behind both.
    """
    width, height = fields.size
    camera, gravity = estimate.camera[index].map(array), array(estimate.gravity[index : index + 1])
    up, latitude, valid = perspective_field(camera, gravity)
    panel = 5.2
    figure = Figure(figsize=(2 * panel, panel * height / width + 0.6), dpi=120)
    figure.set_layout_engine("constrained")
    left, right = figure.subplots(1, 2)
    fill = 0.5 if image is None else 0.22
    if image is not None:
        for axes in (left, right):
            draw_image(axes, image, fields.size)
    draw_latitude(left, fields.latitude[index, 0], fields.latitude_confidence[index], fill)
    draw_up(left, fields.up[index], fields.up_confidence[index])
    draw_latitude(right, np.where(valid[0], latitude[0, 0], np.nan), fill=fill)
    draw_up(right, up[0], valid[0].astype(np.float64))
    draw_horizon(right, camera, gravity)
    left.set_title("observed field", fontsize=10, color="0.25")
    right.set_title(f"fitted {camera.model.name} camera and its horizon", fontsize=10, color="0.25")
    figure.supxlabel(estimate_line(estimate, index).replace("-", "−"), fontsize=12)
    return figure


def _frame(axes: Axes, width: float, height: float) -> None:
    """Make the Axes span the image: (0, 0) at the top left, y down, square pixels."""
    axes.set_autoscale_on(False)
    axes.set(xlim=(0, width), ylim=(height, 0), aspect="equal", xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set(color="0.6", linewidth=0.6)


def _paint(axes: Axes, values: Array, width: float, height: float) -> AxesImage:
    return axes.imshow(values, extent=(0, width, height, 0), interpolation="antialiased")


def latitude_colours(degrees: Array) -> Array:
    """RGBA (..., 4): red below the horizon, blue above, darker towards the poles.

    ColorBrewer's diverging map without its pale middle, in which lines would vanish.
    """
    away = np.where(degrees < 0, -1.0, 1.0) * (0.26 + 0.24 * np.abs(degrees) / 90)
    return np.asarray(matplotlib.colormaps["RdBu"](0.5 + away))


def _opacity(confidence: AnyArray | None, height: int, width: int) -> Array:
    """(H, W) in [0, 1]: a root of the confidence relative to its maximum."""
    if confidence is None:
        return np.ones((height, width))
    if confidence.shape != (height, width):
        raise FieldError(
            f"confidence must be {(height, width)} like its field, got {tuple(confidence.shape)}"
        )
    values = array(confidence)
    return np.divide(values, max(values.max(), np.finfo(np.float64).tiny)) ** FADING


def _smooth(values: Array, weight: Array, radius: int) -> Array:
    """(H, W) weighted means over squares of that radius around each pixel."""

    def pad(part: Array, **how: Any) -> Array:
        return np.pad(part, radius, **how)

    def mean(part: Array) -> Array:
        size = 2 * radius + 1
        rows = sliding_window_view(part, size, 0).mean(-1)
        return sliding_window_view(rows, size, 1).mean(-1)

    # Beyond the border the values go on linearly, or lines would bend there. That takes both the
    # pixel on the border and the one mirrored in it.
    beyond = pad(values, mode="reflect", reflect_type="odd")
    weight = pad(weight, mode="reflect") * pad(weight, mode="edge")
    return mean(beyond * weight) / np.maximum(mean(weight), np.finfo(np.float64).tiny)


def _spread(count: int, spacing: float) -> NDArray[np.int64]:
    """Indices among ``count`` about that far apart, with equal margins."""
    number = max(1, round(count / spacing))
    return ((np.arange(number) + 0.5) * count / number).astype(np.int64)


def _plane(name: str, value: AnyArray) -> Sequence[int]:
    if value.ndim != 2 or min(value.shape) < 2:
        raise FieldError(f"{name} must be (H, W), of one image, got {tuple(value.shape)}")
    return value.shape


def signed(level: float) -> str:
    """Whole degrees with their sign."""
    return f"{level:+.0f}°".replace("-", "−")


def array(value: AnyArray) -> Array:
    """The values as matplotlib takes them."""
    return np.asarray(to_numpy(value), np.float64)
