"""What the lines of photos may be lines of: rival explanations, and how probable each is.

A world of vertical edges and level ones at right angles; one whose level edges turn freely; one
whose vertical edges alone are what they seem; or something else altogether, of which lines tell
nothing and the network's answer stands. Two things speak for a world: how many segments follow its
directions, and how well its answer agrees with the network's, compared with an answer that could
be anything. Against it speak a focal length that hardly any lens has, and one that is told by level
edges alone. How much each counts was measured (``docs/lines.md``).
"""

from __future__ import annotations

import math

import numpy as np

from geocalib.lines.descent import Modes, from_two_sides, settled
from geocalib.lines.judgement import Judgement, Telling, Testimony
from geocalib.lines.minimise import Problem, Scene
from geocalib.lines.prior import Prior
from geocalib.lines.rows import joined
from geocalib.lines.together import Search
from geocalib.lines.unknowns import Array, Guess
from geocalib.lines.worlds import THIRD, unlocked, with_extra
from geocalib.records import dataclass, replace
from geocalib.result.lines import Verdict

# Chosen on crops of the validation panoramas and on the first half of photographs (``evaluation.
# halves``), with 600 more of the training part: where the truth is likely under the mixture of all
# explanations and errors are small, and rounded. PER_SUPPORT was raised by hand, from 0.4. Of
# NO_VERTICAL and what follows it likelihoods tell little: ``docs/lines.md`` has those of others.
USUAL_SUPPORT, USUAL_AGREEMENT = 70.0, 5.0
"""Of an image of buildings."""
USUAL = {Verdict.CROSSED: 2.5, Verdict.TURNED: 2.5, Verdict.UPRIGHT: 1.2}
"""Log odds, against the network alone, of a world with the usual support and agreement."""
PER_SUPPORT, PER_AGREEMENT = 0.7, 0.2
"""What each unit of the logarithm of the support, and of the agreement, adds."""
NO_VERTICAL, PER_MOVED = 0.6, 15.0
"""Log odds that a world loses in which nothing is vertical, and how many more for each unit by
which it moves the network's log f: waves, branches and shadows often run in two directions that
could be level, and the focal length that makes them cross at a right angle is mostly wrong."""
UNUSUAL = 0.3
"""How far, in log f, from the longer side of the picture focal lengths are e times less common:
lines that are not what they seem mostly tell lenses that hardly anyone has."""
TURNED, PER_GAIN = 2.9, 0.15
"""Log odds by which right angles are commoner than others where lines show two that could be at
one, and what a unit of log likelihood that they cost counts."""


@dataclass(frozen=True)
class Explanation:
    """A world, where it is likeliest, and how sure that is."""

    verdict: Verdict
    problem: Problem
    scene: Scene
    blocks: Array
    """(B, P, P) covariance."""
    gains: Array
    """(B, K) support of each direction."""
    support: float
    """Of all directions of an image, on average."""
    log_odds: float
    """Against the network alone."""


@dataclass(frozen=True)
class World:
    """What segments may show, where it is likeliest, and what they tell."""

    verdict: Verdict
    problem: Problem
    scene: Scene
    spread: Array
    """(B, P, P) what it adds to the covariance that it may be elsewhere."""
    testimony: Testimony


