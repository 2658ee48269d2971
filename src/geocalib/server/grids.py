"""Fields as JSON: a coarse grid of numbers to draw, and all of them to be sent back for a refit."""

from __future__ import annotations

import base64
import math
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt

from geocalib.arrays import to_numpy
from geocalib.cameras.camera import Window
from geocalib.geometry.fields import Fields
from geocalib.imaging import Metadata
from geocalib.pipeline.predict import NetworkOutput
from geocalib.priors.enabled import File
from geocalib.result.evidence import CLUTTER, Traces
from geocalib.server.limits import RefusedError
from geocalib.server.requests import SentFields

COLUMNS = 32
"""Most columns of the grid; its rows follow."""
DIGITS = 4

Floats = npt.NDArray[np.float64]


def grid_of(output: NetworkOutput, traces: Traces | None) -> dict[str, Any]:
    """The fields at the middles of cells, in pixels of the photo, and its lines.

    Directions and latitudes are means by confidence over a cell, confidences plain ones.
    """
    up, latitude, up_confidence, latitude_confidence = (
        np.asarray(to_numpy(plane), np.float64)[0]
        for plane in (
            output.fields.up,
            output.fields.latitude,
            output.fields.up_confidence,
            output.fields.latitude_confidence,
        )
    )
    width, height = output.fields.size
    side = max(1, math.ceil(width / COLUMNS))
    columns, rows = width // side, height // side
    x_step, y_step = side * output.view.width / width, side * output.view.height / height

    def pooled(values: Floats) -> Floats:
        """(rows, columns) means of (h, w)."""
        cells = values[: rows * side, : columns * side].reshape(rows, side, columns, side)
        return cells.mean((1, 3))

    x, y = (pooled(part * up_confidence) for part in up)
    length = np.maximum(np.hypot(x, y), np.finfo(float).tiny)
    weight = np.maximum(pooled(latitude_confidence), np.finfo(float).tiny)
    mean_latitude = pooled(latitude[0] * latitude_confidence) / weight
    return {
        "width": output.file.size[0],
        "height": output.file.size[1],
        "columns": columns,
        "rows": rows,
        "x": _plain(output.view.left + x_step * (0.5 + np.arange(columns))),
        "y": _plain(output.view.top + y_step * (0.5 + np.arange(rows))),
        "up_x": _plain(x / length),
        "up_y": _plain(y / length),
        "latitude_deg": _plain(np.degrees(mean_latitude)),
        "up_confidence": _plain(pooled(up_confidence)),
        "latitude_confidence": _plain(pooled(latitude_confidence)),
        "segments": _segments(output, traces),
    }


def _segments(output: NetworkOutput, traces: Traces | None) -> list[dict[str, Any]]:
    """Both ends of each, in pixels of the photo, and what it was taken for; of level ones also
    which heading they share, counted from 1."""
    if traces is None:
        ends = [] if output.lines is None else _plain(np.asarray(output.lines.ends))
        return [{"ends": each, "kind": "unused"} for each in ends]
    headings = count(1)
    kinds: list[dict[str, Any]] = [
        {"kind": "vertical"} if vertical else {"kind": "level", "heading": next(headings)}
        for vertical in traces.vertical.tolist()
    ]
    ends = _plain(np.asarray(traces.segments.ends))
    return [
        {"ends": each, **({"kind": "unused"} if kind == CLUTTER else kinds[kind])}
        for each, kind in zip(ends, traces.kind.tolist(), strict=True)
    ]


def _plain(values: npt.NDArray[Any]) -> list[Any]:
    rounded: list[Any] = np.round(np.asarray(values, np.float64), DIGITS).tolist()
    return rounded


def whole_of(output: NetworkOutput) -> dict[str, Any]:
    """All of the fields, as ``SentFields`` takes them; half as many bytes as they have here."""

    def packed(values: Any) -> str:
        return base64.b64encode(np.asarray(to_numpy(values), np.float16).tobytes()).decode("ascii")

    fields, view = output.fields, output.view
    return {
        "width": output.file.size[0],
        "height": output.file.size[1],
        "view": [view.left, view.top, view.width, view.height],
        "columns": fields.size[0],
        "rows": fields.size[1],
        "dtype": "float16",
        "up": packed(fields.up),
        "latitude": packed(fields.latitude),
        "up_confidence": packed(fields.up_confidence),
        "latitude_confidence": packed(fields.latitude_confidence),
    }


def output_of(sent: SentFields) -> NetworkOutput:
    """What a client says that a network saw: without lines, and without EXIF."""
    size = (sent.rows, sent.columns)

    def plane(name: str, *shape: int) -> Any:
        data: bytes = getattr(sent, name)
        wanted = math.prod((*shape, *size)) * np.dtype(sent.dtype).itemsize
        if len(data) != wanted:
            raise RefusedError(
                422, f"fields.{name}: {len(data)} bytes, but the size asks for {wanted}"
            )
        return np.frombuffer(data, sent.dtype).astype(np.float32).reshape(1, *shape, *size)

    fields = Fields(
        plane("up", 2), plane("latitude", 1), plane("up_confidence"), plane("latitude_confidence")
    )
    file = File(None, "image", (sent.width, sent.height), Metadata())
    view = Window(0, 0, sent.width, sent.height) if sent.view is None else Window(*sent.view)
    return NetworkOutput(file, view, fields, None, (), None)
