"""What the network says, as the prior of the lines: a mean and how stiffly each way from it.

The deviation of gravity is the chord from its mean in the mean's tangent plane; that of the
intrinsics the difference of log f, distortion and principal point. The cost is quadratic in all of
them, with the arrow shape of ``geocalib.solver.coupling``. Networks are far off now and then, and
instruments are not: what was measured of gravity keeps its full weight however far lines want to be
from it.

A lens bends the picture by k1 / f^2, k2 / f^4 and so on (those that see 90 degrees and more are
another matter). So distortion is compared as it would be at the mean's focal length: else a bend
that segments ask for would be cheaper the shorter the focal length is, and move it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from geocalib.arrays import diagonal, double, min_rows, tiny
from geocalib.geometry.fields import ALONG_PITCH, CX, LOG_F, Free
from geocalib.geometry.gravity import difference, tangent_basis
from geocalib.lines.unknowns import Array, BatchedArrow, Guess, Layout, powers
from geocalib.records import dataclass, map_tensors, replace
from geocalib.result.calibration import Calibration
from geocalib.solver import coupling as solver
from geocalib.solver.coupling import Coupling
from geocalib.solver.state import Frame

FREEDOM = 4.0
"""Degrees of freedom of Student's distribution. Networks are more wrong than they say more often
than a normal variable: where lines are many and sure, they may contradict. Near the mean it is as
stiff as a normal one, so that what lines say nothing about stays as sure as it was."""
SHARED_ERROR = 1.5
"""Times the sigma of log f that a network's answer has beside lines: it errs alike in all photos of
a place, and must not outvote sharp lines there."""
LARGEST_ERROR = 0.55
"""One sigma of log f where a network cannot tell it at all: what it answers is still likelier than
any other, and errors of 1 and more, as its fit says, are rare. Both constants make the true focal
lengths of the first half of ordinary photographs likeliest (``docs/lines.md``)."""
HELD = 0.01
"""One sigma of log f where it is held."""
FLATTEST = 1e-12
"""Smallest eigenvalue of a correlation matrix that is inverted as it is."""


@dataclass(frozen=True)
class NetworkPrior:
    """The network's belief about T gravities and C cameras, before the lines are seen."""

    mean: Guess
    """One guess, without headings."""
    basis: Array
    """(T, 3, a) tangent directions at the mean."""
    stiffness: BatchedArrow
    """Inverse covariance of the deviations."""
    measured: Array
    """(T, a, a) the part of it that was measured of gravity, whose errors are normal."""

    @classmethod
    def stack(cls, priors: Sequence[NetworkPrior], rows: Sequence[int]) -> NetworkPrior:
        """Stack priors for guesses of which ``rows[i]`` belong to prior i."""

        def repeated(*column: Array) -> Array:
            return np.repeat(np.concatenate(column), rows, 0)

        return cls(
            map_tensors(repeated, *(prior.mean for prior in priors)),
            np.repeat(np.stack([prior.basis for prior in priors]), rows, 0),
            map_tensors(repeated, *(prior.stiffness for prior in priors)),
            np.repeat(np.stack([prior.measured for prior in priors]), rows, 0),
        )

    @cached_property
    def whole(self) -> Array:
        """(R, a + Q, a + Q) the stiffness as one matrix where there is one gravity."""
        return self.stiffness.dense()

    def distance(self, guess: Guess, layout: Layout) -> Array:
        """(R,) how far guesses are from the mean, in sigmas."""
        return np.asarray(np.sqrt(self.forces(guess, layout).squared))

    def deviation(self, guess: Guess, layout: Layout) -> Array:
        """(R, a + Q) how far guesses of one gravity are from the mean: angles and intrinsics."""
        mean = self.mean.gravity[:, 0]
        turn = difference(mean, guess.gravity[:, 0], self.basis) if layout.tangents else mean[:, :0]
        turn = np.broadcast_to(turn, (len(guess), layout.tangents))
        return np.concatenate([turn, self._off(guess, layout, self._shrunk(guess, layout))], -1)

    def pull(self, guess: Guess, layout: Layout, forces: Forces) -> PriorEquations:
        """Return the normal equations that the prior adds at guesses, where it has these forces."""
        # Of Student's distribution: both the cost and the weight that makes its gradient. What was
        # measured has all its weight.
        weight = student_weight(forces.network)
        left = (1 - weight)[:, None, None]
        turn, slope = self._turn(guess, layout), self._slope(guess, layout, forces.shrunk)
        own = weight[:, None, None] * forces.time + left * forces.measured
        time = np.matvec(turn, own)
        camera = weight[:, None] * np.matvec(slope.mT, forces.camera)
        arrow = self._stiffness(turn, slope)
        measured = left[..., None] * (turn @ self.measured @ turn.mT)
        arrow = BatchedArrow(
            weight[:, None, None, None] * arrow.A + measured,
            weight[:, None, None, None] * arrow.B,
            weight[:, None, None] * arrow.C,
        )
        return PriorEquations(arrow, time, camera)

    def stiffness_at(self, guess: Guess, layout: Layout) -> BatchedArrow:
        """Return the stiffness against small steps from guesses."""
        shrunk = self._shrunk(guess, layout)
        return self._stiffness(self._turn(guess, layout), self._slope(guess, layout, shrunk))

    def cost(self, guess: Guess, layout: Layout) -> Array:
        """Return the cost (R,) of guesses."""
        return self.forces(guess, layout).cost

    def focal_held(self, layout: Layout) -> NetworkPrior:
        """Return the same prior, as if the focal lengths were known."""
        own = np.arange(0, self.stiffness.C.shape[-1], layout.intrinsics)
        C = self.stiffness.C.copy()
        C[:, own, own] += HELD**-2
        return replace(self, stiffness=replace(self.stiffness, C=C))

    def gravity_held(self) -> NetworkPrior:
        """Return the same prior, as if gravity had been measured exactly."""
        more = HELD**-2 * np.eye(self.measured.shape[-1])
        stiffness = replace(self.stiffness, A=self.stiffness.A + more)
        return replace(self, stiffness=stiffness, measured=self.measured + more)

    def _stiffness(self, turn: Array, slope: Array) -> BatchedArrow:
        stiff = self.stiffness
        return BatchedArrow(
            turn @ stiff.A @ turn.mT,
            turn @ stiff.B @ slope[:, None],
            slope.mT @ stiff.C @ slope,
        )

    def _turn(self, guess: Guess, layout: Layout) -> Array:
        """(R, T, a, a) from the tangent directions of the mean to those of guesses."""
        tangents = guess.basis[..., : layout.tangents]
        return np.asarray(tangents.mT @ self.basis)

    def forces(self, guess: Guess, layout: Layout) -> Forces:
        """Return the forces at guesses: stiffness times deviation."""
        stiff = self.stiffness
        time = (guess.gravity[..., None, :] @ self.basis)[..., 0, :]
        measured = np.matvec(self.measured, time)
        strain = (time * measured).sum((-1, -2))
        shrunk = self._shrunk(guess, layout)
        camera = self._off(guess, layout, shrunk)
        if time.shape[1] == 1:
            # As one matrix: of one photo it is small.
            a, off = time.shape[-1], np.concatenate([time[:, 0], camera], -1)
            force = np.matvec(self.whole, off)
            squared = np.vecdot(off, force)
            return Forces(force[:, None, :a], force[:, a:], squared, shrunk, measured, strain)
        time_force = np.matvec(stiff.A, time) + np.matvec(stiff.B, camera[:, None])
        camera_force = np.matvec(stiff.B.mT, time).sum(1) + np.matvec(stiff.C, camera)
        squared = (time * time_force).sum((-1, -2)) + (camera * camera_force).sum(-1)
        return Forces(time_force, camera_force, squared, shrunk, measured, strain)

    def _off(self, guess: Guess, layout: Layout, shrunk: Array) -> Array:
        """(R, Q) how far the intrinsics are from the mean."""
        mean, free = self.mean, layout.free
        parts = [guess.log_f[..., None] - mean.log_f[..., None]] if free.focal else []
        bend = guess.distortion * shrunk - mean.distortion
        parts += [bend[..., i : i + 1] for i in free.distortion]
        parts += [guess.c - mean.c] if free.principal_point else []
        rows = len(guess.gravity)
        return np.concatenate(parts, -1).reshape(rows, -1) if parts else np.zeros((rows, 0))

    def _slope(self, guess: Guess, layout: Layout, shrunk: Array) -> Array:
        """Return the derivative (R, Q, Q) of the deviation of the intrinsics."""
        rows, cameras, own = len(guess.gravity), layout.cameras, layout.intrinsics
        blocks = np.zeros((rows, cameras, own, own))
        blocks[:] = np.eye(own)
        for at, i in enumerate(layout.free.distortion, start=int(layout.free.focal)):
            blocks[..., at, at] = shrunk[..., i]
            if layout.free.focal:
                power = layout.powers[i]
                blocks[..., at, 0] = -power * guess.distortion[..., i] * shrunk[..., i]
        if cameras == 1:
            return blocks[:, 0]
        slope, each = np.zeros((rows, cameras, own, cameras, own)), np.arange(cameras)
        slope[:, each, :, each] = blocks.swapaxes(0, 1)
        return slope.reshape(rows, cameras * own, cameras * own)

    def _shrunk(self, guess: Guess, layout: Layout) -> Array:
        """(R, C, D) what distortion is multiplied by to bend as much at the mean's focal length."""
        off = guess.log_f - self.mean.log_f
        return np.asarray(np.exp(-off[..., None] * layout.powers))


