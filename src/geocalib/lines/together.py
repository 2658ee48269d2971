"""Searches of several photos side by side: their descents are rows of one problem.

A step of a descent is hundreds of small operations, which take hardly longer for several photos
than for one. So a search is a generator: it asks for descents, and goes on when it is told where
they ended. No row depends on the others, to the last bit: photos are put together where they have
as many segments, and these are padded (``Bundle.rounded``) so that many have.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Hashable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeVar

import numpy as np

from geocalib.arrays import Array
from geocalib.geometry.tensors import map_tensors
from geocalib.lines.minimise import Problem, Scene, minimise
from geocalib.lines.prior import Prior
from geocalib.lines.unknowns import Guess
from geocalib.records import dataclass

Result = TypeVar("Result")

ABREAST = 8
"""Searches at a time: what they look at still fits into the processor's cache."""


DIRECT = ("pinhole", "division", "ucm", "eucm", "double_sphere")
"""Models whose depth is a formula. That of others is found by Newton's method, whose steps go on
until all places are exact: the last bits of one depend on the others."""


@dataclass(frozen=True)
class Descent:
    """From guesses to the minima near them."""

    problem: Problem
    guess: Guess
    rounds: tuple[tuple[float, int], ...]
    """Widths and iterations, one after the other."""

    @property
    def kind(self) -> Hashable:
        """Equal for those that can be rows of one problem."""
        problem, layout = self.problem, self.problem.layout
        several = len(problem.bundle) > 1 or layout.rotation is not None
        if several or layout.model.name not in DIRECT:
            return id(self)
        shapes = problem.active.shape, problem.bundle.length.shape
        return shapes, self.rounds, problem.repeats, layout.model.name, layout.free

    @property
    def turn(self) -> tuple[int, int]:
        """Who comes first where not all can go on together: searches end with few directions, and
        each with all segments."""
        return -self.problem.active.shape[-1], self.problem.bundle.length.shape[-1]


Search = Generator[Descent, Scene, Result]
"""Asks for descents, and is sent what is seen where each ended, under the last width."""


def together(searches: Sequence[Search[Result]]) -> list[Result]:
    """What searches find."""
    return [
        found
        for start in range(0, len(searches), ABREAST)
        for found in _abreast(searches[start : start + ABREAST])
    ]


def alone(search: Search[Result]) -> Result:
    """What one search finds."""
    return together([search])[0]


def _abreast(searches: Sequence[Search[Result]]) -> list[Result]:
    found: dict[int, Result] = {}
    asked: dict[int, Descent] = {}

    def go_on(number: int, end: Scene | None) -> None:
        try:
            # The first thing that a generator is sent is nothing.
            asked[number] = searches[number].send(end)  # type: ignore[arg-type]
        except StopIteration as last:
            found[number] = last.value

    for number in range(len(searches)):
        go_on(number, None)
    while asked:
        kinds: dict[Hashable, list[int]] = defaultdict(list)
        for number, descent in asked.items():
            kinds[descent.kind].append(number)
        chosen = min(kinds.values(), key=lambda numbers: asked[numbers[0]].turn)
        ends = _descended([asked.pop(number) for number in chosen])
        for number, end in zip(chosen, ends, strict=True):
            go_on(number, end)
    return [found[number] for number in range(len(searches))]


def _descended(descents: Sequence[Descent]) -> list[Scene]:
    """Where descents of one kind end."""
    first = descents[0]
    if len(descents) == 1:
        return [_end(first)]
    rows = [len(descent.guess) for descent in descents]
    guess = Guess.concatenate([descent.guess for descent in descents])
    problem = side_by_side([descent.problem for descent in descents], rows)
    end = _end(replace(first, problem=problem, guess=guess))
    limits = pairwise(np.cumsum([0, *rows]).tolist())
    return [
        end.rows(slice(*own), descent.problem)
        for descent, own in zip(descents, limits, strict=True)
    ]


def _end(descent: Descent) -> Scene:
    problem, view = descent.problem, descent.problem.view(descent.guess)
    for width, iterations in descent.rounds:
        view = minimise(problem, view, width, iterations)
    return problem.scene(view, descent.rounds[-1][0])


def side_by_side(problems: Sequence[Problem], rows: Sequence[int]) -> Problem:
    """Of one image each, as one problem for guesses of which so many rows belong to each."""

    def own(*column: Array) -> Array:
        """(R, ...) from what each problem has once."""
        return np.repeat(np.stack(column), rows, 0)

    def first(*column: Array) -> Array:
        """(R, ...) from what each has as a row already."""
        return np.repeat(np.concatenate(column), rows, 0)

    layouts, priors = [p.layout for p in problems], [p.prior for p in problems]
    layout = replace(
        layouts[0],
        size=own(*(layout.size for layout in layouts)),
        aspect=own(*(layout.aspect for layout in layouts)),
        low=own(*(layout.low for layout in layouts)),
        high=own(*(layout.high for layout in layouts)),
    )
    prior = Prior(
        map_tensors(first, *(prior.mean for prior in priors)),
        own(*(prior.basis for prior in priors)),
        map_tensors(first, *(prior.stiffness for prior in priors)),
    )
    bundle = map_tensors(own, *(problem.bundle for problem in problems))
    active = own(*(problem.active for problem in problems))
    return Problem(bundle, active, layout, prior, problems[0].repeats)
