"""The focal length by a second network, which answers it directly, without fields
(``nets.direct.DeepCalib``). It has an encoder of its own, so that it errs in its own way.

Nothing here needs torch.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from PIL import Image

from geocalib.nets.weights.card import WeightCard

Floats = npt.NDArray[np.float32]

PARAMETERS = ("roll", "pitch", "vfov", "k1_hat")
"""What is answered. Radians; the last one is k1 (H / f)^2, which does not depend on the focal
length."""

BINS = 256
"""Number of bins of each parameter."""

LOW = (-math.radians(45), -math.radians(90), math.radians(5), -0.5)
HIGH = (math.radians(45), math.radians(90), math.radians(120), 0.5)
"""Where the bins of each parameter begin and end: around all views that are trained on."""

MULTIPLE = 32
"""Inputs are whole multiples of this."""


def network_input(images: Floats, card: WeightCard) -> Floats:
    """Pictures (B, 3, H, W) as sharp and as large as the network of a card wants them."""
    rows, columns = images.shape[-2:]
    shorter = min(rows, columns)
    detail = card.detail or card.short_side
    shrunk = [round(side * detail / shorter) for side in (columns, rows)]
    size = [
        MULTIPLE * max(1, round(side * card.short_side / shorter / MULTIPLE))
        for side in (columns, rows)
    ]
    planes = [
        np.asarray(
            Image.fromarray(plane)
            .resize((shrunk[0], shrunk[1]), Image.Resampling.LANCZOS)
            .resize((size[0], size[1]), Image.Resampling.BICUBIC)
        )
        for plane in np.ascontiguousarray(images, np.float32).reshape(-1, rows, columns)
    ]
    return np.stack(planes).reshape(-1, 3, size[1], size[0]).clip(0, 1)


def focal_of(logits: Floats, shape: tuple[int, ...], card: WeightCard) -> npt.NDArray[np.float64]:
    """(B, 2) the logarithm of the focal length by the diagonal of pictures, and its sigma.

    logits: (B, 4, BINS) of the bins of ``PARAMETERS``. shape: (..., H, W) of the pictures.
    """
    at = PARAMETERS.index("vfov")
    scores = logits[:, at].astype(np.float64)
    chance = np.exp(scores - scores.max(1, keepdims=True))
    chance /= chance.sum(1, keepdims=True)
    middles = LOW[at] + (HIGH[at] - LOW[at]) * (np.arange(BINS) + 0.5) / BINS
    log_f = np.log(0.5 / np.tan(0.5 * middles) * shape[-2] / math.hypot(*shape[-2:]))
    mean = chance @ log_f
    sigma = np.sqrt((chance * (log_f - mean[:, None]) ** 2).sum(1))
    return np.stack([mean, card.sigma_scale.get("focal", 1.0) * sigma], 1)
