"""How probable each family of lenses is before the picture's perspective is looked at: by the names
in its file, and by the circle that circular fisheyes leave black around."""

from __future__ import annotations

import re
from collections.abc import Iterable

from PIL.ExifTags import Base

from geocalib.imaging.content import Circle
from geocalib.imaging.metadata import Metadata
from geocalib.solver.families import Odds

IN_A_CIRCLE: Odds = (0.01, 0.01, 0.98)
FISHEYE: Odds = (0.02, 0.08, 0.90)
ACTION_CAMERA: Odds = (0.20, 0.30, 0.50)
PHONE: Odds = (0.90, 0.099, 0.001)
"""Phones straighten what their wide lenses bend."""

FISHEYE_NAMES = re.compile(r"fish[ -]?eye", re.IGNORECASE)
ACTION_NAMES = re.compile(
    r"gopro|\bhero ?\d|insta ?360|osmo ?action|\bsjcam\b|\bakaso\b|\byi ?(4k|action)",
    re.IGNORECASE,
)
PHONE_NAMES = re.compile(
    r"^(apple|samsung|google|xiaomi|huawei|oneplus|oppo|vivo|realme|motorola|honor|htc|lge?)\b",
    re.IGNORECASE,
)


def odds_of_lenses(pictures: Iterable[tuple[Metadata, Circle | None]]) -> Odds | None:
    """Of pictures of one camera, by what their files say and the circles that they fill; None if
    nothing is known."""
    return next((odds for each in pictures if (odds := _odds(*each)) is not None), None)


def _odds(metadata: Metadata, circle: Circle | None) -> Odds | None:
    if circle is not None:
        return IN_A_CIRCLE
    make, model, lens = (
        str(metadata.tags.get(tag) or "") for tag in (Base.Make, Base.Model, Base.LensModel)
    )
    names = f"{make} {model} {lens}"
    if FISHEYE_NAMES.search(names):
        return FISHEYE
    if ACTION_NAMES.search(names):
        return ACTION_CAMERA
    return PHONE if PHONE_NAMES.search(make) else None
