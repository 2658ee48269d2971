"""How good EXIF focal lengths are, and what to do where a picture contradicts them.

python lab/benchmarks/exif.py cameras PHOTOS.csv [--calibrated TVPD/gt.csv]
python lab/benchmarks/exif.py crops PHOTOS.csv [--every N]

cameras: what cameras wrote as 35 mm equivalents (columns model, lens and f35 of a table of
photographs) against their lens and sensor, and against a calibrated iPad Air.
crops: photographs of the folder val as they are, and cut by 1.7 on all sides with the EXIF data of
the whole: what becomes of the field of view if EXIF is never, always, or sometimes believed.
"""

from __future__ import annotations

import argparse
import csv
import math
import re
from collections import Counter, defaultdict
from pathlib import Path
from statistics import median

from PIL import Image

from geocalib import Calibrator
from geocalib.geometry.conventions import FULL_FRAME_DIAGONAL
from geocalib.priors.exif import FocalReading, focal_reading
from geocalib.priors.judge import believed, focal_check
from geocalib.priors.sizes import SENSORS
from geocalib.result.evidence import PriorCheck

EQUIVALENT = 0xA405
PITCHES = {
    "iPhone 5s": 1.5 * 3264,
    "iPhone 6": 1.5 * 3264,
    "iPhone 6s": 1.22 * 4032,
    "iPhone 7": 1.22 * 4032,
    "iPhone 8": 1.22 * 4032,
    "iPhone XR": 1.4 * 4032,
    "iPhone 11 Pro": 1.4 * 4032,
    "iPhone 12": 1.4 * 4032,
    "iPhone 13 Pro Max": 1.9 * 4032,
    "iPhone 15 Pro": 2.44 * 4032,
    "iPhone 16": 2.0 * 4032,
    "iPhone 16 Pro": 2.44 * 4032,
}
"""Micrometres across the main sensor, 4:3: the pitch of its pixels as announced, times their
number."""
KIT_LENS, KIT_EQUIVALENT = 18.0, 27.0
"""Millimetres: the short end of most lenses for sensors of half the size of film."""
FEWEST = 5
"""Photographs of a camera in the table."""
CUT = 1.7
POLICIES = ("never", "always", "up to 3 sigma", "if likelier right")


def row(*cells: object) -> None:
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def header(*cells: str) -> None:
    print()
    row(*cells)
    row(*["---"] * len(cells))


def cameras(table: Path, calibrated: Path | None) -> None:
    by_lens: dict[tuple[str, float], list[float]] = defaultdict(list)
    by_model: dict[str, list[float]] = defaultdict(list)
    for photo in csv.DictReader(table.open()):
        by_model[photo["model"]].append(float(photo["f35"]))
        if lens := re.search(r"([\d.]+)mm f/", photo["lens"]):
            by_lens[photo["model"], float(lens[1])].append(float(photo["f35"]))
    header("camera", "photos", "lens, mm", "written", "by the diagonal", "written / true")
    for (model, lens_mm), written in sorted(by_lens.items()):
        usual, count = Counter(written).most_common(1)[0]
        across = PITCHES.get(model)
        if across is None or count < FEWEST:
            continue
        true = lens_mm / (1.25e-3 * across) * FULL_FRAME_DIAGONAL
        if abs(math.log(usual / true)) < 0.2:  # The main lens of several.
            row(model, count, lens_mm, usual, f"{true:.1f}", f"{usual / true - 1:+.1%}")
    for model, written in sorted(by_model.items()):
        if model in SENSORS and written.count(KIT_EQUIVALENT) >= FEWEST:
            true = KIT_LENS * FULL_FRAME_DIAGONAL / math.hypot(*SENSORS[model])
            error = f"{KIT_EQUIVALENT / true - 1:+.1%}"
            count = written.count(KIT_EQUIVALENT)
            row(model, count, KIT_LENS, KIT_EQUIVALENT, f"{true:.1f}", error)
    zoomed = [f35 for (model, _), values in by_lens.items() if model in PITCHES for f35 in values]
    print(f"\n{len(zoomed)} photos of these phones have {len(set(zoomed))} different equivalents")
    if calibrated is not None:
        truth = next(csv.DictReader(calibrated.open()))
        size = int(truth["width"]), int(truth["height"])
        hint, _ = focal_reading({EQUIVALENT: 32}, size)
        assert hint is not None
        off = float(truth["fy"]) / hint.focal_px - 1
        diagonal = 32 / FULL_FRAME_DIAGONAL * math.hypot(*size)
        print(
            f"\niPad Air, 32 mm, video of {size[0]}x{size[1]}: calibrated {float(truth['fy']):.0f}"
            f" px, {off:+.1%} of the hint of {hint.focal_px:.0f} ± {hint.sigma_px:.0f}; "
            f"{float(truth['fy']) / diagonal - 1:+.1%} of what the diagonal of the video gives"
        )


def crops(table: Path, every: int) -> None:
    photos = [p for p in csv.DictReader(table.open()) if p["image"].startswith("val/")][::every]
    calibrator = Calibrator(device="cpu")
    header("photos", "EXIF is believed", "left out", "vFoV, median error", "beyond 10 degrees")
    for name, cut in (("as they are", 1.0), (f"cut by {CUT}", CUT)):
        errors: dict[str, list[float]] = {policy: [] for policy in POLICIES}
        left_out: Counter[str] = Counter()
        for photo in photos:
            picture = Image.open(table.parent / photo["image"]).convert("RGB")
            width, height = (round(side / cut) for side in picture.size)
            left, top = (picture.width - width) // 2, (picture.height - height) // 2
            part = picture.crop((left, top, left + width, top + height))
            seen = calibrator.calibrate(part, "pinhole", prior="none")
            true = float(photo["focal"])
            hint, _ = focal_reading({EQUIVALENT: float(photo["f35"])}, (width, height))
            if hint is None:
                continue
            check = focal_check(hint, seen.fy, seen.sigma.focal)
            for policy in POLICIES:
                used = _used(policy, check)
                left_out[policy] += not used
                focal = _both(hint, check) if used else seen.fy
                views = [2 * math.atan(0.5 * height / f) for f in (focal, true)]
                errors[policy].append(abs(math.degrees(views[0] - views[1])))
        for policy, found in errors.items():
            large = sum(error > 10 for error in found) / len(found)
            share = left_out[policy] / len(found)
            row(name, policy, f"{share:.1%}", f"{median(found):.2f}", f"{large:.1%}")


def _used(policy: str, check: PriorCheck) -> bool:
    if policy == "up to 3 sigma":
        return not check.contradicts
    return believed(check) if policy == "if likelier right" else policy == "always"


def _both(hint: FocalReading, check: PriorCheck) -> float:
    """Weighed by their sigmas, as the fit does."""
    by_tag, by_picture = hint.relative**-2, (check.estimate[0] / check.estimate_sigma) ** 2
    step = math.log(check.estimate[0] / hint.focal_px) * by_picture / (by_picture + by_tag)
    return hint.focal_px * math.exp(step)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=("cameras", "crops"))
    parser.add_argument("photos", type=Path)
    parser.add_argument("--calibrated", type=Path)
    parser.add_argument("--every", type=int, default=1)
    given = parser.parse_args()
    if given.part == "cameras":
        cameras(given.photos, given.calibrated)
    else:
        crops(given.photos, given.every)


if __name__ == "__main__":
    main()
