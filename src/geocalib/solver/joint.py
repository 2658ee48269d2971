"""Fits of many images in the image planes of their cameras: each image by itself, or all together.

The plane of a camera has its origin at the principal point and the longer side of the picture for
its unit. Turning a camera by a quarter turns its gravity and swaps the sides of its pictures; the
focal length in this unit and a radial distortion stay what they are. So observations that are moved
there can share a camera whatever the size and the orientation of the fields they come from.

Gravity is eliminated image by image, so that what is held for an image is a handful of numbers, and
time and memory grow linearly. Observations may be mapped from a file and are read a few images at a
time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from geocalib.arrays import (
    Array,
    as_array,
    cast,
    double,
    inference,
    namespace,
    quiet,
    tiny,
    to_array,
    unstack,
    zeros,
)
from geocalib.cameras.base import CameraModel
from geocalib.cameras.camera import Camera
from geocalib.geometry.fields import ALONG_PITCH, LOG_F, Fields
from geocalib.records import dataclass
from geocalib.solver.coupling import couple
from geocalib.solver.fit import FitOptions, clean_fields, frame_of, gather_result, search
from geocalib.solver.initial import initial_state
from geocalib.solver.known import Given, Mapping, Prior, gather_priors
from geocalib.solver.objective import Problem
from geocalib.solver.observations import Observations, concatenate, observe
from geocalib.solver.optimum import estimate_uncertainty, minimise
from geocalib.solver.result import FitResult, Status
from geocalib.solver.state import State

SHAPE_TOLERANCE = 0.01
"""Relative difference of the sides' ratio that is more than the rounding of a resize."""

CHUNK = 256
"""Images that are fitted by themselves at once."""


@dataclass(frozen=True)
class Plane:
    """Where the fields of B images lie in the planes of their cameras."""

    mapping: Mapping
    """From pixels of the originals to those of the fields."""
    size: Array
    """(B, 2) width and height of the originals, pixels."""
    centre: Array
    """(B, 2) principal point, pixels of the originals."""

    @classmethod
    def create(
        cls, mapping: Mapping, sizes: Sequence[tuple[int, int]], centre: Array | None = None
    ) -> Plane:
        """With the principal point at the centre, or where it is known to be (B, 2)."""
        size = as_array(sizes, mapping.scale).reshape(-1, 2)
        return cls(mapping, size, 0.5 * size if centre is None else centre)

    def __len__(self) -> int:
        return len(self.size)

    def __getitem__(self, index: Array | Sequence[int]) -> Plane:
        """The planes of some of the images."""
        rows = to_array(index, namespace(self.size))
        mapping = Mapping(self.mapping.scale[rows], self.mapping.corner[rows])
        return Plane(mapping, self.size[rows], self.centre[rows])

    @classmethod
    def concatenate(cls, parts: Sequence[Plane]) -> Plane:
        xp = namespace(parts[0].size)
        return cls(
            Mapping(
                xp.concat([part.mapping.scale for part in parts]),
                xp.concat([part.mapping.corner for part in parts]),
            ),
            xp.concat([part.size for part in parts]),
            xp.concat([part.centre for part in parts]),
        )

    @property
    def unit(self) -> Array:
        """(B,) pixels of the originals."""
        return namespace(self.size).max(self.size, axis=1)

    @property
    def shape(self) -> Array:
        """(B, 2) longer and shorter side of the pictures in the plane: 1 and at most 1."""
        xp = namespace(self.size)
        return xp.flip(xp.sort(self.size, axis=1), axis=1) / self.unit[:, None]

    def place(self, observations: Observations) -> Observations:
        """Observations in pixels of the fields, moved to the plane."""
        o = observations.padded(observations.count)
        kind = o.up_x.dtype
        scale, unit = cast(self.mapping.scale, kind), cast(self.unit[:, None], kind)
        origin = cast(self.mapping.corner - self.centre, kind)
        x, y = o.up_x / scale[:, :1], o.up_y / scale[:, 1:]
        length = namespace(x).hypot(x, y).clip(tiny(x))
        return replace(
            o,
            at_x=(o.at_x / scale[:, :1] + origin[:, :1]) / unit,
            at_y=(o.at_y / scale[:, 1:] + origin[:, 1:]) / unit,
            up_x=x / length,
            up_y=y / length,
        )

    def known(self, given: Given) -> Given:
        """What is known in pixels of the originals, in the plane."""
        focal, unit = given.focal, self.unit[:, None]
        if isinstance(focal, Prior):
            focal = Prior(focal.value / unit, focal.sigma / unit)
        elif focal is not None:
            focal = focal / unit
        return replace(
            given, focal=focal, principal_point=namespace(self.centre).zeros_like(self.centre)
        )

    def originals(self, camera: Camera) -> Camera:
        """The cameras of the originals, with square pixels, given those of the plane."""
        size, centre, unit = (as_array(v, camera.f) for v in (self.size, self.centre, self.unit))
        square = namespace(unit).ones_like(unit)
        return Camera(camera.model, camera.f * unit, centre, camera.distortion, size, square)

    def to_fields(self, result: FitResult, sizes: Sequence[tuple[int, int]]) -> FitResult:
        """A fit in the plane as one in pixels of fields of these (width, height), whose principal
        point is fixed."""
        scale, corner = self.mapping.scale, self.mapping.corner
        camera = self.originals(result.camera)
        focal = as_array(scale[:, 1], camera.f)
        moved = Camera(
            camera.model,
            camera.f * focal,
            (camera.c - corner) * scale,
            camera.distortion,
            as_array(sizes, camera.f),
            as_array(self.mapping.aspect, camera.f),
        )
        return replace(result, camera=moved)


def alike(size: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether one camera can take pictures of both sizes: turned or resized, but not cropped."""
    ratio, wanted = max(size) / min(size), max(other) / min(other)
    return abs(ratio / wanted - 1) <= SHAPE_TOLERANCE


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
        """Return a run of the images, as views of the arrays, which may lie in a file."""
        return replace(
            self,
            observations=self.observations[run],
            shape=self.shape[run],
            known=self.known[range(len(self))[run]],
        )

    def leave_out(self, images: Array) -> None:
        """Take all weight off some images (B,), in place, so that they do not count."""
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
class SingleFits:
    """The camera and the gravity that each of B images gives by itself."""

    gravity: Array
    """(B, 3)."""
    intrinsics: Array
    """(B, P) log f and the distortion, as far as they are free; NaN where there is no answer."""
    parameters: tuple[str, ...]
    """Names of the parameters."""
    covariance: Array
    """(B, P, P)."""
    fits: FitResult
    """The same with all that belongs to it; cameras in the plane."""


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


def fit_each(evidence: Evidence) -> SingleFits:
    """Fit each image by itself, without the soft prior on the camera, which every one of them would
    count again."""
    known = evidence.known
    own = replace(
        known,
        focal=None if isinstance(known.focal, Prior) else known.focal,
        distortion=None if isinstance(known.distortion, Prior) else known.distortion,
    )
    evidence = replace(evidence, known=own)
    parts, fits = [], []
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
        fits.append(result)
    gravity, intrinsics, covariance = map(xp.concat, zip(*parts, strict=True))
    return SingleFits(gravity, intrinsics, names, covariance, FitResult.concatenate(fits))


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
