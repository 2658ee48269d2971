"""The parts of an answer that are trusted, and warnings for the others.

Gravity, the field of view and the lens are trusted separately: a photo of unknown field of view may
have a good horizon. A ``Doubt`` names the parts that it concerns. ``lab/benchmarks/trust.py``
measures the errors of trusted parts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from geocalib.geometry.drawn import LineKind
from geocalib.geometry.fields import ALONG_PITCH
from geocalib.records import dataclass
from geocalib.result.evidence import CONTRADICTION
from geocalib.result.uncertainty import EVERYTHING, Quantity, Trust
from geocalib.solver.result import Status

if TYPE_CHECKING:
    from geocalib.result.calibration import Calibration
    from geocalib.result.evidence import DrawnCheck

FAR_OFF_DEG = 5.0
DOUBTFUL_GRAVITY_DEG = FAR_OFF_DEG
DOUBTFUL_CHANCE = 0.22
"""Probability from which on there is a doubt that gravity is off by more than ``FAR_OFF_DEG``: of
photographs with a smaller one, 90% are within 3 degrees."""
FAR_OFF_WEIGHTS = (-0.55, 0.55, 1.03, 1.03, 0.18, 0.66, -0.97, 0.69, 0.28)
"""Constant, and weights of ``gravity_traits``: fitted to photographs with an accelerometer, of
one half of their owners (``lab/benchmarks/trust.py fit``)."""
DOUBTFUL_FOCAL = 0.14
"""One sigma of the logarithm of the focal length: at 50 degrees, 7 degrees of the field of view. Of
photographs with a smaller one, 90% are within 10 degrees."""
DOUBTFUL_FOV_DEG = math.degrees(DOUBTFUL_FOCAL)
"""One sigma: where a wide view hardly depends on the focal length alone."""
LOST_CHANCE, LEAST_LOST_FOCAL = 0.4, 0.05
"""Chance that gravity is off, and one sigma of log f, from which on the field of view is doubted
with it: a steep view that is taken for a level one has another perspective. Of photographs with a
trusted field of view, 29% of these were off by more than 10 degrees, and 6% of the others."""
LEAST_SIGMA_DEG, LEAST_SIGMA_FOCAL, MOST_DEG = 0.1, 0.01, 45.0
TOLD_SIGMA_FOCAL = 0.17
"""The least sigma of log f that speaks for gravity where the focal length was told. A picture that
gives its focal length away shows its perspective; a file tells it of any picture. By photographs of
known gravity and focal length, of the same half of owners (``trust.py gather --focal``)."""
LEAST_FOV_DEG, USUAL_FOV_DEG, MOST_FOV_DEG = 10.0, 50.0, 150.0
"""Where traits are clipped, and a field of view that says nothing."""
MOVED_FAR = 1.5
"""Sigmas of the network by which lines may move the focal length. Of photographs where they moved
it further, twice as many are far off as of the others."""
CLOSE_RIVAL, FAR_RIVAL_DEG = 0.2, 5.0
"""Probability of another kind of lens, and degrees by which its vertical field of view differs."""
SHARP_SIDE = 96
"""Shorter sides in pixels down to which networks are as good as they say."""
TINY_SIDE = 160
"""Shorter sides in pixels below which a picture is said to be tiny: at 96, the field of view is off
three times as far as at full size, and gravity half as far again."""
STEEP_DEG, MEANINGLESS_ROLL_DEG = 60.0, 90.0
"""Pitch, and sigma of roll, from which on a camera looks straight up or down: of an angle that may
be any, one sigma is 104 degrees."""
NOTHING_DEG = 180.0
"""A sigma beyond this says no more."""

BLANK = "the picture is almost uniform, so there is nothing to tell the camera from"
UNTRAINED = "the weights are placeholders that were never trained: the numbers mean nothing"


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
    size = calibration.width, calibration.height
    if min(size) < TINY_SIDE:
        words = f"the picture is tiny ({size[0]}x{size[1]} pixels): fine edges are missing"
        found.append(Doubt(words, EVERYTHING if min(size) < SHARP_SIDE else ()))
    sigma, chance = calibration.sigma, chance_far_off(calibration)
    if not sigma.gravity_deg <= DOUBTFUL_GRAVITY_DEG:  # NaN is as bad
        spread = _spread(sigma.gravity_deg)
        found.append(Doubt(f"the direction of gravity is uncertain ({spread})", ("gravity",)))
    elif chance > DOUBTFUL_CHANCE:
        words = f"gravity may be off by more than {FAR_OFF_DEG:.0f}° ({chance:.0%} likely)"
        found.append(Doubt(words, ("gravity",)))
    pitch_deg = calibration.pitch_deg
    if abs(pitch_deg) > STEEP_DEG and sigma.roll_deg > MEANINGLESS_ROLL_DEG:
        way = "up" if pitch_deg > 0 else "down"
        found.append(Doubt(f"the camera looks straight {way}, where roll means nothing", ()))
    share = sigma.focal / calibration.fy
    if share > DOUBTFUL_FOCAL or sigma.vfov_deg > DOUBTFUL_FOV_DEG:
        spread = _spread(sigma.vfov_deg)
        found.append(Doubt(f"the field of view is uncertain ({spread})", ("fov", "lens")))
    elif chance > LOST_CHANCE and share > LEAST_LOST_FOCAL:
        words = "with gravity so doubtful, the field of view is doubtful, too"
        found.append(Doubt(words, ("fov", "lens")))
    moved = 0.0 if calibration.lines is None else calibration.lines.focal_sigmas
    if moved > MOVED_FAR:
        words = f"straight lines moved the focal length by {moved:.1f} of the network's sigmas"
        found.append(Doubt(words, ("fov",)))
    if calibration.lens is not None:
        found += [
            Doubt(rival.as_doubt, ("fov", "lens"))
            for rival in calibration.lens.rivals
            if rival.probability >= CLOSE_RIVAL
            and not abs(rival.vfov_deg - calibration.lens.families[0].vfov_deg) < FAR_RIVAL_DEG
        ]
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


def chance_far_off(calibration: Calibration) -> float:
    """The probability that gravity is off by more than ``FAR_OFF_DEG``, of answers whose gravity
    the network found; of others 0.

    Sigmas do not tell of views that the network never learnt: steep ones, which it takes for level
    ones of something else. That it is unsure of the lens, or that lines found nothing, does.
    """
    said = any(each.quantity == "gravity" and each.used for each in calibration.priors)
    if said or calibration.drawn or ALONG_PITCH not in calibration.parameters:
        return 0.0
    constant, *slopes = FAR_OFF_WEIGHTS
    traits = gravity_traits(calibration)
    raised = constant + sum(w * x for w, x in zip(slopes, traits, strict=True))
    return 1 / (1 + math.exp(-raised))


def gravity_traits(calibration: Calibration) -> tuple[float, ...]:
    """What tells whether gravity is far off: the logarithms of its sigma in degrees and of that of
    log f; how far the camera looks up, looks down and leans to a side, in tens of degrees; whether
    lines were used; how wide the view is; and whether the picture is taller than wide."""
    sigma, lines, pitch = calibration.sigma, calibration.lines, calibration.pitch_deg
    told = any(each.quantity == "focal" and each.used for each in calibration.priors)
    least = TOLD_SIGMA_FOCAL if told else LEAST_SIGMA_FOCAL
    vfov_deg = calibration.vfov_deg if calibration.vfov_deg > 0 else MOST_FOV_DEG  # NaN is wide.
    return (
        math.log(min(max(sigma.gravity_deg, LEAST_SIGMA_DEG), MOST_DEG)),
        math.log(min(max(sigma.focal / calibration.fy, least), 1.0)),
        min(max(pitch, 0.0), MOST_DEG) / 10,
        min(max(-pitch, 0.0), MOST_DEG) / 10,
        min(abs(calibration.roll_deg), MOST_DEG) / 10,
        float(lines is not None and lines.verdict.used),
        math.log(min(max(vfov_deg, LEAST_FOV_DEG), MOST_FOV_DEG) / USUAL_FOV_DEG),
        float(calibration.height > calibration.width),
    )


def _spread(sigma_deg: float) -> str:
    # In this order, so that NaN says nothing too.
    return f"± {min(NOTHING_DEG, sigma_deg):.0f}°"
