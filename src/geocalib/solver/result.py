"""What a fit returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from geocalib.arrays import Array, as_array, degrees, to_numpy
from geocalib.cameras.camera import Camera
from geocalib.geometry import gravity as sphere
from geocalib.geometry.fields import ALONG_PITCH, ALONG_ROLL, LOG_F
from geocalib.solver.sigmas import Sigma, sigmas_of
from geocalib.solver.status import Status


@dataclass(frozen=True)
class FitResult:
    """Cameras and gravity of B images, with uncertainties. A failed image holds NaN."""

    camera: Camera
    """camera.f (B,), camera.c (B, 2), camera.distortion (B, D)."""
    gravity: Array
    """(B, 3) unit vectors, pointing down."""
    covariance: Array
    """(B, P, P) of the free parameters, in the order of ``parameters``."""
    parameters: tuple[str, ...]
    """Names of the free parameters: roll and pitch direction on the sphere (radians), log f,
    distortion, principal point (pixels), log of fx / fy."""
    status: list[Status]
    """How the fit of each image ended, in words."""
    cost: Array
    """(B,) the minimised E of each image."""
    confidence_scale: Array
    """(B,) s^2: given, or estimated from the residuals."""
    iterations: Array
    """(B,)."""

    def __len__(self) -> int:
        return len(self.gravity)

    @classmethod
    def concatenate(cls, parts: Sequence[FitResult]) -> FitResult:
        """Of fits, in NumPy, with the same model and free parameters."""
        if len(parts) == 1:
            return parts[0]
        cameras = [part.camera for part in parts]
        return replace(
            parts[0],
            camera=replace(
                cameras[0],
                f=np.concatenate([camera.f for camera in cameras]),
                c=np.concatenate([camera.c for camera in cameras]),
                distortion=np.concatenate([camera.distortion for camera in cameras]),
                size=np.concatenate([camera.size for camera in cameras]),
                aspect=np.concatenate([camera.aspect for camera in cameras]),
            ),
            gravity=np.concatenate([part.gravity for part in parts]),
            covariance=np.concatenate([part.covariance for part in parts]),
            status=[status for part in parts for status in part.status],
            cost=np.concatenate([part.cost for part in parts]),
            confidence_scale=np.concatenate([part.confidence_scale for part in parts]),
            iterations=np.concatenate([part.iterations for part in parts]),
        )

    def in_numpy(self) -> FitResult:
        """The same in NumPy, wherever it was found."""
        return replace(
            self,
            camera=self.camera.map(to_numpy),
            gravity=to_numpy(self.gravity),
            covariance=to_numpy(self.covariance),
            cost=to_numpy(self.cost),
            confidence_scale=to_numpy(self.confidence_scale),
            iterations=to_numpy(self.iterations),
        )

    def with_sigmas_scaled(
        self, gravity: float = 1.0, focal: float = 1.0, distortion: float = 1.0
    ) -> FitResult:
        """With the standard deviations of gravity, log f and distortion multiplied."""
        factors = {ALONG_ROLL: gravity, ALONG_PITCH: gravity, LOG_F: focal}
        factors |= dict.fromkeys(self.camera.model.parameters, distortion)
        each = [factors.get(name, 1.0) for name in self.parameters]
        factor = as_array(each, self.covariance)
        return replace(self, covariance=factor[:, None] * self.covariance * factor)

    @cached_property
    def sigma(self) -> Sigma:
        """What the covariance says of the quantities that people read."""
        return sigmas_of(self.camera, self.gravity, self.covariance, self.parameters)

    @property
    def roll_deg(self) -> Array:
        """(B,)."""
        return degrees(sphere.to_roll_pitch(self.gravity)[0])

    @property
    def pitch_deg(self) -> Array:
        """(B,)."""
        return degrees(sphere.to_roll_pitch(self.gravity)[1])

    @property
    def vfov_deg(self) -> Array:
        """(B,)."""
        return degrees(self.camera.vfov)

    @property
    def hfov_deg(self) -> Array:
        """(B,)."""
        return degrees(self.camera.hfov)
