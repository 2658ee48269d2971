"""Rival hypotheses of what the lines of a photo are, and the probability of each.

Lines may show a world of vertical edges and level ones at right angles; one whose level edges turn
freely; one whose vertical edges alone are what they seem; or something else, and the network's
answer is kept. A hypothesis becomes more probable with the number of segments that follow its
directions, and with the agreement of its answer with the network's, compared with an arbitrary
answer; and less probable with an unusual focal length, or one that level edges alone show. The
weights were measured (``docs/lines.md``).

How sure an answer is: the inverse of the curvature at its minimum, and on top of it what a
principal point that is not quite where it is held would do to it: no number of segments averages
that out.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Self

import numpy as np

from geocalib.geometry.gravity import tangent_basis, to_roll_pitch
from geocalib.lines.batched_search import (
    CAUTION,
    REPEATS,
    Modes,
    Request,
    Search,
    descend_nearby,
    row_slices,
    stack_layouts,
    stack_problems,
    support_of,
    upright_minimum,
)
from geocalib.lines.descent import CostState, GuessView, LineProblem, Normal
from geocalib.lines.prior import NetworkPrior, student_cost
from geocalib.lines.residuals import likelihood, likelihood_ratio, misfit
from geocalib.lines.starts import likelihood_ratios
from geocalib.lines.unknowns import (
    Array,
    BatchedArrow,
    Flags,
    Guess,
    Layout,
    assemble,
    compass,
    concatenate_rows,
    eliminate_headings,
    level_frame,
    take_rows,
)
from geocalib.records import dataclass, map_tensors, replace
from geocalib.result.evidence import Verdict

CENTRE = 0.004
"""One sigma of the principal point, of the image's longer side, where it is held fixed."""


@dataclass(frozen=True)
class LineInformation:
    """What lines alone say of the unknowns near guesses."""

    arrow: BatchedArrow
    """Their information, the headings eliminated."""
    pulls: tuple[tuple[Array, Array], ...]
    """(R, T, a) and (R, Q) each: how hard one sigma of what is neglected pulls at the answer."""

    def divided(self, repeats: float | Array) -> LineInformation:
        """Return the information if segments said as many times less, (R,) or all alike."""
        arrow, share = self.arrow, np.reshape(1 / np.asarray(repeats), (-1, 1, 1, 1))
        each = share[..., 0], share[..., 0, 0]
        pulls = tuple([(time * each[0], camera * each[1]) for time, camera in self.pulls])
        return LineInformation(
            BatchedArrow(arrow.A * share, arrow.B * share, arrow.C * each[0]), pulls
        )


def line_information(problem: LineProblem, state: CostState) -> LineInformation:
    """Return the information of the segments of a state."""
    layout = problem.layout
    shared = layout.tangents + layout.intrinsics
    (hessian, gradient), forces = _neglected(problem, state)
    lines, gradient, turns = eliminate_headings(hessian, gradient, shared)
    # Headings give way to every force as they do to the gradient.
    left = [each[..., :shared] - np.matvec(turns.slope.mT, each[..., shared:]) for each in forces]
    pulls = tuple([assemble(lines, force, layout)[1] for force in left])
    return LineInformation(assemble(lines, gradient, layout)[0], pulls)


def covariance(
    prior: NetworkPrior, layout: Layout, guess: Guess, information: LineInformation
) -> Array:
    """(R, B, P, P) of each image's gravity, in its own tangent basis, and intrinsics, at guesses
    around which lines tell so much."""
    a, own = layout.tangents, layout.intrinsics
    pull = prior.pull(guess, layout, prior.forces(guess, layout))
    rest = (information.arrow + pull.arrow).eliminate()
    cameras = np.asarray(np.linalg.inv(rest.S), np.float64)
    AB, inner = rest.AB, cameras[:, None]
    gravities = rest.A_inverse + AB @ inner @ AB.mT
    blocks = _blocks(layout, gravities, -AB @ inner, cameras)
    for force in information.pulls:
        time, camera = rest.solve(*force)
        camera = camera.reshape(len(camera), layout.cameras, own)
        moved = np.concatenate([time[:, layout.time], camera[:, layout.camera]], 2)
        blocks = blocks + moved[..., :, None] * moved[..., None, :]
    if a and layout.rotation is not None:
        images = layout.images(guess)
        turn = np.tile(np.eye(a + own), (*blocks.shape[:2], 1, 1))
        turn[..., :a, :a] = tangent_basis(images.gravity).mT @ images.basis
        blocks = turn @ blocks @ turn.mT
    return np.asarray(0.5 * (blocks + blocks.mT))


