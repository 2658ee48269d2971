"""Network, lines alone and both on photographs with ground truth, and what lines cost:
``python lab/benchmarks/lines.py SET ... [--weights NAME] [--chosen-on SET] [--keep FOLDER]``.

A set is a folder or table as ``geocalib_lab.evaluation.datasets`` reads it. Each is shown whole and
in halves: constants were chosen on one, and the other was held out. --chosen-on: a set that belongs
to the first half as a whole; --held-out: to the second. --at-most: so many photographs of each set,
evenly spaced. --keep: a folder for what the network answered and which segments were found, which
another run with the same weights goes on from: neither depends on how lines are weighed. Both
together are then what ``geocalib.lines`` makes of them, as in a calibration.
"""

from __future__ import annotations

import argparse
import pickle
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from unittest.mock import patch

import numpy as np
import numpy.typing as npt

from geocalib import Calibration, Calibrator
from geocalib.cameras import get_model
from geocalib.geometry.segments import Segments
from geocalib.imaging import read_photo
from geocalib.lines.detect import SHORT_SIDE, detect
from geocalib.lines.refine import refine
from geocalib.lines.vanishing import TOO_FEW, calibrate_by_lines
from geocalib.pipeline import job
from geocalib.pipeline.fit import prefer_refined
from geocalib.result.calibration import Failure, Outcome
from geocalib_lab.evaluation.datasets import Sample, dataset_name, read_dataset
from geocalib_lab.evaluation.halves import Half, half_of
from geocalib_lab.evaluation.report import measure
from geocalib_lab.evaluation.run import default_model, evaluate
from geocalib_lab.evaluation.uncertainty import ONE_SIGMA, deviations

METHODS = ("network", "lines", "both")
ANGLES = ("roll", "pitch", "vfov")
TOLERANCE = 1.05
"""Largest ratio of the median of both together to the better one's."""
DRAWS = 2000
"""Bootstrap samples of the photos of a set; the first is the set itself."""
SHARP = ("lines", "both")
SHARES = (0.25, 0.5, 0.75, 0.9)
QUANTILES = " / ".join(f"{share:.0%}" for share in SHARES)
LONG, SEVERAL, SECTORS = 0.08, 5, 12
"""Long edges: least length in diagonals, how many of a direction, and number of directions."""

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Row:
    """One photograph and the answers to it."""

    sample: Sample
    half: Half
    model: str
    answers: dict[str, Outcome]

    @cached_property
    def errors(self) -> dict[str, dict[str, float]]:
        """By method and angle: degrees, infinite without an answer, NaN without a truth."""
        return {m: measure(self.sample, answer, self.model) for m, answer in self.answers.items()}

    @property
    def verdict(self) -> str:
        answer = self.answers["both"]
        lines = answer.lines if isinstance(answer, Calibration) else None
        return "no answer" if lines is None else str(lines.verdict)

    @property
    def used(self) -> bool:
        return self.verdict.startswith("used")

    @cached_property
    def has_edges(self) -> bool:
        """Whether there are several long straight edges in two directions of the picture."""
        answer = self.answers["both"]
        if not isinstance(answer, Calibration) or answer.lines is None:
            return False
        traces = answer.lines.traces
        assert traces is not None
        long = traces.segments.length > LONG * float(np.hypot(answer.width, answer.height))
        along = traces.segments.ends[long, 1] - traces.segments.ends[long, 0]
        angle = np.arctan2(along[:, 1], along[:, 0]) % np.pi
        counts = np.bincount((angle / np.pi * SECTORS).astype(int) % SECTORS, minlength=SECTORS)
        sectors = np.flatnonzero(counts >= SEVERAL)
        apart = np.abs(sectors[:, None] - sectors)
        return bool((np.minimum(apart, SECTORS - apart) > 1).any())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", type=Path, nargs="*")
    parser.add_argument("--chosen-on", type=Path, action="append", default=[])
    parser.add_argument("--held-out", type=Path, action="append", default=[])
    parser.add_argument("--at-most", type=int)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--weights", default="lean")
    options = parser.parse_args()
    calibrator = Calibrator(options.weights)
    found: dict[str, list[Row]] = {}
    whole = {None: options.sets, Half.CHOSEN_ON: options.chosen_on, Half.HELD_OUT: options.held_out}
    for half, paths in whole.items():
        for path in paths:
            name, model, seen = seen_in(path, calibrator, options.at_most, options.keep)
            found[name] = [row_of(*each, model, half) for each in seen]
            print(f"{name}: {len(seen)} photographs", flush=True)
    names = {dataset_name(path) for path in options.sets}
    for pool, own in {"photographs": names, "crops": found.keys() - names}.items():
        if len(own) > 1:
            found[pool] = [row for name, rows in found.items() if name in own for row in rows]
    show(found)
    first = next(iter(found.values()))[:10]
    print(f"\n{cost(calibrator, [row.sample for row in first])}")


