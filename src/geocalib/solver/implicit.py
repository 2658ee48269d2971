"""Derivatives of the optimum in the observations, by the implicit function theorem.

At the optimum x* the gradient g(x, observations) vanishes, so dx* = -H^-1 dg with H the exact
Hessian. One Newton step from the detached optimum, taken with the gradient attached to the
observations and H detached, has the optimum's value and exactly this derivative.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from geocalib.geometry import gravity as sphere
from geocalib.solver.coupling import to_cameras
from geocalib.solver.objective import Evaluation, Problem
from geocalib.solver.residuals import Normal, normal_equations
from geocalib.solver.state import State


def attach_gradients(problem: Problem, state: State) -> State:
    """The same state, differentiable in the observations of the problem."""
    with torch.enable_grad():
        evaluation = problem.evaluate(state)
        scale = evaluation.scale.detach()
        hessian = _exact_hessian(problem, state)
        normal = Normal(hessian, evaluation.normal.gradient, evaluation.normal.cost)
        arrow, b_time, b_camera = problem.system(
            Evaluation(normal, evaluation.cost, scale, evaluation.prior)
        )
        none = torch.zeros_like(evaluation.cost, requires_grad=False)
        x_time, x_camera = (
            arrow.damped(none, problem.coupling)
            .eliminate(problem.coupling)
            .solve(b_time, b_camera, problem.coupling)
        )
        return problem.frame.step(state, x_time, to_cameras(x_camera, problem.coupling))


def _exact_hessian(problem: Problem, state: State) -> Tensor:
    """(B, P, P) second derivatives of E / 2 of each image, by differentiating its gradient."""
    frame, free = problem.frame, problem.frame.free
    dtype = problem.observations.up_x.dtype
    camera, gravity, basis = frame.images(state, problem.coupling, dtype)
    size = problem.gravity_size + frame.intrinsics
    shift = torch.zeros(len(gravity), size, dtype=dtype, device=gravity.device, requires_grad=True)
    at = problem.gravity_size
    if free.gravity:
        step = shift[:, :2]
        moved = sphere.move(gravity, step, basis)
        # The basis is carried along the step, to the first order that matters here.
        basis = basis - gravity[:, :, None] * step[:, None, :]
        gravity = moved
    f, distortion, c = camera.f, camera.distortion, camera.c
    if free.focal:
        f = f * torch.exp(shift[:, at])
        at += 1
    columns = list(distortion.unbind(1))
    for i in free.distortion:
        columns[i] = columns[i] + shift[:, at]
        at += 1
    if columns:
        distortion = torch.stack(columns, 1)
    if free.principal_point:
        c = c + shift[:, at : at + 2]
    aspect = camera.aspect * torch.exp(shift[:, -1]) if free.aspect else camera.aspect
    trial = replace(camera, f=f, c=c, distortion=distortion, aspect=aspect)
    observations = problem.observations.detach()
    normal = normal_equations(trial, gravity, basis, observations, free, problem.huber)
    rows = [
        torch.autograd.grad(normal.gradient[:, i].sum(), shift, retain_graph=True)[0]
        for i in range(size)
    ]
    hessian = torch.stack(rows, 1).double()
    return 0.5 * (hessian + hessian.transpose(1, 2))
