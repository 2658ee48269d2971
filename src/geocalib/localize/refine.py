"""The best pose of given inliers: robust Levenberg-Marquardt with gravity as a regulariser.

Minimised over the pose, with n inliers of pixel errors e_i, their noise s, and the gravity:

    sum c^2 log(1 + |e_i|^2 / (c s)^2)  +  weight n |R g_world - g_camera|^2 / sigma^2.

A loop of its own: its unknowns are a rotation and a position in a world, for which the state, the
bounds and the couplings of ``solver.optimum`` have no meaning. A step of either takes equally long
(``lab/benchmarks/loops.py``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from geocalib.localize.matches import Matches
from geocalib.localize.pose import GravityPrior
from geocalib.localize.rotation import cross_matrix, from_vector

Array = npt.NDArray[np.float64]

CAUCHY_SCALE = 2.0
"""c: pixel errors well beyond this many sigmas of the noise count little."""

MEDIAN = 2 * np.log(2)
"""The median of |e|^2 / s^2 for Gaussian noise in two dimensions."""

LEAST_NOISE = 0.5
"""Pixels: no keypoint is better, however well a few of them happen to agree."""

FIRST_DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-3, 1e-9, 1e6

SMALL_GAIN = 1e-9
"""Relative gain of the cost at which the steps end."""


@dataclass(frozen=True, eq=False)
class PoseEstimate:
    """A pose on the way."""

    rotation: Array
    """(3, 3)."""
    translation: Array
    """(3,)."""

    def moved(self, step: Array) -> PoseEstimate:
        """After the motion P -> exp(w) P + v of step (6,) = (w, v)."""
        turn = from_vector(step[:3])
        return PoseEstimate(turn @ self.rotation, turn @ self.translation + step[3:])


@dataclass(frozen=True, eq=False)
class PoseProblem:
    """The inliers, how noisy they are, and how much the gravity weighs."""

    inliers: Matches
    noise: float
    """Pixels, one sigma per axis."""
    gravity: GravityPrior | None
    gravity_weight: float
    """All in all: already times the number of inliers."""

    @classmethod
    def create(
        cls,
        inliers: Matches,
        start: PoseEstimate,
        gravity: GravityPrior | None,
        weight_per_inlier: float,
    ) -> PoseProblem:
        """With the noise that the errors at the start show."""
        squared = inliers.squared_errors(start.rotation[None], start.translation[None])[0]
        return cls(
            inliers,
            noise_of(squared),
            None if weight_per_inlier == 0 else gravity,
            weight_per_inlier * len(inliers),
        )

    def cost(self, estimate: PoseEstimate) -> float:
        squared = self.inliers.squared_errors(
            estimate.rotation[None], estimate.translation[None]
        ).sum(0)
        scale = CAUCHY_SCALE**2
        cost = scale * float(np.log1p(squared / (scale * self.noise**2)).sum())
        if self.gravity is not None:
            miss = estimate.rotation @ self.gravity.world - self.gravity.camera
            cost += self.gravity_weight * float(miss @ miss) / self.gravity.sigma**2
        return cost

    def normal_equations(self, estimate: PoseEstimate) -> tuple[Array, Array, Array]:
        """(6, 6) Hessian and (6,) gradient of half the cost, with the kernel's weights held; and
        the (6, 6) variance of that gradient if noise and sigma are what they are said to be."""
        error, jacobian = self.inliers.residuals(estimate.rotation, estimate.translation)
        error, jacobian = error / self.noise, jacobian / self.noise
        weight = 1 / (1 + (error * error).sum(-1) / CAUCHY_SCALE**2)
        weighted = weight[:, None, None] * jacobian
        hessian = np.einsum("nij,nik->jk", weighted, jacobian)
        gradient = np.einsum("nij,ni->j", weighted, error)
        spread = np.einsum("nij,nik->jk", weighted, weighted)
        if self.gravity is not None:
            seen = estimate.rotation @ self.gravity.world
            turn = np.zeros((3, 6))
            turn[:, :3] = -cross_matrix(seen) / self.gravity.sigma
            miss = (seen - self.gravity.camera) / self.gravity.sigma
            hessian += self.gravity_weight * turn.T @ turn
            gradient += self.gravity_weight * turn.T @ miss
            spread += self.gravity_weight**2 * turn.T @ turn
        return hessian, gradient, spread


def noise_of(squared: Array) -> float:
    """One sigma per axis, pixels, of n inliers with squared errors (n,) at a fitted pose."""
    freedom = max(2 * len(squared) - 6, 1) / (2 * len(squared))
    return max(float(np.sqrt(np.median(squared) / (MEDIAN * freedom))), LEAST_NOISE)


def refine(problem: PoseProblem, start: PoseEstimate, max_steps: int) -> PoseEstimate:
    """The pose of least cost; a step that does not lower it is not taken."""
    estimate, cost, damping = start, problem.cost(start), FIRST_DAMPING
    hessian, gradient, _ = problem.normal_equations(estimate)
    for _ in range(max_steps):
        damped = hessian + damping * np.diag(np.diag(hessian) + np.finfo(np.float64).tiny)
        try:
            step = np.linalg.solve(damped, -gradient).astype(np.float64)
        except np.linalg.LinAlgError:
            damping *= 10
            continue
        trial = estimate.moved(step)
        trial_cost = problem.cost(trial)
        if trial_cost < cost:
            gain, estimate, cost = cost - trial_cost, trial, trial_cost
            if gain <= SMALL_GAIN * cost:
                break
            damping = max(damping / 10, LEAST_DAMPING)
            hessian, gradient, _ = problem.normal_equations(estimate)
        elif damping >= MOST_DAMPING:
            break
        else:
            damping *= 10
    return estimate


def covariance(problem: PoseProblem, estimate: PoseEstimate) -> Array:
    """(6, 6) of the motion (w, v) at the optimum: in the sandwich form, as the weight of the
    gravity need not be the inverse of its variance. NaN where the inliers leave a motion free."""
    hessian, _, spread = problem.normal_equations(estimate)
    try:
        inverse = np.linalg.inv(hessian)
    except np.linalg.LinAlgError:
        return np.full((6, 6), np.nan)
    result: Array = inverse @ spread @ inverse
    return result
