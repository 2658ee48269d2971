"""Levenberg-Marquardt on lines and prior together, and the covariance at its end.

The cost is twice the prior's and the segments' negative log likelihood, the latter divided by
``repeats``: segments are not independent witnesses.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import normalize

from geocalib.cameras.camera import Camera
from geocalib.lines.mixture import Noise, noise_model, weigh
from geocalib.lines.prior import Prior, Pull
from geocalib.lines.residuals import Sight, directions_of, look, moves_of
from geocalib.lines.segments import Bundle
from geocalib.solver.coupling import Arrow, Coupling, assemble_vector, to_cameras
from geocalib.solver.state import Frame, State

DAMPING_START, DAMPING_FACTOR = 1e-3, 10.0
DAMPING_RANGE = (1e-9, 1e4)
LONGEST_STEP = 0.2
"""Of any unknown in one iteration (radians, log f, units of the distortion): directions and focal
length trade off along curved valleys."""
SETTLED = 5e-5
"""Converged when no unknown moves by more (radians, log f, units of the distortion)."""


@dataclass(frozen=True)
class Guess:
    """A state of cameras and gravities, and the headings (B, Y, 3) of every image, level unit
    directions in its camera frame."""

    state: State
    headings: Tensor


@dataclass(frozen=True)
class Problem:
    """B images with segments, and what is believed of them."""

    bundle: Bundle
    active: Tensor
    """(B, 1 + 2 Y) which directions there are: vertical, then two for each heading."""
    coupling: Coupling
    frame: Frame
    prior: Prior
    repeats: float

    def images(self, guess: Guess) -> tuple[Camera, Tensor, Tensor]:
        return self.frame.images(guess.state, self.coupling, torch.float64)

    def sight(self, guess: Guess) -> Sight:
        """The segments, as seen from a guess."""
        camera, gravity, _ = self.images(guess)
        return look(camera, self.bundle, directions_of(gravity, guess.headings))

    def noise(self, guess: Guess, waywardness: float) -> Noise:
        """Of the segments, as seen from a guess."""
        return self.noise_of(self.sight(guess), waywardness)

    def noise_of(self, sight: Sight, waywardness: float) -> Noise:
        """Of the segments that are seen so."""
        bundle = self.bundle
        usable = self.active[:, :, None] & sight.valid & (bundle.length > 0)[:, None]
        return noise_model(bundle.length, sight.nearness, bundle.noise, usable, waywardness)

    def evaluate(self, guess: Guess, noise: Noise) -> Evaluation:
        """Normal equations at a guess."""
        camera, gravity, basis = self.images(guess)
        directions = directions_of(gravity, guess.headings)
        sight = look(camera, self.bundle, directions)
        weighing = weigh(sight.residual, noise)
        free = self.frame.free
        moves = moves_of(directions, basis[..., : 2 * int(free.gravity)])
        jacobian = sight.jacobian(moves, free).flatten(2)
        # The headings last: they belong to single images.
        a, y = 2 * int(free.gravity), guess.headings.shape[1]
        jacobian = torch.cat([jacobian[:, :a], jacobian[:, a + y :], jacobian[:, a : a + y]], 1)
        weight = (weighing.share / noise.sigma**2 / self.repeats).flatten(1)
        weighted = jacobian * weight[:, None]
        hessian = weighted @ jacobian.transpose(1, 2)
        gradient = _times(weighted, sight.residual.flatten(1))
        cost = -2 * (weighing.gain * (self.bundle.length > 0)).sum(1) / self.repeats
        pull = self.prior.pull(guess.state, self.frame, self.coupling)
        total = self.coupling.component_sum(cost) + pull.cost
        return Evaluation(hessian, gradient, cost, pull, total)

    def moved(self, guess: Guess, time: Tensor, camera: Tensor, turn: Tensor) -> Guess:
        """A guess after steps (T, 2), (C, Q) and headings turned by (B, Y)."""
        state = self.frame.step(guess.state, time, camera)
        before = self.images(guess)[1]
        after = self.images(replace(guess, state=state))[1]
        return Guess(state, turned(guess.headings, before, after, turn))


def turned(headings: Tensor, before: Tensor, after: Tensor, turn: Tensor) -> Tensor:
    """Headings (B, Y, 3) level under gravity before (B, 3), carried to gravity after and turned by
    (B, Y) radians."""
    before, after = before[:, None], after[:, None]
    share = (headings * after).sum(-1, keepdim=True) / (1 + (before * after).sum(-1, keepdim=True))
    level = headings - share * (before + after)
    side = torch.linalg.cross(after.expand_as(level), level)
    level = torch.cos(turn)[..., None] * level + torch.sin(turn)[..., None] * side
    return normalize(level, dim=-1)


def levelled(headings: Tensor, gravity: Tensor) -> Tensor:
    """Headings (B, Y, 3) made level under gravity (B, 3)."""
    along = (headings * gravity[:, None]).sum(-1, keepdim=True)
    level = headings - along * gravity[:, None]
    return normalize(level, dim=-1)


def copies(problem: Problem, count: int) -> Problem:
    """The same images so many times, as components of their own."""
    old, prior = problem.coupling, problem.prior
    times, cameras = len(old.time_component), len(old.camera_component)

    def shifted(index: Tensor, by: int) -> Tensor:
        return torch.cat([index + n * by for n in range(count)])

    def again(value: Tensor) -> Tensor:
        return value.repeat(count, *(1,) * (value.dim() - 1))

    coupling = Coupling(
        shifted(old.time, times),
        shifted(old.camera, cameras),
        None if old.rotation is None else again(old.rotation),
        shifted(old.time_component, old.components),
        shifted(old.camera_component, old.components),
        again(old.camera_slot),
        old.slots,
        old.components * count,
    )
    stiffness = Arrow(*map(again, vars(prior.stiffness).values()))
    return Problem(
        Bundle(*map(again, vars(problem.bundle).values())),
        again(problem.active),
        coupling,
        problem.frame.select(again(torch.arange(cameras))),
        Prior(State(*map(again, vars(prior.mean).values())), again(prior.basis), stiffness),
        problem.repeats,
    )


@dataclass(frozen=True)
class Evaluation:
    """Half the cost's normal equations per image, headings last, and the cost."""

    hessian: Tensor
    gradient: Tensor
    cost: Tensor
    """(B,) of the segments."""
    pull: Pull
    total: Tensor
    """(K,) cost of each component, with the prior."""


