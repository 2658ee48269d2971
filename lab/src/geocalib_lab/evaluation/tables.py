"""A report as people read it (tables), and as programs do (JSON, CSV)."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geocalib.files import write_text
from geocalib.formats.cells import escape, write_rows
from geocalib.result.calibration import Calibration
from geocalib_lab.evaluation.constant import CONSTANT, constant_report
from geocalib_lab.evaluation.metrics import THRESHOLDS
from geocalib_lab.evaluation.report import (
    ANGLES,
    K1_ERRORS,
    OF_NONE,
    PIXELS,
    Chosen,
    Leak,
    Report,
    Split,
)
from geocalib_lab.evaluation.studies import Study
from geocalib_lab.evaluation.table import Table
from geocalib_lab.evaluation.uncertainty import ONE_SIGMA, deviations, sigma_factors

TITLES = {
    "roll": "roll °",
    "pitch": "pitch °",
    "gravity": "gravity °",
    "vfov": "vFoV °",
    "pixels": f"pixels (≤ {'/'.join(f'{pixels:g}' for pixels in PIXELS)} %)",
}

Floats = NDArray[np.float64]

LEGEND = "median error (AUC at 1/5/10 degrees)"


def error_tables(
    reports: Sequence[Report], split_by: Sequence[Split] = ("magnification",)
) -> list[Table]:
    """The errors of several sets: angles, distortion, sigmas, and parts of the sets."""
    tables = [_angles(reports), _measured(reports), _distortion(reports), _sigmas(reports)]
    tables += [_splits(reports, by) for by in split_by]
    return [table for table in tables if table.rows]


def study_table(study: Study) -> Table:
    """The errors of each way to the answers, the constant one first."""
    if study.curves:
        return _curves_table(study)
    measured = [report for _, report in study.rows if report is not None]
    constant = [(CONSTANT, constant_report(report)) for report in measured[:1]]
    rows = []
    for label, report in (*constant, *study.rows):
        cells = [_error(report.summary() if report else {}, kind) for kind in study.kinds]
        more = (said.get(label, "-") for said in study.beside.values())
        rows.append([label, _photos(report), *cells, *more])
    for label, said in study.quoted:
        cells = [_error(said, kind) for kind in study.kinds]
        rows.append([label, "-", *cells, *("-" for _ in study.beside)])
    header = [study.column, "photos", *(TITLES[kind] for kind in study.kinds), *study.beside]
    return Table(f"{study.title}: {LEGEND}", header, rows, study.notes)


def _curves_table(study: Study) -> Table:
    """Median errors of the field of view against the number of images."""
    curves = {label: dict(reports) for label, reports in study.curves.items()}
    counts = list(next(iter(curves.values())))
    constant = constant_report(next(iter(curves.values()))[counts[0]])
    rows = [
        [
            label,
            _photos(reports[counts[-1]]),
            *(_number(reports[n].summary()["vfov_median"], ".2f") for n in counts),
        ]
        for label, reports in ({CONSTANT: dict.fromkeys(counts, constant)} | curves).items()
    ]
    words = (f"{n} image{'s' * (n > 1)}" for n in counts)
    header = ["vFoV by", "photos", *words]
    return Table(f"{study.title}: median error, degrees", header, rows, study.notes)


def overview_tables(studies: Mapping[str, Study]) -> list[Table]:
    """The medians of all methods on all sets, whose studies of methods are given by name."""
    if not studies:
        return []
    columns = {}
    for name, study in studies.items():
        first = next((report for _, report in study.rows if report is not None), None)
        made = dict(study.rows) | ({CONSTANT: constant_report(first)} if first else {})
        columns[f"{name} ({len(first) if first else 0})"] = {
            label: _medians(report) for label, report in made.items()
        }
    labels = [CONSTANT, *dict.fromkeys(label for s in studies.values() for label, _ in s.rows)]
    rows = [[label, *(cells.get(label, "-") for cells in columns.values())] for label in labels]
    title = "Methods: median errors of roll / pitch / vFoV, degrees, by set (photographs)"
    return [Table(title, ["method", *columns], rows)]


def _medians(report: Report | None) -> str:
    if report is None:
        return "-"
    summary = report.summary()
    values = [summary[f"{k}_median"] for k in ("roll", "pitch", "vfov") if f"{k}_median" in summary]
    return " / ".join(_number(value, ".2f") for value in values)


def _photos(report: Report | None) -> str:
    if report is None:
        return "-"
    return f"{len(report)}, {report.failed} failed" if report.failed else str(len(report))


def markdown(tables: Iterable[Table]) -> str:
    """The tables, one after the other."""
    return "\n".join(table.markdown() for table in tables)


def _angles(reports: Sequence[Report]) -> Table:
    header = ["set", "model", "photos", "failed", "method", *(TITLES[kind] for kind in ANGLES)]
    rows = []
    for report in reports:
        for method, made in ((CONSTANT, constant_report(report)), (report.card.name, report)):
            cells = [made.name, made.camera_model, str(len(made)), str(made.failed), method]
            bias = _number(made.vfov_bias_deg(), "+.2f")
            rows.append([*cells, *_angle_cells(made), bias])
    header.append("vFoV bias °")
    return Table(f"Errors: {LEGEND}", header, rows)


def _measured(reports: Sequence[Report]) -> Table:
    """Errors of roll and pitch where the truth was measured as well, and has a sigma of its own."""
    rows = []
    for report in reports:
        for name in ("roll", "pitch"):
            errors, labels, stated = _beside_measured(report, name)
            if not len(errors):
                continue
            both = np.hypot(labels, stated)
            cells = [
                *(f"{np.quantile(np.abs(errors), share):.2f}" for share in (0.5, ONE_SIGMA)),
                f"{np.median(labels):.2f}",
                f"{np.median(stated):.2f}",
                *(
                    f"{np.quantile(np.abs(errors) / both, share):.2f}"
                    for share in (ONE_SIGMA, 0.95)
                ),
                f"{np.median(errors):+.2f}",
            ]
            rows.append([report.name, name, str(len(errors)), *cells])
    header = ["set", "angle", "photos", "median °", "68% °", "σ of the truth °", "σ stated °"]
    header += ["68% by both σ (1)", "95% (2)", "bias °"]
    title = "Beside truth that was measured: no median below its own σ is progress"
    return Table(title, header, rows)


def _beside_measured(report: Report, name: str) -> tuple[Floats, Floats, Floats]:
    """Signed errors of an angle, the sigmas of its truth and the stated ones, degrees, (M,) each,
    where the truth was measured."""
    found = []
    for sample, outcome in zip(report.samples, report.outcomes, strict=True):
        truth, of_truth = getattr(sample, f"{name}_deg"), getattr(sample, f"{name}_sigma_deg")
        if isinstance(outcome, Calibration) and truth is not None and of_truth > 0:
            off = (getattr(outcome, f"{name}_deg") - truth + 180) % 360 - 180
            found.append((off, of_truth, getattr(outcome.sigma, f"{name}_deg")))
    errors, labels, stated = np.array(found, np.float64).reshape(-1, 3).T
    return errors, labels, stated


def _angle_cells(report: Report, among: Chosen | None = None) -> list[str]:
    summary = report.summary(among)
    return [_error(summary, kind) for kind in ANGLES]


def _distortion(reports: Sequence[Report]) -> Table:
    rows = []
    for report in reports:
        summary = report.summary()
        for suffix, method in ((OF_NONE, "k1 = 0"), ("", report.card.name)):
            if f"k1{suffix}_median" in summary:
                medians = [summary[f"{kind}{suffix}_median"] for kind in K1_ERRORS]
                shares = [summary[f"pixels{suffix}_recall{pixels:g}"] for pixels in PIXELS]
                k1, k1_hat, pixels = medians
                cells = [_number(k1, ".3f"), _number(k1_hat, ".4f"), _number(pixels, ".2f")]
                rows.append([report.name, method, *cells, *(f"{share:.1f}" for share in shares)])
    recalls = [f"≤ {pixels:g} px %" for pixels in PIXELS]
    header = ["set", "method", "k1 error", "k1 (H/f)² error", "pixels", *recalls]
    title = "Distortion: median errors, and the recall of the mean error in pixels"
    return Table(title, header, rows)


def _sigmas(reports: Sequence[Report]) -> Table:
    rows = []
    for report in reports:
        found = deviations(report.samples, report.outcomes)
        factors = sigma_factors(found)
        for name, part in found.items():
            if len(part.errors):
                shares = [f"{100 * part.within(sigmas):.0f}%" for sigmas in (1, 2, 3)]
                factor = _number(factors.get(name, math.nan), ".1f")
                rows.append([report.name, name, str(len(part.errors)), *shares, factor])
    header = ["set", "sigma of", "errors", "within 1 σ (68%)", "2 σ (95%)", "3 σ (99.7%)"]
    title = "Sigmas: the share of errors within them"
    return Table(title, [*header, "factor to be true"], rows)


def _splits(reports: Sequence[Report], by: Split) -> Table:
    rows = []
    for report in reports:
        constant = constant_report(report)
        for name, among in report.split(by).items():
            for method, made in ((CONSTANT, constant), (report.card.name, report)):
                cells = [made.name, name, str(among.sum()), method]
                rows.append([*cells, *_angle_cells(made, among)])
    header = ["set", TITLES.get(by, by), "photos", "method", *(TITLES[kind] for kind in ANGLES)]
    return Table(f"By {TITLES.get(by, by).removesuffix(' °')}: {LEGEND}", header, rows)


def leak_table(leaks: Iterable[tuple[Report, int, Leak]]) -> Table:
    """How the field of view of each set moved when its photographs were blurred to so many pixels
    across."""
    rows = [
        [
            report.name,
            str(pixels),
            _number(moved.median_shift_deg, "+.2f"),
            _number(moved.median_change_deg, ".2f"),
            f"{100 * moved.within_sigma:.0f}%",
        ]
        for report, pixels, moved in leaks
    ]
    header = ["set", "blurred to", "vFoV moves by °", "median of its size °", "within 1 σ"]
    return Table("Does sharpness tell the field of view?", header, rows)


def write_json(
    report: Report,
    file: Path,
    split_by: Sequence[Split] = ("magnification",),
    studies: Sequence[Study] = (),
) -> None:
    """Everything in one object; null: unknown, or infinite because of a failure."""
    found = deviations(report.samples, report.outcomes)
    content = {
        "set": report.name,
        "weights": report.card.name,
        "weights_sha256": report.card.sha256,
        "camera_model": report.camera_model,
        "photos": len(report),
        "failed": report.failed,
        "vfov_bias_deg": report.vfov_bias_deg(),
        "summary": report.summary(),
        "constant": constant_report(report).summary(),
        **{
            f"by_{by}": {
                name: {"photos": int(among.sum()), **report.summary(among)}
                for name, among in report.split(by).items()
            }
            for by in split_by
        },
        "studies": {
            study.title: {label: row.summary() if row else None for label, row in study.rows}
            for study in studies
        },
        "within_sigmas": {
            name: [part.within(sigmas) for sigmas in (1, 2, 3)]
            for name, part in found.items()
            if len(part.errors)
        },
        "sigma_factors": sigma_factors(found),
        "images": rows(report),
    }
    write_text(file, json.dumps(_finite(content), indent=1) + "\n")


def write_csv(report: Report, file: Path) -> None:
    """A line per photograph; an empty cell is unknown, ``inf`` the error of a failure."""
    lines = rows(report)
    write_rows(file, [list(lines[0]), *(map(_cell, line.values()) for line in lines)])


def rows(report: Report) -> list[dict[str, Any]]:
    """Truth, answer, sigmas and errors of every photograph."""
    lines, magnifications = [], report.magnifications().tolist()
    for i, (sample, outcome) in enumerate(zip(report.samples, report.outcomes, strict=True)):
        answer = outcome if isinstance(outcome, Calibration) else None
        line: dict[str, Any] = {"image": sample.image.name}
        for name in ("roll_deg", "pitch_deg", "vfov_deg"):
            line[f"true_{name}"] = getattr(sample, name)
            line[name] = getattr(answer, name, None)
            line[f"sigma_{name}"] = getattr(answer.sigma, name) if answer else None
        if "k1" in report.errors:
            line["true_k1"] = sample.k1
            line["k1"] = answer.distortion[0] if answer else None
            line["sigma_k1"] = answer.sigma.distortion[0] if answer else None
        line |= {f"{kind}_error": float(values[i]) for kind, values in report.errors.items()}
        line["magnification"] = magnifications[i]
        line["scene"] = sample.scene
        line["status"] = answer.status if answer else "failed"
        line["error"] = None if isinstance(outcome, Calibration) else outcome.error
        lines.append(line)
    return lines


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return escape(value)
    unknown = value is None or (isinstance(value, float) and math.isnan(value))
    return "" if unknown else value


def _finite(value: Any) -> Any:
    """The same with None for what JSON has no number for."""
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _error(summary: Mapping[str, float], kind: str) -> str:
    """The median of a kind of error, and its areas."""
    if f"{kind}_median" not in summary:
        return "-"
    if kind == "pixels":
        shares = "/".join(f"{summary[f'pixels_recall{pixels:g}']:.0f}" for pixels in PIXELS)
        return f"{_number(summary['pixels_median'], '.1f')} ({shares})"
    areas = "/".join(f"{summary[f'{kind}_auc{threshold:g}']:.0f}" for threshold in THRESHOLDS)
    return f"{_number(summary[f'{kind}_median'], '.2f')} ({areas})"


def _number(value: float, form: str) -> str:
    return "-" if math.isnan(value) else f"{value:{form}}"
