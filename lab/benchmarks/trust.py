"""How often gravity, field of view and lens are trusted, and how far off they then are.

    python lab/benchmarks/trust.py gather FOLDER OUT.jsonl [--weights W] [--sets S ...] [--each N]
        [--focal]
    python lab/benchmarks/trust.py fit OUT.jsonl ... [--without KIND ...]
    python lab/benchmarks/trust.py report OUT.jsonl ... [--without KIND ...] [--plot PICTURE]

``gather`` calibrates the pictures of FOLDER with the default options and appends a record of each;
what is in OUT.jsonl already is not done again (--each: photographs of one owner, at most; --focal:
their focal length is told, as by EXIF data):

- phones/phones.csv: photographs with gravity by an accelerometer, and focal lengths;
- photos/photos.csv and photos/gravity.csv: ordinary photographs, some of them with gravity;
- real/SET/gt.csv: sets with ground truth;
- panos/val: panoramas, of which the views of ``lenses.py`` are rendered; they are no photographs,
  so no focal length is usual (``prior="none"``).

Every owner is in one of two halves for good. ``fit`` chooses ``FAR_OFF_WEIGHTS``,
``DOUBTFUL_CHANCE`` and ``DOUBTFUL_FOCAL`` of ``geocalib.result.trust`` on the first half, prints
them as they are to be written there, and what they would let pass of the second. ``report`` prints
what the gates let pass of the second half, how true the sigmas of all are by kind of picture, and
draws coverage against error. --without leaves kinds out that the weights have learnt from, such as
"phones train". How far answers are off by kind of lens and view is printed by ``kinds.py``.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from scipy.optimize import minimize

from geocalib import Calibration, Calibrator, Prior
from geocalib.cameras import Camera
from geocalib.geometry.gravity import angle_between, from_roll_pitch
from geocalib.pipeline.options import UsualPrior
from geocalib.result.trust import FAR_OFF_DEG, chance_far_off, doubts, gravity_traits, judged
from geocalib.result.uncertainty import EVERYTHING, Quantity
from lenses import border_angle_deg, rendered

Record = dict[str, Any]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

SETS = ("phones", "photos", "real", "panos")
STILL = 0.015
"""How far from 1 the length of an accelerometer's reading is, of phones that were held still."""
PHONE_ROLL_DEG, PHONE_PITCH_DEG = 0.5, 1.0
"""One sigma of an accelerometer's gravity."""
PHONE_DEG = math.hypot(PHONE_ROLL_DEG, PHONE_PITCH_DEG)
WITHIN_DEG = math.hypot(3.0, PHONE_DEG)
"""90% of those let in are to be within 3 degrees, and what labels are off themselves."""
RIDGE = 3.0
"""Pull of the slopes to 0, in inverse variances of the scaled traits."""
FAR_DEG, WORST_DEG, FAR_SIGMAS = 10.0, 15.0, 5.0
GATES = (
    "| what | kind | pictures | trusted | of these: median | 90% within | off by > 10 |\n"
    "|---|---|---|---|---|---|---|"
)
GRID = 9
"""Rays across a picture, along which lenses are compared."""


@dataclass(frozen=True)
class Truth:
    """What is known of a picture; None if unknown. Angles in degrees."""

    roll_deg: float | None = None
    pitch_deg: float | None = None
    vfov_deg: float | None = None
    """Between border rays."""
    model: str = "pinhole"
    f: float | None = None
    """Pixels, where model and distortion are known as well."""
    distortion: Sequence[float] = ()


@dataclass(frozen=True)
class Way:
    """How pictures are calibrated."""

    name: str
    lines: Literal["auto", "off"] = "auto"
    told: bool = False
    """Whether rendered views are told the family of their lens."""
    focal: bool = False
    """Whether photographs are told their focal length, as exactly as EXIF data does."""


DEFAULT = Way("default")
WITH_FOCAL = Way("focal", focal=True)
EXIF_SIGMA = 0.04
"""Of the logarithm of a focal length that is told."""

Picture = tuple[str, Path, str, Truth]
"""Its kind, its file, its owner and what is known of it."""