def seen_in(
    path: Path, calibrator: Calibrator, most: int | None, keep: Path | None
) -> tuple[str, str, list[Seen]]:
    """The name of a set, its camera model, and its photographs, so many at most, as they were
    looked at."""
    samples = _spaced(read_dataset(path), most)
    name, model = dataset_name(path), default_model(samples)
    # By the weights themselves, as others of that name saw something else.
    weights = (calibrator.card.sha256 or calibrator.card.name)[:12]
    file = keep and keep / f"{weights}-{name}-{len(samples)}.pickle"
    return name, model, _kept(file, partial(look, calibrator, samples, model))


def _spaced(samples: list[Sample], most: int | None) -> list[Sample]:
    """So many of them at most, evenly spaced."""
    if most is None or len(samples) <= most:
        return samples
    return [samples[i] for i in np.linspace(0, len(samples) - 1, most).round().astype(int)]


Seen = tuple[Sample, Outcome, Outcome, Segments]
"""A photograph, the network's answer to it with learnt sigmas and with those of the weights' card,
against which lines are weighed, and its straight segments."""


def look(calibrator: Calibrator, samples: Sequence[Sample], model: str) -> list[Seen]:
    """At photographs, once for all methods."""
    outcomes = evaluate(calibrator, samples, model).outcomes
    with patch.object(job, "find_sigmas", lambda sha256: None):
        by_card = evaluate(calibrator, samples, model).outcomes
    segments = [detect(read_photo(sample.image, SHORT_SIDE)) for sample in samples]
    return list(zip(samples, outcomes, by_card, segments, strict=True))


def _kept(file: Path | None, find: Callable[[], list[Seen]]) -> list[Seen]:
    """What a file holds, or what is found and then written there."""
    if file is not None and file.exists():
        before: list[Seen] = pickle.loads(file.read_bytes())
        return before
    found = find()
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(pickle.dumps(found))
    return found


def row_of(
    sample: Sample,
    network: Outcome,
    by_card: Outcome,
    segments: Segments,
    model: str,
    half: Half | None = None,
) -> Row:
    """A photograph and all answers to it."""
    both = by_card
    if isinstance(by_card, Calibration):
        (both,) = refine([by_card], [segments])
        both = prefer_refined(network, both)
    assert network.width is not None
    assert network.height is not None
    size = network.width, network.height
    lines = calibrate_by_lines(segments, size, get_model(model)) or Failure(None, *size, TOO_FEW)
    answers = dict(zip(METHODS, (network, lines, both), strict=True))
    return Row(sample, half or half_of(sample.image), model, answers)


def show(found: dict[str, list[Row]]) -> None:
    """Tables of what each method gives, and of what became of the lines."""
    print("\nMedian error of roll / pitch / vFoV, degrees\n")
    used = [f"used: {method}" for method in METHODS]
    others = [f"not used: {method}" for method in METHODS[:2]]
    header("set", "half", "n", *METHODS, "worse", "used", *used, *others)
    for name, rows in found.items():
        for half in (None, *Half):
            some = [row for row in rows if half in (None, row.half)]
            if some and not (half and len(some) == len(rows)):
                line(name, half or "all", *_medians(some))
    print(f"\n{100 * ONE_SIGMA:.0f}% quantile of |error| / sigma of both: roll, pitch, log f\n")
    header("set", "all", *Half, "used", "not used")
    for name, rows in found.items():
        parts = [rows, *([row for row in rows if row.half is half] for half in Half)]
        parts += [[row for row in rows if row.used is used] for used in (True, False)]
        line(name, *map(normalised, parts))
    print(
        "\nLines alone and both where both use lines and lines alone answer: quantiles, degrees\n"
    )
    header("set", "angle", "n", *(f"{method}: {QUANTILES}" for method in SHARP), "both nearer")
    for name, rows in found.items():
        for angle in ANGLES:
            if cells := _photo_by_photo(rows, angle):
                line(name, angle, *cells)
    print("\nWhat became of the lines\n")
    header("set", "verdict", "photos")
    for name, rows in found.items():
        for verdict, count in Counter(row.verdict for row in rows).most_common():
            line(name, verdict, f"{count} of {len(rows)}")
    every = {row.sample.image: row for rows in found.values() for row in rows}
    edges = [row for row in every.values() if row.has_edges]
    left = sum(not row.used for row in edges)
    print(f"\n{left} of {len(edges)} photos with long edges in two directions do not use them")


