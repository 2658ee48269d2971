"""Photos per second, as the tables in docs/speed.md.

python lab/benchmarks/throughput.py                  everything this machine can do, in 4 minutes
python lab/benchmarks/throughput.py --seconds 60 --only rates
python lab/benchmarks/throughput.py --published PYTHON   beside the published package, which has our
                                                     name: an interpreter that has it

Photos are rendered (JPEGs of 640x480) and repeated. Each row is a process of its own, which may use
so many cores, asks for answers without an end, and is stopped: its rate is that between the first
answer and the last, so without the start. "busy cores" is the processor time of all its processes
over the time of the row, start included; "GB" the largest sum over them, where pages that they
share count once; "GPU %" and its memory are samples of nvidia-smi. The curve is of whole calls,
start included.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import mean
from typing import Any

SIZE = (640, 480)
DISTINCT = 8
"""Photos that are rendered; each is also used in its mirror image."""
IN_MEMORY = 202
"""Arrays of the list."""
COUNTS = (10, 100, 1000, 10_000)
SHARES = {"rates": 0.75, "curve": 0.25}
"""Of the seconds, by part."""

PUBLISHED = """
import sys, time, torch
from geocalib import GeoCalib
model = GeoCalib(); end = time.time() + float(sys.argv[1]); files = sys.argv[2:]; count = 0
model.calibrate(model.load_image(files[0])); start = time.time()
while time.time() < end:
    model.calibrate(model.load_image(files[count % len(files)])); count += 1
print(count / (time.time() - start))
"""


# One row, in its own process ----------------------------------------------------------------------


def measure(row: Mapping[str, Any], photos: Sequence[str]) -> dict[str, float]:
    """Run a row in this process. Cores are limited before any library counts them."""
    cores = sorted(os.sched_getaffinity(0))[: row["cores"]]
    os.sched_setaffinity(0, cores)
    from geocalib import Calibrator

    calibrator = Calibrator(device=row["device"], engine=row["engine"])
    options = {"lines": "auto" if row["lines"] else "off"}
    begun = time.monotonic()
    with _sampled() as memory:
        if row["count"]:
            files = itertools.islice(itertools.cycle(photos), row["count"])
            done = sum(1 for _ in calibrator.calibrate_many(files, **options))
            rate = done / (time.monotonic() - begun)
        else:
            sources = _arrays(photos) if row["source"] == "arrays" else itertools.cycle(photos)
            answers = calibrator.calibrate_many(sources, workers=len(cores), **options)
            times = [time.monotonic() for _ in _until(answers, begun + row["seconds"])]
            done = len(times)
            # The first answers come with the last ones of the same chunk.
            rate = (done - 1) / max(times[-1] - times[0], 1e-9) if done > 1 else 0.0
    wall = time.monotonic() - begun
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    busy = sum(one.ru_utime + one.ru_stime for one in spent) / wall
    return {"rate": rate, "busy": busy, "memory": max(memory, default=0.0), "count": done}


def _until(answers: Iterator[Any], end: float) -> Iterator[Any]:
    for answer in answers:
        yield answer
        if time.monotonic() > end:
            break
    answers.close()  # type: ignore[attr-defined]


def _arrays(photos: Sequence[str]) -> Iterator[Any]:
    import numpy as np
    from PIL import Image

    arrays = [np.asarray(Image.open(photo)) for photo in photos]
    return itertools.cycle(itertools.islice(itertools.cycle(arrays), IN_MEMORY))


@contextmanager
def _sampled() -> Iterator[list[float]]:
    """Gigabytes of this process and its children, every now and then."""
    samples: list[float] = []
    over = threading.Event()

    def sample() -> None:
        while not over.wait(0.5):
            samples.append(sum(map(_proportional, _family(os.getpid()))) / 1e6)

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield samples
    finally:
        over.set()
        thread.join()


def _family(process: int) -> list[int]:
    found = [process]
    for children in Path(f"/proc/{process}/task").glob("*/children"):
        for child in children.read_text().split():
            found += _family(int(child))
    return found


def _proportional(process: int) -> int:
    """Kilobytes, those of shared pages divided by who share them."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


# All rows -----------------------------------------------------------------------------------------


def render(folder: Path) -> list[str]:
    """Render the photos and write them to files."""
    import numpy as np
    import torch
    from PIL import Image

    from geocalib import Camera
    from geocalib.geometry.gravity import from_roll_pitch
    from geocalib.synthetic import render_scene

    generator = np.random.default_rng(0)
    angles = np.radians(generator.uniform((-8, -12, 20), (8, 12, 40), (DISTINCT, 3)))

    def one(index: int) -> list[str]:
        roll, pitch, half = torch.tensor(angles[index], dtype=torch.float32)[:, None]
        camera = Camera.create("pinhole", f=SIZE[1] / (2 * float(half.tan())), size=SIZE)
        seen = render_scene(camera, from_roll_pitch(roll, pitch), index, 1)[0]
        levels = np.asarray(seen) * 255 + np.random.default_rng(index).normal(0, 4, seen.shape)
        picture = Image.fromarray(levels.clip(0, 255).astype(np.uint8))
        names = [str(folder / f"{index}{side}.jpg") for side in ("", "m")]
        picture.save(names[0], quality=90)
        picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT).save(names[1], quality=90)
        return names

    with ThreadPoolExecutor() as pool:
        return [name for names in pool.map(one, range(DISTINCT)) for name in names]


