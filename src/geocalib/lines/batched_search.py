"""Searches of several photos side by side, and the descents of a search.

A step of a descent is hundreds of small operations, which take hardly longer for several photos
than for one. So a search is a generator: it asks for descents and the like, and goes on when it is
sent what came of them. No row depends on the others, to the last bit: photos are put together where
they have as many segments, and these are padded (``SegmentBatch.padded``) so that many have.

A search descends from several starts with few segments, and then from the best end with all.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Generator, Hashable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt

from geocalib.lines.descent import CostState, LineProblem, make_level, minimise
from geocalib.lines.distortion import MODEL
from geocalib.lines.prior import NetworkPrior
from geocalib.lines.residuals import support
from geocalib.lines.unknowns import Array, Guess, Layout
from geocalib.records import dataclass, map_tensors, replace

Result = TypeVar("Result")
BATCH_SIZE = 8
"""Searches at a time: what they look at still fits into the processor's cache."""
DIRECT = ("pinhole", "division", "ucm", "eucm", "double_sphere")
"""Models whose depth is a formula. That of others is found by Newton's method, whose steps go on
until all places are exact: the last bits of one depend on the others. Photos of a model that is not
named here go one by one, which is always right."""


@dataclass(frozen=True)
class Request(ABC):
    """Something that a search wants to know of a problem."""

    problem: LineProblem

    @classmethod
    @abstractmethod
    def answered(cls, requests: Sequence[Self]) -> Sequence[Any]:
        """Answer requests of one kind together."""

    @property
    def kind(self) -> Hashable:
        """A key that is equal for requests that can be rows of one problem."""
        if not self.shareable:
            return id(self)
        problem, layout = self.problem, self.problem.layout
        shapes = problem.active.shape, problem.batch.length.shape
        return type(self), shapes, problem.repeats, layout.model.name, layout.free

    @property
    def shareable(self) -> bool:
        """Whether this request may be rows of one problem with others."""
        problem, layout = self.problem, self.problem.layout
        single = len(problem.batch) == 1 and layout.rotation is None
        return single and layout.model.name in DIRECT

    @property
    def priority(self) -> tuple[int, int]:
        """The order in which kinds are answered: searches end with few directions, and each with
        all segments, so that those with more directions and fewer segments come first."""
        return -self.problem.active.shape[-1], self.problem.batch.length.shape[-1]


@dataclass(frozen=True)
class Descent(Request):
    """A request for the minima near guesses: the answer is their state under the last width."""

    guess: Guess
    rounds: tuple[tuple[float, int], ...]
    """Widths, by which lines miss their direction in the picture, in radians, and iterations, one
    after the other."""

    @property
    def kind(self) -> Hashable:
        return super().kind, self.rounds

    @classmethod
    def answered(cls, requests: Sequence[Self]) -> list[CostState]:
        first = requests[0]
        if len(requests) == 1:
            return [first.end()]
        rows = [len(descent.guess) for descent in requests]
        guess = Guess.concatenate([descent.guess for descent in requests])
        problem = stack_problems([descent.problem for descent in requests], rows)
        end = replace(first, problem=problem, guess=guess).end()
        return [
            end.rows(own, descent.problem)
            for descent, own in zip(requests, row_slices(rows), strict=True)
        ]

    def end(self) -> CostState:
        """Descend from all rows, width after width, and return their state."""
        problem, view = self.problem, self.problem.view(self.guess)
        for width, iterations in self.rounds:
            view = minimise(problem, view, width, iterations)
        return problem.cost_at(view, self.rounds[-1][0])


Search = Generator[Request, Any, Result]
"""Makes requests, and is sent the answer to each."""


def batched_search(searches: Sequence[Search[Result]]) -> list[Result]:
    """Run searches, ``BATCH_SIZE`` side by side, and return what each finds."""
    return [
        found
        for start in range(0, len(searches), BATCH_SIZE)
        for found in _search_batch(searches[start : start + BATCH_SIZE])
    ]


def single_search(search: Search[Result]) -> Result:
    """Run one search and return what it finds."""
    return batched_search([search])[0]


def _search_batch(searches: Sequence[Search[Result]]) -> list[Result]:
    found: dict[int, Result] = {}
    pending: dict[int, Request] = {}

    def advance(number: int, answer: Any) -> None:
        try:
            pending[number] = searches[number].send(answer)
        except StopIteration as end:
            found[number] = end.value

    for number in range(len(searches)):
        advance(number, None)  # The first thing that a generator is sent is nothing.
    while pending:
        if len(pending) == 1:
            # Nothing to share: of one photo this is always so.
            ((number, request),) = pending.items()
            pending.clear()
            advance(number, type(request).answered([request])[0])
            continue
        kinds: dict[Hashable, list[int]] = defaultdict(list)
        for number, request in pending.items():
            kinds[request.kind].append(number)
        chosen = min(kinds.values(), key=lambda numbers: pending[numbers[0]].priority)
        requests = [pending.pop(number) for number in chosen]
        for number, answer in zip(chosen, type(requests[0]).answered(requests), strict=True):
            advance(number, answer)
    return [found[number] for number in range(len(searches))]


def stack_problems(problems: Sequence[LineProblem], rows: Sequence[int]) -> LineProblem:
    """Stack problems of one image each into one, for guesses of which ``rows[i]`` belong to problem
    i."""
    own = partial(_own, rows)
    layout = stack_layouts([problem.layout for problem in problems], rows)
    prior = NetworkPrior.stack([problem.prior for problem in problems], rows)
    batch = map_tensors(own, *(problem.batch for problem in problems))
    active = own(*(problem.active for problem in problems))
    return LineProblem(batch, active, layout, prior, problems[0].repeats)


