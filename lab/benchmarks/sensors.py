"""What accelerometers say of photographs against what the pictures alone say.

    python lab/benchmarks/sensors.py compare PHONES.csv GRAVITY.csv ... --answers OUT.jsonl
    python lab/benchmarks/sensors.py cost PHOTO ...

``compare`` calibrates the pictures that tables (image, roll_deg, pitch_deg, norm_g, model) name,
with the default options but without their files' data; answers that OUT.jsonl holds are not
computed again. It fits the sigma of accelerometers (``geocalib.priors.readings``) and how often and
how far pictures are lost (``geocalib.priors.judge``) to the photographs of train, and compares both
by maker and phone. With --owners, the share of train's owners that the network has learnt from, it
leaves these owners out. ``cost`` measures what the readings of files take beside their pixels.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.optimize import minimize

from geocalib import Calibrator
from geocalib.cameras import get_model
from geocalib.errors import GeoCalibError
from geocalib.geometry import gravity as sphere
from geocalib.imaging import read_photo
from geocalib.imaging.metadata import Metadata
from geocalib.imaging.read import read_header
from geocalib.priors.enabled import EnabledPriors, File
from geocalib.priors.judge import LOST_LEVEL, LOST_STEEP, SPREAD, STEEP_DEG
from geocalib.priors.readings import MOST_MOTION_G, MOTION_DEG_PER_G, PHONE_SIGMA_DEG
from geocalib.solver.known import Given
from geocalib_lab.training.owners import among
from geocalib_lab.training.photos import owner_of

Array = npt.NDArray[np.float64]

NORMAL_68 = float(np.sqrt(-2 * np.log(0.32)))
"""What 68% of the lengths of a normal vector in the plane are below, in its sigmas."""
PROCESSES = 2
REPEATS = 20
"""Measurements of which the least counts."""
FEWEST = 20
"""Photographs for a row of its own."""
SURE_DEG = 1.5
"""Pictures whose sigmas together are below show how good the sensors are."""


@dataclass(frozen=True)
class Pairs:
    """N photographs whose files were not edited."""

    apart: Array
    """(N, 2) degrees from picture to sensor, along roll and along pitch."""
    covariance: Array
    """(N, 2, 2) of the picture, square degrees."""
    motion: Array
    """(N,) by how much the length of the acceleration is off 1 g."""
    steep: npt.NDArray[np.bool_]
    """(N,) by the sensor."""
    model: npt.NDArray[np.str_]
    """(N,) with the maker."""
    train: npt.NDArray[np.bool_]
    lines: npt.NDArray[np.bool_]
    """(N,) whether the picture's lines were used."""

    def __getitem__(self, rows: npt.NDArray[np.bool_]) -> Pairs:
        return Pairs(*(value[rows] for value in vars(self).values()))

    def __len__(self) -> int:
        return len(self.apart)

    @property
    def angle(self) -> Array:
        """(N,) degrees between both gravities."""
        return np.hypot(*self.apart.T)

    def normalised(self, spread: float, sensor_deg: float, motion_deg: float) -> Array:
        """(N,) lengths by the sigmas of both together."""
        return np.sqrt(self._squared(self._covariance(spread, sensor_deg, sensor_deg, motion_deg)))

    def _covariance(self, spread: float, roll: float, pitch: float, motion: float) -> Array:
        sensor = np.array([[roll, 0], [0, pitch]]) ** 2
        moved = (motion * self.motion[:, None, None]) ** 2 * np.eye(2)
        return spread**2 * self.covariance + sensor + moved

    def _squared(self, covariance: Array) -> Array:
        return np.einsum("ni,nij,nj->n", self.apart, np.linalg.inv(covariance), self.apart)

    def surprise(self, sensor: Sequence[float], picture: Sequence[float]) -> float:
        """The negative log-likelihood. sensor: sigmas of roll and pitch, and of motion per g;
        picture: its spread, and share and scale of those that are lost, level and steep."""
        spread, level, steep, level_scale, steep_scale = picture
        covariance = self._covariance(spread, *sensor)
        share = np.where(self.steep, steep, level)
        scale = np.where(self.steep, steep_scale, level_scale)
        area = 2 * np.pi * np.sqrt(np.linalg.det(covariance))
        near = (1 - share) * np.exp(-0.5 * self._squared(covariance)) / area
        lost = share * np.exp(-self.angle / scale) / (2 * np.pi * scale**2)
        return float(-np.log(near + lost).sum())