def minimise(problem: Problem, guess: Guess, noise: Noise, iterations: int) -> Guess:
    """The best guess near a first one, under noise as it was seen from there."""
    coupling = problem.coupling
    at = problem.evaluate(guess, noise)
    damping = torch.full_like(at.total, DAMPING_START)
    done = torch.zeros_like(at.total, dtype=torch.bool)
    for _ in range(iterations):
        time, camera, turn = _step(problem, at, damping)
        longest = coupling.times_max(time)
        if camera.shape[1]:
            longest = longest.maximum(coupling.by_component(camera).abs().amax(1))
        reach = (LONGEST_STEP / longest).clamp(max=1)[:, None]
        of_image = reach[coupling.camera_component[coupling.camera]]
        trial_guess = problem.moved(
            guess,
            time * reach[coupling.time_component],
            camera * reach[coupling.camera_component],
            turn * of_image,
        )
        trial = problem.evaluate(trial_guess, noise)
        better = (trial.total <= at.total) & ~done
        done = done | (better & (longest < SETTLED)) | (damping >= DAMPING_RANGE[1])
        damping = torch.where(better, damping / DAMPING_FACTOR, damping * DAMPING_FACTOR)
        damping = damping.clamp(*DAMPING_RANGE)
        guess, at = _chosen(problem, better, (trial_guess, trial), (guess, at))
        if bool(done.all()):
            break
    return guess


