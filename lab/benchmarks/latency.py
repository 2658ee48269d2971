"""Time from a file to its camera on the CPU, as the tables in docs/speed.md.

python lab/benchmarks/latency.py                    everything
python lab/benchmarks/latency.py --only image       one part: cost image engines folder start
python lab/benchmarks/latency.py --repeat 50 --threads 2

Each network and number of threads gets a process of its own; engines are compared in one. A time is
the median of several runs after a warm-up; the steps take turns, so that what disturbs the machine
disturbs all of them.
"CPU" is what the process itself computed, over all its threads: on a machine that others use it
is the steadier of the two, though they slow it down as well.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import median

import numpy as np
import torch
from PIL import Image
from PIL.ExifTags import IFD, Base
from torch import Tensor, nn
from torch.nn import functional

from geocalib import Calibrator, Camera, Fields, fit
from geocalib.geometry import gravity as sphere
from geocalib.imaging import InputSpec, prepare, read_photo
from geocalib.nets.folding import fold_batch_norm
from geocalib.nets.lean import LeanConfig, LeanNetwork
from geocalib.nets.published import PublishedNetwork
from geocalib.nets.weights.files import load_network
from geocalib.pipeline.engines.load import EngineName, load_engine
from geocalib.synthetic import render_scene
from geocalib_lab.cost import measure_cost

SMALL, LARGE = "640x480", "4000x3000"
PHOTOS = {SMALL: (640, 480), LARGE: (4000, 3000)}
QUALITY = 90
GRAIN = 7.0
"""Grey levels, one sigma: makes the JPEG of 12 megapixels as large as a phone's."""
EQUIVALENT = 24
"""Millimetres: of the camera that takes the photo, as its file tells it."""
FOLDER = 16
INPUTS = ((320, 320), (416, 320))
"""Pixels of the inputs whose cost is counted; the second is that of 4:3 photos."""
STEPS = ("decode", "network", "fit")
ANSWERS = ("calibrate, no lines", "with lines", "with lines and EXIF")
WARM_UP = 2

START = """
import json, re, sys, time
marks = [time.perf_counter()]
def mark():
    marks.append(time.perf_counter())
import torch
torch.set_num_threads(int(sys.argv[2])); mark()
import geocalib; mark()
from geocalib import Calibrator; mark()
calibrator = Calibrator(device="cpu", engine=sys.argv[3]); mark()
calibrator.calibrate(sys.argv[1]); mark()
calibrator.calibrate(sys.argv[1]); mark()
peak = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
print(json.dumps([*(b - a for a, b in zip(marks, marks[1:])), peak / 1e6]))
"""
STARTING = (
    "import torch",
    "import geocalib",
    "from geocalib import Calibrator",
    "Calibrator()",
    "calibrate(photo), the first time",
    "calibrate(photo), the second time",
    "largest memory, in MB",
)
"""What ``START`` prints: what its marks lie between, and (in GB) what it took."""

ENGINES: tuple[EngineName, ...] = ("torch", "onnx")


@dataclass(frozen=True)
class Spent:
    """Median seconds that a step took, on the wall and on the processor."""

    wall: float
    cpu: float

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.wall + other.wall, self.cpu + other.cpu)

    def __sub__(self, other: Spent) -> Spent:
        return Spent(self.wall - other.wall, self.cpu - other.cpu)

    def __str__(self) -> str:
        return f"{_ms(self.wall)} / {_ms(self.cpu)}"

    def over(self, other: Spent) -> str:
        return f"{self.wall / other.wall:.2f} / {self.cpu / other.cpu:.2f}"


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.0f}" if seconds >= 0.02 else f"{1e3 * seconds:.1f}"


