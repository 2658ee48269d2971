"""One photo of 640x480, stage by stage, as docs/speed.md has it: ONNX Runtime, weights lean.

python lab/benchmarks/stages.py --repeat 20

Wall and CPU milliseconds, the median and, as others slow a machine down at times, the least. The
stages take turns. What lines cost is the difference of those with and without.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median

from geocalib import Calibrator
from geocalib.pipeline.predict import NetworkOutput
from geocalib.pipeline.prepare import Prepared
from latency import PHOTOS, SMALL, WARM_UP, header, row, take_photo


def jobs(calibrator: Calibrator, photo: Path) -> dict[str, Callable[[], object]]:
    """What is timed, by name."""
    prepared = calibrator.prepare(photo)
    assert isinstance(prepared, Prepared)
    (seen,) = calibrator.look([prepared])
    assert isinstance(seen, NetworkOutput)
    engine, image = calibrator.engine_spec.load(), prepared.image[None]
    alone = replace(seen, segments=None)
    return {
        "prepare": lambda: calibrator.prepare(photo, lines=False),
        "prepare, with lines": lambda: calibrator.prepare(photo),
        "network": lambda: engine.look(image),
        "fit": lambda: calibrator.fit([alone], exif=False),
        "fit, with lines": lambda: calibrator.fit([seen], exif=False),
        "all": lambda: calibrator.calibrate(photo, lines="off", exif=False),
        "all, with lines": lambda: calibrator.calibrate(photo, exif=False),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=20, help="timed runs of each stage")
    repeat = parser.parse_args().repeat
    spent: dict[str, list[tuple[float, float]]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as place:
        photo = Path(place) / f"{SMALL}.jpg"
        take_photo(photo, PHOTOS[SMALL])
        every = jobs(Calibrator(device="cpu", engine="onnx"), photo)
        for _ in range(WARM_UP + repeat):
            for name, job in every.items():
                wall, cpu = time.perf_counter(), time.process_time()
                job()
                spent[name].append((time.perf_counter() - wall, time.process_time() - cpu))
    header("stage", "wall [ms]", "CPU [ms]", "least wall [ms]", "least CPU [ms]")
    for name, runs in spent.items():
        times = list(zip(*runs[WARM_UP:], strict=True))
        row(name, *(f"{1e3 * rate(column):.1f}" for rate in (median, min) for column in times))


if __name__ == "__main__":
    main()
