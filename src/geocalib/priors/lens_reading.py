"""The distortion of a lens by the names of body and lens in EXIF, out of Lensfun's database."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from PIL.ExifTags import Base

from geocalib.cameras.base import CameraModel
from geocalib.cameras.ptlens import rounded
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

HELD = 0.1 / 1500
"""By how much a model may miss a profile and still hold it, in units of half the shorter side: 0.1
pixel at 12 megapixels."""

PTLENS, FISHEYE = get_model("ptlens"), get_model("kannala_brandt")
OWN = (get_model("simple_radial"), get_model("radial"), PTLENS)
"""The models of the database's polynomials. If the caller names none, a known lens has the first of
them that holds its profile."""
POLYNOMIALS = (*OWN, get_model("radial3"), get_model("radial4"))
"""Models that the profile of a lens that is no fisheye can be brought to."""

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
    model: CameraModel
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
    tags: Mapping[int, Any], size: tuple[int, int], focal_px: float, model: CameraModel | None
) -> tuple[LensReading | None, str | None]:
    """The distortion of the lens that took a picture of (width, height), or why nothing is to be
    made of its name, if it has one.

    focal_px: of the picture, by EXIF. model: None for the one of the database's polynomial. No
    reading, and no reason, for models that no profile can be brought to.
    """
    make, body_name, lens_name = (
        text(tags, tag) for tag in (Base.Make, Base.Model, Base.LensModel)
    )
    if not lens_name or model not in (None, FISHEYE, *POLYNOMIALS):
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
    if profile.fisheye != (model == FISHEYE):
        return None, f"it is {'a' if profile.fisheye else 'no'} fisheye"
    half = 0.5 * min(size)
    ways = [
        in_words_of(each, profile, focal_px, half) for each in ([model] if model else list(OWN))
    ]
    best = min(ways, key=lambda way: way.miss_px)
    if profile.fisheye and best.miss_px > HELD * half:
        return None, f"{FISHEYE.name} misses this fisheye by {best.miss_px:.1f} pixels"
    return next((way for way in ways if way.miss_px <= HELD * half), best), None


def common_model(lenses: Sequence[LensReading | None]) -> CameraModel | None:
    """The one that holds the lenses of all photos of a camera; None where one is not known."""
    known = [lens.model for lens in lenses if lens is not None]
    if len(known) < len(lenses):
        return None
    return max(known, key=lambda model: len(model.parameters), default=None)


def in_words_of(model: CameraModel, profile: Profile, focal_px: float, half: float) -> LensReading:
    """A profile in the parameters of a model, by least squares. half: of the shorter side,
    pixels."""
    straight, bent = np.array(profile.straight), np.array(profile.bent)
    # Fisheyes are known by the angle; others are what they are in the picture.
    focal_px = profile.focal_px if profile.fisheye else focal_px
    x = straight / focal_px
    variable = rounded(x * x) if model == PTLENS else x * x
    columns = x[:, None] * variable[:, None] ** np.arange(len(model.parameters) + 1)
    units = columns[-1]
    weights, *_ = np.linalg.lstsq(columns / units, bent, rcond=None)
    miss = float(np.abs(columns / units @ weights - bent).max())
    weights = weights / units
    # Each of them moves the corner as far as the others; what a polynomial misses is in doubt too.
    corner = math.hypot(SIGMA * half * (straight[-1] / half) ** 3, miss)
    sigma = corner / focal_px / units[1:] / math.sqrt(len(units) - 1)
    return LensReading(
        profile.name,
        model,
        tuple((weights[1:] / weights[0]).tolist()),
        tuple(sigma.tolist()),
        float(weights[0]) / focal_px,
        miss,
    )
