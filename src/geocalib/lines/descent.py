"""Levenberg-Marquardt on lines and prior together.

The cost is twice the negative log of the prior and of the segments' likelihood, the latter divided
by ``repeats``: segments are not independent witnesses.

This loop is apart from the solver's, which evaluates fields on a grid and keeps all images to the
end: here rows of guesses that have settled are left behind, and headings are eliminated first.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from geocalib.geometry.fields import Free
from geocalib.lines.prior import Forces, NetworkPrior, PriorEquations
from geocalib.lines.residuals import (
    Alignment,
    Assignment,
    Noise,
    align,
    assign,
    directions_of,
    moves_of,
    noise_model,
)
from geocalib.lines.unknowns import (
    Array,
    Flags,
    Guess,
    Images,
    Layout,
    SegmentBatch,
    assemble,
    concatenate_rows,
    cross,
    damped,
    eliminate_headings,
    select_rows,
    take_rows,
    unit,
)
from geocalib.records import dataclass, replace

Rows = npt.NDArray[np.intp]
Normal = tuple[Array, Array]
"""Hessian (R, B, P, P) and gradient (R, B, P)."""
DAMPING_START, DAMPING_FACTOR = 1e-3, 10.0
DAMPING_RANGE = (1e-9, 1e4)
LONGEST_STEP = 0.2
"""Longest step of any unknown in one iteration (radians, log f, units of the distortion):
directions and focal length trade off along curved valleys."""
SETTLED = 0.05
"""Converged when a step promises no more than to go so many sigmas, as the curvature has them."""


@dataclass(frozen=True)
class LineProblem:
    """B images with segments, and what is believed of them. Rows of guesses may have a problem of
    their own each (``geocalib.lines.batched_search``): then its arrays begin with R."""

    batch: SegmentBatch
    active: Flags
    """(B, 1 + 2 Y) which directions there are: vertical, then two for each heading."""
    layout: Layout
    prior: NetworkPrior
    repeats: float

    def view(self, guess: Guess) -> GuessView:
        """Return the images and their segments as seen from guesses."""
        return GuessView(guess, self.layout, self.batch)

    def rows(self, kept: Flags) -> LineProblem:
        """Return the problem of some rows (R,) of guesses."""
        if self.active.ndim == 2:  # The same for all of them.
            return self
        layout = self.layout
        return replace(
            self,
            batch=take_rows(kept, self.batch),
            active=self.active[kept],
            layout=replace(
                layout,
                size=layout.size[kept],
                aspect=layout.aspect[kept],
                low=layout.low[kept],
                high=layout.high[kept],
            ),
            prior=take_rows(kept, self.prior),
        )

    def upright(self) -> LineProblem:
        """Return the problem with the vertical alone, for guesses without headings."""
        return replace(self, active=self.active[:, :1])

    def noise(self, alignment: Alignment, direction_noise: float) -> Noise:
        """Return the noise model of segments that are aligned so."""
        batch = self.batch
        usable = self._possible & alignment.valid
        return noise_model(batch.length, alignment.nearness, batch.noise, usable, direction_noise)

    @cached_property
    def _possible(self) -> Flags:
        """(..., B, K, N) which segments may follow which direction, wherever they are seen."""
        return self.active[..., None] & (self.batch.length > 0)[..., None, :]

    def cost_at(self, view: GuessView, direction_noise: float) -> CostState:
        """Evaluate the cost of a view, under noise as it is seen from there."""
        return self.cost_under(view, self.noise(view.alignment, direction_noise))

    def cost_under(self, view: GuessView, noise: Noise) -> CostState:
        """Evaluate the cost of a view, under noise as it was seen from elsewhere."""
        return self.cost_with(view, noise, assign(view.alignment.residual, noise))

    def cost_with(self, view: GuessView, noise: Noise, assignment: Assignment) -> CostState:
        """Evaluate the cost of a view whose segments are assigned already."""
        forces = self.prior.forces(view.guess, self.layout)
        segments = -2 / self.repeats * (assignment.gain * noise.there).sum((-1, -2))
        return CostState(view, noise, assignment, forces, segments + forces.cost)

    def normal_equations(self, state: CostState) -> NormalEquations:
        """Linearise the cost at a state."""
        guess, images = state.view.guess, state.view.images
        pull = self.prior.pull(guess, self.layout, state.forces)
        return NormalEquations(images.gravity, *self.line_equations(state), pull)

    def line_equations(self, state: CostState, free: Free | None = None) -> Normal:
        """Return the normal equations of the segments alone, the headings last: they belong to
        single images.

        free: other parameters that are free than those of the layout.
        """
        alignment, free = state.view.alignment, free or self.layout.free
        # Of each direction by itself, and then in the unknowns that move it.
        jacobian = alignment.jacobian(free)
        weight = state.assignment.share * state.noise.information
        weighted = jacobian * weight[..., None, :]
        moves = moves_of(alignment.directions, state.view.images.basis, free.intrinsics)
        # All directions one after the other: products are summed up as they are made.
        every = moves.reshape(*moves.shape[:-3], -1, moves.shape[-1])
        moved = (weighted @ jacobian.mT @ moves).reshape(every.shape)
        off = np.matvec(weighted, alignment.residual).reshape(every.shape[:-1])
        share = every.mT / self.repeats
        return share @ moved, np.matvec(share, off)

    def moved(self, guess: Guess, before: Array, step: LineStep) -> GuessView:
        """Return the view after a step from guesses under which images have gravity before (R, B,
        3)."""
        after = self.layout.moved(guess, step.time, step.camera)
        images, basis = self.layout.images(after), after.basis
        headings = turn_headings(guess.headings, before, images.gravity, step.turn)
        view = self.view(Guess(after.gravity, after.log_f, after.distortion, after.c, headings))
        view.guess.__dict__.update(basis=basis)
        view.__dict__.update(images=images)
        return view


@dataclass(frozen=True)
class GuessView:
    """What guesses mean for every image; its parts are computed when they are wanted."""

    guess: Guess
    layout: Layout
    batch: SegmentBatch

    @cached_property
    def images(self) -> Images:
        """The cameras of the images."""
        return self.layout.images(self.guess)

    @cached_property
    def alignment(self) -> Alignment:
        """Their segments against all directions."""
        directions = directions_of(self.images.gravity, self.guess.headings)
        return align(self.images, self.batch, directions)

    def rows(self, index: slice, problem: LineProblem) -> GuessView:
        """Return the view of some guesses, which belong to a problem of their own, with its cached
        parts."""
        view = problem.view(self.guess[index])
        view.__dict__.update(
            images=take_rows(index, self.images), alignment=take_rows(index, self.alignment)
        )
        return view


@dataclass(frozen=True)
class CostState:
    """Guesses with their view, noise, assignment of segments and cost."""

    view: GuessView
    noise: Noise
    assignment: Assignment
    forces: Forces
    cost: Array
    """(R,) with that of the prior."""

    def rows(self, index: slice, problem: LineProblem) -> CostState:
        """Return the state of some guesses, which belong to a problem of their own."""
        return CostState(
            self.view.rows(index, problem),
            take_rows(index, self.noise),
            take_rows(index, self.assignment),
            take_rows(index, self.forces),
            self.cost[index],
        )

    @classmethod
    def concatenate(cls, states: Sequence[CostState], problem: LineProblem) -> CostState:
        """Stack the states of several problems as one of the problem that they are rows of."""
        views = [state.view for state in states]
        view = problem.view(Guess.concatenate([view.guess for view in views]))
        images, alignment = [view.images for view in views], [view.alignment for view in views]
        view.__dict__.update(
            images=concatenate_rows(*images), alignment=concatenate_rows(*alignment)
        )
        return cls(
            view,
            concatenate_rows(*(state.noise for state in states)),
            concatenate_rows(*(state.assignment for state in states)),
            concatenate_rows(*(state.forces for state in states)),
            np.concatenate([state.cost for state in states]),
        )


@dataclass(frozen=True)
class NormalEquations:
    """The normal equations of half the cost, per image; headings are the last unknowns."""

    gravity: Array
    """(R, B, 3) where that is."""
    hessian: Array
    gradient: Array
    pull: PriorEquations


@dataclass(frozen=True)
class LineStep:
    """A step of gravities (R, T, a), cameras (R, C, P) and headings (R, B, Y)."""

    time: Array
    camera: Array
    turn: Array

    def longest(self) -> Array:
        """Return the largest magnitude (R,) among the gravities and cameras."""
        shared = self.time.reshape(len(self.time), -1), self.camera.reshape(len(self.time), -1)
        return np.asarray(np.abs(np.concatenate(shared, 1)).max(1, initial=0.0))

    def shortened(self, longest: Array) -> LineStep:
        """Return the step shortened to ``LONGEST_STEP``, given how long it is."""
        if longest.max() <= LONGEST_STEP:
            return self
        share = (LONGEST_STEP / np.maximum(longest, LONGEST_STEP))[:, None, None]
        return LineStep(self.time * share, self.camera * share, self.turn * share)


def turn_headings(headings: Array, before: Array, after: Array, turn: Array) -> Array:
    """Headings (..., Y, 3) level under gravity before (..., 3), carried to gravity after and turned
    by (..., Y) radians."""
    if not headings.shape[-2]:
        return headings
    before, after = before[..., None, :], after[..., None, :]
    share = np.vecdot(headings, after) / (1 + np.vecdot(before, after))
    level = headings - share[..., None] * (before + after)
    side = cross(after, level)
    return unit(np.cos(turn)[..., None] * level + np.sin(turn)[..., None] * side)


def make_level(headings: Array, gravity: Array) -> Array:
    """Project headings (..., Y, 3) to be level under gravity (..., 3)."""
    gravity = gravity[..., None, :]
    return unit(headings - np.vecdot(headings, gravity)[..., None] * gravity)


def minimise(
    problem: LineProblem, view: GuessView, direction_noise: float, iterations: int
) -> GuessView:
    """Return the best guesses near first ones, under noise as it is seen from there.

    Levenberg-Marquardt, at most so many iterations; every row has its own damping and stops by
    itself.
    """
    whole, ends = problem, list[tuple[Rows, Guess]]()
    state = problem.cost_at(view, direction_noise)
    at, noise, cost = problem.normal_equations(state), state.noise, state.cost
    rows, damping = np.arange(len(cost)), np.full_like(cost, DAMPING_START)
    for left in reversed(range(iterations)):
        step, promise = _step(problem.layout, at, damping)
        longest = step.longest()
        moved = problem.moved(view.guess, at.gravity, step.shortened(longest))
        settled = promise < SETTLED**2
        if settled.all():
            # So small a step is taken without evaluating whether it lowers the cost.
            view = moved
            break
        trial = problem.cost_under(moved, noise)
        better = trial.cost <= cost
        done = (better & settled) | (damping >= DAMPING_RANGE[1])
        if better.all():
            view = moved
        elif better.any():
            view = problem.view(select_rows(better, moved.guess, view.guess))
        if done.all() or not left:
            break
        damping = np.where(better, damping / DAMPING_FACTOR, damping * DAMPING_FACTOR)
        damping = np.minimum(np.maximum(damping, DAMPING_RANGE[0]), DAMPING_RANGE[1])
        if better.any():
            at = select_rows(better, problem.normal_equations(trial), at)
            cost = np.where(better, trial.cost, cost)
        if done.any():
            # Those that have settled are left behind.
            ends.append((rows[done], view.guess[done]))
            on = ~done
            rows, cost, damping = rows[on], cost[on], damping[on]
            problem, at, noise = problem.rows(on), take_rows(on, at), take_rows(on, noise)
            view = problem.view(view.guess[on])
    if not ends:
        return view
    order, guesses = zip(*ends, (rows, view.guess), strict=True)
    return whole.view(Guess.concatenate(guesses)[np.concatenate(order).argsort()])


def _step(layout: Layout, at: NormalEquations, damping: Array) -> tuple[LineStep, Array]:
    """Solve the damped normal equations: a step, and the decrease (R,) of the cost that it
    promises, which is the square of the sigmas that it goes."""
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
        return LineStep(*parts), -np.vecdot(found, right)
    hessian, gradient, turns = eliminate_headings(at.hessian, at.gradient, shared, damping)
    lines, (time, camera) = assemble(hessian, gradient, layout)
    total = (lines + pull.arrow).damped(damping)
    down, inward = -time - pull.time, -camera - pull.camera
    time, camera = total.eliminate().solve(down, inward)
    promise = (time * down).sum((-1, -2)) + (camera * inward).sum(-1)
    camera = camera.reshape(len(camera), len(layout.size), layout.intrinsics)
    step = np.concatenate([time[:, layout.time], camera[:, layout.camera]], -1)
    return LineStep(time, camera, turns.after(step)), promise
