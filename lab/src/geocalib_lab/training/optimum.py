"""The camera that fields determine, differentiable and without ever waiting for the device.

``geocalib.solver.fit`` stops each image by itself, judges what it found and tells how sure it is;
on a GPU its many small questions to the device would cost more time than the network. Training
needs the optimum and its derivative alone. So here a fixed number of Levenberg-Marquardt steps
runs from the true camera, which has one parameter of distortion: k1 of pinhole and distorted images
at once, held at 0 in the former, or alpha of fisheyes.

The derivative is that of one Gauss-Newton step from the detached optimum, attached to the
observations: the implicit function theorem with the Gauss-Newton Hessian, which is never
indefinite, however bad the fields.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from geocalib.cameras import polynomial
from geocalib.cameras.base import CameraModel, Parameters
from geocalib.cameras.camera import Camera
from geocalib.cameras.radial import SimpleRadial
from geocalib.cameras.ucm import Ucm
from geocalib.geometry import gravity as sphere
from geocalib.geometry.fields import Fields, Free
from geocalib.solver.objective import Normal, normal_equations
from geocalib.solver.observations import Observations, observe
from geocalib.solver.optimum import DAMPING_FACTOR, DAMPING_LEAST, DAMPING_MOST
from geocalib.solver.state import LONGEST_STEP

NEWTON_STEPS = 4
"""Enough for single precision from the start that the polynomial's inversion takes."""

DAMPING_START = 1e-3
"""The true camera is near."""

LEAST_BEND, LARGEST_BEND = -0.999 * 16 / 27, 2.0
"""Bounds of k1 (diagonal / f)^2; at -16 / 27 the corner of the image would be the edge of the
camera's domain, beyond which pixels have no ray."""

LOG_NARROWEST, LOG_WIDEST = math.log(0.04), math.log(4.0)
"""Bounds of log(H / 2f): about 5 and 150 degrees."""

FREE = Free(distortion=(0,))


@dataclass(frozen=True)
class Estimate:
    """The cameras and gravities of B images."""

    gravity: Tensor
    """(B, 3)."""
    log_f: Tensor
    """(B,)."""
    distortion: Tensor
    """(B,) k1, or alpha."""

    def where(self, keep: Tensor, other: Estimate) -> Estimate:
        """This one in the images (B,) to keep, the other one elsewhere."""
        return Estimate(
            torch.where(keep[:, None], self.gravity, other.gravity),
            torch.where(keep, self.log_f, other.log_f),
            torch.where(keep, self.distortion, other.distortion),
        )


class FixedStepRadial(SimpleRadial):
    """simple_radial inside its domain, undistorted by a fixed number of steps."""

    def undistort(self, s: Tensor, k: Parameters) -> tuple[Tensor, Tensor]:
        (k1,) = k
        rho = torch.sqrt(s.clamp(min=torch.finfo(s.dtype).tiny))
        x = 3 * rho / (2 + torch.sqrt((1 + 6.75 * k1 * s).clamp(min=0)))
        for _ in range(NEWTON_STEPS):
            X = x * x
            x = x - (x * polynomial.value(X, k) - rho) / polynomial.slope(X, k).clamp(min=1e-3)
        # No validity: every pixel is inside.
        return x, None  # type: ignore[return-value]


@dataclass(frozen=True)
class Lens:
    """A camera model with one parameter of distortion, and the bounds of it."""

    model: CameraModel
    bounds: tuple[float, float]
    relative: bool
    """Whether these are of the parameter times (diagonal / f)^2."""


RADIAL = Lens(FixedStepRadial(), (LEAST_BEND, LARGEST_BEND), relative=True)
UNIFIED = Lens(Ucm(), Ucm.bounds[0], relative=False)