def _neglected(problem: LineProblem, state: CostState) -> tuple[Normal, list[Array]]:
    """Return the normal equations, and forces (R, B, P): how hard one sigma of what is neglected
    pulls.

    Neglected is the principal point along each axis, where it is held.
    """
    layout = problem.layout
    if layout.free.principal_point:
        return problem.line_equations(state), []
    sigma = CENTRE * layout.size[..., layout.camera, :].max(-1)
    free = replace(layout.free, principal_point=True)
    hessian, gradient = problem.line_equations(state, free)
    # The principal point comes last among the intrinsics, before the headings.
    first = layout.tangents + layout.intrinsics
    known = np.array([i for i in range(hessian.shape[-1]) if i not in (first, first + 1)])
    pulls = [
        np.ascontiguousarray(-hessian[..., known, i] * sigma[..., None]) for i in (first, first + 1)
    ]
    # How an indexed array lies in memory depends on its rows, and on that the bits of products.
    kept = np.ascontiguousarray(hessian[..., known[:, None], known])
    return (kept, np.ascontiguousarray(gradient[..., known])), pulls


def _blocks(layout: Layout, gravities: Array, side: Array, cameras: Array) -> Array:
    """(R, B, P, P) from the covariances of gravities (R, T, a, a), of these with cameras
    (R, T, a, Q), and of cameras (R, Q, Q)."""
    count, own = layout.cameras, layout.intrinsics
    # Indices apart put their axis first.
    split = cameras.reshape(-1, count, own, count, own)[:, layout.camera, :, layout.camera]
    sides = side.reshape(*side.shape[:-1], count, own)[:, layout.time, :, layout.camera]
    split, sides = split.swapaxes(0, 1), sides.swapaxes(0, 1)
    top = np.concatenate([gravities[:, layout.time], sides], -1)
    return np.concatenate([top, np.concatenate([sides.mT, split], -1)], -2)


# Chosen as those of ``explanations`` are.
USUAL_MISFIT, PER_MISFIT = 1.2, 6.0
"""Mean square residual of segments that is usual, and the power of it by which variances grow:
where segments keep to their directions well, these are those of the world more exactly."""
CAUTION_RANGE = (0.1, 2.5)
"""Share of what that makes of ``CAUTION``."""
AGREEMENT_REPEATS = 16.0
"""Segments that say what an independent one would of how far the two answers may be apart."""
ANY_GRAVITY, ANY_LOG_F = math.radians(20.0), 0.4
"""One sigma of the answers of lines that are not what they seem, around the network's."""


@dataclass(frozen=True)
class LineEvidence:
    """What segments say at guesses: support, information, and how much caution they need."""

    gains: Array
    """(R, B, K) support of each direction."""
    information: LineInformation
    """For each segment by itself."""
    caution: Array
    """(R,) by how much less sure than that they are."""


@dataclass(frozen=True)
class EvidenceRequest(Request):
    """A request for the evidence of the segments at one guess."""

    state: CostState

    @classmethod
    def answered(cls, requests: Sequence[Self]) -> list[LineEvidence]:
        problem, state = requests[0].problem, requests[0].state
        each = [1] * len(requests)
        if len(requests) > 1:
            problem = stack_problems([one.problem for one in requests], each)
            state = CostState.concatenate([one.state for one in requests], problem)
        information = line_information(replace(problem, repeats=1.0), state)
        every = LineEvidence(support_of(state), information, _caution(state))
        return (
            [every] if len(requests) == 1 else [take_rows(own, every) for own in row_slices(each)]
        )


