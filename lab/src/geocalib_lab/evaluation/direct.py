"""Cameras out of the numbers that a network answers by itself (``geocalib.nets.direct``)."""

from __future__ import annotations

import torch
from torch import Tensor

from geocalib.cameras import Camera, get_model
from geocalib.geometry.conventions import VFOV_RANGE_DEG
from geocalib.geometry.gravity import from_roll_pitch


def camera_of(values: Tensor, camera_model: str, size: Tensor) -> tuple[Camera, Tensor]:
    """Cameras of B pictures and gravity (B, 3).

    values (B, 4): ``PARAMETERS``. size (B, 2): width and height, which the field of view spans.
    camera_model: pinhole, or a model whose first parameter is k1, whose others are then 0.
    """
    roll, pitch, vfov, k1_hat = values.unbind(1)
    height = size[:, 1].to(values)
    # A regression may answer what no camera has.
    believed = vfov.rad2deg().clamp(*VFOV_RANGE_DEG).deg2rad()
    f = 0.5 * height / torch.tan(0.5 * believed)
    model = get_model(camera_model)
    distortion = values.new_zeros(len(values), len(model.parameters))
    distortion[:, :1] = (k1_hat * (f / height) ** 2)[:, None]
    return Camera.create(model, f, size.to(values), distortion), from_roll_pitch(roll, pitch)
