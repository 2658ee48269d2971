"""Where a fit starts: trivial, heuristic, or a minimal solver inside RANSAC."""

from __future__ import annotations

import torch
from torch import Tensor

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
    size = frame.size[coupling.camera]
    if kind == "trivial":
        guess = trivial(size)
    elif kind == "heuristic":
        per_image = torch.split(centre[coupling.camera], [len(part) for part in parts])
        guesses = [heuristic(part, c) for part, c in zip(parts, per_image, strict=True)]
        guess = Guess(torch.cat([g.gravity for g in guesses]), torch.cat([g.f for g in guesses]))
    else:
        guess = ransac(observations, centre[coupling.camera], frame.aspect[coupling.camera])
    fallback = trivial(size)
    usable = torch.isfinite(guess.f) & torch.isfinite(guess.gravity).all(1)
    f = torch.where(usable, guess.f, fallback.f)
    gravity = torch.where(usable[:, None], guess.gravity, fallback.gravity)
    if coupling.rotation is not None:
        gravity = (coupling.rotation.double().transpose(1, 2) @ gravity[..., None])[..., 0]
    log_f = _mean(f.log(), coupling.camera, len(frame.size))
    shared = _mean(gravity, coupling.time, len(coupling.time_component))
    # Guesses of cameras mounted against each other may cancel; then the rig counts as level.
    length = torch.linalg.vector_norm(shared, dim=1, keepdim=True)
    shared = torch.where(length > 0.1, shared / length, shared.new_tensor(LEVEL))
    start = torch.tensor(frame.model.start, dtype=log_f.dtype, device=log_f.device)
    log_f = torch.minimum(torch.maximum(log_f, frame.log_f_low), frame.log_f_high)
    distortion = start.expand(len(log_f), -1)
    known = priors
    return State(
        gravity=shared if known.gravity.value is None else known.gravity.value,
        log_f=log_f if known.log_f.value is None else known.log_f.value[:, 0],
        distortion=distortion if known.distortion.value is None else known.distortion.value,
        c=centre,
        log_stretch=torch.zeros_like(log_f),
    )


def trivial(size: Tensor) -> Guess:
    """A level camera with f = 0.7 of the longer side, for images of size (B, 2)."""
    level = torch.tensor(LEVEL, dtype=torch.float64, device=size.device)
    return Guess(level.expand(len(size), 3), TRIVIAL_FOCAL * size.amax(1).double())


def heuristic(fields: Fields, centre: Tensor) -> Guess:
    """The field read off at the principal point (B, 2) and above and below it.

    At the principal point up is along -(g_x, g_y) and the latitude is -asin(g_z); the
    latitudes at the top and bottom span the vertical field of view.
    """
    width, height = fields.size
    column = centre[:, 0].long().clamp(0, width - 1)
    row = centre[:, 1].long().clamp(0, height - 1)
    images = torch.arange(len(fields), device=centre.device)
    latitude = fields.latitude[:, 0].double()
    up = fields.up[images, :, row, column].double()
    up = up / torch.linalg.vector_norm(up, dim=1, keepdim=True)
    middle = latitude[images, row, column]
    gravity = torch.cat([-torch.cos(middle)[:, None] * up, -torch.sin(middle)[:, None]], 1)
    span = latitude[images, 0, column] - latitude[images, -1, column]
    # The rows' centres lie half a pixel inside the image at either end.
    return Guess(gravity, 0.5 * (height - 1) / torch.tan(0.5 * span.clamp(0.05, 3.0)))


def _mean(values: Tensor, index: Tensor, count: int) -> Tensor:
    total = values.new_zeros(count, *values.shape[1:]).index_add(0, index, values)
    number = torch.bincount(index, minlength=count).to(values)
    return total / number.reshape(-1, *(1,) * (values.dim() - 1))