@dataclass(frozen=True)
class CovarianceRequest(Request):
    """A request for how well each of several guesses agrees with the network, (R,), for the sigmas,
    squared, by which it misses what was measured of gravity, (R,), and for its covariance
    (R, B, P, P). From how many directions and segments that came does not matter."""

    guess: Guess
    """The answer, without headings."""
    network: NetworkPrior
    information: LineInformation
    caution: Array

    @property
    def kind(self) -> Hashable:
        layout = self.problem.layout
        return (type(self), layout.model.name, layout.free) if self.shareable else id(self)

    @classmethod
    def answered(cls, requests: Sequence[Self]) -> list[tuple[list[float], list[float], Array]]:
        rows = [len(one.guess) for one in requests]
        first = requests[0]
        prior, layout, network = first.problem.prior, first.problem.layout, first.network
        guess, information, caution = first.guess, first.information, first.caution
        if len(requests) > 1:
            layout = stack_layouts([one.problem.layout for one in requests], rows)
            prior = NetworkPrior.stack([one.problem.prior for one in requests], rows)
            network = NetworkPrior.stack([one.network for one in requests], rows)
            guess = Guess.concatenate([one.guess for one in requests])
            information = concatenate_rows(*(one.information for one in requests))
            caution = np.concatenate([one.caution for one in requests])
        forces, lines = network.forces(guess, layout), information.divided(AGREEMENT_REPEATS)
        agreement = _agreement(network, layout, guess, lines.arrow)
        agreement -= 0.5 * student_cost(forces.network)
        blocks = covariance(prior, layout, guess, information.divided(REPEATS * caution))
        return [
            (agreement[own].tolist(), forces.strain[own].tolist(), blocks[own])
            for own in row_slices(rows)
        ]


def _caution(state: CostState) -> Array:
    """Return by how many times (R,) the variance is larger than the likelihood says."""
    found = misfit(state.view.alignment.residual, state.noise, state.assignment.share)
    return np.asarray(CAUTION * np.clip((found / USUAL_MISFIT) ** PER_MISFIT, *CAUTION_RANGE))


def _agreement(prior: NetworkPrior, layout: Layout, guess: Guess, lines: BatchedArrow) -> Array:
    """(R,) by how much likelier answers of lines are around the network's than anywhere, but for
    where exactly they are: the log of the ratio of both evidences, by Laplace's approximation."""
    network = prior.stiffness_at(guess, layout)
    anything = _anything(network, layout)
    every = network, lines + network, anything, lines + anything
    # As rows of one arrow, which takes as long as one of them.
    whole: BatchedArrow = map_tensors(lambda *parts: np.concatenate(parts), *every)
    narrow, with_lines, wide, wide_with_lines = _log_determinant(whole).reshape(4, -1)
    ratio = narrow - with_lines - (wide - wide_with_lines)
    return np.asarray(0.5 * ratio)


def _anything(network: BatchedArrow, layout: Layout) -> BatchedArrow:
    """Return the network's stiffness, softened to that of an answer that could be anything."""
    time = _softening(np.diagonal(network.A, axis1=-2, axis2=-1), ANY_GRAVITY)
    camera = np.ones(network.C.shape[:2])
    if layout.free.focal:
        own = slice(None, None, layout.intrinsics)
        stiffness = np.diagonal(network.C, axis1=-2, axis2=-1)[:, own]
        camera[:, own] = _softening(stiffness, ANY_LOG_F)
    return BatchedArrow(
        time[..., :, None] * network.A * time[..., None, :],
        time[..., :, None] * network.B * camera[:, None, None, :],
        camera[:, :, None] * network.C * camera[:, None, :],
    )


def _softening(stiffness: Array, sigma: float) -> Array:
    """Return the factors by which unknowns of a stiffness get at least one sigma."""
    return np.minimum(1.0, 1 / (sigma * np.sqrt(stiffness)))


