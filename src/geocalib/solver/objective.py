"""The objective E / s^2 + priors of coupled images: its value and its normal equations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from geocalib.geometry import gravity as sphere
from geocalib.solver.coupling import Arrow, Coupling, assemble_vector
from geocalib.solver.observations import Observations
from geocalib.solver.priors import Knowledge, Priors
from geocalib.solver.residuals import Information, Normal, information, normal_equations
from geocalib.solver.state import Frame, State

SMALLEST_SCALE = 1e-14
"""Floor of the estimated s^2, reached by noise-free fields."""


@dataclass(frozen=True)
class Problem:
    """Everything that stays fixed during a fit."""

    observations: Observations
    coupling: Coupling
    frame: Frame
    priors: Priors
    huber: float | None
    scale: float | None
    """s^2, None to estimate it."""

    def select(self, keep: Tensor) -> tuple[Problem, Tensor, Tensor, Tensor]:
        """The sub-problem of some components (K,), and the indices of its images, times and
        cameras."""
        coupling, images, times, cameras = self.coupling.select(keep)
        return (
            replace(
                self,
                observations=self.observations[images],
                coupling=coupling,
                frame=self.frame.select(cameras),
                priors=self.priors.select(times, cameras),
            ),
            images,
            times,
            cameras,
        )

    @property
    def gravity_size(self) -> int:
        return 2 if self.frame.free.gravity else 0

    def evaluate(self, state: State) -> Evaluation:
        """Normal equations, costs and s^2 at a state."""
        camera, gravity, basis = self.frame.images(
            state, self.coupling, self.observations.up_x.dtype
        )
        arguments = (camera, gravity, basis, self.observations, self.frame.free, self.huber)
        normal = normal_equations(*arguments)
        cost = self.coupling.component_sum(normal.cost)
        if self.scale is not None:
            scale = torch.full_like(cost, self.scale)
        elif self.priors.soft:
            scale = estimated_scale(information(*arguments), self.coupling).detach()
        else:
            scale = torch.ones_like(cost)
        return Evaluation(normal, cost, scale, self.prior_terms(state))

    def prior_terms(self, state: State) -> PriorTerms | None:
        """The soft priors' normal equations, None without any."""
        if not self.priors.soft:
            return None
        free, coupling = self.frame.free, self.coupling
        time_pull = state.gravity.new_zeros(len(state.gravity), self.gravity_size)
        time_weight = torch.zeros_like(time_pull)
        cost = state.gravity.new_zeros(coupling.components)
        known = self.priors.gravity
        if known.information is not None and known.value is not None:
            away, time_weight = _away(state.gravity, known.value, known.information)
            time_pull = time_weight * away
            cost = cost.index_add(0, coupling.time_component, (time_pull * away).sum(1))
        pulls, weights = [], []

        def pull(known: Knowledge, at: Tensor, columns: Sequence[int]) -> None:
            weight, away = torch.zeros_like(at), torch.zeros_like(at)
            if known.information is not None and known.value is not None:
                weight, away = known.information, known.value - at
            weights.append(weight[:, columns])
            pulls.append((weight * away)[:, columns])

        pull(self.priors.log_f, state.log_f[:, None], [0] if free.focal else [])
        pull(self.priors.distortion, state.distortion, free.distortion)
        pull(self.priors.principal_point, state.c, [0, 1] if free.principal_point else [])
        pull(self.priors.log_stretch, state.log_stretch[:, None], [0] if free.aspect else [])
        camera_pull, camera_weight = torch.cat(pulls, 1), torch.cat(weights, 1)
        squares = camera_pull**2 / torch.where(camera_weight > 0, camera_weight, 1.0)
        cost = cost.index_add(0, coupling.camera_component, squares.sum(1))
        return PriorTerms(time_weight, time_pull, camera_weight, camera_pull, cost)

    def system(self, evaluation: Evaluation) -> tuple[Arrow, Tensor, Tensor]:
        """Arrow matrix and right-hand sides of (E + s^2 priors) / 2."""
        coupling, a = self.coupling, self.gravity_size
        arrow = Arrow.assemble(evaluation.normal.hessian, coupling, a)
        b_time, b_camera = assemble_vector(-evaluation.normal.gradient, coupling, a)
        if evaluation.prior is None:
            return arrow, b_time, b_camera
        p, scale = evaluation.prior, evaluation.scale
        of_time = scale[coupling.time_component, None]
        of_camera = scale[coupling.camera_component, None]
        arrow = arrow.plus_diagonal(of_time * p.time_weight, of_camera * p.camera_weight, coupling)
        pull = coupling.by_component(of_camera * p.camera_pull)
        return arrow, b_time + of_time * p.time_pull, b_camera + pull


