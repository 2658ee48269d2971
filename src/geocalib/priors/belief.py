"""Whether EXIF is believed against a picture that contradicts it.

Both may be wrong: a program cropped the photo and kept its EXIF data, or network and lines were
misled. Errors of pictures have the heavy tails of Student's distribution; the focal length of a
cropped photo is anywhere beyond that of its tag. The likelier of the two explanations is taken.
"""

from __future__ import annotations

import math

from geocalib.result.prior_check import PriorCheck

WRONG = 0.03
"""Share of photos whose EXIF focal length is not theirs."""
CROPPED, LARGEST_CROP = 0.9, 1.2
"""Share of crops among them; the largest enlargement by a crop, in log f."""
ANYWHERE = 2.0
"""Range of log f of all others, of wrong tags."""
FREEDOM = 4.0
"""Of Student's distribution, as of ``geocalib.lines.prior``."""


def believed(focal: PriorCheck) -> bool:
    """Whether EXIF is likelier right than wrong, given what the picture alone shows."""
    if not math.isfinite(focal.tension):
        return True
    (told,), (seen,) = focal.prior, focal.estimate
    sigma = math.hypot(focal.prior_sigma / told, focal.estimate_sigma / seen)
    wrong = (1 - CROPPED) / ANYWHERE + (CROPPED / LARGEST_CROP if seen > told else 0.0)
    return (1 - WRONG) * _student(focal.tension) / sigma > WRONG * wrong


def _student(value: float) -> float:
    """Density of Student's distribution."""
    n = FREEDOM
    norm = math.gamma(0.5 * (n + 1)) / (math.sqrt(n * math.pi) * math.gamma(0.5 * n))
    return float(norm * (1 + value**2 / n) ** (-0.5 * (n + 1)))
