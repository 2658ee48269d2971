"""Where to start: focal lengths within the prior, and the headings that most segments follow."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from geocalib.geometry.fields import Free
from geocalib.geometry.gravity import move, tangent_basis
from geocalib.lines.bundle import Bundle
from geocalib.lines.mixture import CLUTTER, LEAST_EXPONENT, noise_model, weigh
from geocalib.lines.prior import Prior, given_log_f, log_f_sigma, student_cost, student_weight
from geocalib.lines.residuals import Optics
from geocalib.lines.unknowns import Array, Guess, Images, Layout, compass, level_frame
from geocalib.records import dataclass

FOCALS = 15
"""Focal lengths tried."""
SPREAD = 3.0
"""Sigmas of the prior on either side that they span."""
BORDER = 0.7
"""Of log f: they keep off the end of what a fit may answer."""
HEADINGS = 45
"""Headings tried in a quarter turn."""
MOST = 140
"""Segments looked at, the longest."""
COARSE = math.radians(1.0)
"""By how much segments may miss their direction while the grid is coarse."""
PLUMB_WIDTHS = (3 * COARSE,) * 3 + (COARSE,) * 2
"""By how much verticals may miss gravity in each of the steps that seek it."""
LONGEST_STEP = 0.2
"""Radians."""


@dataclass(frozen=True)
class Landscape:
    """How well the segments of one image fit a grid of F focal lengths and H headings, which span
    a quarter turn."""

    guess: Guess
    """F of them: focal lengths, and the likeliest rest."""
    level: Array
    """(F, 3, 3) rotations to level frames."""
    crossed: Array
    """(F, H) log likelihood of pairs of headings at a right angle, and the vertical."""
    penalty: Array
    """(F,) half the cost of the prior."""

    def heading(self, focal: int) -> Array:
        """(3,) the best one for a focal length, in the camera frame."""
        best = int(self.crossed[focal].argmax())
        return np.asarray(compass(2 * HEADINGS)[best] @ self.level[focal])


def survey(prior: Prior, layout: Layout, bundle: Bundle, repeats: float) -> Landscape:
    """The landscape of one image, whose prior and segments these are."""
    log_f = _focals(prior, layout)
    guess = given_log_f(prior, log_f, layout)
    bundle = bundle.longest(MOST)
    penalty = np.zeros_like(log_f)
    if layout.free.focal:
        squared = ((log_f - prior.mean.log_f[0]) / log_f_sigma(prior)) ** 2
        penalty = 0.5 * student_cost(squared)
    images = layout.images(guess)
    if layout.free.gravity:
        gravity = _plumb(prior.stiffness.A[0], images, bundle, repeats)
        guess, images = replace(guess, gravity=gravity), replace(images, gravity=gravity)
    level = level_frame(images.gravity[:, 0])
    directions = np.concatenate([images.gravity, compass(2 * HEADINGS) @ level], 1)
    ratio = likelihood_ratios(images, bundle, directions)
    every = ratio[:, 1 : 1 + HEADINGS] + ratio[:, 1 + HEADINGS :]
    every += ratio[:, :1]
    every *= (1 - CLUTTER) / 3
    every += CLUTTER
    return Landscape(guess, level, np.log(every, out=every).sum(-1), penalty)


def _focals(prior: Prior, layout: Layout) -> Array:
    """(F,) log focal lengths to try."""
    mean = prior.mean.log_f[0, :1]
    if not layout.free.focal:
        return mean
    reach = SPREAD * log_f_sigma(prior)
    low = np.maximum(mean - reach, np.minimum(mean, layout.low[:1] + BORDER))
    high = np.minimum(mean + reach, np.maximum(mean, layout.high[:1] - BORDER))
    return np.linspace(low[0], high[0], FOCALS)


def _plumb(stiffness: Array, images: Images, bundle: Bundle, repeats: float) -> Array:
    """(F, 1, 3) where the vertical segments say that gravity is, which a stiffness (1, 2, 2) holds
    near its mean."""
    optics, gravity = Optics.create(images, bundle), images.gravity
    home = images.basis.mT
    usable = (bundle.length > 0)[:, None]
    for width in PLUMB_WIDTHS:
        sight = optics.look(gravity[..., None, :])
        noise = noise_model(
            bundle.length, sight.nearness, bundle.noise, usable & sight.valid, width
        )
        basis = tangent_basis(gravity)
        weight = weigh(sight.residual, noise).share * noise.information / repeats
        jacobian = basis.mT @ sight.jacobian(Free(True, False))[..., 0, :, :]
        weighted = jacobian * weight
        off, turn = home @ gravity[..., None], home @ basis
        held = stiffness @ off
        pull = student_weight((off * held).sum((-1, -2, -3)))
        pull = pull[:, None, None, None] * turn.mT
        matrix = weighted @ jacobian.mT + pull @ stiffness @ turn
        force = weighted @ sight.residual.mT + pull @ held
        step = -np.linalg.solve(matrix, force)[..., 0]
        longest = np.linalg.norm(step, axis=-1, keepdims=True).clip(min=LONGEST_STEP)
        gravity = move(gravity, step * (LONGEST_STEP / longest))
    return gravity


def likelihood_ratios(images: Images, bundle: Bundle, directions: Array) -> npt.NDArray[np.float32]:
    """(F, K, N) likelihood ratio of the segments of one image against many directions (F, K, 3), in
    single precision: it only says where to start."""
    optics = Optics.create(images, bundle)
    across, along = (optics.vectors[:, 0, side].astype(np.float32) for side in (0, 1))
    found = directions.astype(np.float32)
    squared = np.square(found @ across)
    length = np.square(found @ along)
    length += squared
    np.maximum(length, np.float32(1e-12), out=length)
    # The common noise of the ends counts where the vanishing point is near: h / length.
    # Everything times -2, which the exponent wants.
    shift = (-((bundle.noise[0] * found[..., 2:]) ** 2)).astype(np.float32)
    turn = 2 * (bundle.noise[:, None] / bundle.length.clip(min=1)) ** 2 + COARSE**2
    variance = (-2 * turn).astype(np.float32) * length
    variance += shift
    ratio = squared / variance
    np.maximum(ratio, np.float32(LEAST_EXPONENT), out=ratio)
    np.exp(ratio, out=ratio)
    length /= variance
    length *= -math.pi
    ratio *= np.sqrt(length, out=length)
    ratio[..., ~(bundle.length[0] > 0)] = 0
    return np.asarray(ratio)


def peaks(profile: Array, count: int) -> list[int]:
    """Indices of the highest values (F,), no two of them close to each other."""
    left = profile.copy()
    found: list[int] = []
    while len(found) < count and np.isfinite(left).any():
        at = int(left.argmax())
        found.append(at)
        left[max(0, at - 1) : at + 2] = -np.inf
    return found
