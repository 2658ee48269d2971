"""What of an answer is to be believed, and in plain words why the rest is not.

Gravity, the field of view and the lens have a gate each: a photo whose field of view nobody can
tell does not lose its horizon. A ``Doubt`` closes the gates of what it is about.
``lab/benchmarks/trust.py`` measures what the gates let pass.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, get_args

from geocalib.geometry.drawn import LineKind
from geocalib.records import dataclass
from geocalib.result.prior_check import CONTRADICTION
from geocalib.solver.result import Status

if TYPE_CHECKING:
    from geocalib.result.calibration import Calibration
    from geocalib.result.drawn import DrawnCheck

Quantity = Literal["gravity", "fov", "lens"]
EVERYTHING: tuple[Quantity, ...] = get_args(Quantity)

DOUBTFUL_GRAVITY_DEG = 5.0
DOUBTFUL_FOCAL = 0.2
"""One sigma of the logarithm of the focal length: at 50 degrees, 9 degrees of the field of view."""
DOUBTFUL_FOV_DEG = math.degrees(DOUBTFUL_FOCAL)
"""One sigma: where a wide view hardly depends on the focal length alone."""
NOTHING_DEG = 180.0
"""A sigma beyond this says no more."""

BLANK = "the picture is almost uniform, so there is nothing to tell the camera from"
UNTRAINED = "the weights are placeholders that were never trained: the numbers mean nothing"


@dataclass(frozen=True)
class Trust:
    """What of an answer is to be believed."""

    gravity: bool = True
    fov: bool = True
    lens: bool = True


ALL_TRUSTED = Trust()


@dataclass(frozen=True)
class Doubt:
    """Why something is not to be believed."""

    text: str
    about: tuple[Quantity, ...] = EVERYTHING


def judged(calibration: Calibration, doubts: Sequence[Doubt]) -> Calibration:
    """An answer with its doubts: in words, and as gates."""
    closed = {quantity for doubt in doubts for quantity in doubt.about}
    trust = Trust(*(quantity not in closed for quantity in EVERYTHING))
    return replace(calibration, warnings=tuple(doubt.text for doubt in doubts), trust=trust)


def doubts(calibration: Calibration) -> tuple[Doubt, ...]:
    """What the numbers themselves give away.

    The field of view of a wide lens that does not fill the image is not known, and not doubted.
    """
    found = []
    if calibration.status != Status.CONVERGED:
        found.append(Doubt(f"the fit did not settle: {calibration.status}"))
    sigma = calibration.sigma
    if not sigma.gravity_deg <= DOUBTFUL_GRAVITY_DEG:  # NaN is as bad
        spread = _spread(sigma.gravity_deg)
        found.append(Doubt(f"the direction of gravity is uncertain ({spread})", ("gravity",)))
    if sigma.focal / calibration.fy > DOUBTFUL_FOCAL or sigma.vfov_deg > DOUBTFUL_FOV_DEG:
        spread = _spread(sigma.vfov_deg)
        found.append(Doubt(f"the field of view is uncertain ({spread})", ("fov", "lens")))
    return tuple(found)


def disagreements(checks: Sequence[DrawnCheck]) -> tuple[Doubt, ...]:
    """Which lines most likely say something wrong, or nothing."""
    found = []
    for number, each in enumerate(checks, 1):
        name = f"line {number} ({each.kind})"
        contradicts = f"{name} contradicts the picture by {each.tension:.1f} sigma"
        if not each.used:
            text = (
                f"{contradicts}, or the other lines, and was left out; two that agree are believed"
            )
            found.append(Doubt(text))
        elif each.tension > CONTRADICTION:
            found.append(Doubt(f"{contradicts}; the answer follows it"))
        if each.kind == LineKind.LEVEL and number not in [other.to for other in checks]:
            text = f"{name} has no line parallel to it, and alone tells nothing; draw one"
            found.append(Doubt(text, about=()))
    return tuple(found)


def _spread(sigma_deg: float) -> str:
    # In this order, so that NaN says nothing too.
    return f"± {min(NOTHING_DEG, sigma_deg):.0f}°"
