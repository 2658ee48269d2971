"""One step of Levenberg-Marquardt, in torch as the solver takes it and in NumPy as lines and poses
do: why there are three loops and not one.

python lab/benchmarks/steps.py
"""

from __future__ import annotations

import timeit
from collections.abc import Callable

import numpy as np
import torch

from geocalib.lines.system import Arrow as LinesArrow
from geocalib.solver.coupling import Arrow, couple

REPEAT, NUMBER = 7, 200


def main() -> None:
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    half = rng.normal(size=(3, 5))
    matrix, vector = half @ half.T, rng.normal(size=3)

    coupling = couple(1, None, None, torch.device("cpu"))
    whole, right = torch.from_numpy(matrix)[None], torch.from_numpy(vector)[None]
    damping = torch.full((1,), 1e-3, dtype=torch.float64)

    def by_solver() -> torch.Tensor:
        arrow = Arrow.assemble(whole, coupling, 2).damped(damping, coupling)
        time, camera = arrow.eliminate(coupling).solve(right[:, :2], right[:, 2:], coupling)
        return torch.cat([time, camera], 1)[0]

    lines = LinesArrow(matrix[None, None, :2, :2], matrix[None, None, :2, 2:], matrix[None, 2:, 2:])

    def by_lines() -> np.ndarray:
        damped = lines.damped(np.array([1e-3]))
        time, camera = damped.eliminate().solve(vector[None, None, :2], vector[None, 2:])
        return np.concatenate([time[0, 0], camera[0]])

    def by_poses() -> np.ndarray:
        damped = matrix + 1e-3 * np.diag(np.diag(matrix))
        return np.linalg.solve(damped, vector)

    assert np.allclose(by_solver().numpy(), by_lines())
    assert np.allclose(by_lines(), by_poses())
    base = _microseconds(by_solver)
    print(f"solver (torch, batches, gradients)  {base:7.1f} us  1.0")
    for name, step in (
        ("lines  (NumPy, several guesses)   ", by_lines),
        ("poses  (NumPy, one pose)         ", by_poses),
    ):
        spent = _microseconds(step)
        print(f"{name}   {spent:7.1f} us  {spent / base:.2f}")


def _microseconds(step: Callable[[], object]) -> float:
    return 1e6 * min(timeit.repeat(step, number=NUMBER, repeat=REPEAT)) / NUMBER


if __name__ == "__main__":
    main()
