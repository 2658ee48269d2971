"""Runs of ``geocalib calibrate`` that are killed, or started twice: what is left of their outputs?

python lab/benchmarks/outputs.py --kill 20
python lab/benchmarks/outputs.py --together 10
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from PIL import Image

from geocalib.formats import csv_table, json_lines

TOWN = Path(__file__).parents[2] / "examples" / "town.jpg"
PHOTOS = 4
READERS = {"out.jsonl": json_lines.read, "out.csv": csv_table.read}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kill", type=int, default=0, metavar="N", help="runs to kill")
    parser.add_argument("--together", type=int, default=0, metavar="N", help="pairs to start")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    random.seed(options.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "photos").mkdir()
        with Image.open(TOWN) as town:
            for number in range(PHOTOS):
                size = (240 + 12 * number, 160 + 8 * number)
                town.resize(size).save(folder / "photos" / f"{number}.jpg")
        start = time.perf_counter()
        _finish(folder, "out.jsonl")
        usual = time.perf_counter() - start
        if options.kill:
            _kill(folder, options.kill, usual)
        if options.together:
            _together(folder, options.together)


def _start(folder: Path, output: str) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "geocalib", "calibrate", "photos", "-o", output]
    return subprocess.Popen(words, cwd=folder, stderr=subprocess.PIPE)


def _finish(folder: Path, output: str) -> None:
    with _start(folder, output) as run:
        if run.wait():
            raise SystemExit(run.stderr.read().decode() if run.stderr else "failed")


def _whole(folder: Path, output: str) -> bool:
    """Whether the output has one answer for each photo, and nothing else is left."""
    images = sorted(str(outcome.image) for outcome in READERS[output](folder / output))
    left = sorted(path.name for path in folder.iterdir())
    return images == [f"photos/{n}.jpg" for n in range(PHOTOS)] and left == [output, "photos"]


def _kill(folder: Path, runs: int, usual: float) -> None:
    """usual: seconds that a run takes."""
    kills = whole = 0
    for number in range(runs):
        output = list(READERS)[number % 2]
        for name in READERS:
            (folder / name).unlink(missing_ok=True)
        for _ in range(3):
            with _start(folder, output) as run:
                time.sleep(random.uniform(0.2, 1.0) * usual)
                kills += run.poll() is None
                run.kill()
        _finish(folder, output)
        whole += _whole(folder, output)
    print(f"{kills} kills in {runs} runs: {whole} outputs have an answer for each photo")


def _together(folder: Path, pairs: int) -> None:
    waited = whole = 0
    for number in range(pairs):
        output = list(READERS)[number % 2]
        for name in READERS:
            (folder / name).unlink(missing_ok=True)
        with _start(folder, output) as first, _start(folder, output) as second:
            errors = [run.communicate()[1] for run in (first, second)]
        waited += sum(b"is being written by process" in error for error in errors)
        whole += _whole(folder, output)
    print(
        f"{pairs} pairs: {waited} were told to wait, {whole} outputs have one answer for each photo"
    )


if __name__ == "__main__":
    main()
