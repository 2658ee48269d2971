"""``fit``: from observed perspective fields to cameras, gravity and their uncertainties.

Far from the optimum a few hundred cells show the way as well as thousands, and next to it one step
of Newton's method is enough: its curvature is the one that the uncertainty needs anyway. So most
fits descend in a few large cells and look at all observations once. Models with many parameters
free them in stages.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import get_args

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
    replace_rows,
    zeros,
)
from geocalib.cameras.base import CameraModel
from geocalib.cameras.camera import Camera
from geocalib.cameras.registry import get_model
from geocalib.errors import ConfigError, CouplingError, FieldError
from geocalib.geometry import gravity as sphere
from geocalib.geometry.conventions import HUBER_THRESHOLD
from geocalib.geometry.fields import Fields, Free
from geocalib.records import map_tensors
from geocalib.solver.coupling import Coupling, Rig, couple, to_cameras
from geocalib.solver.initial import Initial, initial_state
from geocalib.solver.known import Known, Prior, Priors, gather_priors
from geocalib.solver.objective import Problem
from geocalib.solver.observations import concatenate, observe
from geocalib.solver.optimum import (
    DAMPING_START,
    LARGEST_TREND,
    FitUncertainty,
    Progress,
    Solution,
    estimate_uncertainty,
    minimise,
    uncertainty_by,
)
from geocalib.solver.result import FitResult, Status
from geocalib.solver.state import Frame, State

COARSE_CELLS = 16
"""Cells along the shorter side to begin with. Their optimum lies a few hundredths of a sigma from
that of all observations (median of crops of panoramas 0.05, at most 0.5; of photographs 0.01)."""

COARSE_ERROR = 0.05
"""The descent in large cells ends when its next step is expected to gain less than this part of a
sigma."""

CALM = 0.1
"""Factor on the first damping where no distortion varies: gravity and focal length lie in no curved
valley. And steps that damping made shorter look as if noise had, so that those after them are
stretched too far."""

NEWTON_SIGMAS = 0.25
"""Longest step of Newton's method that ends a fit, in sigmas: it leaves an error of 0.001 sigmas
(median), at most 0.06."""

NEWTON_LENGTH = 0.02
"""Longest such step in radians and log f: along a flat valley a small part of a sigma is far, and
how flat the valley is changes on the way."""

DAMPING_NEAR, FINE_ERROR = 1e-3, 0.01
"""Where one step of Newton's method is not enough: the damping of the descent that follows, and the
part of a sigma that ends it."""

STAGE_ITERATIONS, PATIENT_ITERATIONS = 2, 3
"""Iterations before the next distortion parameter is freed, where a model asks for an order: in
the first attempt, and in the second."""


@dataclass(frozen=True)
class FitOptions:
    """Options of ``fit`` beyond the problem itself. The defaults are the measured ones."""

    cells: int | None = 48
    """Pool the fields to at least this many cells along the shorter side; None: every pixel."""
    initial: Initial = "trivial"
    """The guess at which a fit starts."""
    huber: float | None = HUBER_THRESHOLD
    """Residual norm beyond which the cost grows linearly; None: plain squares."""
    max_iterations: int = 30
    """Most steps of Levenberg-Marquardt."""
    damping: float = DAMPING_START
    """The first one, relative to the curvature; later ones follow from how steps turn out."""
    confidence_scale: float | None = None
    """s^2, which turns confidences into information (E / s^2). None: from the residuals."""
    error: float | None = None
    """Part of a sigma: the search ends once its next step is expected to gain no more, where
    ``confidence_scale`` tells how much that is. None: as exactly as the numbers allow."""

    def __post_init__(self) -> None:
        if self.initial not in get_args(Initial):
            known = ", ".join(get_args(Initial))
            raise ConfigError(f"initial is {self.initial!r}; known: {known}")
        for name in ("cells", "huber", "max_iterations", "damping", "confidence_scale", "error"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ConfigError(f"{name} must be positive, got {value}")


def find_optimum(
    problem: Problem, fields: Sequence[Fields], start: State, options: FitOptions
) -> tuple[Solution, FitUncertainty]:
    """Return the best state found from ``start``, and its uncertainty.

    fields: the batches that the problem's observations were made of, to make fewer of them.
    """
    most, scale = options.max_iterations, problem.scale
    in_stages = bool(problem.frame.model.release)
    if scale is None or in_stages or most == 1:
        return _find_in_all(problem, start, options)
    few = concatenate([observe(part, COARSE_CELLS) for part in fields])
    if 4 * few.count >= problem.observations.count:
        return _find_in_all(problem, start, options)
    in_few = replace(problem, observations=few)
    damping = options.damping * (1.0 if problem.frame.free.distortion else CALM)
    coarse = minimise(in_few, start, most // 2, damping, COARSE_ERROR**2 * scale)
    solution, uncertainty = _newton_step(problem, coarse)
    unfinished = ~solution.progress.converged
    if bool(unfinished.any()):
        solution, uncertainty = _descend_further(
            problem, solution, uncertainty, unfinished, most - most // 2, FINE_ERROR**2 * scale
        )
    return solution, uncertainty


def _find_in_all(
    problem: Problem, start: State, options: FitOptions
) -> tuple[Solution, FitUncertainty]:
    """Search by looking at all observations in every step."""
    solution = search(problem, start, options)
    return solution, estimate_uncertainty(problem, solution.state)


def _newton_step(problem: Problem, coarse: Solution) -> tuple[Solution, FitUncertainty]:
    """Look at all observations once, where the coarse descent ended: components that need but a
    short step of Newton's method take it and have converged, the others stay where they are."""
    coupling, state = problem.coupling, coarse.state
    evaluation, info = problem.inspect(state)
    newton = evaluation.curved(info)
    undamped = namespace(evaluation.cost).zeros_like(evaluation.cost)
    step, plain = problem.step(newton, undamped), problem.step(evaluation, undamped)
    # Where few residuals are small their density is a poor guess, and so is the step.
    sound = step.gain * (1 - LARGEST_TREND) <= plain.gain
    short = (step.length <= NEWTON_LENGTH) & (step.gain <= NEWTON_SIGMAS**2 * evaluation.scale)
    near = sound & short
    moved = problem.frame.step(state, step.time, to_cameras(step.camera, coupling))
    progress = Progress.start(evaluation.cost, DAMPING_NEAR)
    iterations = coarse.progress.iterations + near
    return (
        Solution(
            moved.where(near, state, coupling),
            evaluation.normal.cost,
            replace(progress, iterations=iterations, converged=near),
        ),
        uncertainty_by(newton, info.scatter, problem, state),
    )


