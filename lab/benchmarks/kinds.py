"""How far answers are off, by kind of lens and of view, beside what is aimed at.

    python lab/benchmarks/kinds.py FOLDER OUT [--weights W] [--views VIEWS] [--each N]

calibrates the pictures of FOLDER, laid out as ``trust.py`` says, in three ways: with the default
options (OUT/default.jsonl), by the network without lines and usual focal lengths
(OUT/network.jsonl), and with the family of the lens told (OUT/told.jsonl, of rendered views alone).
In the second, views are told theirs as well. What is there already is not done again. --views:
where rendered views lie, to share them between weights. Then it prints the errors, beside what is
aimed at, with how much CPU time choosing the lens of a phone's photograph takes; and those of the
default options for every kind of picture.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from geocalib import Calibrator, Camera
from geocalib.geometry.conventions import FULL_FRAME_DIAGONAL
from geocalib.geometry.gravity import from_roll_pitch
from geocalib_lab.evaluation.metrics import gravity_errors, k1_hat_error, pixel_distortion_error
from trust import DEFAULT, FAR_DEG, SETS, Photo, Way, gather, read

Floats = npt.NDArray[np.float64]
Value = Callable[[Photo], float]

NETWORK = Way("network", "off", told=True)
TOLD = Way("told", told=True)
WAYS = {DEFAULT: SETS, NETWORK: SETS, TOLD: ("panos",)}

REAL = ("tvpd", "strecha", "rotated", "euroc", "opencv_left", "tum_fr1", "castle_berlin", "drone")
"""Sets with ground truth."""
ULTRA_WIDE = 18.0
"""Longest 35 mm equivalent of an ultra-wide phone camera."""
TIMED, ROUNDS = 12, 3
"""Photographs of which the time is taken, and how often."""


def gravity(photo: Photo) -> float:
    return photo.off["gravity"]


def vfov(photo: Photo) -> float:
    return photo.off["fov"]


def angle(name: str) -> Value:
    """The error of roll or pitch."""

    def error(photo: Photo) -> float:
        truth = photo.truth
        if truth.roll_deg is None or truth.pitch_deg is None:
            return math.nan
        down = from_roll_pitch(*np.radians([truth.roll_deg, truth.pitch_deg]))
        return float(gravity_errors(photo.answer.gravity[None], down[None])[name].item())

    return error


def k1(photo: Photo) -> float:
    """The error of k1, of a lens whose family was told."""
    return abs(photo.answer.distortion[0] - photo.truth.distortion[0])


def k1_hat(photo: Photo) -> float:
    """The same in units of the image height."""
    return float(k1_hat_error(np.array(photo.answer.distortion), true_camera(photo)).item())


def pixels(photo: Photo) -> float:
    """The pixels by which it misplaces points, on average."""
    found = pixel_distortion_error(np.array(photo.answer.distortion), true_camera(photo))
    return float(found.item())


def true_camera(photo: Photo) -> Camera:
    truth, answer = photo.truth, photo.answer
    assert truth.f is not None
    return Camera.create(truth.model, truth.f, (answer.width, answer.height), truth.distortion)


def known(photos: Sequence[Photo], value: Value) -> Floats:
    """The errors of those whose truth is known; those without an answer are infinite."""
    values = np.array([value(photo) for photo in photos])
    return values[~np.isnan(values)]


def median(photos: Sequence[Photo], value: Value, digits: int = 2) -> str:
    values = known(photos, value)
    return f"{np.median(values):.{digits}f}" if len(values) else "-"


def far(photos: Sequence[Photo], value: Value) -> str:
    values = known(photos, value)
    return f"{np.mean(values > FAR_DEG):.0%}" if len(values) else "-"


def far_trusted(photos: Sequence[Photo], name: str, value: Value) -> str:
    """How many of those far off are trusted in it."""
    gates = [getattr(photo.answer.trust, name) for photo in photos if value(photo) > FAR_DEG]
    return f"{np.mean(gates):.0%}" if gates else "-"


def near(photos: Sequence[Photo], share: float) -> str:
    """How many focal lengths are off by at most that share of the true one."""
    off = [abs(each.answer.fy / each.truth.f - 1) for each in photos if each.truth.f is not None]
    return f"{np.mean(np.array(off) <= share):.0%}" if off else "-"


def equivalent(photo: Photo) -> float:
    """The 35 mm equivalent of a photograph, by its true focal length; NaN of other pictures."""
    if not photo.kind.startswith("ph") or photo.truth.f is None:
        return math.nan
    diagonal = math.hypot(photo.answer.width, photo.answer.height)
    return FULL_FRAME_DIAGONAL * photo.truth.f / diagonal


def rows(answers: dict[str, list[Photo]], cost: float) -> Iterator[tuple[str, str, str]]:
    """What is measured, what came out, and what it has to be at most or, of shares that are right,
    at least. answers: by way; cost: of choosing the lens."""

    def of(kind: str, way: Way = DEFAULT) -> list[Photo]:
        return [photo for photo in answers[way.name] if photo.kind == kind]

    def both(photos: Sequence[Photo]) -> str:
        return f"{median(photos, gravity)} / {median(photos, vfov)}"

    wide, steep = of("crops wide"), of("crops steep")
    yield (
        "wide views: vFoV; off by > 10; of these trusted",
        f"{median(wide, vfov)}; {far(wide, vfov)}; {far_trusted(wide, 'fov', vfov)}",
        "2.5; 12%; 20%",
    )
    told = of("crops wide", NETWORK)
    yield "the same, network, family told: vFoV", median(told, vfov), "5"
    wide_phones = [each for each in answers[DEFAULT.name] if equivalent(each) <= ULTRA_WIDE]
    yield "ultra-wide pinholes: vFoV", median(of("crops ultra"), vfov), "5"
    yield f"{len(wide_phones)} ultra-wide photographs: vFoV", median(wide_phones, vfov), "5"
    yield "steep views: gravity", median(steep, gravity), "3"
    phones = [each for each in of("phones val") if not math.isnan(gravity(each))]
    trusted = [each for each in phones if each.answer.trust.gravity]
    yield (
        "phones: gravity; off by > 10; of these trusted",
        f"{median(phones, gravity)}; {far(phones, gravity)}; "
        f"{far_trusted(phones, 'gravity', gravity)}",
        "1.8; 5%; 0.5%",
    )
    yield (
        "phones: gravity trusted; 90% of these within",
        f"{len(trusted) / max(1, len(phones)):.0%}; "
        f"{np.quantile([gravity(each) for each in trusted] or [math.nan], 0.9):.1f}",
        "75%; 4",
    )
    yield "ordinary crops: gravity / vFoV", both(of("crops ordinary")), "1.15 / 2.1"
    yield "the same, network", both(of("crops ordinary", NETWORK)), "2.0 / 4.5"
    for name, way in (("lens told", TOLD), ("the same, network", NETWORK)):
        radial = of("crops radial", way)
        errors = "; ".join(median(radial, by, 3) for by in (k1, k1_hat, pixels))
        yield f"radial crops, {name}: k1; k1 (H/f)²; pixels", errors, "0.016; -; -"
    for name in REAL:
        for way in (DEFAULT, NETWORK):
            some = of(name, way)
            errors = " / ".join(
                median(some, each) for each in (angle("roll"), angle("pitch"), vfov)
            )
            yield f"{name}, {way.name}: roll / pitch / vFoV", errors, "-"
    photos = of("photos val")
    yield (
        "photographs: vFoV; f within 25%; 50%",
        f"{median(photos, vfov)}; {near(photos, 0.25)}; {near(photos, 0.5)}",
        "6.8; 62%; 87%",
    )
    yield "time of the default over that of `pinhole`", f"{cost:.2f}", "1.25"


def kinds(photos: Sequence[Photo]) -> Iterator[tuple[str, ...]]:
    """Of every kind of picture: its name, how many there are, how far gravity and fields of view
    are off, how many by more than 10 degrees, and how many of these are trusted."""
    for kind in dict.fromkeys(photo.kind for photo in photos):
        some = [photo for photo in photos if photo.kind == kind]
        cells = [
            cell
            for name, value in (("gravity", gravity), ("fov", vfov))
            for cell in (median(some, value), far(some, value), far_trusted(some, name, value))
        ]
        yield kind, str(len(some)), *cells


def show(header: str, every: Iterable[tuple[str, ...]]) -> None:
    """Print a table in Markdown."""
    columns = header.split("; ")
    for cells in (columns, ["---"] * len(columns), *every):
        print(f"| {' | '.join(cells)} |")
    print()


def cost_of_choosing(calibrator: Calibrator, photos: Sequence[Photo]) -> float:
    """CPU time with the default camera model over that of a pinhole. Each photograph counts by its
    quickest round, as others slow a machine down at times."""
    images = [photo.answer.image for photo in photos[:: max(1, len(photos) // TIMED)]][:TIMED]
    models = ("auto", "pinhole")
    spent = np.full((ROUNDS + 1, len(images), len(models)), math.nan)
    for run in range(len(spent)):
        for place, image in enumerate(images):
            for which, model in enumerate(models):
                start = time.process_time()
                calibrator.calibrate(image, model)
                spent[run, place, which] = time.process_time() - start
    # The first round warms up.
    chosen, named = spent[1:].min(0).sum(0)
    return float(chosen / named)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--weights", default="lean")
    parser.add_argument("--views", type=Path)
    parser.add_argument("--each", type=int, help="photographs of one owner, at most")
    options = parser.parse_args()
    calibrator, answers = Calibrator(options.weights), dict[str, list[Photo]]()
    views = options.views or options.out / "views"
    options.out.mkdir(parents=True, exist_ok=True)
    for way, sets in WAYS.items():
        file = options.out / f"{way.name}.jsonl"
        gather(options.folder, file, calibrator, sets, options.each, way, views)
        answers[way.name] = read([file], ())
    every = answers[DEFAULT.name]
    cost = cost_of_choosing(calibrator, [each for each in every if each.kind == "phones val"])
    show("what; found; aim", rows(answers, cost))
    gates = "> 10; of these trusted"
    show(f"kind; pictures; gravity; {gates}; vFoV; {gates}", kinds(every))


if __name__ == "__main__":
    main()
