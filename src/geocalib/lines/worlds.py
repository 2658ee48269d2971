"""Worlds without right angles: level directions that turn freely.

Two headings at a right angle tell the focal length. Where streets meet at other angles they tell a
wrong one, so every heading gets its own turn: each still lies on the horizon and helps gravity.
"""

from __future__ import annotations

import math

import numpy as np

from geocalib.geometry.tensors import map_tensors
from geocalib.lines.evidence import likelihood, likelihood_ratio
from geocalib.lines.minimise import Problem, Scene, View
from geocalib.lines.search import likelihood_ratios
from geocalib.lines.unknowns import Array, Guess, compass, level_frame
from geocalib.records import replace

COMPASS = 60
"""Headings tried over half a turn."""
APART = math.cos(math.radians(10.0))
"""Headings nearer to each other than this are one."""
LEAST_EXTRA = 25.0
"""Support of a further heading that is believed, in independent segments."""
THIRD = 5
"""Where it is among the directions of worlds that have it."""
LEAST_SHARE = 0.7
"""Of the weaker heading's support that a further one needs to cast doubt on right angles."""


def unlocked(problem: Problem, view: View) -> tuple[Problem, Guess]:
    """The same with a turn of its own for each of the crossed headings of every image."""
    every = view.sight.directions[..., 1:, :]
    active = problem.active
    free = np.zeros((len(active), 1 + 2 * every.shape[2]), np.bool_)
    free[:, 0], free[:, 1::2] = active[:, 0], active[:, 1:]
    return replace(problem, active=free), replace(view.guess, headings=every)


def with_extra(problem: Problem, scene: Scene, found: Array) -> tuple[Problem, Guess] | None:
    """Unlocked, and with a third heading where segments follow one; None if no image has any.

    found: (B, 3) support of the vertical and the crossed headings.
    """
    view, noise = scene.view, scene.noise
    guess, images, sight = view.guess, view.images, view.sight
    tried = compass(COMPASS) @ level_frame(images.gravity)
    cosines = np.abs(tried @ sight.directions[..., 1:, :].mT)
    near = (cosines > APART) & problem.active[:, None, 1:]
    every = likelihood_ratio(sight.residual, noise).sum(-2, keepdims=True)
    # Every image is a row of its own, and in single precision: whether there is one is all it says.
    apart = map_tensors(lambda value: value[:, None], problem.bundle)
    ratio = likelihood_ratios(sight.optics.vectors.swapaxes(0, 1), apart, tried[0])
    gains = likelihood(every.astype(np.float32) + ratio, noise) - likelihood(every, noise)
    gains = np.where(near.any(-1), 0.0, gains / problem.repeats)[0]
    gain, best = gains.max(1), gains.argmax(1)
    weaker = np.where(problem.active[:, 1:], found[:, 1:], np.inf).min(1)
    extra = (gain >= LEAST_EXTRA) & (gain >= LEAST_SHARE * weaker)
    extra = extra & problem.active[:, 1:].any(1)
    if not extra.any():
        return None
    free, several = unlocked(problem, view)
    third = tried[:, np.arange(len(best)), best][:, :, None]
    # Where there is no third heading, the first two stay at their right angle.
    headings = np.where(
        extra[:, None, None],
        np.concatenate([several.headings, third], 2),
        np.concatenate([guess.headings, several.headings], 2),
    )
    turned, crossed = np.zeros((2, len(best), 7), np.bool_)
    turned[:, :THIRD], turned[:, THIRD] = free.active, True
    crossed[:, :3] = problem.active
    active = np.where(extra[:, None], turned, crossed)
    return replace(problem, active=active), replace(guess, headings=headings)
