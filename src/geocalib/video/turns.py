"""How a camera turned from one frame to the next, by points that both show: a gyroscope of pixels.

Corners are followed by optical flow. A turn moves all of them as one; a camera that also travels
moves near ones further, along lines through one point, and by how much is unknown. So for each of
some directions of travel, what a point does across its line is taken at its word, and what it does
along it counts as little as all points together scatter there. Residuals follow Cauchy's
distribution: what moves by itself is far out in its tails. Directions that explain the points
alike, as all do if the camera stands still, are averaged, and what they disagree about the turn
goes into its covariance. Pictures are stretched towards their edges when the camera turns, so the
focal length is estimated along with it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from geocalib.cameras import Camera
from geocalib.localize.rotation import from_vector
from geocalib.video.heading import Array, Turn

LONG_SIDE = 640
"""Pixels of the pictures that points are followed in."""
POINTS, FEWEST = 200, 25
"""Corners to look for, and to find again."""
SHARE_FOUND = 0.4
"""Least share of corners found again; between two scenes hardly any are."""
LEVELS = 4
"""Halvings of the picture, so that points that move far are found."""
RETURN = 0.7
"""Pixels by which a point that is followed there and back may miss its start."""
DIRECTIONS = 48
"""Number of directions of travel that are tried."""
BETWEEN = 0.1
"""Share of the scatter along lines of travel that remains between tried directions."""
FINEST = 0.1
"""Pixels: the least median residual that is believed."""
ALIKE = 10.0
"""Points that err as one, since neighbours move alike."""
REFINEMENTS = 5
STEP = 1e-3
"""Step of log f, for the derivative."""
STILL = 1.3
"""By how much more points may scatter along their lines of travel than across while the camera
stands: of one that travels, the focal length does not show."""
UNKNOWNS = 5
"""The turn, log f, and the mean shift by travel."""
SHIFTS = (0.0, 0.0, 3.0)
"""Sigma of the mean shift, in units of the scatter that it comes with, one round after the other:
what a turn alone explains is explained first."""
SHIFTED = 0.05
"""The same in units of the scatter that all points have."""
VAGUE = 0.5
"""Sigma of log f around the one that is given, so that a camera that stands still has one."""
LARGEST_SIGMA = math.radians(2.0)
"""A turn that is less certain is none."""


@dataclass(frozen=True)
class Flow:
    """The places of corners in two frames."""

    before: Array
    """(N, 2) pixels."""
    after: Array
    """(N, 2)."""


class Watcher:
    """Follows points from each frame to the next."""

    def __init__(self) -> None:
        self._last: npt.NDArray[np.uint8] | None = None

    def see(self, pixels: npt.NDArray[np.uint8]) -> Flow | None:
        """Where points of the frame before are in this one (H, W, 3); None if too few are."""
        scale = min(1.0, LONG_SIDE / max(pixels.shape[:2]))
        grey = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)
        if scale < 1:
            grey = cv2.resize(grey, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
        last, self._last = self._last, np.asarray(grey, dtype=np.uint8)
        if last is None or last.shape != self._last.shape:
            return None
        flow = _followed(last, self._last)
        if flow is None:
            return None
        # OpenCV counts from the centre of the first pixel. Sides are rounded when it shrinks.
        size = np.array(self._last.shape[::-1]) / np.array(pixels.shape[1::-1])
        return Flow((flow.before + 0.5) / size, (flow.after + 0.5) / size)


def _followed(last: npt.NDArray[np.uint8], new: npt.NDArray[np.uint8]) -> Flow | None:
    """Corners of the last picture in the new one."""
    corners = cv2.goodFeaturesToTrack(last, POINTS, 0.005, max(last.shape) / 50)
    if corners is None or len(corners) < FEWEST:
        return None
    # Answers are written to where guesses could be.
    there, found, _ = cv2.calcOpticalFlowPyrLK(last, new, corners, corners.copy(), maxLevel=LEVELS)
    back, returned, _ = cv2.calcOpticalFlowPyrLK(new, last, there, there.copy(), maxLevel=LEVELS)
    missed = np.linalg.norm((back - corners)[:, 0], axis=1)
    inside = ((there[:, 0] >= 0) & (there[:, 0] <= np.array(new.shape[::-1]) - 1)).all(1)
    good = (found[:, 0] > 0) & (returned[:, 0] > 0) & (missed < RETURN) & inside
    if good.sum() < max(FEWEST, SHARE_FOUND * len(corners)):
        return None
    return Flow(corners[good, 0].astype(np.float64), there[good, 0].astype(np.float64))


def turn_of(flow: Flow, camera: Camera) -> Turn | None:
    """The turn that moves points so, as seen by a camera; None if it is too uncertain."""
    camera = camera.cast(np.float64)
    longer = replace(camera, f=camera.f * math.exp(STEP))
    a, there = _rays(flow.before, camera)
    b, here = _rays(flow.after, camera)
    a_longer, there_longer = _rays(flow.before, longer)
    good = there & here & there_longer
    if good.sum() < FEWEST:
        return None
    rotation, travel = np.eye(3), _directions(DIRECTIONS)
    finest = FINEST / camera.f.item()
    for shift in SHIFTS:
        ahead = a[good] @ rotation.T
        moved = b[good] - ahead
        # Of where the turn takes points, not of where they were found: a longer lens makes angles
        # of everything smaller, errors included.
        taken, seen = _rays(_pixels(ahead, camera), longer)
        stretched = (taken - a_longer[good] @ rotation.T) / STEP * seen[:, None]
        step, joint, parallax = _step(ahead, moved, stretched, travel, finest, shift)
        # Given the focal length, which the step finds as well.
        slope = joint[:3, 3] / joint[3, 3]
        rotation = from_vector(step[:3] - slope * step[3]) @ rotation
    covariance = joint[:3, :3] - joint[3, 3] * np.outer(slope, slope)
    if not math.sqrt(np.linalg.eigvalsh(covariance)[-1]) < LARGEST_SIGMA:
        return None
    log_f = math.log(camera.f.item())
    information = 0.0 if parallax > STILL else max(1 / joint[3, 3] - 1 / VAGUE**2, 0.0)
    better = log_f + (step[3] / joint[3, 3] / information if information else 0.0)
    return Turn(rotation, covariance, log_f, slope, better, information)


def _rays(pixels: Array, camera: Camera) -> tuple[Array, npt.NDArray[np.bool_]]:
    """(N, 3) unit directions of pixels (N, 2), and which of them there are (N,)."""
    rays, valid = camera.unproject(pixels[None])
    return rays[0], valid[0]


def _pixels(rays: Array, camera: Camera) -> Array:
    """(N, 2) pixels of rays (N, 3)."""
    pixels, _ = camera.project(rays[None])
    return pixels[0]


def _step(
    ahead: Array, moved: Array, stretched: Array, travel: Array, finest: float, shift: float
) -> tuple[Array, Array, float]:
    """The small rotation and the change of log f (4,) that move rays (N, 3) by so much (N, 3),
    their covariance (4, 4), and by how much points scatter more along their lines than across.

    stretched: (N, 3) by how much more they move per unit of log f; travel: (D, 3) directions;
    finest: least median residual; shift: sigma of the mean shift, in units of the scatter that
    it comes with.
    """
    across = np.cross(ahead, travel[:, None])
    sine = np.linalg.norm(across, axis=-1, keepdims=True)
    across /= sine.clip(1e-6)
    axes = np.stack([across, np.cross(across, ahead)], 1)
    # Across and along the lines that travel moves points on: (D, 2, N).
    measured = (axes * moved).sum(-1)
    stretch = -(axes * stretched).sum(-1, keepdims=True)
    # By how much travel moves points on average.
    shifted = np.stack([np.zeros_like(sine), sine], 1)
    jacobian = np.concatenate([np.cross(ahead, axes), stretch, shifted], -1)
    vague = np.zeros((len(travel), UNKNOWNS, UNKNOWNS))
    vague[:, 3, 3] = 1 / VAGUE**2
    found: Any = np.zeros((len(travel), UNKNOWNS))
    for _ in range(REFINEMENTS):
        residual = measured - _times(jacobian, found)
        scale = np.median(np.abs(residual), axis=-1).clip(finest)
        scale[:, 1] = scale.max(1)
        # Points at different distances scatter where travel shifts them.
        apart = scale[:, 1] ** 2 - scale[:, 0] ** 2
        vague[:, 4, 4] = 1 / (shift**2 * apart + (SHIFTED * scale[:, 0]) ** 2)
        weight = 2 / (scale[..., None] ** 2 + residual**2) / ALIKE
        normal, right = _normal(jacobian, weight, measured)
        found = np.linalg.solve(normal + vague, right[..., None])[..., 0]
    unlikely = np.log(scale[..., None] + residual**2 / scale[..., None]).sum((1, 2)) / ALIKE
    chance = np.exp(unlikely.min() - unlikely)
    chance /= chance.sum()
    # What a residual of Cauchy's distribution tells.
    worth = np.broadcast_to(0.5 / scale[..., None] ** 2 / ALIKE, residual.shape)
    information, _ = _normal(jacobian, worth, measured)
    mean = chance @ found[:, :4]
    away = found[:, :4] - mean
    own = np.einsum("d,dij->ij", chance, np.linalg.inv(information + vague)[:, :4, :4])
    spread = np.einsum("d,di,dj->ij", chance, away, away)
    spread[:3, :3] += BETWEEN**2 * (chance @ apart) * np.eye(3)
    return mean, own + spread, float(chance @ (scale[:, 1] / scale[:, 0]))


def _times(jacobian: Array, unknowns: Array) -> Array:
    """(D, 2, N): a jacobian (D, 2, N, U) times unknowns (D, U)."""
    flat = jacobian.reshape(len(unknowns), -1, UNKNOWNS) @ unknowns[..., None]
    return flat.reshape(jacobian.shape[:-1])


def _normal(jacobian: Array, weight: Array, measured: Array) -> tuple[Array, Array]:
    """Normal equations: (D, U, U) and (D, U)."""
    flat = jacobian.reshape(len(jacobian), -1, UNKNOWNS)
    weighted = (flat * weight.reshape(len(jacobian), -1, 1)).transpose(0, 2, 1)
    right = weighted @ measured.reshape(len(jacobian), -1, 1)
    return weighted @ flat, right[..., 0]


def _directions(count: int) -> Array:
    """(count, 3) spread evenly over half of the sphere (a spiral of golden angles)."""
    z = (np.arange(count) + 0.5) / count
    angle = np.arange(count) * math.pi * (3 - math.sqrt(5))
    return np.stack([np.sqrt(1 - z**2) * np.cos(angle), np.sqrt(1 - z**2) * np.sin(angle), z], 1)