def gather(
    folder: Path,
    out: Path,
    calibrator: Calibrator,
    sets: Sequence[str] = SETS,
    each: int | None = None,
    way: Way = DEFAULT,
    views: Path | None = None,
) -> None:
    """Append the answers about all pictures that are not in OUT.jsonl yet. views: where those
    that are rendered lie, by default beside it."""
    if out.exists() and (text := out.read_text()) and not text.endswith("\n"):
        # A run was ended while it wrote its last line.
        out.write_text(text[: text.rfind("\n") + 1])
    asked = {"weights": calibrator.card.sha256, "way": way.name}
    noted, *records = [json.loads(line) for line in _lines(out)] or [asked]
    if noted != asked:
        raise SystemExit(f"{out} holds answers to another question ({noted})")
    done, count = {record["image"] for record in records}, Counter[tuple[str, str]]()
    with out.open("a") as file:
        if not records:
            file.write(json.dumps(asked) + "\n")
        for kind, image, owner, truth in _pictures(folder, views or out.parent / "views", sets):
            count[kind, owner] += 1
            enough = each is not None and kind.startswith("ph") and count[kind, owner] > each
            if enough or str(image) in done or not image.is_file():
                continue
            is_view = kind.startswith("crops")
            prior: UsualPrior = "none" if is_view or way.lines == "off" else "auto"
            model = truth.model if is_view and way.told else "auto"
            focal = None
            if way.focal and not is_view and truth.f is not None:
                focal = Prior(truth.f, EXIF_SIGMA * truth.f)
            (answer,) = calibrator.calibrate(
                [image], model, focal=focal, prior=prior, lines=way.lines
            )
            if not isinstance(answer, Calibration):
                continue
            by_numbers = {quantity for doubt in doubts(answer) for quantity in doubt.about}
            record = {
                "image": str(image),
                "kind": kind,
                "owner": owner,
                "truth": asdict(truth),
                "answer": answer.to_dict(),
                "focal_sigmas": 0.0 if answer.lines is None else answer.lines.focal_sigmas,
                "closed": [
                    name
                    for name in EVERYTHING
                    if not getattr(answer.trust, name) and name not in by_numbers
                ],
            }
            file.write(json.dumps(record) + "\n")
            file.flush()


def _pictures(folder: Path, views: Path, sets: Sequence[str]) -> Iterator[Picture]:
    if "phones" in sets:
        for row in _rows(folder / "phones" / "phones.csv"):
            yield _photograph("phones", folder / "phones", row, row)
    if "photos" in sets:
        gravity = {row["image"]: row for row in _rows(folder / "photos" / "gravity.csv")}
        for row in _rows(folder / "photos" / "photos.csv"):
            # Held-out photographs of unknown gravity as well.
            if row["image"] in gravity or row["image"].startswith("val/"):
                known = gravity.get(row["image"], {})
                yield _photograph("photos", folder / "photos", row, known)
    if "real" in sets:
        for table in sorted((folder / "real").glob("*/gt.csv")):
            kind = table.parent.name
            for row in _rows(table):
                angles = [float(row[name] or "nan") for name in ("roll_deg", "pitch_deg")]
                roll, pitch = (None if math.isnan(angle) else angle for angle in angles)
                vfov = float(row["vfov_deg"]) if row["vfov_deg"] else None
                bent = row["model"].startswith("opencv") or not row["fy"]
                truth = Truth(roll, pitch, vfov, f=None if bent else float(row["fy"]))
                yield kind, table.parent / "images" / row["image"], kind, truth
    if "panos" in sets:
        for view in rendered(folder / "panos" / "val", views):
            truth = Truth(
                view.roll_deg,
                view.pitch_deg,
                view.vfov_deg,
                view.true_model,
                view.f,
                view.distortion,
            )
            yield f"crops {view.kind}", Path(view.image), view.image, truth


def _photograph(kind: str, folder: Path, row: dict[str, str], gravity: dict[str, str]) -> Picture:
    roll = pitch = None
    still = abs(float(gravity.get("norm_g") or 0) - 1) <= STILL
    if still and gravity.get("trust", "1") == "1":
        roll, pitch = float(gravity["roll_deg"]), float(gravity["pitch_deg"])
    split, _, name = row["image"].partition("/")
    truth = Truth(roll, pitch, float(row["vfov_deg"]), f=float(row["focal"]))
    return f"{kind} {split}", folder / row["image"], name.partition("__")[0], truth


