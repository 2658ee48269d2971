"""Levenberg-Marquardt on lines and prior together.

The cost is twice the prior's and the segments' negative log likelihood, the latter divided by
``repeats``: segments are not independent witnesses.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from geocalib.geometry.tensors import map_tensors
from geocalib.lines.bundle import Bundle
from geocalib.lines.mixture import Noise, Weighing, noise_model, weigh
from geocalib.lines.prior import Prior, Pull
from geocalib.lines.residuals import Sight, directions_of, look, moves_of
from geocalib.lines.system import Arrow, assembled, reduced
from geocalib.lines.unknowns import Array, Flags, Guess, Images, Layout, cross, times, unit
from geocalib.records import dataclass

Rows = TypeVar("Rows", Guess, "Evaluation", Pull, Arrow)

DAMPING_START, DAMPING_FACTOR = 1e-3, 10.0
DAMPING_RANGE = (1e-9, 1e4)
LONGEST_STEP = 0.2
"""Of any unknown in one iteration (radians, log f, units of the distortion): directions and focal
length trade off along curved valleys."""
SETTLED = 2e-4
"""Converged when no unknown moves by more (radians, log f, units of the distortion)."""


@dataclass(frozen=True)
class Problem:
    """B images with segments, and what is believed of them."""

    bundle: Bundle
    active: Flags
    """(B, 1 + 2 Y) which directions there are: vertical, then two for each heading."""
    layout: Layout
    prior: Prior
    repeats: float

    def view(self, guess: Guess) -> View:
        """The images and their segments, as seen from guesses."""
        images = self.layout.images(guess)
        directions = directions_of(images.gravity, guess.headings)
        return View(guess, images, look(images, self.bundle, directions))

    def noise(self, sight: Sight, waywardness: float) -> Noise:
        """Of the segments that are seen so."""
        bundle = self.bundle
        usable = self.active[:, :, None] & sight.valid & (bundle.length > 0)[:, None]
        return noise_model(bundle.length, sight.nearness, bundle.noise, usable, waywardness)

    def cost(self, guess: Guess, waywardness: float) -> Array:
        """(R,) of guesses, under noise as it is seen from there."""
        sight = self.view(guess).sight
        noise = self.noise(sight, waywardness)
        segments = self._cost(weigh(sight.residual, noise), noise)
        return segments + self.prior.cost(guess, self.layout)

    def _cost(self, weighing: Weighing, noise: Noise) -> Array:
        """(R,) of the segments."""
        return np.asarray(-2 / self.repeats * (weighing.gain * noise.there).sum((-1, -2)))

    def evaluate(self, view: View, noise: Noise) -> Evaluation:
        """Normal equations there."""
        sight, layout = view.sight, self.layout
        weighing = weigh(sight.residual, noise)
        moves = moves_of(sight.directions, view.images.basis)
        jacobian = sight.jacobian(moves, layout.free)
        jacobian = jacobian.reshape(*jacobian.shape[:-2], -1)
        # The headings last: they belong to single images.
        a, y = layout.tangents, view.guess.headings.shape[2]
        order = [*range(a), *range(a + y, jacobian.shape[-2]), *range(a, a + y)]
        jacobian = jacobian[..., order, :]
        weight = (weighing.share * noise.information / self.repeats).reshape(
            *jacobian.shape[:-2], 1, -1
        )
        weighted = jacobian * weight
        hessian = weighted @ np.swapaxes(jacobian, -1, -2)
        gradient = times(weighted, sight.residual.reshape(*jacobian.shape[:-2], -1))
        pull = self.prior.pull(view.guess, layout)
        total = self._cost(weighing, noise) + pull.cost
        return Evaluation(view.images.gravity, hessian, gradient, pull, total)

    def moved(self, guess: Guess, before: Array, step: Step) -> View:
        """What is seen after a step from guesses under which images have gravity before
        (R, B, 3)."""
        after = self.layout.moved(guess, step.time, step.camera)
        images = self.layout.images(after)
        headings = turned(guess.headings, before, images.gravity, step.turn)
        directions = directions_of(images.gravity, headings)
        after = replace(after, headings=headings)
        return View(after, images, look(images, self.bundle, directions))


@dataclass(frozen=True)
class View:
    """What guesses mean for every image."""

    guess: Guess
    images: Images
    sight: Sight


@dataclass(frozen=True)
class Evaluation:
    """Half the cost's normal equations per image, headings last, and the cost."""

    gravity: Array
    """(R, B, 3) where that is."""
    hessian: Array
    gradient: Array
    pull: Pull
    total: Array
    """(R,) cost, with the prior."""


