"""How long a process takes from its start to an answer, as docs/speed.md has it.

python lab/benchmarks/start.py --repeat 9

Medians of several processes, wall and CPU seconds; files are in the cache of the system, and
bytecode is written, as pip does. On a busy machine read the CPU seconds, and those as ratios.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

PHOTO = Path(__file__).parents[2] / "examples" / "town.jpg"

WAYS = {
    "python": ["-c", "pass"],
    "import numpy": ["-c", "import numpy"],
    "import numpy, onnxruntime, cv2, PIL": ["-c", "import numpy, onnxruntime, cv2, PIL.Image"],
    "import geocalib": ["-c", "import geocalib"],
    "from geocalib import Calibrator": ["-c", "from geocalib import Calibrator"],
    "Calibrator() returns": [
        "-c",
        "from geocalib import Calibrator; Calibrator(engine='onnx'); import os; os._exit(0)",
    ],
    "Calibrator()": ["-c", "from geocalib import Calibrator; Calibrator(engine='onnx')"],
    "geocalib --help": ["-m", "geocalib", "--help"],
    "geocalib calibrate": ["-m", "geocalib", "calibrate", str(PHOTO)],
    "geocalib calibrate --lines off": ["-m", "geocalib", "calibrate", str(PHOTO), "--lines", "off"],
}


def timed(arguments: Sequence[str]) -> tuple[float, float]:
    """Wall and CPU seconds of one process of Python."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        [sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, env=environment
    )
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=5, help="processes of each kind")
    repeat = parser.parse_args().repeat
    print("| | wall [s] | CPU [s] |\n| --- | --- | --- |")
    for name, arguments in WAYS.items():
        timed(arguments)  # Fills the caches.
        wall, cpu = zip(*(timed(arguments) for _ in range(repeat)), strict=True)
        print(f"| {name} | {median(wall):.3f} | {median(cpu):.3f} |", flush=True)


if __name__ == "__main__":
    main()
