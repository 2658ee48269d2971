"""Odd polynomials rho = x d(x^2), d(X) = 1 + k1 X + k2 X^2 + ...: value, slope, exact inverse.

Shared by the models whose distortion is such a polynomial, in x = tan(theta) (simple_radial,
radial) or in x = theta (kannala_brandt).
"""

from __future__ import annotations

from geocalib.arrays import (
    Array,
    as_array,
    detach,
    double,
    inverse_root,
    namespace,
    no_gradients,
    quiet,
    tiny,
    zeros,
)
from geocalib.cameras.base import Parameters
from geocalib.cameras.newton import Error, bracketed_newton, last_step, tolerance
from geocalib.records import dataclass

EDGE = 1 - 1e-5
"""Where a radius outside the domain is held, relative to the domain's end."""


@dataclass(frozen=True)
class Factor:
    """d(X) with its first two derivatives, and the slope e = d rho / dx with its first."""

    d: Array
    d1: Array
    d2: Array | None
    """The second derivative; None if it vanishes."""
    e: Array
    e1: Array


def value(X: Array, k: Parameters) -> Array:
    """The value of d(X), by Horner's rule."""
    return _horner(X, k) * X + 1


def slope(X: Array, k: Parameters) -> Array:
    """e(X) = d rho / dx = 1 + 3 k1 X + 5 k2 X^2 + ..."""
    return value(X, _slopes(k))


def _slopes(k: Parameters) -> Parameters:
    """3 k1, 5 k2, ...: of these ``value`` gives the slope."""
    return [(2 * i + 3) * coefficient for i, coefficient in enumerate(k)]


@quiet
def first_flat(k: Parameters) -> Array:
    """The smallest x > 0 where the slope vanishes, infinite where it never does. No gradients."""
    return as_array(inverse_root(first_root_inverse(_slopes(k))), k[0])


def first_root_inverse(k: Parameters) -> Array:
    """1 / X, in double precision, at the smallest X > 0 where d(X) vanishes; 0 where it never does.
    No gradients."""
    xp = namespace(k[0])
    # With Y = 1 / X it is Y^n + k1 Y^(n-1) + k2 Y^(n-2) + ...: its largest positive root is where
    # it vanishes first, and an eigenvalue of the companion matrix.
    with no_gradients():
        coefficients = xp.stack([double(coefficient) for coefficient in k], axis=-1)
        # Of a camera that is not known: LAPACK takes only numbers, for the sake of the others.
        coefficients = xp.where(xp.isfinite(coefficients), coefficients, 0.0)
        companion = zeros((*coefficients.shape, len(k)), coefficients)
        companion[..., 0, :] = -coefficients
        companion[..., 1:, :-1] = xp.eye(len(k) - 1, dtype=xp.float64, device=companion.device)
        # GPUs take small matrices one by one.
        on_gpu = getattr(companion.device, "type", "cpu") == "cuda"
        roots = xp.linalg.eigvals(companion.cpu() if on_gpu else companion)
        roots = roots.to(companion.device) if on_gpu else roots
        real = (roots.imag == 0) & (roots.real > 0)
        return xp.max(xp.where(real, roots.real, 0.0), axis=-1)


def factor(X: Array, k: Parameters) -> Factor:
    """Everything a jet needs of the polynomial at X = x^2."""
    d = value(X, k)
    d1 = _horner(X, [i * coefficient for i, coefficient in enumerate(k, start=1)])
    twice_X = X + X
    e, e1 = d + twice_X * d1, 3 * d1
    if len(k) == 1:
        return Factor(d, d1, None, e, e1)
    d2 = _horner(X, [i * (i + 1) * coefficient for i, coefficient in enumerate(k[1:], start=1)])
    return Factor(d, d1, d2, e, e1 + twice_X * d2)


def _horner(X: Array, coefficients: Parameters) -> Array:
    total = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        total = total * X + coefficient
    return total


def invert(rho: Array, k: Parameters, x_end: Array) -> Array:
    """The x in [0, x_end] with x d(x^2) = rho, for rho in the image of that interval.

    The polynomial must increase on the interval. Differentiable.
    """

    xp = namespace(rho)
    steep = _slopes(k)

    def error(x: Array) -> tuple[Array, Array]:
        X = x * x
        return x * value(X, k) - rho, value(X, steep)

    with no_gradients():
        x = _newton(error, rho, k, x_end)
        if x is None:
            x = bracketed_newton(error, xp.minimum(rho, 0.99 * x_end), x_end)
    return last_step(error, x, x_end)


def _newton(error: Error, rho: Array, k: Parameters, x_end: Array) -> Array | None:
    """Plain Newton steps, which nearly always suffice; None where they do not settle."""
    xp = namespace(rho)
    enough = tolerance(rho)
    # Exact at rho = 0 and at the end of the domain of a polynomial with k1 < 0 alone.
    x = 3 * rho / (2 + xp.sqrt((1 + 6.75 * k[0] * rho * rho).clip(0)))
    x = xp.minimum(x, 0.999 * x_end)
    for count in range(8):
        off, steepness = error(x)
        step = x - off / steepness
        moved, x = abs(step - x), step
        if count >= 2 and bool(((moved <= enough * x) & (x <= x_end)).all()):
            return x
    return None


def invert_squared(s: Array, k: Parameters, rho_end: Array, x_end: Array) -> tuple[Array, Array]:
    """``invert`` at rho = sqrt(s), held at the domain's end rho_end = x_end d(x_end^2) outside
    it, and where s lies inside."""
    rho, valid = held(s, rho_end)
    return invert(rho, k, x_end), valid


def held(s: Array, rho_end: Array) -> tuple[Array, Array]:
    """rho = sqrt(s), held a hair inside the domain's end outside it, and where s lies inside."""
    xp = namespace(s)
    valid = s < rho_end * rho_end
    # The square root has no derivative at 0; nothing depends on it there.
    rho = xp.sqrt(s.clip(tiny(s)))
    if not bool(valid.all()):
        # A hair inside, where the polynomial still grows.
        rho = xp.where(valid, rho, EDGE * detach(rho_end))
    return rho, valid
