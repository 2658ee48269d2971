"""What speaks for worlds that lines may show, and how sure their answers are: what segments tell
there, and whether the network agrees."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Self

import numpy as np

from geocalib.geometry.tensors import map_tensors
from geocalib.lines.covariance import Told, covariance, told_by_lines
from geocalib.lines.descent import CAUTION, REPEATS, support_of
from geocalib.lines.evidence import misfit
from geocalib.lines.minimise import Scene
from geocalib.lines.prior import Prior
from geocalib.lines.rows import joined, some
from geocalib.lines.system import Arrow
from geocalib.lines.together import Request, layouts_side_by_side, side_by_side, slices
from geocalib.lines.unknowns import Array, Guess, Layout
from geocalib.records import dataclass, replace

# Chosen as those of ``explanations`` are.
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
class Testimony:
    """What segments say at guesses."""

    gains: Array
    """(R, B, K) support of each direction."""
    told: Told
    """For each segment by itself."""
    caution: Array
    """(R,) by how much less sure than that they are."""


@dataclass(frozen=True)
class Telling(Request):
    """What segments say at one guess."""

    scene: Scene

    @classmethod
    def answered(cls, requests: Sequence[Self]) -> list[Testimony]:
        problem, scene = requests[0].problem, requests[0].scene
        each = [1] * len(requests)
        if len(requests) > 1:
            problem = side_by_side([one.problem for one in requests], each)
            scene = Scene.concatenate([one.scene for one in requests], problem)
        told = told_by_lines(replace(problem, repeats=1.0), scene)
        every = Testimony(support_of(scene), told, _caution(scene))
        return [every] if len(requests) == 1 else [some(own, every) for own in slices(each)]


@dataclass(frozen=True)
class Judgement(Request):
    """(R,) how well each of several guesses agrees with the network, and how sure it is: the
    covariance (R, B, P, P). By how many directions and segments that was told does not matter."""

    guess: Guess
    """Without headings."""
    network: Prior
    told: Told
    caution: Array

    @property
    def kind(self) -> Hashable:
        layout = self.problem.layout
        return (type(self), layout.model.name, layout.free) if self.shareable else id(self)

    @classmethod
    def answered(cls, requests: Sequence[Self]) -> list[tuple[list[float], Array]]:
        rows = [len(one.guess) for one in requests]
        first = requests[0]
        prior, layout, network = first.problem.prior, first.problem.layout, first.network
        guess, told, caution = first.guess, first.told, first.caution
        if len(requests) > 1:
            layout = layouts_side_by_side([one.problem.layout for one in requests], rows)
            prior = Prior.stack([one.problem.prior for one in requests], rows)
            network = Prior.stack([one.network for one in requests], rows)
            guess = Guess.concatenate([one.guess for one in requests])
            told = joined(*(one.told for one in requests))
            caution = np.concatenate([one.caution for one in requests])
        agreement = _agreement(network, layout, guess, told.divided(AGREEMENT_REPEATS).arrow)
        blocks = covariance(prior, layout, guess, told.divided(REPEATS * caution))
        return [(agreement[own].tolist(), blocks[own]) for own in slices(rows)]


def _caution(scene: Scene) -> Array:
    """(R,) by how much less sure than the likelihood answers are."""
    found = misfit(scene.view.sight.residual, scene.noise, scene.weighing.share)
    return np.asarray(CAUTION * np.clip((found / USUAL_MISFIT) ** PER_MISFIT, *CAUTION_RANGE))


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
