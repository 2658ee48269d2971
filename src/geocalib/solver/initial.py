"""Where a fit starts: trivial, heuristic, or a minimal solver inside RANSAC."""

from __future__ import annotations

from geocalib.arrays import Array, as_array, cast, clip, counting, double, mean_rows, namespace
from geocalib.geometry.conventions import TRIVIAL_FOCAL
from geocalib.geometry.fields import Fields
from geocalib.solver.coupling import Coupling
from geocalib.solver.minimal import Guess, ransac
from geocalib.solver.observations import Observations
from geocalib.solver.options import Initial
from geocalib.solver.priors import Priors
from geocalib.solver.state import Frame, State

LEVEL = (0.0, 1.0, 0.0)
"""Gravity of a level camera."""


def initial_state(
    kind: Initial,
    parts: list[Fields],
    observations: Observations,
    frame: Frame,
    coupling: Coupling,
    priors: Priors,
) -> State:
    """The state to start from. What is known beforehand starts at its value."""
    centre = (
        0.5 * frame.size if priors.principal_point.value is None else priors.principal_point.value
    )
    xp = namespace(frame.size)
    size = frame.size[coupling.camera]
    guess = fallback = trivial(size)
    if kind == "heuristic":
        per_image, guesses, at = centre[coupling.camera], [], 0
        for part in parts:
            guesses.append(heuristic(part, per_image[at : at + len(part)]))
            at += len(part)
        guess = Guess(xp.concat([g.gravity for g in guesses]), xp.concat([g.f for g in guesses]))
    elif kind == "ransac":
        guess = ransac(observations, centre[coupling.camera], frame.aspect[coupling.camera])
    if guess is not fallback:
        usable = xp.isfinite(guess.f) & xp.isfinite(guess.gravity).all(1)
        guess = Guess(
            xp.where(usable[:, None], guess.gravity, fallback.gravity),
            xp.where(usable, guess.f, fallback.f),
        )
    shared, log_f = guess.gravity, xp.log(guess.f)
    if coupling.rotation is not None:
        shared = (double(coupling.rotation).mT @ shared[..., None])[..., 0]
    if not coupling.separate:
        log_f = mean_rows(log_f, coupling.camera, len(frame.size))
        shared = mean_rows(shared, coupling.time, len(coupling.time_component))
        # Guesses of cameras mounted against each other may cancel; then the rig counts as level.
        length = xp.linalg.vector_norm(shared, axis=1, keepdims=True)
        shared = xp.where(length > 0.1, shared / length, as_array(LEVEL, shared))
    log_f = xp.minimum(xp.maximum(log_f, frame.log_f_low), frame.log_f_high)
    start = as_array(frame.model.start, log_f)
    distortion = xp.broadcast_to(start, (len(log_f), len(start)))
    known = priors
    return State(
        gravity=shared if known.gravity.value is None else known.gravity.value,
        log_f=log_f if known.log_f.value is None else known.log_f.value[:, 0],
        distortion=distortion if known.distortion.value is None else known.distortion.value,
        c=centre,
        log_stretch=xp.zeros_like(log_f),
    )


def trivial(size: Array) -> Guess:
    """A level camera with f = 0.7 of the longer side, for images of size (B, 2)."""
    xp = namespace(size)
    level = xp.broadcast_to(as_array(LEVEL, size, xp.float64), (len(size), 3))
    return Guess(level, TRIVIAL_FOCAL * double(xp.max(size, axis=1)))


def heuristic(fields: Fields, centre: Array) -> Guess:
    """The field read off at the principal point (B, 2) and above and below it.

    At the principal point up is along -(g_x, g_y) and the latitude is -asin(g_z); the
    latitudes at the top and bottom span the vertical field of view.
    """
    width, height = fields.size
    xp = namespace(centre)
    column = clip(cast(centre[:, 0], xp.int64), 0, width - 1)
    row = clip(cast(centre[:, 1], xp.int64), 0, height - 1)
    images = counting(len(fields), centre)
    latitude = double(fields.latitude[:, 0])
    up = double(fields.up[images, :, row, column])
    up = up / xp.linalg.vector_norm(up, axis=1, keepdims=True)
    middle = latitude[images, row, column]
    gravity = xp.concat([-xp.cos(middle)[:, None] * up, -xp.sin(middle)[:, None]], axis=1)
    span = latitude[images, 0, column] - latitude[images, -1, column]
    # The rows' centres lie half a pixel inside the image at either end.
    return Guess(gravity, 0.5 * (height - 1) / xp.tan(0.5 * clip(span, 0.05, 3.0)))
