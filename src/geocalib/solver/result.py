"""What a fit returns."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from geocalib import gravity as sphere
from geocalib.cameras.camera import Camera
from geocalib.fields import ALONG_PITCH, ALONG_ROLL, LOG_F
from geocalib.solver.status import Status


@dataclass(frozen=True)
class Sigma:
    """One-sigma uncertainties of B images; 0 for what was held fixed."""

    roll_deg: Tensor
    """(B,)."""
    pitch_deg: Tensor
    """(B,)."""
    gravity_deg: Tensor
    """(B,) along the gravity's most uncertain direction."""
    vfov_deg: Tensor
    """(B,)."""
    focal: Tensor
    """(B,) pixels."""
    distortion: Tensor
    """(B, D) in the unit of each parameter."""
    principal_point: Tensor
    """(B, 2) pixels."""


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
    sigma: Sigma
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
        """With the standard deviations of gravity, log f and distortion multiplied.

        The sigma of the field of view follows log f, which dominates it.
        """
        factor = torch.ones(len(self.parameters), dtype=torch.float64)
        for i, name in enumerate(self.parameters):
            if name in (ALONG_ROLL, ALONG_PITCH):
                factor[i] = gravity
            elif name == LOG_F:
                factor[i] = focal
            elif name in self.camera.model.parameters:
                factor[i] = distortion
        factor = factor.to(self.covariance)
        old = self.sigma
        sigma = replace(
            old,
            roll_deg=gravity * old.roll_deg,
            pitch_deg=gravity * old.pitch_deg,
            gravity_deg=gravity * old.gravity_deg,
            vfov_deg=focal * old.vfov_deg,
            focal=focal * old.focal,
            distortion=distortion * old.distortion,
        )
        covariance = factor[:, None] * self.covariance * factor
        return replace(self, covariance=covariance, sigma=sigma)

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
