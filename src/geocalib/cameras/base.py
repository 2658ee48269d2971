"""The protocol of a camera model: one radial profile.

Every model here is central and radially symmetric, so a single scalar function describes it.
With m the normalised coordinates of a pixel and s = |m|^2, the pixel's ray is, up to a positive
factor,

    N = (m_x, m_y, depth(s; k)),

which stays finite for rays at and beyond 90 degrees (depth <= 0). Fields, Jacobians, projection
and the solver are written once on top of this function and its derivatives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from geocalib.arrays import Array, namespace

Parameters = Sequence[Array]
"""The D distortion parameters, each an array that broadcasts against the points."""


@dataclass(frozen=True)
class DepthJet:
    """The depth profile of a camera and its derivatives at some squared radii s (all (B, N)).

    A derivative that vanishes identically is None, so that nothing is computed with it.
    """

    depth: Array
    d_s: Array | None
    d_ss: Array | None
    d_k: tuple[Array, ...]
    d_ks: tuple[Array, ...]
    valid: Array | None
    """False where s lies outside the domain; None where the domain is the whole plane."""
    up: DepthJet | None = None
    """The jet that the up-vectors follow where it is another one (``geocalib.cameras.legacy``)."""
    excess: Array | None = None
    """d_s less the true slope of depth, where a jet for up-vectors has two slopes."""

    def part(self, start: int, count: int) -> DepthJet:
        """The jet of a run of points."""
        at = slice(None), slice(start, start + count)

        return DepthJet(
            depth=self.depth[at],
            d_s=None if self.d_s is None else self.d_s[at],
            d_ss=None if self.d_ss is None else self.d_ss[at],
            d_k=tuple(d[at] for d in self.d_k),
            d_ks=tuple(d[at] for d in self.d_ks),
            valid=None if self.valid is None else self.valid[at],
            up=None if self.up is None else self.up.part(start, count),
            excess=None if self.excess is None else self.excess[at],
        )

    def frozen_outside(self) -> DepthJet:
        """With the depth held constant outside the domain: all derivatives vanish there."""
        valid = self.valid
        if valid is None or bool(valid.all()):
            return self

        def inside(derivative: Array) -> Array:
            return namespace(valid).where(valid, derivative, 0.0)

        return replace(
            self,
            d_s=None if self.d_s is None else inside(self.d_s),
            d_ss=None if self.d_ss is None else inside(self.d_ss),
            d_k=tuple(inside(d) for d in self.d_k),
            d_ks=tuple(inside(d) for d in self.d_ks),
            excess=None if self.excess is None else inside(self.excess),
        )


@dataclass(frozen=True)
class Limits:
    """Where the domain of a camera ends, both possibly infinite / at the pole (pi)."""

    radius: Array
    """Largest |m| that has a ray."""
    angle: Array
    """Largest angle to the optical axis, radians, that has a pixel."""


@runtime_checkable
class CameraModel(Protocol):
    """What a model module provides. ``k`` always holds D arrays that broadcast with the rest."""

    name: str
    parameters: tuple[str, ...]
    """Names of the distortion parameters, in COLMAP's order where COLMAP has the model."""
    start: tuple[float, ...]
    """The values at which a fit starts."""
    bounds: tuple[tuple[float, float], ...]
    """Closed interval of each parameter that a fit never leaves."""
    release: tuple[int, ...]
    """Order in which a fit frees the parameters, one after the other, where freeing them all at
    once leads astray; those not named come with the last one. Empty: all at once."""
    unit_centre: bool
    """Whether depth(0) = 1 whatever the parameters, so that f is the magnification there."""
    wide: bool
    """Whether the field of view is the angle between border rays (True) or 2 atan(H / 2f)."""

    def depth(self, s: Array, k: Parameters) -> tuple[Array, Array | None]:
        """Depth profile at squared radii s, and where s is inside the domain (None: all).

        Outside, the depth stays what it is at the domain's end, so that a solver that strays
        there sees a continuous field and finds its way back.
        """

    def jet(self, s: Array, k: Parameters) -> DepthJet:
        """The same with the derivatives in s and k."""

    def radius(self, r: Array, z: Array, k: Parameters) -> tuple[Array, Array | None]:
        """Radius |m| of rays with r = |(X, Y)| >= 0 and Z = z (any length), and validity."""

    def limits(self, k: Parameters) -> Limits:
        """Where the domain ends for these parameters."""
