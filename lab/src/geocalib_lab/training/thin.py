"""A quicker network that starts near where a slower one stands.

A 3x3 convolution becomes the best product of a 3x3 and a 1x1 one with few channels between them,
and of the hidden units of an MLP those stay that say most. What a unit says on the average goes
into the bias, which holds as layer norms make every input of an MLP about normal.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn import functional

WHOLE_PARTS = {"0": "0", "1": "2", "3": "4", "4": "6"}
"""Places of a refinement's layers before and after each convolution becomes two
(``nets.lean.Fuse``)."""
QUANTILES = 64
"""Quantiles of a normal distribution over which means are taken."""


def thinned(whole: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights of a lean network with the ranks and hidden units of another one; as they are
    where it has no fewer."""
    thin = dict(whole)
    for level in ("fuse4", "fuse8"):
        if f"{level}.refine.6.weight" in wanted and f"{level}.refine.6.weight" not in whole:
            _factor(thin, f"{level}.refine", wanted[f"{level}.refine.0.weight"].shape[0])
    for name, value in wanted.items():
        if name.endswith("mlp.1.weight") and name in whole and len(value) < len(whole[name]):
            _keep_units(thin, name.removesuffix("1.weight"), len(value))
    return thin


def _factor(thin: dict[str, Tensor], refine: str, rank: int) -> None:
    """Both convolutions of a refinement in two parts each."""
    layers = {name: thin.pop(name) for name in list(thin) if name.startswith(f"{refine}.")}
    for name, value in layers.items():
        place, _, rest = name.removeprefix(f"{refine}.").partition(".")
        after = WHOLE_PARTS[place]
        if value.dim() < 4:
            thin[f"{refine}.{after}.{rest}"] = value
            continue
        # What the batch norm behind it makes small need not be kept well.
        norm = f"{refine}.{int(place) + 1}"
        gain = layers[f"{norm}.weight"] / layers[f"{norm}.running_var"].sqrt()
        gain = gain.abs().clamp(min=1e-3 * gain.abs().max())[:, None]
        left, size, right = torch.linalg.svd(gain * value.flatten(1), full_matrices=False)
        share = size[:rank].sqrt()
        thin[f"{refine}.{after}.weight"] = (share[:, None] * right[:rank]).reshape(
            rank, *value.shape[1:]
        )
        outer = left[:, :rank] * share / gain
        thin[f"{refine}.{int(after) + 1}.weight"] = outer[:, :, None, None]


def _keep_units(thin: dict[str, Tensor], mlp: str, count: int) -> None:
    """Keep the hidden units of an MLP with the largest effect. mlp: the prefix of its tensors."""
    into, offset, out = (thin[f"{mlp}{part}"] for part in ("1.weight", "1.bias", "3.weight"))
    # What a unit gets is the layer norm's gain and shift, read by it.
    spread = (into * thin[f"{mlp}0.weight"]).norm(dim=1)
    middle = offset + into @ thin[f"{mlp}0.bias"]
    even = (torch.arange(QUANTILES, dtype=into.dtype) + 0.5) / QUANTILES
    normal = torch.special.ndtri(even)
    said = functional.gelu(middle[:, None] + spread[:, None] * normal)
    order = (said.std(1) * out.norm(dim=0)).argsort(descending=True)
    kept, left = order[:count].sort().values, order[count:]
    thin[f"{mlp}1.weight"], thin[f"{mlp}1.bias"] = into[kept], offset[kept]
    thin[f"{mlp}3.weight"] = out[:, kept]
    thin[f"{mlp}3.bias"] = thin[f"{mlp}3.bias"] + out[:, left] @ said.mean(1)[left]
