"""What it is worth to know how cameras are mounted together: rigs against single photographs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain

import numpy as np

from geocalib.errors import ConfigError
from geocalib.imaging import ImageSource
from geocalib.localize.rotation import from_quaternion
from geocalib.result.calibration import Outcome
from geocalib.solver import Rig
from geocalib_lab.evaluation.datasets import Sample
from geocalib_lab.evaluation.report import Report
from geocalib_lab.evaluation.run import Calibrates
from geocalib_lab.evaluation.studies import Study

GRAVITY, LENSES = "gravity shared", "gravity and lenses shared"
"""The rows beside that of the photographs alone."""


def mounted(samples: Sequence[Sample]) -> list[Sample]:
    """The photographs of rigs, checked."""
    found = [sample for sample in samples if sample.rig is not None]
    if not found:
        raise ConfigError("no photograph is of a rig; a table tells by the columns rig, rotation")
    if lacking := next((sample for sample in found if sample.camera_from_rig is None), None):
        raise ConfigError(f"{lacking.image} is of rig {lacking.rig}, but has no rotation")
    return found


def rig_study(
    alone: Report, calibrator: Calibrates, done: Callable[[], None] = lambda: None
) -> Study:
    """The photographs of rigs alone, as in the report, with one gravity for each shot, and, where a
    camera took several, with one lens for each camera as well.

    done: called after each photograph with one gravity.
    """
    samples = mounted(alone.samples)
    ways = {GRAVITY: _own_lenses(samples)}
    if len(set(_lenses(samples))) < len(samples):
        ways[LENSES] = _lenses(samples)
    rows = [("alone", alone)]
    for label, lenses in ways.items():
        outcomes: dict[int, Outcome] = {}
        for part in _connected(samples, lenses):
            answers = _fit(calibrator, samples, part, lenses, alone.camera_model)
            outcomes.update(zip(part, answers, strict=True))
            for _ in part:
                done()
        ordered = [outcomes[i] for i in range(len(samples))]
        report = Report.create(alone.name, calibrator.card, alone.camera_model, samples, ordered)
        rows.append((label, report))
    return Study(f"{alone.name}: rigs", "fit", tuple(rows))


def _own_lenses(samples: Sequence[Sample]) -> list[str]:
    return [str(number) for number in range(len(samples))]


def _lenses(samples: Sequence[Sample]) -> list[str]:
    """Equal where photographs are of one camera."""
    pairs = zip(samples, _own_lenses(samples), strict=True)
    return [f"of {s.camera_name}" if s.camera_name is not None else own for s, own in pairs]


def _connected(samples: Sequence[Sample], lenses: Sequence[str]) -> Iterable[list[int]]:
    """The photographs by numbers, in parts that share neither rig nor lens with each other."""
    parts: list[tuple[set[object], list[int]]] = []
    for number, (sample, lens) in enumerate(zip(samples, lenses, strict=True)):
        keys: set[object] = {("rig", sample.rig), ("lens", lens)}
        joined = [part for part in parts if part[0] & keys]
        parts = [part for part in parts if not part[0] & keys]
        members = [*chain.from_iterable(part[1] for part in joined), number]
        parts.append((keys.union(*(part[0] for part in joined)), members))
    return [sorted(members) for _, members in parts]


def _fit(
    calibrator: Calibrates,
    samples: Sequence[Sample],
    part: Sequence[int],
    lenses: Sequence[str],
    model: str,
) -> list[Outcome]:
    """The answers for photographs that belong together."""
    rotations = from_quaternion(np.array([samples[i].camera_from_rig for i in part]))
    rigs = list(dict.fromkeys(samples[i].rig for i in part))
    words = list(dict.fromkeys(lenses[i] for i in part))
    rig = Rig(
        rotations,
        camera=range(len(part)),
        time=[rigs.index(samples[i].rig) for i in part],
    )
    images: list[ImageSource] = [samples[i].image for i in part]
    shared = [words.index(lenses[i]) for i in part]
    return calibrator.calibrate(
        images, model, rig=rig, shared_intrinsics=shared, exif=False, sensors=False
    )
