"""Plots by the names of the published package, on the axes of matplotlib's current figure.

First ``plot_images``, then what is drawn onto them, one thing for each image; ``save_plot`` in the
end. ``geocalib.overlay`` draws better pictures, of a ``Calibration``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patheffects import withStroke

from geocalib.arrays import Array, to_numpy
from geocalib.perspective_fields import get_perspective_field
from geocalib.published_api import PublishedCamera, PublishedGravity

HEIGHT = 4.5
"""Height of a plot, inches."""


def plot_images(
    imgs: Sequence[Array],
    titles: Sequence[str] | None = None,
    cmaps: str = "gray",
    dpi: int = 200,
    pad: float = 0.5,
    adaptive: bool = True,
) -> Any:
    """A new figure of images (H, W[, 3]) side by side. adaptive: as wide as they are."""
    shapes = [image.shape[1] / image.shape[0] if adaptive else 4 / 3 for image in imgs]
    figure, axes = plt.subplots(
        1,
        len(imgs),
        squeeze=False,
        dpi=dpi,
        figsize=(HEIGHT * sum(shapes), HEIGHT),
        width_ratios=shapes,
    )
    for index, (axis, image) in enumerate(zip(axes[0], imgs, strict=True)):
        axis.imshow(to_numpy(image), cmap=cmaps)
        axis.set_axis_off()
        if titles:
            axis.set_title(titles[index])
    figure.tight_layout(pad=pad)
    return figure


def add_text(
    idx: int,
    text: str,
    pos: tuple[float, float] = (0.01, 0.99),
    fs: float = 15,
    color: str = "w",
    lcolor: str | None = "k",
    lwidth: float = 4,
    ha: str = "left",
    va: str = "top",
    axes: Sequence[Any] | None = None,
    **how: Any,
) -> Any:
    """Words on an image, at a place in parts of its width and height; lcolor: of their rim."""
    axis = _axes(axes)[idx]
    rim = [] if lcolor is None else [withStroke(linewidth=lwidth, foreground=lcolor)]
    look = {"fontsize": fs, "color": color, "ha": ha, "va": va, "path_effects": rim, "zorder": 5}
    return axis.text(*pos, text, transform=axis.transAxes, **(look | how))


def plot_heatmaps(
    heatmaps: Sequence[Array],
    vmin: float | None = None,
    vmax: float | None = None,
    cmap: str = "Spectral",
    a: float = 0.5,
    axes: Sequence[Any] | None = None,
    contours_every: float | None = None,
    colorbar: bool = False,
) -> list[Any]:
    """Numbers (H, W) as colours over images, with contours where they are wanted."""
    drawn: list[Any] = []
    for axis, values in zip(_axes(axes), map(to_numpy, heatmaps), strict=True):
        shown = axis.imshow(values, alpha=a, vmin=vmin, vmax=vmax, cmap=cmap)
        drawn.append(shown)
        if colorbar:
            drawn.append(plt.colorbar(shown, ax=axis))
        if contours_every is not None:
            low, high = shown.get_clim()
            levels = np.arange(np.ceil(low / contours_every), np.floor(high / contours_every) + 1)
            lines = axis.contour(values, levels=levels * contours_every, cmap=cmap)
            axis.clabel(lines, fmt="%d°", colors="white", fontsize=12)
            drawn.append(lines)
    return drawn


def plot_latitudes(
    latitude: Sequence[Array],
    is_radians: bool = True,
    vmin: float = -90,
    vmax: float = 90,
    cmap: str = "seismic",
    contours_every: float | None = 15,
    alpha: float = 0.4,
    axes: Sequence[Any] | None = None,
    **how: Any,
) -> list[Any]:
    """Latitudes (H, W) as colours and contours in degrees."""
    degrees = [np.rad2deg(to_numpy(one)) if is_radians else to_numpy(one) for one in latitude]
    return plot_heatmaps(degrees, vmin, vmax, cmap, alpha, axes, contours_every, **how)


def plot_confidences(
    confidence: Sequence[Array],
    as_log: bool = True,
    vmin: float = -4,
    vmax: float = 0,
    cmap: str = "turbo",
    alpha: float = 0.4,
    axes: Sequence[Any] | None = None,
    **how: Any,
) -> list[Any]:
    """Confidences (H, W) as colours; as_log: the logarithms to base 10."""
    values = [to_numpy(one) for one in confidence]
    if as_log:
        values = [np.log10(np.maximum(one, 1e-5)) for one in values]
    return plot_heatmaps(values, vmin, vmax, cmap, alpha, axes, **how)


def plot_vector_fields(
    vector_fields: Sequence[Array],
    cmap: str = "lime",
    subsample: int = 15,
    scale: float | None = None,
    lw: float | None = None,
    alphas: float | None = 0.8,
    axes: Sequence[Any] | None = None,
) -> list[Any]:
    """Vectors (2, H, W) as arrows. subsample: how many along the shorter side; scale: the length of
    a unit vector, in parts of that side; lw: the width of an arrow, likewise."""
    drawn = []
    for axis, field in zip(_axes(axes), map(to_numpy, vector_fields), strict=True):
        height, width = field.shape[1:]
        short = min(height, width)
        step = max(1, short // subsample)
        y, x = np.mgrid[step // 2 : height : step, step // 2 : width : step]
        unit = "width" if width <= height else "height"
        drawn.append(
            axis.quiver(
                *(x, y, *field[:, y, x]),
                angles="xy",
                scale_units=unit,
                units=unit,
                scale=subsample if scale is None else 1 / scale,
                width=0.1 / subsample if lw is None else lw,
                color=cmap,
                alpha=alphas,
                zorder=5,
            )
        )
    return drawn


def plot_perspective_fields(
    cameras: Sequence[PublishedCamera],
    gravities: Sequence[PublishedGravity],
    axes: Sequence[Any] | None = None,
) -> list[Any]:
    """What cameras would see of up and of the latitudes, over their images."""
    drawn: list[Any] = []
    for axis, camera, gravity in zip(_axes(axes), cameras, gravities, strict=True):
        up, latitude = get_perspective_field(camera, gravity)
        drawn += plot_vector_fields([up[0]], axes=[axis])
        drawn += plot_latitudes([latitude[0, 0]], axes=[axis])
    return drawn


def plot_horizon_lines(
    cameras: Sequence[PublishedCamera],
    gravities: Sequence[PublishedGravity],
    line_colors: str | list[str] = "orange",
    lw: float = 2,
    styles: str | list[str] = "solid",
    alpha: float = 1.0,
    ax: Any = None,
) -> None:
    """The horizon of each camera; ax: axes for each, or one for all."""
    axes = [plt.gca() if ax is None else ax] * len(cameras) if not isinstance(ax, list) else ax
    for index, (axis, camera, gravity) in enumerate(zip(axes, cameras, gravities, strict=True)):
        latitude = to_numpy(get_perspective_field(camera, gravity)[1])[0, 0]
        if latitude.min() < 0 < latitude.max():
            axis.contour(
                latitude,
                levels=[0],
                linewidths=lw,
                colors=line_colors if isinstance(line_colors, str) else line_colors[index],
                linestyles=styles if isinstance(styles, str) else styles[index],
                alpha=alpha,
            )


def save_plot(path: Any, **how: Any) -> None:
    """The current figure as a file, without margins."""
    plt.savefig(path, bbox_inches="tight", pad_inches=0, **how)


def _axes(axes: Sequence[Any] | None) -> Sequence[Any]:
    return plt.gcf().axes if axes is None else axes
