"""Gravity over time: a Kalman filter on the sphere, and a smoother for when there is no hurry.

The state is a unit vector g, its angular velocity and acceleration, and an error e in common to
neighbouring frames. All are written in a basis of the tangent plane at g that is carried along
great circles, so that no direction is special. The acceleration is a random walk, whose variance
grows by q per second: what has a mass is not jerked about, and what jerks is an error.
A frame with the covariance R = L L' measures

    g + L (e + a little noise + b).

What a network gets wrong about a scene it gets wrong in neighbouring frames alike: e is forgotten
over a time t, and has the share s of the variance, with the noise. The rest is b, which changes as
slowly as the camera moves or not at all: no filter can tell it from gravity, so it is left out of
the state and added to the covariance in the end, which does not shrink to nothing, however many
frames there are.

How the camera moves (q) and how frames err (s, t) are found by maximum likelihood: a bank of
filters, one for each set of values, runs side by side.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import torch
from torch import Tensor

from geocalib import gravity as sphere
from geocalib.video.rivals import LEVEL, probability

START = (math.radians(30.0), math.radians(60.0))
"""One sigma of the velocity and the acceleration that nothing is known about, in seconds."""

AGILITY_DEG = (3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
"""Square roots of q, degrees / s^2.5: from a tripod to a fight."""
SHARES = (1.0, 0.3, 0.1, 0.03, 0.01)
"""s."""
MEMORIES = (0.01, 0.1, 0.3)
"""t, seconds: frames err each for itself, or alike for a while. What lasts longer looks like
motion, and to take it for an error would smooth motion away."""
SHAKEN_DEG = 1000.0
"""Square root of q that any camera may have for a moment."""
WHITE = 0.05
"""Of the share, that is noise of each frame alone."""


@dataclass(frozen=True)
class Sight:
    """Gravity as one frame shows it."""

    time: float
    """Seconds."""
    gravity: Tensor
    """(3,) unit vector."""
    covariance: Tensor
    """(2, 2) in ``gravity.tangent_basis``, radians^2."""


@dataclass(frozen=True)
class Noise:
    """What M filters of a bank believe."""

    agility: Tensor
    """(M,) q, radians^2 / s^5."""
    share: Tensor
    """(M,) s."""
    memory: Tensor
    """(M,) t, seconds."""

    @classmethod
    def candidates(cls) -> Noise:
        """Cameras held still to shaken, frames alike to independent."""
        grid = torch.cartesian_prod(
            *(torch.tensor(v, dtype=torch.float64) for v in (AGILITY_DEG, SHARES, MEMORIES))
        )
        agility, share, memory = grid.unbind(-1)
        return cls(agility.deg2rad().square(), share, memory)

    def __getitem__(self, index: int) -> Noise:
        """One of them."""
        at = slice(index, index + 1)
        return Noise(self.agility[at], self.share[at], self.memory[at])

    @property
    def common(self) -> Tensor:
        """(M,) variance of e."""
        return (1 - WHITE) * self.share

    def transition(self, seconds: float) -> Tensor:
        """(M, 8, 8) what becomes of a state after a time."""
        t, eye = seconds, torch.eye(2, dtype=torch.float64)
        moves = torch.tensor([[1, t, t**2 / 2], [0, 1, t], [0, 0, 1]], dtype=torch.float64)
        F = torch.zeros(len(self.share), 8, 8, dtype=torch.float64)
        F[:, :6, :6] = torch.kron(moves, eye)
        F[:, 6:, 6:] = self._kept(seconds) * eye
        return F

    def random(self, seconds: float) -> Tensor:
        """(M, 8, 8) covariance of what happens by chance in that time."""
        t, eye = seconds, torch.eye(2, dtype=torch.float64)
        walk = torch.tensor(
            [
                [t**5 / 20, t**4 / 8, t**3 / 6],
                [t**4 / 8, t**3 / 3, t**2 / 2],
                [t**3 / 6, t**2 / 2, t],
            ],
            dtype=torch.float64,
        )
        Q = torch.zeros(len(self.share), 8, 8, dtype=torch.float64)
        Q[:, :6, :6] = self.agility[:, None, None] * torch.kron(walk, eye)
        Q[:, 6:, 6:] = (1 - self._kept(seconds) ** 2) * self.common[:, None, None] * eye
        return Q

    def _kept(self, seconds: float) -> Tensor:
        """(M, 1, 1) share of the common error that is left after a time."""
        return torch.exp(-seconds / self.memory)[:, None, None]


@dataclass(frozen=True)
class State:
    """Where M filters think that gravity is, and where it goes."""

    gravity: Tensor
    """(M, 3)."""
    basis: Tensor
    """(M, 3, 2) of the tangent plane there."""
    rest: Tensor
    """(M, 6) velocity and acceleration, radians and seconds, and e, in sigmas of the frame."""
    covariance: Tensor
    """(M, 8, 8) of a tangent step and the rest."""

    def __getitem__(self, index: int) -> State:
        """One of them."""
        at = slice(index, index + 1)
        return State(self.gravity[at], self.basis[at], self.rest[at], self.covariance[at])

    def moved(self, step: Tensor, covariance: Tensor) -> State:
        """After a step (M, 8)."""
        gravity = sphere.move(self.gravity, step[:, :2], self.basis)
        basis = _carried(self.gravity, gravity, self.basis)
        symmetric = 0.5 * (covariance + covariance.transpose(1, 2))
        return State(gravity, basis, self.rest + step[:, 2:], symmetric)

    def step_to(self, other: State) -> Tensor:
        """(M, 8) that ``moved`` takes to another state nearby."""
        step = sphere.difference(self.gravity, other.gravity, self.basis)
        return torch.cat([step, other.rest - self.rest], -1)

    def predicted(self, seconds: float, noise: Noise) -> State:
        """That much later."""
        F = noise.transition(seconds)
        values = torch.cat([torch.zeros_like(self.rest[:, :2]), self.rest], -1)
        step = _apply(F, values) - values
        return self.moved(step, F @ self.covariance @ F.transpose(1, 2) + noise.random(seconds))

    def corrected(self, sight: Sight, noise: Noise) -> tuple[State, Tensor]:
        """After a measurement, and the logarithms (M,) of how likely that was."""
        innovation, H, R = self.innovation(sight)
        PH = self.covariance @ H.transpose(1, 2)
        S = H @ PH + WHITE * noise.share[:, None, None] * R
        K = torch.linalg.solve(S, PH.transpose(1, 2)).transpose(1, 2)
        likelihood = -0.5 * (_square(innovation, S) + torch.logdet(S))
        covariance = self.covariance - K @ PH.transpose(1, 2)
        return self.moved(_apply(K, innovation), covariance), likelihood

    def innovation(self, sight: Sight) -> tuple[Tensor, Tensor, Tensor]:
        """What a frame says beyond the state (M, 2), how it depends on it (M, 2, 8), and its
        covariance (M, 2, 2), in the basis of the state."""
        there = sight.gravity.expand_as(self.gravity)
        basis = _carried(there, self.gravity, sphere.tangent_basis(there))
        turn = self.basis.transpose(1, 2) @ basis
        R = turn @ sight.covariance @ turn.transpose(1, 2)
        L = torch.linalg.cholesky(R)
        eye = torch.eye(2, dtype=torch.float64).expand_as(L)
        zero = torch.zeros_like(L)
        H = torch.cat([eye, zero, zero, L], -1)
        ahead = sphere.difference(self.gravity, there, self.basis)
        return ahead - _apply(L, self.rest[:, 4:]), H, R

    def pose(self, lasting: Tensor) -> Pose:
        """Of the first filter; lasting: (2, 2) covariance of b, in ``gravity.tangent_basis``."""
        turn = sphere.tangent_basis(self.gravity[0]).T @ self.basis[0]
        return Pose(self.gravity[0], turn @ self.covariance[0, :2, :2] @ turn.T + lasting)


@dataclass(frozen=True)
class Pose:
    """Gravity at a time, as many frames together have it."""

    gravity: Tensor
    """(3,) unit vector."""
    covariance: Tensor
    """(2, 2) in ``gravity.tangent_basis``, radians^2."""


@dataclass(frozen=True)
class MotionFilter:
    """A bank of M Kalman filters. Make it with ``start``."""

    noise: Noise
    time: float
    """Of the last frame."""
    state: State
    """After it."""
    likelihood: Tensor
    """(M,) logarithms."""
    claimed: Tensor
    """(2, 2) covariance that the last frame came with."""

    @classmethod
    def start(cls, sight: Sight) -> MotionFilter:
        """From the first frame."""
        noise = Noise.candidates()
        # Until frames tell otherwise they err as they say, each for itself.
        return cls(
            noise,
            sight.time,
            first_state(sight, noise),
            1e-3 * (noise.share.log() - noise.memory),
            sight.covariance,
        )

    @property
    def best(self) -> int:
        """The number of the likeliest filter."""
        return int(self.likelihood.argmax())

    @property
    def pose(self) -> Pose:
        """Of the likeliest filter."""
        lasting = (1 - self.noise.share[self.best]) * self.claimed
        return self.state[self.best].pose(lasting)

    def accepts(self, sight: Sight) -> bool:
        """Whether a frame is no outlier, by the chi-square of its innovation.

        A steady camera that is suddenly shaken, and a frame that errs as it claims, are none.
        """
        noise = self.noise[self.best]
        noise = replace(noise, agility=noise.agility.clamp(min=math.radians(SHAKEN_DEG) ** 2))
        state = self.state[self.best].predicted(sight.time - self.time, noise)
        innovation, H, R = state.innovation(sight)
        square = _square(innovation, H @ state.covariance @ H.transpose(1, 2) + R)
        return float(probability(square, 2)) >= LEVEL

    def updated(self, sight: Sight) -> MotionFilter:
        """With one frame more."""
        ahead = self.state.predicted(sight.time - self.time, self.noise)
        state, gained = ahead.corrected(sight, self.noise)
        likelihood = self.likelihood + gained
        return MotionFilter(self.noise, sight.time, state, likelihood, sight.covariance)


def first_state(sight: Sight, noise: Noise) -> State:
    """What M filters make of the first frame."""
    count = len(noise.share)
    gravity = sight.gravity.expand(count, 3)
    common = noise.common[:, None, None] * torch.eye(2, dtype=torch.float64)
    shift = torch.linalg.cholesky(sight.covariance) @ common
    covariance = torch.zeros(count, 8, 8, dtype=torch.float64)
    covariance[:, :2, :2] = noise.share[:, None, None] * sight.covariance
    covariance[:, 2:4, 2:4] = START[0] ** 2 * torch.eye(2, dtype=torch.float64)
    covariance[:, 4:6, 4:6] = START[1] ** 2 * torch.eye(2, dtype=torch.float64)
    covariance[:, 6:, 6:] = common
    # Where the error points one way, gravity is off the other way.
    covariance[:, :2, 6:], covariance[:, 6:, :2] = -shift, -shift.transpose(1, 2)
    rest = torch.zeros(count, 6, dtype=torch.float64)
    return State(gravity, sphere.tangent_basis(gravity), rest, covariance)


def smooth(sights: Sequence[Sight], times: Sequence[float]) -> list[Pose]:
    """Gravity at any times, from all of the frames, which are in order of theirs.

    Forward filter and backward pass (Rauch, Tung and Striebel) with the likeliest noise. Before
    the first frame gravity is what it is there.
    """
    bank = MotionFilter.start(sights[0])
    for sight in sights[1:]:
        bank = bank.updated(sight)
    noise = bank.noise[bank.best]
    wanted = [max(time, sights[0].time) for time in times]
    states = _smoothed(sights, sorted({*wanted, *(sight.time for sight in sights)}), noise)
    claimed = torch.stack([sight.covariance for sight in sights]).mean(0)
    return [states[time].pose((1 - noise.share) * claimed) for time in wanted]


def _smoothed(sights: Sequence[Sight], times: Sequence[float], noise: Noise) -> dict[float, State]:
    """The state at each of ascending times, which include those of the frames."""
    seen = {sight.time: sight for sight in sights}
    filtered = [first_state(sights[0], noise)]
    predicted = list(filtered)
    for before, time in pairwise(times):
        state = filtered[-1].predicted(time - before, noise)
        predicted.append(state)
        filtered.append(state.corrected(seen[time], noise)[0] if time in seen else state)
    states = [filtered[-1]]
    for k in range(len(times) - 2, -1, -1):
        F = noise.transition(times[k + 1] - times[k])
        P, P_next = filtered[k].covariance, predicted[k + 1].covariance
        gain = torch.linalg.solve(P_next, F @ P).transpose(1, 2)
        step = _apply(gain, predicted[k + 1].step_to(states[-1]))
        change = gain @ (states[-1].covariance - P_next) @ gain.transpose(1, 2)
        states.append(filtered[k].moved(step, P + change))
    return dict(zip(times, reversed(states), strict=True))


def _apply(matrix: Tensor, vector: Tensor) -> Tensor:
    """(M, n, m) times (M, m)."""
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)


def _square(vector: Tensor, covariance: Tensor) -> Tensor:
    """(M,) chi-squares of (M, n)."""
    solved: Tensor = torch.linalg.solve(covariance, vector)
    return (vector * solved).sum(-1)


def _carried(start: Tensor, end: Tensor, basis: Tensor) -> Tensor:
    """A tangent basis (M, 3, 2) at start (M, 3), carried to end along the great circle."""
    middle = start + end
    # Towards the opposite point there are many ways; any will do.
    length = (1 + (start * end).sum(-1)).clamp(min=1e-12)
    along = (middle.unsqueeze(-2) @ basis) / length[:, None, None]
    return basis - middle.unsqueeze(-1) * along
