"""The chi-square distribution, as far as tests of agreement need it."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

_erfc = np.vectorize(math.erfc, otypes=[np.float64])


def chi2_sf(squared: npt.ArrayLike, freedom: int) -> npt.NDArray[np.float64]:
    """The probability of a chi-square variable of that many degrees of freedom, at least 1, to be
    larger than (...) numbers that are not negative.

    >>> chi2_sf([3.841, 6.635], 1).round(3).tolist()
    [0.05, 0.01]
    """
    x = 0.5 * np.asarray(squared, np.float64)
    # From one degree of freedom, or two, upwards in steps of two.
    degree = 0.5 if freedom % 2 else 1.0
    chance = _erfc(np.sqrt(x)) if freedom % 2 else np.exp(-x)
    while degree < 0.5 * freedom:
        chance = chance + x**degree * np.exp(-x) / math.gamma(degree + 1)
        degree += 1
    return np.asarray(chance)
