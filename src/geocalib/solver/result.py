"""What a fit returns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

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
    gravity: Tensor
    """(B, 3) unit vectors, pointing down."""
    covariance: Tensor
    """(B, P, P) of the free parameters, in the order of ``parameters``."""
    parameters: tuple[str, ...]
    """Names of the free parameters: roll and pitch direction on the sphere (radians), log f,
    distortion, principal point (pixels), log of fx / fy."""
    status: list[Status]
    """How the fit of each image ended, in words."""
    cost: Tensor
    """(B,) the minimised E of each image."""
    confidence_scale: Tensor
    """(B,) s^2: given, or estimated from the residuals."""
    iterations: Tensor
    """(B,)."""

    def __len__(self) -> int:
        return len(self.gravity)

    def with_sigmas_scaled(
        self, gravity: float = 1.0, focal: float = 1.0, distortion: float = 1.0
    ) -> FitResult:
        """With the standard deviations of gravity, log f and distortion multiplied."""
        factor = torch.ones(len(self.parameters), dtype=torch.float64)
        for i, name in enumerate(self.parameters):
            if name in (ALONG_ROLL, ALONG_PITCH):
                factor[i] = gravity
            elif name == LOG_F:
                factor[i] = focal
            elif name in self.camera.model.parameters:
                factor[i] = distortion
        factor = factor.to(self.covariance)
        return replace(self, covariance=factor[:, None] * self.covariance * factor)

    @cached_property
    def sigma(self) -> Sigma:
        """What the covariance says of the quantities that people read."""
        return sigmas_of(self.camera, self.gravity, self.covariance, self.parameters)

    @property
    def roll_deg(self) -> Tensor:
        """(B,)."""
        return torch.rad2deg(sphere.to_roll_pitch(self.gravity)[0])

    @property
    def pitch_deg(self) -> Tensor:
        """(B,)."""
        return torch.rad2deg(sphere.to_roll_pitch(self.gravity)[1])

    @property
    def vfov_deg(self) -> Tensor:
        """(B,)."""
        return torch.rad2deg(self.camera.vfov)

    @property
    def hfov_deg(self) -> Tensor:
        """(B,)."""
        return torch.rad2deg(self.camera.hfov)
