"""``refine``: the network's answers, sharpened by the straight lines of the photos.

Segments are few or follow nothing: the answer is the network's, untouched.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from geocalib.calibration import Calibration
from geocalib.lines.covariance import covariance
from geocalib.lines.evidence import support
from geocalib.lines.minimise import Guess, Problem, copies, levelled, minimise
from geocalib.lines.mixture import weigh
from geocalib.lines.prior import network_prior
from geocalib.lines.residuals import directions_of
from geocalib.lines.result import CLUTTER, Lines
from geocalib.lines.search import MOST, Landscape, peaks, survey
from geocalib.lines.segments import Bundle, Segments
from geocalib.lines.straightness import BEND, bendable
from geocalib.lines.worlds import unlocked, with_extra
from geocalib.solver.coupling import Coupling, Rig, couple
from geocalib.solver.state import State

REPEATS = 4.0
"""Segments that say what one independent segment would."""
WAYWARDNESS = math.radians(0.2)
"""By how much lines of a building miss their direction, in the picture."""
ROUNDS = ((math.radians(1.0), 5), (math.radians(0.4), 3))
"""Widths and iterations of every start."""
LAST_ROUNDS = ((math.radians(0.4), 6), (WAYWARDNESS, 10))
"""Of the best one, with all segments."""
FEW_ITERATIONS = 4
"""Of a comparison."""
STARTS = 3
FEWEST = 6
"""Segments below which nothing is tried."""
LEAST_SUPPORT = 12.0
"""Of a direction: log likelihood in units of independent segments. Chance gives 7 to the best of
some 1500 headings and focal lengths."""
LEAST_TOGETHER = 70.0
"""Of all directions of an image: desks, whose edges point anywhere, have 30 to 60."""
RIGHT_ANGLES = 15.0
"""Cost that right angles may add: most buildings have them, and a turn less to be found."""
CAUTION = 6.0
"""By how much less sure than the likelihood the answer is: segments of one edge, of one facade or
of one texture are wrong together. What it leaves of the errors is in ``docs/lines.md``."""


MOST_BARREL, MOST_PINCUSHION = 1.5, 2.2
"""Sigmas by which lines may be bent that are taken for straight: outwards, as most lenses that bend
do, so that less is enough to believe it, and inwards."""


def refine(
    calibrations: Sequence[Calibration],
    segments: Sequence[Segments],
    groups: Sequence[int] | Tensor | None = None,
    rig: Rig | None = None,
) -> list[Calibration]:
    """Calibrations of B images, given the segments of each.

    groups, rig: which images share a camera or move together, as in ``geocalib.fit``. Images that
    share nothing are refined by themselves. An answer that lines have changed holds them.
    """
    coupling = couple(len(calibrations), groups, rig, torch.device("cpu"))
    answers = list(calibrations)
    with torch.inference_mode():
        for component in range(coupling.components):
            keep = torch.zeros(coupling.components, dtype=torch.bool)
            keep[component] = True
            part, images, _, _ = coupling.select(keep)
            rows = images.tolist()
            refined = _refine([answers[i] for i in rows], [segments[i] for i in rows], part)
            for row, answer in zip(rows, refined, strict=True):
                answers[row] = answer
    return answers


def refined_from(calibration: Calibration, segments: Segments, starts: Guess) -> Calibration:
    """The calibration of one image refined from given starts; itself if the lines tell nothing."""
    problem = _problem([calibration], [segments], couple(1, None, None, torch.device("cpu")))
    problem, guess = _supported_minimum(problem, _best(problem, starts))
    if not bool(problem.active.any()):
        return calibration
    return _answers([calibration], [segments], *_without_right_angles(problem, guess))[0]


def _refine(
    calibrations: list[Calibration], segments: list[Segments], coupling: Coupling
) -> list[Calibration]:
    """Of images that form one component."""
    if not calibrations[0].parameters or all(len(part) < FEWEST for part in segments):
        return calibrations
    problem = _problem(calibrations, segments, coupling)
    alone = couple(1, None, None, torch.device("cpu"))
    landscapes = [
        survey(*network_prior([calibration], alone), problem.bundle[[i]], REPEATS)
        for i, calibration in enumerate(calibrations)
    ]
    problem, guess = _supported_minimum(problem, _best(problem, _starts(problem, landscapes)))
    # Before more headings are tried, which would take bent lines for lines of several directions.
    if not bool(problem.active.any()) or _bent(calibrations, segments, problem, guess):
        return calibrations
    return _answers(calibrations, segments, *_without_right_angles(problem, guess))


def _problem(
    calibrations: list[Calibration], segments: list[Segments], coupling: Coupling
) -> Problem:
    """With the vertical and two headings at a right angle."""
    prior, frame = network_prior(calibrations, coupling)
    crossed = torch.ones(len(calibrations), 3, dtype=torch.bool)
    return Problem(Bundle.create(segments), crossed, coupling, frame, prior, REPEATS)


def _supported_minimum(problem: Problem, guess: Guess) -> tuple[Problem, Guess]:
    """With the directions that the data support, which may be none, the minimum near a guess."""
    for width, iterations in LAST_ROUNDS:
        guess = minimise(problem, guess, problem.noise(guess, width), iterations)
    return _supported(problem, guess)


def _bent(
    calibrations: list[Calibration], segments: list[Segments], problem: Problem, guess: Guess
) -> bool:
    """Whether lines see distortion in lenses that are taken for pinholes."""
    if calibrations[0].camera.model.parameters or not problem.frame.free.focal:
        return False
    wide = [bendable(calibration) for calibration in calibrations]
    bent = replace(_problem(wide, segments, problem.coupling), active=problem.active)
    state = replace(guess.state, distortion=torch.zeros_like(guess.state.c[:, :1]))
    found = _settled(bent, Guess(state, guess.headings))
    cautious = replace(bent, repeats=CAUTION * REPEATS)
    blocks = covariance(cautious, found, bent.noise(found, WAYWARDNESS))
    place = wide[0].parameters.index(BEND)
    k1 = found.state.distortion[problem.coupling.camera, 0]
    sigmas = k1 / blocks[:, place, place].sqrt()
    return bool(((sigmas < -MOST_BARREL) | (sigmas > MOST_PINCUSHION)).any())


def _without_right_angles(problem: Problem, guess: Guess) -> tuple[Problem, Guess]:
    """With headings that turn freely, where the data speak for that."""
    found = support(problem.sight(guess).residual, problem.noise(guess, WAYWARDNESS), REPEATS)
    several = with_extra(problem, guess, found, WAYWARDNESS)
    if several is not None:
        return several[0], _settled(*several)
    if not bool(problem.active[:, 1:].all(1).any()):
        return problem, guess
    free, turned = unlocked(problem, guess)
    turned = minimise(free, turned, free.noise(turned, WAYWARDNESS), FEW_ITERATIONS)
    costs = [
        one.evaluate(at, one.noise(at, WAYWARDNESS)).total.item()
        for one, at in ((problem, guess), (free, turned))
    ]
    if costs[1] + RIGHT_ANGLES < costs[0]:
        return free, turned
    return problem, guess


def _settled(problem: Problem, guess: Guess) -> Guess:
    width, iterations = LAST_ROUNDS[-1]
    return minimise(problem, guess, problem.noise(guess, width), iterations)


def _best(problem: Problem, starts: Guess) -> Guess:
    """The cheapest of several guesses after a few iterations."""
    count = len(starts.headings) // len(problem.bundle)
    several = copies(replace(problem, bundle=problem.bundle.longest(MOST)), count)
    for width, iterations in ROUNDS:
        starts = minimise(several, starts, several.noise(starts, width), iterations)
    best = int(several.evaluate(starts, several.noise(starts, ROUNDS[-1][0])).total.argmin())

    def part(values: Tensor) -> Tensor:
        return values.chunk(count)[best]

    return Guess(State(*map(part, vars(starts.state).values())), part(starts.headings))


def _starts(problem: Problem, landscapes: list[Landscape]) -> Guess:
    """Guesses at the peaks of what the images of each camera see, one after the other."""
    coupling = problem.coupling
    profiles = [scape.crossed.amax(1) / REPEATS for scape in landscapes]
    # All cameras of a component take their first, second, ... choice together.
    choices = []
    for camera in range(len(coupling.camera_component)):
        own = [i for i, c in enumerate(coupling.camera.tolist()) if c == camera]
        total = torch.stack([profiles[i] for i in own]).sum(0) - landscapes[own[0]].penalty
        choices.append(peaks(total, STARTS))
    count = min(len(choice) for choice in choices)
    guesses = [_start(problem, landscapes, [choice[n] for choice in choices]) for n in range(count)]
    states = zip(*(vars(guess.state).values() for guess in guesses), strict=True)
    headings = torch.cat([guess.headings for guess in guesses])
    return Guess(State(*(torch.cat(parts) for parts in states)), headings)


def _start(problem: Problem, landscapes: list[Landscape], focals: list[int]) -> Guess:
    """A guess where each camera has one of the focal lengths that were tried."""
    coupling, mean = problem.coupling, problem.prior.mean
    gravity, log_f = mean.gravity.clone(), mean.log_f.clone()
    distortion, c = mean.distortion.clone(), mean.c.clone()
    headings = []
    for image in reversed(range(len(landscapes))):
        scape, camera = landscapes[image], int(coupling.camera[image])
        at = focals[camera]
        state = scape.states
        own = state.gravity[at]
        if coupling.rotation is not None:
            own = coupling.rotation[image].double().T @ own
        gravity[coupling.time[image]] = own
        log_f[camera], distortion[camera], c[camera] = (
            state.log_f[at],
            state.distortion[at],
            state.c[at],
        )
        headings.append(scape.heading(at))
    guess = Guess(State(gravity, log_f, distortion, c), torch.stack(headings[::-1])[:, None])
    # Where gravity is shared, it is not quite that under which the headings are level.
    _, level, _ = problem.images(guess)
    return replace(guess, headings=levelled(guess.headings, level))


def _supported(problem: Problem, guess: Guess) -> tuple[Problem, Guess]:
    """Without the directions that too few segments follow."""
    for _ in range(2):
        noise = problem.noise(guess, WAYWARDNESS)
        found = support(problem.sight(guess).residual, noise, REPEATS)
        together = (found * problem.active).sum(1, keepdim=True) >= LEAST_TOGETHER
        active = problem.active & together & (found >= LEAST_SUPPORT)
        if bool((active == problem.active).all()):
            break
        problem = replace(problem, active=active)
        if not bool(problem.active.any()):
            break
        guess = _settled(problem, guess)
    return problem, guess


def _answers(
    calibrations: list[Calibration], segments: list[Segments], problem: Problem, guess: Guess
) -> list[Calibration]:
    noise = problem.noise(guess, WAYWARDNESS)
    blocks = covariance(replace(problem, repeats=CAUTION * REPEATS), guess, noise)
    camera, gravity, _ = problem.images(guess)
    directions = directions_of(gravity, guess.headings)
    residual = problem.sight(guess).residual
    share = weigh(residual, noise).share
    gains = support(residual, noise, REPEATS)
    answers = []
    for i, calibration in enumerate(calibrations):
        kept = problem.active[i].nonzero()[:, 0]
        lines = None
        if len(kept):
            probability, kind = share[i, kept, : len(segments[i])].max(0)
            kind = torch.where(probability > 0.5, kind, CLUTTER)
            lines = Lines(segments[i], kind, directions[i, kept], kept == 0, gains[i, kept])
        answers.append(calibration.moved(camera[i], gravity[i], blocks[i], lines))
    return answers
