"""When an answer should not be trusted, in plain words."""

from __future__ import annotations

from geocalib.result.calibration import Calibration
from geocalib.solver import Status

DOUBTFUL_GRAVITY_DEG = 5.0
DOUBTFUL_VFOV_DEG = 10.3
"""A sigma beyond which the field of view is more than 10 degrees off with a probability above 1/3.
Of ordinary photographs 68, 92 and 97% are within one, two and three sigmas: errors are as good as
normal."""
DOUBTFUL_VFOV_SHARE = 0.5
"""Relative to the field of view, of narrow ones: 10 degrees are more than they have."""
NOTHING_DEG = 180.0
"""A sigma beyond this says no more."""

BLANK = "the picture is almost uniform, so there is nothing to tell the camera from"
UNTRAINED = "the weights are placeholders that were never trained: the numbers mean nothing"


def doubts(calibration: Calibration) -> tuple[str, ...]:
    """What the numbers themselves give away.

    The field of view of a wide lens that does not fill the image is not known, and not doubted.
    """
    found = []
    if calibration.status != Status.CONVERGED:
        found.append(f"the fit did not settle: {calibration.status}")
    sigma = calibration.sigma
    if not sigma.gravity_deg <= DOUBTFUL_GRAVITY_DEG:  # NaN is as bad
        found.append(f"the direction of gravity is uncertain ({_spread(sigma.gravity_deg)})")
    if sigma.vfov_deg > min(DOUBTFUL_VFOV_DEG, DOUBTFUL_VFOV_SHARE * calibration.vfov_deg):
        found.append(f"the field of view is uncertain ({_spread(sigma.vfov_deg)})")
    return tuple(found)


def _spread(sigma_deg: float) -> str:
    # In this order, so that NaN says nothing too.
    return f"± {min(NOTHING_DEG, sigma_deg):.0f}°"