def _step(problem: Problem, at: Evaluation, damping: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Steps (T, a), (C, Q) and (B, Y)."""
    coupling, a = problem.coupling, 2 * int(problem.frame.free.gravity)
    of_image = damping[coupling.camera_component[coupling.camera]]
    shared = a + problem.frame.intrinsics
    hessian, gradient, turns = reduced(at.hessian, at.gradient, shared, of_image)
    arrow = Arrow.assemble(hessian, coupling, a)
    b_time, b_camera = assemble_vector(-gradient, coupling, a)
    total = _plus(arrow, at.pull.arrow).damped(damping, coupling)
    time, laid = total.eliminate(coupling).solve(
        b_time - at.pull.time, b_camera - at.pull.camera, coupling
    )
    camera = to_cameras(laid, coupling)
    step = torch.cat([time[coupling.time], camera[coupling.camera]], 1)
    return time, camera, turns.first - _times(turns.slope, step)


@dataclass(frozen=True)
class Turns:
    """The best turns of headings: first (B, Y) less slope (B, Y, P) times the other unknowns."""

    first: Tensor
    slope: Tensor


def reduced(
    hessian: Tensor, gradient: Tensor, shared: int, damping: Tensor | None = None
) -> tuple[Tensor, Tensor, Turns]:
    """Normal equations of the first ``shared`` unknowns of each image, the headings eliminated."""
    own = hessian[:, shared:, shared:]
    diagonal = own.diagonal(dim1=1, dim2=2)
    extra = torch.zeros_like(diagonal) if damping is None else damping[:, None] * diagonal
    # A heading that no segment follows stays where it is.
    own = own + torch.diag_embed(torch.where(diagonal > 0, extra, 1.0))
    side = hessian[:, shared:, :shared]
    slope = torch.linalg.solve(own, side)
    first = torch.linalg.solve(own, -gradient[:, shared:])
    across = hessian[:, :shared, shared:]
    return (
        hessian[:, :shared, :shared] - across @ slope,
        gradient[:, :shared] + _times(across, first),
        Turns(first, slope),
    )


def _plus(a: Arrow, b: Arrow) -> Arrow:
    return Arrow(a.A + b.A, a.B + b.B, a.C + b.C)


def _times(matrix: Tensor, vector: Tensor) -> Tensor:
    return (matrix @ vector[..., None])[..., 0]


def _chosen(
    problem: Problem,
    better: Tensor,
    new: tuple[Guess, Evaluation],
    old: tuple[Guess, Evaluation],
) -> tuple[Guess, Evaluation]:
    """The new one in the components (K,) where it is better."""
    if bool(better.all()):
        return new
    if not bool(better.any()):
        return old
    (guess, at), (old_guess, old_at) = new, old
    coupling = problem.coupling
    image = better[coupling.camera_component[coupling.camera]]
    time = better[coupling.time_component]
    headings = torch.where(image[:, None, None], guess.headings, old_guess.headings)
    arrow, old_arrow = at.pull.arrow, old_at.pull.arrow
    pull = Pull(
        Arrow(
            torch.where(time[:, None, None], arrow.A, old_arrow.A),
            torch.where(time[:, None, None], arrow.B, old_arrow.B),
            torch.where(better[:, None, None], arrow.C, old_arrow.C),
        ),
        torch.where(time[:, None], at.pull.time, old_at.pull.time),
        torch.where(better[:, None], at.pull.camera, old_at.pull.camera),
        torch.where(better, at.pull.cost, old_at.pull.cost),
    )
    evaluation = Evaluation(
        torch.where(image[:, None, None], at.hessian, old_at.hessian),
        torch.where(image[:, None], at.gradient, old_at.gradient),
        torch.where(image, at.cost, old_at.cost),
        pull,
        torch.where(better, at.total, old_at.total),
    )
    return Guess(guess.state.where(better, old_guess.state, coupling), headings), evaluation
