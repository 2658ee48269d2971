"""Pictures of a report: where the errors are large, and what the sigmas are worth."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from geocalib.overlay.draw import save_figure
from geocalib.result.calibration import Calibration
from geocalib_lab.evaluation.metrics import median
from geocalib_lab.evaluation.ranking import (
    Stated,
    calibration_bins,
    precision_recall,
    sparsification,
    stated,
)
from geocalib_lab.evaluation.report import Report
from geocalib_lab.evaluation.studies import Study
from geocalib_lab.evaluation.uncertainty import Deviations, deviations

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LARGEST_DEG = 20.0
"""Where histograms of errors end; what is beyond is in the last bar."""

LARGEST_SIGMAS = 5.0
"""Where histograms of normalised errors end; likewise, at both ends."""

BARS = 40
"""Number of bars of a histogram."""

FEWEST = 8
"""Answers that say something about sigmas, or about a trend."""

SIGNED = {"vfov_deg": "vFoV", "pitch_deg": "pitch"}
"""What is drawn with its sign, and against what."""

KINDS = {"roll": "roll", "pitch": "pitch", "gravity": "gravity", "vfov": "vFoV"}

BLUE, ORANGE, GREEN, GREY = "#2f6db3", "#d9762b", "#4c9a5b", "#8a8f98"
MARKERS = "os^vDXP*<>hd8"
"""Markers of curves."""


def draw_all(report: Report) -> dict[str, Figure]:
    """The figures of a report by name: errors, truth, and where there are sigmas to judge, sigmas
    and ranking."""
    figures = {"errors": draw_errors(report), "truth": draw_truth(report)}
    found = deviations(report.samples, report.outcomes)
    found = {name: part for name, part in found.items() if len(part.errors)}
    if found:
        figures["sigmas"] = draw_sigmas(found)
    ranked = {kind: stated(report, kind) for kind in ("gravity", "vfov")}
    ranked = {kind: part for kind, part in ranked.items() if len(part) >= FEWEST}
    if ranked:
        figures["ranking"] = draw_ranking(ranked)
    return figures


def save_plots(report: Report, folder: Path) -> dict[str, Path]:
    """Draw all as ``NAME-errors.png`` and so on; the files by the figure's name."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {}
    for name, figure in draw_all(report).items():
        files[name] = folder / f"{report.name}-{name}.png"
        save_figure(figure, files[name], dpi=110)
    return files


def save_curves(studies: Iterable[Study], name: str, folder: Path) -> dict[str, Path]:
    """Draw what a set's studies have curves of, as ``NAME-images.png``; the files likewise."""
    files = {}
    for study in studies:
        if study.curves:
            files["images"] = folder / f"{name}-images.png"
            save_figure(draw_curves(study), files["images"], dpi=110)
    return files


def draw_curves(study: Study) -> Figure:
    """Median errors of field of view and gravity, as far as these are known, against the number of
    images; ours, which come first, in colours."""
    from matplotlib.ticker import LogLocator, NullLocator

    every = [report for reports in study.curves.values() for report in reports.values()]
    kinds = [kind for kind in ("vfov", "gravity") if any(len(r.known(kind)) for r in every)]
    figure = _figure(4 + 3.5 * len(kinds), 4.2)
    styles = ((BLUE, "-"), (BLUE, "--"), (ORANGE, "-"), (ORANGE, "--"))
    panels = figure.subplots(1, len(kinds), squeeze=False)[0]
    for axes, kind in zip(panels, kinds, strict=True):
        for i, (label, reports) in enumerate(study.curves.items()):
            errors = [r.summary().get(f"{kind}_median", np.nan) for r in reports.values()]
            colour, line = styles[i] if i < len(styles) else (f"{0.3 + 0.05 * i:.2f}", ":")
            axes.plot(
                list(reports), errors, color=colour, linestyle=line, marker=MARKERS[i], label=label
            )
        _tidy(axes)
        counts = sorted({count for reports in study.curves.values() for count in reports})
        axes.set_xscale("log", base=2)
        if min((np.min(line.get_ydata()) for line in axes.lines), default=0.0) > 0:
            axes.set_yscale("log")
            axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axes.yaxis.set_major_formatter("{x:g}")
            axes.yaxis.set_minor_locator(NullLocator())
        axes.set_xticks(counts, map(str, counts))
        axes.set(xlabel="images of one camera", ylabel=f"{KINDS[kind]}: median error, degrees")
    figure.legend(
        *figure.axes[0].get_legend_handles_labels(),
        frameon=False,
        fontsize=8,
        loc="outside right upper",
    )
    return figure


