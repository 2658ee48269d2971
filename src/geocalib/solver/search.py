"""From a start to the minimum: plain for most models, in stages where a model asks for an order."""

from __future__ import annotations

from dataclasses import replace

from geocalib.arrays import gradients_only_if, namespace, no_gradients, replace_rows
from geocalib.solver.lm import Solution, minimise
from geocalib.solver.objective import Problem
from geocalib.solver.options import FitOptions
from geocalib.solver.state import Frame, State

STAGE_ITERATIONS, PATIENT_ITERATIONS = 2, 3
"""Iterations before the next distortion parameter is freed, where a model asks for an order: in
the first attempt, and in the second."""


def search(problem: Problem, start: State, options: FitOptions) -> Solution:
    """The best state found from ``start``, with the gradients the options ask for."""
    order = problem.frame.model.release
    state, spent = _approach(problem, start, order, STAGE_ITERATIONS, options.max_iterations)
    with gradients_only_if(options.gradient == "unrolled"):
        solution = minimise(problem, state, options.max_iterations - spent, options.damping)
    progress = replace(solution.progress, iterations=solution.progress.iterations + spent)
    solution = replace(solution, progress=progress)
    if spent and options.gradient != "unrolled" and not bool(progress.converged.all()):
        with no_gradients():
            solution = _again(problem, start, solution, options.max_iterations)
    return differentiable(problem, solution, options)


def differentiable(problem: Problem, solution: Solution, options: FitOptions) -> Solution:
    """With implicit gradients, where the options ask for them."""
    if options.gradient != "implicit":
        return solution
    # Only torch has derivatives; nobody else is to import it.
    from geocalib.solver.implicit import attach_gradients

    return replace(solution, state=attach_gradients(problem, solution.state))


def _approach(
    problem: Problem, state: State, order: tuple[int, ...], each: int, most: int
) -> tuple[State, int]:
    """Free the distortion parameters in that order, ``each`` iterations after one another; also
    the iterations spent, fewer than ``most``.

    Plain squares all the way: the start is far off, where the Huber kernel only slows the steps.
    """
    spent = 0
    with no_gradients():
        observations = problem.observations.detach()
        for frame in _stages(problem.frame, order):
            count = min(each, most - spent - 1)
            stage = replace(problem, observations=observations, frame=frame, huber=None)
            state = minimise(stage, state, count).state
            spent += count
    return state, spent


def _stages(frame: Frame, order: tuple[int, ...]) -> list[Frame]:
    """What is free before the last parameter of the order, and all that it leaves out, are."""
    free_order = [i for i in order if i in frame.free.distortion]
    stages = []
    for count in range(len(free_order)):
        free = replace(frame.free, distortion=tuple(sorted(free_order[:count])))
        stages.append(replace(frame, free=free))
    return stages


def _again(problem: Problem, start: State, first: Solution, most: int) -> Solution:
    """Components that did not settle start once more, with more patience and every parameter by
    itself; the second end counts where it is the cheaper one."""
    unsettled = ~first.progress.converged
    part, images, times, cameras = problem.select(unsettled)
    part = replace(part, observations=part.observations.detach())
    first_freed = problem.frame.model.release
    rest = tuple(i for i in problem.frame.free.distortion if i not in first_freed)
    order = (*first_freed, *rest)
    state, spent = _approach(part, start.select(times, cameras), order, PATIENT_ITERATIONS, most)
    second = minimise(part, state, most - spent)
    xp = namespace(unsettled)
    components = xp.nonzero(unsettled)[0]
    cost = first.cost[images]
    better = part.coupling.component_sum(second.cost) < part.coupling.component_sum(cost)
    state = second.state.where(better, first.state.select(times, cameras), part.coupling)
    image_better = better[part.coupling.camera_component[part.coupling.camera]]
    progress = second.progress.where(better, first.progress.select(components))
    return Solution(
        first.state.replaced(state, times, cameras),
        replace_rows(first.cost, images, xp.where(image_better, second.cost, cost)),
        first.progress.replaced(progress, components),
    )
