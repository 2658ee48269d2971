"""``refine``: the network's answers, sharpened by the straight lines of the photos.

Lines and network are weighed against each other, and the answer is the better explanation of both
(``hypotheses``). A lens that is taken for a pinhole may bend a little meanwhile. Portrait and
landscape pictures of one camera are searched together: turned by a quarter, one becomes the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from geocalib.geometry import gravity as sphere
from geocalib.geometry.fields import ALONG_PITCH, ALONG_ROLL, CX, CY, LOG_ASPECT, LOG_F
from geocalib.geometry.segments import Segments
from geocalib.lines.batched_search import (
    REPEATS,
    Search,
    batched_search,
    modes_from,
    restart,
    single_search,
    supported_minimum,
)
from geocalib.lines.descent import LineProblem
from geocalib.lines.distortion import (
    MODEL,
    as_pinhole,
    fit_distortion,
    loosen_distortion,
    tighten_distortion,
    with_free_distortion,
)
from geocalib.lines.hypotheses import (
    NOT_UPRIGHT_OPEN,
    NOT_UPRIGHT_PITCH,
    NOT_UPRIGHT_ROLL,
    Explanation,
    chance_not_upright,
    explanations,
    probabilities,
    spread_weight,
)
from geocalib.lines.prior import NetworkPrior, inflate_focal_sigma, network_prior, network_priors
from geocalib.lines.starts import grid_starts, sample_starts, search_grid
from geocalib.lines.unknowns import Array, Guess, Layout, SegmentBatch
from geocalib.records import replace
from geocalib.result.calibration import Calibration, Outcome
from geocalib.result.evidence import CLUTTER, Lines, Traces, Verdict
from geocalib.solver.coupling import Coupling, Rig, couple

FEWEST = 6
"""Segments below which nothing is tried."""
LEAST_TOGETHER = 70.0
"""Least support of all directions of an image by lines alone: desks, whose edges point anywhere,
have 30 to 60."""
FEW_TRIALS, LEAST_ELSEWHERE = 500, 30.0
"""Quadruples of segments that are drawn if there is a network's answer, and the least support of a
world that is kept: pictures without buildings hardly ever have as much."""
OPEN = 0.5
"""Probability of other explanations from which on their spread counts in full."""


def refine(
    calibrations: Sequence[Calibration],
    segments: Sequence[Segments],
    groups: Sequence[int] | Array | None = None,
    rig: Rig | None = None,
    log_f_information: Sequence[float] | None = None,
    gravity_information: Array | None = None,
) -> list[Calibration]:
    """Calibrations of B images, given the segments of each.

    groups, rig: which images share a camera or move together, as in ``geocalib.fit``. Images that
    share nothing are refined by themselves. log_f_information: the inverse variance of what is
    known of log f of each that does not come from the network. gravity_information: the same of
    each gravity, (B, 2) along growing roll and pitch. Every answer says in ``lines`` what became of
    them.
    """
    coupling = couple(len(calibrations), groups, rig)
    order, searches = list[int](), list[Search[list[Calibration]]]()
    for component in range(coupling.components):
        part, images, _, _ = coupling.select(np.arange(coupling.components) == component)
        rows = images.tolist()
        own = [0.0 if log_f_information is None else log_f_information[i] for i in rows]
        photos = [calibrations[i] for i in rows], [segments[i] for i in rows]
        measured = None if gravity_information is None else gravity_information[rows]
        searches.append(_refined(*photos, part, own, measured))
        order += rows
    answers = dict(zip(order, chain.from_iterable(batched_search(searches)), strict=True))
    return [answers[row] for row in range(len(calibrations))]


def refined_alone(calibration: Calibration, segments: Segments) -> Calibration | None:
    """The calibration of one image refined from starts that its segments suggest, without a network
    to agree with; None if the lines tell nothing."""
    single = couple(1, None, None)
    straight = fit_distortion([with_free_distortion(calibration)], [segments.curves], single)
    problem = _problem(*network_prior(straight, single), [segments])
    starts = sample_starts(problem)
    found = [] if starts is None else single_search(_find_explanations(problem, starts))
    if not found or found[0].support < LEAST_TOGETHER:
        return None
    shares = probabilities(found)
    shares[0] = 0
    return _combine([calibration], straight, [segments], found, shares / shares.sum())[0]


def _refined(
    calibrations: list[Calibration],
    segments: list[Segments],
    coupling: Coupling,
    information: Sequence[float],
    measured: Array | None,
) -> Search[list[Calibration]]:
    """Search the component that some images form."""
    curves = [part.curves for part in segments]
    if not {ALONG_PITCH, LOG_F} & set(calibrations[0].parameters):
        straight = fit_distortion(calibrations, curves, coupling)
        return _without_lines(calibrations, straight, segments, Verdict.NOTHING_FREE)
    straight = fit_distortion(
        [with_free_distortion(each) for each in calibrations], curves, coupling
    )
    if all(len(part) < FEWEST for part in segments):
        return _without_lines(calibrations, straight, segments, Verdict.TOO_FEW)
    inflated = list(map(inflate_focal_sigma, straight, information))
    tightened = (
        [tighten_distortion(each) for each in inflated] if any(map(len, curves)) else inflated
    )
    # As sure of the distortion as descents are, as it should be, and hardly.
    beliefs = [tightened, inflated, [loosen_distortion(each) for each in inflated]]
    (tight_prior, plain_prior, loose_prior), layout = network_priors(beliefs, coupling, measured)
    problem = _problem(tight_prior, layout, segments)
    grids = []
    for each in _alone(problem, tightened, measured):
        grids.append((yield from search_grid(each)))
    starts = grid_starts(problem, grids)
    found = yield from _find_explanations(problem, starts, plain_prior, loose_prior)
    if len(segments) == 1 and not probabilities(found).argmax():
        found += yield from _far_from_network(problem, found, plain_prior, loose_prior)
    if not found:
        return _without_lines(calibrations, straight, segments, Verdict.NO_DIRECTION)
    combined = _combine(calibrations, straight, segments, found, probabilities(found))
    answers = [_with_bend(*each) for each in zip(combined, straight, strict=True)]
    # Images that share a gravity were each weighed with all others.
    if coupling.rotation is not None:
        return answers
    return [_doubting_upright(*each) for each in zip(calibrations, answers, strict=True)]


def _find_explanations(
    problem: LineProblem,
    starts: Guess,
    plain_prior: NetworkPrior | None = None,
    network: NetworkPrior | None = None,
) -> Search[list[Explanation]]:
    """Return what the segments of a problem may show.

    plain_prior: the prior of the problem, where that of descents is tighter than it should be;
    network: what answers should agree with. By default the problem's prior is both.
    """
    modes = yield from modes_from(problem, starts)
    problem, end, modes = yield from supported_minimum(problem, modes)
    plain_prior = plain_prior or problem.prior
    found = explanations(replace(problem, prior=plain_prior), end, modes, network or plain_prior)
    return (yield from found)


def _far_from_network(
    problem: LineProblem, found: list[Explanation], plain_prior: NetworkPrior, network: NetworkPrior
) -> Search[list[Explanation]]:
    """Return what the segments of one image may show where ``found`` is not believed.

    Either most of them follow directions far from the network's answer; or those that were found
    hold at the network's focal length, of which level edges alone tell little, or at the gravity
    that was measured.
    """
    others, prior = list[Explanation](), problem.prior
    starts = sample_starts(problem, FEW_TRIALS, LEAST_ELSEWHERE)
    if starts is not None:
        others += yield from _find_explanations(problem, starts, plain_prior, network)
    held = []
    if found and problem.layout.free.focal and not found[0].problem.active[:, 0].any():
        held.append(prior.focal_held(problem.layout))
    if found and prior.measured.any():
        held.append(prior.gravity_held())
    for each in held:
        near = replace(found[0].problem, prior=each)
        end, modes = yield from restart(near, found[0].state.view.guess)
        others += yield from explanations(replace(near, prior=plain_prior), end, modes, network)
    return others


def _problem(prior: NetworkPrior, layout: Layout, segments: list[Segments]) -> LineProblem:
    """Return the problem with the vertical and two headings at a right angle."""
    crossed = np.ones((len(segments), 3), np.bool_)
    batch = SegmentBatch.create(segments)
    # An image by itself may be looked at beside others.
    batch = batch.padded() if len(batch) == 1 else batch
    return LineProblem(batch, crossed, layout, prior, REPEATS)


def _alone(
    problem: LineProblem, calibrations: list[Calibration], measured: Array | None
) -> list[LineProblem]:
    """Return the problem of every image by itself."""
    if len(calibrations) == 1 and problem.layout.rotation is None:
        return [problem]
    single, parts = couple(1, None, None), []
    for i, calibration in enumerate(calibrations):
        known = None if measured is None else measured[i : i + 1]
        prior, layout = network_prior([calibration], single, known)
        own, active = problem.batch[i : i + 1], problem.active[i : i + 1]
        parts.append(LineProblem(own, active, layout, prior, problem.repeats))
    return parts


def _without_lines(
    calibrations: list[Calibration],
    straight: list[Calibration],
    segments: list[Segments],
    verdict: Verdict,
) -> list[Calibration]:
    """Answers that only long edges have changed, where the lens is not a pinhole."""
    answers = []
    for before, after, part in zip(calibrations, straight, segments, strict=True):
        answer = before
        if before.cameras.model.parameters and after is not before:
            answer = before.moved(after.cameras, after.gravity, after.covariance)
        answers.append(
            _with_lines(before, answer, _verdict_of(part, verdict), Traces.astray(part), 1.0)
        )
    return answers


def _combine(
    calibrations: list[Calibration],
    straight: list[Calibration],
    segments: list[Segments],
    found: list[Explanation],
    shares: Array,
) -> list[Calibration]:
    """Return the likeliest of the network's answers and of those of explanations.

    straight: the network's answers, given the long edges; shares: (1 + E,) probabilities of it and
    of each explanation. What the others are adds to the sigmas.
    """
    best = int(shares.argmax())
    rivals = [straight, *(_moved(each, straight) for each in found)]
    traces = [Traces.astray(part) for part in segments]
    if best:
        traces = _traces(found[best - 1], segments)
    answers = []
    for i, (before, part, trace) in enumerate(zip(calibrations, segments, traces, strict=True)):
        answer = _with_spread([each[i] for each in rivals], shares, best)
        if best and len(trace.directions):
            verdict = _verdict_shown(found[best - 1].verdict, trace)
        else:
            active = any(each.problem.active[i].any() for each in found)
            why = Verdict.UNLIKELY if active else Verdict.NO_DIRECTION
            verdict = _verdict_of(part, why)
        if before.cameras.model.parameters:
            answer = before.moved(answer.cameras, answer.gravity, answer.covariance)
        else:
            answer = as_pinhole(before, answer)
        answers.append(_with_lines(before, answer, verdict, trace, float(shares[best])))
    return answers


def _doubting_upright(before: Calibration, answer: Calibration) -> Calibration:
    """Return an answer that uses lines with a gravity that is less sure, the likelier these are of
    things that do not stand upright."""
    lines = answer.lines
    if lines is None or lines.traces is None or not lines.verdict.used:
        return answer
    if ALONG_PITCH not in answer.parameters or ALONG_ROLL not in answer.parameters:
        return answer
    names = answer.parameters
    roll, pitch = names.index(ALONG_ROLL), names.index(ALONG_PITCH)
    sigma = float(np.sqrt(before.covariance[pitch, pitch]))
    traces = lines.traces
    chance = chance_not_upright(answer.gravity, sigma, traces.directions, traces.vertical)
    weight = spread_weight(chance, NOT_UPRIGHT_OPEN)
    covariance = answer.covariance.copy()
    for at, spread in ((roll, NOT_UPRIGHT_ROLL), (pitch, NOT_UPRIGHT_PITCH)):
        covariance[at, at] += weight * chance * spread**2
    doubted = replace(lines, probability=lines.probability * (1 - chance))
    return answer.moved(answer.cameras, answer.gravity, covariance, doubted)


def _verdict_shown(verdict: Verdict, trace: Traces) -> Verdict:
    """Return what became of the lines of one image, which need not show all directions."""
    if not trace.vertical.any():
        return Verdict.LEVEL
    return Verdict.UPRIGHT if trace.vertical.all() else verdict


def _verdict_of(segments: Segments, verdict: Verdict) -> Verdict:
    """Return why the lines of one image were not used."""
    few = len(segments) < FEWEST and verdict is not Verdict.NOTHING_FREE
    return Verdict.TOO_FEW if few else verdict


def _with_lines(
    before: Calibration, after: Calibration, verdict: Verdict, traces: Traces, probability: float
) -> Calibration:
    """Return the answer with what became of the lines."""
    lines = Lines.create(verdict, traces, probability, before, after)
    if LOG_F in before.parameters:
        at = before.parameters.index(LOG_F)
        sigma = float(np.sqrt(before.covariance[at, at]))
        moved = abs(float(np.log(after.fy / before.fy)))
        lines = replace(lines, focal_sigmas=moved / sigma if sigma > 0 else 0.0)
    return replace(after, lines=lines)


def _with_bend(answer: Calibration, straight: Calibration) -> Calibration:
    """Return the answer with what long edges say of the bend of a pinhole; others as they are."""
    if answer.cameras.model.parameters or answer.lines is None:
        return answer
    at = straight.parameters.index(MODEL.parameters[0])
    bend = straight.distortion[0], float(np.sqrt(straight.covariance[at, at]))
    return replace(answer, lines=replace(answer.lines, bend=bend))


def _moved(explanation: Explanation, straight: list[Calibration]) -> list[Calibration]:
    """Return the answers of an explanation."""
    problem, view = explanation.problem, explanation.state.view
    gravity, blocks = view.images.gravity[0], explanation.blocks
    return [
        replace(
            calibration,
            cameras=problem.layout.camera_of(view.guess, i),
            gravity=gravity[i],
            covariance=blocks[i],
        )
        for i, calibration in enumerate(straight)
    ]


def _with_spread(rivals: list[Calibration], shares: Array, best: int) -> Calibration:
    """Return the best of rival answers to one image, with what the others add to its covariance."""
    answer = rivals[best]
    weight = spread_weight(1 - float(shares[best]), OPEN)
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
    values[LOG_F] = np.log(other.cameras.f / one.cameras.f)[0]
    values |= dict(
        zip(
            (*one.cameras.model.parameters, CX, CY),
            np.concatenate([other.cameras.distortion[0], other.cameras.c[0]])
            - np.concatenate([one.cameras.distortion[0], one.cameras.c[0]]),
            strict=True,
        )
    )
    return np.array([values[name] for name in one.parameters])


def _traces(explanation: Explanation, segments: list[Segments]) -> list[Traces]:
    """For each image the segments that follow each direction."""
    problem, state = explanation.problem, explanation.state
    alignment, shares = state.view.alignment, state.assignment.share[0]
    traces = []
    for i, part in enumerate(segments):
        kept = np.flatnonzero(problem.active[i])
        if not len(kept):
            traces.append(Traces.astray(part))
            continue
        share = shares[i, kept, : len(part)]
        kind = np.where(share.max(0) > 0.5, share.argmax(0), CLUTTER)
        parts = kind, alignment.directions[0, i, kept], kept == 0, explanation.gains[i, kept]
        traces.append(Traces(part, *parts))
    return traces


def refine_turned(
    calibrations: Sequence[Calibration],
    segments: Sequence[Segments],
    groups: Sequence[int] | Array | None = None,
    rig: Rig | None = None,
    log_f_information: Sequence[float] | None = None,
    gravity_information: Array | None = None,
) -> list[Calibration]:
    """As ``geocalib.lines.refine``, for images of one camera whose sizes may be turned.

    Their principal points must be in the middle, or all of them of one size.
    """
    cameras = range(len(calibrations)) if groups is None else np.asarray(groups).tolist()
    first: dict[int, tuple[int, int]] = {}
    turns = []
    for calibration, camera in zip(calibrations, cameras, strict=True):
        size = calibration.width, calibration.height
        turns.append(int(first.setdefault(camera, size) != size))
    # Roll and pitch grow along the same directions in a turned image.
    refined = refine(
        [_turned(c, turn) for c, turn in zip(calibrations, turns, strict=True)],
        [_turned_segments(s, c, t) for s, c, t in zip(segments, calibrations, turns, strict=True)],
        groups,
        rig,
        log_f_information,
        gravity_information,
    )
    return [
        _turned_back(*each) if each[-1] else each[0]
        for each in zip(refined, calibrations, segments, turns, strict=True)
    ]


def _turned(calibration: Calibration, turns: int) -> Calibration:
    """Return a calibration of the image turned by so many quarters."""
    if turns == 0:
        return calibration
    camera = calibration.cameras.rotate90(turns)
    return replace(calibration, cameras=camera, gravity=sphere.rotate90(calibration.gravity, turns))


def _turned_segments(segments: Segments, calibration: Calibration, turns: int) -> Segments:
    """Return the segments of the image turned by so many quarters."""
    if turns == 0:
        return segments
    return segments.turned(calibration.width)


def _turned_back(
    answer: Calibration, before: Calibration, segments: Segments, turns: int
) -> Calibration:
    """Return the answer for a turned image as one for the image itself."""
    lines = answer.lines
    if lines is not None and lines.traces is not None:
        directions = sphere.rotate90(lines.traces.directions, -turns)
        lines = lines.turned_back(segments, directions)
    camera, gravity = answer.cameras.rotate90(-turns), sphere.rotate90(answer.gravity, -turns)
    return before.moved(camera, gravity, answer.covariance, lines)


def refine_outcomes(
    outcomes: Sequence[Outcome],
    segments: Sequence[Segments | None],
    cameras: Sequence[int],
    rig: Rig | None = None,
    log_f_information: Sequence[float] | None = None,
    gravity_information: Array | None = None,
) -> list[Outcome]:
    """Return outcomes with what straight lines say, where segments were looked for.

    cameras: equal integers for images of one camera. log_f_information, gravity_information: as in
    ``refine``. Outcomes with a free aspect stay, which lines know nothing of.
    """
    answers = list(outcomes)
    found = {
        row: (outcome, known)
        for row, (outcome, known) in enumerate(zip(outcomes, segments, strict=True))
        if known is not None
        and isinstance(outcome, Calibration)
        and LOG_ASPECT not in outcome.parameters
    }
    if found:
        rows = list(found)
        calibrations, every = zip(*found.values(), strict=True)
        groups = [cameras[row] for row in rows]
        known = None if log_f_information is None else [log_f_information[row] for row in rows]
        moving = None if rig is None else rig[rows]
        measured = None if gravity_information is None else gravity_information[rows]
        refined = refine_turned(calibrations, every, groups, moving, known, measured)
        for row, answer in zip(rows, refined, strict=True):
            answers[row] = answer
    return answers
