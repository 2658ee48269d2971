"""The prior of photographs: its numbers from training photos, and what it gives on others.

python lab/benchmarks/photo_prior.py fit PHOTOS.csv
python lab/benchmarks/photo_prior.py measure PHOTOS.csv [--weights large] [--held] [--lines auto]

fit: two normal parts and a fixed wide one of the log of the 35 mm equivalents of the photos of the
folder train, separately for each shape, upright and lying; every owner counts alike. Also how
likely photos of other owners are (mean log density; of each sixth of train by the others, and of
val by train), by such mixtures, by one for each shape, for each way to hold a camera, and for all.
measure: the photos of the folder val (or, --held, of those owners of the folder train that no
network has learnt from), EXIF ignored, with prior="none" and "photos"; how many have their focal
length within one sigma, how sigmas rank the errors, and how many of those off by more than 10
degrees, and of those within 5, carry a warning of the field of view.
"""

from __future__ import annotations

import argparse
import csv
import math
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

import numpy as np
import numpy.typing as npt
from scipy.stats import spearmanr

from geocalib import Calibrator
from geocalib.geometry.conventions import FULL_FRAME_DIAGONAL
from geocalib.priors.photos import BY_SHAPE, WIDE_TAIL, FocalComponent, shape_prior
from geocalib.result.trust import doubts
from geocalib_lab.training.owners import among
from geocalib_lab.training.photos import PhotoConfig, owner_of

Photo = dict[str, str]
ROUNDS = 500
STARTS = (FocalComponent(0.55, 27.0, 0.15), FocalComponent(0.35, 55.0, 0.4))
LEAST_SIGMA = 0.1
"""No part is narrower: lenses of few owners would be taken for everybody's."""
PARTS = 6
"""Parts of the owners, each evaluated with the constants of the others."""
CONSTANT = 29.0
"""Millimetres: the answer of one who does not look."""


def of(table: Path, folder: str) -> list[Photo]:
    return [p for p in csv.DictReader(table.open()) if p["image"].startswith(f"{folder}/")]


def owner(photo: Photo) -> str:
    return photo["source"].partition("/")[0]


def fit(photos: Sequence[Photo], others: Sequence[Photo]) -> None:
    for name, parts in mixtures(photos, by_both).items():
        shown = ", ".join(f"Part({p.share:.3f}, {p.millimetres:.1f}, {p.sigma:.3f})" for p in parts)
        print(f"{name}: ({shown}, WIDE_TAIL)  # {sum(by_both(p) == name for p in photos)}")
    groups = [
        [photo for photo in photos if zlib.crc32(owner(photo).encode()) % PARTS == part]
        for part in range(PARTS)
    ]
    print("\n| mixtures by | other owners of train | val |\n| --- | --- | --- |")
    for kinds in (by_both, by_shape, by_side, by_nothing):
        scores = []
        for group in groups:
            rest = [photo for photo in photos if photo not in group]
            scores.append(likelihood(group, mixtures(rest, kinds), kinds))
        last = likelihood(others, mixtures(photos, kinds), kinds)
        print(f"| {kinds.__name__[3:]} | {np.mean(scores):.2f} | {last:.2f} |")


def by_nothing(photo: Photo) -> str:
    return "all"


def by_side(photo: Photo) -> str:
    return "upright" if int(photo["height"]) > int(photo["width"]) else "lying"


def by_shape(photo: Photo) -> str:
    known = shape_prior(int(photo["width"]), int(photo["height"]))
    return next((f"{shape:.2f}" for shape, other in BY_SHAPE.items() if other is known), "others")


def by_both(photo: Photo) -> str:
    return f"{by_shape(photo)} {by_side(photo)}"


def mixtures(
    photos: Sequence[Photo], kinds: Callable[[Photo], str]
) -> dict[str, list[FocalComponent]]:
    counts = Counter(map(owner, photos))
    found = {}
    for kind in sorted(set(map(kinds, photos))):
        chosen = [photo for photo in photos if kinds(photo) == kind]
        weight = np.array([1 / counts[owner(photo)] for photo in chosen])
        log_mm = np.log([float(photo["f35"]) for photo in chosen])
        found[kind] = expectation_maximisation(log_mm, weight / weight.sum())
    return found


def likelihood(
    photos: Sequence[Photo], known: dict[str, list[FocalComponent]], kinds: Callable[[Photo], str]
) -> float:
    """Mean log density of the log of equivalents; owners count by the root of their photos."""
    counts = Counter(map(owner, photos))
    logs, weights = [], []
    for photo in photos:
        at = np.log([float(photo["f35"])])
        density = sum(_density(part, at)[0] for part in (*known[kinds(photo)], WIDE_TAIL))
        logs.append(math.log(density / math.sqrt(2 * math.pi)))
        weights.append(counts[owner(photo)] ** -0.5)
    return float(np.average(logs, weights=weights))


def expectation_maximisation(
    log_mm: npt.NDArray[np.float64], weight: npt.NDArray[np.float64]
) -> list[FocalComponent]:
    parts = list(STARTS)
    for _ in range(ROUNDS):
        density = np.stack([_density(part, log_mm) for part in (*parts, WIDE_TAIL)])
        share = (density / density.sum(0) * weight)[:-1]
        mean = (share @ log_mm) / share.sum(1)
        spread = np.sqrt((share * (log_mm - mean[:, None]) ** 2).sum(1) / share.sum(1))
        total = share.sum(1) / share.sum() * (1 - WIDE_TAIL.share)
        spread = np.maximum(spread, LEAST_SIGMA)
        parts = [
            FocalComponent(*values) for values in zip(total, np.exp(mean), spread, strict=True)
        ]
    return parts


def _density(part: FocalComponent, log_mm: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
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
                "pinhole",
                exif=False,
                lines=lines,  # type: ignore[arg-type]
                prior=prior,  # type: ignore[arg-type]
            )
            found[prior].append(answer.fy)
            sigmas[prior].append(answer.sigma.focal / answer.fy)
            warned[prior].append(any("fov" in doubt.about for doubt in doubts(answer)))
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
        flagged = np.array(warned[name] or [False] * len(errors))
        off = np.array(errors)
        shares = [100 * np.mean(flagged[part]) for part in (off > 10, off < 5)]
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
        fit(of(given.photos, "train"), of(given.photos, "val"))
    else:
        photos = held_out(given.photos) if given.held else of(given.photos, "val")
        measure(photos, given.photos.parent, given.lines, given.weights)


if __name__ == "__main__":
    main()
