"""How sure people may be of what they read, from the covariance of the free parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from geocalib.cameras.camera import Camera


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
    hfov_deg: Tensor
    """(B,)."""
    focal: Tensor
    """(B,) pixels."""
    aspect: Tensor
    """(B,) of fx / fy."""
    distortion: Tensor
    """(B, D) in the unit of each parameter."""
    principal_point: Tensor
    """(B, 2) pixels."""


@torch.inference_mode(False)
@torch.no_grad()
def sigmas_of(
    camera: Camera, gravity: Tensor, covariance: Tensor, parameters: Sequence[str]
) -> Sigma:
    """Those of B cameras and gravities (B, 3), given the covariance (B, P, P) of their free
    parameters, named as in ``FitResult``. Computed in double precision, without gradients.

    NaN for images that failed, and for a field of view that is not there.
    """
    dtype, camera = covariance.dtype, camera.to(torch.float64, copy=True)
    gravity, covariance = (value.to(torch.float64, copy=True) for value in (gravity, covariance))
    fixed = 0 * camera.f
    variances = dict(zip(parameters, covariance.diagonal(dim1=1, dim2=2).unbind(1), strict=True))
    sigma = {name: variance.clamp(min=0).sqrt() for name, variance in variances.items()}
    roll = pitch = largest = fixed
    if "pitch direction" in sigma:
        # The tangent basis runs along roll, shortened by the cosine of the pitch, and pitch.
        cos_pitch = torch.linalg.vector_norm(gravity[:, :2], dim=1).clamp(min=1e-9)
        roll, pitch = sigma["roll direction"] / cos_pitch, sigma["pitch direction"]
        # Without an eigensolver, which refuses what is not finite.
        first, second = variances["roll direction"], variances["pitch direction"]
        spread = torch.hypot(0.5 * (first - second), covariance[:, 0, 1])
        largest = (0.5 * (first + second) + spread).clamp(min=0).sqrt()
    vfov, hfov = _view_sigmas(camera, covariance, parameters)

    def of_each(names: Sequence[str]) -> Tensor:
        each = [sigma.get(name, fixed) for name in names]
        return torch.stack(each, 1).to(dtype) if each else gravity[:, :0].to(dtype)

    return Sigma(
        roll_deg=roll.rad2deg().to(dtype),
        pitch_deg=pitch.rad2deg().to(dtype),
        gravity_deg=largest.rad2deg().to(dtype),
        vfov_deg=vfov.rad2deg().to(dtype),
        hfov_deg=hfov.rad2deg().to(dtype),
        focal=(camera.f * sigma.get("log f", fixed)).to(dtype),
        aspect=(camera.aspect * sigma.get("log aspect", fixed)).to(dtype),
        distortion=of_each(camera.model.parameters),
        principal_point=of_each(("cx", "cy")),
    )


def _view_sigmas(
    camera: Camera, covariance: Tensor, parameters: Sequence[str]
) -> tuple[Tensor, Tensor]:
    """(B,) one sigma of the vertical and of the horizontal field of view, radians."""
    names = ("log f", *camera.model.parameters, "cx", "cy", "log aspect")
    with torch.enable_grad():
        log_f, log_aspect = camera.f.log()[:, None], camera.aspect.log()[:, None]
        values = torch.cat([log_f, camera.distortion, camera.c, log_aspect], 1).requires_grad_()
        f, distortion, c = values[:, 0].exp(), values[:, 1:-3], values[:, -3:-1]
        moved = Camera(camera.model, f, c, distortion, camera.size, values[:, -1].exp())
        views = moved.vfov, moved.hfov
        slopes = [torch.autograd.grad(v.sum(), values, retain_graph=True)[0] for v in views]
    sigmas = []
    for view, slope in zip(views, slopes, strict=True):
        by_name = dict(zip(names, slope.unbind(1), strict=True))
        columns = [by_name.get(name, torch.zeros_like(view)) for name in parameters]
        if columns:
            gradient = torch.stack(columns, 1)[:, None]
            variance = (gradient @ covariance @ gradient.transpose(1, 2))[:, 0, 0]
        else:
            variance = torch.zeros_like(view)
        # Without a view there is no slope either.
        sigma = variance.clamp(min=0).sqrt()
        sigmas.append(torch.where(torch.isfinite(view), sigma, torch.nan))
    return sigmas[0], sigmas[1]
