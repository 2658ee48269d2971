"""Turns of a camera from frame to frame, and which way it looks after many of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from geocalib.localize.rotation import from_vector

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Turn:
    """The rotation from an earlier camera to a later one, as a lens sees it."""

    rotation: Array
    """(3, 3): takes directions in the earlier camera's frame to the later one's."""
    covariance: Array
    """(3, 3) of a small rotation in the later frame, radians^2."""
    log_f: float
    """Logarithm of the focal length."""
    slope: Array
    """(3,) small rotation by which it changes per unit of log f."""
    better_log_f: float
    """As the turn itself has it: a picture is stretched towards its edges when it turns."""
    information: float
    """Inverse variance of that; 0 if the turn is too small to tell."""

    def of_lens(self, log_f: float, variance: float) -> Turn:
        """As another focal length, with the variance of its logarithm, has it."""
        return replace(
            self,
            rotation=from_vector((log_f - self.log_f) * self.slope) @ self.rotation,
            covariance=self.covariance + variance * np.outer(self.slope, self.slope),
            log_f=log_f,
        )


@dataclass(frozen=True)
class Heading:
    """Where a camera looks, compared with where it looked at the start of a chain of turns."""

    chain: int
    """Turns that are not known begin another one."""
    rotation: Array
    """(3, 3) from the camera's frame at the start to now."""
    covariance: Array
    """(3, 3) of a small rotation in the frame at the start, summed up, radians^2."""

    @classmethod
    def start(cls, chain: int = 0) -> Heading:
        """The heading before any turn is known."""
        return cls(chain, np.eye(3), np.zeros((3, 3)))

    def after(self, turn: Turn | None) -> Heading:
        """The heading after one more turn; None if the turn is unknown."""
        if turn is None:
            return Heading.start(self.chain + 1)
        R = turn.rotation @ self.rotation
        return Heading(self.chain, R, self.covariance + R.T @ turn.covariance @ R)

    def since(self, earlier: Heading) -> tuple[Array, Array] | None:
        """Rotation (3, 3) from an earlier heading to this one and its covariance (3, 3), which is
        that of a small rotation in the later frame; None if a turn between them is not known."""
        if earlier.chain != self.chain:
            return None
        R = self.rotation
        return R @ earlier.rotation.T, R @ (self.covariance - earlier.covariance) @ R.T
