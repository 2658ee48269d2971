"""Packaged weights on rendered photographs: ``python benchmarks/towns.py``.

Sharp pictures of towns that no network has seen, with cameras that are known: no substitute for
real photographs, but anyone can make them.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from geocalib import Calibration, Calibrator, Camera
from geocalib.geometry.gravity import from_roll_pitch
from geocalib.synthetic import render_scene

VIEWS = 40
SIZE = (480, 320)
RANGES = {"roll": (-12.0, 12.0), "pitch": (-15.0, 15.0), "vFoV": (40.0, 90.0)}
"""Degrees."""


def main() -> None:
    calibrator = Calibrator()
    truth = _views()
    answers = [_answer(calibrator, view, town) for town, view in enumerate(truth)]
    found = torch.tensor([(c.roll_deg, c.pitch_deg, c.vfov_deg) for c in answers])
    sigma = torch.tensor([(c.sigma.roll_deg, c.sigma.pitch_deg, c.sigma.vfov_deg) for c in answers])
    error = found - truth
    print(f"{VIEWS} views, {sum(not c.trusted for c in answers)} of them with warnings\n")
    print("| degrees | median error | median of its size | in sigmas |")
    print("| --- | --- | --- | --- |")
    _print_rows(list(RANGES), error, sigma)
    wide = truth[:, 2] >= 80
    _print_rows(["vFoV of 80 and more"], error[wide, 2:], sigma[wide, 2:])


def _views() -> Tensor:
    """(VIEWS, 3) roll, pitch and vFoV, degrees."""
    low, high = torch.tensor(list(RANGES.values())).unbind(1)
    draw = torch.rand(VIEWS, len(RANGES), generator=torch.Generator().manual_seed(0))
    return low + (high - low) * draw


def _answer(calibrator: Calibrator, view: Tensor, town: int) -> Calibration:
    roll, pitch, vfov = view.deg2rad()
    f = 0.5 * SIZE[1] / math.tan(0.5 * float(vfov))
    camera = Camera.create("pinhole", f=f, size=SIZE)
    picture = render_scene(camera, from_roll_pitch(roll[None], pitch[None]), town)[0]
    return calibrator.calibrate((255 * picture).round().to(torch.uint8).numpy())


def _print_rows(names: list[str], error: Tensor, sigma: Tensor) -> None:
    """A line for each name and column of (N, M) errors."""
    columns = zip(
        names, error.median(0).values, error.abs().T, (error / sigma).abs().T, strict=True
    )
    for name, bias, size, ratio in columns:
        print(f"| {name} | {bias:+.2f} | {size.median():.2f} | {ratio.median():.0f} |")


if __name__ == "__main__":
    main()
