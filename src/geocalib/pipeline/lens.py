"""Which kind of lens took a picture that nobody names a camera model of, and what follows.

The families of ``geocalib.solver.families`` are compared on the fields of the pictures, before
anything else is fitted; pictures of one camera or rig decide together. The answer is that of the
most probable family, fitted as if it had been named but with what is usual of its distortion; its
sigmas include what the other families answer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from geocalib.arrays import Array, double, to_numpy
from geocalib.cameras.base import CameraModel
from geocalib.geometry import gravity as sphere
from geocalib.geometry.fields import ALONG_PITCH, ALONG_ROLL, LOG_F, Fields
from geocalib.pipeline.job import Job
from geocalib.pipeline.predict import NetworkOutput
from geocalib.priors.enabled import with_readings, with_starts
from geocalib.priors.lens import odds_of_lenses
from geocalib.records import dataclass
from geocalib.result.calibration import Calibration, Outcome
from geocalib.result.lens import Lens, LensFamily
from geocalib.solver.coupling import couple
from geocalib.solver.families import FAMILIES, Candidate, candidates, probabilities
from geocalib.solver.known import Given, Mapping, Prior
from geocalib.solver.result import border_slopes


@dataclass(frozen=True)
class Choice:
    """The family of one picture's lens."""

    candidates: tuple[Candidate, ...]
    """In pixels of the original, the most probable first."""
    probabilities: tuple[float, ...]
    """Of each."""

    @property
    def model(self) -> CameraModel:
        """Of the most probable family."""
        return self.candidates[0].family.model

    @property
    def distortion(self) -> tuple[float, float] | None:
        """Mean and sigma of what is usual of its distortion."""
        return self.candidates[0].distortion

    @property
    def lens(self) -> Lens:
        """The comparison of families as answers hold it."""
        pairs = zip(self.candidates, self.probabilities, strict=True)
        return Lens(tuple(_told(*pair) for pair in pairs))

    def applied(self, outcome: Outcome) -> Outcome:
        """An answer with that model, with what the other families add to its sigmas."""
        if not isinstance(outcome, Calibration):
            return outcome
        covariance = outcome.covariance.copy()
        best, *rivals = self.candidates
        for rival, share in zip(rivals, self.probabilities[1:], strict=True):
            off = _difference(best, rival, outcome)
            covariance += share * off[:, None] * off
        return outcome.with_lens(self.lens, covariance)


def choose(job: Job, outputs: Sequence[NetworkOutput], given: Given) -> list[Choice]:
    """The choice of each picture; given: in pixels of the originals, with principal points."""
    files = [output.file for output in outputs]
    readings = job.enabled.readings(given, files)
    coupling = couple(len(outputs), job.camera, job.rig)
    component = coupling.camera_component[coupling.camera].tolist()
    found: dict[int, list[Candidate]] = {}
    # What files tell of one picture must not change the last bits of another's answer.
    kinds = [
        (output.fields.size, reading.focal is None, reading.gravity is None)
        for output, reading in zip(outputs, readings, strict=True)
    ]
    for kind in dict.fromkeys(kinds):
        rows = [row for row, other in enumerate(kinds) if other == kind]
        known = with_readings(
            given[rows], [readings[row] for row in rows], [files[row] for row in rows], rows
        )
        found |= zip(rows, _candidates(job, [outputs[row] for row in rows], known), strict=True)
    choices: dict[int, Choice] = {}
    for number in set(component):
        rows = [row for row, other in enumerate(component) if other == number]
        odds = odds_of_lenses([(files[row].metadata, outputs[row].circle) for row in rows])
        shares = probabilities([found[row] for row in rows], odds)
        order = sorted(range(len(FAMILIES)), key=lambda place: -shares[place])
        for row in rows:
            choices[row] = Choice(
                tuple(found[row][place] for place in order),
                tuple(shares[place] for place in order),
            )
    return [choices[row] for row in range(len(outputs))]


def usual_distortion(choices: Sequence[Choice]) -> Prior | None:
    """What is usual of the distortion of lenses of one model (B, 1); None if it has none."""
    usual = [choice.distortion for choice in choices]
    told = [each for each in usual if each is not None]
    if len(told) < len(usual):
        return None
    values = np.array(told)
    return Prior(values[:, :1], values[:, 1:])


def within_circle(output: NetworkOutput) -> NetworkOutput:
    """A picture of which only the circle that it fills is heeded, where there is one."""
    if output.circle is None:
        return output
    fields, view, (cx, cy) = output.fields.map(to_numpy), output.view, output.circle.centre
    width, height = fields.size
    x = view.left + (np.arange(width) + 0.5) * view.width / width
    y = view.top + (np.arange(height) + 0.5) * view.height / height
    inside = np.hypot(x - cx, y[:, None] - cy) <= output.circle.radius
    return replace(
        output,
        fields=replace(
            fields,
            up_confidence=fields.up_confidence * inside,
            latitude_confidence=fields.latitude_confidence * inside,
        ),
    )


def _candidates(job: Job, outputs: Sequence[NetworkOutput], given: Given) -> list[list[Candidate]]:
    """The families fitted to each of several fields of one size, in pixels of the originals."""
    given = with_starts(given, [output.down for output in outputs])
    views, sizes = [output.view for output in outputs], [output.file.size for output in outputs]
    mapping = Mapping.create(views, [output.fields.size for output in outputs])
    fields = Fields.concatenate([output.fields.map(to_numpy).map(double) for output in outputs])
    found = candidates(fields, mapping.to_fields(given), mapping.aspect_of(given), job.errors)
    return [
        [replace(each, camera=view.to_original(each.camera, size)) for each in own]
        for own, view, size in zip(found, views, sizes, strict=True)
    ]


def _told(candidate: Candidate, probability: float) -> LensFamily:
    camera = candidate.camera
    roll, pitch = sphere.to_roll_pitch(candidate.gravity)
    return LensFamily(
        candidate.family.model.name,
        probability,
        math.degrees(camera.border_vfov.item()),
        math.degrees(camera.border_hfov.item()),
        math.degrees(roll.item()),
        math.degrees(pitch.item()),
    )


def _difference(best: Candidate, rival: Candidate, answer: Calibration) -> Array:
    """(P,) by how much a rival differs from the best, in the parameters of an answer: in its focal
    length by as much as makes up for the field of view. 0 where either has no answer."""
    turn = sphere.difference(best.gravity, rival.gravity, sphere.tangent_basis(best.gravity))
    wider = rival.camera.border_vfov - best.camera.border_vfov
    slope = border_slopes(answer.camera, 1, answer.camera.border_vfov)[LOG_F]
    values = {ALONG_ROLL: turn[0], ALONG_PITCH: turn[1], LOG_F: (wider / slope).item()}
    off = np.array([values.get(name, 0.0) for name in answer.parameters])
    return np.nan_to_num(off, nan=0.0, posinf=0.0, neginf=0.0)
