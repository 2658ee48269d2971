"""How sure the answer is once the lines have been seen.

The inverse of the curvature at the minimum, and on top of it what a principal point that is not
quite where it is held, and a distortion that is not quite 0, would do to the answer: no number of
segments averages that out.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from geocalib import gravity as sphere
from geocalib.cameras import get_model
from geocalib.lines.minimise import Guess, Problem, reduced
from geocalib.lines.mixture import Noise, weigh
from geocalib.lines.residuals import directions_of, look, moves_of
from geocalib.solver.coupling import Arrow, assemble_vector

CENTRE = 0.005
"""One sigma of the principal point, of the image's longer side, where it is held fixed."""
DISTORTION = 0.03
"""One sigma of k1 in units of the image's height (k1 = that times (f / H)^2), of lenses that are
taken for pinholes."""


def covariance(problem: Problem, guess: Guess, noise: Noise) -> Tensor:
    """(B, P, P) of each image's gravity, in its own tangent basis, and intrinsics."""
    coupling, free = problem.coupling, problem.frame.free
    a = 2 * int(free.gravity)
    at = problem.evaluate(guess, noise)
    hessian, _, _ = reduced(at.hessian, at.gradient, a + problem.frame.intrinsics)
    lines = Arrow.assemble(hessian, coupling, a)
    pull = at.pull.arrow
    whole = Arrow(lines.A + pull.A, lines.B + pull.B, lines.C + pull.C)
    rest = whole.eliminate(coupling)
    cameras = torch.linalg.inv(rest.S)
    of_time = cameras[coupling.time_component]
    times = rest.A_inverse + rest.AB @ of_time @ rest.AB.transpose(1, 2)
    blocks = _blocks(problem, times, -rest.AB @ of_time, cameras)
    for force in _neglected(problem, guess, noise):
        step = rest.solve(*assemble_vector(force, coupling, a), coupling)
        moved = _images(problem, *step)
        blocks = blocks + moved[:, :, None] * moved[:, None]
    if a:
        _, gravity, basis = problem.images(guess)
        turn = torch.eye(blocks.shape[1], dtype=blocks.dtype).repeat(len(blocks), 1, 1)
        turn[:, :2, :2] = sphere.tangent_basis(gravity).transpose(1, 2) @ basis
        blocks = turn @ blocks @ turn.transpose(1, 2)
    return 0.5 * (blocks + blocks.transpose(1, 2))


def _neglected(problem: Problem, guess: Guess, noise: Noise) -> list[Tensor]:
    """(B, P) each: how hard one sigma of what is neglected pulls at the answer: of the principal
    point along each axis where it is held, and of distortion where the model has none."""
    camera, gravity, basis = problem.images(guess)
    free, own = problem.frame.free, problem.frame.intrinsics
    sigmas = []
    if not camera.model.parameters:
        height = camera.size[:, 1]
        camera = replace(
            camera, model=get_model("simple_radial"), distortion=torch.zeros_like(camera.c[:, :1])
        )
        free = replace(free, distortion=(0,))
        sigmas.append(DISTORTION * (camera.f / height) ** 2)
    if not free.principal_point:
        free = replace(free, principal_point=True)
        sigmas += [CENTRE * camera.size.amax(1)] * 2
    a, y = 2 * int(free.gravity), guess.headings.shape[1]
    directions = directions_of(gravity, guess.headings)
    sight = look(camera, problem.bundle, directions)
    columns = sight.jacobian(moves_of(directions, basis[..., :a]), free).flatten(2).unbind(1)
    turns, intrinsics = columns[a : a + y], columns[a + y :]
    # What is neglected has columns among the intrinsics: distortion before the principal point.
    known = intrinsics[: own - 2 * int(problem.frame.free.principal_point)]
    others = intrinsics[len(known) :]
    if problem.frame.free.principal_point:
        known, others = (*known, *others[-2:]), others[:-2]
    jacobian = torch.stack([*columns[:a], *known, *turns], 1)
    share = weigh(sight.residual, noise).share
    weighted = jacobian * (share / noise.sigma**2 / problem.repeats).flatten(1)[:, None]
    hessian = weighted @ jacobian.transpose(1, 2)
    forces = []
    for column, sigma in zip(others, sigmas, strict=True):
        pull = (weighted @ (column * sigma[:, None])[..., None])[..., 0]
        forces.append(reduced(hessian, -pull, a + own)[1])
    return forces


def _blocks(problem: Problem, times: Tensor, side: Tensor, cameras: Tensor) -> Tensor:
    """(B, P, P) from the covariances of times, of times with cameras, and of cameras."""
    coupling = problem.coupling
    own = problem.frame.intrinsics
    slot = coupling.camera_slot[coupling.camera]
    component = coupling.camera_component[coupling.camera]
    times, side = times[coupling.time], side[coupling.time]
    side = side.reshape(len(side), side.shape[1], coupling.slots, own)
    side = side[torch.arange(len(side)), :, slot]
    split = cameras.reshape(coupling.components, coupling.slots, own, coupling.slots, own)
    bottom = split[component, slot, :, slot]
    return torch.cat([torch.cat([times, side], 2), torch.cat([side.transpose(1, 2), bottom], 2)], 1)


def _images(problem: Problem, time: Tensor, laid: Tensor) -> Tensor:
    """(B, P) the parts of a step (T, a) and (K, Q) that belong to each image."""
    coupling = problem.coupling
    parts = laid.reshape(coupling.components, coupling.slots, -1)
    camera = parts[coupling.camera_component, coupling.camera_slot]
    return torch.cat([time[coupling.time], camera[coupling.camera]], 1)
