"""How far the two engines agree on the pictures of folders, as docs/speed.md has it.

python benchmarks/engines.py FOLDER [FOLDER ...] --count 200
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from dataclasses import fields
from pathlib import Path

from geocalib import Calibration, Calibrator
from geocalib.files.image_files import IMAGE_SUFFIXES

ANGLES = ("roll_deg", "pitch_deg", "vfov_deg")


def pictures(folder: Path, count: int) -> list[Path]:
    """So many of a folder, from its beginning to its end."""
    found = sorted(path for path in folder.iterdir() if path.suffix.lower() in IMAGE_SUFFIXES)
    return [found[i * len(found) // count] for i in range(min(count, len(found)))]


def compare(one: Calibration, two: Calibration) -> dict[str, float]:
    """Differences by name: of the fields, of the answer, in sigmas, and of what is said of it."""
    assert one.fields is not None
    assert two.fields is not None
    found = {}
    for field in fields(one.fields):
        a, b = (getattr(seen.fields, field.name) for seen in (one, two))
        found[f"field {field.name}"] = float((a - b).abs().max())
    for name in ANGLES:
        found[name] = abs(getattr(one, name) - getattr(two, name))
        found[f"{name}, in sigmas"] = found[name] / getattr(one.sigma, name)
    found["other warnings"] = float(one.warnings != two.warnings)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--count", type=int, default=200, help="pictures, as many of each folder")
    options = parser.parse_args()
    each = -(-options.count // len(options.folders))
    paths = [path for folder in options.folders for path in pictures(folder, each)]
    torch, onnx = (Calibrator(device="cpu", engine=engine) for engine in ("torch", "onnx"))
    differences = defaultdict(list)
    for path in paths:
        one, two = (c.calibrate(path, lines="off", keep_fields=True) for c in (torch, onnx))
        for name, value in compare(one, two).items():
            differences[name].append(value)
    print(f"\n{len(paths)} pictures, onnx against torch, without lines\n")
    print("| difference | mean | largest |\n| --- | --- | --- |")
    for name, values in differences.items():
        print(f"| {name} | {sum(values) / len(values):.1e} | {max(values):.1e} |")


if __name__ == "__main__":
    main()