def _log_determinant(arrow: BatchedArrow) -> Array:
    """Return the log determinants (R,) of arrows."""
    times = np.linalg.slogdet(arrow.A)[1].sum(1)
    return np.asarray(times + np.linalg.slogdet(arrow.eliminate().S)[1])


COMPASS = 60
"""Headings tried over half a turn."""
APART = math.cos(math.radians(10.0))
"""Headings nearer to each other than this are one."""
LEAST_EXTRA = 25.0
"""Support of a further heading that is believed, in independent segments."""
THIRD = 5
"""Where it is among the directions of worlds that have it."""
LEAST_SHARE = 0.7
"""Share of the weaker heading's support that a further one needs to cast doubt on right angles."""


def with_free_angles(problem: LineProblem, view: GuessView) -> tuple[LineProblem, Guess]:
    """Return the problem with a turn of its own for each of the crossed headings of every image."""
    every = view.alignment.directions[..., 1:, :]
    active = problem.active
    free = np.zeros((len(active), 1 + 2 * every.shape[2]), np.bool_)
    free[:, 0], free[:, 1::2] = active[:, 0], active[:, 1:]
    return replace(problem, active=free), replace(view.guess, headings=every)


def with_third_heading(
    problem: LineProblem, state: CostState, found: Array
) -> tuple[LineProblem, Guess] | None:
    """Return the problem with free angles and a third heading where segments follow one.

    None if no image has any. found: (B, 3) support of the vertical and the crossed headings.
    """
    view, noise = state.view, state.noise
    guess, images, alignment = view.guess, view.images, view.alignment
    tried = compass(COMPASS) @ level_frame(images.gravity)
    cosines = np.abs(tried @ alignment.directions[..., 1:, :].mT)
    near = (cosines > APART) & problem.active[:, None, 1:]
    every = likelihood_ratio(alignment.residual, noise).sum(-2, keepdims=True)
    # Every image is a row of its own, and in single precision: whether there is one is all it says.
    apart = map_tensors(lambda value: value[:, None], problem.batch)
    ratio = likelihood_ratios(alignment.optics.vectors.swapaxes(0, 1), apart, tried[0])
    gains = likelihood(every.astype(np.float32) + ratio, noise) - likelihood(every, noise)
    gains = np.where(near.any(-1), 0.0, gains / problem.repeats)[0]
    gain, best = gains.max(1), gains.argmax(1)
    weaker = np.where(problem.active[:, 1:], found[:, 1:], np.inf).min(1)
    extra = (gain >= LEAST_EXTRA) & (gain >= LEAST_SHARE * weaker)
    extra = extra & problem.active[:, 1:].any(1)
    if not extra.any():
        return None
    free, several = with_free_angles(problem, view)
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


# Chosen on crops of the validation panoramas and on the first half of photographs (``evaluation.
# halves``), with 600 more of the training part: where the truth is likely under the mixture of all
# explanations and errors are small, and rounded. PER_SUPPORT was raised by hand, from 0.4. Of
# NO_VERTICAL and what follows it likelihoods tell little: ``docs/lines.md`` has those of others.
USUAL_SUPPORT, USUAL_AGREEMENT = 70.0, 5.0
"""Typical values of an image of buildings."""
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


USUAL_PITCH_SIGMA = math.radians(2.5)
"""Typical sigma of a network's pitch on an ordinary photograph."""
LOOKING_UP, HIGHEST = math.radians(10.0), math.radians(40.0)
"""Pitch from which on, and up to which, it counts that an answer looks up: sides of things on a
table, seen from above, vanish where verticals do that are seen from below."""
MOST_LEANING = math.radians(10.0)
"""The most of a roll that counts."""
RECEDING = 0.35
"""Part of a direction that points ahead where an edge is said to recede."""
# A logistic regression on 635 photographs with the gravity of an accelerometer, every eighth of
# which is off by more than 12 degrees where lines are used (``lab/benchmarks/upright_odds.py``);
# cross-validated by photographer, the area under the curve is 0.88.
NOT_UPRIGHT = np.array([-3.25, 2.4, 1.57, 1.4, 0.7, 1.35])
"""Log odds that lines are not of an upright world: a constant, and for each unit of
``upright_traits``."""
NOT_UPRIGHT_ROLL, NOT_UPRIGHT_PITCH = math.radians(10.0), math.radians(45.0)
"""One sigma of gravity around the answer where things are not upright."""
NOT_UPRIGHT_OPEN = 0.35
"""Probability of that from which on it counts in full."""


