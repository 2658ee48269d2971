"""What JPEG does to pictures, on the device: 8x8 cosine blocks, rounded, at half colour size."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor
from torch.nn import functional

LUMINANCE_STEPS = (
    (16, 11, 10, 16, 24, 40, 51, 61),
    (12, 12, 14, 19, 26, 58, 60, 55),
    (14, 13, 16, 24, 40, 57, 69, 56),
    (14, 17, 22, 29, 51, 87, 80, 62),
    (18, 22, 37, 56, 68, 109, 103, 77),
    (24, 35, 55, 64, 81, 104, 113, 92),
    (49, 64, 78, 87, 103, 121, 120, 101),
    (72, 92, 95, 98, 112, 100, 103, 99),
)
"""Rounding steps at quality 50, by vertical and horizontal frequency (annex K of the standard)."""

CHROMINANCE_STEPS = (
    (17, 18, 24, 47, 99, 99, 99, 99),
    (18, 21, 26, 66, 99, 99, 99, 99),
    (24, 26, 56, 99, 99, 99, 99, 99),
    (47, 66, 99, 99, 99, 99, 99, 99),
    *((99,) * 8,) * 4,
)

YCBCR = (
    (0.299, 0.587, 0.114),
    (-0.168736, -0.331264, 0.5),
    (0.5, -0.418688, -0.081312),
)
"""Rows: luminance and the two colour differences, of red, green and blue."""


@dataclass(frozen=True)
class _Tables:
    ycbcr: Tensor
    rgb: Tensor
    luminance: Tensor
    chrominance: Tensor
    cosines: Tensor
    """(8, 8) orthonormal: frequencies by places."""


@cache
def _tables(device: torch.device) -> _Tables:
    """The constants, brought to a device once: the way there waits for all that runs on it."""
    ycbcr = torch.tensor(YCBCR)
    frequency, place = torch.arange(8.0)[:, None], torch.arange(8.0)
    cosines = 0.5 * torch.cos(frequency * (2 * place + 1) * math.pi / 16)
    cosines[0] /= math.sqrt(2)
    return _Tables(
        ycbcr.to(device),
        torch.linalg.inv(ycbcr).to(device),
        torch.tensor(LUMINANCE_STEPS, dtype=torch.float32, device=device),
        torch.tensor(CHROMINANCE_STEPS, dtype=torch.float32, device=device),
        cosines.to(device),
    )


def jpeg(images: Tensor, quality: Tensor) -> Tensor:
    """Pictures (B, 3, H, W) in [0, 1] as they come back at quality (B,), from 1 to 100."""
    tables = _tables(images.device)
    height, width = images.shape[-2:]
    # Whole blocks of the halved colours.
    padding = (0, -width % 16, 0, -height % 16)
    picture = functional.pad(255 * images, padding, mode="replicate")
    planes = torch.einsum("ij,bjhw->bihw", tables.ycbcr, picture)
    scale = torch.where(quality < 50, 50 / quality, 2 - 0.02 * quality)
    luminance = _coarsen(planes[:, :1] - 128, tables.luminance, scale, tables.cosines) + 128
    halved = functional.avg_pool2d(planes[:, 1:], 2)
    halved = _coarsen(halved, tables.chrominance, scale, tables.cosines)
    chrominance = functional.interpolate(halved, scale_factor=2.0, mode="bilinear")
    planes = torch.cat([luminance, chrominance], 1)
    picture = torch.einsum("ij,bjhw->bihw", tables.rgb, planes)
    return (picture[..., :height, :width].round() / 255).clamp(0, 1)


def _coarsen(planes: Tensor, steps: Tensor, scale: Tensor, cosines: Tensor) -> Tensor:
    """Planes (B, C, H, W) with the waves of their blocks rounded to steps (8, 8) x scale (B,)."""
    step = (steps * scale[:, None, None] + 0.5).floor().clamp(1, 255)[:, None, None, None]
    batch, channels, height, width = planes.shape
    blocks = planes.reshape(batch, channels, height // 8, 8, width // 8, 8).transpose(3, 4)
    waves = cosines @ blocks @ cosines.mT
    blocks = cosines.mT @ ((waves / step).round() * step) @ cosines
    return blocks.transpose(3, 4).reshape(planes.shape)