def _medians(rows: Sequence[Row]) -> Iterable[str]:
    """Cells of one line of the first table."""
    medians = {method: [median(rows, method, angle) for angle in ANGLES] for method in METHODS}
    worse = [cell for angle in ANGLES if (cell := _worse(rows, angle))]
    used, others = ([row for row in rows if row.used is used] for used in (True, False))
    return (
        str(len(rows)),
        *(joined(values) for values in medians.values()),
        ", ".join(worse) or "no",
        str(len(used)),
        *(joined([median(used, m, angle) for angle in ANGLES]) for m in METHODS),
        # There both are the network.
        *(joined([median(others, m, angle) for angle in ANGLES]) for m in METHODS[:2]),
    )


def _worse(rows: Sequence[Row], angle: str) -> str:
    """How many times the median of the better one both together have, if that is more than it may
    be, and between which values chance would leave it: photos drawn again and again."""
    errors = {m: np.array([row.errors[m][angle] for row in rows]) for m in METHODS}
    known = ~np.isnan(errors["both"])
    draws = np.random.default_rng(0).integers(known.sum(), size=(DRAWS, known.sum()))
    draws[0] = np.arange(known.sum())
    if not draws.size:
        return ""
    medians = {m: np.median(errors[m][known][draws], axis=1) for m in METHODS}
    ratio = medians["both"] / np.fmin(medians["network"], medians["lines"])
    low, high = np.quantile(ratio, (0.05, 0.95))
    return f"{angle} {ratio[0]:.2f} ({low:.2f} to {high:.2f})" if ratio[0] > TOLERANCE else ""


def _photo_by_photo(rows: Sequence[Row], angle: str) -> list[str]:
    """How lines alone and both compare in photos that both use, and in which share of them both are
    nearer to the truth."""
    errors = np.array([[row.errors[m][angle] for m in SHARP] for row in rows if row.used])
    errors = errors[np.isfinite(errors).all(1)] if len(errors) else errors
    if not len(errors):
        return []
    lines, both = errors.T
    cells = [joined(np.quantile(column, SHARES).tolist()) for column in (lines, both)]
    return [str(len(errors)), *cells, f"{np.mean(both < lines):.0%}"]


def median(rows: Sequence[Row], method: str, angle: str) -> float:
    errors = np.array([row.errors[method][angle] for row in rows])
    errors = errors[~np.isnan(errors)]
    return float(np.median(errors)) if len(errors) else np.nan


def joined(values: Sequence[float]) -> str:
    words = {True: "no answer", False: "-"}
    return " / ".join(
        f"{value:.2f}" if np.isfinite(value) else words[bool(np.isinf(value))] for value in values
    )


def normalised(rows: Sequence[Row]) -> str:
    """Of roll, pitch and log f."""
    cells = []
    truths = [row.sample for row in rows]
    rolls = [replace(sample, pitch_deg=None) for sample in truths]
    pitches = [replace(sample, roll_deg=None) for sample in truths]
    for some, name in ((rolls, "gravity"), (pitches, "gravity"), (truths, "focal")):
        part = deviations(some, [row.answers["both"] for row in rows])[name]
        ratios = np.abs(part.normalised)
        cells.append(f"{np.quantile(ratios, ONE_SIGMA):.2f}" if len(ratios) else "-")
    return ", ".join(cells)


def cost(calibrator: Calibrator, samples: Sequence[Sample]) -> str:
    """Milliseconds per megapixel of detection and of refinement."""
    detection = refinement = megapixels = 0.0
    for sample in samples:
        answer = calibrator.calibrate(sample.image, "pinhole", lines="off", exif=False)
        photo = read_photo(sample.image, SHORT_SIDE)
        start = time.perf_counter()
        segments = detect(photo)
        middle = time.perf_counter()
        refine([answer], [segments])
        detection += middle - start
        refinement += time.perf_counter() - middle
        megapixels += photo.pixels.shape[0] * photo.pixels.shape[1] / 1e6
    each = [f"{1000 * seconds / megapixels:.0f}" for seconds in (detection, refinement)]
    return f"detection {each[0]}, refinement {each[1]} ms per megapixel"


def line(*cells: object) -> None:
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def header(*cells: str) -> None:
    line(*cells)
    line(*["---"] * len(cells))


if __name__ == "__main__":
    main()
