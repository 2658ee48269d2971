"""Pictures that show a hole of their panorama."""

from __future__ import annotations

from torch import Tensor

BLACK = 2 / 255
"""A pixel is black where no channel exceeds this: lossy compression lifts black a little."""
MOST_BLACK = 0.01
"""Share of black pixels at which a picture is dropped."""


def black_share(images: Tensor) -> Tensor:
    """(B,) part of the pixels of pictures (B, 3, H, W) that are black: holes, or no ray."""
    return (images.amax(1) <= BLACK).float().mean((1, 2))
