"""Worlds without right angles: level directions that turn freely.

Two headings at a right angle tell the focal length. Where streets meet at other angles they tell a
wrong one, so every heading gets its own turn: each still lies on the horizon and helps gravity.
"""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from geocalib.gravity import world_from_camera
from geocalib.lines.evidence import likelihood, likelihood_ratio
from geocalib.lines.minimise import Guess, Problem
from geocalib.lines.residuals import directions_of, look

COMPASS = 60
"""Headings tried over half a turn."""
TRIED_WIDTH = math.radians(1.0)
"""By how much segments may miss them."""
APART = math.cos(math.radians(10.0))
"""Headings nearer to each other than this are one."""
LEAST_EXTRA = 25.0
"""Support of a further heading that is believed, in independent segments."""
LEAST_SHARE = 0.4
"""Of the weaker heading's support that a further one needs to cast doubt on right angles."""


def unlocked(problem: Problem, guess: Guess) -> tuple[Problem, Guess]:
    """The same with a turn of its own for each of the crossed headings of every image."""
    _, gravity, _ = problem.images(guess)
    every = directions_of(gravity, guess.headings)[:, 1:]
    active = problem.active
    free = torch.zeros(len(active), 1 + 2 * every.shape[1], dtype=torch.bool)
    free[:, 0], free[:, 1::2] = active[:, 0], active[:, 1:]
    return replace(problem, active=free), Guess(guess.state, every)


def with_extra(
    problem: Problem, guess: Guess, found: Tensor, width: float
) -> tuple[Problem, Guess] | None:
    """Unlocked, and with a third heading where segments follow one; None if no image has any.

    found: (B, 3) support of the vertical and the crossed headings.
    """
    camera, gravity, _ = problem.images(guess)
    angle = math.pi / COMPASS * torch.arange(COMPASS, dtype=torch.float64)
    compass = torch.stack([torch.cos(angle), torch.zeros_like(angle), torch.sin(angle)], -1)
    tried = compass @ world_from_camera(gravity)
    known = directions_of(gravity, guess.headings)
    near = ((tried @ known[:, 1:].transpose(1, 2)).abs() > APART) & problem.active[:, None, 1:]
    noise = problem.noise(guess, width)
    every = likelihood_ratio(problem.sight(guess).residual, noise).sum(1)
    wide = replace(problem, active=torch.ones(len(tried), COMPASS, dtype=torch.bool))
    sight = look(camera, problem.bundle, tried)
    ratio = likelihood_ratio(sight.residual, wide.noise_of(sight, TRIED_WIDTH))
    before = likelihood(every, noise)
    gains = (likelihood(every[:, None] + ratio, noise) - before[:, None]) / problem.repeats
    gain, best = gains.masked_fill(near.any(-1), 0.0).max(1)
    weaker = found[:, 1:].masked_fill(~problem.active[:, 1:], torch.inf).amin(1)
    extra = (gain >= LEAST_EXTRA) & (gain >= LEAST_SHARE * weaker)
    extra = extra & problem.active[:, 1:].any(1)
    if not bool(extra.any()):
        return None
    free, several = unlocked(problem, guess)
    third = tried[torch.arange(len(tried)), best][:, None]
    # Where there is no third heading, the first two stay at their right angle.
    headings = torch.where(
        extra[:, None, None],
        torch.cat([several.headings, third], 1),
        torch.cat([guess.headings, several.headings], 1),
    )
    none = torch.zeros(len(tried), 7, dtype=torch.bool)
    turned, crossed = none.clone(), none
    turned[:, :5], turned[:, 5] = free.active, True
    crossed[:, :3] = problem.active
    active = torch.where(extra[:, None], turned, crossed)
    return replace(problem, active=active), Guess(guess.state, headings)
