"""The stages of one photo by two versions of the package, in turns.

python lab/benchmarks/turns.py OTHER --repeat 20

OTHER: the folder of the other version, as ``git worktree add`` makes it. As both are timed one
right after the other, it matters less what else the machine does, and how fast its cores run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

HERE = Path(__file__).parents[1]
STAGES = ("prepare", "network", "fit", "all", "all, with lines")
SERVE = "--serve"


def serve() -> None:
    """Do the stages that are asked for, line by line, and say what each took."""
    from geocalib import Calibrator
    from latency import PHOTOS, SMALL, WARM_UP, take_photo
    from stages import jobs

    with tempfile.TemporaryDirectory() as place:
        photo = Path(place) / f"{SMALL}.jpg"
        take_photo(photo, PHOTOS[SMALL])
        every = jobs(Calibrator(device="cpu", engine="onnx"), photo)
        for name in WARM_UP * STAGES:
            every[name]()
        for line in sys.stdin:
            wall, cpu = time.perf_counter(), time.process_time()
            every[line.strip()]()
            spent = time.perf_counter() - wall, time.process_time() - cpu
            print(json.dumps(spent), flush=True)


class Version:
    """A process with the package of a folder."""

    def __init__(self, folder: Path) -> None:
        paths = [str(folder / part) for part in ("src", "large/src")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        self._process = subprocess.Popen(
            [sys.executable, __file__, SERVE, "."],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def spent(self, stage: str) -> tuple[float, float]:
        """Wall and CPU milliseconds of a stage."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(stage, file=self._process.stdin, flush=True)
        wall, cpu = json.loads(self._process.stdout.readline())
        return 1e3 * wall, 1e3 * cpu

    def end(self) -> None:
        """Let the process end."""
        self._process.communicate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("other", type=Path, help="the folder of the other version")
    parser.add_argument("--repeat", type=int, default=20, help="timed pairs of each stage")
    parser.add_argument(SERVE, action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve()
        return
    from latency import header, row

    versions = [Version(folder) for folder in (given.other, HERE)]
    header("stage", "CPU of the other [ms]", "CPU [ms]", "ratio of CPU", "ratio of wall")
    for stage in STAGES:
        pairs = [[version.spent(stage) for version in versions] for _ in range(given.repeat)]
        other, here = zip(*pairs, strict=True)
        columns = [[cpu for _, cpu in times] for times in (other, here)]
        ratios = [median(b[i] / a[i] for a, b in pairs) for i in (1, 0)]
        spent = (f"{median(times):.1f} ({min(times):.1f})" for times in columns)
        row(stage, *spent, *(f"{ratio:.2f}" for ratio in ratios))
    for version in versions:
        version.end()


if __name__ == "__main__":
    main()
