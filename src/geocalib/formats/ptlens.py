"""The polynomial by which PanoTools, and so Hugin and Lensfun, say how a lens bends.

    r = (a R^3 + b R^2 + c R + 1 - a - b - c) R

R is the radius in the picture of an ideal lens, r that in the photo, both in halves of the photo's
shorter side: r = 1 where R = 1. The ideal lens is rectilinear or one of the fisheyes, R ~ g(theta).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from geocalib.arrays import Array
from geocalib.cameras import Camera
from geocalib.cameras.nearest import SAMPLES, TOLERANCE, odd_terms, profile
from geocalib.errors import CameraError
from geocalib.records import dataclass

SQUARE = 1e-9
"""How far fx / fy may be from 1."""

EXACT = 1e-6
"""Pixels: below it a model with more parameters says no more."""

READ_AS = {"pinhole": 0, "simple_radial": 1, "radial": 2, "radial3": 3}
WIDE_AS = {"kannala_brandt": 4}
"""What a polynomial is read as, on a rectilinear lens or a fisheye, and how many terms that has."""


@dataclass(frozen=True)
class Ideal:
    """A lens that bends nothing further."""

    hugin: int
    """Hugin's number of it."""
    radius: Callable[[Array], Array]
    """In focal lengths, of the angle to the axis in radians."""
    angle: Callable[[float], float]
    """The inverse."""
    widest: float
    """Radians: beyond, the radius is of no use."""


RECTILINEAR = "rectilinear"

IDEALS: Mapping[str, Ideal] = {
    RECTILINEAR: Ideal(0, np.tan, math.atan, math.radians(80)),
    "fisheye": Ideal(3, lambda t: t, lambda r: r, math.pi),
    "stereographic": Ideal(
        10, lambda t: 2 * np.tan(0.5 * t), lambda r: 2 * math.atan(0.5 * r), math.radians(160)
    ),
    "equisolid": Ideal(
        21,
        lambda t: 2 * np.sin(0.5 * t),
        lambda r: 2 * math.asin(min(0.5 * r, 1.0)),
        math.radians(170),
    ),
}
"""By Lensfun's names."""


@dataclass(frozen=True)
class Ptlens:
    """A lens in these words."""

    ideal: str
    focal: float
    """Of the ideal lens, pixels of the photo."""
    abc: tuple[float, float, float]
    error: float
    """Pixels: by how much it misses the camera at most."""

    def hfov(self, width: int) -> float:
        """Radians: of the ideal lens, across a picture of that width."""
        return 2 * IDEALS[self.ideal].angle(0.5 * width / self.focal)


def to_ptlens(camera: Camera) -> list[Ptlens]:
    """The polynomial of each camera of the batch, a ``CameraError`` where there is none.

    Where the rectilinear lens will do it is that; wide models and others have the best fisheye.
    """
    return [_to_ptlens(camera[index]) for index in range(len(camera))]


def _to_ptlens(camera: Camera) -> Ptlens:
    if abs(float(camera.aspect[0]) - 1) > SQUARE:
        raise CameraError("its pixels are not square, which Hugin and Lensfun do not know")
    theta, radii = profile(camera)
    radii = radii * float(camera.f[0])
    side = float(camera.size[0].min())
    fitted = [
        found
        for name, ideal in IDEALS.items()
        if theta.max() < ideal.widest and not (name == RECTILINEAR and camera.model.wide)
        if (found := _fitted(name, theta, radii, 0.5 * side))
    ]
    good = [found for found in fitted if found.error <= TOLERANCE * side]
    if not good:
        by = f" by {min(found.error for found in fitted):.1f} pixels" if fitted else ""
        raise CameraError(f"Hugin's and Lensfun's polynomial misses this lens{by}")
    return good[0] if good[0].ideal == RECTILINEAR else min(good, key=lambda found: found.error)


def _fitted(name: str, theta: Array, radii: Array, half: float) -> Ptlens | None:
    """The polynomial of an ideal lens that comes nearest; None if it does not reach half the side.

    As one in the ideal radius it is linear in what is sought; its scale follows from r = R = 1.
    """
    ideal = IDEALS[name].radius(theta)
    unit = float(ideal.max())
    powers = np.stack([(ideal / unit) ** k for k in (1, 2, 3, 4)], -1)
    weights, *_ = np.linalg.lstsq(powers, radii, rcond=None)
    whole = np.array([*weights[::-1], -half])
    at = min((x.real for x in np.roots(whole) if abs(x.imag) < 1e-9 and x.real > 0), default=None)
    if at is None:
        return None
    # Roots are coarse where the highest weights are nothing but rounding.
    for _ in range(2):
        at -= np.polyval(whole, at) / np.polyval(np.polyder(whole), at)
    # What is left of the rounding of a straight lens is no bend.
    _, c, b, a = (round(float(w * at**k / half), 12) + 0.0 for k, w in enumerate(weights, 1))
    error = float(np.abs(powers @ weights - radii).max())
    return Ptlens(name, half / (at * unit), (a, b, c), error)


def from_ptlens(
    ideal: str, focal: float, abc: tuple[float, float, float], size: Array, c: Array
) -> Camera:
    """The camera (a batch of 1) whose picture the polynomial describes; a ``CameraError`` where
    none of ours comes near.

    focal: of the ideal lens, pixels of the photo; size: width and height, pixels; c (2,).
    """
    a, b, linear = abc
    half, reach = 0.5 * float(size.min()), float(np.linalg.norm(np.maximum(c, size - c)))
    # The polynomial may turn back far outside the picture: what lies before that counts.
    ideals = np.linspace(0, 4 * reach / half, 16 * SAMPLES + 1)[1:]
    bent = (((a * ideals + b) * ideals + linear) * ideals + 1 - a - b - linear) * ideals
    rising = np.concatenate([[True], np.diff(bent) > 0]).cumprod().astype(bool)
    angles = np.array([IDEALS[ideal].angle(R) for R in (ideals * half / focal).tolist()])
    inside = rising & (bent <= reach / half) & (angles < IDEALS[ideal].widest)
    if inside.sum() < SAMPLES // 4:
        raise CameraError(f"a = {a}, b = {b}, c = {linear} shows nothing but the middle")
    radii, theta = half * bent[inside], angles[inside]
    straight = ideal == RECTILINEAR
    found = [
        odd_terms(np.tan(theta) if straight else theta, radii, terms)
        for terms in (READ_AS if straight else WIDE_AS).values()
    ]
    weights, error = next((one for one in found if one[1] < EXACT), found[-1])
    if error > 2 * TOLERANCE * half or not weights[0] > 0:
        raise CameraError(f"a = {a}, b = {b}, c = {linear} is no lens of ours")
    model = next(name for name, terms in (READ_AS | WIDE_AS).items() if terms == len(weights) - 1)
    return Camera.create(
        model,
        f=np.array(weights[0]),
        size=tuple(size.tolist()),
        distortion=(weights[1:] / weights[0]).tolist(),
        c=tuple(c.tolist()),
    )
