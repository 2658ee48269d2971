"""Gravity over time: a Kalman filter on the sphere, and a smoother for when there is no hurry.

The state is a unit vector g, its angular velocity and acceleration, and an error e in common to
neighbouring frames. All are written in a basis of the tangent plane at g that is carried along
great circles, so that no direction is special. Where it is known how the camera turned between
frames (``heading``), gravity turns with it, but for a drift; else the acceleration is a random
walk.
A frame with the covariance R = L L' measures

    g + L (e + a little noise + b).

What a network gets wrong about a scene it gets wrong in neighbouring frames alike: e is forgotten
over a time t, and has the share s of the variance, with the noise. The rest is b, which changes as
slowly as the camera moves or not at all: no filter can tell it from gravity, so it is left out of
the state and added to the covariance in the end, which does not shrink to nothing, however many
frames there are.

How the camera moves (q) and how frames err (s, t) are found by maximum likelihood: a bank of
filters, one for each set of values (``MotionNoise``), runs side by side. The acceleration of
gravity is a random walk, whose variance grows by q per second: what has a mass is not jerked
about, and what jerks is an error. Where the turn of the camera is known from pixels, gravity
turns with it, and what is random is its drift alone, which grows with q, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from geocalib.arrays import Array
from geocalib.chi_square import chi2_sf
from geocalib.geometry import gravity as sphere
from geocalib.localize.rotation import cross_matrix
from geocalib.video.change_detector import LEVEL
from geocalib.video.heading import Heading

START = (math.radians(30.0), math.radians(60.0))
"""One sigma of the velocity and the acceleration that nothing is known about, in seconds."""

AGILITY_DEG = (3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
"""Square roots of q, degrees / s^2.5: from a tripod to a fight."""
DRIFT = 0.001
"""Seconds^2: sigma by which known turns go wrong in a second, by the square root of q."""
SHARES = (1.0, 0.3, 0.1, 0.03, 0.01)
"""Values of the share s that are tried."""
MEMORIES = (0.01, 0.1, 0.3, 1.0, 3.0)
"""t, seconds: frames err each for itself, or alike for a while."""
LONGEST_UNTURNED = 0.3
"""Seconds that errors last at most where turns are not known: what lasts longer looks like motion,
and to take it for an error would smooth motion away."""
WHITE = 0.05
"""Part of the share that is noise of each frame alone."""


@dataclass(frozen=True)
class MotionNoise:
    """What M filters of a bank believe."""

    agility: Array
    """(M,) q, radians^2 / s^5."""
    share: Array
    """(M,) s."""
    memory: Array
    """(M,) t, seconds."""

    @classmethod
    def candidates(cls) -> MotionNoise:
        """Cameras held still to shaken, frames alike to independent."""
        grid = np.meshgrid(AGILITY_DEG, SHARES, MEMORIES, indexing="ij")
        agility, share, memory = (part.ravel() for part in grid)
        return cls(np.deg2rad(agility) ** 2, share, memory)

    def __getitem__(self, index: int) -> MotionNoise:
        """The noise of one of the filters."""
        at = slice(index, index + 1)
        return MotionNoise(self.agility[at], self.share[at], self.memory[at])

    @property
    def common(self) -> Array:
        """(M,) the variance of e, the error that neighbouring frames have in common."""
        return (1 - WHITE) * self.share

    def transition(self, seconds: float) -> Array:
        """(M, 8, 8) what becomes of a state after a time."""
        t, eye = seconds, np.eye(2)
        moves = np.array([[1, t, t**2 / 2], [0, 1, t], [0, 0, 1]], np.float64)
        F = np.zeros((len(self.share), 8, 8))
        F[:, :6, :6] = np.kron(moves, eye)
        F[:, 6:, 6:] = self._kept(seconds, LONGEST_UNTURNED) * eye
        return F

    def random(self, seconds: float) -> Array:
        """(M, 8, 8) covariance of what happens by chance in that time."""
        t, eye = seconds, np.eye(2)
        walk = np.array(
            [
                [t**5 / 20, t**4 / 8, t**3 / 6],
                [t**4 / 8, t**3 / 3, t**2 / 2],
                [t**3 / 6, t**2 / 2, t],
            ],
            np.float64,
        )
        Q = np.zeros((len(self.share), 8, 8))
        Q[:, :6, :6] = self.agility[:, None, None] * np.kron(walk, eye)
        Q[:, 6:, 6:] = self._forgotten(seconds, LONGEST_UNTURNED)
        return Q

    def turned_transition(self, seconds: float, twist: Array) -> Array:
        """As ``transition``, where the turn is known; twist: (M, 2, 2) of the tangent plane.

        Velocity and acceleration begin anew.
        """
        F = np.zeros((len(self.share), 8, 8))
        F[:, :2, :2] = twist
        F[:, 6:, 6:] = self._kept(seconds, math.inf) * np.eye(2)
        return F

    def turned_random(self, seconds: float, turn: Array) -> Array:
        """As ``random``, where the turn is known with the covariance (M, 2, 2)."""
        eye = np.eye(2)
        drift = DRIFT**2 * seconds * self.agility[:, None, None] * eye
        Q = np.zeros((len(self.share), 8, 8))
        Q[:, :2, :2] = turn + drift
        Q[:, 2:4, 2:4] = START[0] ** 2 * eye
        Q[:, 4:6, 4:6] = START[1] ** 2 * eye
        Q[:, 6:, 6:] = self._forgotten(seconds, math.inf)
        return Q

    def _kept(self, seconds: float, longest: float) -> Array:
        """(M, 1, 1) share of the common error that is left after a time."""
        return np.exp(-seconds / self.memory.clip(max=longest))[:, None, None]

    def _forgotten(self, seconds: float, longest: float) -> Array:
        """(M, 2, 2) variance of the common error that is new after a time."""
        new = (1 - self._kept(seconds, longest) ** 2) * self.common[:, None, None]
        return new * np.eye(2)


SHAKEN_DEG = 1000.0
"""Square root of q that any camera may have for a moment."""


@dataclass(frozen=True)
class Moment:
    """When, and which way the camera looks, where that is known."""

    time: float
    """Time of the frame, seconds."""
    heading: Heading | None = None

    def since(self, earlier: Moment) -> tuple[Array, Array] | None:
        """The turn and its covariance (3, 3), where they are known."""
        if self.heading is None or earlier.heading is None:
            return None
        return self.heading.since(earlier.heading)


@dataclass(frozen=True)
class FrameGravity:
    """Gravity as one frame shows it."""

    moment: Moment
    gravity: Array
    """(3,) unit vector."""
    covariance: Array
    """(2, 2) in ``gravity.tangent_basis``, radians^2."""


@dataclass(frozen=True)
class MotionState:
    """Where M filters think that gravity is, and where it goes."""

    gravity: Array
    """(M, 3)."""
    basis: Array
    """(M, 3, 2) of the tangent plane there."""
    rest: Array
    """(M, 6) velocity and acceleration, radians and seconds, and e, in sigmas of the frame."""
    covariance: Array
    """(M, 8, 8) of a tangent step and the rest."""

    def __getitem__(self, index: int) -> MotionState:
        """One of the states of the bank."""
        at = slice(index, index + 1)
        return MotionState(self.gravity[at], self.basis[at], self.rest[at], self.covariance[at])

    def moved(self, step: Array, covariance: Array) -> MotionState:
        """After a step (M, 8)."""
        gravity = sphere.move(self.gravity, step[:, :2], self.basis)
        basis = _carried(self.gravity, gravity, self.basis)
        symmetric = 0.5 * (covariance + covariance.mT)
        return MotionState(gravity, basis, self.rest + step[:, 2:], symmetric)

    def step_to(self, other: MotionState) -> Array:
        """(M, 8) that ``moved`` takes to another state nearby."""
        step = sphere.difference(self.gravity, other.gravity, self.basis)
        return np.concatenate([step, other.rest - self.rest], -1)

    def predicted(
        self, start: Moment, end: Moment, noise: MotionNoise
    ) -> tuple[MotionState, Array]:
        """From one moment to another, and how (M, 8, 8) it depends on this state."""
        seconds, turn = end.time - start.time, end.since(start)
        if turn is not None:
            return self._turned(seconds, *turn, noise)
        F = noise.transition(seconds)
        values = np.concatenate([np.zeros_like(self.rest[:, :2]), self.rest], -1)
        step = _apply(F, values) - values
        covariance = F @ self.covariance @ F.mT + noise.random(seconds)
        return self.moved(step, covariance), F

    def _turned(
        self, seconds: float, rotation: Array, unsure: Array, noise: MotionNoise
    ) -> tuple[MotionState, Array]:
        """After a known turn (3, 3) with a covariance (3, 3)."""
        gravity = self.gravity @ rotation.T
        basis = _carried(self.gravity, gravity, self.basis)
        F = noise.turned_transition(seconds, basis.mT @ rotation @ self.basis)
        # A small rotation w moves gravity by w x g.
        moves = -basis.mT @ cross_matrix(gravity)
        Q = noise.turned_random(seconds, moves @ unsure @ moves.mT)
        velocity = sphere.difference(self.gravity, gravity, self.basis) / seconds
        error = _apply(F, np.concatenate([np.zeros_like(self.rest[:, :2]), self.rest], -1))[:, 6:]
        rest = np.concatenate([velocity, np.zeros_like(velocity), error], -1)
        return MotionState(gravity, basis, rest, F @ self.covariance @ F.mT + Q), F

    def corrected(self, sight: FrameGravity, noise: MotionNoise) -> tuple[MotionState, Array]:
        """After a measurement, and the logarithms (M,) of how likely that was."""
        innovation, H, R = self.innovation(sight)
        PH = self.covariance @ H.mT
        S = H @ PH + WHITE * noise.share[:, None, None] * R
        K = np.linalg.solve(S, PH.mT).mT
        likelihood = -0.5 * (_square(innovation, S) + np.linalg.slogdet(S)[1])
        covariance = self.covariance - K @ PH.mT
        return self.moved(_apply(K, innovation), covariance), likelihood

    def innovation(self, sight: FrameGravity) -> tuple[Array, Array, Array]:
        """What a frame says beyond the state (M, 2), how it depends on it (M, 2, 8), and its
        covariance (M, 2, 2), in the basis of the state."""
        there = np.broadcast_to(sight.gravity, self.gravity.shape)
        basis = _carried(there, self.gravity, sphere.tangent_basis(there))
        turn = self.basis.mT @ basis
        R = turn @ sight.covariance @ turn.mT
        L = np.linalg.cholesky(R)
        eye = np.broadcast_to(np.eye(2), L.shape)
        zero = np.zeros_like(L)
        H = np.concatenate([eye, zero, zero, L], -1)
        ahead = sphere.difference(self.gravity, there, self.basis)
        return ahead - _apply(L, self.rest[:, 4:]), H, R

    def pose(self, lasting: Array) -> GravityEstimate:
        """Of the first filter; lasting: (2, 2) covariance of b, in ``gravity.tangent_basis``."""
        turn = sphere.tangent_basis(self.gravity[0]).T @ self.basis[0]
        return GravityEstimate(
            self.gravity[0], turn @ self.covariance[0, :2, :2] @ turn.T + lasting
        )


@dataclass(frozen=True)
class GravityEstimate:
    """Gravity at a time, as many frames together have it."""

    gravity: Array
    """(3,) unit vector."""
    covariance: Array
    """(2, 2) in ``gravity.tangent_basis``, radians^2."""


@dataclass(frozen=True)
class MotionFilter:
    """A bank of M Kalman filters. Make it with ``start``."""

    noise: MotionNoise
    moment: Moment
    """The moment of the last frame."""
    state: MotionState
    """The state after it."""
    likelihood: Array
    """(M,) logarithms."""
    claimed: Array
    """(2, 2) covariance that the last frame came with."""

    @classmethod
    def start(cls, sight: FrameGravity) -> MotionFilter:
        """The filter after the first frame."""
        noise = MotionNoise.candidates()
        # Until frames tell otherwise they err as they say, each for itself.
        return cls(
            noise,
            sight.moment,
            first_state(sight, noise),
            1e-3 * (np.log(noise.share) - noise.memory),
            sight.covariance,
        )

    @property
    def best(self) -> int:
        """The number of the likeliest filter."""
        return int(self.likelihood.argmax())

    def pose_at(self, moment: Moment) -> GravityEstimate:
        """The pose of the likeliest filter, at the last frame or later."""
        noise, state = self.noise[self.best], self.state[self.best]
        if moment.time > self.moment.time:
            state, _ = state.predicted(self.moment, moment, noise)
        return state.pose((1 - noise.share) * self.claimed)

    def accepts(self, sight: FrameGravity) -> bool:
        """Whether a frame is no outlier, by the chi-square of its innovation.

        A steady camera that is suddenly shaken, and a frame that errs as it claims, are none.
        """
        noise = self.noise[self.best]
        noise = replace(noise, agility=noise.agility.clip(min=math.radians(SHAKEN_DEG) ** 2))
        state, _ = self.state[self.best].predicted(self.moment, sight.moment, noise)
        innovation, H, R = state.innovation(sight)
        square = _square(innovation, H @ state.covariance @ H.mT + R)
        return float(chi2_sf(square, 2)[0]) >= LEVEL

    def updated(self, sight: FrameGravity) -> MotionFilter:
        """The filter after one frame more."""
        ahead, _ = self.state.predicted(self.moment, sight.moment, self.noise)
        state, gained = ahead.corrected(sight, self.noise)
        likelihood = self.likelihood + gained
        return MotionFilter(self.noise, sight.moment, state, likelihood, sight.covariance)


def first_state(sight: FrameGravity, noise: MotionNoise) -> MotionState:
    """What M filters make of the first frame."""
    count = len(noise.share)
    gravity = np.broadcast_to(sight.gravity, (count, 3))
    common = noise.common[:, None, None] * np.eye(2)
    shift = np.linalg.cholesky(sight.covariance) @ common
    covariance = np.zeros((count, 8, 8))
    covariance[:, :2, :2] = noise.share[:, None, None] * sight.covariance
    covariance[:, 2:4, 2:4] = START[0] ** 2 * np.eye(2)
    covariance[:, 4:6, 4:6] = START[1] ** 2 * np.eye(2)
    covariance[:, 6:, 6:] = common
    # Where the error points one way, gravity is off the other way.
    covariance[:, :2, 6:], covariance[:, 6:, :2] = -shift, -shift.mT
    rest = np.zeros((count, 6))
    return MotionState(gravity, sphere.tangent_basis(gravity), rest, covariance)


def smooth(sights: Sequence[FrameGravity], moments: Sequence[Moment]) -> list[GravityEstimate]:
    """Gravity at any moments, from all of the frames, which are in order of their times.

    Forward filter and backward pass (Rauch, Tung and Striebel) with the likeliest noise. Before
    the first frame gravity is what it is there.
    """
    bank = MotionFilter.start(sights[0])
    for sight in sights[1:]:
        bank = bank.updated(sight)
    noise = bank.noise[bank.best]
    first = sights[0].moment
    wanted = [moment if moment.time > first.time else first for moment in moments]
    states = _smoothed(sights, wanted, noise)
    claimed = np.stack([sight.covariance for sight in sights]).mean(0)
    return [states[moment.time].pose((1 - noise.share) * claimed) for moment in wanted]


def _smoothed(
    sights: Sequence[FrameGravity], moments: Sequence[Moment], noise: MotionNoise
) -> dict[float, MotionState]:
    """The state at the time of each frame and of other moments after the first frame."""
    seen = {sight.moment.time: sight for sight in sights}
    every = {moment.time: moment for moment in (*moments, *(sight.moment for sight in sights))}
    way = [every[time] for time in sorted(every)]
    filtered = [first_state(sights[0], noise)]
    predicted, passed = [], []
    for before, moment in pairwise(way):
        state, F = filtered[-1].predicted(before, moment, noise)
        predicted.append(state)
        passed.append(F)
        sight = seen.get(moment.time)
        filtered.append(state if sight is None else state.corrected(sight, noise)[0])
    states = [filtered[-1]]
    for k in range(len(way) - 2, -1, -1):
        P, P_next = filtered[k].covariance, predicted[k].covariance
        gain = np.linalg.solve(P_next, passed[k] @ P).mT
        step = _apply(gain, predicted[k].step_to(states[-1]))
        change = gain @ (states[-1].covariance - P_next) @ gain.mT
        states.append(filtered[k].moved(step, P + change))
    return dict(zip([moment.time for moment in way], reversed(states), strict=True))


def _apply(matrix: Array, vector: Array) -> Array:
    """(M, n, m) times (M, m)."""
    return (matrix @ vector[..., None])[..., 0]


def _square(vector: Array, covariance: Array) -> Array:
    """(M,) chi-squares of (M, n)."""
    return (vector * np.linalg.solve(covariance, vector[..., None])[..., 0]).sum(-1)


def _carried(start: Array, end: Array, basis: Array) -> Array:
    """A tangent basis (M, 3, 2) at start (M, 3), carried to end along the great circle."""
    middle = start + end
    # Towards the opposite point there are many ways; any will do.
    length = (1 + (start * end).sum(-1)).clip(min=1e-12)
    along = (middle[..., None, :] @ basis) / length[:, None, None]
    return basis - middle[..., None] * along
