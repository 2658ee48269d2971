"""How far the two engines agree on the pictures of folders, as docs/speed.md has it.

python lab/benchmarks/engines.py FOLDER [FOLDER ...] --count 200

Beside it, as a measure: how far torch agrees with itself where it splits its sums among another
number of threads.
"""

from __future__ import annotations

import argparse
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import torch

from geocalib import Calibration, Calibrator
from geocalib.files.image_files import IMAGE_SUFFIXES

ANGLES = ("roll_deg", "pitch_deg", "vfov_deg")
OTHERS = ("onnx", "torch, two threads")


def pictures(folder: Path, count: int) -> list[Path]:
    """So many of a folder, from its beginning to its end."""
    found = sorted(path for path in folder.iterdir() if path.suffix.lower() in IMAGE_SUFFIXES)
    return [found[i * len(found) // count] for i in range(min(count, len(found)))]


def answers(calibrators: Sequence[Calibrator], path: Path) -> list[Calibration]:
    """Of torch with one thread, of onnx, and of torch with two threads."""
    found = []
    for calibrator, threads in zip(calibrators, (1, 1, 2), strict=True):
        torch.set_num_threads(threads)
        found.append(calibrator.calibrate(path, lines="off", keep_fields=True))
    return found


def compare(one: Calibration, two: Calibration) -> dict[str, float]:
    """Differences by name: of the fields, of the answer, in sigmas, and of what is said of it."""
    assert one.fields is not None
    assert two.fields is not None
    found = {}
    for field in fields(one.fields):
        a, b = (getattr(seen.fields, field.name) for seen in (one, two))
        found[f"field {field.name}"] = float(abs(a - b).max())
    for name in ANGLES:
        found[name] = abs(getattr(one, name) - getattr(two, name))
        found[f"{name}, in sigmas"] = found[name] / getattr(one.sigma, name)
    # But for the numbers in them.
    said = ([re.sub(r"\d+", "", word) for word in seen.warnings] for seen in (one, two))
    found["other warnings"] = float(next(said) != next(said))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--count", type=int, default=200, help="pictures, as many of each folder")
    options = parser.parse_args()
    each = -(-options.count // len(options.folders))
    paths = [path for folder in options.folders for path in pictures(folder, each)]
    ours, onnx = (Calibrator(device="cpu", engine=engine) for engine in ("torch", "onnx"))
    differences: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    sure = []
    for path in paths:
        one, *others = answers((ours, onnx, ours), path)
        sure.append(one.trusted)
        for other, two in zip(OTHERS, others, strict=True):
            for name, value in compare(one, two).items():
                differences[name][other].append(value)
    print(f"\n{len(paths)} pictures, of which {sum(sure)} have answers without warnings; largest")
    print("differences from torch with one thread, of all and of those; without lines\n")
    print("| difference |", " | ".join(f"{name}: all | trusted" for name in OTHERS), "|")
    print("| ---" * (1 + 2 * len(OTHERS)), "|")
    for name, by_other in differences.items():
        cells = []
        for values in by_other.values():
            good = [value for value, trusted in zip(values, sure, strict=True) if trusted]
            cells += [f"{max(values):.1e}", f"{max(good):.1e}"]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
