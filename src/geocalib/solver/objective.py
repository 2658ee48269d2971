"""The objective E / s^2 + priors of coupled images: its value and its normal equations.

E = sum w_up rho(|up - up_obs|^2) + w_lat rho(|sin lat - sin lat_obs|^2) per image, rho the Huber
kernel. An observation that the trial camera cannot see (outside the domain of its model) counts as
wrong, so that no step gains by losing sight of pixels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from geocalib.arrays import (
    Array,
    diagonal,
    diagonal_matrices,
    double,
    namespace,
    row_max,
    solve,
    sum_rows,
    tiny,
    zeros,
)
from geocalib.cameras.camera import Camera
from geocalib.geometry import gravity as sphere
from geocalib.geometry.fields import (
    Free,
    cast_rays,
    latitude_field,
    latitude_jacobian,
    up_field,
    up_jacobian,
)
from geocalib.records import Held, dataclass, map_tensors
from geocalib.solver.coupling import Arrow, Coupling, assemble_vector, damped
from geocalib.solver.known import Constraint, Priors
from geocalib.solver.observations import Observations
from geocalib.solver.state import Frame, State

CHUNK = 1 << 16
"""Observations evaluated at once: on a CPU they and all temporaries stay in its cache."""
CHUNK_ELSEWHERE = 1 << 24
"""On a device that is kept busy by large batches: as many as memory allows."""

UNSEEN, UNSEEN_WIDE = 2.0, 0.03
"""Squared residual of an observation that the camera cannot see: entirely wrong; for wide models,
whose domain often ends inside the image, clearly wrong."""

IMMOBILE = 1e12
"""Times its curvature, for an unknown that is not to move."""


@dataclass(frozen=True)
class Normal:
    """Gauss-Newton normal equations of E / 2 per image, in double precision."""

    hessian: Array
    """(B, P, P)."""
    gradient: Array
    """(B, P)."""
    cost: Array
    """(B,) the value of E."""


@dataclass(frozen=True)
class Information:
    """The two halves of the sandwich covariance hessian^-1 scatter hessian^-1, per image."""

    hessian: Array
    """(B, P, P) expected curvature of E / 2."""
    scatter: Array | None
    """(B, P, P) sum of squared scores, where it is wanted."""


@dataclass(frozen=True)
class _Residuals:
    """Residuals (B, M) of M up-vectors and latitudes in a row."""

    rows: Array
    """(B, P + 1, M) their Jacobians, and below them the residuals themselves: their components
    along the derivative (the up-vector's two reduce to one)."""
    squared: Array
    weight: Array

    @property
    def jacobian(self) -> Array:
        """The derivatives by the unknowns, (B, P, M)."""
        return self.rows[:, :-1]

    @property
    def value(self) -> Array:
        """The residuals along the derivative, (B, M), without a unit."""
        return self.rows[:, -1]


def normal_equations(
    camera: Camera,
    gravity: Array,
    basis: Array,
    observations: Observations,
    free: Free,
    huber: float | None,
) -> Normal:
    """Normal equations of B images with cameras (B), gravity (B, 3) and its basis (B, 3, 2)."""
    chunks = _chunks(camera, gravity, basis, observations, free)
    return _joined([_normal(r, huber)[0] for r in chunks])


def inspect(
    camera: Camera,
    gravity: Array,
    basis: Array,
    observations: Observations,
    free: Free,
    huber: float | None,
    with_scatter: bool,
) -> tuple[Normal, Information]:
    """Return the normal equations together with the expected curvature and, if wanted, the
    scatter of the scores, which the uncertainty at an optimum follows from.

    In its linear part the Huber cost of one residual has no curvature; that of the expected
    cost comes from the density of residuals around zero, here measured within a window that
    widens with the noise.
    """
    normals, information = [], []
    for r in _chunks(camera, gravity, basis, observations, free):
        normal, trust = _normal(r, huber)
        weighted = double(r.jacobian * _curvature(r, huber)[:, None])
        scatter = None
        if with_scatter:
            score = double(r.jacobian * (r.weight * trust * r.value)[:, None])
            scatter = score @ score.mT
        normals.append(normal)
        information.append(Information(weighted @ double(r.jacobian).mT, scatter))
    return _joined(normals), _joined(information)


def _normal(r: _Residuals, huber: float | None) -> tuple[Normal, Array]:
    """The normal equations of a chunk, and how far each residual (B, M) is trusted."""
    cost, trust = huber_kernel(r.squared, huber)
    weighted = r.jacobian * (r.weight * trust)[:, None]
    product = double(weighted) @ double(r.rows).mT
    return Normal(product[..., :-1], product[..., -1], double(r.weight * cost).sum(1)), trust


def huber_kernel(squared: Array, threshold: float | None) -> tuple[Array, Array]:
    """Return the cost of each squared norm of a residual, and its weight in the normal equations.

    The cost is ``squared`` up to the threshold and 2 threshold norm - threshold^2 beyond.
    """
    if threshold is None:
        return squared, namespace(squared).ones_like(squared)
    xp = namespace(squared)
    norm = xp.sqrt(squared.clip(threshold**2))
    return xp.minimum(squared, 2 * threshold * norm - threshold**2), threshold / norm


def _joined(parts: list[Held]) -> Held:
    """One batch of residuals, of several."""
    if len(parts) == 1:
        return parts[0]

    def join(*values: Array | None) -> Array | None:
        return None if values[0] is None else namespace(values[0]).concat(values)

    return map_tensors(join, *parts)


def _curvature(r: _Residuals, huber: float | None) -> Array:
    """(B, M) expected, of each residual."""
    if huber is None:
        return r.weight
    half = r.weight.shape[1] // 2
    parts = [
        weight * _density(squared, weight, huber)
        for weight, squared in (
            (r.weight[:, :half], r.squared[:, :half]),
            (r.weight[:, half:], r.squared[:, half:]),
        )
    ]
    return namespace(r.weight).concat(parts, axis=1)


def _density(squared: Array, weight: Array, threshold: float) -> Array:
    """Expected curvature of each residual, from a box window of a third of a sigma."""
    # The weighted mean of the norms' square roots, squared: the median's value for Gaussian
    # noise, nearly as deaf to outliers, and much cheaper.
    xp = namespace(squared)
    root = xp.sqrt(xp.sqrt(squared))
    total = weight.sum(1)[:, None].clip(tiny(weight))
    typical = ((weight * root).sum(1)[:, None] / total) ** 2
    window = (0.5 * typical).clip(threshold)
    return (squared < window * window) * (threshold / window)


def _chunks(
    camera: Camera, gravity: Array, basis: Array, observations: Observations, free: Free
) -> Iterator[_Residuals]:
    """The residuals of all images, a few images at a time."""
    most = CHUNK if str(observations.up_x.device) == "cpu" else CHUNK_ELSEWHERE
    step = max(1, most // max(1, observations.count))
    if step >= len(observations):
        yield _residuals(camera, gravity, basis, observations, free)
        return
    for start in range(0, len(observations), step):
        part = slice(start, start + step)
        yield _residuals(camera[part], gravity[part], basis[part], observations[part], free)


def _residuals(
    camera: Camera, gravity: Array, basis: Array, observations: Observations, free: Free
) -> _Residuals:
    o, xp = observations, namespace(gravity)
    rays = cast_rays(camera, gravity, o.at_x, o.at_y)
    up_rays = latitude_rays = rays
    if o.at_x.shape[1] > o.count:
        up_rays, latitude_rays = rays.part(0, o.count), rays.part(o.count, o.count)
    up = up_field(up_rays, camera, gravity)
    latitude = latitude_field(latitude_rays, gravity)
    dx, dy = up.x - o.up_x, up.y - o.up_y
    turned = up.y * o.up_x - up.x * o.up_y
    difference = latitude.sine - o.sin_latitude
    pairs = zip(
        up_jacobian(up_rays, up, camera, gravity, basis, free),
        latitude_jacobian(latitude_rays, latitude, camera, gravity, basis, free),
        strict=True,
    )
    columns = [column for pair in pairs for column in pair]
    rows = xp.concat([*columns, turned, difference], axis=1)
    rows = rows.reshape(len(gravity), len(columns) // 2 + 1, 2 * o.count)
    squared = xp.concat([dx * dx + dy * dy, difference * difference], axis=1)
    seen = rays.jet.valid
    if seen is not None and not bool(seen.all()):
        seen = seen if seen.shape == squared.shape else xp.concat([seen, seen], axis=1)
        squared = xp.where(seen, squared, UNSEEN_WIDE if camera.model.wide else UNSEEN)
        rows = xp.where(seen[:, None], rows, 0.0)
    return _Residuals(rows, squared, xp.concat([o.up_weight, o.latitude_weight], axis=1))


SMALLEST_SCALE = 1e-14
"""Floor of the estimated s^2, reached by noise-free fields."""


@dataclass(frozen=True)
class Problem:
    """Everything that stays fixed during a fit."""

    observations: Observations
    coupling: Coupling
    frame: Frame
    priors: Priors
    huber: float | None
    scale: float | None
    """s^2, None to estimate it."""

    def select(self, keep: Array) -> tuple[Problem, Array, Array, Array]:
        """The sub-problem of some components (K,), and the indices of its images, times and
        cameras."""
        coupling, images, times, cameras = self.coupling.select(keep)
        return (
            replace(
                self,
                observations=self.observations[images],
                coupling=coupling,
                frame=self.frame.select(cameras),
                priors=self.priors.select(times, cameras),
            ),
            images,
            times,
            cameras,
        )

    @cached_property
    def gravity_size(self) -> int:
        return 2 if self.frame.free.gravity else 0

    def evaluate(self, state: State) -> Evaluation:
        """Normal equations, costs and s^2 at a state."""
        if self.scale is None and self.priors.soft:
            return self.inspect(state)[0]
        return self._evaluation(state, normal_equations(*self._shown(state)))

    def inspect(self, state: State) -> tuple[Evaluation, Information]:
        """The same, with s^2 always, and what the uncertainty follows from."""
        normal, info = inspect(*self._shown(state), self.scale is None)
        evaluation = self._evaluation(state, normal)
        if info.scatter is None:
            return evaluation, info
        scale = estimated_scale(info.hessian, info.scatter, self.coupling)
        return replace(evaluation, scale=scale), info

    def _evaluation(self, state: State, normal: Normal) -> Evaluation:
        """With s^2, 1 where it is to be estimated."""
        cost = self.coupling.component_sum(normal.cost)
        scale = namespace(cost).full_like(cost, 1.0 if self.scale is None else self.scale)
        prior = self.prior_terms(state)
        return Evaluation(normal, cost, scale, prior, self._at_bounds(state, normal, scale, prior))

    def _at_bounds(
        self, state: State, normal: Normal, scale: Array, prior: PriorTerms | None
    ) -> Array | None:
        """(C, P) the intrinsics at a bound that the cost pushes beyond it; None without any."""
        xp, coupling = namespace(state.log_f), self.coupling
        lowest, highest = self.frame.at_bounds(state)
        if not bool((lowest | highest).any()):
            return None
        a = self.gravity_size
        pull = -sum_rows(normal.gradient[:, a:], coupling.camera, len(state.log_f))
        if prior is not None:
            pull = pull + scale[coupling.camera_component, None] * prior.camera_pull
        held = xp.where(pull < 0, lowest, (pull > 0) & highest)
        return held if bool(held.any()) else None

    def _shown(self, state: State) -> tuple[Camera, Array, Array, Observations, Free, float | None]:
        """What the residuals at a state depend on."""
        images = self.frame.images(state, self.coupling, self.observations.up_x.dtype)
        return *images, self.observations, self.frame.free, self.huber

    def prior_terms(self, state: State) -> PriorTerms | None:
        """The soft priors' normal equations, None without any."""
        if not self.priors.soft:
            return None
        free, coupling, xp = self.frame.free, self.coupling, namespace(state.gravity)
        time_pull = zeros((len(state.gravity), self.gravity_size), state.gravity)
        time_weight = xp.zeros_like(time_pull)
        cost = zeros((coupling.components,), state.gravity)
        known = self.priors.gravity
        if known.information is not None and known.value is not None:
            away, time_weight = _away(state.gravity, known.value, known.information)
            time_pull = time_weight * away
            cost = coupling.times_sum((time_pull * away).sum(1))
        pulls, weights = [], []

        def pull(known: Constraint, at: Array, columns: Sequence[int]) -> None:
            weight, away = xp.zeros_like(at), xp.zeros_like(at)
            if known.information is not None and known.value is not None:
                weight, away = known.information, known.value - at
            weights.append(weight[:, columns])
            pulls.append((weight * away)[:, columns])

        pull(self.priors.log_f, state.log_f[:, None], [0] if free.focal else [])
        pull(self.priors.distortion, state.distortion, free.distortion)
        pull(self.priors.principal_point, state.c, [0, 1] if free.principal_point else [])
        pull(self.priors.log_stretch, state.log_stretch[:, None], [0] if free.aspect else [])
        camera_pull, camera_weight = xp.concat(pulls, axis=1), xp.concat(weights, axis=1)
        squares = camera_pull**2 / xp.where(camera_weight > 0, camera_weight, 1.0)
        cost = cost + sum_rows(squares.sum(1), coupling.camera_component, coupling.components)
        return PriorTerms(time_weight, time_pull, camera_weight, camera_pull, cost)

    def step(self, evaluation: Evaluation, damping: Array) -> Step:
        """The step by the normal equations, damped (K,)."""
        coupling, a = self.coupling, self.gravity_size
        if coupling.separate:
            # One small matrix for each image is solved as a whole.
            matrix, right = self.whole(evaluation)
            if (held := evaluation.held) is not None:
                of_gravity = namespace(held).zeros_like(held[:, :1])
                held = namespace(held).concat([*[of_gravity] * a, held], axis=1)
                matrix, right = _without(matrix, right, held)
            x = solve(damped(matrix, damping[:, None]), right[..., None])[..., 0]
            gain, length = (x * right).sum(1), row_max(abs(x))
            return Step(x[:, :a], x[:, a:], gain, length)
        arrow, b_time, b_camera = self.system(evaluation)
        if (held := evaluation.held) is not None:
            C, b_camera = _without(arrow.C, b_camera, coupling.by_component(held))
            arrow = replace(arrow, C=C)
        elimination = arrow.damped(damping, coupling).eliminate(coupling)
        x_time, x_camera = elimination.solve(b_time, b_camera, coupling)
        gain = coupling.times_sum((x_time * b_time).sum(1)) + (x_camera * b_camera).sum(1)
        length = namespace(gain).maximum(coupling.times_max(x_time), row_max(abs(x_camera)))
        return Step(x_time, x_camera, gain, length)

    def whole(self, evaluation: Evaluation) -> tuple[Array, Array]:
        """The same system as ``system`` of images that stand alone: (B, P, P) and (B, P)."""
        normal, p = evaluation.normal, evaluation.prior
        if p is None:
            return normal.hessian, -normal.gradient
        xp, scale = namespace(normal.cost), evaluation.scale[:, None]
        weight = xp.concat([p.time_weight, p.camera_weight], axis=1)
        pull = xp.concat([p.time_pull, p.camera_pull], axis=1)
        matrix = normal.hessian + diagonal_matrices(scale * weight)
        return matrix, scale * pull - normal.gradient

    def system(self, evaluation: Evaluation) -> tuple[Arrow, Array, Array]:
        """Arrow matrix and right-hand sides of (E + s^2 priors) / 2."""
        coupling, a = self.coupling, self.gravity_size
        arrow = Arrow.assemble(evaluation.normal.hessian, coupling, a)
        b_time, b_camera = assemble_vector(-evaluation.normal.gradient, coupling, a)
        if evaluation.prior is None:
            return arrow, b_time, b_camera
        p, scale = evaluation.prior, evaluation.scale
        of_time = scale[coupling.time_component, None]
        of_camera = scale[coupling.camera_component, None]
        arrow = arrow.plus_diagonal(of_time * p.time_weight, of_camera * p.camera_weight, coupling)
        pull = coupling.by_component(of_camera * p.camera_pull)
        return arrow, b_time + of_time * p.time_pull, b_camera + pull


def _without(matrix: Array, right: Array, held: Array) -> tuple[Array, Array]:
    """Normal equations (n, p, p), (n, p) whose solution leaves the unknowns that are held (n, p)
    practically where they are."""
    xp = namespace(matrix)
    stiff = xp.where(held, IMMOBILE * (1 + abs(diagonal(matrix))), 0.0)
    return matrix + diagonal_matrices(stiff), xp.where(held, 0.0, right)


def _away(gravity: Array, target: Array, inverse_variance: Array) -> tuple[Array, Array]:
    """Tangent steps (T, 2) from gravity to its prior, and how much each way weighs.

    inverse_variance: (T, 1) any way; or (T, 2) in the angles roll and pitch, along which the
    tangent basis runs, the first shortened by the cosine of the pitch.
    """
    if inverse_variance.shape[1] == 1:
        away = sphere.difference(gravity, target, sphere.tangent_basis(gravity))
        return away, namespace(away).broadcast_to(inverse_variance, away.shape)
    xp = namespace(gravity)
    (roll, pitch), (wanted_roll, wanted_pitch) = map(sphere.to_roll_pitch, (gravity, target))
    turn = xp.remainder(wanted_roll - roll + math.pi, 2 * math.pi) - math.pi
    # Straight up and down roll has no meaning; the floor keeps it from pulling without end.
    length = xp.stack([xp.cos(pitch).clip(sphere.LEAST_COSINE), xp.ones_like(pitch)], axis=1)
    return xp.stack([turn, wanted_pitch - pitch], axis=1) * length, inverse_variance / length**2


@dataclass(frozen=True)
class Step:
    """Where the normal equations lead."""

    time: Array
    """(T, a)."""
    camera: Array
    """(K, Q)."""
    gain: Array
    """(K,) by how much they expect it to lower E + s^2 priors."""
    length: Array
    """(K,) its longest component."""


@dataclass(frozen=True)
class PriorTerms:
    """Diagonal weights and weighted pulls towards the priors, and their cost (K,)."""

    time_weight: Array
    time_pull: Array
    camera_weight: Array
    camera_pull: Array
    cost: Array


@dataclass(frozen=True)
class Evaluation:
    """A state's normal equations per image, its costs and s^2 per component (K,)."""

    normal: Normal
    cost: Array
    scale: Array
    prior: PriorTerms | None
    held: Array | None = None
    """(C, P) the intrinsics that no step moves: at a bound, and pushed beyond it."""

    def curved(self, info: Information) -> Evaluation:
        """With the expected curvature for its Hessian."""
        return replace(self, normal=replace(self.normal, hessian=info.hessian))

    def total(self, scale: Array) -> Array:
        """E + s^2 priors, (K,)."""
        return self.cost if self.prior is None else self.cost + scale * self.prior.cost

    def where(self, keep: Array, other: Evaluation, coupling: Coupling) -> Evaluation:
        """This evaluation in the components (K,) to keep, the other one elsewhere."""
        xp = namespace(keep)
        image = keep if coupling.separate else keep[coupling.camera_component[coupling.camera]]
        normal = Normal(
            hessian=xp.where(image[:, None, None], self.normal.hessian, other.normal.hessian),
            gradient=xp.where(image[:, None], self.normal.gradient, other.normal.gradient),
            cost=xp.where(image, self.normal.cost, other.normal.cost),
        )
        prior = None
        if self.prior is not None and other.prior is not None:
            time = keep[coupling.time_component][:, None]
            camera = keep[coupling.camera_component][:, None]
            a, b = self.prior, other.prior
            prior = PriorTerms(
                time_weight=xp.where(time, a.time_weight, b.time_weight),
                time_pull=xp.where(time, a.time_pull, b.time_pull),
                camera_weight=xp.where(camera, a.camera_weight, b.camera_weight),
                camera_pull=xp.where(camera, a.camera_pull, b.camera_pull),
                cost=xp.where(keep, a.cost, b.cost),
            )
        held = self.held
        if self.held is not None or other.held is not None:
            camera = keep[coupling.camera_component][:, None]
            either = (False if each.held is None else each.held for each in (self, other))
            held = xp.where(camera, *either)
        return Evaluation(
            normal,
            xp.where(keep, self.cost, other.cost),
            xp.where(keep, self.scale, other.scale),
            prior,
            held,
        )


def estimated_scale(hessian: Array, scatter: Array, coupling: Coupling) -> Array:
    """s^2 (K,) that makes the curvature (B, P, P) of E / s^2 match the scatter of its scores."""
    scatter = coupling.component_sum(diagonal(scatter))
    curvature = coupling.component_sum(diagonal(hessian))
    # Parameters that the data say nothing about have neither.
    xp, seen = namespace(curvature), curvature > 0
    ratio = xp.where(seen, scatter / xp.where(seen, curvature, 1.0), 0.0)
    return (ratio.sum(1) / seen.sum(1).clip(1)).clip(SMALLEST_SCALE)
