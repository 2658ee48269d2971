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
from collections.abc import Sequence
from typing import Self

import numpy as np

from geocalib.geometry.tensors import map_tensors
from geocalib.lines.covariance import covariance, told_by_lines
from geocalib.lines.descent import CAUTION, REPEATS, Modes, from_two_sides, settled, support_of
from geocalib.lines.evidence import misfit
from geocalib.lines.minimise import Problem, Scene
from geocalib.lines.prior import Prior
from geocalib.lines.system import Arrow
from geocalib.lines.together import Request, Search, side_by_side
from geocalib.lines.unknowns import Array, Guess, Layout
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
USUAL_MISFIT, PER_MISFIT = 1.2, 6.0
"""Mean square residual of segments that is usual, and the power of it by which variances grow:
where segments keep to their directions well, these are those of the world more exactly."""
CAUTION_RANGE = (0.1, 2.5)
"""Of what that makes of ``CAUTION``."""
AGREEMENT_REPEATS = 16.0
"""Segments that say what an independent one would of how far the two answers may be apart."""
ANY_GRAVITY, ANY_LOG_F = math.radians(20.0), 0.4
"""One sigma of the answers of lines that are not what they seem, around the network's."""


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
    crossed = yield from _judged(Verdict.CROSSED, problem, scene, modes, network)
    found = [crossed]
    if not problem.active[:, 1:].any():
        return found
    turned = with_extra(problem, scene, crossed.gains)
    square = bool(problem.active[:, 1:].all(1).any())
    if turned is None and square:
        turned = unlocked(problem, scene.view)
    if turned is not None:
        free, start = turned
        end = yield from settled(free, start)
        loose = yield from _judged(Verdict.TURNED, free, end, modes, network)
        if square:
            odds = crossed.log_odds - TURNED + PER_GAIN * _gain(crossed, loose)
            odds += _focal_odds(free, end.view.guess, network.mean)
            odds -= _focal_odds(problem, scene.view.guess, network.mean)
            loose = replace(loose, support=crossed.support, log_odds=odds)
        found.append(loose)
    if problem.active[:, 0].any():
        upright = problem.upright()
        scene, modes = yield from from_two_sides(upright, scene.view.guess.upright())
        found.append((yield from _judged(Verdict.UPRIGHT, upright, scene, modes, network)))
    return found


def probabilities(found: list[Explanation]) -> Array:
    """(1 + E,) of the network's answer alone, and of each explanation."""
    odds = np.array([0.0, *(each.log_odds for each in found)])
    share = np.exp(odds - odds.max())
    return np.asarray(share / share.sum())


def _judged(
    verdict: Verdict, problem: Problem, scene: Scene, modes: Modes, network: Prior
) -> Search[Explanation]:
    gains, agreement, blocks = yield Judgement(problem, scene, network)
    # Of images that share something, by what one of them says on average.
    images = max(1, int(problem.active.any(1).sum()))
    support = float((gains * problem.active).sum()) / images
    agreement /= images
    log_odds = (
        USUAL[verdict]
        + PER_SUPPORT * math.log(max(support, 1.0) / USUAL_SUPPORT)
        + PER_AGREEMENT * (agreement - USUAL_AGREEMENT)
        + _focal_odds(problem, scene.view.guess, network.mean)
    )
    blocks = blocks + modes.spread(problem.layout)
    return Explanation(verdict, problem, scene, blocks, gains, support, log_odds)


@dataclass(frozen=True)
class Judgement(Request):
    """What speaks for one guess, and how sure it is: (B, K) the support of each direction, the
    agreement with the network, and the covariance (B, P, P)."""

    scene: Scene
    network: Prior

    @classmethod
    def answered(cls, requests: Sequence[Self]) -> list[tuple[Array, float, Array]]:
        first = requests[0]
        problem, scene, network = first.problem, first.scene, first.network
        if len(requests) > 1:
            each = [1] * len(requests)
            problem = side_by_side([request.problem for request in requests], each)
            scene = Scene.concatenate([request.scene for request in requests], problem)
            network = Prior.stack([request.network for request in requests], each)
        told = told_by_lines(replace(problem, repeats=1.0), scene)
        gains = support_of(scene)
        agreement = _agreement(
            network, problem.layout, scene.view.guess, told.divided(AGREEMENT_REPEATS).arrow
        )
        blocks = covariance(problem, scene, told.divided(REPEATS * _caution(scene)))
        return list(zip(gains, agreement.tolist(), blocks, strict=True))


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


def _caution(scene: Scene) -> Array:
    """(R,) by how much less sure than the likelihood answers are."""
    found = misfit(scene.view.sight.residual, scene.noise, scene.weighing.share)
    return np.asarray(CAUTION * np.clip((found / USUAL_MISFIT) ** PER_MISFIT, *CAUTION_RANGE))


def _gain(crossed: Explanation, loose: Explanation) -> float:
    """Log likelihood that the world of turning headings wins over that of right angles."""
    gain = 0.5 * float(crossed.scene.cost[0] - loose.scene.cost[0])
    if loose.gains.shape[1] > THIRD and crossed.problem.active[:, 1:].all(1).any():
        # A third heading explains more segments in any case, which says nothing of right angles.
        gain -= float(loose.gains[:, THIRD].sum())
    return gain


def _agreement(prior: Prior, layout: Layout, guess: Guess, lines: Arrow) -> Array:
    """(R,) by how much likelier the answer of lines is around the network's than anywhere: the log
    of the ratio of both evidences, by Laplace's approximation."""
    network = prior.stiffness_at(guess, layout)
    anything = _anything(network, layout)
    every = network, lines + network, anything, lines + anything
    # As rows of one arrow, which takes as long as one of them.
    whole: Arrow = map_tensors(lambda *parts: np.concatenate(parts), *every)
    narrow, with_lines, wide, wide_with_lines = _log_determinant(whole).reshape(4, -1)
    ratio = narrow - with_lines - (wide - wide_with_lines)
    return np.asarray(0.5 * (ratio - prior.cost(guess, layout)))


def _anything(network: Arrow, layout: Layout) -> Arrow:
    """The network's stiffness, made as soft as an answer that could be anything."""
    time = _softening(np.diagonal(network.A, axis1=-2, axis2=-1), ANY_GRAVITY)
    camera = np.ones(network.C.shape[:2])
    if layout.free.focal:
        own = slice(None, None, layout.intrinsics)
        stiffness = np.diagonal(network.C, axis1=-2, axis2=-1)[:, own]
        camera[:, own] = _softening(stiffness, ANY_LOG_F)
    return Arrow(
        time[..., :, None] * network.A * time[..., None, :],
        time[..., :, None] * network.B * camera[:, None, None, :],
        camera[:, :, None] * network.C * camera[:, None, :],
    )


def _softening(stiffness: Array, sigma: float) -> Array:
    """What unknowns of a stiffness are multiplied by to have at least one sigma."""
    return np.minimum(1.0, 1 / (sigma * np.sqrt(stiffness)))


def _log_determinant(arrow: Arrow) -> Array:
    """(R,)."""
    times = np.linalg.slogdet(arrow.A)[1].sum(1)
    return np.asarray(times + np.linalg.slogdet(arrow.eliminate().S)[1])
