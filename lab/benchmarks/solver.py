"""Accuracy, honesty and speed of the solver, as the tables in docs/solver.md.

python lab/benchmarks/solver.py                 everything
python lab/benchmarks/solver.py speed           one part: recovery pooling uncertainty speed
python lab/benchmarks/solver.py recovery --count 1000 --models kannala_brandt
"""

from __future__ import annotations

import argparse
import resource
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from geocalib import Camera, Fields, FitOptions, FitResult, fit
from geocalib.cameras import MODELS
from geocalib.geometry import gravity as sphere
from geocalib.geometry.fields import pixel_grid
from random_cameras import exact_fields, noisy_fields, random_cameras

BATCH = 250
FULL_GRID = FitOptions(cells=None)


def row(*cells: object) -> None:
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def header(*cells: str) -> None:
    print()
    row(*cells)
    row(*["---"] * len(cells))


def ray_error_deg(camera: Camera, truth: Camera) -> Tensor:
    """(B,) mean angle between the rays of the two cameras over the pixels both can see."""
    width, height = (int(v) for v in truth.size[0].tolist())
    grid = pixel_grid(width, height, truth.f).reshape(1, -1, 2).expand(len(truth), -1, 2)
    rays, seen = truth.unproject(grid)
    found, found_seen = camera.unproject(grid)
    both = seen & found_seen
    angle = torch.rad2deg(sphere.angle_between(rays, found))
    return (angle * both).sum(1) / both.sum(1)


