"""From a start to the minimum: plain for most models, in stages where a model asks for an order."""

from __future__ import annotations

from dataclasses import replace

import torch

from geocalib.fields import Free
from geocalib.solver.implicit import attach_gradients
from geocalib.solver.lm import Solution, minimise
from geocalib.solver.objective import Problem
from geocalib.solver.options import FitOptions
from geocalib.solver.state import Frame, State

STAGE_ITERATIONS = 2
"""Iterations before the next distortion parameter is freed, where a model asks for an order."""


def search(problem: Problem, start: State, options: FitOptions) -> Solution:
    """The best state found from ``start``, with the gradients the options ask for."""
    state, spent = _approach(problem, start, options.max_iterations)
    with torch.set_grad_enabled(options.gradient == "unrolled"):
        solution = minimise(problem, state, options.max_iterations - spent)
    progress = replace(solution.progress, iterations=solution.progress.iterations + spent)
    solution = replace(solution, progress=progress)
    if spent and options.gradient != "unrolled" and not bool(progress.converged.all()):
        with torch.no_grad():
            solution = _again(problem, start, solution, options.max_iterations)
    if options.gradient == "implicit":
        return replace(solution, state=attach_gradients(problem, solution.state))
    return solution


def _approach(problem: Problem, state: State, most: int) -> tuple[State, int]:
    """Free the distortion parameters one after the other; also the iterations spent.

    Plain squares all the way: the start is far off, where the Huber kernel only slows the steps.
    """
    spent = 0
    with torch.no_grad():
        observations = problem.observations.detach()
        for frame in _stages(problem.frame):
            count = min(STAGE_ITERATIONS, most - spent - 1)
            stage = replace(problem, observations=observations, frame=frame, huber=None)
            state = minimise(stage, state, count).state
            spent += count
    return state, spent


def _stages(frame: Frame) -> list[Frame]:
    order = [i for i in frame.model.release if i in frame.free.distortion]
    stages = []
    for count in range(len(order)):
        free = Free(
            frame.free.gravity,
            frame.free.focal,
            tuple(sorted(order[:count])),
            frame.free.principal_point,
        )
        stages.append(replace(frame, free=free))
    return stages


def _again(problem: Problem, start: State, first: Solution, most: int) -> Solution:
    """Components that did not settle start once more, with everything free from the beginning;
    the second end counts where it is the cheaper one."""
    unsettled = ~first.progress.converged
    part, images, times, cameras = problem.select(unsettled)
    part = replace(part, observations=part.observations.detach())
    second = minimise(part, start.select(times, cameras), most)
    components = unsettled.nonzero()[:, 0]
    cost = first.cost[images]
    better = part.coupling.component_sum(second.cost) < part.coupling.component_sum(cost)
    state = second.state.where(better, first.state.select(times, cameras), part.coupling)
    image_better = better[part.coupling.camera_component[part.coupling.camera]]
    progress = second.progress.where(better, first.progress.select(components))
    return Solution(
        first.state.replaced(state, times, cameras),
        first.cost.index_copy(0, images, torch.where(image_better, second.cost, cost)),
        first.progress.replaced(progress, components),
    )
