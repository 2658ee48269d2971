"""Mirror symmetry: a network must not lean to one side.

A picture and its mirror image have opposite rolls. Averaged weights are not quite what the loss
has seen, and may turn all up-vectors a little the same way; what a network answers to pictures
and their mirror images tells by how much, without any ground truth.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from geocalib.nets.lean import LeanNetwork
from geocalib.nets.prediction import Prediction


@torch.no_grad()
def remove_lean(network: LeanNetwork, batches: Iterable[Tensor]) -> float:
    """Turn the up-vectors of a network (in evaluation mode) so that it favours no side of
    pictures (B, 3, H, W); the angle it was off by, radians, positive clockwise in the image."""
    angle = float(torch.cat([lean_of(network, images) for images in batches]).median())
    _turn(network, -angle)
    return angle


@torch.no_grad()
def lean_of(network: LeanNetwork, images: Tensor) -> Tensor:
    """(B,) half the angle between up-vectors and those of the mirror image mirrored back."""
    plain: Prediction = network(images)
    mirrored: Prediction = network(images.flip(-1))
    up, other = plain.up, mirrored.up.flip(-1) * plain.up.new_tensor([-1.0, 1.0])[:, None, None]
    cross = other[:, 0] * up[:, 1] - other[:, 1] * up[:, 0]
    angle = 0.5 * torch.atan2(cross, (up * other).sum(1))
    # In double precision, as products of small confidences vanish.
    weight = plain.up_confidence.double() * mirrored.up_confidence.flip(-1)
    total = weight.flatten(1).sum(1).clamp(min=torch.finfo(torch.float64).tiny)
    return ((weight * angle).flatten(1).sum(1) / total).to(angle)


def _turn(network: LeanNetwork, angle: float) -> None:
    """Turn all up-vectors by an angle, clockwise in the image."""
    cosine, sine = torch.tensor(angle).cos(), torch.tensor(angle).sin()
    turn = torch.stack([torch.stack([cosine, -sine]), torch.stack([sine, cosine])])
    head = network.heads.mix
    assert head.bias is not None
    for values in (head.weight, head.bias):
        flat = values.detach()[:2].reshape(2, -1)
        values.data[:2] = (turn.to(flat) @ flat).reshape(values[:2].shape)