def chance_not_upright(
    gravity: Array, pitch_sigma: float, directions: Array, vertical: Flags
) -> float:
    """Return the probability that lines which are used are not of an upright world, most often
    because the camera looks steeply down at things on a floor or a table.

    The arguments are those of ``upright_traits``.
    """
    traits = upright_traits(gravity, pitch_sigma, directions, vertical)
    return 1 / (1 + math.exp(-float(NOT_UPRIGHT[0] + NOT_UPRIGHT[1:] @ traits)))


def upright_traits(gravity: Array, pitch_sigma: float, directions: Array, vertical: Flags) -> Array:
    """Return what tells whether lines are of an upright world, (5,): the logarithm of the network's
    sigma; how far the answer looks up and how far it leans, in tens of degrees; whether all level
    edges run across the picture, as those of a wall seen face to face or of a floor seen from
    above; and whether no edge is vertical.

    gravity: (3,) of the answer; pitch_sigma: the network's, in radians; directions (K, 3): those
    that lines follow; vertical (K,): which of them is the vertical.
    """
    roll, pitch = (float(angle) for angle in to_roll_pitch(gravity))
    level = np.abs(directions[np.logical_not(vertical), 2])
    up = min(max(pitch, LOOKING_UP), HIGHEST) - LOOKING_UP
    traits = (
        math.log(max(pitch_sigma, 1e-6) / USUAL_PITCH_SIGMA),
        math.degrees(up) / 10,
        math.degrees(min(abs(roll), MOST_LEANING)) / 10,
        bool(len(level)) and level.max() < RECEDING,
        not vertical.any(),
    )
    return np.array(traits, np.float64)


def spread_weight(chance: float, full: float) -> float:
    """Return the weight of the spread of what has this chance, and counts in full from ``full`` on.

    It counts little where it is improbable: one sigma holds 68% of the errors, as everywhere, and a
    rare blunder, which would rule the variance, is among the others.
    """
    return min(1.0, chance / full) ** 2


@dataclass(frozen=True)
class Explanation:
    """A hypothesis with the covariance of its answer and its odds."""

    verdict: Verdict
    problem: LineProblem
    state: CostState
    blocks: Array
    """(B, P, P) covariance."""
    gains: Array
    """(B, K) support of each direction."""
    support: float
    """Mean support of all directions of an image."""
    log_odds: float
    """Log odds against the network alone."""


@dataclass(frozen=True)
class Hypothesis:
    """What segments may show, at the answer where it is likeliest, and what they tell there."""

    verdict: Verdict
    problem: LineProblem
    state: CostState
    spread: Array
    """(B, P, P) what it adds to the covariance that it may be elsewhere."""
    evidence: LineEvidence


