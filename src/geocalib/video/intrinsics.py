"""The lens that frames share: an information filter that knows that frames are alike.

Every frame measures the same D numbers (log f and the distortion), each with a covariance R. What
the network gets wrong about a scene it gets wrong in every frame of it: of R a share of 1 - w is an
error that all frames have in common, and only w is new in each, and that with a correlation from
one frame to the next. Both w and the correlation are estimated from how the frames scatter. The
mean is that of the information filter; its covariance is

    (1 - w) R + w R / N,    N the number of independent frames,

which does not shrink to nothing however long the video is. A change of the lens, though, shows
against the scatter w R alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from geocalib.arrays import Array
from geocalib.chi_square import chi2_sf
from geocalib.video.change_detector import LEVEL

EXPECTED_SHARE = 0.25
"""Share of the variance that is new in each frame, before any frame is used."""
EXPECTED_WEIGHT = 4.0
"""Frames it takes to tell otherwise."""
SHARES = (0.02, 4.0)
"""Smallest and largest share. A camera held still scatters less than one that will move."""
LARGEST_CORRELATION = 0.98
LEAST_TURN_SIGMA, LEAST_SIGMA = 0.1, 0.04
"""Sigmas of log f that are believed of one turn, and of any number of them: what lenses bend and
shutters skew is taken for a stretched picture."""


@dataclass(frozen=True)
class LensState:
    """What one frame, or many together, say about the lens."""

    mean: Array
    """(D,)."""
    covariance: Array
    """(D, D)."""


@dataclass(frozen=True)
class LensFilter:
    """Frames summed up, one after the other. Make it with ``start``."""

    information: Array
    """(D, D) sum of the frames' inverse covariances."""
    weighted: Array
    """(D,) sum of information times measurement."""
    count: int
    scatter: float
    """Sum of the squared, normalised innovations, per dimension."""
    together: float
    """Sum of the products of successive ones."""
    last: Array = field(repr=False)
    """(D,) the normalised innovation of the last frame."""

    @classmethod
    def start(cls, lens: LensState) -> LensFilter:
        """The filter after the first frame."""
        information = np.linalg.inv(lens.covariance)
        zero = np.zeros_like(lens.mean)
        return cls(information, information @ lens.mean, 1, 0.0, 0.0, zero)

    @property
    def mean(self) -> Array:
        """The mean of log f and the distortion, (D,)."""
        return np.linalg.solve(self.information, self.weighted)

    @property
    def share(self) -> float:
        """w: what part of a frame's variance is its own."""
        seen = self.scatter + EXPECTED_WEIGHT * EXPECTED_SHARE
        share = seen / (self.count - 1 + EXPECTED_WEIGHT)
        return min(max(share, SHARES[0]), SHARES[1])

    @property
    def independent(self) -> float:
        """How many frames without correlation say as much as these."""
        seen = self.scatter + EXPECTED_WEIGHT * EXPECTED_SHARE
        correlation = min(max(self.together / seen, 0.0), LARGEST_CORRELATION)
        return max(1.0, self.count * (1 - correlation) / (1 + correlation))

    @property
    def lens(self) -> LensState:
        """The estimate of the lens so far."""
        typical = self.count * np.linalg.inv(self.information)
        factor = max(1 - self.share, 0.0) + self.share / self.independent
        return LensState(self.mean, factor * typical)

    def accepts(self, lens: LensState) -> bool:
        """Whether a frame is no outlier, by the chi-square of its innovation."""
        off = self._normalised(lens)
        square = (off @ off) / self.share
        return float(chi2_sf(square, len(lens.mean))) >= LEVEL

    def updated(self, lens: LensState) -> LensFilter:
        """The filter after one frame more."""
        information = np.linalg.inv(lens.covariance)
        normalised, dimensions = self._normalised(lens), len(lens.mean)
        return LensFilter(
            self.information + information,
            self.weighted + information @ lens.mean,
            self.count + 1,
            self.scatter + float(normalised @ normalised) / dimensions,
            self.together + float(normalised @ self.last) / dimensions,
            normalised,
        )

    def _normalised(self, lens: LensState) -> Array:
        """(D,) innovation, of variance w where nothing is wrong."""
        mean_variance = np.linalg.inv(self.information) * (self.count / self.independent)
        root = np.linalg.cholesky(lens.covariance + mean_variance)
        return np.linalg.solve(root, lens.mean - self.mean)


@dataclass(frozen=True)
class Stretch:
    """The focal length as turns of the camera tell of it (``turns``)."""

    information: float = 0.0
    """Sum of the inverse variances of log f."""
    weighted: float = 0.0
    """Sum of information times log f."""

    def plus(self, log_f: float, information: float) -> Stretch:
        """The evidence with one turn more."""
        believed = min(information, LEAST_TURN_SIGMA**-2)
        return Stretch(self.information + believed, self.weighted + believed * log_f)

    def improved(self, lens: LensState) -> LensState:
        """A lens whose first number is log f, with what the turns say of it."""
        if self.information == 0:
            return lens
        variance = 1 / self.information + LEAST_SIGMA**2
        gain = lens.covariance[:, 0] / (lens.covariance[0, 0] + variance)
        ahead = self.weighted / self.information - lens.mean[0]
        covariance = lens.covariance - np.outer(gain, lens.covariance[0])
        return LensState(lens.mean + gain * ahead, 0.5 * (covariance + covariance.T))
