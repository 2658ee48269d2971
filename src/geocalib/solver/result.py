"""What a fit returns."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from geocalib import gravity as sphere
from geocalib.cameras.camera import Camera
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
    distortion, principal point (pixels)."""
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
