"""From starts to a minimum: descents side by side, and the directions that segments support."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from geocalib.lines.evidence import support
from geocalib.lines.minimise import Problem, Scene, levelled
from geocalib.lines.search import MOST, Landscape, peaks
from geocalib.lines.straightness import MODEL
from geocalib.lines.together import Descent, Search
from geocalib.lines.unknowns import Array, Guess, Layout
from geocalib.records import dataclass, replace

REPEATS = 4.0
"""Segments that say what one independent segment would."""
CAUTION = 2.0
"""By how much less sure than the likelihood the answer is: segments of one edge, of one facade or
of one texture are wrong together. What it leaves of the errors is in ``docs/lines.md``."""
WAYWARDNESS = math.radians(0.2)
"""By how much lines of a building miss their direction, in the picture."""
FIRST = ((math.radians(0.5), 3),)
"""Widths and iterations of the descents from every start."""
LAST = ((WAYWARDNESS, 8),)
"""Of that from the best one, with all segments."""
FIRST_BENT = ((math.radians(1.0), 3), (math.radians(0.4), 2))
LAST_BENT = ((math.radians(0.4), 3), (WAYWARDNESS, 8))
"""Of other models than pinholes that may bend a little: under one width, some of those of strong
lenses end far from the truth."""
STARTS = 5
"""Focal lengths from which descents start: those that end elsewhere say what else might be."""
LEAST_SUPPORT = 11.0
"""Of a direction: log likelihood in units of independent segments. Chance gives 7 to the best of
some 1500 headings and focal lengths."""


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
        basis = layout.images(self.best).basis
        turns = (layout.gravity(self.guesses)[..., None, :] @ basis)[..., 0, :]
        off = np.zeros((*turns.shape[:2], layout.tangents + layout.intrinsics))
        off[..., : layout.tangents] = turns
        if layout.free.focal:
            log_f = self.guesses.log_f[:, layout.camera]
            off[..., layout.tangents] = log_f - log_f[:1]
        return np.asarray(np.einsum("r,rbi,rbj->bij", self.weights, off, off))


def modes_from(problem: Problem, starts: Guess) -> Search[Modes]:
    """Where a few iterations lead."""
    few = replace(problem, bundle=problem.bundle.longest(MOST))
    end = yield Descent(few, starts, FIRST if problem.layout.model is MODEL else FIRST_BENT)
    # All segments would tell them apart as much better as there are more of them.
    seen, whole = ((part.length > 0).sum() for part in (few.bundle, problem.bundle))
    return _modes(end, whole / seen)


def _modes(end: Scene, more: float) -> Modes:
    """Guesses by what they cost, where all segments would say so many times more."""
    cost = end.cost
    order = cost.argsort(kind="stable")
    weights = np.exp(-0.5 / CAUTION * more * (cost[order] - cost.min()))
    return Modes(end.view.guess[order], weights / weights.sum())


def starts_of(problem: Problem, landscapes: list[Landscape]) -> Guess:
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
    return replace(guess, headings=levelled(headings, layout.gravity(guess)))


def supported_minimum(problem: Problem, modes: Modes) -> Search[tuple[Problem, Scene, Modes]]:
    """With the directions that the data support, which may be none, the minimum near the best of
    several modes, and the modes of what is left."""
    end = yield _to_the_end(problem, modes.best)
    for _ in range(2):
        found = support_of(end)[0]
        active = problem.active & (found >= LEAST_SUPPORT)
        if (active == problem.active).all():
            break
        problem, guesses = replace(problem, active=active), modes.guesses
        if not active.any():
            break
        if not active[:, 1:].any():
            problem, guesses = problem.upright(), guesses.upright()
        end, modes = yield from afresh(problem, guesses)
    return problem, end, modes


def afresh(problem: Problem, guesses: Guess) -> Search[tuple[Scene, Modes]]:
    """The minimum, and the modes, of a world that has fewer directions than the one of guesses.

    What told the focal length may be gone: so a descent starts where the prior is, as well.
    """
    mean = problem.prior.mean
    headings = levelled(guesses.headings[:1], problem.layout.gravity(mean))
    starts = Guess.concatenate([guesses, replace(mean, headings=headings)])
    modes = yield from modes_from(problem, starts)
    end = yield _to_the_end(problem, modes.best)
    return end, modes


def from_two_sides(problem: Problem, guess: Guess) -> Search[tuple[Scene, Modes]]:
    """As ``afresh``, of a world with the vertical alone, by all segments at once: hardly anything
    but what it says of the focal length can be missed."""
    ends = yield _to_the_end(problem, Guess.concatenate([guess, problem.prior.mean]))
    best = int(ends.cost.argmin())
    return ends.rows(slice(best, best + 1), problem), _modes(ends, 1.0)


def settled(problem: Problem, guess: Guess) -> Search[Scene]:
    """The minimum near a guess that is nearly there."""
    return (yield Descent(problem, guess, LAST))


def _to_the_end(problem: Problem, guess: Guess) -> Descent:
    """The descent to the minimum near a guess that few segments have led to."""
    return Descent(problem, guess, LAST if problem.layout.model is MODEL else LAST_BENT)


def support_of(scene: Scene) -> Array:
    """(R, B, K) of each direction."""
    return support(scene.view.sight.residual, scene.noise, REPEATS)
