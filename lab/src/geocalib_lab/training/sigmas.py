"""``python -m geocalib_lab.training.sigmas``: learn how wrong the answers of trained weights are.

From crops of panoramas, ordinary photographs whose focal length is known, and photographs whose
gravity an accelerometer tells as well, none of them by an owner that was trained on. Run it again
whenever the weights change. Each answer is kept in a file, which the same command after an
interruption goes on from.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from geocalib import console
from geocalib.errors import ConfigError, GeoCalibError, ImageError
from geocalib.geometry import gravity as sphere
from geocalib.pipeline.engines.load import load_engine
from geocalib.pipeline.engines.onnx import OnnxEngine
from geocalib.pipeline.engines.sigmas import save_sigmas
from geocalib.pipeline.engines.torch import TorchEngine
from geocalib.pipeline.job import Batch, Job
from geocalib.pipeline.options import Options
from geocalib.pipeline.parallel.stream import answer
from geocalib.result.calibration import Calibration
from geocalib.solver.sigma_calibration import TRAITS, Floats, LearntSigmas, traits
from geocalib_lab.evaluation.datasets import AT_REST, Sample, picture_size, read_dataset
from geocalib_lab.evaluation.halves import Half, half_of
from geocalib_lab.evaluation.uncertainty import ONE_SIGMA
from geocalib_lab.training.kept import Record, read_kept
from geocalib_lab.training.owners import among
from geocalib_lab.training.photos import owner_of, read_photo_labels

FREEDOM = 4.0
"""Degrees of freedom of Student's distribution, which errors are taken to have."""
PENALTY = 0.003
"""On the squared slopes of standardised traits, beside the mean of the negative log-likelihood."""
ITERATIONS = 200
RARE = 0.01
"""The share of fits at either end beyond which a trait is cut off."""
PARTS = 6
"""Of owners, each judged by what the others have taught."""
STEEP_DEG = 30.0
"""Pitch beyond which photographs are judged apart."""
QUANTITIES = ("roll", "pitch", "focal")
"""The columns of errors, in order."""

