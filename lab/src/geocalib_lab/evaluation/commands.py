"""What the commands of evaluation do, for any command line to call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from geocalib import console
from geocalib.errors import ConfigError, MissingPackageError, WeightsError
from geocalib.files import sha256_of, write_text
from geocalib.formats import json_lines
from geocalib.nets.weights.card import WeightCard
from geocalib.nets.weights.files import read_weights
from geocalib.pipeline.calibrator import Calibrator
from geocalib.pipeline.options import LinesMode
from geocalib.pipeline.runs.journal import Journal, request_of
from geocalib.result.calibration import Failure
from geocalib.solver.initial import Initial
from geocalib_lab.evaluation import tables
from geocalib_lab.evaluation.datasets import Sample, dataset_name, find_sets, read_dataset, table_of
from geocalib_lab.evaluation.html_page import SetPage, write_page
from geocalib_lab.evaluation.methods import OURS, methods_with
from geocalib_lab.evaluation.methods.baselines import BASELINES, MARK, Baselines
from geocalib_lab.evaluation.plots import save_curves, save_plots
from geocalib_lab.evaluation.quoted import quoted
from geocalib_lab.evaluation.report import Report, Split, leak
from geocalib_lab.evaluation.rig_study import mounted, rig_study
from geocalib_lab.evaluation.run import PLAIN, Calibrates, Known, Setting, evaluate
from geocalib_lab.evaluation.site_pages import SiteReport
from geocalib_lab.evaluation.starts import descent_study, starts_study
from geocalib_lab.evaluation.studies import (
    Study,
    joint_study,
    most_of_one_camera,
    partial_study,
    with_pixels,
)
from geocalib_lab.evaluation.table import Table
from geocalib_lab.evaluation.uncertainty import deviations, pooled, recalibrate, sigma_factors
from geocalib_lab.evaluation.worst import worst_cases

PAGE = "report.html"

UNFINISHED = "unfinished"
"""Folder, in that of the results, of the answers of a run that was interrupted."""


@dataclass(frozen=True)
class Plan:
    """What to evaluate, and in which ways."""

    datasets: Sequence[Path]
    """Folders or tables with ground truth."""
    camera_model: str | None = None
    """By default the one that suits each set."""
    limit: int | None = None
    """Photographs of each set, spread evenly over it."""
    blur: int | None = None
    """Also with so many pixels of detail across, for how far the field of view moves."""
    known: Sequence[Known] = ()
    images_per_fit: Sequence[int] = ()
    initial: Sequence[Initial] = ()
    descent: bool = False
    """Also with fewer steps of the fit, and with another first damping."""
    split_by: Sequence[Split] = ("magnification",)
    rig: bool = False
    """Also with the cameras of each rig together."""
    lines: LinesMode = "off"
    """What straight lines are used for, except in the studies."""
    methods: Sequence[str] = ()
    """Also these ways to an answer, of ``methods_with``."""
    baselines: Baselines = field(default_factory=Baselines)
    """The weights of those that are trained; rows of those that have none stay empty."""

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise ConfigError(f"limit is {self.limit}; give the number of photographs to take")
        if min(self.images_per_fit, default=1) < 1:
            few = min(self.images_per_fit)
            raise ConfigError(f"there is no fit of {few} images; give 1 or more")
        if max(self.images_per_fit, default=2) < 2:
            raise ConfigError("fits of 1 image share nothing; give 2 or more as well")

    def read(self) -> dict[str, list[Sample]]:
        """The photographs of all sets, by the name of the set."""
        sets: dict[str, list[Sample]] = {}
        for path in self._places:
            name = dataset_name(path)
            if name in sets:
                raise ConfigError(f"two sets are called {name}; evaluate them one by one")
            samples = read_dataset(path)
            if self.limit is not None and self.limit < len(samples):
                chosen = np.linspace(0, len(samples) - 1, self.limit).round().astype(int)
                samples = [samples[i] for i in chosen]
            sets[name] = samples
        return sets

    @property
    def tables(self) -> dict[str, Path]:
        """Where the truth of each set is, by the name of the set."""
        return {dataset_name(path): table_of(path) for path in self._places}

    @property
    def _places(self) -> list[Path]:
        """The folder or table of each set; a folder may hold several."""
        return [place for path in self.datasets for place in find_sets(path)]

    @property
    def checksums(self) -> dict[str, str]:
        """Checksums of the tables: answers with known values depend on the truth."""
        return {name: sha256_of(table)[:16] for name, table in self.tables.items()}


@dataclass(frozen=True)
class Evaluation:
    """The reports and tables of an evaluation."""

    reports: Sequence[Report]
    """The report of each set."""
    tables: Sequence[Table]
    """The tables of all sets, with the studies."""

    @property
    def failed(self) -> int:
        """How many photographs have no answer."""
        return sum(report.failed for report in self.reports)

    @property
    def markdown(self) -> str:
        return tables.markdown(self.tables)


def run(
    calibrator: Calibrates,
    plan: Plan,
    out: Path | None = None,
    overwrite: bool = False,
    site: SiteReport | None = None,
) -> Evaluation:
    """Evaluate; each failed photograph is a line on standard error.

    out: a folder for the tables (report.md), a page with plots and the worst photographs
    (report.html) and, of every set, JSON, CSV and plots. The folder also keeps the answers of a
    run that is interrupted, for the next one to go on from if it asks the same; overwrite: or else
    to begin anew. site: also pages for a site.
    """
    sets = plan.read()
    # What cannot be done is said before the work begins.
    counts = plan.images_per_fit
    if counts and not any(_shared(samples, counts) for samples in sets.values()):
        few = min(count for count in counts if count > 1)
        raise ConfigError(f"no camera took {few} photographs of a set; give fewer to fit")
    if plan.rig:
        for samples in sets.values():
            mounted(samples)
    runs = _Runs(calibrator, plan.camera_model, out, plan.checksums, overwrite)
    plain = Setting(lines=plan.lines)
    reports = [runs.about(name, samples, plain) for name, samples in sets.items()]
    for report in reports:
        console.failures(o for o in report.outcomes if isinstance(o, Failure))
    shown = tables.error_tables(reports, plan.split_by)
    if plan.blur is not None:
        blurred = replace(plain, blur=plan.blur)
        soft = [runs.about(n, samples, blurred) for n, samples in sets.items()]
        moved = [(a, plan.blur, leak(a, b)) for a, b in zip(reports, soft, strict=True)]
        shown.append(tables.leak_table(moved))
    studies = {name: _studies(runs, name, samples, plan) for name, samples in sets.items()}
    compared = {name: part[0] for name, part in studies.items() if plan.methods}
    shown = [*tables.overview_tables(compared), *shown]
    if site is not None:
        site.write(shown, reports, studies)
    shown += [tables.study_table(study) for part in studies.values() for study in part]
    if out is not None:
        _write(out, reports, studies, shown, plan)
        _forget(out / UNFINISHED)
    return Evaluation(reports, shown)


@dataclass(frozen=True)
class _Runs:
    """A calibrator that is given one set after the other, with a bar for people to see."""

    calibrator: Calibrates
    camera_model: str | None
    out: Path | None
    checksums: Mapping[str, str]
    """Checksums of the tables of the sets."""
    overwrite: bool = False
    """Whether answers with other options are replaced."""
    method: str = ""
    """The name of the method, as several may share weights."""

    def about(self, name: str, samples: Sequence[Sample], setting: Setting = PLAIN) -> Report:
        with self.bar(name, samples, setting) as done:
            return evaluate(
                self.calibrator,
                samples,
                self.camera_model,
                setting,
                name=name,
                journal=self._journal(name, len(samples), setting),
                done=done,
            )

    def bar(
        self, name: str, samples: Sequence[Sample], setting: Setting = PLAIN
    ) -> AbstractContextManager[Callable[[], None]]:
        how = "" if setting == PLAIN else f", {setting}"
        return console.progress(len(samples), f"{name}{how}")

    def _journal(self, name: str, count: int, setting: Setting) -> Journal | None:
        """The journal of the answers that these weights give for so many photographs."""
        if self.out is None:
            return None
        card = self.calibrator.card
        weights = (card.sha256 or card.name)[:12]
        parts = [name, str(count), self.camera_model or "default", str(setting), weights]
        parts += [self.method] if self.method else []
        path = self.out / UNFINISHED / f"{'.'.join(parts)}.jsonl"
        journal = Journal(path, request_of(weights, dataset=self.checksums.get(name)))
        if self.overwrite:
            journal.discard_others()
        return journal


def _forget(folder: Path) -> None:
    """Remove what was kept in case of an interruption."""
    for file in folder.glob("*.jsonl"):
        if json_lines.is_ours(file):
            file.unlink()
    with suppress(OSError):
        folder.rmdir()


def _studies(runs: _Runs, name: str, samples: Sequence[Sample], plan: Plan) -> list[Study]:
    def ask(some: Sequence[Sample], setting: Setting) -> Report:
        return runs.about(name, some, setting)

    studies, others = [], dict[str, Report]()
    if plan.methods:
        studies.append(study := _methods_study(runs, name, samples, plan))
        known = methods_with(plan.baselines)
        ours = [known[word].label for word in OURS]
        others = {label: report for label, report in study.rows if report and label not in ours}
    if plan.known and (partial := partial_study(name, samples, plan.known, ask)):
        studies.append(partial)
    if counts := _shared(samples, plan.images_per_fit):
        studies.append(joint_study(name, samples, counts, ask, others))
    if plan.rig:
        alone = ask(mounted(samples), Setting())
        with runs.bar(f"{name}, rigs", alone.samples) as done:
            studies.append(rig_study(alone, runs.calibrator, done))
    if plan.initial:
        with runs.bar(f"{name}, starts", samples) as done:
            studies.append(
                starts_study(
                    runs.calibrator,
                    samples,
                    plan.initial,
                    plan.camera_model,
                    name=name,
                    done=done,
                )
            )
    if plan.descent:
        with runs.bar(f"{name}, steps", samples) as done:
            studies.append(
                descent_study(runs.calibrator, samples, plan.camera_model, name=name, done=done)
            )
    return studies


def _shared(samples: Sequence[Sample], counts: Sequence[int]) -> list[int]:
    """The numbers of images that some camera of the set took; none if that is one alone."""
    most = most_of_one_camera(samples) if counts else 0
    possible = [count for count in counts if count <= most]
    return possible if max(possible, default=1) > 1 else []


def _methods_study(runs: _Runs, name: str, samples: Sequence[Sample], plan: Plan) -> Study:
    """Each method by itself; of baselines it is said how they were trained, or why they are not
    there."""
    known = methods_with(plan.baselines)
    rows, notes = dict[str, Report | None](), []
    for word in plan.methods:
        method = known[word]
        if method.setting.prior != "none" and any(sample.panorama for sample in samples):
            # Nobody took these: their fields of view are drawn evenly.
            continue
        try:
            other = replace(runs, calibrator=method.of(runs.calibrator), method=word)
        except (WeightsError, MissingPackageError) as error:
            rows[f"{method.label} (no weights)"] = None
            notes.append(f"{MARK} {error}.")
            continue
        rows[method.label] = other.about(name, samples, method.setting)
        if word in BASELINES:
            notes.append(f"{MARK} {word}: {other.calibrator.card.description}.")
    made = {label: report for label, report in rows.items() if report is not None}
    seconds = {label: f"{r.seconds:.2f}" for label, r in made.items() if r.seconds is not None}
    kinds: tuple[str, ...] = ("roll", "pitch", "vfov")
    if made:
        kinds = with_pixels(kinds, next(iter(made.values())))
    return Study(
        f"{name}: methods",
        "method",
        tuple(rows.items()),
        kinds=kinds,
        quoted=quoted(name),
        beside={"CPU s / photo": seconds},
        notes=notes,
    )


def files_of(out: Path, names: Iterable[str]) -> list[Path]:
    """What ``run`` writes for sets of these names, as far as one can tell: more plots are those
    that exist."""
    files = [out / "report.md", out / PAGE]
    for name in names:
        files += [out / f"{name}.json", out / f"{name}.csv", *sorted(out.glob(f"{name}-*.png"))]
    return files


def _write(
    out: Path,
    reports: Sequence[Report],
    studies: dict[str, list[Study]],
    shown: Sequence[Table],
    plan: Plan,
) -> None:
    write_text(out / "report.md", tables.markdown(shown))
    pages = []
    for report in reports:
        file = out / f"{report.name}.json"
        tables.write_json(report, file, plan.split_by, studies[report.name])
        tables.write_csv(report, file.with_suffix(".csv"))
        plots = save_plots(report, out) | save_curves(studies[report.name], report.name, out)
        pages.append(SetPage(report, plots, worst_cases(report)))
    write_page(out / PAGE, shown, pages)


def calibrate(
    weights: Path,
    datasets: Sequence[Path],
    out: Path,
    focal_datasets: Sequence[Path] = (),
    description: str | None = None,
    device: str = "auto",
) -> WeightCard:
    """Write weights again with sigmas that are true on the sets, and return their card.

    focal_datasets: sets that tell another factor for the focal length; the larger one is taken.
    """
    _, card = read_weights(weights)
    calibrator = Calibrator(weights, device=device)
    factors = _factors(calibrator, datasets)
    if focal_datasets:
        others = _factors(calibrator, focal_datasets)
        if "focal" not in others:
            raise ConfigError("the focal sets hold too few photographs with a field of view")
        factors["focal"] = max(factors.get("focal", 0.0), others["focal"])
    return recalibrate(weights, factors, out, description or card.description)


def _factors(calibrator: Calibrates, datasets: Iterable[Path]) -> dict[str, float]:
    runs = _Runs(calibrator, None, None, {})
    sets = Plan(list(datasets)).read()
    reports = [runs.about(name, samples) for name, samples in sets.items()]
    return sigma_factors(pooled(deviations(r.samples, r.outcomes) for r in reports))