def _away(gravity: Tensor, target: Tensor, inverse_variance: Tensor) -> tuple[Tensor, Tensor]:
    """Tangent steps (T, 2) from gravity to its prior, and how much each way weighs.

    inverse_variance: (T, 1) any way; or (T, 2) in the angles roll and pitch, along which the
    tangent basis runs, the first shortened by the cosine of the pitch.
    """
    if inverse_variance.shape[1] == 1:
        away = sphere.difference(gravity, target, sphere.tangent_basis(gravity))
        return away, inverse_variance.expand_as(away)
    (roll, pitch), (wanted_roll, wanted_pitch) = map(sphere.to_roll_pitch, (gravity, target))
    turn = torch.remainder(wanted_roll - roll + torch.pi, 2 * torch.pi) - torch.pi
    # Straight up and down roll has no meaning; the floor keeps it from pulling without end.
    length = torch.stack(
        [torch.cos(pitch).clamp(min=sphere.LEAST_COSINE), torch.ones_like(pitch)], 1
    )
    return torch.stack([turn, wanted_pitch - pitch], 1) * length, inverse_variance / length**2


@dataclass(frozen=True)
class PriorTerms:
    """Diagonal weights and weighted pulls towards the priors, and their cost (K,)."""

    time_weight: Tensor
    time_pull: Tensor
    camera_weight: Tensor
    camera_pull: Tensor
    cost: Tensor


@dataclass(frozen=True)
class Evaluation:
    """A state's normal equations per image, its costs and s^2 per component (K,)."""

    normal: Normal
    cost: Tensor
    scale: Tensor
    prior: PriorTerms | None

    def total(self, scale: Tensor) -> Tensor:
        """E + s^2 priors, (K,)."""
        return self.cost if self.prior is None else self.cost + scale * self.prior.cost

    def where(self, keep: Tensor, other: Evaluation, coupling: Coupling) -> Evaluation:
        """This evaluation in the components (K,) to keep, the other one elsewhere."""
        image = keep if coupling.separate else keep[coupling.camera_component[coupling.camera]]
        normal = Normal(
            hessian=torch.where(image[:, None, None], self.normal.hessian, other.normal.hessian),
            gradient=torch.where(image[:, None], self.normal.gradient, other.normal.gradient),
            cost=torch.where(image, self.normal.cost, other.normal.cost),
        )
        prior = None
        if self.prior is not None and other.prior is not None:
            time = keep[coupling.time_component][:, None]
            camera = keep[coupling.camera_component][:, None]
            a, b = self.prior, other.prior
            prior = PriorTerms(
                time_weight=torch.where(time, a.time_weight, b.time_weight),
                time_pull=torch.where(time, a.time_pull, b.time_pull),
                camera_weight=torch.where(camera, a.camera_weight, b.camera_weight),
                camera_pull=torch.where(camera, a.camera_pull, b.camera_pull),
                cost=torch.where(keep, a.cost, b.cost),
            )
        return Evaluation(
            normal,
            torch.where(keep, self.cost, other.cost),
            torch.where(keep, self.scale, other.scale),
            prior,
        )


def estimated_scale(info: Information, coupling: Coupling) -> Tensor:
    """s^2 (K,) that makes the curvature of E / s^2 match the scatter of its scores."""
    scatter = coupling.component_sum(info.scatter.diagonal(dim1=1, dim2=2))
    curvature = coupling.component_sum(info.hessian.diagonal(dim1=1, dim2=2))
    # Parameters that the data say nothing about have neither.
    seen = curvature > 0
    ratio = torch.where(seen, scatter / torch.where(seen, curvature, 1.0), 0.0)
    return (ratio.sum(1) / seen.sum(1).clamp(min=1)).clamp(min=SMALLEST_SCALE)
