"""``python -m geocalib_lab.training.sigmas``: learn how wrong the answers of trained weights are.

From crops of panoramas and ordinary photographs that were not trained on. Run it again whenever the
weights change. Each answer is kept in a file, which the same command after an interruption goes on
from.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from geocalib import console
from geocalib.errors import ConfigError, GeoCalibError
from geocalib.geometry import gravity as sphere
from geocalib.pipeline.engines.load import load_engine
from geocalib.pipeline.engines.onnx import OnnxEngine
from geocalib.pipeline.engines.sigmas import WEIGHTS_KEY, save_sigmas
from geocalib.pipeline.engines.torch import TorchEngine
from geocalib.pipeline.job import Batch, Job
from geocalib.pipeline.options import Options
from geocalib.pipeline.parallel.stream import answer
from geocalib.result.calibration import Calibration
from geocalib.solver.sigma_calibration import TRAITS, Floats, LearntSigmas, traits
from geocalib_lab.evaluation.datasets import Sample, read_dataset
from geocalib_lab.evaluation.halves import Half, half_of
from geocalib_lab.evaluation.uncertainty import ONE_SIGMA
from geocalib_lab.training.photos import owner_of

FREEDOM = 4.0
"""Degrees of freedom of Student's distribution, which errors are taken to have."""
PENALTY = 0.003
"""On the squared slopes of standardised traits, beside the mean of the negative log-likelihood."""
ITERATIONS = 200
RARE = 0.01
"""The share of fits at either end beyond which a trait is cut off."""
PARTS = 6
"""Of owners, each judged by what the others have taught."""
QUANTITIES = ("roll", "pitch", "focal")
"""The columns of errors, in order."""

AnyEngine = OnnxEngine | TorchEngine
Bools = npt.NDArray[np.bool_]
Record = dict[str, Any]
"""What was found of a picture: its name, owner, and kind, the traits of the fit and its errors."""


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

    def __getitem__(self, keep: Bools) -> Fits:
        """The same quantities of some of the photographs."""
        owners = [owner for owner, kept in zip(self.owners, keep, strict=True) if kept]
        return Fits(owners, self.photo[keep], self.traits[keep], self.off[keep])

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
    parser.add_argument("--photos", type=Path, required=True, help="table of photographs")
    parser.add_argument("--each", type=int, default=10, help="photos of one owner, at most")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--answers", type=Path, required=True, help="file to keep answers in")
    parser.add_argument("--out", type=Path, required=True, help="sigmas.json")
    options = parser.parse_args(arguments)
    try:
        samples = [sample for crops in options.crops for sample in read_dataset(crops)]
        samples += choose(read_dataset(options.photos), options.each)
        engine = load_engine(options.weights, "auto", options.device, compile=False)
        if engine.card.sha256 is None:
            raise ConfigError("sigmas are learnt for weights that are a file")
        fits = gather(engine, samples, options.answers)
        save_sigmas(options.out, engine.card.sha256, learn(fits))
    except GeoCalibError as error:
        console.fail(str(error))
        return 2
    print(*table(fits), sep="\n")
    return 0