@dataclass(frozen=True)
class Step:
    """Of gravities (R, T, a), cameras (R, C, P) and headings (R, B, Y)."""

    time: Array
    camera: Array
    turn: Array

    def longest(self) -> Array:
        """(R,) largest magnitude among the gravities and cameras."""
        shared = self.time.reshape(len(self.time), -1), self.camera.reshape(len(self.time), -1)
        return np.asarray(np.abs(np.concatenate(shared, 1)).max(1, initial=0.0))

    def shortened(self) -> Step:
        """To ``LONGEST_STEP``."""
        share = LONGEST_STEP / self.longest().clip(min=LONGEST_STEP)
        share = share[:, None, None]
        return Step(self.time * share, self.camera * share, self.turn * share)


def turned(headings: Array, before: Array, after: Array, turn: Array) -> Array:
    """Headings (..., Y, 3) level under gravity before (..., 3), carried to gravity after and turned
    by (..., Y) radians."""
    before, after = before[..., None, :], after[..., None, :]
    share = (headings * after).sum(-1, keepdims=True)
    share = share / (1 + (before * after).sum(-1, keepdims=True))
    level = headings - share * (before + after)
    side = cross(after, level)
    return unit(np.cos(turn)[..., None] * level + np.sin(turn)[..., None] * side)


def levelled(headings: Array, gravity: Array) -> Array:
    """Headings (..., Y, 3) made level under gravity (..., 3)."""
    gravity = gravity[..., None, :]
    return unit(headings - (headings * gravity).sum(-1, keepdims=True) * gravity)


def minimise(problem: Problem, guess: Guess, waywardness: float, iterations: int) -> Guess:
    """The best guesses near first ones, under noise as it is seen from there."""
    view = problem.view(guess)
    noise = problem.noise(view.sight, waywardness)
    at = problem.evaluate(view, noise)
    damping = np.full_like(at.total, DAMPING_START)
    done = np.zeros(len(guess), np.bool_)
    for _ in range(iterations):
        step = _step(problem.layout, at, damping)
        view = problem.moved(guess, at.gravity, step.shortened())
        trial = problem.evaluate(view, noise)
        better = (trial.total <= at.total) & ~done
        done = done | (better & (step.longest() < SETTLED)) | (damping >= DAMPING_RANGE[1])
        damping = np.where(better, damping / DAMPING_FACTOR, damping * DAMPING_FACTOR)
        damping = damping.clip(*DAMPING_RANGE)
        guess, at = _chosen(better, view.guess, guess), _chosen(better, trial, at)
        if done.all():
            break
    return guess


def _step(layout: Layout, at: Evaluation, damping: Array) -> Step:
    hessian, gradient, turns = reduced(
        at.hessian, at.gradient, layout.tangents + layout.intrinsics, damping
    )
    lines, (time, camera) = assembled(hessian, gradient, layout)
    pull = at.pull
    total = (lines + pull.arrow).damped(damping)
    time, camera = total.eliminate().solve(-time - pull.time, -camera - pull.camera)
    camera = camera.reshape(len(camera), len(layout.size), layout.intrinsics)
    return Step(time, camera, turns.after(time[:, layout.time], camera[:, layout.camera]))


def _chosen(better: Flags, new: Rows, old: Rows) -> Rows:
    """The new one in the rows (R,) where it is better."""
    if better.all():
        return new
    if not better.any():
        return old

    def choose(a: Any, b: Any) -> Any:
        if isinstance(a, np.ndarray):
            return np.where(better.reshape(-1, *(1,) * (a.ndim - 1)), a, b)
        return _chosen(better, a, b)

    return map_tensors(choose, new, old)
