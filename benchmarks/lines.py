"""Network, lines alone and both, on photographs with ground truth, and what it costs:
``python benchmarks/lines.py FOLDER ... [--weights NAME]``.

A folder is a set as ``geocalib.evaluation.datasets`` reads it.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from geocalib import Calibration, Calibrator
from geocalib.calibrator import LinesMode
from geocalib.evaluation.datasets import Sample, dataset_name, read_dataset
from geocalib.evaluation.metrics import auc
from geocalib.evaluation.run import Setting, default_model, evaluate
from geocalib.evaluation.uncertainty import deviations
from geocalib.imaging import read_photo
from geocalib.lines.detect import SHORT_SIDE, detect
from geocalib.lines.refine import refine

MODES: dict[str, LinesMode] = {"network": "off", "lines only": "only", "fused": "auto"}
ANGLES = ("roll", "pitch", "vfov")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", type=Path, nargs="+")
    parser.add_argument("--weights", default="lean")
    parser.add_argument("--camera-model")
    options = parser.parse_args()
    calibrator = Calibrator(options.weights)
    print(
        "| set | method | roll | pitch | vFoV | AUC@10 | std of normalised gravity, log f | used |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for path in options.sets:
        samples = read_dataset(path)
        model = options.camera_model or default_model(samples)
        for method, lines in MODES.items():
            report = evaluate(calibrator, samples, model, Setting(lines=lines))
            row = _row(report.errors, samples, report.outcomes)
            print(f"| {dataset_name(path)} | {method} | {row} |", flush=True)
    _cost(calibrator, read_dataset(options.sets[0])[:10])


def _row(errors, samples, outcomes) -> str:  # type: ignore[no-untyped-def]
    known = [errors[kind][~np.isnan(errors[kind])] for kind in ANGLES]
    medians = [f"{np.median(values):.2f}" if len(values) else "-" for values in known]
    areas = [f"{auc(values, (10,))[0]:.1f}" if len(values) else "-" for values in known]
    spread = deviations(samples, outcomes)
    stds = [
        f"{np.std(spread[name].normalised):.2f}" if len(spread[name].errors) else "-"
        for name in ("gravity", "focal")
    ]
    used = sum(isinstance(o, Calibration) and o.lines is not None for o in outcomes)
    cells = [*medians, " / ".join(areas), ", ".join(stds), f"{used} of {len(outcomes)}"]
    return " | ".join(cells)


def _cost(calibrator: Calibrator, samples: list[Sample]) -> None:
    """Milliseconds per megapixel of detection and of refinement."""
    detection = refinement = megapixels = 0.0
    for sample in samples:
        answer = calibrator.calibrate(sample.image, lines="off")
        photo = read_photo(sample.image, SHORT_SIDE)
        start = time.perf_counter()
        segments = detect(photo)
        middle = time.perf_counter()
        refine([answer], [segments])
        detection += middle - start
        refinement += time.perf_counter() - middle
        megapixels += photo.pixels.shape[0] * photo.pixels.shape[1] / 1e6
    each = [f"{1000 * seconds / megapixels:.0f}" for seconds in (detection, refinement)]
    print(f"\ndetection {each[0]}, refinement {each[1]} ms per megapixel")


if __name__ == "__main__":
    main()