calibrator: Calibrator


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)
    comparing = commands.add_parser("compare")
    comparing.add_argument("tables", type=Path, nargs="+")
    comparing.add_argument("--answers", type=Path, required=True)
    comparing.add_argument("--owners", type=float, default=0.0)
    comparing.set_defaults(run=compare)
    costing = commands.add_parser("cost")
    costing.add_argument("photos", nargs="+")
    costing.set_defaults(run=lambda options: cost(options.photos))
    options = parser.parse_args()
    options.run(options)


def compare(options: argparse.Namespace) -> None:
    learnt_from = among(options.owners)
    rows = [
        row
        for table in options.tables
        for row in unedited(table)
        if not (is_train(row) and learnt_from(owner_of(row["image"])))
    ]
    seen = {}
    if options.answers.exists():
        lines = options.answers.read_text().splitlines()
        seen = {each["path"]: each for each in map(json.loads, lines)}
    todo = [row["path"] for row in rows if row["path"] not in seen]
    with options.answers.open("a") as file, Pool(PROCESSES, prepare) as pool:
        for answer in pool.imap(ask, todo, chunksize=8):
            seen[answer["path"]] = answer
            file.write(json.dumps(answer) + "\n")
            file.flush()
    report(paired([(row, seen[row["path"]]) for row in rows if "gravity" in seen[row["path"]]]))


def unedited(table: Path) -> Iterator[dict[str, str]]:
    """The rows of photographs of the sizes of their cameras, or trusted by their table, with the
    paths of the photographs."""
    with table.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    for row in rows:
        if "1" in (row.get("native"), row.get("trust")) or row.get("why_not") == "moving":
            yield row | {"path": str((table.parent / row["image"]).resolve())}


def is_train(row: dict[str, str]) -> bool:
    return row["image"].startswith("train/")


def prepare() -> None:
    global calibrator
    torch.set_num_threads(1)
    calibrator = Calibrator("lean", device="cpu")


def ask(path: str) -> dict[str, Any]:
    """What the picture alone tells; the path alone, of one on which the calibration fails."""
    try:
        found = calibrator.calibrate(path, "pinhole", exif=False, sensors=False)
    except GeoCalibError:
        return {"path": path}
    return {
        "path": path,
        "gravity": found.gravity.tolist(),
        "covariance": np.asarray(found.covariance)[:2, :2].tolist(),
        "lines": found.lines is not None and found.lines.verdict.used,
    }


def cost(photos: Sequence[str]) -> None:
    """Milliseconds: to open a file and read its EXIF tags, and for all that is made of them."""
    print("| photo | opened | readings |\n| --- | --- | --- |")
    enabled = EnabledPriors.create(1, True, True, None, None)
    model = get_model("simple_radial")
    given = Given(None, None, None, None)
    for path in photos:
        photo = read_photo(path)
        file = File(path, photo.name, photo.size, photo.metadata)
        _, tags = read_header(path)
        opened = milliseconds(partial(read_header, path))
        made = milliseconds(partial(Metadata.create, 1, tags, {}))
        used = milliseconds(partial(enabled.readings, given, [file], model))
        print(f"| {Path(path).name} | {opened:.2f} | {made + used:.2f} |")


def milliseconds(work: Callable[[], object]) -> float:
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def paired(answered: Sequence[tuple[dict[str, str], dict[str, Any]]]) -> Pairs:
    """What the rows of tables and the answers of the pictures say."""
    rows, answers = zip(*answered, strict=True)
    roll, pitch, norm = (
        np.array([float(row[name]) for row in rows]) for name in ("roll_deg", "pitch_deg", "norm_g")
    )
    said = sphere.from_roll_pitch(np.radians(roll), np.radians(pitch))
    seen = np.array([answer["gravity"] for answer in answers])
    covariance = np.array([answer["covariance"] for answer in answers])
    apart = np.degrees(sphere.difference(seen, said, sphere.tangent_basis(seen)))
    every = Pairs(
        apart,
        np.degrees(np.degrees(covariance)),
        abs(norm - 1),
        abs(pitch) > STEEP_DEG,
        # Only Apple's files tell an accelerometer's readings.
        np.array([f"{row.get('make') or 'Apple'} {row['model']}" for row in rows]),
        np.array([is_train(row) for row in rows]),
        np.array([answer["lines"] for answer in answers]),
    )
    return every[every.motion <= MOST_MOTION_G]


