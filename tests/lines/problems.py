"""Streets that do not exist, as problems for the parts of lines that look for their minimum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from streets import camera_of, gravity_of, headings_of, prior_of, segments_along

from geocalib.lines.descent import LineProblem
from geocalib.lines.prior import network_prior
from geocalib.lines.unknowns import Array, Guess, SegmentBatch
from geocalib.solver.coupling import couple

REPEATS = 4.0
GRAVITY = gravity_of(3.0, 8.0)
DEGREES = (30.0, 120.0)
ALONE = couple(1, None, None)


@dataclass(frozen=True)
class Street:
    """A problem of one picture, and the truth that its segments were made from."""

    problem: LineProblem
    truth: Guess

    def off(self, guess: Guess) -> tuple[float, float]:
        """Degrees of gravity and log f by which a guess misses the truth."""
        cosine = float((guess.gravity[0, 0] * self.truth.gravity[0, 0]).sum())
        angle = float(np.degrees(np.arccos(min(1.0, cosine))))
        return angle, float(abs(guess.log_f[0, 0] - self.truth.log_f[0, 0]))


def street(
    model: str = "pinhole",
    degrees: tuple[float, ...] = DEGREES,
    each: int = 60,
    clutter: int = 30,
    noise: float = 0.3,
    log_f_off: float = 0.1,
) -> Street:
    """Vertical edges and level ones along headings, seen by a camera of a model."""
    camera = camera_of(model)
    directions = np.concatenate([GRAVITY[None], headings_of(GRAVITY, degrees)])
    segments = segments_along(camera, directions, each, clutter, noise, length=60.0)
    prior, layout = network_prior([prior_of(camera, GRAVITY, log_f_off=log_f_off)], ALONE)
    active = np.ones((1, 3), np.bool_)
    problem = LineProblem(SegmentBatch.create([segments]), active, layout, prior, REPEATS)
    truth = Guess(
        GRAVITY[None, None],
        np.log(camera.f)[None],
        camera.distortion[None],
        camera.c[None],
        heading(degrees[0])[None, None, None],
    )
    return Street(problem, truth)


def heading(degrees: float) -> Array:
    """(3,) in the camera frame."""
    return np.asarray(headings_of(GRAVITY, [degrees])[0])
