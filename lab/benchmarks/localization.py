"""Does gravity help to localise? Recall with and without it, as the tables in docs/localization.md.

python lab/benchmarks/localization.py                      everything
python lab/benchmarks/localization.py --scenes 50          fewer rooms
python lab/benchmarks/localization.py --outliers 0.9 --inliers 12

Each scene is a room of 12 x 9 x 3 m with points on its walls, floor, ceiling and furniture, and a
hand-held photo of it. The same matches and the same samples are used by all rows of a table.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch

from geocalib import Camera
from geocalib.localize import GravityPrior, LocalizeOptions, Pose, localize
from geocalib.localize.rotation import from_vector

Array = npt.NDArray[np.float64]

ROOM = np.array([12.0, 3.0, 9.0])
"""Metres: width, height (y points down), depth."""
SIZE = (1200, 900)
PIXEL_NOISE = 1.5
POINT_NOISE = 0.04
"""Metres, one sigma per axis, of the model's points."""
THRESHOLDS = ((0.25, 10.0), (0.5, 10.0), (1.0, 10.0))
"""Metres and degrees."""
DOWN = np.array([0.0, 1.0, 0.0])

METHODS = {
    "no gravity": (1.0, 0.0),
    "+ in refinement": (1.0, None),
    "+ in RANSAC": (None, None),
}
"""Reward and weight of the gravity; None is the default."""


@dataclass(frozen=True)
class Scene:
    """One photo's matches with the truth."""

    camera: Camera
    pixels: Array
    points: Array
    rotation: Array
    centre: Array
    gravity: GravityPrior


def room_points(generator: np.random.Generator, count: int) -> Array:
    """(count, 3) on the six sides of the room and on boxes that stand in it."""
    points = generator.uniform(0, 1, (count, 3)) * ROOM
    side = generator.integers(0, 6, count)
    for axis in range(3):
        for end in range(2):
            points[side == 2 * axis + end, axis] = end * ROOM[axis]
    # Furniture: a third of the points hang at any height within a metre of a wall.
    furniture = generator.random(count) < 1 / 3
    points[furniture] *= 1 - generator.uniform(0, 0.1, (int(furniture.sum()), 1))
    return points


def make_scene(seed: int, inliers: int, outlier_share: float) -> Scene:
    """A photo with that many right matches and that share of wrong ones.

    Half of the wrong matches are taken for another point within a metre of the right one (window
    next to window), half for any point of the room.
    """
    generator = np.random.default_rng(seed)
    focal = generator.uniform(700, 1200)
    camera = Camera.create("pinhole", f=focal, size=SIZE, dtype=torch.float64)
    yaw = generator.uniform(-math.pi, math.pi)
    pitch, roll = np.radians(generator.normal(0, [12, 5]))
    rotation = (
        from_vector(np.array([0, 0, roll]))
        @ from_vector(np.array([pitch, 0, 0]))
        @ from_vector(np.array([0, yaw, 0]))
    )
    centre = np.array([0.2, 0.35, 0.2]) * ROOM + generator.uniform(0, [0.6, 0.3, 0.6]) * ROOM
    everything = room_points(generator, 20_000)
    local = (everything - centre) @ rotation.T
    pixels, valid = (part[0].numpy() for part in camera.project(torch.from_numpy(local)[None]))
    seen = np.flatnonzero(valid & (pixels >= 0).all(1) & (pixels < SIZE).all(1))
    wrong = round(inliers * outlier_share / (1 - outlier_share))
    chosen = generator.choice(seen, inliers + wrong, replace=len(seen) < inliers + wrong)
    matched = everything[chosen].copy()
    near = inliers + wrong // 2
    for i in range(inliers, near):
        distance = np.linalg.norm(everything - everything[chosen[i]], axis=1)
        matched[i] = everything[generator.choice(np.flatnonzero((distance > 0.2) & (distance < 1)))]
    matched[near:] = everything[generator.integers(0, len(everything), len(chosen) - near)]
    sigma_deg = generator.uniform(1, 2)
    tilt = np.radians(sigma_deg) * generator.normal(size=2)
    gravity = rotation @ DOWN
    across = np.linalg.svd(gravity[None])[2][1:]
    estimate = from_vector(tilt @ across) @ gravity
    order = generator.permutation(len(chosen))
    return Scene(
        camera,
        (pixels[chosen] + generator.normal(0, PIXEL_NOISE, (len(chosen), 2)))[order],
        (matched + generator.normal(0, POINT_NOISE, matched.shape))[order],
        rotation,
        centre,
        GravityPrior(estimate, DOWN, sigma_deg),
    )


def errors(pose: Pose, scene: Scene) -> tuple[float, float]:
    """Metres and degrees; infinite for a failure."""
    if pose.status.failed:
        return math.inf, math.inf
    turn = pose.rotation @ scene.rotation.T
    cosine = np.clip((np.trace(turn) - 1) / 2, -1, 1)
    return float(np.linalg.norm(pose.centre - scene.centre)), math.degrees(np.arccos(cosine))


def table(share: float, inliers: int, scenes: Sequence[Scene], options: LocalizeOptions) -> None:
    """One block of rows: the same scenes by each method."""
    for method, (reward, weight) in METHODS.items():
        changed = {"gravity_reward": reward, "gravity_weight": weight}
        changed = {name: value for name, value in changed.items() if value is not None}
        chosen = replace(options, **changed)
        begin = time.perf_counter()
        found = []
        for scene in scenes:
            prior = None if method == "no gravity" else scene.gravity
            found.append(
                errors(localize(scene.pixels, scene.points, scene.camera, prior, chosen), scene)
            )
        seconds = (time.perf_counter() - begin) / len(scenes)
        distance, angle = np.array(found).T
        recalls = [f"{100 * np.mean((distance < d) & (angle < a)):.1f}" for d, a in THRESHOLDS]
        median = np.median(distance)
        row(f"{share:.0%}", inliers, method, *recalls, f"{median:.2f}", f"{seconds:.2f}")


def row(*cells: object) -> None:
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scenes", type=int, default=200)
    parser.add_argument("--outliers", type=float, nargs="+", default=[0.8, 0.9, 0.95, 0.97])
    parser.add_argument("--inliers", type=int, nargs="+", default=[8, 15, 30])
    parser.add_argument("--iterations", type=int, default=LocalizeOptions.max_iterations)
    arguments = parser.parse_args()
    options = LocalizeOptions(max_iterations=arguments.iterations)
    limits = [f"{d:g} m, {a:g}°" for d, a in THRESHOLDS]
    row("outliers", "right matches", "method", *limits, "median m", "s each")
    row(*["---"] * 8)
    for share in arguments.outliers:
        for inliers in arguments.inliers:
            scenes = [make_scene(seed, inliers, share) for seed in range(arguments.scenes)]
            table(share, inliers, scenes, options)


if __name__ == "__main__":
    main()