def report(pairs: Pairs) -> None:
    train = pairs[pairs.train]
    sure = train[np.sqrt(np.trace(train.covariance, axis1=1, axis2=2)) < SURE_DEG]
    (level, level_scale), (steep, steep_scale) = LOST_LEVEL, LOST_STEEP
    shares = [SPREAD, level, steep, level_scale, steep_scale]
    sensor = fitted(
        lambda x: sure.surprise(x[:3].tolist(), [float(x[3]), *shares[1:]]),
        [PHONE_SIGMA_DEG, PHONE_SIGMA_DEG, MOTION_DEG_PER_G, SPREAD],
    )
    print(
        f"sensors, by {len(sure)} sure pictures: roll {sensor[0]:.2f}, pitch {sensor[1]:.2f} "
        f"degrees, motion {sensor[2]:.0f} degrees per g"
    )
    ours = (PHONE_SIGMA_DEG, PHONE_SIGMA_DEG, MOTION_DEG_PER_G)
    picture = fitted(lambda x: train.surprise(ours, x.tolist()), shares)
    print(
        f"pictures, by {len(train)}: spread {picture[0]:.2f}; lost {picture[1]:.0%} of level ones, "
        f"by {picture[3]:.0f} degrees, and {picture[2]:.0%} of steep ones, by {picture[4]:.0f}"
    )
    columns = ("phone", "photos", "median", "68%", "normalised, 68%", "lost")
    print(f"\n| {' | '.join(columns)} |\n|{' --- |' * len(columns)}")
    for name, group in groups(pairs):
        lengths = group.normalised(1.0, PHONE_SIGMA_DEG, MOTION_DEG_PER_G)
        near = lengths < 3 * NORMAL_68
        cells = (
            name,
            len(group),
            f"{np.median(group.angle):.1f}",
            f"{np.percentile(group.angle, 68):.1f}",
            f"{np.percentile(lengths, 68) / NORMAL_68:.2f}",
            f"{1 - near.mean():.0%}",
        )
        print(f"| {' | '.join(map(str, cells))} |")


def fitted(surprise: Callable[[Array], float], start: Sequence[float]) -> Array:
    """The positive numbers of least surprise."""
    least = minimize(
        lambda logs: surprise(np.exp(logs)),
        np.log(start),
        method="Nelder-Mead",
        options={"maxiter": 10**4, "maxfev": 10**4},
    )
    return np.asarray(np.exp(least.x))


def groups(pairs: Pairs) -> Iterator[tuple[str, Pairs]]:
    """By model, those of which there are many; by maker; and parts of all."""
    names, counts = np.unique(pairs.model, return_counts=True)
    for name in names[counts >= FEWEST]:
        yield str(name), pairs[pairs.model == name]
    makers = np.array([name.partition(" ")[0] for name in pairs.model])
    for maker in np.unique(makers):
        yield f"all of {maker}", pairs[makers == maker]
    parts = {
        "others": np.isin(pairs.model, names[counts < FEWEST]),
        "train": pairs.train,
        "val": ~pairs.train,
        f"up to {STEEP_DEG:g} degrees from level": ~pairs.steep,
        "steeper": pairs.steep,
        "lines used": pairs.lines,
        "no lines used": ~pairs.lines,
    }
    for low, high in ((0, 0.005), (0.005, 0.015), (0.015, 0.04), (0.04, MOST_MOTION_G)):
        parts[f"off 1 g by {low:g} to {high:g}"] = (pairs.motion >= low) & (pairs.motion < high)
    for name, rows in parts.items():
        if rows.any():
            yield name, pairs[rows]


if __name__ == "__main__":
    main()
