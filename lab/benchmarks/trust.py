"""How often answers are trusted, and how far off they then are: gravity, field of view and lens.

    python lab/benchmarks/trust.py gather FOLDER PHOTOS.csv OUT.jsonl [--every N]
    python lab/benchmarks/trust.py report ANSWERS.jsonl... [--plot PNG]

``gather`` calibrates the photographs of a folder that a table names (image, roll_deg, pitch_deg and
vfov_deg as far as they are known) with the default options, and once more without lines. ``report``
prints for each quantity which share of the photographs the gates of ``geocalib.result.trust`` let
pass and how far these are off, and the curve of coverage against error.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from geocalib import Calibration, Calibrator
from geocalib.geometry.gravity import angle_between, from_roll_pitch

Record = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)
    gathering = commands.add_parser("gather")
    gathering.add_argument("folder", type=Path)
    gathering.add_argument("table", type=Path)
    gathering.add_argument("out", type=Path)
    gathering.add_argument("--every", type=int, default=1)
    gathering.add_argument("--split", default="train")
    gathering.set_defaults(run=lambda o: gather(o.folder, o.table, o.out, o.every, o.split))
    reporting = commands.add_parser("report")
    reporting.add_argument("answers", type=Path, nargs="+")
    reporting.add_argument("--plot", type=Path)
    reporting.set_defaults(run=lambda o: report(o.answers, o.plot))
    options = parser.parse_args()
    options.run(options)


def gather(folder: Path, table: Path, out: Path, every: int, split: str) -> None:
    """Write one line per photograph; those that are there already are not asked again."""
    calibrator = Calibrator("lean")
    done = {json.loads(line)["image"] for line in _lines(out)}
    rows = [row for row in csv.DictReader(table.open()) if row["image"].startswith(split)]
    with out.open("a") as file:
        for row in rows[::every]:
            if row["image"] in done:
                continue
            outputs = calibrator.predict([calibrator.prepare(str(folder / row["image"]))])
            both = [calibrator.fit(outputs, lines="off")[0], calibrator.fit(outputs)[0]]
            if not all(isinstance(each, Calibration) for each in both):
                continue
            truth = {name: float(row[name]) for name in TRUTHS if row.get(name)}
            sure = abs(float(row.get("norm_g") or 1) - 1) < 0.015 and row.get("trust", "1") == "1"
            record = {
                "image": row["image"],
                "truth": truth,
                "good_gravity": sure and "roll_deg" in truth,
                "network": both[0].to_dict(),
                "answer": both[1].to_dict(),
            }
            file.write(json.dumps(record) + "\n")
            file.flush()


TRUTHS = ("roll_deg", "pitch_deg", "vfov_deg")


def report(answers: Sequence[Path], plot: Path | None) -> None:
    """Print for each quantity the share that is trusted, and how far off those are."""
    records = [json.loads(line) for path in answers for line in _lines(path)]
    for name, unit in QUANTITIES.items():
        rows = [(e, t) for r in records for e, t in [_measured(r, name)] if e is not None]
        errors, trusted = (np.array(column) for column in zip(*rows, strict=True))
        kept = errors[trusted.astype(bool)]
        low, high = np.quantile(kept, (0.5, 0.9))
        print(
            f"{name}: {len(errors)} photographs, {len(kept) / len(errors):.0%} trusted: "
            f"median {low:.2f}, 90% within {high:.2f} {unit}, worst {kept.max():.1f}; "
            f"all: median {np.median(errors):.2f}, 90% within {np.quantile(errors, 0.9):.2f}"
        )


QUANTITIES = {"gravity": "degrees", "fov": "degrees"}


def _measured(record: Record, name: str) -> tuple[float | None, bool]:
    """How far an answer is off, None where nobody knows, and whether it is trusted."""
    answer, truth = Calibration.from_dict(record["answer"]), record["truth"]
    if name == "fov":
        known = truth.get("vfov_deg")
        return (None if known is None else abs(answer.vfov_deg - known)), answer.trusted
    if not record["good_gravity"]:
        return None, False
    down = from_roll_pitch(*np.radians([truth["roll_deg"], truth["pitch_deg"]]))
    off = float(angle_between(np.asarray(answer.gravity), np.asarray(down)))
    return math.degrees(off), answer.trusted


def _lines(path: Path) -> Iterator[str]:
    if path.exists():
        yield from path.open()


if __name__ == "__main__":
    main()
