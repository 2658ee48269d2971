"""From the matches of one image to its pose: search, refinement, covariance."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from geocalib.cameras import Camera
from geocalib.localize.matches import prepare
from geocalib.localize.options import LocalizeOptions
from geocalib.localize.pose import GravityPrior, Pose, PoseStatus
from geocalib.localize.ransac import SAMPLE, Search
from geocalib.localize.refine import PoseEstimate, covariance

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
    """The pose of a camera (a batch of 1) from pixels (N, 2) and world points (N, 3).

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
