"""What a localisation gives, and what it may know beforehand: poses and gravity."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from geocalib.errors import PriorError
from geocalib.localize.rotation import to_quaternion
from geocalib.result.calibration import Calibration

Array = npt.NDArray[np.float64]


class PoseStatus(StrEnum):
    """The outcome for one image; its value is the sentence to show."""

    FOUND = "found"
    TOO_FEW_MATCHES = "failed: a pose needs at least 4 matches whose pixels have a ray"
    NO_CONSENSUS = "failed: too few matches agree on one pose"

    @property
    def failed(self) -> bool:
        """Whether there is no answer (all its numbers are NaN)."""
        return self is not PoseStatus.FOUND


@dataclass(frozen=True, eq=False)
class GravityPrior:
    """Gravity as the camera is thought to see it, and as the world has it."""

    camera: Array
    """(3,) estimate in the camera frame, pointing down; any length."""
    world: Array
    """(3,) in the frame of the 3D points, pointing down; any length."""
    sigma_deg: float
    """One sigma of the estimate along any direction, degrees."""

    def __post_init__(self) -> None:
        for name in ("camera", "world"):
            vector = np.array(getattr(self, name), dtype=np.float64)
            length = np.linalg.norm(vector)
            if vector.shape != (3,) or not np.isfinite(length) or length == 0:
                raise PriorError(
                    f"the {name} gravity must be 3 finite numbers that are not all 0, "
                    f"got {vector.tolist()}"
                )
            object.__setattr__(self, name, vector / length)
        if not (math.isfinite(self.sigma_deg) and self.sigma_deg > 0):
            raise PriorError(f"sigma_deg must be positive and finite, got {self.sigma_deg}")

    @classmethod
    def from_calibration(cls, calibration: Calibration, world: npt.ArrayLike) -> GravityPrior:
        """The prior of a calibrated photo, for world gravity (3,)."""
        return cls(
            calibration.gravity,
            np.asarray(world, dtype=np.float64),
            calibration.sigma.gravity_deg,
        )

    @property
    def sigma(self) -> float:
        """The standard deviation of the gravity prior, in radians."""
        return math.radians(self.sigma_deg)

    def angle(self, rotation: Array) -> Array:
        """(...) radians between the estimate and the gravity of rotations (..., 3, 3)."""
        seen = rotation @ self.world
        sine = np.linalg.norm(np.cross(seen, self.camera), axis=-1)
        angle: Array = np.arctan2(sine, seen @ self.camera)
        return angle


@dataclass(frozen=True, eq=False)
class Pose:
    """Where a camera stands: x_camera = rotation @ x_world + translation."""

    rotation: Array
    """(3, 3) from the world to the camera frame."""
    translation: Array
    """(3,) in the unit of the 3D points."""
    inliers: npt.NDArray[np.bool_]
    """(N,) the matches that agree with the pose."""
    score: float
    """What the search ranked poses by: about the number of inliers, times the reward where the
    pose agrees with the gravity."""
    covariance: Array
    """(6, 6) of a small motion of the camera in its own axes: a rotation vector, radians, and
    the position of its centre, in the unit of the 3D points."""
    iterations: int
    """Number of minimal samples drawn."""
    status: PoseStatus

    @classmethod
    def failure(cls, status: PoseStatus, matches: int, iterations: int = 0) -> Pose:
        """No pose for that many matches."""
        nan = np.full((6, 6), np.nan)
        nothing = np.zeros(matches, dtype=bool)
        return cls(nan[:3, :3], nan[0, :3], nothing, 0.0, nan, iterations, status)

    @property
    def centre(self) -> Array:
        """(3,) the camera's centre in the world."""
        centre: Array = -self.rotation.T @ self.translation
        return centre

    @property
    def quaternion(self) -> Array:
        """(4,) the rotation as (w, x, y, z), w >= 0, as COLMAP writes it."""
        return to_quaternion(self.rotation)

    @property
    def num_inliers(self) -> int:
        return int(self.inliers.sum())
