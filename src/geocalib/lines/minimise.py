"""Levenberg-Marquardt on lines and prior together.

The cost is twice the prior's and the segments' negative log likelihood, the latter divided by
``repeats``: segments are not independent witnesses.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from geocalib.geometry.fields import Free
from geocalib.lines.bundle import Bundle
from geocalib.lines.mixture import Noise, Weighing, noise_model, weigh
from geocalib.lines.prior import Forces, Prior, Pull
from geocalib.lines.residuals import Sight, directions_of, look, moves_of
from geocalib.lines.rows import chosen, joined, some
from geocalib.lines.system import assembled, damped, reduced
from geocalib.lines.unknowns import Array, Flags, Guess, Images, Layout, cross, times, unit
from geocalib.records import dataclass, replace

Rows = npt.NDArray[np.intp]
Normal = tuple[Array, Array]
"""Hessian (R, B, P, P) and gradient (R, B, P)."""

DAMPING_START, DAMPING_FACTOR = 1e-3, 10.0
DAMPING_RANGE = (1e-9, 1e4)
LONGEST_STEP = 0.2
"""Of any unknown in one iteration (radians, log f, units of the distortion): directions and focal
length trade off along curved valleys."""
SETTLED = 0.05
"""Converged when a step promises no more than to go so many sigmas, as the curvature has them."""


@dataclass(frozen=True)
class Problem:
    """B images with segments, and what is believed of them. Rows of guesses may have a problem of
    their own each (``geocalib.lines.together``): then its arrays begin with R."""

    bundle: Bundle
    active: Flags
    """(B, 1 + 2 Y) which directions there are: vertical, then two for each heading."""
    layout: Layout
    prior: Prior
    repeats: float

    def view(self, guess: Guess) -> View:
        """The images and their segments, as seen from guesses."""
        return View(guess, self.layout, self.bundle)

    def rows(self, kept: Flags) -> Problem:
        """For some rows (R,) of guesses."""
        if self.active.ndim == 2:  # The same for all of them.
            return self
        layout = self.layout
        return replace(
            self,
            bundle=some(kept, self.bundle),
            active=self.active[kept],
            layout=replace(
                layout,
                size=layout.size[kept],
                aspect=layout.aspect[kept],
                low=layout.low[kept],
                high=layout.high[kept],
            ),
            prior=some(kept, self.prior),
        )

    def upright(self) -> Problem:
        """With the vertical alone, for guesses without headings."""
        return replace(self, active=self.active[:, :1])

    def noise(self, sight: Sight, waywardness: float) -> Noise:
        """Of the segments that are seen so."""
        bundle = self.bundle
        usable = self._possible & sight.valid
        return noise_model(bundle.length, sight.nearness, bundle.noise, usable, waywardness)

    @cached_property
    def _possible(self) -> Flags:
        """(..., B, K, N) which segments may follow which direction, wherever they are seen."""
        return self.active[..., None] & (self.bundle.length > 0)[..., None, :]

    def scene(self, view: View, waywardness: float) -> Scene:
        """A view under noise as it is seen from there."""
        return self.under(view, self.noise(view.sight, waywardness))

    def under(self, view: View, noise: Noise) -> Scene:
        """A view under noise as it was seen from somewhere."""
        return self.costs(view, noise, weigh(view.sight.residual, noise))

    def costs(self, view: View, noise: Noise, weighing: Weighing) -> Scene:
        """A view that has been weighed."""
        forces = self.prior.forces(view.guess, self.layout)
        segments = -2 / self.repeats * (weighing.gain * noise.there).sum((-1, -2))
        return Scene(view, noise, weighing, forces, segments + forces.cost)

    def evaluate(self, scene: Scene) -> Evaluation:
        """Normal equations there."""
        guess, images = scene.view.guess, scene.view.images
        pull = self.prior.pull(guess, self.layout, scene.forces)
        return Evaluation(images.gravity, *self.normal(scene), pull)

    def normal(self, scene: Scene, sight: Sight | None = None, free: Free | None = None) -> Normal:
        """Those of the segments alone, the headings last: they belong to single images.

        sight, free: by a lens with more parameters, which sees the same.
        """
        sight, free = sight or scene.view.sight, free or self.layout.free
        # Of each direction by itself, and then in the unknowns that move it.
        jacobian = sight.jacobian(free)
        weight = scene.weighing.share * scene.noise.information
        weighted = jacobian * weight[..., None, :]
        moves = moves_of(sight.directions, scene.view.images.basis, free.intrinsics)
        # All directions one after the other: products are summed up as they are made.
        every = moves.reshape(*moves.shape[:-3], -1, moves.shape[-1])
        moved = (weighted @ jacobian.mT @ moves).reshape(every.shape)
        off = times(weighted, sight.residual).reshape(every.shape[:-1])
        share = every.mT / self.repeats
        return share @ moved, times(share, off)

    def moved(self, guess: Guess, before: Array, step: Step) -> View:
        """What is seen after a step from guesses under which images have gravity before
        (R, B, 3)."""
        after = self.layout.moved(guess, step.time, step.camera)
        headings = turned(guess.headings, before, self.layout.gravity(after), step.turn)
        return self.view(replace(after, headings=headings))


@dataclass(frozen=True)
class View:
    """What guesses mean for every image, found out when it is asked for."""

    guess: Guess
    layout: Layout
    bundle: Bundle

    @cached_property
    def images(self) -> Images:
        """Where their cameras are."""
        return self.layout.images(self.guess)

    @cached_property
    def sight(self) -> Sight:
        """Their segments against all directions."""
        directions = directions_of(self.images.gravity, self.guess.headings)
        return look(self.images, self.bundle, directions)

    def rows(self, index: slice, problem: Problem) -> View:
        """Some of the guesses, which belong to a problem of their own, and what was found out."""
        view = problem.view(self.guess[index])
        view.__dict__.update(images=some(index, self.images), sight=some(index, self.sight))
        return view


@dataclass(frozen=True)
class Scene:
    """What guesses cost, and why."""

    view: View
    noise: Noise
    weighing: Weighing
    forces: Forces
    cost: Array
    """(R,) with that of the prior."""

    def rows(self, index: slice, problem: Problem) -> Scene:
        """Some of the guesses, which belong to a problem of their own."""
        return Scene(
            self.view.rows(index, problem),
            some(index, self.noise),
            some(index, self.weighing),
            some(index, self.forces),
            self.cost[index],
        )

    @classmethod
    def concatenate(cls, scenes: Sequence[Scene], problem: Problem) -> Scene:
        """Those of several problems as one of a problem that they are rows of."""
        views = [scene.view for scene in scenes]
        view = problem.view(Guess.concatenate([view.guess for view in views]))
        images, sight = [view.images for view in views], [view.sight for view in views]
        view.__dict__.update(images=joined(*images), sight=joined(*sight))
        return cls(
            view,
            joined(*(scene.noise for scene in scenes)),
            joined(*(scene.weighing for scene in scenes)),
            joined(*(scene.forces for scene in scenes)),
            np.concatenate([scene.cost for scene in scenes]),
        )


@dataclass(frozen=True)
class Evaluation:
    """Half the cost's normal equations per image, headings last."""

    gravity: Array
    """(R, B, 3) where that is."""
    hessian: Array
    gradient: Array
    pull: Pull


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

    def shortened(self, longest: Array) -> Step:
        """To ``LONGEST_STEP``, given how long it is."""
        if longest.max() <= LONGEST_STEP:
            return self
        share = (LONGEST_STEP / np.maximum(longest, LONGEST_STEP))[:, None, None]
        return Step(self.time * share, self.camera * share, self.turn * share)


