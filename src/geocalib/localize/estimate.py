"""From the matches of one image to its pose: search, refinement, covariance.

The search is LO-RANSAC. A pose's score (MSAC) is the sum over the matches of max(0, 1 - e^2 /
threshold^2). Where its gravity is within 2 sigma of the estimate the score is multiplied by a
constant: a weak constraint, as gravity is never exact, that settles which of the poses with
little support is right.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from geocalib.cameras import Camera
from geocalib.localize.matches import Matches, prepare
from geocalib.localize.minimal import choose_solver, solve_samples
from geocalib.localize.options import LocalizeOptions
from geocalib.localize.pose import GravityPrior, Pose, PoseStatus
from geocalib.localize.refine import PoseEstimate, PoseProblem, covariance, refine

Array = npt.NDArray[np.float64]

SAMPLE = 3

BATCH = 250
"""Samples that are drawn and scored together."""

REWARD_SIGMAS = 2.0
"""How far a pose's gravity may be from the estimate, in sigmas, for the reward."""

LOCAL_ROUNDS, LOCAL_STEPS = 3, 3
"""Rounds of a local optimisation, each with new inliers, and steps in each round."""


@dataclass(frozen=True, eq=False)
class RansacPose:
    """The best pose of a search."""

    estimate: PoseEstimate
    score: float
    iterations: int


@dataclass(frozen=True, eq=False)
class Search:
    """The matches of an image, with all that poses are judged by."""

    matches: Matches
    gravity: GravityPrior | None
    options: LocalizeOptions

    def scores(self, rotations: Array, translations: Array) -> Array:
        """(K,) of poses (K, 3, 3), (K, 3)."""
        squared = self.matches.squared_errors(rotations, translations)
        scores: Array = np.maximum(0, 1 - squared / self.options.threshold**2).sum(-1)
        if self.gravity is not None:
            near = self.gravity.angle(rotations) < REWARD_SIGMAS * self.gravity.sigma
            scores = np.where(near, self.options.gravity_reward * scores, scores)
        return scores

    def inliers(self, estimate: PoseEstimate) -> npt.NDArray[np.bool_]:
        """(N,) whether each match agrees with the pose."""
        squared = self.matches.squared_errors(
            estimate.rotation[None], estimate.translation[None]
        ).squeeze(0)
        chosen: npt.NDArray[np.bool_] = squared < self.options.threshold**2
        return chosen

    def score(self, estimate: PoseEstimate) -> float:
        return float(self.scores(estimate.rotation[None], estimate.translation[None])[0])

    def polish(
        self, estimate: PoseEstimate, gravity: GravityPrior | None, steps: int
    ) -> PoseEstimate:
        """Refined on its inliers, and on those of the refined pose, until they stay the same."""
        chosen = self.inliers(estimate)
        for _ in range(LOCAL_ROUNDS):
            if chosen.sum() <= SAMPLE:
                break
            problem = self.problem(chosen, estimate, gravity)
            estimate = refine(problem, estimate, steps)
            before, chosen = chosen, self.inliers(estimate)
            if np.array_equal(before, chosen):
                break
        return estimate

    def problem(
        self, chosen: npt.NDArray[np.bool_], estimate: PoseEstimate, gravity: GravityPrior | None
    ) -> PoseProblem:
        """The refinement on the chosen matches, their noise taken at the estimate."""
        return PoseProblem.create(
            self.matches[chosen], estimate, gravity, self.options.gravity_weight
        )

    def run(self) -> RansacPose | None:
        """The pose of the highest score; None where no sample has a pose."""
        options, count = self.options, len(self.matches)
        generator = np.random.default_rng(options.seed)
        solver = choose_solver(options.solver)
        best: RansacPose | None = None
        needed, drawn = float(options.max_iterations), 0
        while drawn < min(max(needed, options.min_iterations), options.max_iterations):
            samples = draw(generator, count, min(BATCH, options.max_iterations - drawn))
            drawn += len(samples)
            R, t = solve_samples(self.matches.rays[samples], self.matches.points[samples], solver)
            if not len(R):
                continue
            # The best of each batch is improved before it is compared: a sample of noisy inliers
            # may agree with few of the others.
            scores = self.scores(R, t)
            top = int(scores.argmax())
            candidate = self._improve(PoseEstimate(R[top], t[top]), float(scores[top]))
            if best is None or candidate.score > best.score:
                best = candidate
                share = float(self.inliers(best.estimate).mean())
                needed = samples_needed(share, options.confidence)
        return None if best is None else RansacPose(best.estimate, best.score, drawn)

    def _improve(self, estimate: PoseEstimate, score: float) -> RansacPose:
        """The local optimum near a pose, or the pose where that scores no higher."""
        polished = self.polish(estimate, self.gravity, LOCAL_STEPS)
        polished_score = self.score(polished)
        if polished_score > score:
            return RansacPose(polished, polished_score, 0)
        return RansacPose(estimate, score, 0)