class Clock:
    """Collects the times of jobs by name."""

    def __init__(self) -> None:
        self._runs: dict[str, list[tuple[float, float]]] = defaultdict(list)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self._runs[name].append((time.perf_counter() - wall, time.process_time() - cpu))

    def spent(self) -> dict[str, Spent]:
        """The medians of every step, without the runs that warm up."""
        return {
            name: Spent(*(median(times) for times in zip(*runs[WARM_UP:], strict=True)))
            for name, runs in self._runs.items()
        }


def row(*cells: object) -> None:
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def header(*cells: str) -> None:
    print()
    row(*cells)
    row(*["---"] * len(cells))


def take_photo(path: Path, size: tuple[int, int]) -> None:
    """A town with the grain of a sensor, as a JPEG."""
    camera = Camera.create("pinhole", f=700.0, size=(1000, 750), dtype=torch.float32)
    gravity = sphere.from_roll_pitch(torch.tensor([0.05]), torch.tensor([0.1]))
    scene = (255 * render_scene(camera, gravity)[0]).byte().numpy()
    enlarged = np.asarray(Image.fromarray(scene).resize(size, Image.Resampling.BICUBIC))
    grain = np.random.default_rng(0).normal(0, GRAIN, (*enlarged.shape[:2], 1))
    grainy = np.rint(enlarged + grain).clip(0, 255).astype(np.uint8)
    exif = Image.Exif()
    exif.get_ifd(IFD.Exif)[Base.FocalLengthIn35mmFilm] = EQUIVALENT
    Image.fromarray(grainy).save(path, quality=QUALITY, exif=exif)


def time_lean(photo: Path, repeat: int) -> dict[str, Spent]:
    """The steps, and the Calibrator's own answer, by name."""
    loaded = load_network("lean")
    card, network = loaded.card, loaded.network
    spec = InputSpec(card.short_side, network.multiple, card.largest_aspect, card.detail)
    calibrator, look = Calibrator(device="cpu", engine="torch"), _looking(network)
    clock = Clock()
    for _ in range(WARM_UP + repeat):
        with clock.timed("calibrate"):
            calibrator.calibrate(photo, lines="off", exif=False)
        with clock.timed("with lines"):
            calibrator.calibrate(photo, exif=False)
        with clock.timed("with EXIF"):
            calibrator.calibrate(photo)
        with clock.timed("decode"):
            given = prepare(read_photo(photo, spec.short_side), spec)
            image = torch.from_numpy(given.image)[None]
        with clock.timed("network"):
            fields = look(image)
        with clock.timed("fit"):
            fit(fields)
    return clock.spent()


