"""How sure an answer is: one sigma of everything people ask for, from one covariance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from geocalib.cameras import Camera


@dataclass(frozen=True)
class Uncertainty:
    """One sigma of each quantity: 0 for what was held fixed, NaN for what is not known."""

    roll_deg: float
    pitch_deg: float
    gravity_deg: float
    """Along the most uncertain direction."""
    vfov_deg: float
    hfov_deg: float
    focal: float
    """Of fy, pixels."""
    distortion: tuple[float, ...]
    """In the unit of each parameter."""
    principal_point: tuple[float, float]
    """Pixels."""

    @classmethod
    @torch.inference_mode(False)
    def of(
        cls, camera: Camera, gravity: Tensor, covariance: Tensor, parameters: Sequence[str]
    ) -> Uncertainty:
        """That of one camera (a batch of 1) and gravity (3,), given the covariance (P, P) of their
        free parameters, named as in ``FitResult``; all float64 on the CPU."""
        variances = covariance.diagonal().clamp(min=0)
        sigma = dict(zip(parameters, variances.sqrt().tolist(), strict=True))
        roll = pitch = largest = 0.0
        if "pitch direction" in sigma:
            # The tangent basis runs along roll, shortened by the cosine of the pitch, and pitch.
            cos_pitch = max(math.hypot(*gravity[:2].tolist()), 1e-9)
            roll, pitch = sigma["roll direction"] / cos_pitch, sigma["pitch direction"]
            # Without an eigensolver, which refuses what is not finite.
            half_sum = 0.5 * (variances[0] + variances[1])
            half_difference = 0.5 * (variances[0] - variances[1])
            largest = (half_sum + torch.hypot(half_difference, covariance[0, 1])).sqrt().item()
        vfov_deg, hfov_deg = _view_sigmas_deg(camera, covariance, parameters)
        return cls(
            roll_deg=math.degrees(roll),
            pitch_deg=math.degrees(pitch),
            gravity_deg=math.degrees(largest),
            vfov_deg=vfov_deg,
            hfov_deg=hfov_deg,
            focal=camera.f.item() * sigma.get("log f", 0.0),
            distortion=tuple(sigma.get(name, 0.0) for name in camera.model.parameters),
            principal_point=(sigma.get("cx", 0.0), sigma.get("cy", 0.0)),
        )

    @classmethod
    def unknown(cls, camera: Camera) -> Uncertainty:
        """Of an answer that nobody knows the sigmas of."""
        each = (math.nan,) * len(camera.model.parameters)
        return cls(*(math.nan,) * 6, each, (math.nan, math.nan))


def _view_sigmas_deg(
    camera: Camera, covariance: Tensor, parameters: Sequence[str]
) -> tuple[float, float]:
    """One sigma of the vertical and the horizontal field of view of one camera, degrees."""
    names = ("log f", *camera.model.parameters, "cx", "cy", "log aspect")
    with torch.enable_grad():
        parts = [camera.f.log(), camera.distortion[0], camera.c[0], camera.aspect.log()]
        values = torch.cat(parts).requires_grad_()
        f, distortion, c = values[:1].exp(), values[None, 1:-3], values[None, -3:-1]
        moved = Camera(camera.model, f, c, distortion, camera.size, values[-1:].exp())
        views = torch.cat([moved.vfov, moved.hfov])
        slopes = [torch.autograd.grad(view, values, retain_graph=True)[0] for view in views]
    sigmas = []
    for view, slope in zip(views.tolist(), slopes, strict=True):
        by_name = dict(zip(names, slope.tolist(), strict=True))
        gradient = covariance.new_tensor([by_name.get(name, 0.0) for name in parameters])
        variance = max((gradient @ covariance @ gradient).item(), 0.0)
        # Without a view there is no slope either.
        sigmas.append(math.degrees(math.sqrt(variance)) if math.isfinite(view) else math.nan)
    return sigmas[0], sigmas[1]
