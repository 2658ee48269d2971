"""Fields fitted by Adam: what a first-order optimiser makes of what the same network saw.

As Perspective Fields fits a camera to its fields: from a level camera of an ordinary focal length,
step by step down the gradient of the mean error, without a robust cost or second derivatives.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Unpack

import torch
from torch import Tensor

from geocalib.cameras import Camera, get_model
from geocalib.geometry.conventions import TRIVIAL_FOCAL
from geocalib.geometry.fields import perspective_field
from geocalib.geometry.gravity import from_roll_pitch
from geocalib.imaging import ImageSource
from geocalib.pipeline.options import Keywords
from geocalib.result.calibration import Calibration, Outcome
from geocalib_lab.evaluation.methods.identity import renamed
from geocalib_lab.evaluation.run import Calibrates
from geocalib_lab.evaluation.seen import Seen

STEPS = 300
RATE = 0.02
"""Learning rate of Adam, for radians, the logarithm of the focal length, and distortion."""
EVERY = 4
"""Pixels of the fields between those that are fitted."""


class FirstOrder:
    """A calibrator whose fields Adam fits."""

    def __init__(self, calibrator: Calibrates) -> None:
        self._calibrator = calibrator
        self.card = renamed(calibrator.card, "adam", __doc__.split("\n")[0])

    def calibrate(
        self,
        images: Sequence[ImageSource],
        camera_model: str = "pinhole",
        **options: Unpack[Keywords],
    ) -> list[Outcome]:
        """Images one by one; nothing is known of them."""
        options |= {"keep_fields": True, "lines": "off"}
        found = self._calibrator.calibrate(images, camera_model, **options)
        return [self._again(o) if isinstance(o, Calibration) else o for o in found]

    def _again(self, answer: Calibration) -> Outcome:
        seen = Seen.by(answer, self._calibrator.card)
        camera, gravity = descend(seen, answer.camera_model)
        return seen.answer(camera, gravity[0])


def descend(seen: Seen, camera_model: str) -> tuple[Camera, Tensor]:
    """The camera (a batch of 1) and gravity (1, 3) where Adam stands after its last step."""
    fields = seen.fields.map(torch.as_tensor)
    width, height = fields.size
    model = get_model(camera_model)
    start = torch.tensor(model.start, dtype=torch.float64)
    roll, pitch = (torch.zeros(1, dtype=torch.float64, requires_grad=True) for _ in range(2))
    log_f = torch.full((1,), math.log(TRIVIAL_FOCAL * max(width, height)), dtype=torch.float64)
    log_f.requires_grad_()
    distortion = start[None].clone().requires_grad_()
    free = [roll, pitch, log_f, *([distortion] if len(start) else [])]
    y, x = torch.meshgrid(
        torch.arange(0, height, EVERY), torch.arange(0, width, EVERY), indexing="ij"
    )
    points = torch.stack([x, y], -1).reshape(1, -1, 2) + 0.5
    row, column = y.flatten(), x.flatten()
    up_seen, latitude_seen = fields.up[0][:, row, column], fields.latitude[0, 0, row, column]
    up_weight = fields.up_confidence[0, row, column]
    latitude_weight = fields.latitude_confidence[0, row, column]
    centre, aspect = (torch.as_tensor(value) for value in (seen.centre, seen.aspect))

    def camera() -> Camera:
        f = log_f.exp()
        return Camera.create(model, f, (width, height), distortion, c=centre, aspect=aspect)

    optimiser = torch.optim.Adam(free, lr=RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, STEPS, eta_min=0.01 * RATE)
    with torch.enable_grad():
        for _ in range(STEPS):
            optimiser.zero_grad()
            up, latitude, _ = perspective_field(camera(), from_roll_pitch(roll, pitch), points)
            aside = up[0, :, 0] * up_seen[1] - up[0, :, 1] * up_seen[0]
            along = (up[0] * up_seen.T).sum(-1)
            angle = torch.atan2(aside, along).abs()
            off = (latitude.reshape(-1) - latitude_seen).abs()
            loss = (up_weight * angle).mean() + (latitude_weight * off).mean()
            loss.backward()
            optimiser.step()
            schedule.step()
    gravity = from_roll_pitch(roll, pitch).detach()
    return camera().map(lambda value: value.detach().numpy()), gravity.numpy()
