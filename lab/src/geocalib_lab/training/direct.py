"""What each network learns from: ours fields and fits, baselines the camera, and fields if any.

Where they are the same, losses have the names and the weights of ours (``LossConfig``): gravity
stands for roll and pitch together.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from geocalib.cameras.camera import Camera
from geocalib.geometry.gravity import to_roll_pitch
from geocalib.nets.direct import Binned, Regressed, bins_of
from geocalib.nets.prediction import Prediction
from geocalib_lab.training.batches import Batch
from geocalib_lab.training.losses import LossConfig, Losses, training_loss, wide_loss


def loss_of(
    output: Prediction | Binned | Regressed, batch: Batch, config: LossConfig, whole: bool
) -> Losses:
    """The loss of whatever a network answers to a batch.

    whole: with the camera, fitted or regressed; or else of the fields alone.
    """
    if isinstance(output, Binned):
        return _direct(_unlikely(output, batch), batch, config)
    fields = output.fields if isinstance(output, Regressed) else output
    count = len(batch.gravity)
    ordinary = Prediction(*(value[:count] for value in fields))
    fitted = whole and not isinstance(output, Regressed)
    known = batch.keep & ~batch.view_only
    losses = training_loss(
        ordinary, batch.camera, batch.gravity, known, batch.bends, config, fitted
    )
    if whole and isinstance(output, Regressed):
        off = (output.values.float() - parameters_of(batch.camera, batch.gravity)).abs()
        more = _direct(off, batch, config)
        losses = Losses(losses.total + more.total, losses.parts | more.parts)
    if not batch.wide:
        return losses
    whole_batch = len(batch.images)
    more = wide_loss(Prediction(*(value[count:] for value in fields)), batch.wide, config, fitted)
    # Each picture counts the same.
    total = (count * losses.total + (whole_batch - count) * more.total) / whole_batch
    return Losses(total, losses.parts | more.parts)


def parameters_of(camera: Camera, gravity: Tensor) -> Tensor:
    """(B, 4) ``PARAMETERS`` of cameras with one distortion parameter, and gravity (B, 3)."""
    roll, pitch = to_roll_pitch(gravity)
    k1_hat = camera.distortion[:, 0] * (camera.size[:, 1] / camera.f) ** 2
    return torch.stack([roll, pitch, camera.vfov, k1_hat], 1)


def _unlikely(output: Binned, batch: Batch) -> Tensor:
    """(B, 4) negative logarithm of how likely the truth is held to be."""
    truth = bins_of(parameters_of(batch.camera, batch.gravity))
    return functional.cross_entropy(output.logits.float().transpose(1, 2), truth, reduction="none")


def _direct(errors: Tensor, batch: Batch, config: LossConfig) -> Losses:
    """Of errors (B, 4) of the parameters, where they are known; as in ours, distortion counts where
    it was drawn."""
    weight = batch.keep.float() / batch.keep.sum().clamp(min=1)
    roll, pitch, vfov, k1_hat = errors.unbind(1)
    parts = {
        "gravity": (weight * ~batch.view_only * (roll + pitch)).sum(),
        "vfov": (weight * vfov).sum(),
        "distortion": (weight * batch.bends * k1_hat).sum(),
    }
    total = sum(
        (getattr(config, name) * value for name, value in parts.items()), start=errors.new_zeros(())
    )
    return Losses(total, {name: value.detach() for name, value in parts.items()})