def draw(generator: np.random.Generator, count: int, samples: int) -> npt.NDArray[np.int64]:
    """(samples, 3) indices below count, three different ones each."""
    # Each index leaves out those before it: from a shorter range, moved past them in order.
    first = generator.integers(0, count, samples)
    second = generator.integers(0, count - 1, samples)
    third = generator.integers(0, count - 2, samples)
    second += second >= first
    low, high = np.minimum(first, second), np.maximum(first, second)
    third += third >= low
    third += third >= high
    return np.stack([first, second, third], -1)


def samples_needed(share: float, confidence: float) -> float:
    """How many samples hold, with that confidence, one of inliers only if they are that share."""
    chance = share**SAMPLE
    if chance >= 1:
        return 1.0
    return math.log1p(-confidence) / math.log1p(-chance) if chance > 0 else math.inf


FINAL_STEPS = 30
"""Refinement steps for each choice of inliers."""

CONTRADICTION_SIGMAS = 3.0
"""A refined pose whose gravity is still further from the estimate proves the estimate wrong."""

LEAST_KEPT = 0.5
"""So does one that costs the pose more than this part of its inliers."""


def localize(
    points2d: npt.ArrayLike,
    points3d: npt.ArrayLike,
    camera: Camera,
    gravity_prior: GravityPrior | None = None,
    options: LocalizeOptions | None = None,
) -> Pose:
    """The pose of a camera from pixels (N, 2) and world points (N, 3).

    Most matches may be wrong. Without enough right ones the pose has a status that says so, and
    numbers that are NaN.
    """
    options = options or LocalizeOptions()
    matches, usable = prepare(points2d, points3d, camera)
    if len(matches) <= SAMPLE:
        return Pose.failure(PoseStatus.TOO_FEW_MATCHES, len(usable))
    # Worlds may have their origin far away, where small differences drown in rounding.
    origin = np.median(matches.points, axis=0)
    matches = matches.create(matches.rays, matches.derivatives, matches.points - origin)
    search = Search(matches, gravity_prior, options)
    found = search.run()
    if found is None:
        return Pose.failure(PoseStatus.NO_CONSENSUS, len(usable), options.max_iterations)
    estimate, gravity = search.polish(found.estimate, gravity_prior, FINAL_STEPS), gravity_prior
    if gravity is not None and _contradicted(gravity, search, found.estimate, estimate):
        estimate, gravity = search.polish(found.estimate, None, FINAL_STEPS), None
    chosen = search.inliers(estimate)
    if chosen.sum() < options.min_inliers:
        return Pose.failure(PoseStatus.NO_CONSENSUS, len(usable), found.iterations)
    inliers = np.zeros_like(usable)
    inliers[usable] = chosen
    return Pose(
        rotation=estimate.rotation,
        translation=estimate.translation - estimate.rotation @ origin,
        inliers=inliers,
        score=search.score(estimate),
        covariance=covariance(search.problem(chosen, estimate, gravity), estimate),
        iterations=found.iterations,
        status=PoseStatus.FOUND,
    )


def _contradicted(
    gravity: GravityPrior, search: Search, before: PoseEstimate, refined: PoseEstimate
) -> bool:
    """Whether the matches speak against the gravity: they resist it, or it tears them away."""
    resisted = float(gravity.angle(refined.rotation)) > CONTRADICTION_SIGMAS * gravity.sigma
    kept, had = search.inliers(refined).sum(), search.inliers(before).sum()
    return resisted or bool(kept < LEAST_KEPT * had)