@dataclass(frozen=True)
class Forces:
    """Stiffness times how far guesses are from the mean."""

    time: Array
    """(R, T, a)."""
    camera: Array
    """(R, Q)."""
    squared: Array
    """(R,) that times how far they are: sigmas, squared."""
    shrunk: Array
    """(R, C, D) what distortion is multiplied by to bend as much at the mean's focal length."""
    measured: Array
    """(R, T, a) those of what was measured of gravity."""
    strain: Array
    """(R,) the part of ``squared`` that belongs to it."""

    @property
    def network(self) -> Array:
        """(R,) the part of ``squared`` that belongs to the network."""
        return np.maximum(self.squared - self.strain, 0.0)

    @property
    def cost(self) -> Array:
        """The cost (R,) of the prior."""
        return student_cost(self.network) + self.strain


@dataclass(frozen=True)
class PriorEquations:
    """The normal equations of half the prior's cost."""

    arrow: BatchedArrow
    time: Array
    """(R, T, a) gradient."""
    camera: Array
    """(R, Q) gradient."""


def student_cost(squared: Array) -> Array:
    """Return Student's cost of deviations by so many sigmas, squared."""
    return np.asarray(FREEDOM * np.log1p(squared / FREEDOM))


def student_weight(squared: Array) -> Array:
    """Return the slope of ``student_cost``."""
    return np.asarray(FREEDOM / (FREEDOM + squared))


