"""The minimal solver: gravity and focal length of a pinhole camera from two up-vectors and one
latitude, and RANSAC around it.

With p the pixel relative to the principal point, up at p is along c p - (a, b) where
(a, b, c) = (g_x, g_y, g_z / f). Each up-vector u thus gives the linear equation
u_perp . (c p - (a, b)) = 0, and two of them give (a, b, c) up to scale as a cross product; the
sense of the up-vectors gives the sign. A latitude at a third point then is a quadratic in
F = f^2:

    sin(lat) sqrt(R + F) sqrt(Q + c^2 F) = -(A + c F),  R = |p|^2, Q = a^2 + b^2, A = p . (a, b).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from geocalib.solver.observations import Observations

HYPOTHESES = 256
UP_TOLERANCE = 0.05
"""An up-vector within this norm of the hypothesis' is an inlier."""
LATITUDE_TOLERANCE = 0.03
"""The same for the sine of the latitude."""
SEED = 0


@dataclass(frozen=True)
class Guess:
    """Gravity (B, 3) and focal length (B,), pixels, NaN where there is none."""

    gravity: Tensor
    f: Tensor


def minimal_solver(
    p1: Tensor, up1: Tensor, p2: Tensor, up2: Tensor, p3: Tensor, sin_latitude: Tensor
) -> Guess:
    """All cameras that show up1 at p1, up2 at p2 and the latitude at p3.

    Points and up-vectors (..., 2), pixels relative to the principal point (square pixels).
    Returns gravity (..., 2, 3) and f (..., 2): two candidates each, NaN where not real.
    """
    plane = torch.linalg.cross(_equation(p1, up1), _equation(p2, up2))
    sense = (up1 * (plane[..., 2:] * p1 - plane[..., :2])).sum(-1, keepdim=True)
    plane = plane * torch.where(sense < 0, -1.0, 1.0)
    ab, c = plane[..., :2], plane[..., 2]
    A, Q, R = (p3 * ab).sum(-1), (ab * ab).sum(-1), (p3 * p3).sum(-1)
    S = sin_latitude**2
    F = _quadratic(c * c * (1 - S), 2 * A * c - S * (R * c * c + Q), A * A - S * R * Q)
    f = torch.sqrt(torch.where(F > 0, F, torch.nan))
    c, A, sine = c[..., None], A[..., None], sin_latitude[..., None]
    # Squaring admitted the camera with the opposite latitude: drop it.
    right = (A + c * F) * sine <= 1e-12 * (A.abs() + (c * F).abs())
    f = torch.where(right, f, torch.nan)
    gravity = torch.cat([ab[..., None, :].expand(*f.shape, 2), (c * f)[..., None]], -1)
    return Guess(gravity / torch.linalg.vector_norm(gravity, dim=-1, keepdim=True), f)


def _equation(p: Tensor, up: Tensor) -> Tensor:
    """Coefficients of (a, b, c) in u_perp . (c p - (a, b)) = 0."""
    perpendicular = torch.stack([-up[..., 1], up[..., 0]], -1)
    return torch.cat([-perpendicular, (perpendicular * p).sum(-1, keepdim=True)], -1)


def _quadratic(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """Both roots (..., 2) of a x^2 + b x + c, stable for small a; NaN where not real."""
    root = torch.sqrt(b * b - 4 * a * c)
    q = -0.5 * (b + torch.where(b < 0, -1.0, 1.0) * root)
    return torch.stack([q / a, c / q], -1)


def ransac(observations: Observations, centre: Tensor, aspect: Tensor) -> Guess:
    """The best of many minimal cameras by confidence-weighted inliers, per image.

    centre (B, 2), aspect (B,). Deterministic: the samples depend on nothing but the seed and
    the confidences.
    """
    o = observations
    batch = len(o)
    generator = torch.Generator().manual_seed(SEED)
    stretch = aspect[:, None]
    scale = torch.stack([1 / aspect, torch.ones_like(aspect)], -1)[:, None]
    up_at = (o.up_places() - centre[:, None]) * scale
    lat_at = (o.latitude_places() - centre[:, None]) * scale
    up = torch.stack([o.up_x / stretch, o.up_y], -1).double()
    up = up / torch.linalg.vector_norm(up, dim=-1, keepdim=True).clamp(min=1e-12)
    sine = o.sin_latitude.double()
    up_weight, lat_weight = o.up_weight.double(), o.latitude_weight.double()

    def draw(weight: Tensor, count: int) -> Tensor:
        # Inverse transform sampling of the confidences, (B, count).
        mass = weight.cumsum(1)
        ticks = torch.rand(batch, count, generator=generator, dtype=torch.float64).to(mass)
        return torch.searchsorted(mass, ticks * mass[:, -1:]).clamp(max=weight.shape[1] - 1)

    def take(values: Tensor, index: Tensor) -> Tensor:
        if values.dim() == 2:
            return values.gather(1, index)
        return values.gather(1, index[..., None].expand(*index.shape, values.shape[2]))

    first, second = draw(up_weight, HYPOTHESES), draw(up_weight, HYPOTHESES)
    third = draw(lat_weight, HYPOTHESES)
    guess = minimal_solver(
        take(up_at, first),
        take(up, first),
        take(up_at, second),
        take(up, second),
        take(lat_at, third),
        take(sine, third),
    )
    gravity, f = guess.gravity.flatten(1, 2), guess.f.flatten(1, 2)
    best = Guess(gravity.new_full((batch, 3), torch.nan), f.new_full((batch,), torch.nan))
    best_score = f.new_zeros(batch)
    # One hypothesis of every image at a time keeps memory at one field per image.
    for g, focal in zip(gravity.unbind(1), f.unbind(1), strict=True):
        score = _score(g, focal, up_at, up, up_weight, lat_at, sine, lat_weight)
        better = score > best_score
        best_score = torch.where(better, score, best_score)
        best = Guess(
            torch.where(better[:, None], g, best.gravity), torch.where(better, focal, best.f)
        )
    return best


def _score(
    gravity: Tensor,
    f: Tensor,
    up_at: Tensor,
    up: Tensor,
    up_weight: Tensor,
    lat_at: Tensor,
    sine: Tensor,
    lat_weight: Tensor,
) -> Tensor:
    """Confidence of the inliers of one hypothesis per image, (B,); 0 for NaN."""
    g_xy, g_z = gravity[:, None, :2], gravity[:, None, 2:]
    m = up_at / f[:, None, None]
    seen = m * g_z - g_xy
    seen = seen / torch.linalg.vector_norm(seen, dim=-1, keepdim=True)
    up_inlier = ((seen - up) ** 2).sum(-1) < UP_TOLERANCE**2
    m = lat_at / f[:, None, None]
    sin_seen = -((m * g_xy).sum(-1) + g_z[..., 0]) * torch.rsqrt(1 + (m * m).sum(-1))
    lat_inlier = (sin_seen - sine).abs() < LATITUDE_TOLERANCE
    score: Tensor = (up_inlier * up_weight).sum(1) + (lat_inlier * lat_weight).sum(1)
    return score
