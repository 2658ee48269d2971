"""Looks around in panoramas for their down: are they level?"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import torch

from geocalib.cameras import Camera
from geocalib.errors import ConfigError, PanoramaError
from geocalib.level.panorama import looks_around
from geocalib.result.calibration import Calibration
from geocalib_lab.evaluation.run import Calibrates
from geocalib_lab.panoramas.levelness import FEWEST, Level, estimate_level
from geocalib_lab.panoramas.panorama import PanoramaBank, render
from geocalib_lab.panoramas.pictures import read_panorama

VIEWS = 24
"""Number of views of a panorama."""

SIZE = 320
"""Pixels on each side of a view."""

VFOV_DEG = 75.0


def check_level(calibrator: Calibrates, panorama: Path, views: int = VIEWS) -> Level:
    """How a panorama stands, by views of it all around."""
    if views < FEWEST:
        raise ConfigError(f"{views} views tell no tilt; give {FEWEST} or more")
    bank = PanoramaBank.create([torch.from_numpy(np.array(read_panorama(panorama)))], ["it"])
    turns = torch.from_numpy(looks_around(views))
    focal = 0.5 * SIZE / math.tan(0.5 * math.radians(VFOV_DEG))
    camera = Camera.create("pinhole", focal, (SIZE, SIZE), dtype=torch.float32)
    index = torch.zeros(1, dtype=torch.long)
    pictures = []
    for turn in turns.float():
        picture = render(bank, index, camera, turn[None], SIZE, SIZE)[0]
        pictures.append((255 * picture).round().byte().permute(1, 2, 0).numpy())
    # The lens is known, and which side is up; only where exactly down is, is open.
    outcomes = calibrator.calibrate(pictures, "pinhole", focal=focal, any_rotation="off")
    down = [
        turn @ torch.from_numpy(outcome.gravity)
        for turn, outcome in zip(turns, outcomes, strict=True)
        if isinstance(outcome, Calibration)
    ]
    if len(down) < FEWEST:
        raise PanoramaError(f"{panorama}: only {len(down)} of its views have an answer")
    return estimate_level(torch.stack(down))