def turned(headings: Array, before: Array, after: Array, turn: Array) -> Array:
    """Headings (..., Y, 3) level under gravity before (..., 3), carried to gravity after and turned
    by (..., Y) radians."""
    if not headings.shape[-2]:
        return headings
    before, after = before[..., None, :], after[..., None, :]
    share = np.vecdot(headings, after) / (1 + np.vecdot(before, after))
    level = headings - share[..., None] * (before + after)
    side = cross(after, level)
    return unit(np.cos(turn)[..., None] * level + np.sin(turn)[..., None] * side)


def levelled(headings: Array, gravity: Array) -> Array:
    """Headings (..., Y, 3) made level under gravity (..., 3)."""
    gravity = gravity[..., None, :]
    return unit(headings - np.vecdot(headings, gravity)[..., None] * gravity)


def minimise(problem: Problem, view: View, waywardness: float, iterations: int) -> View:
    """The best guesses near first ones, under noise as it is seen from there."""
    whole, ends = problem, list[tuple[Rows, Guess]]()
    scene = problem.scene(view, waywardness)
    at, noise, cost = problem.evaluate(scene), scene.noise, scene.cost
    rows, damping = np.arange(len(cost)), np.full_like(cost, DAMPING_START)
    for left in reversed(range(iterations)):
        step, promise = _step(problem.layout, at, damping)
        longest = step.longest()
        moved = problem.moved(view.guess, at.gravity, step.shortened(longest))
        settled = promise < SETTLED**2
        if settled.all():
            # Of so little nobody asks whether it is for the better.
            view = moved
            break
        trial = problem.under(moved, noise)
        better = trial.cost <= cost
        done = (better & settled) | (damping >= DAMPING_RANGE[1])
        if better.all():
            view = moved
        elif better.any():
            view = problem.view(chosen(better, moved.guess, view.guess))
        if done.all() or not left:
            break
        damping = np.where(better, damping / DAMPING_FACTOR, damping * DAMPING_FACTOR)
        damping = np.minimum(np.maximum(damping, DAMPING_RANGE[0]), DAMPING_RANGE[1])
        if better.any():
            at = chosen(better, problem.evaluate(trial), at)
            cost = np.where(better, trial.cost, cost)
        if done.any():
            # Those that have settled are left behind.
            ends.append((rows[done], view.guess[done]))
            on = ~done
            rows, cost, damping = rows[on], cost[on], damping[on]
            problem, at, noise = problem.rows(on), some(on, at), some(on, noise)
            view = problem.view(view.guess[on])
    if not ends:
        return view
    order, guesses = zip(*ends, (rows, view.guess), strict=True)
    return whole.view(Guess.concatenate(guesses)[np.concatenate(order).argsort()])