def free_parameters(calibration: Calibration) -> Free:
    """Return which parameters the network's fit left free."""
    names, model = calibration.parameters, calibration.cameras.model
    return Free(
        gravity=ALONG_PITCH in names,
        focal=LOG_F in names,
        distortion=tuple(i for i, name in enumerate(model.parameters) if name in names),
        principal_point=CX in names,
    )


def inflate_focal_sigma(calibration: Calibration, known: float = 0.0) -> Calibration:
    """Return a calibration only as sure of the focal length as networks have reason to be.

    known: how much of what is known of log f, as an inverse variance, does not come from the
    network.
    """
    names = calibration.parameters
    if LOG_F not in names or calibration.cameras.model.wide:
        return calibration
    at = names.index(LOG_F)
    # Edges are as straight as before wherever the focal length is.
    bend = _bend(calibration)
    factor = np.ones(len(names))
    factor[at] = _shared_error(float(calibration.covariance[at, at]), known)
    covariance = factor[:, None] * (bend @ calibration.covariance @ bend.T) * factor
    # As if it had been seen there again, with that error.
    gain = covariance[:, at] / (covariance[at, at] + LARGEST_ERROR**2)
    back = np.linalg.inv(bend)
    covariance = back @ (covariance - gain[:, None] * covariance[at]) @ back.T
    return replace(calibration, covariance=covariance)