def explanations(
    problem: LineProblem, state: CostState, modes: Modes, network: NetworkPrior
) -> Search[list[Explanation]]:
    """Return what segments may show, given the minimum of the hypothesis with right angles.

    That minimum may have been found with a tighter prior than the problem's. network: the prior
    with which answers should agree.
    """
    if not problem.active.any():
        return []
    state = problem.cost_with(state.view, state.noise, state.assignment)
    spread = modes.spread(problem.layout)
    crossed = Hypothesis(
        Verdict.CROSSED, problem, state, spread, (yield EvidenceRequest(problem, state))
    )
    hypotheses = [crossed]
    square = bool(problem.active[:, 1:].all(1).any())
    if problem.active[:, 1:].any():
        turned = with_third_heading(problem, state, crossed.evidence.gains[0])
        if turned is None and square:
            turned = with_free_angles(problem, state.view)
        if turned is not None:
            free, start = turned
            end = yield from descend_nearby(free, start)
            hypotheses.append(
                Hypothesis(Verdict.TURNED, free, end, spread, (yield EvidenceRequest(free, end)))
            )
        if problem.active[:, 0].any():
            upright = problem.upright()
            end, modes = yield from upright_minimum(upright, state.view.guess.upright())
            evidence = yield EvidenceRequest(upright, end)
            spread = modes.spread(problem.layout)
            hypotheses.append(Hypothesis(Verdict.UPRIGHT, upright, end, spread, evidence))
    guess = Guess.concatenate([hypothesis.state.view.guess.upright() for hypothesis in hypotheses])
    information = concatenate_rows(*(hypothesis.evidence.information for hypothesis in hypotheses))
    caution = np.concatenate([hypothesis.evidence.caution for hypothesis in hypotheses])
    agreement, strain, blocks = yield CovarianceRequest(
        problem, guess, network, information, caution
    )
    every = zip(hypotheses, agreement, strain, blocks, strict=True)
    found = [_explanation(*each, network) for each in every]
    return [_held_against(each, found[0], network) if square else each for each in found]


def _held_against(each: Explanation, crossed: Explanation, network: NetworkPrior) -> Explanation:
    """Return an explanation with odds against free angles where two headings could be at a right
    angle."""
    if each.verdict is not Verdict.TURNED:
        return each
    odds = crossed.log_odds - TURNED + PER_GAIN * _gain(crossed, each)
    for sign, one in ((1, each), (-1, crossed)):
        odds += sign * _focal_odds(one.problem, one.state.view.guess, network.mean)
    return replace(each, support=crossed.support, log_odds=odds)


def probabilities(found: list[Explanation]) -> Array:
    """Return the probability (1 + E,) of the network's answer alone, and of each explanation."""
    odds = np.array([0.0, *(each.log_odds for each in found)])
    share = np.exp(odds - odds.max())
    return np.asarray(share / share.sum())


def _explanation(
    hypothesis: Hypothesis, agreement: float, strain: float, blocks: Array, network: NetworkPrior
) -> Explanation:
    """Rate a hypothesis by its agreement with the network, and by the sigmas, squared, by which it
    misses what was measured of gravity; blocks: (B, P, P) its covariance."""
    problem, state, gains = hypothesis.problem, hypothesis.state, hypothesis.evidence.gains[0]
    # Of images that share something, by what one of them says on average.
    images = max(1, int(problem.active.any(1).sum()))
    support = float((gains * problem.active).sum()) / images
    agreement /= images
    log_odds = (
        USUAL[hypothesis.verdict]
        + PER_SUPPORT * math.log(max(support, 1.0) / USUAL_SUPPORT)
        + PER_AGREEMENT * (agreement - USUAL_AGREEMENT)
        + _focal_odds(problem, state.view.guess, network.mean)
        - 0.5 * strain / images
    )
    covariance = blocks + hypothesis.spread
    return Explanation(hypothesis.verdict, problem, state, covariance, gains, support, log_odds)


def _focal_odds(problem: LineProblem, guess: Guess, network: Guess) -> float:
    """Return the log odds of a hypothesis for its focal lengths, given those of the network."""
    moved = guess.log_f[0] - network.log_f[0]
    vertical = bool(problem.active[:, 0].any())
    odds = 0.0 if vertical else -NO_VERTICAL - PER_MOVED * float(np.abs(moved).mean())
    if problem.layout.model.wide:
        return odds
    usual = np.log(problem.layout.size.max(-1))
    further = np.abs(guess.log_f[0] - usual) - np.abs(network.log_f[0] - usual)
    return odds - float(further.mean()) / UNUSUAL


def _gain(crossed: Explanation, free_angles: Explanation) -> float:
    """Return the log likelihood that free angles win over right angles."""
    gain = 0.5 * float(crossed.state.cost[0] - free_angles.state.cost[0])
    if free_angles.gains.shape[1] > THIRD and crossed.problem.active[:, 1:].all(1).any():
        # A third heading explains more segments in any case, which says nothing of right angles.
        gain -= float(free_angles.gains[:, THIRD].sum())
    return gain
