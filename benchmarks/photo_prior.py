"""The prior of photographs: its numbers from training photos, and what it gives on others.

python benchmarks/photo_prior.py fit PHOTOS.csv
python benchmarks/photo_prior.py measure PHOTOS.csv [--weights large] [--held] [--lines auto]

fit: two normal parts and a fixed wide one of the log of the 35 mm equivalents of the photos of the
folder train, separately for upright and lying ones; every owner counts alike.
measure: the photos of the folder val (or, --held, of those owners of the folder train that no
network has learnt from), EXIF ignored, with prior="none" and "photos"; how many have their focal
length within one sigma, how sigmas rank the errors, and how many of those off by more than 10
degrees, and of those within 5, carry a warning of the field of view.
"""

from __future__ import annotations

import argparse
import csv
import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import numpy as np
import numpy.typing as npt
from scipy.stats import spearmanr

from geocalib import Calibrator
from geocalib.geometry.conventions import FULL_FRAME_DIAGONAL
from geocalib.priors.photos import WIDE_TAIL, Part
from geocalib.result.trust import doubts
from geocalib.training.owners import among
from geocalib.training.photos import PhotoConfig, owner_of

Photo = dict[str, str]
ROUNDS = 500
STARTS = (Part(0.55, 27.0, 0.15), Part(0.35, 55.0, 0.4))
CONSTANT = 29.0
"""Millimetres: the answer of one who does not look."""


def of(table: Path, folder: str) -> list[Photo]:
    return [p for p in csv.DictReader(table.open()) if p["image"].startswith(f"{folder}/")]


def owner(photo: Photo) -> str:
    return photo["source"].partition("/")[0]


def fit(photos: Sequence[Photo]) -> None:
    counts = Counter(map(owner, photos))
    for name, upright in (("LYING", False), ("UPRIGHT", True)):
        chosen = [p for p in photos if (int(p["height"]) > int(p["width"])) == upright]
        log_mm = np.log([float(p["f35"]) for p in chosen])
        weight = np.array([1 / counts[owner(p)] for p in chosen])
        parts = expectation_maximisation(log_mm, weight / weight.sum())
        told = ", ".join(f"Part({p.share:.3f}, {p.millimetres:.1f}, {p.sigma:.3f})" for p in parts)
        print(f"{name} = ({told}, WIDE_TAIL)  # {len(chosen)} photos")


def expectation_maximisation(
    log_mm: npt.NDArray[np.float64], weight: npt.NDArray[np.float64]
) -> list[Part]:
    parts = list(STARTS)
    for _ in range(ROUNDS):
        density = np.stack([_density(part, log_mm) for part in (*parts, WIDE_TAIL)])
        share = (density / density.sum(0) * weight)[:-1]
        mean = (share @ log_mm) / share.sum(1)
        spread = np.sqrt((share * (log_mm - mean[:, None]) ** 2).sum(1) / share.sum(1))
        total = share.sum(1) / share.sum() * (1 - WIDE_TAIL.share)
        parts = [Part(*values) for values in zip(total, np.exp(mean), spread, strict=True)]
    return parts


def _density(part: Part, log_mm: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    off = (log_mm - math.log(part.millimetres)) / part.sigma
    return np.asarray(part.share / part.sigma * np.exp(-0.5 * off**2))


def held_out(table: Path) -> list[Photo]:
    """Training photos of the owners that configs/opinion.toml does not learn from."""
    learnt = among(PhotoConfig.owners)
    return [photo for photo in of(table, "train") if not learnt(owner_of(photo["image"]))]


def measure(photos: Sequence[Photo], folder: Path, lines: str, weights: str) -> None:
    calibrator = Calibrator(weights, device="cpu")
    found: dict[str, list[float]] = defaultdict(list)
    sigmas: dict[str, list[float]] = defaultdict(list)
    warned: dict[str, list[bool]] = defaultdict(list)
    for photo in photos:
        size = int(photo["width"]), int(photo["height"])
        found["29 mm"].append(CONSTANT * math.hypot(*size) / FULL_FRAME_DIAGONAL)
        for prior in ("none", "photos"):
            answer = calibrator.calibrate(
                folder / photo["image"],
                exif=False,
                lines=lines,  # type: ignore[arg-type]
                prior=prior,  # type: ignore[arg-type]
            )
            found[prior].append(answer.fy)
            sigmas[prior].append(answer.sigma.focal / answer.fy)
            warned[prior].append(any("field of view" in doubt for doubt in doubts(answer)))
    print(f"\n{len(photos)} photos, {weights}, lines {lines}\n")
    print(
        "| prior | vFoV, median | median of owners | beyond 10 | f within 25%, 50% | 1 sigma "
        "| rank | warned: beyond 10, within 5 |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, focals in found.items():
        errors, ratios, by_owner = [], [], defaultdict(list)
        for photo, focal in zip(photos, focals, strict=True):
            true, height = float(photo["focal"]), int(photo["height"])
            views = [2 * math.degrees(math.atan(0.5 * height / f)) for f in (focal, true)]
            errors.append(abs(views[0] - views[1]))
            by_owner[owner(photo)].append(errors[-1])
            ratios.append(focal / true)
        near = [100 * np.mean([abs(r - 1) < share for r in ratios]) for share in (0.25, 0.5)]
        sure = [abs(math.log(r)) < s for r, s in zip(ratios, sigmas[name], strict=False)]
        held = f"{100 * np.mean(sure):.0f}% | {ranked(ratios, sigmas[name])} " if sure else "| "
        told = np.array(warned[name] or [False] * len(errors))
        off = np.array(errors)
        shares = [100 * np.mean(told[part]) for part in (off > 10, off < 5)]
        owners = median(median(values) for values in by_owner.values())
        beyond = 100 * np.mean([error > 10 for error in errors])
        print(
            f"| {name} | {median(errors):.2f} | {owners:.2f} | {beyond:.0f}% "
            f"| {near[0]:.0f}%, {near[1]:.0f}% | {held}| {shares[0]:.0f}%, {shares[1]:.0f}% |"
        )


def ranked(ratios: Sequence[float], sigmas: Sequence[float]) -> str:
    """Spearman's correlation of errors of log f and their sigmas."""
    return f"{spearmanr(np.abs(np.log(ratios)), sigmas).statistic:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=("fit", "measure"))
    parser.add_argument("photos", type=Path)
    parser.add_argument("--weights", default="lean")
    parser.add_argument("--held", action="store_true")
    parser.add_argument("--lines", choices=("off", "auto"), default="off")
    given = parser.parse_args()
    if given.part == "fit":
        fit(of(given.photos, "train"))
    else:
        photos = held_out(given.photos) if given.held else of(given.photos, "val")
        measure(photos, given.photos.parent, given.lines, given.weights)


if __name__ == "__main__":
    main()
