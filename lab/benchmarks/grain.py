"""How much of the errors with lines is chance: the same photographs with a little grain.

python lab/benchmarks/grain.py SET ... [--draws 4] [--at-most 240] [--keep FOLDER]

Noise of half a grey level, which nobody sees, is added before straight segments are looked for,
several times (the first time none). The network sees the photographs as they are. Medians of lines
alone and of both together, from the least to the most of the draws. Sets and --keep as of
``lines.py``.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt

from geocalib import Calibrator
from geocalib.geometry.segments import Segments
from geocalib.imaging import read_photo
from geocalib.lines.detect import SHORT_SIDE, detect
from lines import ANGLES, Row, header, joined, line, median, normalised, row_of, seen_in

Array = npt.NDArray[np.float64]

GRAIN = 0.6
"""Grey levels, one sigma."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", type=Path, nargs="+")
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--at-most", type=int)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    calibrator = Calibrator("lean")
    found: dict[str, list[list[Row]]] = {}
    for path in options.sets:
        name, model, seen = seen_in(path, calibrator, options.at_most, options.keep)
        found[name] = [
            [
                row_of(
                    sample, *answers, segments if not draw else grainy(sample.image, draw), model
                )
                for sample, *answers, segments in seen
            ]
            for draw in range(options.draws)
        ]
        print(f"{name}: {len(seen)} photographs, {options.draws} draws", flush=True)
    if len(found) > 1:
        found["all"] = [
            list(chain.from_iterable(rows)) for rows in zip(*found.values(), strict=True)
        ]
    show(found)


def grainy(image: Path, seed: int) -> Segments:
    """The segments of a photograph with noise."""
    photo = read_photo(image, SHORT_SIDE)
    noise = np.random.default_rng(seed).normal(0, GRAIN, photo.pixels.shape[:2])
    pixels = np.clip(np.round(photo.pixels + noise[..., None]), 0, 255).astype(np.uint8)
    return detect(replace(photo, pixels=pixels))


def show(found: dict[str, list[list[Row]]]) -> None:
    """The tables."""
    print(
        "\nMedian error of roll / pitch / vFoV, degrees, from the least to the most of the draws\n"
    )
    header("set", "n", "network", "lines", "both", "both by the better one")
    for name, draws in found.items():
        cells = {m: _medians(draws, m) for m in ("network", "lines", "both")}
        better = np.fmin(cells["network"], cells["lines"])
        every = (cells["lines"], cells["both"], cells["both"] / better)
        first = joined(cells["network"][0].tolist())
        line(name, len(draws[0]), first, *(_ranges(values) for values in every))
    print("\nWith long edges in two directions, and of these without lines; errors in sigmas\n")
    header("set", "draw", "with edges", "without lines", "roll, pitch, log f")
    for name, draws in found.items():
        for number, rows in enumerate(draws):
            edges = [row for row in rows if row.has_edges]
            left = sum(not row.used for row in edges)
            line(name, number, len(edges), left, normalised(rows))


def _medians(draws: Sequence[Sequence[Row]], method: str) -> Array:
    """(draws, angles)."""
    return np.array([[median(rows, method, angle) for angle in ANGLES] for rows in draws])


def _ranges(values: Array) -> str:
    """Of each angle."""
    return " / ".join(map(_range, values.min(0), values.max(0)))


def _range(low: float, high: float) -> str:
    if np.isnan(low):
        return "-"
    return f"{low:.2f} to {high:.2f}" if np.isfinite(high) else "no answer"


if __name__ == "__main__":
    main()
