"""Why there is more than one loop of Levenberg-Marquardt: what a step of each takes.

python lab/benchmarks/loops.py

``solver.optimum`` fits fields and ``lines.descent`` lines, both as one photo is calibrated with a
named lens; ``localize.refine`` a pose of six unknowns to 100 matches. Each row has the CPU time of
its minimisations, divided by the steps: a proposal, its cost, and new normal equations if it
is taken. Training (``geocalib_lab.training.optimum``) takes a fixed number of steps with the
solver's normal equations, so as never to wait for a GPU.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from geocalib import Calibrator, Camera
from geocalib.lines import batched_search, descent
from geocalib.localize import estimate, localize, refine
from geocalib.localize.rotation import from_vector
from geocalib.solver import objective, optimum

ROOT = Path(__file__).parents[2]
SOLVER = import_module("geocalib.solver.fit")
"""The module, whose name in the package is that of its function."""


class Clock:
    """A function that adds up the time of its calls."""

    def __init__(self, inner: Callable[..., Any]) -> None:
        self.inner, self.calls, self.seconds = inner, 0, 0.0

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        start = time.thread_time()
        try:
            return self.inner(*args, **keywords)
        finally:
            self.seconds += time.thread_time() - start
            self.calls += 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=20)
    repeats = parser.parse_args().repeats
    calibrator = Calibrator(engine="onnx")
    photo = ROOT / "examples" / "town.jpg"
    calibrator.calibrate(photo, camera_model="pinhole")
    fields, lines = Clock(optimum.minimise), Clock(descent.minimise)
    steps, line_steps = Clock(objective.Problem.step), Clock(descent._step)
    with (
        patch.object(SOLVER, "minimise", fields),
        patch.object(batched_search, "minimise", lines),
        patch.object(objective.Problem, "step", lambda *given: steps(*given)),
        patch.object(descent, "_step", line_steps),
    ):
        for _ in range(repeats):
            calibrator.calibrate(photo, camera_model="pinhole")
    turn, generator = from_vector(np.array([0.1, 0.2, 0.0])), np.random.default_rng(0)
    world = generator.uniform([-2, -2, 4], [2, 2, 8], (100, 3))
    camera = Camera.create("pinhole", 800.0, (1200, 900))
    pixels = camera.project((world @ turn.T)[None])[0][0] + generator.normal(0, 1, (100, 2))
    poses, pose_steps = Clock(estimate.refine), Clock(refine.PoseEstimate.moved)
    with (
        patch.object(estimate, "refine", poses),
        patch.object(refine.PoseEstimate, "moved", lambda *given: pose_steps(*given)),
    ):
        for _ in range(repeats):
            localize(pixels, world, camera)
    for name, loop, step in (
        ("solver.optimum", fields, steps),
        ("lines.descent", lines, line_steps),
        ("localize.refine", poses, pose_steps),
    ):
        print(f"{name:16} {1e3 * loop.seconds / step.calls:.3f} ms a step, {step.calls} steps")


if __name__ == "__main__":
    main()
