"""When an answer should not be trusted, in plain words."""

from __future__ import annotations

import math
from itertools import pairwise

from geocalib.result.calibration import Calibration
from geocalib.solver import Status

DOUBTFUL_GRAVITY_DEG = 5.0
FAR_OFF_DEG, FAR_OFF_SHARE = 10.0, 0.5
"""What counts as a wrong field of view: off by so much, or, of narrow ones, by this part of it."""
DOUBTFUL_CHANCE = 1 / 3
"""Of being that far off."""
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
    if chance_far_off(calibration.vfov_deg, sigma.vfov_deg) > DOUBTFUL_CHANCE:
        found.append(f"the field of view is uncertain ({_spread(sigma.vfov_deg)})")
    return tuple(found)


def chance_far_off(vfov_deg: float, sigma_deg: float) -> float:
    """The probability that a field of view of that sigma is wrong; 0 where its sigma is not known.

    What is normal is the logarithm of the focal length (of ordinary photographs 68, 92 and 97% are
    within one, two and three sigmas): the wider the view might be, the less that changes it. Where
    it is wider than a plane can show, the angle itself is taken to be.

    >>> round(chance_far_off(60.0, 10.0), 2)
    0.31
    """
    if not sigma_deg > 0:
        return 0.0
    off = min(FAR_OFF_DEG, FAR_OFF_SHARE * vfov_deg)
    narrow, middle, wide = (math.radians(vfov_deg + step) for step in (-off, 0, off))
    if wide >= math.pi:
        return math.erfc(off / sigma_deg / math.sqrt(2))
    sigma_log_f = math.radians(sigma_deg) / math.sin(middle)
    steps = (
        math.log(math.tan(0.5 * b) / math.tan(0.5 * a)) for a, b in pairwise((narrow, middle, wide))
    )
    return sum(0.5 * math.erfc(step / sigma_log_f / math.sqrt(2)) for step in steps)


def _spread(sigma_deg: float) -> str:
    # In this order, so that NaN says nothing too.
    return f"± {min(NOTHING_DEG, sigma_deg):.0f}°"