def _rows(table: Path) -> Iterator[dict[str, str]]:
    with table.open(newline="") as stream:
        yield from csv.DictReader(stream)


def _lines(path: Path) -> Iterator[str]:
    if path.exists():
        with path.open() as file:
            yield from file


@dataclass(frozen=True)
class Photo:
    """A picture with its answer and its errors in degrees; NaN if the truth is unknown."""

    kind: str
    first: bool
    """Whether its owner is of the half that rules are chosen on."""
    truth: Truth
    answer: Calibration
    off: dict[Quantity, float]
    """Of the lens, the median angle between its rays and the true ones."""
    in_sigmas: dict[str, float]
    log_f: float
    """By how much the logarithm of f is off, of lenses that hardly bend."""

    @classmethod
    def of(cls, record: Record) -> Photo:
        answer, truth = Calibration.from_dict(record["answer"]), Truth(**record["truth"])
        if answer.lines is not None:
            lines = replace(answer.lines, focal_sigmas=record["focal_sigmas"])
            answer = replace(answer, lines=lines)
        sigma, gravity, in_sigmas = answer.sigma, math.nan, dict[str, float]()
        if truth.roll_deg is not None and truth.pitch_deg is not None:
            down = np.asarray(from_roll_pitch(*np.radians([truth.roll_deg, truth.pitch_deg])))
            gravity = math.degrees(float(angle_between(np.asarray(answer.gravity), down)))
            roll = abs((answer.roll_deg - truth.roll_deg + 180) % 360 - 180)
            pitch = abs(answer.pitch_deg - truth.pitch_deg)
            by_phone = float(record["kind"].startswith(("phones", "photos")))
            for name, error, own, label in (
                ("roll", roll, sigma.roll_deg, PHONE_ROLL_DEG),
                ("pitch", pitch, sigma.pitch_deg, PHONE_PITCH_DEG),
                ("gravity", gravity, sigma.gravity_deg, PHONE_DEG),
            ):
                in_sigmas[name] = error / math.hypot(own, by_phone * label)
        fov = math.nan
        if truth.vfov_deg is not None:
            found = border_angle_deg(answer.cameras)
            fov = math.inf if math.isnan(found) else abs(found - truth.vfov_deg)
            in_sigmas["vFoV"] = fov / sigma.vfov_deg
        log_f, bends_little = math.nan, (truth.model, answer.camera_model)
        if truth.f is not None and set(bends_little) <= {"pinhole", "simple_radial"}:
            log_f = abs(math.log(answer.fy / truth.f))
            in_sigmas["log f"] = log_f / (sigma.focal / answer.fy)
        again = judged(answer, doubts(answer))
        closed = dict.fromkeys(record["closed"], False)
        again = replace(again, trust=replace(again.trust, **closed))
        first = zlib.crc32(record["owner"].encode()) % 2 == 0
        off: dict[Quantity, float] = {
            "gravity": gravity,
            "fov": fov,
            "lens": _rays_off(answer, truth),
        }
        return cls(record["kind"], first, truth, again, off, in_sigmas, log_f)

    @property
    def chance(self) -> float:
        """The chance that gravity is off by more than the limit."""
        return chance_far_off(self.answer)

    @property
    def focal_share(self) -> float:
        """The sigma of log f."""
        return self.answer.sigma.focal / self.answer.fy


def _rays_off(answer: Calibration, truth: Truth) -> float:
    """The median angle in degrees between rays of both, over a grid; NaN if nothing is known."""
    if truth.f is None:
        return math.nan
    size = (answer.width, answer.height)
    true = Camera.create(truth.model, truth.f, size, list(truth.distortion))
    across = (np.arange(GRID) + 0.5) / GRID
    grid = np.stack(np.meshgrid(across * size[0], across * size[1]), -1).reshape(1, -1, 2)
    known, valid = (np.asarray(each)[0] for each in true.unproject(grid))
    found, also = (np.asarray(each)[0] for each in answer.cameras.unproject(grid))
    both = valid & also
    cosines = (known * found).sum(1)[both]
    return float(np.degrees(np.median(np.arccos(np.clip(cosines, -1, 1))))) if both.any() else 180.0


