"""The log of a run: tables that can be read while it goes on, and curves of them."""

from __future__ import annotations

import csv
import shutil
import subprocess
from pathlib import Path

import torch
from torch import Tensor

LOSSES = (
    *("up", "latitude", "gravity", "vfov", "distortion", "drift", "failed"),
    *("wide_up", "wide_latitude", "wide_gravity", "wide_vfov", "wide_keep"),
)
PARTS = ("render", "augment", "forward", "loss", "backward", "optimiser")
TRAIN_COLUMNS = (
    *("step", "seconds", "rate", "images_per_second", "gradient_norm", "skipped"),
    *LOSSES,
    *(f"{part}_ms" for part in PARTS),
    "gpu_busy_percent",
)


class Table:
    """A CSV file that grows by rows; what a row lacks stays empty."""

    def __init__(self, path: Path, columns: tuple[str, ...]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a", newline="")
        self._writer = csv.DictWriter(self._file, columns)
        if self._file.tell() == 0:
            self._writer.writeheader()

    def add(self, row: dict[str, float]) -> None:
        """Write a row for all to see."""
        self._writer.writerow(
            {
                name: f"{value:.6g}" if isinstance(value, float) else value
                for name, value in row.items()
            }
        )
        self._file.flush()

    def close(self) -> None:
        """Close the file; no more rows follow."""
        self._file.close()


class Means:
    """Means of numbers that live on the device, fetched all at once."""

    def __init__(self) -> None:
        self._sums: dict[str, Tensor] = {}
        self._counts: dict[str, int] = {}

    def add(self, values: dict[str, Tensor]) -> None:
        """Add one more value of each kind."""
        for name, value in values.items():
            self._sums[name] = self._sums[name] + value if name in self._sums else value
            self._counts[name] = self._counts.get(name, 0) + 1

    def take(self) -> dict[str, float]:
        """The means since the last time."""
        if not self._sums:
            return {}
        sums = torch.stack([value.float() for value in self._sums.values()]).tolist()
        means = {n: s / self._counts[n] for n, s in zip(self._sums, sums, strict=True)}
        self._sums, self._counts = {}, {}
        return means


class GpuMeter:
    """The share of time in which the GPU had work, as its driver tells it, without waiting."""

    def __init__(self) -> None:
        program = shutil.which("nvidia-smi") if torch.cuda.is_available() else None
        self._command = [program, "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]
        self._asked: subprocess.Popen[str] | None = None

    def percent(self) -> float | None:
        """The answer to the question asked at the last call; None as long as there is none."""
        program = self._command[0]
        if program is None:
            return None
        answer = None
        if self._asked is not None:
            if self._asked.poll() is None:
                return None
            text = self._asked.communicate()[0].split()
            answer = float(text[0]) if text and text[0].isdigit() else None
        self._asked = subprocess.Popen(
            [program, *(str(part) for part in self._command[1:])],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        return answer


def plot(folder: Path, picture: Path) -> None:
    """Draw the curves of the tables that a run has left in a folder."""
    from matplotlib.figure import Figure

    from geocalib.overlay.draw import save_figure

    training, validation = (_read(folder / name) for name in ("training.csv", "validation.csv"))
    figure = Figure(figsize=(12, 7), layout="constrained")
    (losses, norms), (gravity, vfov) = figure.subplots(2, 2)
    for name in LOSSES[:5]:
        losses.plot(*_pairs(training, name), label=name)
    norms.plot(*_pairs(training, "gradient_norm"))
    for axes, ending in ((gravity, "_gravity_median"), (vfov, "_vfov_median")):
        sets = [name.removesuffix(ending) for name in validation if name.endswith(ending)]
        for number, name in enumerate(sets):
            curve = _pairs(validation, name + ending)
            axes.plot(*curve, marker="o", color=f"C{number}", ls="-:"[number // 10 % 2], label=name)
    for axes, words in (
        (losses, "loss"),
        (norms, "gradient norm"),
        (gravity, "gravity, median error in degrees"),
        (vfov, "vFoV, median error in degrees"),
    ):
        axes.set(xlabel="step", ylabel=words, yscale="log")
        axes.grid(alpha=0.3, which="both")
        if axes is not norms and any(len(line.get_xdata()) for line in axes.lines):
            # Beside the curves.
            axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5))
    save_figure(figure, picture, dpi=120)


def _read(path: Path) -> dict[str, list[str]]:
    with path.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}


def _pairs(table: dict[str, list[str]], name: str) -> tuple[list[float], list[float]]:
    """Steps and values where there is a value."""
    pairs = [
        (float(step), float(value))
        for step, value in zip(table.get("step", []), table.get(name, []), strict=True)
        if value
    ]
    return [step for step, _ in pairs], [value for _, value in pairs]
