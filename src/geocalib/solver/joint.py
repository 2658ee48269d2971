"""Fits of observations in the planes of their cameras: each image by itself, or all together.

The equations are those of ``geocalib.solver``: gravity is eliminated image by image, so that what
is held for an image is a handful of numbers, and time and memory grow linearly. Observations may
be mapped from a file; a few images of them are looked at at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from geocalib.arrays import Array, double, inference, namespace, quiet, unstack, zeros
from geocalib.cameras.base import CameraModel
from geocalib.geometry.fields import ALONG_PITCH, LOG_F, Fields
from geocalib.records import dataclass
from geocalib.solver.coupling import couple
from geocalib.solver.covariance import estimate_uncertainty
from geocalib.solver.fit import clean_fields, frame_of, gather_result
from geocalib.solver.given import Given
from geocalib.solver.initial import initial_state
from geocalib.solver.lm import minimise
from geocalib.solver.objective import Problem
from geocalib.solver.observations import Observations, concatenate, observe
from geocalib.solver.options import FitOptions
from geocalib.solver.plane import Plane
from geocalib.solver.priors import Prior, gather_priors
from geocalib.solver.result import FitResult
from geocalib.solver.search import search
from geocalib.solver.state import State
from geocalib.solver.status import Status

CHUNK = 256
"""Images that are fitted by themselves at once."""


@dataclass(frozen=True)
class Evidence:
    """What is seen and known of B images, in the planes of their cameras (``Plane``)."""

    observations: Observations
    shape: Array
    """(B, 2) longer and shorter side of the pictures."""
    known: Given
    model: CameraModel
    options: FitOptions

    def __len__(self) -> int:
        return len(self.shape)

    def __getitem__(self, run: slice) -> Evidence:
        """A run of the images, which stays where it is, also in a file."""
        return replace(
            self,
            observations=self.observations[run],
            shape=self.shape[run],
            known=self.known[range(len(self))[run]],
        )

    def leave_out(self, images: Array) -> None:
        """Take all weight off some images (B,), in place: what has none is not heard."""
        for weight in (self.observations.up_weight, self.observations.latitude_weight):
            for row in namespace(images).nonzero(images)[0].tolist():
                weight[row] = 0.0

    def problem(self, groups: Sequence[int] | Array | None) -> Problem:
        """The problem of images whose integers are equal where the camera is; None: all alone."""
        coupling = couple(len(self), groups, None, self.shape.device)
        known = self.known
        priors = gather_priors(
            self.model,
            coupling,
            known.focal,
            known.gravity,
            known.distortion,
            known.principal_point,
        )
        size = zeros((len(coupling.camera_component), 2), self.shape)
        size[coupling.camera] = self.shape
        frame = frame_of(self.model, size, namespace(size).ones_like(size[:, 0]), priors)
        options = self.options
        return Problem(
            self.observations, coupling, frame, priors, options.huber, options.confidence_scale
        )


@dataclass(frozen=True)
class Opinions:
    """What each of B images says of its camera, by itself."""

    gravity: Array
    """(B, 3)."""
    intrinsics: Array
    """(B, P) log f and the distortion, as far as they are free; NaN where there is no answer."""
    parameters: tuple[str, ...]
    """Their names."""
    covariance: Array
    """(B, P, P)."""


@quiet
def fit_together(
    evidence: Evidence,
    groups: Sequence[int] | Array | None = None,
    faults: Sequence[Status | None] | None = None,
) -> FitResult:
    """Cameras, in the plane, and gravity of all images, from the trivial start.

    groups: integers, equal where the camera is; by default all are one. faults: why an image that
    has no weight in the observations fails.
    """
    problem = evidence.problem([0] * len(evidence) if groups is None else groups)
    with inference():
        solution = search(problem, _start(problem), evidence.options)
        uncertainty = estimate_uncertainty(problem, solution.state)
    faults = list(faults or [None] * len(evidence))
    dtype = namespace(solution.cost).float64
    return gather_result(problem, solution, uncertainty, faults, dtype)


def fit_turned(
    fields: Sequence[Fields],
    plane: Plane,
    given: Given,
    model: CameraModel,
    cameras: Sequence[int] | Array,
    options: FitOptions,
) -> FitResult:
    """As ``geocalib.fit`` of fields of single images, some of them turned against others of their
    camera, in pixels of the fields; what is given is in pixels of the originals."""
    cleaned, faults = clean_fields([part.map(double) for part in fields])
    seen = [plane[[row]].place(observe(part, options.cells)) for row, part in enumerate(cleaned)]
    evidence = Evidence(concatenate(seen), plane.shape, plane.known(given), model, options)
    result = fit_together(evidence, cameras, faults)
    return plane.to_fields(result, [part.size for part in fields])


@quiet
def fit_from(evidence: Evidence, gravity: Array, intrinsics: Array) -> FitResult:
    """The fit of images of one camera, from gravities (B, 3) and free intrinsics (P,) near it.

    Images whose gravity is NaN are left out and fail.
    """
    xp = namespace(gravity)
    lost = ~xp.isfinite(gravity).all(1)
    evidence.leave_out(lost)
    problem = evidence.problem([0] * len(evidence))
    with inference():
        start = _start(problem)
        still = zeros((len(gravity), 2), start.gravity)
        start = problem.frame.step(start, still, _step(problem, start, intrinsics))
        if problem.frame.free.gravity:
            start = replace(start, gravity=xp.where(lost[:, None], start.gravity, gravity))
        solution = minimise(problem, start, evidence.options.max_iterations)
        uncertainty = estimate_uncertainty(problem, solution.state)
    faults = [Status.DIVERGED if fault else None for fault in lost.tolist()]
    return gather_result(problem, solution, uncertainty, faults, xp.float64)


def opinions(evidence: Evidence) -> Opinions:
    """What each image says by itself. A soft prior on the camera, which all of them would repeat,
    is left out."""
    known = evidence.known
    own = replace(
        known,
        focal=None if isinstance(known.focal, Prior) else known.focal,
        distortion=None if isinstance(known.distortion, Prior) else known.distortion,
    )
    evidence = replace(evidence, known=own)
    parts = []
    for start in range(0, len(evidence), CHUNK):
        part = evidence[start : start + CHUNK]
        result = fit_together(part, range(len(part)))
        camera, at = result.camera, 2 * (ALONG_PITCH in result.parameters)
        names = result.parameters[at:]
        columns = dict(zip(camera.model.parameters, unstack(camera.distortion, 1), strict=True))
        xp = namespace(camera.f)
        columns[LOG_F] = xp.log(camera.f)
        values = [columns[name] for name in names]
        intrinsics = xp.stack(values, axis=1) if values else zeros((len(part), 0), camera.f)
        parts.append((result.gravity, intrinsics, result.covariance[:, at:, at:]))
    gravity, intrinsics, covariance = map(xp.concat, zip(*parts, strict=True))
    return Opinions(gravity, intrinsics, names, covariance)


def _start(problem: Problem) -> State:
    frame, coupling = problem.frame, problem.coupling
    return initial_state("trivial", [], problem.observations, frame, coupling, problem.priors)


def _step(problem: Problem, start: State, intrinsics: Array) -> Array:
    """(1, P) from the start's free intrinsics to these."""
    free = problem.frame.free
    at = namespace(intrinsics).concat(
        [start.log_f[:, None][:, : int(free.focal)], start.distortion], axis=1
    )
    kept = [*range(int(free.focal)), *(int(free.focal) + i for i in free.distortion)]
    return intrinsics[None] - at[:, kept]
