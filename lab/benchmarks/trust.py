"""How often answers are trusted, and how far off they then are: gravity and field of view.

    python lab/benchmarks/trust.py gather FOLDER PHOTOS.csv OUT.jsonl [--gravity GRAVITY.csv]
    python lab/benchmarks/trust.py fit ANSWERS.jsonl...
    python lab/benchmarks/trust.py report ANSWERS.jsonl... [--plot PNG]

``gather`` calibrates the photographs of a folder that a table names (image, roll_deg, pitch_deg and
vfov_deg as far as they are known; --gravity: a second table of them) with the default options; what
is in OUT.jsonl already is not asked again. Owners are in one of two halves for good. ``fit`` prints
``FAR_OFF_WEIGHTS`` of ``geocalib.result.trust`` for the photographs of the first half, and
``report``, for those of the second, which share of them the gates let pass, how far these are off,
what becomes of steep views, and the curve of coverage against error.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from scipy.optimize import minimize

from geocalib import Calibration, Calibrator
from geocalib.geometry.gravity import angle_between, from_roll_pitch
from geocalib.result.trust import FAR_OFF_DEG, chance_far_off, doubts, gravity_traits, judged

Record = dict[str, Any]
Floats = npt.NDArray[np.float64]

TRUTHS = ("roll_deg", "pitch_deg", "vfov_deg")
STILL = 0.015
"""How far from 1 the length of an accelerometer's reading is, of phones that were held still."""
STEEP_DEG = 45.0
"""Views beyond it were never learnt."""
RIDGE = 3.0
"""Pull of the slopes to 0, in inverse variances of the scaled traits."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)
    gathering = commands.add_parser("gather")
    gathering.add_argument("folder", type=Path)
    gathering.add_argument("table", type=Path)
    gathering.add_argument("out", type=Path)
    gathering.add_argument("--gravity", type=Path)
    gathering.add_argument("--every", type=int, default=1)
    gathering.set_defaults(run=lambda o: gather(o.folder, o.table, o.out, o.gravity, o.every))
    fitting = commands.add_parser("fit")
    fitting.add_argument("answers", type=Path, nargs="+")
    fitting.set_defaults(run=lambda o: fit(read(o.answers)))
    reporting = commands.add_parser("report")
    reporting.add_argument("answers", type=Path, nargs="+")
    reporting.add_argument("--plot", type=Path)
    reporting.set_defaults(run=lambda o: report(read(o.answers), o.plot))
    options = parser.parse_args()
    options.run(options)


def gather(folder: Path, table: Path, out: Path, gravity: Path | None, every: int) -> None:
    """Write one line per photograph that has an answer."""
    calibrator = Calibrator("lean")
    done = {json.loads(line)["image"] for line in _lines(out)}
    rows = {row["image"]: row for row in csv.DictReader(table.open())}
    if gravity is not None:
        for row in csv.DictReader(gravity.open()):
            rows[row["image"]] = {**rows.get(row["image"], {}), **row}
    with out.open("a") as file:
        for image, row in list(rows.items())[::every]:
            if image in done or not (folder / image).is_file():
                continue
            (answer,) = calibrator.calibrate([folder / image])
            if not isinstance(answer, Calibration):
                continue
            truth = {name: float(row[name]) for name in TRUTHS if row.get(name)}
            if row.get("trust") == "0" or abs(float(row.get("norm_g") or 1) - 1) > STILL:
                truth = {name: truth[name] for name in truth if name == "vfov_deg"}
            file.write(json.dumps({"image": image, "truth": truth, "answer": answer.to_dict()}))
            file.write("\n")
            file.flush()


@dataclass(frozen=True)
class Photo:
    """A photograph with its answer."""

    first: bool
    """Whether its owner is of the half that rules are chosen on."""
    answer: Calibration
    gravity_off: float | None
    """Degrees; None where nobody knows."""
    fov_off: float | None
    pitch_deg: float | None

    @classmethod
    def of(cls, record: Record) -> Photo:
        answer, truth = Calibration.from_dict(record["answer"]), record["truth"]
        owner = Path(record["image"]).name.split("__")[0]
        gravity_off = fov_off = None
        if "pitch_deg" in truth:
            down = from_roll_pitch(*np.radians([truth["roll_deg"], truth["pitch_deg"]]))
            off = angle_between(np.asarray(answer.gravity), np.asarray(down))
            gravity_off = math.degrees(float(off))
        if "vfov_deg" in truth:
            fov_off = abs(answer.vfov_deg - truth["vfov_deg"])
        first = zlib.crc32(owner.encode()) % 2 == 0
        return cls(first, answer, gravity_off, fov_off, truth.get("pitch_deg"))


def read(files: Sequence[Path]) -> list[Photo]:
    return [Photo.of(json.loads(line)) for file in files for line in _lines(file)]


def fit(photos: Sequence[Photo]) -> None:
    """Print the weights of the chance that gravity is far off."""
    some = [p for p in photos if p.first and p.gravity_off is not None]
    traits = np.array([gravity_traits(p.answer) for p in some])
    far = np.array([p.gravity_off or 0.0 for p in some]) > FAR_OFF_DEG
    weights = _logistic(traits, far)
    print(f"of {len(some)} photographs {far.mean():.0%} are off by more than {FAR_OFF_DEG:g}")
    print(f"FAR_OFF_WEIGHTS = ({', '.join(f'{value:.2f}' for value in weights)})")


def _logistic(traits: Floats, far: npt.NDArray[np.bool_]) -> Floats:
    """The constant and the weights of a logistic regression, those of scaled traits pulled to 0."""
    mean, scale = traits.mean(0), traits.std(0)
    columns = np.column_stack([np.ones(len(traits)), (traits - mean) / scale])

    def cost(weights: Floats) -> tuple[float, Floats]:
        raised = columns @ weights
        pull = RIDGE * np.array([0.0, *weights[1:]])
        value = np.logaddexp(0, raised).sum() - raised[far].sum() + 0.5 * pull @ weights
        return value, columns.T @ (1 / (1 + np.exp(-raised)) - far) + pull

    found = minimize(cost, np.zeros(columns.shape[1]), jac=True).x
    slopes = found[1:] / scale
    return np.array([found[0] - slopes @ mean, *slopes])


def report(photos: Sequence[Photo], plot: Path | None) -> None:
    """Print what the gates let pass of the second half, and draw the curves."""
    others = [replace(p, answer=judged(p.answer, doubts(p.answer))) for p in photos if not p.first]
    gravity = [p for p in others if p.gravity_off is not None]
    fov = [p for p in others if p.fov_off is not None]
    off = np.array([p.gravity_off or 0.0 for p in gravity])
    fov_off = np.array([p.fov_off or 0.0 for p in fov])
    trusted = np.array([p.answer.trusted_gravity for p in gravity])
    fov_trusted = np.array([p.answer.trusted_fov for p in fov])
    steep = np.array([abs(p.pitch_deg or 0.0) > STEEP_DEG for p in gravity])
    print(
        "| what | photographs | trusted | median of these | 90% within | off by > 10 "
        "| all: median | 90% within | off by > 10 |\n|---|---|---|---|---|---|---|---|---|"
    )
    for name, errors, gate in (
        ("gravity", off, trusted),
        ("gravity, views within 45 degrees of level", off[~steep], trusted[~steep]),
        ("gravity, steeper views", off[steep], trusted[steep]),
        ("field of view", fov_off, fov_trusted),
    ):
        shares = f"| {name} | {len(errors)} | {gate.mean():.0%} "
        print(f"{shares}| {_spread(errors[gate])} | {_spread(errors)} |")
    if plot is not None:
        chance = np.array([chance_far_off(p.answer) for p in gravity])
        share = np.array([p.answer.sigma.focal / p.answer.fy for p in fov])
        _draw(plot, [("gravity", chance, off, trusted), ("vFoV", share, fov_off, fov_trusted)])


def _spread(errors: Floats) -> str:
    if not len(errors):
        return " |  | "
    low, high = np.quantile(errors, (0.5, 0.9))
    return f"{low:.1f} | {high:.1f} | {(errors > 10).mean():.1%}"


Curve = tuple[str, Floats, Floats, npt.NDArray[np.bool_]]
"""What it is of; by how much each answer is doubted, how far it is off, and whether the gate lets
it pass."""


def _draw(out: Path, curves: Sequence[Curve]) -> None:
    """Coverage against error: answers are let in, the least doubted one first."""
    figure = Figure(figsize=(9, 3.6), layout="tight")
    for axes, (name, doubt, off, gate) in zip(figure.subplots(1, len(curves)), curves, strict=True):
        ordered = off[doubt.argsort(kind="stable")]
        counts = np.arange(len(ordered) // 10, len(ordered) + 1, 5)
        for share, style in ((0.5, "C0-"), (0.9, "C1-")):
            errors = [np.quantile(ordered[:count], share) for count in counts]
            axes.plot(100 * counts / len(ordered), errors, style, label=f"{share:.0%} within")
        axes.axvline(100 * gate.mean(), color="grey", ls=":", label="the gate")
        axes.set(xlabel="photographs let in, %", ylabel="degrees", title=name, ylim=(0, None))
        axes.grid(alpha=0.3)
        axes.legend()
    figure.savefig(out, dpi=110)


def _lines(path: Path) -> Iterator[str]:
    if path.exists():
        with path.open() as file:
            yield from file


if __name__ == "__main__":
    main()
