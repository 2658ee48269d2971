"""Models that distort x = tan(theta) by a polynomial: simple_radial, the radial ones, ptlens."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from geocalib.arrays import Array, namespace
from geocalib.cameras import polynomial
from geocalib.cameras.base import DepthJet, Limits, Parameters


class TangentPolynomial(ABC):
    """m = d(x^2) (X, Y) / Z with x = |(X, Y)| / Z and d = 1 + k1 x^2 + k2 x^4 + ...

    The ray of a pixel is (m / d, 1), so the depth profile is d itself. The domain ends at the
    first x where x d(x^2) stops growing.
    """

    release: tuple[int, ...] = ()
    wide = False
    unit_centre = True

    @abstractmethod
    def tangent_limit(self, k: Parameters) -> Array:
        """Largest x of the domain, infinite where x d(x^2) grows for ever."""

    def value(self, X: Array, k: Parameters) -> Array:
        """d at X = x^2."""
        return polynomial.value(X, k)

    def factor(self, X: Array, k: Parameters) -> polynomial.Factor:
        """d with its derivatives in X."""
        return polynomial.factor(X, k)

    def powers(self, X: Array, count: int) -> Iterator[tuple[Array, Array]]:
        """What each parameter is multiplied with in d, and its slope in X."""
        power, slope = X, namespace(X).ones_like(X)
        for i in range(count):
            yield power, slope
            power, slope = power * X, (i + 2) * power

    def limits(self, k: Parameters) -> Limits:
        xp = namespace(k[0])
        end = self.tangent_limit(k)
        bounded = xp.isfinite(end)
        finite = xp.where(bounded, end, 0.0)
        radius = finite * self.value(finite * finite, k)
        return Limits(xp.where(bounded, radius, end), xp.atan(end))

    def undistort(self, s: Array, k: Parameters) -> tuple[Array, Array]:
        """x at squared radii s (held at the domain's end outside it), and validity."""
        limits, end = self.limits(k), self.tangent_limit(k)
        return polynomial.invert_squared(s, k, limits.radius, end)

    def depth(self, s: Array, k: Parameters) -> tuple[Array, Array | None]:
        x, valid = self.undistort(s, k)
        return self.value(x * x, k), valid

    def jet(self, s: Array, k: Parameters) -> DepthJet:
        x, valid = self.undistort(s, k)
        # With X = x^2 all derivatives follow from s = X d(X)^2, ds/dX = d e.
        X = x * x
        p = self.factor(X, k)
        de = p.d * p.e
        d_s = p.d1 / de
        d_ss = -d_s * (p.d1 / p.d + p.e1 / p.e)
        if p.d2 is not None:
            d_ss = d_ss + p.d2 / de
        d_ss = d_ss / de
        ratio = p.d / p.e
        ratio_slope = (p.d1 - ratio * p.e1) / p.e
        d_k, d_ks = [], []
        for power, slope in self.powers(X, len(k)):
            d_k.append(power * ratio)
            d_ks.append((slope * ratio + power * ratio_slope) / de)
        return DepthJet(p.d, d_s, d_ss, tuple(d_k), tuple(d_ks), valid).frozen_outside()

    def radius(self, r: Array, z: Array, k: Parameters) -> tuple[Array, Array | None]:
        xp = namespace(r)
        ahead = z > 0
        x = r / xp.where(ahead, z, 1.0)
        return x * self.value(x * x, k), ahead & (x <= self.tangent_limit(k))
