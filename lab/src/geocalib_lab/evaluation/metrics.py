"""Errors of calibrations against the truth, and the numbers that sum them up.

A method that fails has error infinity; NaN counts as a failure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from geocalib.arrays import Array, degrees, double, namespace
from geocalib.cameras.camera import Camera
from geocalib.cameras.registry import get_model
from geocalib.geometry import gravity as sphere
from geocalib.geometry.fields import pixel_grid

THRESHOLDS = (1.0, 5.0, 10.0)
"""Degrees, up to which the recall curve is integrated."""

FLOOR = 1.0
"""Errors below this (degrees) count as none: ground truth is no better."""


def auc(
    errors: ArrayLike, thresholds: Sequence[float] = THRESHOLDS, floor: float = FLOOR
) -> tuple[float, ...]:
    """Area under the recall curve up to each threshold, over the threshold, in percent.

    With errors e_1 <= ... <= e_n, the curve is the polygon through (0, s), (floor, s) and
    (e_i, i / n) for every e_i > floor, where s is the share of errors <= floor; beyond the last
    error below a threshold it is flat. So the area at a threshold of ``floor`` is s.

    >>> auc([0.5, 3.0], thresholds=(1, 5))
    (50.0, 80.0)
    """
    values = np.sort(_failures_infinite(errors))
    if len(values) == 0:
        return tuple(float("nan") for _ in thresholds)
    below = int(np.searchsorted(values, floor, side="right"))
    recall = np.arange(below + 1, len(values) + 1) / len(values)
    x = np.concatenate([[0.0, floor], values[below:]])
    y = np.concatenate([[below / len(values)] * 2, recall])
    areas = []
    for threshold in thresholds:
        last = int(np.searchsorted(x, threshold, side="right"))
        at = np.append(x[:last], threshold)
        height = np.append(y[:last], y[last - 1])
        area = float((0.5 * (height[1:] + height[:-1]) * np.diff(at)).sum())
        areas.append(100 * area / threshold)
    return tuple(areas)


def recall(errors: ArrayLike, thresholds: Sequence[float]) -> tuple[float, ...]:
    """The share of errors up to each threshold, in percent.

    >>> recall([0.5, 2.0, float("inf"), 0.7], thresholds=(0.5, 1, 3))
    (25.0, 50.0, 75.0)
    """
    values = _failures_infinite(errors)
    return tuple(float(100 * np.mean(values <= t)) if len(values) else np.nan for t in thresholds)


def median(errors: ArrayLike) -> float:
    """The median; infinite where half or more have failed."""
    values = np.sort(_failures_infinite(errors))
    if len(values) == 0:
        return float("nan")
    return float(0.5 * (values[(len(values) - 1) // 2] + values[len(values) // 2]))


def summarise(errors: Mapping[str, ArrayLike]) -> dict[str, float]:
    """Per kind of error its median and its AUC at 1, 5 and 10: {kind_median, kind_auc1, ...}."""
    summary = {}
    for kind, values in errors.items():
        summary[f"{kind}_median"] = median(values)
        for threshold, area in zip(THRESHOLDS, auc(values), strict=True):
            summary[f"{kind}_auc{threshold:g}"] = area
    return summary


def gravity_errors(gravity: Array, truth: Array) -> dict[str, Array]:
    """Errors (B,) in degrees of gravities (B, 3): roll, pitch and the angle between them."""
    gravity, truth = double(gravity), double(truth)
    (roll, pitch), (true_roll, true_pitch) = map(sphere.to_roll_pitch, (gravity, truth))
    # The shorter way round.
    turn = (roll - true_roll + math.pi) % (2 * math.pi) - math.pi
    errors = {
        "roll": abs(turn),
        "pitch": abs(pitch - true_pitch),
        "gravity": sphere.angle_between(gravity, truth),
    }
    return {name: _infinite(degrees(value)) for name, value in errors.items()}


def vfov_error(camera: Camera, truth: Camera) -> Array:
    """The absolute error of the vertical field of view, (B,) degrees."""
    return _infinite(degrees(abs(double(camera.vfov) - double(truth.vfov))))


def k1_hat_error(k1: Array, truth: Camera) -> Array:
    """(B,) error of k1 (B,) in units of the image height: |k1 - k1_true| (H / f_true)^2."""
    shape = truth.size[:, 1] / truth.f
    return _infinite(abs(k1 - _true_k1(truth)) * shape * shape)


def pixel_distortion_error(k1: Array, truth: Camera) -> Array:
    """(B,) pixels that k1 (B,) misplaces a point by, on average over the true camera's image.

    The pixels are undistorted to rays and projected again with the true and the given k1, both
    with the true focal length. A ray at tan(theta) = r from the axis lands at f r (1 + k1 r^2)
    from the centre, so the two differ by f |k1 - k1_true| r^3. That is smooth: at most 64 x 64
    samples, one in the middle of each cell, give the mean of all pixels to 1 in 1,000.
    """
    xp, pinhole = namespace(truth.f), get_model("pinhole")
    errors = []
    for i in range(len(truth)):
        camera = truth[i].map(double)
        width, height = (int(v) for v in camera.size[0].tolist())
        columns, rows = min(width, 64), min(height, 64)
        cell = xp.stack([camera.size[0, 0] / columns, camera.size[0, 1] / rows])
        rays, valid = camera.unproject((pixel_grid(columns, rows, camera.f) * cell)[None])
        ideal = replace(camera, model=pinhole, distortion=camera.distortion[:, :0], f=camera.f)
        straight = ideal.normalise(ideal.project(rays)[0])
        r2 = (straight * straight).sum(-1)
        scale = xp.linalg.vector_norm(straight * camera.focal, axis=-1)
        moved = (double(k1)[i] - _true_k1(camera)) * r2 * scale
        errors.append(abs(moved)[valid].mean())
    return _infinite(xp.stack(errors))


def _true_k1(truth: Camera) -> Array:
    return truth.distortion[:, 0] if truth.distortion.shape[1] else 0 * truth.f


def _infinite(errors: Array) -> Array:
    xp = namespace(errors)
    return xp.where(xp.isnan(errors), math.inf, errors)


def _failures_infinite(errors: ArrayLike) -> NDArray[np.float64]:
    values = np.asarray(errors, dtype=np.float64).reshape(-1)
    return np.where(np.isnan(values), np.inf, values)
