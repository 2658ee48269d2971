"""The straight lines of a photo, in the colours of the directions that they follow."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from geocalib.cameras import Camera
from geocalib.overlay.draw import Array, array
from geocalib.result.evidence import CLUTTER, Traces

VERTICAL = "#00a5ff"
LEVEL = ("#ff6d00", "#00b34a", "#9c27b0")
"""One for each level direction."""
ASTRAY = "#ffffff"
"""Colour of segments that follow no direction."""


def colours(lines: Traces) -> list[str]:
    """The colour of each direction."""
    level = iter(LEVEL)
    return [VERTICAL if vertical else next(level) for vertical in lines.vertical.tolist()]


def draw_lines(axes: Axes, lines: Traces, camera: Camera, scale: float) -> None:
    """Draw segments, and where their directions vanish.

    camera: of the picture that is drawn on, scale times as large as the original.
    """
    ends, kind = scale * array(lines.segments.ends), lines.kind
    _draw(axes, ends[kind == CLUTTER], ASTRAY, 0.8, 0.35)
    for index, (direction, colour) in enumerate(zip(lines.directions, colours(lines), strict=True)):
        _draw(axes, ends[kind == index], colour, 2.0, 0.9)
        both = np.stack([direction, -direction])[None]
        points, valid = camera.project(both)
        inside = valid[0] & ((points[0] > 0) & (points[0] < camera.size[0])).all(-1)
        for x, y in array(points[0][inside]):
            axes.plot(x, y, "o", ms=12, mfc="none", mec="white", mew=4.5, zorder=6)
            axes.plot(x, y, "o", ms=12, mfc="none", mec=colour, mew=2.5, zorder=6.1)


def _draw(axes: Axes, ends: Array, colour: str, width: float, alpha: float) -> None:
    axes.add_collection(
        LineCollection(list(ends), colors=colour, linewidths=width, alpha=alpha, zorder=1.5)
    )