def _step(layout: Layout, at: Evaluation, damping: Array) -> tuple[Step, Array]:
    """A step, and (R,) by how much it promises to lower the cost: the square of the sigmas that it
    goes."""
    pull, a, shared = at.pull, layout.tangents, layout.tangents + layout.intrinsics
    if len(layout.time) == 1:
        # Few unknowns, of which none need be eliminated.
        matrix, right = at.hessian[:, 0].copy(), at.gradient[:, 0].copy()
        matrix[:, :shared, :shared] += pull.arrow.dense()
        right[:, :a] += pull.time[:, 0]
        right[:, a:shared] += pull.camera
        found = np.asarray(-np.linalg.solve(damped(matrix, damping), right[..., None])[..., 0])
        every = found[:, None]
        parts = every[..., :a], every[..., a:shared], every[..., shared:]
        return Step(*parts), -np.vecdot(found, right)
    hessian, gradient, turns = reduced(at.hessian, at.gradient, shared, damping)
    lines, (time, camera) = assembled(hessian, gradient, layout)
    total = (lines + pull.arrow).damped(damping)
    down, inward = -time - pull.time, -camera - pull.camera
    time, camera = total.eliminate().solve(down, inward)
    promise = (time * down).sum((-1, -2)) + (camera * inward).sum(-1)
    camera = camera.reshape(len(camera), len(layout.size), layout.intrinsics)
    step = np.concatenate([time[:, layout.time], camera[:, layout.camera]], -1)
    return Step(time, camera, turns.after(step)), promise
