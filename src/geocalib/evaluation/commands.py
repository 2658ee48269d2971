"""What ``python -m geocalib.evaluation`` does, for any command line to call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from geocalib.calibrator import Calibrator
from geocalib.cli.report import progress
from geocalib.errors import ConfigError
from geocalib.evaluation import tables
from geocalib.evaluation.crops import find_panoramas, render_crops
from geocalib.evaluation.datasets import dataset_name, read_dataset
from geocalib.evaluation.plots import save_plots
from geocalib.evaluation.run import Calibrates, Report, evaluate, leak
from geocalib.evaluation.uncertainty import deviations, pooled, recalibrate, sigma_factors
from geocalib.nets.weights import WeightCard, read_weights


def evaluate_all(
    calibrator: Calibrates,
    datasets: Iterable[Path],
    camera_model: str | None = None,
    blur: int | None = None,
) -> list[Report]:
    """A report for each folder or table; all of them are read before the first is evaluated."""
    sets = [(dataset_name(path), read_dataset(path)) for path in datasets]
    names = [name for name, _ in sets]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ConfigError(f"two sets are called {twice}; evaluate them one by one")
    reports = []
    for name, samples in sets:
        with progress(len(samples), name) as done:
            reports.append(
                evaluate(calibrator, samples, camera_model, name=name, blur=blur, done=done)
            )
    return reports


def run(
    datasets: Sequence[Path],
    weights: str = "lean",
    camera_model: str | None = None,
    blur: int | None = None,
    out: Path | None = None,
    device: str = "auto",
) -> str:
    """Evaluate weights on sets and return tables in Markdown.

    blur: also with so many pixels of detail across, for how far the field of view moves. out: a
    folder for the tables and, of every set, JSON, CSV and plots.
    """
    calibrator = Calibrator(weights, device=device)
    reports = evaluate_all(calibrator, datasets, camera_model)
    text = tables.markdown(reports)
    if blur is not None:
        soft = evaluate_all(calibrator, datasets, camera_model, blur)
        moved = [(a, blur, leak(a, b)) for a, b in zip(reports, soft, strict=True)]
        text += "\n" + tables.leak_markdown(moved)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / "report.md").write_text(text, encoding="utf-8")
        for report in reports:
            tables.write_json(report, out / f"{report.name}.json")
            tables.write_csv(report, out / f"{report.name}.csv")
            save_plots(report, out)
    return text


def crops(
    panoramas: Path,
    out: Path,
    per_panorama: int,
    size: int,
    distorted: bool,
    seed: int,
) -> Path:
    """Cut photographs out of a folder of panoramas and return their table."""
    if per_panorama < 1 or size < 1:
        raise ConfigError(f"there are no {per_panorama} crops of {size} pixels; give 1 or more")
    with progress(len(find_panoramas(panoramas)), "panoramas") as done:
        return render_crops(
            panoramas,
            out,
            per_panorama=per_panorama,
            size=size,
            distorted_share=float(distorted),
            seed=seed,
            done=done,
        )


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
    reports = evaluate_all(calibrator, datasets)
    return sigma_factors(pooled(deviations(r.samples, r.outcomes) for r in reports))
