"""Which side of a picture is up, where nothing says so: the network looks at all four turns.

It has learnt from pictures that are within 45 degrees of upright. Turned any other way they are
strange to it, and what it sees leaves the camera less certain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from geocalib import gravity as sphere
from geocalib.fields import Fields
from geocalib.solver import FitOptions, fit

TURNS = (0, 1, 2, 3)
"""Quarter turns counter-clockwise, as ``numpy.rot90``."""

CLOSE = 0.3
"""Difference of two entropies, in nats, that does not tell which turn is the right one."""
UNSURE = "which side is up is uncertain: the picture turned another way is almost as likely"


@dataclass(frozen=True)
class Look:
    """What the network saw in B pictures."""

    fields: Fields
    down: Tensor | None = None
    """(B, 3) rough direction of gravity, where all sides were looked at."""
    unsure: tuple[bool, ...] = ()
    """Of each, whether another side may as well be up."""


def turned(fields: Fields, turns: int) -> Fields:
    """The fields of the pictures turned counter-clockwise by that many quarter turns."""
    x, y = fields.up.unbind(1)
    for _ in range(turns % 4):
        x, y = y, -x
    up = torch.stack([x, y], 1)
    others = (fields.latitude, fields.up_confidence, fields.latitude_confidence)
    return Fields(*(torch.rot90(value, turns, (-2, -1)).contiguous() for value in (up, *others)))


def look_all_ways(
    images: Tensor,
    aspect: Sequence[float],
    predict: Callable[[Tensor], Fields],
    confidence_scale: float | None,
) -> Look:
    """The fields of images (B, 3, H, W), each seen with that side up that leaves its camera least
    uncertain, and turned back.

    The uncertainty is the entropy of gravity and focal length given the fields: half the
    logarithm of the determinant of their covariance, but for a constant. aspect: fx / fy of each.
    """
    every: list[Fields] = []
    entropies, downs = [], []
    for turns in TURNS:
        fields = predict(torch.rot90(images, turns, (-2, -1)))
        ratio = torch.tensor(aspect, dtype=torch.float64)
        result = fit(
            fields.to(torch.float64),
            aspect=1 / ratio if turns % 2 else ratio,
            options=FitOptions(confidence_scale=confidence_scale),
        )
        entropy = 0.5 * torch.linalg.slogdet(result.covariance)[1]
        # NaN where the fit failed.
        entropies.append(torch.where(torch.isfinite(entropy), entropy, torch.inf))
        downs.append(sphere.rotate90(result.gravity, -turns))
        every.append(turned(fields, -turns))
    entropy = torch.stack(entropies, 1)
    best, order = entropy.sort(1)
    rows = torch.arange(len(images))
    chosen = [every[turns][row : row + 1] for row, turns in enumerate(order[:, 0].tolist())]
    return Look(
        Fields.concatenate(chosen),
        torch.stack(downs, 1)[rows, order[:, 0]],
        tuple((best[:, 1] - best[:, 0] < CLOSE).tolist()),
    )
