"""``refine``: the network's answers, sharpened by the straight lines of the photos.

Lines and network are weighed against each other, and the answer is the better explanation of both
(``explanations``). A lens that is taken for a pinhole may bend a little meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from geocalib.geometry import gravity as sphere
from geocalib.geometry.fields import ALONG_PITCH, ALONG_ROLL, CX, CY, LOG_F
from geocalib.geometry.segments import Segments
from geocalib.lines.bundle import Bundle
from geocalib.lines.descent import (
    REPEATS,
    afresh,
    modes_from,
    starts_of,
    supported_minimum,
)
from geocalib.lines.explanations import Explanation, explanations, probabilities
from geocalib.lines.minimise import Problem
from geocalib.lines.plumb import firm, loose, straightened
from geocalib.lines.prior import Prior, network_prior, network_priors, sobered
from geocalib.lines.sampling import sampled
from geocalib.lines.search import survey
from geocalib.lines.straightness import bendable, pinhole_again
from geocalib.lines.together import Search, alone, together
from geocalib.lines.unknowns import Array, Guess, Layout
from geocalib.records import replace
from geocalib.result.calibration import Calibration
from geocalib.result.lines import CLUTTER, Lines, Traces, Verdict
from geocalib.solver.coupling import Coupling, Rig, couple

FEWEST = 6
"""Segments below which nothing is tried."""
LEAST_TOGETHER = 70.0
"""Support of all directions of an image that lines need where no network speaks for them: desks,
whose edges point anywhere, have 30 to 60."""
FEW_TRIALS, LEAST_ELSEWHERE = 500, 30.0
"""Quadruples of segments that are drawn where a network's answer is at hand, and support of those
whose world is looked at: pictures without buildings hardly ever have as much."""
OPEN = 0.5
"""Probability of other explanations from which on their spread counts in full. It counts little
where they are improbable: one sigma holds 68% of the errors, as everywhere, and a rare blunder,
which would rule the variance, is among the others."""


def refine(
    calibrations: Sequence[Calibration],
    segments: Sequence[Segments],
    groups: Sequence[int] | Array | None = None,
    rig: Rig | None = None,
    told: Sequence[float] | None = None,
) -> list[Calibration]:
    """Calibrations of B images, given the segments of each.

    groups, rig: which images share a camera or move together, as in ``geocalib.fit``. Images that
    share nothing are refined by themselves. told: the inverse variance of what is known of log f
    of each by others than the network. Every answer says in ``lines`` what became of them.
    """
    coupling = couple(len(calibrations), groups, rig)
    order, searches = list[int](), list[Search[list[Calibration]]]()
    for component in range(coupling.components):
        part, images, _, _ = coupling.select(np.arange(coupling.components) == component)
        rows = images.tolist()
        own = [0.0 if told is None else told[i] for i in rows]
        photos = [calibrations[i] for i in rows], [segments[i] for i in rows]
        searches.append(_refined(*photos, part, own))
        order += rows
    answers = dict(zip(order, chain.from_iterable(together(searches)), strict=True))
    return [answers[row] for row in range(len(calibrations))]


def refined_alone(calibration: Calibration, segments: Segments) -> Calibration | None:
    """The calibration of one image refined from starts that its segments suggest, without a network
    to agree with; None if the lines tell nothing."""
    single = couple(1, None, None)
    told = straightened([bendable(calibration)], [segments.curves], single)
    problem = _problem(*network_prior(told, single), [segments])
    starts = sampled(problem)
    found = [] if starts is None else alone(_explained(problem, starts))
    if not found or found[0].support < LEAST_TOGETHER:
        return None
    shares = probabilities(found)
    shares[0] = 0
    return _weighed([calibration], told, [segments], found, shares / shares.sum())[0]


def _refined(
    calibrations: list[Calibration],
    segments: list[Segments],
    coupling: Coupling,
    sure: Sequence[float],
) -> Search[list[Calibration]]:
    """Of images that form one component."""
    curves = [part.curves for part in segments]
    if not {ALONG_PITCH, LOG_F} & set(calibrations[0].parameters):
        told = straightened(calibrations, curves, coupling)
        return _left_alone(calibrations, told, segments, Verdict.NOTHING_FREE)
    told = straightened([bendable(each) for each in calibrations], curves, coupling)
    if all(len(part) < FEWEST for part in segments):
        return _left_alone(calibrations, told, segments, Verdict.TOO_FEW)
    believed = list(map(sobered, told, sure))
    firmly = [firm(each) for each in believed] if any(map(len, curves)) else believed
    # As sure of the distortion as descents are, as it should be, and hardly.
    beliefs = [firmly, believed, [loose(each) for each in believed]]
    (firmest, honest, open_to), layout = network_priors(beliefs, coupling)
    problem = _problem(firmest, layout, segments)
    landscapes = []
    for each in _alone(problem, firmly):
        landscapes.append((yield from survey(each)))
    starts = starts_of(problem, landscapes)
    found = yield from _explained(problem, starts, honest, open_to)
    if len(segments) == 1 and not probabilities(found).argmax():
        found += yield from _elsewhere(problem, found, honest, open_to)
    if not found:
        return _left_alone(calibrations, told, segments, Verdict.NO_DIRECTION)
    return _weighed(calibrations, told, segments, found, probabilities(found))


def _explained(
    problem: Problem, starts: Guess, honest: Prior | None = None, network: Prior | None = None
) -> Search[list[Explanation]]:
    """What the segments of a problem may show.

    honest: its prior, where that of the descents is firmer than it should be; network: what answers
    should agree with. Else its prior is both.
    """
    modes = yield from modes_from(problem, starts)
    problem, end, modes = yield from supported_minimum(problem, modes)
    honest = honest or problem.prior
    found = explanations(replace(problem, prior=honest), end, modes, network or honest)
    return (yield from found)


def _elsewhere(
    problem: Problem, found: list[Explanation], honest: Prior, network: Prior
) -> Search[list[Explanation]]:
    """What the segments of one image may show where what they seem to (found) is not believed: a
    world far from the network's answer that most of them follow; or the same one at the network's
    focal length, of which level edges alone tell little."""
    others = list[Explanation]()
    starts = sampled(problem, FEW_TRIALS, LEAST_ELSEWHERE)
    if starts is not None:
        others += yield from _explained(problem, starts, honest, network)
    if found and problem.layout.free.focal and not found[0].problem.active[:, 0].any():
        level = found[0]
        held = replace(level.problem, prior=problem.prior.focal_held(problem.layout))
        end, modes = yield from afresh(held, level.scene.view.guess)
        others += yield from explanations(replace(held, prior=honest), end, modes, network)
    return others


def _problem(prior: Prior, layout: Layout, segments: list[Segments]) -> Problem:
    """With the vertical and two headings at a right angle."""
    crossed = np.ones((len(segments), 3), np.bool_)
    bundle = Bundle.create(segments)
    # An image by itself may be looked at beside others.
    bundle = bundle.rounded() if len(bundle) == 1 else bundle
    return Problem(bundle, crossed, layout, prior, REPEATS)


def _alone(problem: Problem, calibrations: list[Calibration]) -> list[Problem]:
    """Every image by itself."""
    if len(calibrations) == 1 and problem.layout.rotation is None:
        return [problem]
    single, parts = couple(1, None, None), []
    for i, calibration in enumerate(calibrations):
        prior, layout = network_prior([calibration], single)
        own, active = problem.bundle[i : i + 1], problem.active[i : i + 1]
        parts.append(Problem(own, active, layout, prior, problem.repeats))
    return parts


def _left_alone(
    calibrations: list[Calibration],
    told: list[Calibration],
    segments: list[Segments],
    verdict: Verdict,
) -> list[Calibration]:
    """Answers that only long edges have changed, where the lens is not a pinhole."""
    answers = []
    for before, after, part in zip(calibrations, told, segments, strict=True):
        answer = before
        if before.camera.model.parameters and after is not before:
            answer = before.moved(after.camera, after.gravity, after.covariance)
        answers.append(_told(before, answer, _verdict_of(part, verdict), Traces.astray(part), 1.0))
    return answers


def _weighed(
    calibrations: list[Calibration],
    told: list[Calibration],
    segments: list[Segments],
    found: list[Explanation],
    shares: Array,
) -> list[Calibration]:
    """The likeliest of the network's answers (told) and of those of explanations, whose shares
    (1 + E,) these are, with what the others add to its sigmas."""
    best = int(shares.argmax())
    rivals = [told, *(_moved(each, told) for each in found)]
    traces = [Traces.astray(part) for part in segments]
    if best:
        traces = _traces(found[best - 1], segments)
    answers = []
    for i, (before, part, trace) in enumerate(zip(calibrations, segments, traces, strict=True)):
        answer = _with_spread([each[i] for each in rivals], shares, best)
        if best and len(trace.directions):
            verdict = _shown(found[best - 1].verdict, trace)
        else:
            active = any(each.problem.active[i].any() for each in found)
            why = Verdict.UNLIKELY if active else Verdict.NO_DIRECTION
            verdict = _verdict_of(part, why)
        if before.camera.model.parameters:
            answer = before.moved(answer.camera, answer.gravity, answer.covariance)
        else:
            answer = pinhole_again(before, answer)
        answers.append(_told(before, answer, verdict, trace, float(shares[best])))
    return answers


def _shown(verdict: Verdict, trace: Traces) -> Verdict:
    """What became of the lines of one image, which need not show all directions of its world."""
    if not trace.vertical.any():
        return Verdict.LEVEL
    return Verdict.UPRIGHT if trace.vertical.all() else verdict


def _verdict_of(segments: Segments, verdict: Verdict) -> Verdict:
    """Why lines were not used, of one image."""
    few = len(segments) < FEWEST and verdict is not Verdict.NOTHING_FREE
    return Verdict.TOO_FEW if few else verdict


def _told(
    before: Calibration, after: Calibration, verdict: Verdict, traces: Traces, probability: float
) -> Calibration:
    """The answer, and what became of the lines."""
    return replace(after, lines=Lines.create(verdict, traces, probability, before, after))


def _moved(explanation: Explanation, told: list[Calibration]) -> list[Calibration]:
    """The answers of an explanation."""
    problem, view = explanation.problem, explanation.scene.view
    gravity, blocks = view.images.gravity[0], explanation.blocks
    return [
        replace(
            calibration,
            camera=problem.layout.camera_of(view.guess, i),
            gravity=gravity[i],
            covariance=blocks[i],
        )
        for i, calibration in enumerate(told)
    ]


def _with_spread(rivals: list[Calibration], shares: Array, best: int) -> Calibration:
    """The best of rival answers to one image, with what the others add to its covariance."""
    answer = rivals[best]
    weight = min(1.0, (1 - shares[best]) / OPEN) ** 2
    covariance = answer.covariance * (1 - weight * (1 - shares[best]))
    for i, (rival, share) in enumerate(zip(rivals, shares, strict=True)):
        if i != best:
            off = _difference(answer, rival)
            covariance = covariance + weight * share * (rival.covariance + off[:, None] * off)
    return replace(answer, covariance=covariance)


def _difference(one: Calibration, other: Calibration) -> Array:
    """(P,) by how much the free parameters of two answers to one image differ."""
    turn = sphere.difference(one.gravity, other.gravity, sphere.tangent_basis(one.gravity))
    values = {ALONG_ROLL: turn[0], ALONG_PITCH: turn[1]}
    values[LOG_F] = np.log(other.camera.f / one.camera.f)[0]
    values |= dict(
        zip(
            (*one.camera.model.parameters, CX, CY),
            np.concatenate([other.camera.distortion[0], other.camera.c[0]])
            - np.concatenate([one.camera.distortion[0], one.camera.c[0]]),
            strict=True,
        )
    )
    return np.array([values[name] for name in one.parameters])


def _traces(explanation: Explanation, segments: list[Segments]) -> list[Traces]:
    """Which segments of each image follow which direction."""
    problem, scene = explanation.problem, explanation.scene
    sight, shares = scene.view.sight, scene.weighing.share[0]
    traces = []
    for i, part in enumerate(segments):
        kept = np.flatnonzero(problem.active[i])
        if not len(kept):
            traces.append(Traces.astray(part))
            continue
        share = shares[i, kept, : len(part)]
        kind = np.where(share.max(0) > 0.5, share.argmax(0), CLUTTER)
        parts = kind, sight.directions[0, i, kept], kept == 0, explanation.gains[i, kept]
        traces.append(Traces(part, *parts))
    return traces
