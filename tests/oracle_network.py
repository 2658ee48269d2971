"""A network that knows the answers: it reads off a marked picture which camera took it and which
part of it was shown, and returns the exact field of that camera there.

So nothing of how the pictures were resized, cropped and turned is told to it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor, nn

from geocalib.arrays import Array
from geocalib.cameras import Camera, CameraModel
from geocalib.geometry.fields import perspective_field
from geocalib.geometry.gravity import from_roll_pitch
from geocalib.nets.prediction import Prediction
from geocalib.nets.weights.card import WeightCard
from geocalib.nets.weights.files import LoadedNetwork
from geocalib.pipeline.calibrator import Calibrator
from geocalib.result.calibration import Calibration, Outcome
from views import gravity_error_deg, ray_error_deg

STEP = 16
"""Levels of red from one mark to the next."""
MARGIN = 4
"""Pixels at the border that a resize may bend."""

FOCAL = 5e-4
"""Relative error that the eight bits of the pictures leave."""
GRAVITY_DEG = 5e-3

CARD = WeightCard(
    name="oracle", architecture="lean", trained=True, licence="", source="", description=""
)


@dataclass(frozen=True)
class Truth:
    """A camera of one original and the gravity (1, 3) it is under."""

    camera: Camera
    gravity: Array

    @property
    def size(self) -> tuple[int, int]:
        width, height = self.camera.size[0].tolist()
        return int(width), int(height)


def truth(
    size: tuple[int, int] = (480, 360),
    vfov_deg: float = 50.0,
    roll_deg: float = 7.0,
    pitch_deg: float = -11.0,
    model: str | CameraModel = "pinhole",
    hat: Sequence[float] = (),
    **camera: Any,
) -> Truth:
    """hat: the distortion in units of the image height, k_i (H / f)^2i."""
    f = 0.5 * size[1] / math.tan(math.radians(0.5 * vfov_deg))
    distortion = [k * (f / size[1]) ** (2 * i + 2) for i, k in enumerate(hat)]
    given = {"f": f, "size": size, "distortion": distortion} | camera
    roll, pitch = np.deg2rad([[roll_deg], [pitch_deg]])
    return Truth(Camera.create(model, **given), from_roll_pitch(roll, pitch))


def picture(size: tuple[int, int], mark: int) -> npt.NDArray[np.uint8]:
    """(H, W, 3): its red is the mark, green and blue grow with x and y."""
    width, height = size
    x = 255 * (np.arange(width) + 0.5) / width
    y = 255 * (np.arange(height) + 0.5) / height
    red = np.full((height, width), STEP * mark + STEP / 2)
    planes = [red, np.broadcast_to(x, red.shape), np.broadcast_to(y[:, None], red.shape)]
    return np.rint(np.stack(planes, -1)).astype(np.uint8)


def line(values: Array) -> tuple[float, float]:
    """Intercept and slope of values (n,) at 0.5, 1.5, ..., borders left out."""
    places = np.arange(len(values)) + 0.5
    inner = slice(MARGIN, -MARGIN)
    slope, intercept = np.polyfit(places[inner], values[inner], 1).tolist()
    return intercept, slope


@dataclass(eq=False)
class Oracle(nn.Module):
    """truths: by mark; None gives fields that are NaN."""

    truths: Sequence[Truth | None]
    stride: int = 4
    multiple: int = 32
    batches: list[int] = field(default_factory=list)
    """Images in each call."""

    def __post_init__(self) -> None:
        super().__init__()

    def forward(self, image: Tensor) -> Prediction:
        self.batches.append(len(image))
        seen = zip(*map(self._one, image.cpu().double().numpy()), strict=True)
        return Prediction(*(torch.from_numpy(np.concatenate(part)).float() for part in seen))

    def _one(self, image: Array) -> tuple[Array, ...]:
        height, width = (side // self.stride for side in image.shape[1:])
        known = self.truths[round((255 * float(image[0].mean()) - STEP / 2) / STEP)]
        if known is None:
            shapes = ((1, 2, height, width), (1, 1, height, width), *2 * ((1, height, width),))
            return tuple(np.full(shape, np.nan) for shape in shapes)
        # Where in the original the picture starts, and how many of its pixels each input pixel is.
        (left, step_x), (top, step_y) = (
            (side * intercept, side * slope)
            for side, (intercept, slope) in zip(
                known.size,
                (line(image[1].mean(0)), line(image[2].mean(1))),
                strict=True,
            )
        )
        x = left + step_x * self.stride * (np.arange(width) + 0.5)
        y = top + step_y * self.stride * (np.arange(height) + 0.5)
        points = np.stack(np.meshgrid(x, y), -1).reshape(1, -1, 2)
        up, latitude, valid = perspective_field(known.camera, known.gravity, points)
        # Directions in pixels of the input, whose sides need not shrink alike.
        up = up / (step_x, step_y)
        up = up / np.linalg.norm(up, axis=-1, keepdims=True)
        confidence = valid.reshape(1, height, width).astype(float)
        return (
            up.swapaxes(1, 2).reshape(1, 2, height, width),
            latitude.reshape(1, 1, height, width),
            confidence,
            confidence,
        )


def knowing(*truths: Truth | None, **card: Any) -> Calibrator:
    """A calibrator that knows the truths of the marks; keywords change its card."""
    network = LoadedNetwork(Oracle(truths), replace(CARD, **card))  # type: ignore[arg-type]
    with mock.patch("geocalib.nets.weights.files.load_network", return_value=network):
        return Calibrator(device="cpu", engine="torch")


def check(found: Outcome, known: Truth) -> None:
    """Of the original: its size, its principal point, square pixels, its rays and its gravity."""
    assert isinstance(found, Calibration)
    assert (found.width, found.height) == known.size
    assert (found.cx, found.cy) == tuple(known.camera.c[0].tolist())
    assert found.fx == found.fy
    assert gravity_error_deg(found.gravity[None], known.gravity).item() < GRAVITY_DEG
    coarse = [camera.resize(64, 48) for camera in (found.cameras, known.camera)]
    assert ray_error_deg(*coarse).item() < 0.02
    if not found.distortion:
        assert found.fy == pytest.approx(known.camera.f.item(), rel=FOCAL)
