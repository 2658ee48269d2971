"""How much of the errors of turned crops is their table's: ``python benchmarks/turned_sources.py
rotated SET ...``.

Every picture of the first set is a part of a photograph of the others, turned by an angle that is
known exactly: its truth is that photograph's, with whatever is wrong with it. Where answers to both
agree with each other better than with the table, what is left is the table's error, or the scene's.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from geocalib import Calibrator
from geocalib.evaluation.datasets import Sample, dataset_name, read_dataset


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("turned", type=Path)
    parser.add_argument("sources", type=Path, nargs="+")
    options = parser.parse_args()
    sources = {
        f"{dataset_name(path)}_{sample.image.stem}".lower(): sample
        for path in options.sources
        for sample in read_dataset(path)
    }
    calibrator, pairs = Calibrator("lean"), []
    for sample in read_dataset(options.turned):
        source = sources.get(sample.image.stem.lower().partition("_rot")[0])
        if source is not None:
            pairs.append([roll_error(calibrator, each) for each in (sample, source)])
    turned, whole = np.array(pairs).T
    shared = np.corrcoef(turned, whole)[0, 1]
    print(f"{len(pairs)} pictures, roll in degrees, medians")
    for name, errors in {"turned": turned, "source": whole, "difference": turned - whole}.items():
        print(f"{name}: {np.median(np.abs(errors)):.3f}")
    print(f"correlation of the errors of both: {shared:.2f}")


def roll_error(calibrator: Calibrator, sample: Sample) -> float:
    """By how much the answer with lines is off, with its sign, in degrees."""
    assert sample.roll_deg is not None
    found = calibrator.calibrate(sample.image, exif=False)
    return (found.roll_deg - sample.roll_deg + 180) % 360 - 180


if __name__ == "__main__":
    main()