def _shared_error(variance: float, known: float) -> float:
    """Return the factor for the sigma of log f, which has that variance; what is known otherwise
    stays as sure as it was."""
    own = max(0.0, 1 / variance - known)
    return math.sqrt((own + known) / (own / SHARED_ERROR**2 + known)) if variance > 0 else 1.0


def network_prior(
    calibrations: Sequence[Calibration], coupling: Coupling, measured: Array | None = None
) -> tuple[NetworkPrior, Layout]:
    """The prior of B images that form one component from their calibrations, whose free parameters
    must be the same. measured: as for ``network_priors``."""
    (prior,), layout = network_priors([calibrations], coupling, measured)
    return prior, layout


def network_priors(
    beliefs: Sequence[Sequence[Calibration]], coupling: Coupling, measured: Array | None = None
) -> tuple[list[NetworkPrior], Layout]:
    """Return the priors of several beliefs in the same answers, which differ in their covariances
    alone.

    measured: (B, 2) the inverse variance of what was measured of each gravity, along growing roll
    and growing pitch; the covariances have it in them.
    """
    calibrations = beliefs[0]
    cameras, moments = len(coupling.camera_component), len(coupling.time_component)
    first_of_camera = _first(coupling.camera, cameras)
    first_of_time = _first(coupling.time, moments)
    gravity = np.stack([c.gravity for c in calibrations])
    basis = tangent_basis(gravity)
    if coupling.rotation is not None:
        back = double(coupling.rotation).mT
        gravity, basis = np.matvec(back, gravity), back @ basis
    mean_gravity = gravity[first_of_time]
    mean_basis = tangent_basis(mean_gravity)
    own = [calibrations[i].cameras for i in first_of_camera.tolist()]
    values = (
        mean_gravity,
        np.log(np.concatenate([camera.f for camera in own])),
        np.concatenate([camera.distortion for camera in own]),
        np.concatenate([camera.c for camera in own]),
        np.zeros((len(gravity), 0, 3)),
    )
    mean = Guess(*(value[None] for value in values))
    shapes = [(camera.size, camera.aspect) for camera in own]
    size, aspect = (np.concatenate(part) for part in zip(*shapes, strict=True))
    frame = Frame.create(own[0].model, size, aspect, free_parameters(calibrations[0]))
    layout = Layout.create(frame, coupling)
    a = layout.tangents
    # From each image's tangent basis to that of its time.
    turn = (mean_basis[coupling.time].mT @ basis)[:, :a, :a]
    around, known = (mean, mean_basis[..., :a]), np.zeros((moments, a, a))
    if measured is not None and a:
        to_time = turn[first_of_time]
        known = (to_time * measured[first_of_time, None]) @ to_time.mT
    stiffness = _stiffness(beliefs, coupling, turn)
    return [NetworkPrior(*around, each, known) for each in stiffness], layout


