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
from geocalib.solver.families import CELLS, Candidate, Fitted, compare, probabilities
from geocalib.solver.fit import fit
from geocalib.solver.known import Given, Mapping, Prior
from geocalib.solver.result import FitResult, border_slopes
from geocalib.solver.schedule import FitOptions
from geocalib.solver.sigma_calibration import FieldErrors


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
    lenses = coupling.camera_component[coupling.camera].tolist()
    # What files tell of one picture must not change the last bits of another's answer.
    kinds = [
        (output.fields.size, reading.focal is None, reading.gravity is None)
        for output, reading in zip(outputs, readings, strict=True)
    ]

    def fit_to(
        rows: Sequence[int], model: CameraModel, usual: Sequence[tuple[float, float]] | None
    ) -> list[Fitted]:
        found: dict[int, Fitted] = {}
        for kind in dict.fromkeys(kinds[row] for row in rows):
            own = [row for row in rows if kinds[row] == kind]
            told = with_readings(
                given[own], [readings[row] for row in own], [files[row] for row in own], own
            )
            if usual is not None:
                told = replace(told, distortion=_prior([usual[rows.index(row)] for row in own]))
            result = _fit([outputs[row] for row in own], job.errors, model, told)
            found |= {row: (result, place) for place, row in enumerate(own)}
        return [found[row] for row in rows]

    odds = {
        lens: odds_of_lenses(
            (file.metadata, output.circle)
            for own, file, output in zip(lenses, files, outputs, strict=True)
            if own == lens
        )
        for lens in set(lenses)
    }
    candidates = compare(fit_to, lenses, odds)
    shares = {
        lens: probabilities(
            [found for own, found in zip(lenses, candidates, strict=True) if own == lens],
            odds[lens],
        )
        for lens in set(lenses)
    }
    return [
        _choice(found, shares[lens], output)
        for found, lens, output in zip(candidates, lenses, outputs, strict=True)
    ]


def _choice(found: Sequence[Candidate], shares: Sequence[float], output: NetworkOutput) -> Choice:
    """Of one picture, carried over to its original."""
    order = sorted(range(len(found)), key=lambda place: -shares[place])
    carried = [
        replace(found[place], camera=output.view.to_original(found[place].camera, output.file.size))
        for place in order
    ]
    return Choice(tuple(carried), tuple(shares[place] for place in order))


def _fit(
    outputs: Sequence[NetworkOutput], errors: FieldErrors, model: CameraModel, given: Given
) -> FitResult:
    """Fields of one size, each by itself and coarsely, in their pixels."""
    mapping = Mapping.create(
        [output.view for output in outputs], [output.fields.size for output in outputs]
    )
    known = mapping.to_fields(with_starts(given, [output.down for output in outputs]))
    return fit(
        Fields.concatenate([output.fields.map(to_numpy).map(double) for output in outputs]),
        errors.model_to_fit(model),
        known.focal,
        known.gravity,
        known.distortion,
        known.principal_point,
        aspect=mapping.aspect_of(given),
        options=FitOptions(confidence_scale=errors.confidence_scale, cells=CELLS),
    ).in_numpy()


def usual_distortion(choices: Sequence[Choice]) -> Prior | None:
    """What is usual of the distortion of lenses of one model (B, 1); None if it has none."""
    usual = [choice.distortion for choice in choices]
    told = [each for each in usual if each is not None]
    if len(told) < len(usual):
        return None
    return _prior(told)


def _prior(usual: Sequence[tuple[float, float]]) -> Prior:
    values = np.array(usual)
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