def choose(photos: Sequence[Sample], each: int) -> list[Sample]:
    """Photographs that constants may be chosen on, spread over those of each owner."""
    owners = defaultdict(list)
    for photo in photos:
        if half_of(photo.image) is Half.CHOSEN_ON:
            owners[owner_of(str(photo.image))].append(photo)
    return [photo for some in owners.values() for photo in some[:: -(-len(some) // each)]]


def gather(engine: AnyEngine, samples: Sequence[Sample], kept: Path) -> Fits:
    """What the network alone finds; answers that the file keeps are not computed again."""
    known = _read(kept, engine)
    todo = [sample for sample in samples if str(sample.image) not in known]
    with kept.open("a") as file, console.progress(len(todo), "pictures") as done:
        for record in _asked(engine, todo):
            known[record["image"]] = record
            file.write(json.dumps(record) + "\n")
            file.flush()
            done()
    rows = [known[str(sample.image)] for sample in samples]
    rows = [row for row in rows if row["traits"] is not None]
    return Fits(
        [row["owner"] for row in rows],
        np.array([row["photo"] for row in rows]),
        np.array([row["traits"] for row in rows]),
        np.array([row["off"] for row in rows], np.float64),
    )


def _read(path: Path, engine: AnyEngine) -> dict[str, Record]:
    """The records of a file by image; one that is not there begins with the weights."""
    if not path.exists():
        path.write_text(json.dumps({WEIGHTS_KEY: engine.card.sha256}) + "\n")
    first, *lines = path.read_text().splitlines()
    if json.loads(first) != {WEIGHTS_KEY: engine.card.sha256}:
        raise ConfigError(f"{path} holds answers of other weights; name another file")
    # The last line of a run that was interrupted may be half a line.
    whole = [line for line in lines if line.endswith("}")]
    if whole != lines:
        path.write_text("\n".join([first, *whole]) + "\n")
    return {record["image"]: record for record in map(json.loads, whole)}


def _asked(engine: AnyEngine, samples: Sequence[Sample]) -> Iterator[Record]:
    """A record for each picture; of one that the network fails on, without numbers."""
    options = Options("pinhole", exif=False, sensors=False, lines="off", any_rotation="off")
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
    lines = {
        name: _line(fits, fits.off[:, column], low, high) for column, name in enumerate(QUANTITIES)
    }
    ratios = np.abs(fits.off) / LearntSigmas(low, high, **lines).factors(fits.traits)
    for name, ratio in zip(QUANTITIES, ratios.T, strict=True):
        kinds = (ratio[np.isfinite(ratio) & (fits.photo == kind)] for kind in (True, False))
        lines[name][0] += math.log(max(np.quantile(kind, ONE_SIGMA) for kind in kinds if len(kind)))
    return LearntSigmas(low, high, **lines)


def _line(fits: Fits, errors: Floats, low: Floats, high: Floats) -> Floats:
    """(7,) constant and slopes of the log factor of one quantity, of its errors (N,) in sigmas."""
    known = np.isfinite(errors)
    fits = fits[known]
    if not len(fits.owners):
        raise ConfigError("there are no crops with gravity, or no pictures with a field of view")
    values = np.clip(fits.traits, low, high)
    mean, spread = values.mean(0), values.std(0)
    x = torch.from_numpy((values - mean) / spread)
    off = torch.from_numpy(errors[known])
    weights = torch.from_numpy(fits.weights)
    line = torch.zeros(len(TRAITS) + 1, dtype=torch.float64, requires_grad=True)
    search = torch.optim.LBFGS([line], max_iter=ITERATIONS, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        search.zero_grad()
        total = (weights * surprise(off, line[0] + x @ line[1:])).sum()
        total = total + PENALTY * line[1:].square().sum()
        total.backward()  # type: ignore[no-untyped-call]
        return total

    search.step(loss)  # type: ignore[no-untyped-call]
    found = line.detach().numpy()
    slopes = found[1:] / spread
    return np.concatenate([[found[0] - slopes @ mean], slopes])


def surprise(off: Tensor, log_factor: Tensor) -> Tensor:
    """(N,) the negative log-likelihood, but for a constant, of errors (N,) in their sigmas, once
    these are multiplied by factors whose logarithms are (N,)."""
    square = off.square() * torch.exp(-2 * log_factor)
    return log_factor + 0.5 * (FREEDOM + 1) * torch.log1p(square / FREEDOM)


def table(fits: Fits) -> Iterator[str]:
    """How likely errors are, and how sigmas rank them, with the constants of the card and
    with learnt factors, by owners that these were not learnt from."""
    part_of = np.array([zlib.crc32(owner.encode()) % PARTS for owner in fits.owners])
    factors = np.ones((len(part_of), len(QUANTITIES)))
    for part in np.unique(part_of):
        factors[part_of == part] = learn(fits[part_of != part]).factors(
            fits.traits[part_of == part]
        )
    yield "| held out | pictures | surprise: card, learnt | rank: card, learnt |"
    yield "| --- | --- | --- | --- |"
    for column, name in enumerate(QUANTITIES):
        for kind, shown in ((True, "photographs"), (False, "crops")):
            rows = (fits.photo == kind) & np.isfinite(fits.off[:, column])
            if not rows.any():
                continue
            off, sigma = fits.off[rows, column], np.exp(fits.traits[rows, column])
            scales = np.stack([np.ones(len(off)), factors[rows, column]])
            missed = surprise(torch.from_numpy(off), torch.from_numpy(np.log(scales))).mean(1)
            ranks = [_rank(sigma * factor, np.abs(off) * sigma) for factor in scales]
            yield (
                f"| {name}, {shown} | {rows.sum()} | {missed[0]:.2f}, {missed[1]:.2f} "
                f"| {ranks[0]:.2f}, {ranks[1]:.2f} |"
            )


def _rank(a: Floats, b: Floats) -> float:
    """Spearman's rank correlation of two samples."""
    places = [values.argsort().argsort().astype(np.float64) for values in (a, b)]
    return float(np.corrcoef(places[0], places[1])[0, 1])


if __name__ == "__main__":
    sys.exit(main())