def _stiffness(
    beliefs: Sequence[Sequence[Calibration]], coupling: Coupling, turn: Array
) -> list[BatchedArrow]:
    """Return the stiffness of gravities and cameras by each belief.

    turn: (B, a, a) turns the gravity of each image to that of its time. Where an image is the only
    one of its time, the joint covariance of its gravity and its camera is kept; gravity that
    several images share keeps its own covariance only.
    """
    cameras, moments = len(coupling.camera_component), len(coupling.time_component)
    first_of_camera = _first(coupling.camera, cameras)
    first_of_time = _first(coupling.time, moments)
    a = turn.shape[-1]
    bend = np.stack([_bend(c) for c in beliefs[0]])
    covariance = bend @ np.array([[c.covariance for c in each] for each in beliefs]) @ bend.mT
    top = turn @ covariance[..., :a, :a] @ turn.mT
    side = turn @ covariance[..., :a, a:]
    information = inverse_covariance(covariance[..., a:, a:])
    alone = np.bincount(coupling.time, minlength=moments)[coupling.time] == 1
    # Gravity given the camera: regress one on the other.
    slope = side @ information * alone[:, None, None]
    tight = inverse_covariance(top - slope @ side.mT)
    # Several images of one time say the same thing: it counts once.
    first = np.zeros(len(turn), np.bool_)
    first[first_of_time] = True
    tight = tight * first[:, None, None]
    across = -tight @ slope
    top, below = (tight, across), (across.mT, slope.mT @ tight @ slope)
    matrix = np.concatenate([np.concatenate(row, -1) for row in (top, below)], -2)
    matrix[:, first_of_camera, a:, a:] += information[:, first_of_camera]
    # Other components may have more cameras, and leave room for them here.
    used = cameras * (covariance.shape[-1] - a)
    laid = (solver.Arrow.assemble(each, coupling, a) for each in matrix)
    return [
        BatchedArrow(each.A[None], each.B[None, ..., :used], each.C[:1, :used, :used])
        for each in laid
    ]


def _bend(calibration: Calibration) -> Array:
    """(P, P) what small steps of the parameters are multiplied by to give those of distortion as it
    bends the picture."""
    names, camera = calibration.parameters, calibration.cameras
    change = np.eye(len(names))
    if LOG_F in names:
        for i, power in enumerate(powers(camera.model)):
            if (name := camera.model.parameters[i]) in names:
                bend = power * camera.distortion[0, i]
                change[names.index(name), names.index(LOG_F)] = -bend
    return change


def _first(index: Array, count: int) -> Array:
    """(count,) the first image that has each index."""
    return min_rows(np.full(count, len(index)), index, np.arange(len(index)))


def inverse_covariance(matrix: Array) -> Array:
    """Inverse of covariances (..., p, p), which may be nearly singular."""
    if matrix.shape[-1] == 0:
        return matrix
    scale = 1 / np.sqrt(np.maximum(diagonal(matrix), tiny(matrix)))
    scaled = scale[..., :, None] * matrix * scale[..., None, :]
    values, vectors = np.linalg.eigh(scaled)
    inverse = (vectors / np.maximum(values, FLATTEST)[..., None, :]) @ vectors.mT
    return scale[..., :, None] * inverse * scale[..., None, :]


def log_f_sigma(prior: NetworkPrior) -> float:
    """One sigma of log f of the first camera, where it is free."""
    a = prior.basis.shape[-1]
    return float(np.sqrt(np.linalg.inv(prior.whole[0])[a, a]))


def at_focal_lengths(prior: NetworkPrior, log_f: Array, layout: Layout) -> Guess:
    """The likeliest guesses (F) at one image for focal lengths log f (F,)."""
    mean = prior.mean[[0] * len(log_f)]
    if not layout.free.focal:
        return mean
    whole, a = prior.whole[0], layout.tangents
    rest = [i for i in range(len(whole)) if i != a]
    slope = np.linalg.solve(whole[np.ix_(rest, rest)], -whole[rest, a])
    moves = (log_f - mean.log_f[:, 0])[:, None] * slope
    camera = np.concatenate([np.zeros((len(moves), 1)), moves[:, a:]], 1)
    guess = layout.moved(mean, moves[:, None, :a], camera[:, None])
    # As much of a bend in the picture as there.
    grown = np.exp((log_f[:, None] - mean.log_f)[..., None] * layout.powers)
    return replace(guess, log_f=log_f[:, None], distortion=guess.distortion * grown)