def stack_layouts(layouts: Sequence[Layout], rows: Sequence[int]) -> Layout:
    """Stack the layouts of several problems, as ``stack_problems`` does."""
    own = partial(_own, rows)
    return replace(
        layouts[0],
        size=own(*(layout.size for layout in layouts)),
        aspect=own(*(layout.aspect for layout in layouts)),
        low=own(*(layout.low for layout in layouts)),
        high=own(*(layout.high for layout in layouts)),
    )


def row_slices(rows: Sequence[int]) -> list[slice]:
    """Return the slices of parts with so many rows each, one after the other."""
    return [slice(*limits) for limits in pairwise(np.cumsum([0, *rows]).tolist())]


def _own(rows: Sequence[int], *column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Repeat the array of each problem for its rows: (R, ...)."""
    return np.repeat(np.stack(column), rows, 0)


REPEATS = 4.0
"""Segments that say what one independent segment would."""
CAUTION = 2.0
"""By how much less sure than the likelihood the answer is: segments of one edge, of one facade or
of one texture are wrong together. What it leaves of the errors is in ``docs/lines.md``."""
DIRECTION_NOISE = math.radians(0.2)
"""By how much lines of a building miss their direction, in the picture."""
FIRST = ((math.radians(0.5), 3),)
"""Widths and iterations of the descents from every start."""
LAST = ((DIRECTION_NOISE, 8),)
"""Widths and steps of the descent from the best guess, with all segments."""
FIRST_BENT = ((math.radians(1.0), 3), (math.radians(0.4), 2))
LAST_BENT = ((math.radians(0.4), 3), (DIRECTION_NOISE, 8))
"""The same for models with slight distortion: under one width, some of those of strong
lenses end far from the truth."""
LEAST_SUPPORT = 11.0
"""Least support of a direction: log likelihood in units of independent segments. Chance gives 7 to
the best of some 1500 headings and focal lengths."""


@dataclass(frozen=True)
class Modes:
    """Guesses at which descents from several starts ended, the best first."""

    guesses: Guess
    weights: Array
    """(R,) how probable each is, with all caution."""

    @property
    def best(self) -> Guess:
        return self.guesses[:1]

    def spread(self, layout: Layout) -> Array:
        """Return the covariance (B, P, P) that is added to the best mode because another may be
        right."""
        basis = layout.images(self.best).basis
        turns = (layout.gravity(self.guesses)[..., None, :] @ basis)[..., 0, :]
        off = np.zeros((*turns.shape[:2], layout.tangents + layout.intrinsics))
        off[..., : layout.tangents] = turns
        if layout.free.focal:
            log_f = self.guesses.log_f[:, layout.camera]
            off[..., layout.tangents] = log_f - log_f[:1]
        return np.asarray(np.einsum("r,rbi,rbj->bij", self.weights, off, off))


def modes_from(problem: LineProblem, starts: Guess) -> Search[Modes]:
    """Descend a few iterations from starts, with the longest segments, and return the modes."""
    few = replace(problem, batch=problem.batch.longest(MOST))
    end = yield Descent(few, starts, FIRST if problem.layout.model is MODEL else FIRST_BENT)
    # All segments would tell them apart as much better as there are more of them.
    seen, whole = ((part.length > 0).sum() for part in (few.batch, problem.batch))
    return _modes(end, whole / seen)


def _modes(end: CostState, more: float) -> Modes:
    """Sort the guesses of a state by cost; all segments would say ``more`` times as much."""
    cost = end.cost
    order = cost.argsort(kind="stable")
    weights = np.exp(-0.5 / CAUTION * more * (cost[order] - cost.min()))
    return Modes(end.view.guess[order], weights / weights.sum())


def supported_minimum(
    problem: LineProblem, modes: Modes
) -> Search[tuple[LineProblem, CostState, Modes]]:
    """Return the minimum near the best of several modes, with the directions that the data support.

    These may be none; the modes are those of what is left.
    """
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
        end, modes = yield from restart(problem, guesses)
    return problem, end, modes


def restart(problem: LineProblem, guesses: Guess) -> Search[tuple[CostState, Modes]]:
    """Return the minimum and the modes of a problem that has fewer directions than its guesses had.

    The directions that showed the focal length may be gone: a descent starts at the prior, too.
    """
    mean = problem.prior.mean
    headings = make_level(guesses.headings[:1], problem.layout.gravity(mean))
    starts = Guess.concatenate([guesses, replace(mean, headings=headings)])
    modes = yield from modes_from(problem, starts)
    end = yield _to_the_end(problem, modes.best)
    return end, modes


def upright_minimum(problem: LineProblem, guess: Guess) -> Search[tuple[CostState, Modes]]:
    """Return the minimum and the modes of a problem with the vertical alone.

    As ``restart``, but with all segments at once: hardly anything can be missed but what the
    vertical says of the focal length.
    """
    ends = yield _to_the_end(problem, Guess.concatenate([guess, problem.prior.mean]))
    best = int(ends.cost.argmin())
    return ends.rows(slice(best, best + 1), problem), _modes(ends, 1.0)


def descend_nearby(problem: LineProblem, guess: Guess) -> Search[CostState]:
    """Descend to the minimum near a guess that is nearly there."""
    return (yield Descent(problem, guess, LAST))


def _to_the_end(problem: LineProblem, guess: Guess) -> Descent:
    """Return the descent to the minimum near a guess that few segments have led to."""
    return Descent(problem, guess, LAST if problem.layout.model is MODEL else LAST_BENT)


def support_of(state: CostState) -> Array:
    """Return the support (R, B, K) of each direction."""
    return support(state.view.alignment.residual, state.noise, REPEATS)


MOST = 140
"""Segments looked at, the longest."""
