"""Every lens and every view: how far answers are off by kind of lens and view, and whether
they say so.

    python lab/benchmarks/lenses.py --panoramas ~/panos/val --phones ~/phones --photos ~/photos \
        --weights lean --camera-model auto [--network]

Views are rendered from panoramas: wide ones (equidistant, unified, Kannala-Brandt and pinhole),
ultra-wide pinholes, steep ones, ordinary ones, and ones with radial distortion; they are kept in
``--pictures`` and rendered once. Phones and photographs are tables with accelerometer gravity and
focal lengths by EXIF. Fields of view are angles between border rays.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import random
import sys
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from PIL import Image

from geocalib import Calibrator
from geocalib.cameras import Camera
from geocalib.geometry.gravity import from_roll_pitch, world_from_camera
from geocalib.result.calibration import Calibration, Outcome
from geocalib_lab.panoramas.holes import MOST_BLACK, black_share
from geocalib_lab.panoramas.panorama import PanoramaBank, render
from geocalib_lab.panoramas.pictures import find_panoramas, read_panorama

SIZES = ((640, 480), (480, 640), (640, 640), (768, 432))
FAR_OFF_DEG = 10.0


@dataclass(frozen=True)
class Kind:
    """Views of one kind: how many, and from where to where each number is drawn, in degrees."""

    name: str
    count: int
    models: tuple[str, ...]
    hfov_deg: tuple[float, float]
    pitch_deg: tuple[float, float] = (-30.0, 30.0)
    roll_deg: float = 30.0
    both_ways: bool = False
    """Whether half of the pitches have the other sign."""


KINDS = (
    Kind("wide", 55, ("equidistant", "ucm", "kannala_brandt", "ucm", "wide_pinhole"), (90, 180)),
    Kind("ultra", 40, ("pinhole",), (80, 115)),
    Kind("steep", 40, ("pinhole",), (45, 80), (50, 80), 20, both_ways=True),
    Kind("ordinary", 60, ("pinhole",), (20, 105), (-45, 45), 45),
    Kind("radial", 40, ("simple_radial",), (30, 100), (-45, 45), 45),
)
WIDEST_PINHOLE_DEG = 120.0
"""Largest field of view of the wide views, degrees."""
TURNS = 20
"""Most attempts to cut views from each panorama."""


@dataclass(frozen=True)
class Truth:
    """A picture, and what is known of it. Angles in degrees; None if unknown."""

    image: str
    kind: str
    model: str
    vfov_deg: float
    """Between border rays."""
    roll_deg: float | None = None
    pitch_deg: float | None = None
    f: float = math.nan
    """Pixels; as the model has it."""
    distortion: tuple[float, ...] = ()

    @property
    def true_model(self) -> str:
        """The name of the family that a caller who knows it would give."""
        if self.model in ("equidistant", "kannala_brandt"):
            return "kannala_brandt"
        return self.model if self.model in ("ucm", "simple_radial") else "pinhole"


def draw_camera(model: str, hfov_deg: float, size: tuple[int, int], dice: random.Random) -> Camera:
    """A camera of that field of view across the longer side."""
    half, longest = math.radians(hfov_deg) / 2, max(size) / 2
    if model == "ucm":
        # A mirror or lens of alpha sees no further than where its rays turn back.
        name, distortion = "ucm", [dice.uniform(0.3, 0.75)]
    elif model in ("equidistant", "kannala_brandt"):
        scale = float(model == "kannala_brandt")
        name = "kannala_brandt"
        distortion = [scale * dice.uniform(-0.04, 0.06), scale * dice.uniform(-0.006, 0.006), 0, 0]
    elif model == "simple_radial":
        bend = 1.0
        while abs(bend) > 0.3:
            bend = dice.gauss(0, 0.07)
        f = longest / math.tan(half)
        return Camera.create(
            "simple_radial", f, size, [bend * (f / size[1]) ** 2], dtype=torch.float64
        )
    else:
        name, distortion = "pinhole", []
    unit = Camera.create(name, 1.0, (2, 2), distortion, dtype=torch.float64)
    at, valid = unit.project(torch.tensor([[[math.sin(half), 0.0, math.cos(half)]]]).double())
    if not bool(valid.all()):
        return draw_camera(model, hfov_deg - 5, size, dice)
    return Camera.create(
        name, longest / (at[0, 0, 0].item() - 1), size, distortion, dtype=torch.float64
    )


def border_angle_deg(camera: Camera, axis: int = 1) -> float:
    """Between the rays of opposite border middles; NaN where one has none."""
    rays, valid = camera.unproject(camera.border_middles(axis))
    first, last = np.asarray(rays)[0]
    if not bool(np.asarray(valid).all()):
        return math.nan
    angle = math.acos(float(np.clip(first @ last, -1, 1)))
    beyond = math.acos(first[2]) + math.acos(last[2]) > math.pi
    return math.degrees(2 * math.pi - angle if beyond else angle)


def draw_view(kind: Kind, number: int, bank: PanoramaBank, path: Path) -> Truth | None:
    """Render a view and write it; None if it shows where the panorama is black."""
    dice = random.Random(zlib.crc32(f"{kind.name} {number} {bank.names[0]}".encode()))
    model, size = kind.models[number % len(kind.models)], SIZES[dice.randrange(len(SIZES))]
    widest = WIDEST_PINHOLE_DEG if model == "wide_pinhole" else kind.hfov_deg[1]
    camera = draw_camera(model, dice.uniform(kind.hfov_deg[0], widest), size, dice)
    roll, pitch = dice.uniform(-kind.roll_deg, kind.roll_deg), dice.uniform(*kind.pitch_deg)
    pitch *= -1 if kind.both_ways and number % 2 else 1
    gravity = torch.from_numpy(from_roll_pitch(*np.deg2rad([roll, pitch])))[None]
    yaw = torch.tensor([dice.uniform(-math.pi, math.pi)]).double()
    rotation = world_from_camera(gravity, yaw).float()
    picture = render(
        bank, torch.zeros(1, dtype=torch.long), camera.to(torch.float32), rotation, *size
    )
    if black_share(picture).item() >= MOST_BLACK:
        return None
    pixels = (255 * picture[0]).round().to(torch.uint8).permute(1, 2, 0).numpy()
    Image.fromarray(pixels).save(path, "JPEG", quality=95, subsampling=0)
    vfov = border_angle_deg(camera)
    return Truth(
        str(path),
        kind.name,
        model,
        vfov,
        roll,
        pitch,
        camera.f.item(),
        tuple(camera.distortion[0].tolist()),
    )


def rendered(panoramas: Path, out: Path) -> list[Truth]:
    """The views of all kinds, rendered if they are not there yet."""
    table = out / "truth.jsonl"
    if table.exists():
        return [read_truth(line) for line in table.read_text().splitlines()]
    out.mkdir(parents=True, exist_ok=True)
    paths, found = find_panoramas(panoramas), list[Truth]()
    left = {kind.name: kind.count for kind in KINDS}
    for turn in range(TURNS):
        for place, path in enumerate(paths):
            # Kinds with fewer views than there are panoramas are spread over them.
            wanted = [
                kind
                for kind in KINDS
                if left[kind.name] and (turn or place * kind.count % len(paths) < kind.count)
            ]
            if not wanted:
                continue
            pixels = torch.from_numpy(np.array(read_panorama(path)))
            bank = PanoramaBank.create([pixels], [path.name])
            for kind in wanted:
                number = kind.count - left[kind.name]
                truth = draw_view(kind, number, bank, out / f"{kind.name}-{number:03d}.jpg")
                if truth is not None and math.isfinite(truth.vfov_deg):
                    found.append(truth)
                    left[kind.name] -= 1
    table.write_text("".join(json.dumps(asdict(truth)) + "\n" for truth in found))
    return found


def read_truth(line: str) -> Truth:
    """Read the truth that ``rendered`` wrote."""
    values = json.loads(line)
    return Truth(**values | {"distortion": tuple(values["distortion"])})


def phones(folder: Path, split: str) -> list[Truth]:
    """Photographs with gravity and field of view."""
    found = []
    with (folder / "phones.csv").open(newline="") as stream:
        for row in csv.DictReader(stream):
            if row["image"].startswith(split + "/"):
                gravity = float(row["roll_deg"]), float(row["pitch_deg"])
                image = str(folder / row["image"])
                found.append(
                    Truth(
                        image,
                        "phones",
                        "pinhole",
                        float(row["vfov_deg"]),
                        *gravity,
                        f=float(row["focal"]),
                    )
                )
    return found


def photos(folder: Path, split: str, each: int) -> list[Truth]:
    """Photographs with fields of view by EXIF; so many of each owner."""
    owners: dict[str, list[Truth]] = {}
    with (folder / "photos.csv").open(newline="") as stream:
        for row in csv.DictReader(stream):
            if row["image"].startswith(split + "/"):
                image = str(folder / row["image"])
                owner = Path(row["image"]).name.partition("__")[0]
                truth = Truth(
                    image, "photos", "pinhole", float(row["vfov_deg"]), f=float(row["focal"])
                )
                owners.setdefault(owner, []).append(truth)
    return [truth for some in owners.values() for truth in some[:: max(1, -(-len(some) // each))]]


@dataclass(frozen=True)
class Score:
    """How far off an answer is, in degrees; infinite where there is none."""

    truth: Truth
    gravity: float
    vfov: float
    trusted: bool
    model: str


def score(truth: Truth, outcome: Outcome) -> Score:
    """An answer against the truth."""
    if not isinstance(outcome, Calibration):
        return Score(truth, math.inf, math.inf, False, "failed")
    vfov = abs(border_angle_deg(outcome.cameras) - truth.vfov_deg)
    gravity = math.nan
    if truth.roll_deg is not None and truth.pitch_deg is not None:
        down = from_roll_pitch(*np.deg2rad([truth.roll_deg, truth.pitch_deg]))
        gravity = math.degrees(math.acos(float(np.clip(outcome.gravity @ down, -1, 1))))
    vfov = math.inf if math.isnan(vfov) else vfov
    return Score(truth, gravity, vfov, outcome.trusted, outcome.camera_model)


def answers(
    calibrator: Calibrator, truths: Sequence[Truth], camera_model: str, network: bool
) -> Iterator[Score]:
    """A score for each picture. camera_model: "true" names the true one."""
    lines: Literal["auto", "off"] = "off" if network else "auto"
    groups: dict[tuple[str, bool], list[Truth]] = {}
    for truth in truths:
        name = truth.true_model if camera_model == "true" else camera_model
        groups.setdefault((name, truth.kind in ("phones", "photos")), []).append(truth)
    for (name, taken), some in groups.items():
        images = [truth.image for truth in some]
        # Rendered views are of any focal length alike.
        outcomes = calibrator.calibrate_many(
            images, name, workers=1, lines=lines, prior="auto" if taken else "none"
        )
        yield from (score(truth, outcome) for truth, outcome in zip(some, outcomes, strict=True))


def table(scores: Sequence[Score]) -> Iterator[str]:
    """By kind of picture, in Markdown: medians, how many are far off, and of these how many say
    nothing of it."""
    yield (
        "| kind | pictures | gravity | > 10 | of these trusted | vFoV | > 10 | of these trusted "
        "| trusted | answered as |"
    )
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    kinds: dict[str, list[Score]] = {}
    for each in scores:
        kinds.setdefault(each.truth.kind, []).append(each)
    for kind, some in kinds.items():
        trusted = np.array([each.trusted for each in some])
        cells = []
        for errors in (
            np.array([each.gravity for each in some]),
            np.array([each.vfov for each in some]),
        ):
            if np.isnan(errors).all():
                cells += ["", "", ""]
                continue
            far = errors > FAR_OFF_DEG
            of_these = f"{100 * trusted[far].mean():.0f}%" if far.any() else ""
            cells += [f"{np.nanmedian(errors):.2f}", f"{100 * far.mean():.0f}%", of_these]
        models = Counter(each.model for each in some).most_common(3)
        chosen = ", ".join(f"{name} {count}" for name, count in models)
        share = f"{100 * trusted.mean():.0f}%"
        yield f"| {kind} | {len(some)} | {' | '.join(cells)} | {share} | {chosen} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--panoramas", type=Path, help="folder to render views from")
    parser.add_argument("--pictures", type=Path, default=Path("/tmp/lenses"), help="views go here")
    parser.add_argument("--phones", type=Path, help="folder of phones.csv")
    parser.add_argument("--photos", type=Path, help="folder of photos.csv")
    parser.add_argument("--split", default="val", help="part of the photographs")
    parser.add_argument("--each", type=int, default=3, help="photos of one owner, at most")
    parser.add_argument("--weights", default="lean")
    parser.add_argument("--camera-model", default="auto", help='a name, or "true": the true one')
    parser.add_argument("--network", action="store_true", help="without lines")
    options = parser.parse_args(arguments)
    truths = list[Truth]()
    if options.panoramas:
        truths += rendered(options.panoramas, options.pictures)
    if options.phones:
        truths += phones(options.phones, options.split)
    if options.photos:
        truths += photos(options.photos, options.split, options.each)
    calibrator = Calibrator(options.weights)
    print(
        *table(list(answers(calibrator, truths, options.camera_model, options.network))), sep="\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