AnyEngine = OnnxEngine | TorchEngine
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Fits:
    """What was found of N pictures, and how far it is off."""

    owners: list[str]
    """Of photographs, and the panoramas of crops."""
    photo: Bools
    """(N,) whether it is a photograph."""
    traits: Floats
    """(N, 6)."""
    off: Floats
    """(N, 3) errors along roll, along pitch and of log f in their sigmas; NaN where unknown."""
    noise: Floats
    """(N, 3) one sigma of the truth itself, in the same units."""
    steep: Bools
    """(N,) whether it is known to look steeply up or down."""

    def __getitem__(self, keep: Bools) -> Fits:
        """The same quantities of some of the pictures."""
        owners = [owner for owner, kept in zip(self.owners, keep, strict=True) if kept]
        numbers = (self.traits[keep], self.off[keep], self.noise[keep])
        return Fits(owners, self.photo[keep], *numbers, self.steep[keep])

    @property
    def weights(self) -> Floats:
        """(N,) that add up to one: photographs weigh as much as crops, and owners like the root of
        how many pictures they have."""
        count = Counter(self.owners)
        each = np.array([count[owner] ** -0.5 for owner in self.owners])
        kinds = [each * (self.photo == kind) for kind in np.unique(self.photo)]
        return np.asarray(sum(part / part.sum() for part in kinds) / len(kinds))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 if all went well."""
    parser = argparse.ArgumentParser(prog="python -m geocalib_lab.training.sigmas")
    parser.add_argument("--weights", default="lean", help="a name or a file")
    parser.add_argument("--crops", type=Path, nargs="+", required=True, help="sets of crops")
    parser.add_argument("--photos", type=Path, required=True, help="set of photographs")
    parser.add_argument(
        "--labelled", type=Path, required=True, help="what training had as --photos"
    )
    parser.add_argument("--owners", type=float, required=True, help="its photos.owners")
    parser.add_argument("--each", type=int, default=10, help="photos of one owner, at most")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--answers", type=Path, required=True, help="file to keep answers in")
    parser.add_argument("--out", type=Path, required=True, help="sigmas.json")
    options = parser.parse_args(arguments)
    try:
        learnt_from = among(options.owners)
        names = read_photo_labels(options.labelled, "train")
        apart = {owner for owner in map(owner_of, names) if learnt_from(owner)}
        held = labelled_photos(options.labelled, "train", lambda owner: not learnt_from(owner))
        val = labelled_photos(options.labelled, "val", lambda owner: True)
        samples = [sample for crops in options.crops for sample in read_dataset(crops)]
        samples += [*held, *choose(read_dataset(options.photos), options.each, apart, held)]
        engine = load_engine(options.weights, "auto", options.device, compile=False)
        if engine.card.sha256 is None:
            raise ConfigError("sigmas are learnt for weights that are a file")
        fits = gather(engine, samples, options.answers)
        judged = gather(engine, val, options.answers)
        learnt = learn(fits)
        save_sigmas(options.out, engine.card.sha256, learnt)
    except GeoCalibError as error:
        console.fail(str(error))
        return 2
    print(*table(fits, held_out_factors(fits), "held out"), "", sep="\n")
    print(*table(judged, learnt.factors(judged.traits), "val"), sep="\n")
    return 0


def labelled_photos(folder: Path, split: str, chosen: Callable[[str], bool]) -> list[Sample]:
    """The photographs of a split, by the owners chosen, of which a phone at rest told gravity."""
    samples = []
    for name, label in read_photo_labels(folder, split).items():
        if label.tilt is None or not chosen(owner_of(name)):
            continue
        size = picture_size(folder / name)
        if size is None:
            raise ImageError(f"{folder / name} cannot be read")
        roll, pitch = label.tilt
        samples.append(
            Sample(
                folder / name,
                *size,
                roll_deg=roll,
                pitch_deg=pitch,
                vfov_deg=math.degrees(2 * math.atan(0.5 * size[1] / label.focal)),
                roll_sigma_deg=AT_REST[0],
                pitch_sigma_deg=AT_REST[1],
            )
        )
    return samples


def choose(
    photos: Sequence[Sample], each: int, learnt_from: Set[str], held: Sequence[Sample]
) -> list[Sample]:
    """Photographs that constants may be chosen on, spread over those of each owner: not by owners
    that were learnt from, and none that is held as well."""
    known = {photo.image.name for photo in held}
    owners = defaultdict(list)
    for photo in photos:
        owner = owner_of(str(photo.image))
        if half_of(photo.image) is Half.CHOSEN_ON and owner not in learnt_from:
            owners[owner].append(photo)
    spread = (photo for some in owners.values() for photo in some[:: -(-len(some) // each)])
    return [photo for photo in spread if photo.image.name not in known]


def gather(engine: AnyEngine, samples: Sequence[Sample], kept: Path) -> Fits:
    """What the network alone finds; answers that the file keeps are not computed again."""
    known = read_kept(kept, engine.card.sha256)
    todo = [sample for sample in samples if str(sample.image) not in known]
    with kept.open("a") as file, console.progress(len(todo), "pictures") as done:
        for record in _asked(engine, todo):
            known[record["image"]] = record
            file.write(json.dumps(record) + "\n")
            file.flush()
            done()
    pairs = [(sample, known[str(sample.image)]) for sample in samples]
    pairs = [(sample, row) for sample, row in pairs if row["traits"] is not None]
    values = np.array([row["traits"] for _, row in pairs]).reshape(-1, len(TRAITS))
    sigmas = np.exp(values[:, : len(QUANTITIES)])
    noise = [(sample.roll_sigma_deg, sample.pitch_sigma_deg, 0.0) for sample, _ in pairs]
    return Fits(
        [row["owner"] for _, row in pairs],
        np.array([row["photo"] for _, row in pairs], np.bool_),
        values,
        np.array([row["off"] for _, row in pairs], np.float64).reshape(sigmas.shape),
        np.radians(noise).reshape(sigmas.shape) / sigmas,
        np.array([abs(sample.pitch_deg or 0.0) > STEEP_DEG for sample, _ in pairs], np.bool_),
    )


def _asked(engine: AnyEngine, samples: Sequence[Sample]) -> Iterator[Record]:
    """A record for each picture: its name, owner and kind, the traits of the fit and its errors; of
    one that the network fails on, without numbers."""
    # By the card's constants alone: what is usual of photographs changes sigmas.
    options = Options(
        "pinhole", exif=False, sensors=False, prior="none", lines="off", any_rotation="off"
    )
    job = Job.create(options, engine.card, 1)
    job = replace(job, errors=replace(job.errors, learnt=None))
    for start in range(0, len(samples), engine.batch):
        few = samples[start : start + engine.batch]
        outcomes = answer(engine, Batch([sample.image for sample in few], job.repeated(len(few))))
        for sample, outcome in zip(few, outcomes, strict=True):
            record: Record = {
                "image": str(sample.image),
                "owner": sample.panorama or owner_of(str(sample.image)),
                "photo": sample.panorama is None,
                "traits": None,
            }
            if isinstance(outcome, Calibration):
                record |= _numbers(outcome, sample)
            yield record


def _numbers(found: Calibration, sample: Sample) -> Record:
    """The traits of a fit, and its errors in their sigmas; None where the truth is not known."""
    gravity, sigma = found.gravity[None], np.sqrt(np.diag(found.covariance))
    values = traits(found.cameras, gravity, found.covariance[None])[0]
    off: list[float | None] = [None, None, None]
    if sample.gravity is not None:
        away = sphere.difference(gravity, sample.gravity[None], sphere.tangent_basis(gravity))[0]
        off[:2] = (away / sigma[:2]).tolist()
    if sample.vfov_deg is not None:
        true_f = 0.5 * found.height / math.tan(0.5 * math.radians(sample.vfov_deg))
        off[2] = math.log(true_f / found.fy) / sigma[2]
    return {"traits": values.tolist(), "off": off}


def learn(fits: Fits) -> LearntSigmas:
    """The factors by which the errors are likeliest; then as large as it takes for 68.3% of them to
    be within one sigma, of photographs and of crops."""
    low, high = np.quantile(fits.traits, [RARE, 1 - RARE], axis=0)
    lines = {name: _line(fits, column, low, high) for column, name in enumerate(QUANTITIES)}
    # An error is within its sigma and that of the truth if the rest is within its sigma.
    rest = np.sqrt(np.maximum(np.square(fits.off) - np.square(fits.noise), 0))
    ratios = rest / LearntSigmas(low, high, **lines).factors(fits.traits)
    for name, ratio in zip(QUANTITIES, ratios.T, strict=True):
        kinds = (ratio[np.isfinite(ratio) & (fits.photo == kind)] for kind in (True, False))
        lines[name][0] += math.log(max(np.quantile(kind, ONE_SIGMA) for kind in kinds if len(kind)))
    return LearntSigmas(low, high, **lines)


def _line(fits: Fits, column: int, low: Floats, high: Floats) -> Floats:
    """(7,) constant and slopes of the log factor of the quantity of a column of errors."""
    fits = fits[np.isfinite(fits.off[:, column])]
    if not len(fits.owners):
        raise ConfigError("there are no crops with gravity, or no pictures with a field of view")
    values = np.clip(fits.traits, low, high)
    mean, spread = values.mean(0), values.std(0)
    x = torch.from_numpy((values - mean) / spread)
    off, noise = (torch.from_numpy(values[:, column]) for values in (fits.off, fits.noise))
    weights = torch.from_numpy(fits.weights)
    line = torch.zeros(len(TRAITS) + 1, dtype=torch.float64, requires_grad=True)
    search = torch.optim.LBFGS([line], max_iter=ITERATIONS, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        search.zero_grad()
        total = (weights * surprise(off, line[0] + x @ line[1:], noise)).sum()
        total = total + PENALTY * line[1:].square().sum()
        total.backward()  # type: ignore[no-untyped-call]
        return total

    search.step(loss)  # type: ignore[no-untyped-call]
    found = line.detach().numpy()
    slopes = found[1:] / spread
    return np.concatenate([[found[0] - slopes @ mean], slopes])


def surprise(off: Tensor, log_factor: Tensor, noise: Tensor) -> Tensor:
    """(N,) the negative log-likelihood, but for a constant, of errors (N,) in their sigmas, once
    these are multiplied by factors whose logarithms are (N,). noise: (N,) one sigma of the truth
    itself, in the same units."""
    variance = torch.exp(2 * log_factor) + noise.square()
    tail = torch.log1p(off.square() / variance / FREEDOM)
    return 0.5 * torch.log(variance) + 0.5 * (FREEDOM + 1) * tail


def held_out_factors(fits: Fits) -> Floats:
    """(N, 3) factors on the sigmas of each picture, learnt from other owners."""
    part_of = np.array([zlib.crc32(owner.encode()) % PARTS for owner in fits.owners])
    factors = np.ones((len(part_of), len(QUANTITIES)))
    for part in np.unique(part_of):
        learnt = learn(fits[part_of != part])
        factors[part_of == part] = learnt.factors(fits.traits[part_of == part])
    return factors


def table(fits: Fits, factors: Floats, title: str) -> Iterator[str]:
    """How large errors are in sigmas and those of the truth, how likely they are, and how sigmas
    rank them: with the constants of the card, and with factors (N, 3)."""
    yield f"| {title} | pictures | 68%: card, learnt | surprise | rank |"
    yield "| --- | --- | --- | --- | --- |"
    kinds = {
        "photographs": fits.photo,
        "level photographs": fits.photo & ~fits.steep,
        "steep photographs": fits.photo & fits.steep,
        "crops": ~fits.photo,
    }
    for column, name in enumerate(QUANTITIES):
        for shown, kind in kinds.items():
            rows = kind & np.isfinite(fits.off[:, column])
            # Of many, only the focal length is known.
            if not rows.any() or (name == "focal" and "level" in shown):
                continue
            off, noise = fits.off[rows, column], fits.noise[rows, column]
            sigma = np.exp(fits.traits[rows, column])
            cells = []
            for scale in (np.ones(len(off)), factors[rows, column]):
                within = np.quantile(np.abs(off) / np.hypot(scale, noise), ONE_SIGMA)
                missed = surprise(*map(torch.from_numpy, (off, np.log(scale), noise))).mean()
                rank = _rank(sigma * scale, np.abs(off) * sigma)
                cells.append([f"{value:.2f}" for value in (within, missed, rank)])
            pairs = " | ".join(map(", ".join, zip(*cells, strict=True)))
            yield f"| {name}, {shown} | {rows.sum()} | {pairs} |"


def _rank(a: Floats, b: Floats) -> float:
    """Spearman's rank correlation of two samples."""
    places = [values.argsort().argsort().astype(np.float64) for values in (a, b)]
    return float(np.corrcoef(places[0], places[1])[0, 1])


if __name__ == "__main__":
    sys.exit(main())
