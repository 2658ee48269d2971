"""Pictures of a report: where the errors are large, and whether the sigmas are true."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from geocalib.calibration import Calibration
from geocalib.evaluation.run import Report
from geocalib.evaluation.uncertainty import Deviations, deviations

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LARGEST_DEG = 20.0
"""Where histograms of errors end; what is beyond is in the last bar."""

LARGEST_SIGMAS = 5.0
"""Where histograms of normalised errors end; likewise, at both ends."""

BARS = 40
"""Of a histogram."""

SIGNED = {"vfov_deg": "vFoV", "pitch_deg": "pitch"}
"""What is drawn with its sign, and against what."""

KINDS = {"roll": "roll", "pitch": "pitch", "gravity": "gravity", "vfov": "vFoV"}


def save_plots(report: Report, folder: Path) -> list[Path]:
    """Draw ``NAME-errors.png`` and, where there are sigmas to judge, ``NAME-sigmas.png``."""
    folder.mkdir(parents=True, exist_ok=True)
    found = deviations(report.samples, report.outcomes)
    found = {name: part for name, part in found.items() if len(part.errors)}
    figures = {"errors": draw_errors(report)}
    if found:
        figures["sigmas"] = draw_sigmas(found, report.name)
    files = []
    for name, figure in figures.items():
        files.append(folder / f"{report.name}-{name}.png")
        figure.savefig(files[-1], dpi=100)
    return files


def draw_errors(report: Report) -> Figure:
    """Histograms of the errors, and signed errors against the true field of view and pitch."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 7), layout="constrained")
    figure.suptitle(f"{report.name}: {report.card.name}, {report.camera_model}")
    top, bottom = figure.subplots(2, 4)
    for axes, (kind, title) in zip(top, KINDS.items(), strict=True):
        values = np.minimum(report.known(kind), LARGEST_DEG)
        axes.stairs(*np.histogram(values, BARS, (0, LARGEST_DEG)), fill=True)
        axes.set(xlabel=f"{title} error, degrees", ylabel="photographs", xlim=(0, LARGEST_DEG))
    for axes, (of, against) in zip(bottom, product(SIGNED, SIGNED), strict=True):
        _scatter(axes, report, of, against)
    return figure


def _scatter(axes: Axes, report: Report, of: str, against: str) -> None:
    """Signed error of one quantity over the truth of another."""
    points = [
        (getattr(sample, against), getattr(outcome, of) - getattr(sample, of))
        for sample, outcome in zip(report.samples, report.outcomes, strict=True)
        if isinstance(outcome, Calibration)
        and getattr(sample, against) is not None
        and getattr(sample, of) is not None
    ]
    x, y = np.array(points).reshape(-1, 2).T
    axes.axhline(0, color="grey", linewidth=0.8)
    axes.scatter(x, y, s=8, alpha=0.6)
    ylabel = f"{SIGNED[of]}, found - true, degrees"
    axes.set(xlabel=f"true {SIGNED[against]}, degrees", ylabel=ylabel)


def draw_sigmas(found: dict[str, Deviations], name: str) -> Figure:
    """Errors over sigmas against a standard normal, and the shares within any number of sigmas."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4 * (len(found) + 1), 4), layout="constrained")
    figure.suptitle(f"{name}: errors in units of their sigma")
    *histograms, coverage = figure.subplots(1, len(found) + 1)
    x = np.linspace(-LARGEST_SIGMAS, LARGEST_SIGMAS, 201)
    density = np.exp(-x * x / 2) / np.sqrt(2 * np.pi)
    for axes, (title, part) in zip(histograms, found.items(), strict=True):
        values = part.normalised.clip(-LARGEST_SIGMAS, LARGEST_SIGMAS)
        ends = (-LARGEST_SIGMAS, LARGEST_SIGMAS)
        axes.stairs(*np.histogram(values, BARS, ends, density=True), fill=True)
        axes.plot(x, density, color="black", label="standard normal")
        axes.set(xlabel=f"{title}: error / sigma")
        axes.legend()
    _draw_coverage(coverage, found)
    return figure


def _draw_coverage(axes: Axes, found: dict[str, Deviations]) -> None:
    """Calibration: the share of errors within the interval that should hold each share."""
    expected = np.linspace(0, 1, 200, endpoint=False)
    # The normal quantiles, from torch as SciPy is not among the requirements.
    sigmas = torch.special.ndtri(torch.from_numpy(0.5 + 0.5 * expected)).numpy()
    for title, part in found.items():
        sizes = np.sort(np.abs(part.normalised))
        observed = np.searchsorted(sizes, sigmas, side="right") / len(sizes)
        axes.plot(expected, observed, label=title)
    axes.plot([0, 1], [0, 1], color="grey", linewidth=0.8)
    axes.set(xlabel="share that should be within", ylabel="share that is", xlim=(0, 1), ylim=(0, 1))
    axes.legend()
