"""``fit``: from observed perspective fields to cameras, gravity and their uncertainties."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from geocalib.arrays import (
    Array,
    Device,
    DType,
    as_array,
    cast,
    copied,
    detach,
    inference,
    namespace,
    quiet,
    zeros,
)
from geocalib.cameras.base import CameraModel
from geocalib.cameras.camera import Camera
from geocalib.cameras.registry import get_model
from geocalib.errors import CouplingError, FieldError
from geocalib.geometry import gravity as sphere
from geocalib.geometry.fields import Fields, Free
from geocalib.solver.coupling import Coupling, Rig, couple
from geocalib.solver.covariance import FitUncertainty
from geocalib.solver.initial import initial_state
from geocalib.solver.known import Known, Prior, Priors, gather_priors
from geocalib.solver.lm import Progress, Solution
from geocalib.solver.objective import Problem
from geocalib.solver.observations import concatenate, observe
from geocalib.solver.result import FitResult, Status
from geocalib.solver.schedule import FitOptions, find_optimum
from geocalib.solver.state import Frame


@quiet
def fit(
    fields: Fields | Sequence[Fields],
    camera_model: str | CameraModel = "pinhole",
    focal: Known = None,
    gravity: Known = None,
    distortion: Known = None,
    principal_point: Known = None,
    groups: Sequence[int] | Array | None = None,
    rig: Rig | None = None,
    *,
    aspect: Known = 1.0,
    options: FitOptions | None = None,
) -> FitResult:
    """Fit cameras and gravity to perspective fields by robust least squares.

    fields: a batch, or a list of batches where images differ in size (B images in all).
    focal (pixels), gravity (direction), distortion, principal_point (pixels): None leaves it
    free (the principal point: at the image centre), a value fixes it, ``Prior(value, sigma)``
    pulls it; one for all images or one per image.
    groups: one integer per image; equal ones share one camera. rig: known rotations between
    cameras; images taken at once share gravity, each camera its intrinsics over time.
    aspect: fx / fy, one or per image; ``Prior(value, sigma)`` frees it.

    An image whose field cannot be used fails alone, with NaN numbers and a status that says
    why; what is wrong with the call itself raises a ``GeoCalibError``.
    """
    options = options or FitOptions()
    model = get_model(camera_model)
    parts = [fields] if isinstance(fields, Fields) else list(fields)
    device, dtype = _common(parts)
    cleaned, faults = clean_fields(parts)
    images = len(faults)
    coupling = couple(images, groups, rig, device)
    shapes = _shapes(parts, aspect, coupling)
    priors = gather_priors(model, coupling, focal, gravity, distortion, principal_point, aspect)
    frame = frame_of(model, *shapes, priors)
    # Inference mode is cheaper than no_grad; the answer is made outside it, as plain tensors.
    with inference():
        observations = concatenate([observe(part, options.cells) for part in cleaned])
        problem = Problem(
            observations, coupling, frame, priors, options.huber, options.confidence_scale
        )
        start = initial_state(options.initial, cleaned, observations, frame, coupling, priors)
        solution, uncertainty = find_optimum(problem, cleaned, start, options)
    return gather_result(problem, solution, uncertainty, faults, dtype)


def frame_of(model: CameraModel, size: Array, aspect: Array, priors: Priors) -> Frame:
    """The frame of cameras with images of that size (C, 2) and aspect (C,), in which all varies
    that is not fixed beforehand."""
    every = tuple(range(len(model.parameters)))
    free = Free(
        gravity=not priors.gravity.hard,
        focal=not priors.log_f.hard,
        distortion=() if priors.distortion.hard else every,
        principal_point=priors.principal_point.soft,
        aspect=priors.log_stretch.soft,
    )
    frame = Frame.create(model, size, aspect, free)
    # Where one of the angles is known well, a step along the other must not change it.
    return replace(frame, move=sphere.turn) if priors.angles else frame


def _common(parts: list[Fields]) -> tuple[Device, DType]:
    if not parts or not all(isinstance(part, Fields) for part in parts):
        raise FieldError("fit takes Fields or a non-empty list of Fields")
    device, dtype = parts[0].up.device, parts[0].up.dtype
    if any(part.up.device != device or part.up.dtype != dtype for part in parts):
        raise FieldError("all fields of one fit must have the same dtype and device")
    xp = namespace(dtype)
    if dtype not in (xp.float32, xp.float64):
        raise FieldError(f"fields must be float32 or float64, got {dtype}; convert with .float()")
    return device, dtype


def _shapes(parts: list[Fields], aspect: Known, coupling: Coupling) -> tuple[Array, Array]:
    """Image size (C, 2) and aspect (C,) of every camera."""
    xp = namespace(coupling.time)
    sizes = [part.size for part in parts for _ in range(len(part))]
    size = as_array(sizes, coupling.time, xp.float64)
    value = aspect.value if isinstance(aspect, Prior) else aspect
    ratio = as_array(1.0 if value is None else value, size)
    if (
        ratio.ndim > 1
        or (ratio.ndim == 1 and len(ratio) != len(size))
        or not bool((ratio > 0).all())
    ):
        raise FieldError(f"aspect must be a positive number, or one for each of {len(size)} images")
    both = xp.concat([size, xp.broadcast_to(ratio, (len(size),))[:, None]], axis=1)
    of_camera = zeros((len(coupling.camera_component), 3), both)
    of_camera[coupling.camera] = both
    wrong = (of_camera[coupling.camera] != both).any(1)
    if bool(wrong.any()):
        image = int(xp.nonzero(wrong)[0][0])
        raise CouplingError(
            f"image {image} shares its camera with an image of another size or aspect; "
            "resize or crop them alike, or give them cameras of their own"
        )
    return of_camera[:, :2], of_camera[:, 2]


def clean_fields(parts: list[Fields]) -> tuple[list[Fields], list[Status | None]]:
    """The fields without what cannot be used, and the fault of each image, if any."""
    cleaned: list[Fields] = []
    faults: list[Status | None] = []
    xp = namespace(parts[0].up)

    def rows(values: Array) -> Array:
        return values.reshape(len(values), -1)

    for part in parts:
        confidences = (part.up_confidence, part.latitude_confidence)
        # A sum is finite only if everything in it is: one cheap pass in the common case.
        sums = xp.stack(
            [rows(detach(v)).sum(1) for v in (part.up, part.latitude, *confidences)], axis=1
        )
        lowest = xp.minimum(*(xp.min(rows(detach(c)), axis=1) for c in confidences))
        total = sums[:, 2] + sums[:, 3]
        if bool(xp.isfinite(sums).all() & (lowest >= 0).all() & (total > 0).all()):
            cleaned.append(part)
            faults.extend([None] * len(part))
            continue
        finite_up = xp.isfinite(part.up).all(1)
        finite_latitude = xp.isfinite(part.latitude[:, 0])
        wrong_up = (part.up_confidence != 0) & ~finite_up
        wrong_latitude = (part.latitude_confidence != 0) & ~finite_latitude
        bad = rows(wrong_up | wrong_latitude).any(1) | ~xp.isfinite(total)
        for i in range(len(part)):
            if bool(bad[i]):
                faults.append(Status.NOT_FINITE)
            elif bool(lowest[i] < 0):
                faults.append(Status.NEGATIVE_CONFIDENCE)
            elif not bool(total[i] > 0):
                faults.append(Status.NO_CONFIDENCE)
            else:
                faults.append(None)
        keep = as_array([f is None for f in faults[-len(part) :]], part.up, xp.bool)
        up, latitude = keep[:, None, None] & finite_up, keep[:, None, None] & finite_latitude
        cleaned.append(
            Fields(
                xp.where(up[:, None], part.up, 0.0),
                xp.where(latitude[:, None], part.latitude, 0.0),
                xp.where(up, part.up_confidence, 0.0),
                xp.where(latitude, part.latitude_confidence, 0.0),
            )
        )
    return cleaned, faults


def gather_result(
    problem: Problem,
    solution: Solution,
    uncertainty: FitUncertainty,
    faults: list[Status | None],
    dtype: DType,
) -> FitResult:
    """What a fit found, with NaN for the images that failed."""
    coupling, frame = problem.coupling, problem.frame
    xp = namespace(solution.cost)
    camera, gravity, _ = frame.images(solution.state, coupling, xp.float64)
    component = coupling.camera_component[coupling.camera]
    finite = xp.isfinite(solution.cost + gravity.sum(1) + camera.f)
    status = _status(solution.progress, component, finite, faults)
    failed = as_array([s.failed for s in status], gravity, xp.bool)

    def answer(value: Array) -> Array:
        missing = failed.reshape(-1, *(1,) * (value.ndim - 1))
        return cast(xp.where(missing, math.nan, value), dtype)

    return FitResult(
        camera=Camera(
            frame.model,
            f=answer(camera.f),
            c=answer(camera.c),
            distortion=answer(camera.distortion),
            size=copied(cast(camera.size, dtype)),
            aspect=copied(cast(camera.aspect, dtype)),
        ),
        gravity=answer(gravity),
        covariance=answer(uncertainty.covariance),
        parameters=frame.free.names(frame.model),
        status=status,
        cost=answer(detach(solution.cost)),
        confidence_scale=answer(uncertainty.scale),
        iterations=copied(solution.progress.iterations[component]),
    )


def _status(
    progress: Progress, component: Array, finite: Array, faults: list[Status | None]
) -> list[Status]:
    converged = progress.converged[component].tolist()
    stalled = progress.stalled[component].tolist()
    status = []
    for fault, good, done, stuck in zip(faults, finite.tolist(), converged, stalled, strict=True):
        if fault is not None:
            status.append(fault)
        elif not good:
            status.append(Status.DIVERGED)
        elif done:
            status.append(Status.CONVERGED)
        else:
            status.append(Status.STALLED if stuck else Status.MAX_ITERATIONS)
    return status