def find_optimum(
    fields: Fields,
    truth: Camera,
    gravity: Tensor,
    bends: Tensor,
    cells: int,
    iterations: int,
    huber: float | None,
    lens: Lens = RADIAL,
) -> Estimate:
    """The cameras that explain fields best, by least squares, differentiable in the fields.

    truth (B cameras with one parameter of distortion, at the size of the fields) and gravity
    (B, 3): where to start. bends (B,): where that parameter is free. Where fields are not finite,
    neither is the estimate.
    """
    observations = observe(fields, cells)
    with torch.no_grad():
        start = Estimate(gravity.double(), truth.f.double().log(), truth.distortion[:, 0].double())
        fixed = observations.detach()
        best = _descend(start, fixed, truth, bends, iterations, huber, lens)
        curvature = _masked(_normal(best, fixed, truth, huber, lens).hessian, bends)
        inverse = torch.linalg.inv_ex(curvature)[0]
    pull = _normal(best, observations, truth, huber, lens).gradient * _moving(bends)
    return _moved(best, -(inverse @ pull[..., None])[..., 0], truth, lens)


def _descend(
    start: Estimate,
    observations: Observations,
    truth: Camera,
    bends: Tensor,
    iterations: int,
    huber: float | None,
    lens: Lens,
) -> Estimate:
    best, normal = start, _normal(start, observations, truth, huber, lens)
    damping = torch.full_like(start.log_f, DAMPING_START)
    least = DAMPING_LEAST[32]
    for _ in range(iterations):
        hessian = _masked(normal.hessian, bends)
        diagonal = hessian.diagonal(dim1=1, dim2=2)
        damped = hessian + torch.diag_embed(damping[:, None] * diagonal)
        pull = (normal.gradient * _moving(bends)).unsqueeze(-1)
        trial = _moved(best, -torch.linalg.solve_ex(damped, pull)[0][..., 0], truth, lens)
        ahead = _normal(trial, observations, truth, huber, lens)
        better = ahead.cost <= normal.cost
        best = trial.where(better, best)
        normal = Normal(
            torch.where(better[:, None, None], ahead.hessian, normal.hessian),
            torch.where(better[:, None], ahead.gradient, normal.gradient),
            torch.where(better, ahead.cost, normal.cost),
        )
        damping = torch.where(better, damping / DAMPING_FACTOR, damping * DAMPING_FACTOR)
        damping = damping.clamp(least, DAMPING_MOST)
    return best


def _normal(
    estimate: Estimate,
    observations: Observations,
    truth: Camera,
    huber: float | None,
    lens: Lens,
) -> Normal:
    """Normal equations in roll and pitch direction, log f and the distortion."""
    dtype = observations.up_x.dtype
    camera = Camera(
        lens.model,
        estimate.log_f.exp().to(dtype),
        truth.c,
        estimate.distortion.to(dtype)[:, None],
        truth.size,
        truth.aspect,
    )
    basis = sphere.tangent_basis(estimate.gravity)
    gravity = estimate.gravity.to(dtype)
    return normal_equations(camera, gravity, basis.to(dtype), observations, FREE, huber)


def _moving(bends: Tensor) -> Tensor:
    """(B, 4) 1 for the parameters that vary, 0 for a distortion that is held."""
    moves = torch.ones(len(bends), 4, dtype=torch.float64, device=bends.device)
    moves[:, 3] = bends
    return moves


def _masked(hessian: Tensor, bends: Tensor) -> Tensor:
    """Without the parameters that are held; solvable."""
    moving = _moving(bends)
    return hessian * moving[:, :, None] * moving[:, None, :] + torch.diag_embed(1 - moving)


def _moved(estimate: Estimate, step: Tensor, truth: Camera, lens: Lens) -> Estimate:
    """A step (B, 4) further, within bounds."""
    angle = torch.sqrt((step[:, :2] ** 2).sum(1, keepdim=True).clamp(min=LONGEST_STEP**2))
    gravity = sphere.move(estimate.gravity, step[:, :2] * (LONGEST_STEP / angle))
    size = truth.size.double()
    half = (0.5 * size[:, 1]).log()
    log_f = estimate.log_f + step[:, 2].clamp(-LONGEST_STEP, LONGEST_STEP)
    log_f = torch.minimum(torch.maximum(log_f, half - LOG_WIDEST), half - LOG_NARROWEST)
    unit = torch.ones_like(log_f)
    if lens.relative:
        width = size[:, 0] / truth.aspect
        unit = torch.exp(2 * log_f) / (width**2 + size[:, 1] ** 2)
    low, high = lens.bounds
    distortion = torch.maximum(estimate.distortion + step[:, 3], low * unit)
    return Estimate(gravity, log_f, torch.minimum(distortion, high * unit))