def read(files: Sequence[Path], without: Sequence[str]) -> list[Photo]:
    every = [json.loads(line) for file in files for line in _lines(file)]
    return [Photo.of(each) for each in every if "kind" in each and each["kind"] not in without]


def _is_photograph(photo: Photo) -> bool:
    return photo.kind.startswith(("phones", "photos"))


def fit(read_again: Callable[[], list[Photo]]) -> None:
    """Print constants with which 90% of those let in are close, and what these let pass of the
    second half, beside what those of today do."""
    photos = [photo for photo in read_again() if _is_photograph(photo)]
    first = [photo for photo in photos if photo.first]
    known = [photo for photo in first if math.isfinite(photo.off["gravity"])]
    traits = np.array([gravity_traits(photo.answer) for photo in known])
    off = np.array([photo.off["gravity"] for photo in known])
    weights = _logistic(traits, off > FAR_OFF_DEG).round(2)
    chance = 1 / (1 + np.exp(-weights[0] - traits @ weights[1:]))
    found = {
        "FAR_OFF_WEIGHTS": tuple(weights.tolist()),
        "DOUBTFUL_CHANCE": round(_gate(chance, off, WITHIN_DEG), 2),
        "DOUBTFUL_FOCAL": round(
            _gate(
                np.array([photo.focal_share for photo in first]),
                np.array([photo.off["fov"] for photo in first]),
                FAR_DEG,
            ),
            3,
        ),
    }
    for name, value in found.items():
        print(f"{name} = {value}")
    print(GATES)
    again = found | {"DOUBTFUL_FOV_DEG": math.degrees(found["DOUBTFUL_FOCAL"])}
    with patch.multiple("geocalib.result.trust", **again):
        then = [photo for photo in read_again() if _is_photograph(photo)]
    for words, some in (("today", photos), ("then", then)):
        for quantity in EVERYTHING:
            print(_gate_row(quantity, f"{words}, second half", [p for p in some if not p.first]))