def _descend_further(
    problem: Problem,
    solution: Solution,
    uncertainty: FitUncertainty,
    unfinished: Array,
    max_iterations: int,
    least_gain: float,
) -> tuple[Solution, FitUncertainty]:
    """Continue the unfinished components (K,) in all observations, and put them in their places."""
    part, images, times, cameras = problem.select(unfinished)
    components = namespace(unfinished).nonzero(unfinished)[0]
    state = solution.state.select(times, cameras)
    rest = minimise(part, state, max_iterations, DAMPING_NEAR, least_gain)
    spent = solution.progress.iterations[components]
    progress = replace(rest.progress, iterations=rest.progress.iterations + spent)
    sure = estimate_uncertainty(part, rest.state)
    return (
        Solution(
            solution.state.replaced(rest.state, times, cameras),
            replace_rows(solution.cost, images, rest.cost),
            solution.progress.replaced(progress, components),
        ),
        map_tensors(lambda all_, few: replace_rows(all_, images, few), uncertainty, sure),
    )


def search(problem: Problem, start: State, options: FitOptions) -> Solution:
    """Return the best state found from ``start`` by looking at all observations in every step: in
    one descent for most models, in stages where a model asks for an order."""
    order = problem.frame.model.release
    state, spent = _free_in_stages(problem, start, order, STAGE_ITERATIONS, options.max_iterations)
    scale, error = problem.scale, options.error
    little = None if scale is None or error is None else error**2 * scale
    solution = minimise(problem, state, options.max_iterations - spent, options.damping, little)
    progress = replace(solution.progress, iterations=solution.progress.iterations + spent)
    solution = replace(solution, progress=progress)
    if spent and not bool(progress.converged.all()):
        solution = _restart(problem, start, solution, options.max_iterations)
    return solution


def _free_in_stages(
    problem: Problem, state: State, order: tuple[int, ...], each: int, most: int
) -> tuple[State, int]:
    """Free the distortion parameters in that order, ``each`` iterations after one another; return
    the state and the iterations spent, fewer than ``most``.

    Plain squares all the way: the start is far off, where the Huber kernel only slows the steps.
    """
    spent = 0
    for frame in _stages(problem.frame, order):
        count = min(each, most - spent - 1)
        state = minimise(replace(problem, frame=frame, huber=None), state, count).state
        spent += count
    return state, spent


def _stages(frame: Frame, order: tuple[int, ...]) -> list[Frame]:
    """Frames that free ever more of the order's parameters, without its last one and those that it
    leaves out, which the final descent frees."""
    free_order = [i for i in order if i in frame.free.distortion]
    stages = []
    for count in range(len(free_order)):
        free = replace(frame.free, distortion=tuple(sorted(free_order[:count])))
        stages.append(replace(frame, free=free))
    return stages


def _restart(problem: Problem, start: State, first: Solution, most: int) -> Solution:
    """Search once more for components that did not converge, with more patience and every parameter
    freed by itself; the second end counts where it is the cheaper one."""
    unfinished = ~first.progress.converged
    part, images, times, cameras = problem.select(unfinished)
    released = problem.frame.model.release
    rest = tuple(i for i in problem.frame.free.distortion if i not in released)
    order = (*released, *rest)
    state, spent = _free_in_stages(
        part, start.select(times, cameras), order, PATIENT_ITERATIONS, most
    )
    second = minimise(part, state, most - spent)
    xp = namespace(unfinished)
    components = xp.nonzero(unfinished)[0]
    cost = first.cost[images]
    better = part.coupling.component_sum(second.cost) < part.coupling.component_sum(cost)
    state = second.state.where(better, first.state.select(times, cameras), part.coupling)
    image_better = better[part.coupling.camera_component[part.coupling.camera]]
    progress = second.progress.where(better, first.progress.select(components))
    return Solution(
        first.state.replaced(state, times, cameras),
        replace_rows(first.cost, images, xp.where(image_better, second.cost, cost)),
        first.progress.replaced(progress, components),
    )


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
