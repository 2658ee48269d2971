"""``refine``: the network's answers, sharpened by the straight lines of the photos.

Segments are few or follow nothing: the answer is the network's, untouched.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from geocalib.calibration import Calibration
from geocalib.lines.bundle import Bundle
from geocalib.lines.covariance import covariance
from geocalib.lines.evidence import support
from geocalib.lines.minimise import Problem, levelled, minimise
from geocalib.lines.mixture import weigh
from geocalib.lines.plumb import firm, straightened
from geocalib.lines.prior import Prior, network_prior
from geocalib.lines.result import CLUTTER, Lines
from geocalib.lines.search import MOST, Landscape, peaks, survey
from geocalib.lines.segments import Segments
from geocalib.lines.straightness import MOST_BARREL, bendable, bends_outwards, pinhole_again
from geocalib.lines.unknowns import Array, Guess, Layout
from geocalib.lines.worlds import unlocked, with_extra
from geocalib.solver.coupling import Coupling, Rig, couple

REPEATS = 4.0
"""Segments that say what one independent segment would."""
WAYWARDNESS = math.radians(0.2)
"""By how much lines of a building miss their direction, in the picture."""
ROUNDS = ((math.radians(1.0), 3), (math.radians(0.4), 2))
"""Widths and iterations of every start."""
LAST_ROUNDS = ((math.radians(0.4), 3), (WAYWARDNESS, 8))
"""Of the best one, with all segments."""
FEW_ITERATIONS = 3
"""Of a comparison."""
STARTS = 5
"""Focal lengths from which descents start: those that end elsewhere say what else might be."""
FEWEST = 6
"""Segments below which nothing is tried."""
LEAST_SUPPORT = 12.0
"""Of a direction: log likelihood in units of independent segments. Chance gives 7 to the best of
some 1500 headings and focal lengths."""
LEAST_TOGETHER = 70.0
"""Of all directions of an image: desks, whose edges point anywhere, have 30 to 60."""
FARTHEST = 7.0
"""Sigmas, of one image, by which lines may contradict the network. Beyond, they are more likely
those of something that is neither level nor upright."""
RIGHT_ANGLES = 15.0
"""Cost that right angles may add: most buildings have them, and a turn less to be found."""
CAUTION = 4.0
"""By how much less sure than the likelihood the answer is: segments of one edge, of one facade or
of one texture are wrong together. What it leaves of the errors is in ``docs/lines.md``."""
MOST_PINCUSHION = 0.1
"""Distortion inwards, in units of the image's height, beyond which a lens that is taken for a
pinhole is none: what such lenses do besides is not known, and would mislead."""


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
    alone = couple(1, None, None, torch.device("cpu"))
    (prior,) = straightened([calibration], [segments.curves], alone)
    problem = _problem([prior], [segments], alone)
    modes = _modes(problem, starts)
    problem, guess = _supported_minimum(problem, modes.best)
    if not problem.active.any():
        return calibration
    return _answers([prior], [segments], modes, *_without_right_angles(problem, guess))[0]


def _refine(
    calibrations: list[Calibration], segments: list[Segments], coupling: Coupling
) -> list[Calibration]:
    """Of images that form one component."""
    if not calibrations[0].parameters:
        return calibrations
    curves = [part.curves for part in segments]
    calibrations = straightened(calibrations, curves, coupling)
    if all(len(part) < FEWEST for part in segments):
        return calibrations
    firmly = [firm(each) for each in calibrations] if any(map(len, curves)) else calibrations
    problem = _problem(firmly, segments, coupling)
    landscapes = [
        survey(*own, problem.bundle[i : i + 1], REPEATS)
        for i, own in enumerate(_priors_alone(problem, firmly))
    ]
    modes = _modes(problem, _starts(problem, landscapes))
    if problem.layout.model.parameters or not problem.layout.free.focal:
        problem, guess = _supported_minimum(problem, modes.best)
        if not problem.active.any():
            return calibrations
        problem, guess = _without_right_angles(problem, guess)
        honest = replace(problem, prior=network_prior(calibrations, coupling)[0])
        if _incredible(honest, guess):
            return calibrations
        return _answers(calibrations, segments, modes, honest, guess)
    bent = [bendable(each) for each in calibrations]
    if any(bends_outwards(each) for each in straightened(bent, curves, coupling)):
        return calibrations
    problem = _problem(bent, segments, coupling)
    straight = np.zeros_like(modes.best.c[..., :1])
    problem, guess = _supported_minimum(problem, replace(modes.best, distortion=straight))
    # Before more headings are tried, which would take bent lines for lines of several directions.
    if not problem.active.any() or _bends(problem, guess):
        return calibrations
    problem, guess = _without_right_angles(problem, guess)
    if _incredible(problem, guess):
        return calibrations
    answers = _answers(bent, segments, modes, problem, guess)
    return [pinhole_again(*each) for each in zip(calibrations, answers, strict=True)]


def _bends(problem: Problem, guess: Guess) -> bool:
    """Whether lines see much distortion in lenses that are taken for pinholes."""
    k = guess.distortion[0, :, 0] * (problem.layout.size[:, 1] / np.exp(guess.log_f[0])) ** 2
    return bool(((k < -MOST_BARREL) | (k > MOST_PINCUSHION)).any())


def _incredible(problem: Problem, guess: Guess) -> bool:
    """Whether an answer is too far from what the network is sure of."""
    distance = problem.prior.distance(guess, problem.layout)[0]
    return bool(distance > FARTHEST * math.sqrt(len(problem.bundle)))


def _priors_alone(problem: Problem, calibrations: list[Calibration]) -> list[tuple[Prior, Layout]]:
    """Of every image by itself."""
    if len(calibrations) == 1 and problem.layout.rotation is None:
        return [(problem.prior, problem.layout)]
    alone = couple(1, None, None, torch.device("cpu"))
    return [network_prior([calibration], alone) for calibration in calibrations]


def _problem(
    calibrations: list[Calibration], segments: list[Segments], coupling: Coupling
) -> Problem:
    """With the vertical and two headings at a right angle."""
    prior, layout = network_prior(calibrations, coupling)
    crossed = np.ones((len(calibrations), 3), np.bool_)
    return Problem(Bundle.create(segments), crossed, layout, prior, REPEATS)


def _supported_minimum(problem: Problem, guess: Guess) -> tuple[Problem, Guess]:
    """With the directions that the data support, which may be none, the minimum near a guess."""
    for width, iterations in LAST_ROUNDS:
        guess = minimise(problem, guess, width, iterations)
    return _supported(problem, guess)


def _without_right_angles(problem: Problem, guess: Guess) -> tuple[Problem, Guess]:
    """With headings that turn freely, where the data speak for that."""
    found = _support(problem, guess)
    several = with_extra(problem, guess, found, WAYWARDNESS)
    if several is not None:
        return several[0], _settled(*several)
    if not problem.active[:, 1:].all(1).any():
        return problem, guess
    free, turned = unlocked(problem, guess)
    turned = minimise(free, turned, WAYWARDNESS, FEW_ITERATIONS)
    crossed, apart = problem.cost(guess, WAYWARDNESS), free.cost(turned, WAYWARDNESS)
    if apart[0] + RIGHT_ANGLES < crossed[0]:
        return free, _settled(free, turned)
    return problem, guess


def _settled(problem: Problem, guess: Guess) -> Guess:
    width, iterations = LAST_ROUNDS[-1]
    return minimise(problem, guess, width, iterations)


@dataclass(frozen=True)
class Modes:
    """Guesses that a descent from several starts ended at, the best first."""

    guesses: Guess
    weights: Array
    """(R,) how probable each is, with all caution."""

    @property
    def best(self) -> Guess:
        return self.guesses[:1]

    def spread(self, layout: Layout) -> Array:
        """(B, P, P) what it adds to the covariance of the best that another one may be right."""
        images = layout.images(self.guesses)
        first = layout.images(self.best)
        turns = (images.gravity[..., None, :] @ first.basis)[..., 0, :]
        off = np.zeros((*turns.shape[:2], layout.tangents + layout.intrinsics))
        off[..., : layout.tangents] = turns
        if layout.free.focal:
            log_f = self.guesses.log_f[:, layout.camera]
            off[..., layout.tangents] = log_f - log_f[:1]
        return np.asarray(np.einsum("r,rbi,rbj->bij", self.weights, off, off))


def _modes(problem: Problem, starts: Guess) -> Modes:
    """Where a few iterations lead."""
    few = replace(problem, bundle=problem.bundle.longest(MOST))
    for width, iterations in ROUNDS:
        starts = minimise(few, starts, width, iterations)
    cost = few.cost(starts, ROUNDS[-1][0])
    order = cost.argsort(kind="stable")
    weights = np.exp(-0.5 / CAUTION * (cost[order] - cost.min()))
    return Modes(starts[order], weights / weights.sum())


def _starts(problem: Problem, landscapes: list[Landscape]) -> Guess:
    """Guesses at the peaks of what the images of each camera see, one after the other."""
    layout = problem.layout
    profiles = np.stack([scape.crossed.max(1) / REPEATS for scape in landscapes])
    # All cameras of a component take their first, second, ... choice together.
    choices = []
    for camera in range(len(layout.size)):
        own = np.flatnonzero(layout.camera == camera)
        choices.append(peaks(profiles[own].sum(0) - landscapes[own[0]].penalty, STARTS))
    every = zip(*choices, strict=False)
    return Guess.concatenate([_start(problem, landscapes, focals) for focals in every])


def _start(problem: Problem, landscapes: list[Landscape], focals: Sequence[int]) -> Guess:
    """A guess where each camera has one of the focal lengths that were tried."""
    layout, mean = problem.layout, problem.prior.mean
    parts = mean.gravity, mean.log_f, mean.distortion, mean.c
    gravity, log_f, distortion, c = (part.copy() for part in parts)
    headings = np.zeros((1, len(landscapes), 1, 3))
    for image in reversed(range(len(landscapes))):
        scape, camera = landscapes[image], layout.camera[image]
        at = focals[camera]
        own = scape.guess.gravity[at, 0]
        if layout.rotation is not None:
            own = layout.rotation[image].T @ own
        gravity[0, layout.time[image]] = own
        log_f[0, camera] = scape.guess.log_f[at, 0]
        distortion[0, camera], c[0, camera] = scape.guess.distortion[at, 0], scape.guess.c[at, 0]
        headings[0, image] = scape.heading(at)
    guess = Guess(gravity, log_f, distortion, c, headings)
    # Where gravity is shared, it is not quite that under which the headings are level.
    return replace(guess, headings=levelled(headings, layout.images(guess).gravity))


def _supported(problem: Problem, guess: Guess) -> tuple[Problem, Guess]:
    """Without the directions that too few segments follow."""
    for _ in range(2):
        found = _support(problem, guess)
        together = (found * problem.active).sum(1, keepdims=True) >= LEAST_TOGETHER
        active = problem.active & together & (found >= LEAST_SUPPORT)
        if (active == problem.active).all():
            break
        problem = replace(problem, active=active)
        if not problem.active.any():
            break
        guess = _settled(problem, guess)
    return problem, guess


def _support(problem: Problem, guess: Guess) -> Array:
    """(B, K) of each direction, by one guess."""
    sight = problem.view(guess).sight
    return np.asarray(support(sight.residual, problem.noise(sight, WAYWARDNESS), REPEATS)[0])


def _answers(
    calibrations: list[Calibration],
    segments: list[Segments],
    modes: Modes,
    problem: Problem,
    guess: Guess,
) -> list[Calibration]:
    blocks = covariance(replace(problem, repeats=CAUTION * REPEATS), guess, WAYWARDNESS)
    blocks = blocks + modes.spread(problem.layout)
    view = problem.view(guess)
    sight, layout = view.sight, problem.layout
    noise = problem.noise(sight, WAYWARDNESS)
    shares = weigh(sight.residual, noise).share[0]
    gains = support(sight.residual, noise, REPEATS)[0]
    answers = []
    for i, calibration in enumerate(calibrations):
        kept = np.flatnonzero(problem.active[i])
        lines = None
        if len(kept):
            share = shares[i, kept, : len(segments[i])]
            kind = np.where(share.max(0) > 0.5, share.argmax(0), CLUTTER)
            parts = kind, sight.directions[0, i, kept], kept == 0, gains[i, kept]
            lines = Lines(segments[i], *map(torch.from_numpy, parts))
        gravity, block = torch.tensor(view.images.gravity[0, i]), torch.tensor(blocks[i])
        answers.append(calibration.moved(layout.camera_of(guess, i), gravity, block, lines))
    return answers