def _figure(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _tidy(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GREY)
    axes.tick_params(color=GREY)
    axes.grid(alpha=0.25)
    axes.set_axisbelow(True)


def draw_errors(report: Report) -> Figure:
    """Histograms of the errors, with their medians."""
    kinds = [kind for kind in KINDS if len(report.known(kind))]
    figure = _figure(3 * max(1, len(kinds)), 2.9)
    panels = figure.subplots(1, len(kinds), squeeze=False)[0] if kinds else []
    for axes, kind in zip(panels, kinds, strict=True):
        title, values = KINDS[kind], report.known(kind)
        bounded = np.minimum(values, LARGEST_DEG)
        axes.stairs(*np.histogram(bounded, BARS, (0, LARGEST_DEG)), fill=True, color=BLUE)
        _tidy(axes)
        axes.set(xlabel=f"{title} error, degrees", ylabel="photographs", xlim=(0, LARGEST_DEG))
        middle = median(values)
        axes.axvline(min(middle, LARGEST_DEG), color=ORANGE)
        axes.set_title(f"median {middle:.2f}°", fontsize=10, color=ORANGE)
    return figure


def draw_truth(report: Report) -> Figure:
    """Signed errors against the true field of view and pitch, with medians of classes."""
    pairs = [pair for pair in product(SIGNED, SIGNED) if _both_known(report, *pair)]
    figure = _figure(3 * max(1, len(pairs)), 3.2)
    panels = figure.subplots(1, len(pairs), squeeze=False)[0] if pairs else []
    for axes, (of, against) in zip(panels, pairs, strict=True):
        _scatter(axes, report, of, against)
    return figure


def _both_known(report: Report, of: str, against: str) -> bool:
    """Whether any photograph has the truth of both."""
    return any(None not in (getattr(s, of), getattr(s, against)) for s in report.samples)


def _scatter(axes: Axes, report: Report, of: str, against: str) -> None:
    """Signed error of one quantity over the truth of another."""
    points = [
        (getattr(sample, against), getattr(outcome, of) - getattr(sample, of))
        for sample, outcome in zip(report.samples, report.outcomes, strict=True)
        if isinstance(outcome, Calibration)
        and getattr(sample, against) is not None
        and getattr(sample, of) is not None
    ]
    x, y = np.array(points, dtype=np.float64).reshape(-1, 2).T
    _tidy(axes)
    axes.axhline(0, color=GREY, linewidth=1)
    axes.scatter(x, y, s=12, alpha=0.5, color=BLUE, linewidths=0)
    classes = min(8, len(np.unique(x)) // FEWEST)
    if classes > 1:
        parts = np.array_split(np.argsort(x), classes)
        middle = [(np.median(x[part]), np.median(y[part])) for part in parts]
        axes.plot(*np.array(middle).T, color=ORANGE, marker="o", markersize=3)
    ylabel = f"{SIGNED[of]}, found - true, degrees"
    axes.set(xlabel=f"true {SIGNED[against]}, degrees", ylabel=ylabel)


def draw_sigmas(found: dict[str, Deviations]) -> Figure:
    """Errors over sigmas against a standard normal, and the shares within any number of sigmas."""
    figure = _figure(4 * (len(found) + 1), 3.4)
    *histograms, coverage = figure.subplots(1, len(found) + 1)
    x = np.linspace(-LARGEST_SIGMAS, LARGEST_SIGMAS, 201)
    density = np.exp(-x * x / 2) / np.sqrt(2 * np.pi)
    for axes, (title, part) in zip(histograms, found.items(), strict=True):
        values = part.normalised.clip(-LARGEST_SIGMAS, LARGEST_SIGMAS)
        ends = (-LARGEST_SIGMAS, LARGEST_SIGMAS)
        axes.stairs(*np.histogram(values, BARS, ends, density=True), fill=True, color=BLUE)
        axes.plot(x, density, color=ORANGE, label="standard normal")
        _tidy(axes)
        axes.set(xlabel=f"{title}: error / sigma")
        _legend_above(axes)
    _draw_coverage(coverage, found)
    return figure


def _draw_coverage(axes: Axes, found: dict[str, Deviations]) -> None:
    """Calibration: the share of errors within the interval that should hold each share."""
    expected = np.linspace(0, 1, 200, endpoint=False)
    sigmas = [NormalDist().inv_cdf(0.5 + 0.5 * share) for share in expected]
    colours = iter((BLUE, ORANGE, GREEN))
    for title, part in found.items():
        sizes = np.sort(np.abs(part.normalised))
        observed = np.searchsorted(sizes, sigmas, side="right") / len(sizes)
        axes.plot(expected, observed, label=title, color=next(colours))
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle="--")
    _tidy(axes)
    ends = (0, 1.02)
    axes.set(xlabel="share that should be within", ylabel="share that is", xlim=ends, ylim=ends)
    _legend_above(axes)


def draw_ranking(found: dict[str, Stated]) -> Figure:
    """A row for each kind: precision and recall, calibration, and what leaving out helps."""
    figure = _figure(12, 3.4 * len(found))
    for row, (kind, part) in zip(
        figure.subplots(len(found), 3, squeeze=False), found.items(), strict=True
    ):
        _draw_precision_recall(row[0], KINDS[kind], part)
        _draw_bins(row[1], KINDS[kind], part)
        _draw_sparsification(row[2], KINDS[kind], part)
        for axes in row:
            _tidy(axes)
            _legend_above(axes)
    return figure


def _legend_above(axes: Axes) -> None:
    """Curves may be anywhere within."""
    axes.legend(frameon=False, fontsize=8, loc="lower left", bbox_to_anchor=(0, 1), ncols=3)


def _draw_precision_recall(axes: Axes, title: str, found: Stated) -> None:
    end = np.quantile(np.concatenate([found.errors, found.sigmas]), 0.95)
    thresholds: NDArray[np.float64] = np.linspace(0, end, 201)[1:]
    precision, recall = precision_recall(found, thresholds)
    axes.plot(thresholds, precision, color=BLUE, label="precision")
    axes.plot(thresholds, recall, color=ORANGE, label="recall")
    axes.set(xlabel=f"{title}: good to so many degrees", ylabel="share", ylim=(0, 1.02))


def _draw_bins(axes: Axes, title: str, found: Stated) -> None:
    sigmas, errors = calibration_bins(found, min(10, len(found) // 4))
    end = 1.05 * max(sigmas.max(), errors.max())
    axes.plot([0, end], [0, end], color=GREY, linewidth=1, linestyle="--", label="true sigmas")
    axes.plot(sigmas, errors, color=BLUE, marker="o", markersize=4, label="classes by sigma")
    axes.set(
        xlabel=f"{title}: sigma, degrees",
        ylabel="root mean square error, degrees",
        xlim=(0, end),
        ylim=(0, end),
    )


def _draw_sparsification(axes: Axes, title: str, found: Stated) -> None:
    shares = np.linspace(0.1, 1, 91)
    by_sigma, by_error = sparsification(found, shares)
    axes.plot(100 * shares, by_sigma, color=BLUE, label="the surest by sigma")
    axes.plot(100 * shares, by_error, color=GREY, linestyle="--", label="the best, at most")
    axes.axhline(np.median(found.errors), color=ORANGE, linewidth=1, label="any")
    axes.set(
        xlabel="percent of the answers kept",
        ylabel=f"{title}: median error, degrees",
        ylim=(0, None),
    )
