"""Searches of several photos side by side: what they ask for are rows of one problem.

A step of a descent is hundreds of small operations, which take hardly longer for several photos
than for one. So a search is a generator: it asks for descents and the like, and goes on when it is
told what came of them. No row depends on the others, to the last bit: photos are put together where
they have as many segments, and these are padded (``Bundle.rounded``) so that many have.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Generator, Hashable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, Self, TypeVar

import numpy as np

from geocalib.arrays import Array
from geocalib.geometry.tensors import map_tensors
from geocalib.lines.minimise import Problem, Scene, minimise
from geocalib.lines.prior import Prior
from geocalib.lines.unknowns import Guess, Layout
from geocalib.records import dataclass, replace

Result = TypeVar("Result")

ABREAST = 8
"""Searches at a time: what they look at still fits into the processor's cache."""


DIRECT = ("pinhole", "division", "ucm", "eucm", "double_sphere")
"""Models whose depth is a formula. That of others is found by Newton's method, whose steps go on
until all places are exact: the last bits of one depend on the others. Photos of a model that is not
named here go one by one, which is always right."""


@dataclass(frozen=True)
class Request(ABC):
    """Something that a search wants to know of a problem."""

    problem: Problem

    @classmethod
    @abstractmethod
    def answered(cls, requests: Sequence[Self]) -> Sequence[Any]:
        """The answers to those of one kind."""

    @property
    def kind(self) -> Hashable:
        """Equal for those that can be rows of one problem."""
        if not self.shareable:
            return id(self)
        problem, layout = self.problem, self.problem.layout
        shapes = problem.active.shape, problem.bundle.length.shape
        return type(self), shapes, problem.repeats, layout.model.name, layout.free

    @property
    def shareable(self) -> bool:
        """Whether it may be rows of one problem with others."""
        problem, layout = self.problem, self.problem.layout
        single = len(problem.bundle) == 1 and layout.rotation is None
        return single and layout.model.name in DIRECT

    @property
    def turn(self) -> tuple[int, int]:
        """Who comes first where not all can go on together: searches end with few directions, and
        each with all segments."""
        return -self.problem.active.shape[-1], self.problem.bundle.length.shape[-1]


@dataclass(frozen=True)
class Descent(Request):
    """From guesses to the minima near them: what is seen there, under the last width."""

    guess: Guess
    rounds: tuple[tuple[float, int], ...]
    """Widths, by which lines miss their direction in the picture, in radians, and iterations, one
    after the other."""

    @property
    def kind(self) -> Hashable:
        return super().kind, self.rounds

    @classmethod
    def answered(cls, requests: Sequence[Self]) -> list[Scene]:
        first = requests[0]
        if len(requests) == 1:
            return [first.end()]
        rows = [len(descent.guess) for descent in requests]
        guess = Guess.concatenate([descent.guess for descent in requests])
        problem = side_by_side([descent.problem for descent in requests], rows)
        end = replace(first, problem=problem, guess=guess).end()
        return [
            end.rows(own, descent.problem)
            for descent, own in zip(requests, slices(rows), strict=True)
        ]

    def end(self) -> Scene:
        """Of all rows."""
        problem, view = self.problem, self.problem.view(self.guess)
        for width, iterations in self.rounds:
            view = minimise(problem, view, width, iterations)
        return problem.scene(view, self.rounds[-1][0])


Search = Generator[Request, Any, Result]
"""Makes requests, and is sent the answer to each."""


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
    asked: dict[int, Request] = {}

    def go_on(number: int, answer: Any) -> None:
        try:
            asked[number] = searches[number].send(answer)
        except StopIteration as end:
            found[number] = end.value

    for number in range(len(searches)):
        go_on(number, None)  # The first thing that a generator is sent is nothing.
    while asked:
        kinds: dict[Hashable, list[int]] = defaultdict(list)
        for number, request in asked.items():
            kinds[request.kind].append(number)
        chosen = min(kinds.values(), key=lambda numbers: asked[numbers[0]].turn)
        requests = [asked.pop(number) for number in chosen]
        for number, answer in zip(chosen, type(requests[0]).answered(requests), strict=True):
            go_on(number, answer)
    return [found[number] for number in range(len(searches))]


def side_by_side(problems: Sequence[Problem], rows: Sequence[int]) -> Problem:
    """Of one image each, as one problem for guesses of which so many rows belong to each."""
    own = partial(_own, rows)
    layout = layouts_side_by_side([problem.layout for problem in problems], rows)
    prior = Prior.stack([problem.prior for problem in problems], rows)
    bundle = map_tensors(own, *(problem.bundle for problem in problems))
    active = own(*(problem.active for problem in problems))
    return Problem(bundle, active, layout, prior, problems[0].repeats)


def layouts_side_by_side(layouts: Sequence[Layout], rows: Sequence[int]) -> Layout:
    """Their layouts."""
    own = partial(_own, rows)
    return replace(
        layouts[0],
        size=own(*(layout.size for layout in layouts)),
        aspect=own(*(layout.aspect for layout in layouts)),
        low=own(*(layout.low for layout in layouts)),
        high=own(*(layout.high for layout in layouts)),
    )


def slices(rows: Sequence[int]) -> list[slice]:
    """Where so many rows each are, one after the other."""
    return [slice(*limits) for limits in pairwise(np.cumsum([0, *rows]).tolist())]


def _own(rows: Sequence[int], *column: Array) -> Array:
    """(R, ...) from what each problem has once."""
    return np.repeat(np.stack(column), rows, 0)
