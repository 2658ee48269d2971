"""How a camera moves and how frames err, by chance: the values that filters try.

The acceleration of gravity is a random walk, whose variance grows by q per second: what has a mass
is not jerked about, and what jerks is an error. Where the turn of the camera is known from pixels,
gravity turns with it, and what is random is its drift alone, which grows with q, too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from geocalib.arrays import Array

START = (math.radians(30.0), math.radians(60.0))
"""One sigma of the velocity and the acceleration that nothing is known about, in seconds."""

AGILITY_DEG = (3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
"""Square roots of q, degrees / s^2.5: from a tripod to a fight."""
DRIFT = 0.001
"""Seconds^2: sigma by which known turns go wrong in a second, by the square root of q."""
SHARES = (1.0, 0.3, 0.1, 0.03, 0.01)
"""s."""
MEMORIES = (0.01, 0.1, 0.3, 1.0, 3.0)
"""t, seconds: frames err each for itself, or alike for a while."""
LONGEST_UNTURNED = 0.3
"""Seconds that errors last at most where turns are not known: what lasts longer looks like motion,
and to take it for an error would smooth motion away."""
WHITE = 0.05
"""Of the share, that is noise of each frame alone."""


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
