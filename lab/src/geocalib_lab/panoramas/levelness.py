"""Whether a panorama is level, by the gravity that the network finds in its views.

A network's errors differ from view to view; a tilt of the panorama is what they have in common.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from geocalib.errors import PanoramaError
from geocalib.formats.cells import escape, unescape, write_rows
from geocalib.geometry.gravity import angle_between, difference, move, tangent_basis

Verdict = Literal["level", "tilted", "unclear"]

DOWN = (0.0, 1.0, 0.0)
"""In the frame of a level panorama."""

FEWEST = 4
"""The fewest views that a tilt is estimated from."""

WILD_DEG = 6.0
"""Spread of views that agree on nothing."""

LEAST_TILT_DEG = 0.5
"""Tilts below this are not worth a correction."""

SURE = 3.0
"""Sigmas that a tilt must exceed to be believed."""

OUTLIER = 3.0
"""Spreads beyond which a view is left out."""

MEDIAN_OF_RAYLEIGH = math.sqrt(2 * math.log(2))
"""Median length of a normal 2-vector whose components have sigma 1."""

ROUNDS = 60
"""Rounds of the search for the geometric median."""

ORIGIN = ("request", "photo")
"""Further columns of JSON: what was requested of which file, as ``pipeline.journal`` has it."""

Origin = Mapping[str, Any]
"""Values by the names of ``ORIGIN``."""

COLUMNS = (
    *("file", "tilt_deg", "sigma_deg", "rotation_x_deg", "rotation_z_deg"),
    *("spread_deg", "views", "verdict"),
)


@dataclass(frozen=True)
class Level:
    """How a panorama stands: the rotation about a horizontal axis that tilts it."""

    rotation_x_deg: float
    """Of the rotation vector from the level world to the panorama; its y is 0."""
    rotation_z_deg: float
    spread_deg: float
    """One sigma of the down of a single view, along either axis, outliers aside."""
    sigma_deg: float
    """One sigma of the tilt."""
    views: int
    """How many of them agree."""

    @property
    def tilt_deg(self) -> float:
        return math.hypot(self.rotation_x_deg, self.rotation_z_deg)

    @property
    def verdict(self) -> Verdict:
        """Tilted if the tilt is larger than it could be by chance; unclear if views disagree."""
        if self.spread_deg > WILD_DEG:
            return "unclear"
        sure = self.tilt_deg > max(LEAST_TILT_DEG, SURE * self.sigma_deg)
        return "tilted" if sure else "level"

    @property
    def panorama_from_world(self) -> Tensor:
        """(3, 3) float64 rotation, for ``PanoramaBank.levelled``."""
        x, z = math.radians(self.rotation_x_deg), math.radians(self.rotation_z_deg)
        cross = torch.tensor([[0.0, -z, 0.0], [z, 0.0, -x], [0.0, x, 0.0]], dtype=torch.float64)
        rotation: Tensor = torch.linalg.matrix_exp(cross)
        return rotation


def estimate_level(down: Tensor) -> Level:
    """The common tilt of views whose gravities point along (N, 3) in the panorama's frame.

    Robust: the geometric median on the sphere, and from there the mean without outliers, of
    which there may be almost half. The views should look all around: errors that a network makes
    in every view alike, such as of pitch, then cancel.
    """
    if down.dim() != 2 or down.shape[1] != 3 or len(down) < FEWEST:
        raise PanoramaError(
            f"a tilt needs {FEWEST} or more gravities (N, 3), got {tuple(down.shape)}"
        )
    if not bool(torch.isfinite(down).all()):
        raise PanoramaError("a gravity is not finite; leave out views without an answer")
    down = down.detach().to("cpu", torch.float64)
    down = down / torch.linalg.vector_norm(down, dim=1, keepdim=True)
    centre = _geometric_median(down)
    away = angle_between(centre.expand_as(down), down)
    spread = away.median() / MEDIAN_OF_RAYLEIGH
    # The offset keeps views that agree to the last digit.
    agreeing = away <= OUTLIER * spread + 1e-9
    basis = tangent_basis(centre)
    centre = move(centre, difference(centre, down[agreeing], basis).mean(0), basis)
    views = int(agreeing.sum())
    x, y, z = centre.tolist()
    # The shortest rotation from down to there has the axis down x there = (z, 0, -x).
    sine = math.hypot(x, z)
    scale = math.degrees(math.atan2(sine, y)) / sine if sine else 0.0
    return Level(
        rotation_x_deg=scale * z,
        rotation_z_deg=-scale * x,
        spread_deg=math.degrees(spread.item()),
        sigma_deg=math.degrees(spread.item() / math.sqrt(views)),
        views=views,
    )


def _geometric_median(down: Tensor) -> Tensor:
    """(3,) the direction with the least sum of angles to (N, 3), by Weiszfeld's iteration."""
    centre = down.median(0).values
    length = torch.linalg.vector_norm(centre)
    centre = centre / length if length > 0.1 else down.new_tensor(DOWN)
    # In NumPy, which is sooner done with few numbers.
    rows, point = down.numpy(), centre.numpy()
    for _ in range(ROUNDS):
        basis = tangent_basis(point)
        steps = difference(point, rows, basis)
        weight = 1 / np.maximum(np.linalg.norm(steps, axis=1), 1e-9)
        point = move(point, (weight[:, None] * steps).sum(0) / weight.sum(), basis)
    return torch.from_numpy(point)


def write_levels(
    levels: Mapping[str, Level], file: Path, origins: Mapping[str, Origin] | None = None
) -> None:
    """A table with a line for each file of a panorama.

    origins: of some of the files, as ``read_origins`` gives them back.
    """
    origin_columns = () if origins is None else ORIGIN
    rows: list[list[object]] = [[*COLUMNS, *origin_columns]]
    for name, level in levels.items():
        numbers = (getattr(level, column) for column in COLUMNS[1:-2])
        origin = (origins or {}).get(name)
        values = (f"{number:.4f}" for number in numbers)
        more = ("" if origin is None else json.dumps(origin[key]) for key in origin_columns)
        rows.append([escape(name), *values, level.views, level.verdict, *more])
    write_rows(file, rows)


def read_levels(file: Path) -> dict[str, Level]:
    """What ``write_levels`` has written, to the digits that are there."""
    levels = {}
    try:
        with file.open(newline="", encoding="utf-8", errors="surrogateescape") as stream:
            for row in csv.DictReader(stream):
                levels[unescape(row["file"])] = Level(
                    rotation_x_deg=float(row["rotation_x_deg"]),
                    rotation_z_deg=float(row["rotation_z_deg"]),
                    spread_deg=float(row["spread_deg"]),
                    sigma_deg=float(row["sigma_deg"]),
                    views=int(row["views"]),
                )
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise PanoramaError(f"{file} is no table of levels: {error!r}") from error
    return levels


def read_origins(file: Path) -> dict[str, Origin]:
    """What was requested about each panorama of a table, where it says so."""
    try:
        with file.open(newline="", encoding="utf-8", errors="surrogateescape") as stream:
            return {
                unescape(row["file"]): {key: json.loads(row.get(key) or "null") for key in ORIGIN}
                for row in csv.DictReader(stream)
            }
    except ValueError as error:
        raise PanoramaError(f"{file} is no table of levels: {error!r}") from error


def is_table(file: Path) -> bool:
    """Whether a file begins as ours do."""
    start = ",".join(COLUMNS).encode()
    with file.open("rb") as stream:
        return stream.read(len(start)) == start