def recovery(models: Iterable[str], count: int, device: str) -> None:
    """Noise-free 64x64 fields, no pooling, trivial start."""
    print(f"\nRecovery of {count} random cameras per model, noise-free 64x64 fields, on {device}")
    header(
        "model",
        "dtype",
        "recovered",
        "gravity p50 / max [deg]",
        "focal or ray p50 / max",
        "iterations",
    )
    for name in models:
        _recovery(name, count, device, None)
    if "double_sphere" in models:
        _recovery("double_sphere", max(1, count // 10), device, (-0.1, 0.3))


def _recovery(name: str, count: int, device: str, xi: tuple[float, float] | None) -> None:
    wide = MODELS[name].wide
    dtype = torch.float64 if wide else torch.float32
    gravity_error, other_error, iterations, notes = [], [], [], []
    for seed in range(0, count, BATCH):
        truth, gravity = random_cameras(name, min(BATCH, count - seed), 64, seed, xi)
        fields = exact_fields(truth, gravity, dtype).to(device)
        result = fit(fields, name, options=FULL_GRID)
        found = result.camera.to("cpu", torch.float64)
        angle = torch.rad2deg(sphere.angle_between(result.gravity.cpu().double(), gravity))
        if wide:
            error, limit = ray_error_deg(found, truth), 1e-3
        else:
            error, limit = (found.f / truth.f - 1).abs(), 1e-5
        gravity_error.append(angle)
        other_error.append(error)
        iterations.append(result.iterations.cpu().double())
        failed = ~((angle <= 1e-3) & (error <= limit))
        notes += [_failure(truth, gravity, result, error, int(i)) for i in failed.nonzero()[:, 0]]
    angle, error = torch.cat(gravity_error), torch.cat(other_error)
    label = name if xi is None else f"{name}, xi in {xi}"
    unit = " deg" if wide else ""
    row(
        label,
        str(dtype).removeprefix("torch."),
        f"{100 * (1 - len(notes) / len(angle)):.2f}%",
        f"{angle.median():.1e} / {angle.max():.1e}",
        f"{error.median():.1e}{unit} / {error.max():.1e}{unit}",
        f"{torch.cat(iterations).mean():.1f}",
    )
    for note in notes[:5]:
        print(f"    not recovered: {note}", file=sys.stderr)


def _failure(truth: Camera, gravity: Tensor, result: FitResult, error: Tensor, i: int) -> str:
    roll, pitch = (torch.rad2deg(a) for a in sphere.to_roll_pitch(gravity[i]))
    values = ", ".join(f"{v:.4f}" for v in truth.distortion[i].tolist())
    return (
        f"roll {roll:.1f} pitch {pitch:.1f} vFoV {torch.rad2deg(truth.vfov[i]):.1f} "
        f"distortion ({values}): error {error[i]:.1e}, {result.iterations[i]} iterations, "
        f"{result.status[i]}"
    )


def pooling(count: int) -> None:
    """What pooling 320x320 fields costs in accuracy and gains in time."""
    print(
        f"\nPooling of 320x320 fields of {count} random cameras ({count // 5} of the second kind)"
    )
    header("model", "field", "cells", "gravity p99 [deg]", "focal p99", "ms per image, batch 20")
    for name in ("pinhole", "simple_radial"):
        _pooling(name, "exact, against the truth", count)
        _pooling(name, "smooth errors, against the full grid", count // 5)


def _pooling(name: str, kind: str, count: int) -> None:
    sizes = (32, 40, FitOptions().cells, 64)
    angles: dict[int | None, list[Tensor]] = {cells: [] for cells in sizes}
    focals: dict[int | None, list[Tensor]] = {cells: [] for cells in sizes}
    spent = dict.fromkeys(sizes, 0.0)
    for seed in range(0, count, 20):
        truth, gravity = random_cameras(name, 20, 320, seed)
        fields, f = exact_fields(truth, gravity, torch.float32), truth.f
        if kind.startswith("smooth"):
            fields = smooth_noise(fields, seed)
            reference = fit(fields, name, options=FULL_GRID)
            gravity, f = reference.gravity.double(), reference.camera.f.double()
        for cells in sizes:
            start = time.perf_counter()
            result = fit(fields, name, options=FitOptions(cells=cells))
            spent[cells] += time.perf_counter() - start
            angles[cells].append(sphere.angle_between(result.gravity.double(), gravity))
            focals[cells].append((result.camera.f.double() / f - 1).abs())
    for cells in sizes:
        row(
            name,
            kind,
            f"{cells} (default)" if cells == FitOptions().cells else cells,
            f"{torch.rad2deg(torch.cat(angles[cells])).quantile(0.99):.4f}",
            f"{torch.cat(focals[cells]).quantile(0.99):.1e}",
            f"{1e3 * spent[cells] / count:.1f}",
        )


def smooth_noise(fields: Fields, seed: int) -> Fields:
    """Errors as networks make them: smooth over about a tenth of the image, 2 degrees, with
    confidences between 0 and 1 that vary as smoothly."""
    generator = torch.Generator().manual_seed(seed)
    width, height = fields.size

    def smooth() -> Tensor:
        coarse = torch.randn(len(fields), 1, 12, 12, generator=generator)
        return torch.nn.functional.interpolate(coarse, (height, width), mode="bicubic")[:, 0]

    turn, shift = 0.035 * smooth(), 0.035 * smooth()
    x, y = fields.up.unbind(1)
    up = torch.stack([x * turn.cos() - y * turn.sin(), x * turn.sin() + y * turn.cos()], 1)
    return Fields(
        up,
        fields.latitude + shift[:, None],
        torch.sigmoid(2 * smooth()) * fields.up_confidence,
        torch.sigmoid(2 * smooth()) * fields.latitude_confidence,
    )


def uncertainty(count: int) -> None:
    """Errors over their sigmas under independent noise and outliers."""
    print(
        f"\nNormalised errors (mean, standard deviation) of {count} random cameras: 5 degrees of "
        "independent noise, 30% uniform outliers of confidence 0.05"
    )
    header("model", "fields", "roll", "pitch", "vFoV", "k1")
    for name in ("pinhole", "simple_radial"):
        for size, cells in ((64, None), (320, FitOptions().cells)):
            scores: dict[str, list[Tensor]] = {"roll": [], "pitch": [], "vfov": [], "k": []}
            for seed in range(0, count, 20):
                truth, gravity = random_cameras(name, 20, size, seed)
                result = fit(
                    noisy_fields(truth, gravity, 5.0, 0.3, seed),
                    name,
                    options=FitOptions(cells=cells),
                )
                roll, pitch = (torch.rad2deg(a) for a in sphere.to_roll_pitch(gravity))
                sigma = result.sigma
                scores["roll"].append((result.roll_deg - roll) / sigma.roll_deg)
                scores["pitch"].append((result.pitch_deg - pitch) / sigma.pitch_deg)
                scores["vfov"].append(
                    (result.vfov_deg - torch.rad2deg(truth.vfov)) / sigma.vfov_deg
                )
                scores["k"].append(
                    ((result.camera.distortion - truth.distortion) / sigma.distortion).flatten()
                )
            cells_text = "every pixel" if cells is None else f"{cells} cells"
            texts = []
            for values in scores.values():
                z = torch.cat(values)
                texts.append(f"{z.mean():+.2f}, {z.std():.2f}" if len(z) else "")
            row(name, f"{size}x{size}, {cells_text}", *texts)


def seconds(job: Callable[[], object], least: float = 1.0) -> float:
    """Median time of a job."""
    job()
    times: list[float] = []
    while sum(times) < least or len(times) < 3:
        start = time.perf_counter()
        job()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def peak_beyond_now(job: Callable[[], object]) -> float:
    """MiB of memory that a job takes at its peak, beyond what is in use before it (Linux)."""

    def used() -> float:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize() / 2**20

    before, samples, running = used(), [0.0], threading.Event()
    running.set()

    def watch() -> None:
        while running.is_set():
            samples.append(used())
            time.sleep(0.002)

    watcher = threading.Thread(target=watch)
    watcher.start()
    job()
    running.clear()
    watcher.join()
    return max(0.0, max(samples) - before)


def speed() -> None:
    """Fields in, camera and covariance out, on the threads torch uses."""
    fits()
    print("\nShared intrinsics, 40x40 fields with smooth errors of 2 degrees, pinhole")
    header(
        "images", "separate [s]", "shared [s]", "shared / separate", "peak beyond the input [MiB]"
    )
    for count in (8, 64, 512, 4096):
        _shared(count)


def fits() -> None:
    """Of tensors, one image and many; and of one image in NumPy arrays."""
    print(f"\nTime of a fit, {torch.get_num_threads()} threads")
    header("model", "fields", "images", "ms", "ms per image")
    for name in ("pinhole", "simple_radial"):
        truth, gravity = random_cameras(name, 64, 320)
        fields = smooth_noise(exact_fields(truth, gravity, torch.float32), 0)
        exact = exact_fields(truth, gravity, torch.float32)
        for label, given in (("320x320, exact", exact), ("320x320, noisy", fields)):
            for batch in (1, 64):
                part = given[slice(0, batch)]
                spent = seconds(lambda part=part, name=name: fit(part, name))
                row(name, label, batch, f"{1e3 * spent:.1f}", f"{1e3 * spent / batch:.2f}")
            arrays = given[slice(0, 1)].map(Tensor.numpy)
            spent = seconds(lambda arrays=arrays, name=name: fit(arrays, name))
            row(name, f"{label}, NumPy", 1, f"{1e3 * spent:.1f}", f"{1e3 * spent:.2f}")


def _shared(count: int) -> None:
    _, gravity = random_cameras("pinhole", count, 40)
    truth = Camera.create("pinhole", f=torch.full((count,), 35.0).double(), size=(40, 40))
    fields = smooth_noise(exact_fields(truth, gravity, torch.float32), 0)
    groups = torch.zeros(count, dtype=torch.long)
    peak = peak_beyond_now(lambda: fit(fields, "pinhole", groups=groups))
    shared = seconds(lambda: fit(fields, "pinhole", groups=groups))
    separate = seconds(lambda: fit(fields, "pinhole"))
    row(count, f"{separate:.3f}", f"{shared:.3f}", f"{shared / separate:.2f}", f"{peak:.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parts = ("recovery", "pooling", "uncertainty", "speed")
    parser.add_argument("parts", nargs="*", choices=[*parts, []], help="default: all")
    parser.add_argument("--count", type=int, help="cameras (default: 10000, 500, 500)")
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--device", default="cpu", help="where the recovery is fitted")
    arguments = parser.parse_args()
    chosen = arguments.parts or parts
    if "speed" in chosen:
        speed()
    if "recovery" in chosen:
        recovery(arguments.models, arguments.count or 10_000, arguments.device)
    if "pooling" in chosen:
        pooling(arguments.count or 500)
    if "uncertainty" in chosen:
        uncertainty(arguments.count or 500)


if __name__ == "__main__":
    main()