def time_published(photo: Path, repeat: int) -> dict[str, Spent]:
    """The steps by name, with random weights, on which the network's speed does not depend."""
    look = _looking(fold_batch_norm(PublishedNetwork()).requires_grad_(False))
    lean = _looking(load_network("lean").network)
    clock = Clock()
    for _ in range(WARM_UP + max(3, repeat // 4)):
        with clock.timed("decode"):
            image = torch.from_numpy(prepare(read_photo(photo)).image)[None]
        with clock.timed("network"):
            look(image)
        # Random weights see nothing: to fit what lean saw takes the time it would.
        fields = _enlarged(lean(image), image.shape[-2:])
        with clock.timed("fit"):
            fit(fields)
    return clock.spent()


def _looking(network: nn.Module) -> Callable[[Tensor], Fields]:
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def look(image: Tensor) -> Fields:
        with torch.inference_mode():
            prediction = network(image.contiguous(memory_format=torch.channels_last))
        return Fields(*(value.clone() for value in prediction))

    return look


def _enlarged(fields: Fields, size: torch.Size) -> Fields:
    def enlarge(values: Tensor) -> Tensor:
        return functional.interpolate(values, size=size, mode="bilinear")

    return Fields(
        functional.normalize(enlarge(fields.up), dim=1),
        enlarge(fields.latitude),
        enlarge(fields.up_confidence[:, None])[:, 0],
        enlarge(fields.latitude_confidence[:, None])[:, 0],
    )


def time_engines(photo: Path, repeat: int) -> dict[str, Spent]:
    """The network, how a picture stands without its fields, and the Calibrator's answer, by
    engine, in turns."""
    engines = {name: load_engine("lean", name, "cpu", compile=False) for name in ENGINES}
    calibrators = {name: Calibrator(device="cpu", engine=name) for name in ENGINES}
    spec = engines["torch"].spec
    image = torch.from_numpy(prepare(read_photo(photo, spec.short_side), spec).image)[None]
    clock = Clock()
    for _ in range(WARM_UP + repeat):
        for name in ENGINES:
            with clock.timed(f"{name} network"):
                engines[name].look(image)
            with clock.timed(f"{name} orientation"):
                engines[name].orientation(image)
            with clock.timed(f"{name} calibrate"):
                calibrators[name].calibrate(photo, lines="off")
    return clock.spent()


def time_folder(photo: Path, repeat: int) -> dict[str, Spent]:
    """Sixteen images as a list, and one by one."""
    calibrator, clock = Calibrator(device="cpu", engine="torch"), Clock()
    for _ in range(WARM_UP + max(3, repeat // FOLDER)):
        with clock.timed("as a list"):
            calibrator.calibrate([photo] * FOLDER)
        with clock.timed("one by one"):
            for _ in range(FOLDER):
                calibrator.calibrate(photo)
    return clock.spent()


def cost_table() -> None:
    print("\nWhat a network computes for one image; multiplications and additions count separately")
    header("network", "parameters [M]", *(f"GFLOP at {w}x{h}" for w, h in INPUTS))
    config = LeanConfig(**load_network("lean").card.config)
    networks = {"lean": LeanNetwork(config), "published": PublishedNetwork()}
    values = []
    for name, network in networks.items():
        costs = [measure_cost(network, *size) for size in INPUTS]
        values.append([costs[0].parameters / 1e6, *(cost.flops / 1e9 for cost in costs)])
        row(name, *(f"{value:.1f}" for value in values[-1]))
    row("lean / published", *(f"{a / b:.2f}" for a, b in zip(*values, strict=True)))
    print(f"\nlean: {config}")


def image_table(photos: dict[str, Path], threads: list[int], repeat: int) -> None:
    sizes = (f"{name} of {path.stat().st_size / 1e6:.1f} MB" for name, path in photos.items())
    print(f"\nOne JPEG ({', '.join(sizes)}), wall / CPU in ms, median of {repeat}")
    header("threads", "photo", "network", *STEPS, "sum", *ANSWERS)
    for count in threads:
        answers = []
        for name, photo in photos.items():
            lean = _alone(count, time_lean, photo, repeat)
            published = _alone(count, time_published, photo, repeat)
            ours, theirs = ([spent[step] for step in STEPS] for spent in (lean, published))
            for steps in (ours, theirs):
                steps.append(steps[0] + steps[1] + steps[2])
            whole = [lean["calibrate"], lean["with lines"], lean["with EXIF"]]
            row(count, name, "lean", *ours, *whole)
            row(count, name, "published", *theirs, "", "", "")
            ratios = (a.over(b) for a, b in zip(ours, theirs, strict=True))
            row(count, name, "lean / published", *ratios, "", "", "")
            answers.append(whole)
        more = (large - small for small, large in zip(*answers, strict=True))
        row(count, f"{LARGE} - {SMALL}", "lean", "", "", "", "", *more)


def engine_table(photo: Path, threads: list[int], repeat: int) -> None:
    print(f"\nOne JPEG of {SMALL}, lean by both engines, wall / CPU in ms, median of {repeat}")
    header("threads", "engine", "network", "another turn", "calibrate, no lines")
    for count in threads:
        spent = _alone(count, time_engines, photo, repeat)
        steps = {
            name: [spent[f"{name} {step}"] for step in ("network", "orientation", "calibrate")]
            for name in ENGINES
        }
        for name in ENGINES:
            row(count, name, *steps[name])
        ratios = (a.over(b) for a, b in zip(steps["onnx"], steps["torch"], strict=True))
        row(count, "onnx / torch", *ratios)


def folder_table(photo: Path, threads: list[int], repeat: int) -> None:
    print(f"\n{FOLDER} JPEGs of {SMALL}, lean, wall / CPU in ms")
    header("threads", "given", "per image", "images per second")
    for count in threads:
        for name, spent in _alone(count, time_folder, photo, repeat).items():
            each = Spent(spent.wall / FOLDER, spent.cpu / FOLDER)
            row(count, name, each, f"{1 / each.wall:.1f}")


def _alone(
    threads: int, job: Callable[[Path, int], dict[str, Spent]], photo: Path, repeat: int
) -> dict[str, Spent]:
    """What the job returns in a new process with that many threads."""
    context = get_context("spawn")
    # Some of the libraries read it once, when they are loaded.
    os.environ["OMP_NUM_THREADS"] = str(threads)
    with ProcessPoolExecutor(1, context, torch.set_num_threads, (threads,)) as pool:
        return pool.submit(job, photo, repeat).result()


def start_table(photo: Path, threads: int, repeat: int) -> None:
    """What comes before the first answer, each time in a new process."""
    runs = max(3, repeat // 4)
    print(f"\nStarting, {threads} threads, wall in ms, median of {runs}; steps one after another")
    header("step", *ENGINES)
    script = [sys.executable, "-c", START, str(photo), str(threads)]
    medians = []
    for engine in ENGINES:
        steps = [json.loads(_output([*script, engine])) for _ in range(1 + runs)][1:]
        medians.append([median(times) for times in zip(*steps, strict=True)])
    for name, *times in zip(STARTING, *medians, strict=True):
        row(f"`{name}`" if "," not in name else name, *map(_ms, times))
    print("\nWhole commands")
    header("command", "ms")
    geocalib = os.fspath(Path(sys.executable).with_name("geocalib"))
    for name, command in {
        "python -c pass": [sys.executable, "-c", "pass"],
        "python -c 'import torch'": [sys.executable, "-c", "import torch"],
        "geocalib --help": [geocalib, "--help"],
        **{
            f"geocalib calibrate {photo.name} --engine {engine}": [
                *(geocalib, "calibrate", str(photo), "--engine", engine)
            ]
            for engine in ENGINES
        },
    }.items():
        clock = Clock()
        for _ in range(WARM_UP + runs):
            with clock.timed(name):
                _output(command)
        row(f"`{name}`", _ms(clock.spent()[name].wall))


def _output(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = ("cost", "image", "engines", "folder", "start")
    parser.add_argument("--only", nargs="+", choices=parts, default=parts)
    parser.add_argument("--repeat", type=int, default=20, help="timed runs of one image")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    arguments = parser.parse_args()

    busy = f"{os.getloadavg()[0]:.1f} of them busy" if hasattr(os, "getloadavg") else ""
    print(f"torch {torch.__version__}, {os.cpu_count()} cores, {busy} before this began")
    with tempfile.TemporaryDirectory() as place:
        photos = {name: Path(place) / f"{name}.jpg" for name in PHOTOS}
        for name, path in photos.items():
            take_photo(path, PHOTOS[name])
        if "cost" in arguments.only:
            cost_table()
        if "image" in arguments.only:
            image_table(photos, arguments.threads, arguments.repeat)
        if "engines" in arguments.only:
            engine_table(photos[SMALL], arguments.threads, arguments.repeat)
        if "folder" in arguments.only:
            folder_table(photos[SMALL], arguments.threads, arguments.repeat)
        if "start" in arguments.only:
            start_table(photos[SMALL], max(arguments.threads), arguments.repeat)


if __name__ == "__main__":
    main()