def explanations(
    problem: Problem, scene: Scene, modes: Modes, network: Prior
) -> Search[list[Explanation]]:
    """Worlds that segments may show, given the minimum of the one with right angles, which may have
    been found with a firmer prior.

    network: what they should agree with.
    """
    if not problem.active.any():
        return []
    scene = problem.costs(scene.view, scene.noise, scene.weighing)
    spread = modes.spread(problem.layout)
    crossed = World(Verdict.CROSSED, problem, scene, spread, (yield Telling(problem, scene)))
    worlds = [crossed]
    square = bool(problem.active[:, 1:].all(1).any())
    if problem.active[:, 1:].any():
        turned = with_extra(problem, scene, crossed.testimony.gains[0])
        if turned is None and square:
            turned = unlocked(problem, scene.view)
        if turned is not None:
            free, start = turned
            end = yield from settled(free, start)
            worlds.append(World(Verdict.TURNED, free, end, spread, (yield Telling(free, end))))
        if problem.active[:, 0].any():
            upright = problem.upright()
            end, modes = yield from from_two_sides(upright, scene.view.guess.upright())
            testimony = yield Telling(upright, end)
            spread = modes.spread(problem.layout)
            worlds.append(World(Verdict.UPRIGHT, upright, end, spread, testimony))
    guess = Guess.concatenate([world.scene.view.guess.upright() for world in worlds])
    told = joined(*(world.testimony.told for world in worlds))
    caution = np.concatenate([world.testimony.caution for world in worlds])
    agreement, blocks = yield Judgement(problem, guess, network, told, caution)
    every = zip(worlds, agreement, blocks, strict=True)
    found = [_explanation(*each, network) for each in every]
    return [_held_against(each, found[0], network) if square else each for each in found]


def _held_against(each: Explanation, crossed: Explanation, network: Prior) -> Explanation:
    """An explanation where lines show two headings that could be at a right angle, as they are in
    one: a world where they turn is held against that."""
    if each.verdict is not Verdict.TURNED:
        return each
    odds = crossed.log_odds - TURNED + PER_GAIN * _gain(crossed, each)
    for sign, one in ((1, each), (-1, crossed)):
        odds += sign * _focal_odds(one.problem, one.scene.view.guess, network.mean)
    return replace(each, support=crossed.support, log_odds=odds)


def probabilities(found: list[Explanation]) -> Array:
    """(1 + E,) of the network's answer alone, and of each explanation."""
    odds = np.array([0.0, *(each.log_odds for each in found)])
    share = np.exp(odds - odds.max())
    return np.asarray(share / share.sum())


def _explanation(world: World, agreement: float, blocks: Array, network: Prior) -> Explanation:
    """By how well its answer agrees with the network's, and what covariance (B, P, P) it has."""
    problem, scene, gains = world.problem, world.scene, world.testimony.gains[0]
    # Of images that share something, by what one of them says on average.
    images = max(1, int(problem.active.any(1).sum()))
    support = float((gains * problem.active).sum()) / images
    agreement /= images
    log_odds = (
        USUAL[world.verdict]
        + PER_SUPPORT * math.log(max(support, 1.0) / USUAL_SUPPORT)
        + PER_AGREEMENT * (agreement - USUAL_AGREEMENT)
        + _focal_odds(problem, scene.view.guess, network.mean)
    )
    covariance = blocks + world.spread
    return Explanation(world.verdict, problem, scene, covariance, gains, support, log_odds)


def _focal_odds(problem: Problem, guess: Guess, network: Guess) -> float:
    """Log odds of a world for its focal lengths, given those of the network."""
    moved = guess.log_f[0] - network.log_f[0]
    vertical = bool(problem.active[:, 0].any())
    odds = 0.0 if vertical else -NO_VERTICAL - PER_MOVED * float(np.abs(moved).mean())
    if problem.layout.model.wide:
        return odds
    usual = np.log(problem.layout.size.max(-1))
    further = np.abs(guess.log_f[0] - usual) - np.abs(network.log_f[0] - usual)
    return odds - float(further.mean()) / UNUSUAL


def _gain(crossed: Explanation, loose: Explanation) -> float:
    """Log likelihood that the world of turning headings wins over that of right angles."""
    gain = 0.5 * float(crossed.scene.cost[0] - loose.scene.cost[0])
    if loose.gains.shape[1] > THIRD and crossed.problem.active[:, 1:].all(1).any():
        # A third heading explains more segments in any case, which says nothing of right angles.
        gain -= float(loose.gains[:, THIRD].sum())
    return gain
