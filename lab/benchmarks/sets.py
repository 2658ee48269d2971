"""Joint fits of many images of one camera: time, memory, accuracy, outliers (docs/sets.md).

python lab/benchmarks/sets.py                       10, 100, 1000 and 10000 images
python lab/benchmarks/sets.py --counts 10 100 --model simple_radial
"""

from __future__ import annotations

import argparse
import math
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import Tensor
from torch.nn.functional import interpolate

from geocalib.cameras import Camera, get_model
from geocalib.cameras.camera import Window
from geocalib.geometry.fields import Fields, perspective_field
from geocalib.geometry.gravity import angle_between, from_roll_pitch
from geocalib.imaging.metadata import Metadata
from geocalib.priors.enabled import File
from geocalib.result.calibration import OUTLIER, Calibration, Failure
from geocalib.sets.camera_group import CameraGroup, FitMethod
from geocalib.solver.known import Given, centres
from geocalib.solver.sigma_calibration import FieldErrors

FOCAL, SIZE = 3000.0, (4000, 3000)
"""Pixels, of the camera that took nearly all images, a third of them in portrait."""
FIELD = (36, 27)
"""Cells of a field, as those of many images are pooled."""
OUTLIERS = 50
"""One image of so many was taken at half or twice the focal length."""
ERROR = math.radians(2)
"""Error of the fields, smooth over a sixth of an image, different in each image."""
CONFIDENCE, SCALE = 2.7, 0.03
"""Confidence of a cell, at most, and s^2 of the network."""
SIGMAS = {"focal": 4.0}
"""What the errors' smoothness does to sigmas, as measured for networks."""

HEADER = (
    *("images", "fit [s]", "processor [s]", "per image [ms]", "peak [MiB]"),
    *("focal error ± sigma", "gravity p50 [deg]", "outliers found", "false"),
)


@dataclass(frozen=True)
class PredictedImage:
    """An image as the network might have seen it."""

    file: File
    view: Window
    fields: Fields
    gravity: Tensor
    """(3,) true."""
    outlier: bool
    down: Tensor | None = None
    notes: tuple[str, ...] = ()
    segments: None = None


def images(count: int, model: str) -> Iterator[PredictedImage]:
    generator = torch.Generator().manual_seed(0)
    distortion = () if model == "pinhole" else (-0.1,)
    for index in range(count):
        turned, odd = index % 3 == 0, index % OUTLIERS == OUTLIERS // 2 - 3
        size, field = (SIZE[::-1], FIELD[::-1]) if turned else (SIZE, FIELD)
        f = FOCAL * field[1] / size[1] * ((0.5, 2.0)[index % 2] if odd else 1.0)
        camera = Camera.create(model, torch.tensor(f).double(), field, distortion)
        angles = torch.deg2rad(60 * torch.rand(2, 1, generator=generator).double() - 30)
        gravity = from_roll_pitch(angles[0], angles[1])
        fields = disturbed(*perspective_field(camera, gravity), generator)
        file = File(f"{index}.jpg", f"{index}.jpg", size, Metadata())
        yield PredictedImage(file, Window(0, 0, *size), fields, gravity[0], odd)


def disturbed(up: Tensor, latitude: Tensor, valid: Tensor, generator: torch.Generator) -> Fields:
    shape = latitude.shape[-2:]

    def smooth() -> Tensor:
        coarse = torch.randn(1, 1, 6, 6, generator=generator, dtype=torch.float64)
        return interpolate(coarse, shape, mode="bicubic")[:, 0]

    turn, (x, y) = ERROR * smooth(), up.unbind(1)
    up = torch.stack([x * turn.cos() - y * turn.sin(), x * turn.sin() + y * turn.cos()], 1)
    confidence = CONFIDENCE * torch.sigmoid(2 * smooth()) * valid
    return Fields(up, latitude + ERROR * smooth()[:, None], confidence, confidence).to(
        torch.float32
    )


def peak_mib() -> float:
    """Of this process so far, pages of mapped files included."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(count: int, model: str) -> None:
    """One row of the table."""
    method = FitMethod(get_model(model), FieldErrors(SCALE, SIGMAS), (), False)
    before = peak_mib()
    truths, planted, sizes = [], [], []
    with TemporaryDirectory() as folder:
        group = CameraGroup(Path(folder) / "observations", count, method)
        for index, image in enumerate(images(count, model)):
            middle = centres([image.file.size])
            group.add(index, image, middle)
            truths.append(image.gravity)
            planted.append(image.outlier)
            sizes.append(image.file.size)
        start, spent = time.perf_counter(), time.process_time()
        found = group.outcomes(Given(None, None, None, centres(sizes)))
        wall, spent = time.perf_counter() - start, time.process_time() - spent
    good = {i: outcome for i, outcome in enumerate(found) if isinstance(outcome, Calibration)}
    first = next(iter(good.values()))
    off = [isinstance(o, Failure) and o.status == OUTLIER for o in found]
    caught = sum(a and b for a, b in zip(off, planted, strict=True))
    gravity = torch.stack([outcome.gravity for outcome in good.values()])
    tilt = torch.rad2deg(angle_between(gravity, torch.stack([truths[i] for i in good])))
    cells = (
        f"{count:,}",
        f"{wall:.1f}",
        f"{spent:.1f}",
        f"{1e3 * spent / count:.1f}",
        f"{peak_mib() - before:.0f}",
        f"{100 * (first.fy / FOCAL - 1):+.2f}% ± {100 * first.sigma.focal / FOCAL:.2f}%",
        f"{tilt.median():.2f}",
        f"{caught} of {sum(planted)}",
        sum(off) - caught,
    )
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--counts", nargs="+", type=int, default=[10, 100, 1000, 10_000])
    parser.add_argument("--model", choices=["pinhole", "simple_radial"], default="pinhole")
    parser.add_argument("--row", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.row:
        measure(arguments.row, arguments.model)
        return
    print("| " + " | ".join(HEADER) + " |\n" + "| --- " * len(HEADER) + "|", flush=True)
    for count in arguments.counts:
        # In a process of its own: peaks never go down.
        words = [sys.executable, __file__, "--row", str(count), "--model", arguments.model]
        subprocess.run(words, check=True)


if __name__ == "__main__":
    main()