def rows(cores: int, seconds: float) -> list[dict[str, Any]]:
    """The rows of the table that are measured here."""
    import importlib.util

    accelerated = shutil.which("nvidia-smi") is not None
    torch = importlib.util.find_spec("torch") is not None
    base = {"device": "cpu", "engine": "onnx", "source": "files", "count": 0}
    every = [
        {**base, "cores": count, "lines": lines}
        for count in sorted({1, min(2, cores), cores})
        for lines in (False, True)
    ]
    every.append({**base, "cores": cores, "lines": False, "source": "arrays"})
    if torch:
        every.append({**base, "cores": cores, "lines": False, "engine": "torch"})
    if torch and accelerated:
        cuda = {**base, "device": "cuda", "engine": "torch", "cores": cores}
        every += [
            {**cuda, "lines": False},
            {**cuda, "lines": True},
            {**cuda, "lines": False, "source": "arrays"},
        ]
    # An accelerator takes longer to start, and has more to show.
    weights = [3 if row["device"] == "cuda" else 1 for row in every]
    return [
        {**row, "seconds": seconds * weight / sum(weights)}
        for row, weight in zip(every, weights, strict=True)
    ]


def run(row: Mapping[str, Any], photos: Sequence[str], limit: float) -> dict[str, float] | None:
    """The row's numbers, or None where it did not end in time."""
    command = [sys.executable, __file__, "--row", json.dumps(row), *photos]
    with _gpu() as gpu:
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
        except subprocess.TimeoutExpired:
            return None
    if done.returncode:
        print(done.stderr[-2000:], file=sys.stderr)
        return None
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    if gpu:
        # Without the start: the better half.
        use = sorted(one[0] for one in gpu)[len(gpu) // 2 :]
        found |= {"gpu": mean(use), "gpu_memory": max(one[1] for one in gpu) / 1e3}
    return found


@contextmanager
def _gpu() -> Iterator[list[tuple[float, float]]]:
    """Percent and megabytes of the first card, twice a second."""
    samples: list[tuple[float, float]] = []
    if shutil.which("nvidia-smi") is None:
        yield samples
        return
    query = "--query-gpu=utilization.gpu,memory.used"
    command = ["nvidia-smi", query, "--format=csv,noheader,nounits", "-lms", "500", "-i", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None

        def read(lines: Any) -> None:
            for line in lines:
                use, memory = line.split(",")
                samples.append((float(use), float(memory)))

        thread = threading.Thread(target=read, args=(process.stdout,))
        thread.start()
        try:
            yield samples
        finally:
            process.terminate()
            thread.join()


def table(*cells: object) -> None:
    print("|", *(f"{cell} |" for cell in cells), flush=True)


def rates(photos: Sequence[str], cores: int, seconds: float) -> float:
    """The table of rates; the best of them."""
    table("cores", "engine", "from", "lines", "photos / s", "busy cores", "GB", "GPU %", "GPU GB")
    table(*["---"] * 9)
    best = 0.0
    for row in rows(cores, seconds):
        found = run(row, photos, 3 * row["seconds"] + 30)
        engine = f"{row['engine']} {row['device']}"
        words = (row["cores"], engine, row["source"], "with" if row["lines"] else "without")
        if found is None:
            table(*words, "failed", "", "", "", "")
            continue
        best = max(best, found["rate"])
        gpu = [f"{found[name]:.1f}" if name in found else "" for name in ("gpu", "gpu_memory")]
        cells = (f"{found['rate']:.1f}", f"{found['busy']:.1f}", f"{found['memory']:.1f}", *gpu)
        table(*words, *cells)
    return best


def curve(photos: Sequence[str], cores: int, seconds: float, best: float) -> None:
    """Whole calls on so many photos, as long as there is time."""
    device = "auto" if shutil.which("nvidia-smi") else "cpu"
    row = {"device": device, "engine": "auto", "cores": cores, "lines": False, "seconds": 0}
    end = time.monotonic() + seconds
    table("photos", "photos / s, start included", "GB")
    table("---", "---", "---")
    for count in COUNTS:
        left = end - time.monotonic()
        if count / max(best, 0.1) > left:
            table(count, "no time left", "")
            continue
        found = run({**row, "source": "files", "count": count}, photos, left + 30)
        rate, memory = (found["rate"], found["memory"]) if found else (0.0, 0.0)
        table(count, f"{rate:.1f}", f"{memory:.1f}")
        best = max(best, rate)


def published(python: str, photos: Sequence[str], seconds: float) -> None:
    """The rate of the published package, one photo after another."""
    command = [python, "-c", PUBLISHED, str(seconds), *photos]
    done = subprocess.run(command, capture_output=True, text=True)
    print(f"published package: {done.stdout.strip() or done.stderr[-300:]} photos / s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=240.0, help="about how long it may take")
    parser.add_argument("--only", choices=SHARES, help="a part")
    parser.add_argument("--published", metavar="PYTHON", help="that has the published package")
    parser.add_argument("--row", help=argparse.SUPPRESS)
    parser.add_argument("photos", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.row:
        print(json.dumps(measure(json.loads(options.row), options.photos)))
        return
    cores = len(os.sched_getaffinity(0))
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        photos = render(Path(folder))
        rendering = time.monotonic() - begun
        size = mean(Path(photo).stat().st_size for photo in photos) / 1e3
        print(f"{cores} cores, load {os.getloadavg()[0]:.1f}; photos of {size:.0f} kB\n")
        # Each row takes seconds to start, beside those that it is measured in.
        left = max(20.0, options.seconds - rendering) * 0.7
        parts = [options.only] if options.only else list(SHARES)
        best = 1.0
        if "rates" in parts:
            best = rates(photos, cores, left * (SHARES["rates"] if len(parts) > 1 else 1))
            print()
        if "curve" in parts:
            curve(photos, cores, left * (SHARES["curve"] if len(parts) > 1 else 1), best)
        if options.published:
            published(options.published, photos, left / 10)


if __name__ == "__main__":
    main()
