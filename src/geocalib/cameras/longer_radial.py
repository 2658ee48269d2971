"""Brown's radial model with three and with four parameters.

The first is OpenCV's k1, k2, k3. Of a single photo they tell little apart; they are for priors, for
sets of photos and for cameras that are already known.
"""

from __future__ import annotations

from geocalib.arrays import Array, as_array, double, inverse_root, namespace, no_gradients, zeros
from geocalib.cameras.base import Parameters
from geocalib.cameras.tangent_polynomial import TangentPolynomial


class LongerRadial(TangentPolynomial):
    """d = 1 + k1 x^2 + k2 x^4 + ...: the end of the domain has no formula."""

    def tangent_limit(self, k: Parameters) -> Array:
        xp = namespace(k[0])
        # With Y = 1 / x^2 the slope is Y^n + 3 k1 Y^(n-1) + 5 k2 Y^(n-2) + ...: its largest
        # positive root is where it vanishes first, and an eigenvalue of the companion matrix.
        with no_gradients():
            slopes = [(2 * i + 3) * double(value) for i, value in enumerate(k)]
            coefficients = xp.stack(slopes, axis=-1)
            companion = zeros((*coefficients.shape, len(k)), coefficients)
            companion[..., 0, :] = -coefficients
            companion[..., 1:, :-1] = xp.eye(len(k) - 1, dtype=xp.float64, device=companion.device)
            roots = xp.linalg.eigvals(companion)
            real = (roots.imag == 0) & (roots.real > 0)
            Y = xp.max(xp.where(real, roots.real, 0.0), axis=-1)
            return as_array(inverse_root(Y), k[0])


class Radial3(LongerRadial):
    """d = 1 + k1 x^2 + k2 x^4 + k3 x^6."""

    name = "radial3"
    parameters: tuple[str, ...] = ("k1", "k2", "k3")
    start: tuple[float, ...] = (0.0,) * 3
    bounds: tuple[tuple[float, float], ...] = ((-50.0, 50.0), (-1e3, 1e3), (-2e4, 2e4))


class Radial4(LongerRadial):
    """d = 1 + k1 x^2 + k2 x^4 + k3 x^6 + k4 x^8."""

    name = "radial4"
    parameters: tuple[str, ...] = ("k1", "k2", "k3", "k4")
    start: tuple[float, ...] = (0.0,) * 4
    bounds: tuple[tuple[float, float], ...] = (*Radial3.bounds, (-4e5, 4e5))
    release: tuple[int, ...] = (0, 1)
