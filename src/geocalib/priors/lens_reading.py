"""The distortion of a lens by the names of body and lens in EXIF, out of Lensfun's database."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from PIL.ExifTags import Base

from geocalib.arrays import Array
from geocalib.cameras.base import CameraModel
from geocalib.cameras.registry import get_model
from geocalib.priors.exif import digital_zoom, number, text
from geocalib.priors.lens import PHONE_NAMES
from geocalib.priors.lens_database import (
    GET_LENSFUN,
    Profile,
    find_body,
    find_profile,
    installed,
)
from geocalib.priors.sizes import diagonal_of_sensor
from geocalib.records import dataclass

SIGMA = 0.0015
"""By how much r is off at r = R = half the shorter side, in that unit. Two measurements of lenses
of one name differ by 0.0013 (68% of 182 pairs in the database, ``lab/benchmarks/lens_names.py``),
as the lens of a photo does from the one that was measured; and lenses bend otherwise up close."""

POLYNOMIALS = tuple(map(get_model, ("simple_radial", "radial", "radial3", "radial4")))
"""Models that a profile can be brought to, by the number of their parameters."""
BENT = POLYNOMIALS[0]
"""The model of a known lens, if the caller names none."""

STRAIGHT = "its camera straightens what the lens bends"
DEVELOPED = re.compile(
    r"lightroom|camera raw|photoshop|darktable|rawtherapee|capture one|\bdxo|photolab|luminar|"
    r"affinity|aperture|hugin|\bart\b|on1",
    re.IGNORECASE,
)
"""Programs that may have straightened a picture."""


@dataclass(frozen=True)
class LensReading:
    """The distortion of a known lens in the parameters of a model, with what is known of its
    error."""

    name: str
    distortion: tuple[float, ...]
    sigma: tuple[float, ...]
    """One sigma of each parameter."""
    stretch: float
    """The focal length in the middle of the picture over the one that EXIF tells: there the lens
    of a barrel is longer."""
    miss_px: float
    """By how many pixels of the photo the model misses the database at most."""

    @property
    def source(self) -> str:
        return f"Lensfun {self.name}"


def find_lens(
    tags: Mapping[int, Any], size: tuple[int, int], focal_px: float, model: CameraModel
) -> tuple[LensReading | None, str | None]:
    """The distortion of the lens that took a picture of (width, height), or why nothing is to be
    made of its name, if it has one.

    focal_px: of the picture, by EXIF. None for models that no profile can be brought to.
    """
    make, body_name, lens_name = (
        text(tags, tag) for tag in (Base.Make, Base.Model, Base.LensModel)
    )
    if not lens_name or model not in POLYNOMIALS:
        return None, None
    if PHONE_NAMES.search(make):
        return None, STRAIGHT
    if not installed():
        return None, f"its distortion may be known to Lensfun: {GET_LENSFUN}"
    body, millimetres = find_body(make, body_name), number(tags, Base.FocalLength)
    if body is None or millimetres is None or not millimetres > 0:
        return None, "its camera is not in Lensfun's database"
    if body.straightens:
        return None, STRAIGHT
    if DEVELOPED.search(text(tags, Base.Software)):
        return None, "a program may have straightened what the lens bends"
    part = diagonal_of_sensor(size, body.aspect) / math.hypot(*size)
    crop = body.crop * part * digital_zoom(tags)
    profile = find_profile(make, body_name, lens_name, millimetres, crop, size)
    if profile is None:
        return None, "its distortion is not in Lensfun's database"
    return in_words_of(model, profile, focal_px, 0.5 * min(size)), None


def in_words_of(model: CameraModel, profile: Profile, focal_px: float, half: float) -> LensReading:
    """A profile in the parameters of a model, by least squares. half: of the shorter side,
    pixels."""
    straight, bent = np.array(profile.straight), np.array(profile.bent)
    weights, miss = odd_polynomial(straight, bent, len(model.parameters))
    first, *others = weights.tolist()
    # r = first R + w1 R^3 + ..., where R is focal_px times what the camera's polynomial takes.
    distortion = tuple(
        value / first * focal_px ** (2 * power) for power, value in enumerate(others, start=1)
    )
    edge = float(straight[-1]) / focal_px
    # Each of them moves the corner as far as the first; what a polynomial misses is in doubt too.
    least = math.hypot(SIGMA * half * (edge * focal_px / half) ** 3, miss) / focal_px / edge**3
    spread = least / math.sqrt(len(others))
    sigma = tuple(spread * edge ** (-2 * place) for place in range(len(others)))
    return LensReading(profile.name, distortion, sigma, first, miss)


def odd_polynomial(straight: Array, bent: Array, terms: int) -> tuple[Array, float]:
    """The weights (terms + 1,) of R, R^3, R^5, ... that come nearest to radii bent (N,) at straight
    ones (N,), and by how much they miss them at most."""
    unit = float(straight[-1])
    powers = 2 * np.arange(terms + 1) + 1
    columns = (straight[:, None] / unit) ** powers
    weights, *_ = np.linalg.lstsq(columns, bent, rcond=None)
    miss = float(np.abs(columns @ weights - bent).max())
    return weights / unit**powers, miss
