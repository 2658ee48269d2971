"""What every network returns: perspective fields with confidences, at its output stride."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from torch import Tensor


class Prediction(NamedTuple):
    """Predicted fields of B images. Cell (i, j) covers stride x stride input pixels, so that the
    fields are those of the input image shrunk by the stride."""

    up: Tensor
    """(B, 2, h, w) unit image directions, x right and y down."""
    latitude: Tensor
    """(B, 1, h, w) radians, positive above the horizon."""
    up_confidence: Tensor
    """(B, h, w) in [0, 1]."""
    latitude_confidence: Tensor
    """(B, h, w) in [0, 1]."""


class Network(Protocol):
    """An image to its perspective fields."""

    stride: int
    """Input pixels per output cell."""
    multiple: int
    """Input width and height must be multiples of this."""

    def __call__(self, image: Tensor) -> Prediction:
        """image: (B, 3, H, W) RGB in [0, 1]."""
        ...