def _gate(doubt: Floats, off: Floats, limit: float) -> float:
    """The largest doubt up to which 90% are off by no more than a limit; at least a tenth are let
    in."""
    order = doubt.argsort(kind="stable")
    counts = np.arange(max(1, len(order) // 10), len(order) + 1)
    close = [count for count in counts if np.quantile(off[order[:count]], 0.9) <= limit]
    return float(doubt[order[max(close, default=counts[0]) - 1]])


def _logistic(traits: Floats, far: Bools) -> Floats:
    """The constant and the weights of a logistic regression, those of scaled traits pulled to 0."""
    mean, scale = traits.mean(0), traits.std(0)
    columns = np.column_stack([np.ones(len(traits)), (traits - mean) / scale])

    def cost(weights: Floats) -> tuple[float, Floats]:
        raised = columns @ weights
        pull = RIDGE * np.array([0.0, *weights[1:]])
        value = np.logaddexp(0, raised).sum() - raised[far].sum() + 0.5 * pull @ weights
        return value, columns.T @ (1 / (1 + np.exp(-raised)) - far) + pull

    found = minimize(cost, np.zeros(columns.shape[1]), jac=True).x
    slopes = found[1:] / scale
    return np.array([found[0] - slopes @ mean, *slopes])


def report(photos: Sequence[Photo], plot: Path | None) -> None:
    """Print what the gates let pass and how true sigmas are, and draw the curves."""
    kinds = list(dict.fromkeys(photo.kind for photo in photos))
    others = [p for p in photos if not p.first and _is_photograph(p)]
    print(GATES)
    for name in EVERYTHING:
        print(_gate_row(name, "photographs, second half", others))
        for kind in kinds:
            print(_gate_row(name, kind, [p for p in photos if p.kind == kind]))
    print()
    print("| kind | pictures | gravity | log f | vFoV | beyond 5 sigmas | trusted at > 15 |")
    print("|---|---|---|---|---|---|---|")
    for kind in kinds:
        print(_sigma_row(kind, [p for p in photos if p.kind == kind]))
    if plot is not None:
        _draw(plot, others)


def _gate_row(name: Quantity, kind: str, photos: Sequence[Photo]) -> str:
    known = [p for p in photos if math.isfinite(p.off[name])]
    off = np.array([p.off[name] for p in known])
    gate = np.array([getattr(p.answer.trust, name) for p in known], np.bool_)
    if not len(known):
        return f"| {name} | {kind} | 0 | | | | |"
    cells = f"| {name} | {kind} | {len(known)} | {gate.mean():.0%} |"
    if not gate.any():
        return f"{cells} | | |"
    low, high = np.quantile(off[gate], (0.5, 0.9))
    return f"{cells} {low:.1f} | {high:.1f} | {(off[gate] > FAR_DEG).mean():.1%} |"


def _sigma_row(kind: str, photos: Sequence[Photo]) -> str:
    """The 68% quantiles of errors in sigmas, 1 if these are true; the shares of gravity and log f
    beyond five; and how many trusted directions of gravity are off by more than 15 degrees."""
    cells, far = [kind, str(len(photos))], []
    for name in ("gravity", "log f", "vFoV"):
        errors = np.array([p.in_sigmas[name] for p in photos if name in p.in_sigmas])
        cells.append(f"{np.nanquantile(errors, 0.683):.2f}" if len(errors) else "")
        far += [f"{(errors > FAR_SIGMAS).mean():.0%}"] if len(errors) and name != "vFoV" else []
    cells.append(", ".join(far))
    cells.append(str(sum(p.off["gravity"] > WORST_DEG and p.answer.trust.gravity for p in photos)))
    return f"| {' | '.join(cells)} |"


def _draw(out: Path, photographs: Sequence[Photo]) -> None:
    """Coverage against error: answers are let in, the least doubted one first."""
    panels: list[tuple[str, Quantity, Callable[[Photo], float]]] = [
        ("gravity", "gravity", lambda p: p.chance),
        ("vertical field of view", "fov", lambda p: p.focal_share),
        ("lens: directions of rays", "lens", lambda p: p.focal_share),
    ]
    figure = Figure(figsize=(10, 3.2), layout="tight")
    for axes, (title, name, doubt) in zip(figure.subplots(1, 3), panels, strict=True):
        known = sorted((p for p in photographs if math.isfinite(p.off[name])), key=doubt)
        if len(known) < 10:
            continue
        off = np.array([p.off[name] for p in known])
        counts = np.arange(len(known) // 10, len(known) + 1)
        for share, style in ((0.5, "C0-"), (0.9, "C1-")):
            errors = [np.quantile(off[:count], share) for count in counts]
            axes.plot(100 * counts / len(known), errors, style, label=f"{share:.0%} within")
        gate = np.mean([getattr(p.answer.trust, name) for p in known])
        axes.axvline(100 * gate, color="grey", ls=":", label="the gate")
        axes.set(xlabel="let in, %", ylabel="degrees", title=title, yscale="symlog", ylim=(0, 60))
        axes.set_yticks([0, 1, 2, 5, 10, 20, 50], labels=["0", "1", "2", "5", "10", "20", "50"])
        axes.grid(alpha=0.3)
        axes.legend(loc="upper left")
    figure.savefig(out, dpi=90)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)
    gathering = commands.add_parser("gather")
    gathering.add_argument("folder", type=Path)
    gathering.add_argument("out", type=Path)
    gathering.add_argument("--weights", default="lean")
    gathering.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    gathering.add_argument("--each", type=int)
    gathering.add_argument("--focal", action="store_true")
    gathering.set_defaults(
        run=lambda o: gather(
            o.folder,
            o.out,
            Calibrator(o.weights),
            o.sets,
            o.each,
            WITH_FOCAL if o.focal else DEFAULT,
        )
    )
    fitting = commands.add_parser("fit")
    fitting.set_defaults(run=lambda o: fit(lambda: read(o.answers, o.without)))
    reporting = commands.add_parser("report")
    reporting.add_argument("--plot", type=Path)
    reporting.set_defaults(run=lambda o: report(read(o.answers, o.without), o.plot))
    for command in (fitting, reporting):
        command.add_argument("answers", type=Path, nargs="+")
        command.add_argument("--without", nargs="+", default=[], metavar="KIND")
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
