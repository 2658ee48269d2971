"""Batch norms folded into convolutions: the same function with less to compute.

In evaluation a batch norm is y = gain * x + offset per channel, which the convolution before it
(or a 1x1 convolution after it) absorbs. ``fold_batch_norm`` does so for neighbours in every
``nn.Sequential``; a module whose forward pass wires them otherwise offers its own folded form
through a method ``folded``.
"""

from __future__ import annotations

import copy
from itertools import pairwise
from typing import Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

Module = TypeVar("Module", bound=nn.Module)


@runtime_checkable
class Foldable(Protocol):
    """A module that knows its own form for evaluation."""

    def folded(self) -> nn.Module:
        """Another module with the same output in evaluation."""
        ...


def fold_batch_norm(module: Module) -> Module:
    """The module given, made ready for inference: in evaluation mode, and with the output that it
    had in it up to float rounding.

    A batch norm that cannot be folded stays. The names of the modules in a Sequential stay too:
    an identity takes the place of a folded norm. A part that is ``Foldable`` is replaced; the
    module itself keeps its class.
    """
    _fold_parts(module.eval())
    return module.eval()


def _fold_parts(module: nn.Module) -> None:
    for name, part in module.named_children():
        _fold_parts(part)
        if isinstance(part, Foldable):
            setattr(module, name, part.folded())
    if isinstance(module, nn.Sequential):
        _fold_neighbours(module)


def _fold_neighbours(sequence: nn.Sequential) -> None:
    for name, after in pairwise(list(sequence._modules)):
        # Looked up again: what a step before has folded is an identity by now.
        first, second = getattr(sequence, name), getattr(sequence, after)
        if isinstance(first, nn.Conv2d) and _has_statistics(second):
            setattr(sequence, name, fuse_conv_bn_eval(first, second))
            setattr(sequence, after, nn.Identity())
        elif _has_statistics(first) and isinstance(second, nn.Conv2d) and _is_pointwise(second):
            setattr(sequence, name, nn.Identity())
            setattr(sequence, after, fold_into_next(first, second))


def _has_statistics(module: nn.Module) -> bool:
    return isinstance(module, nn.BatchNorm2d) and module.running_mean is not None


def _is_pointwise(conv: nn.Conv2d) -> bool:
    # Padding would put zeros where the norm put its offset.
    return conv.groups == 1 and set(conv.kernel_size) == {1} and conv.padding in {(0, 0), "valid"}


def affine_of(norm: nn.BatchNorm2d) -> tuple[Tensor, Tensor]:
    """The gain and offset, each (C,), a batch norm with statistics applies in evaluation."""
    assert norm.running_mean is not None
    assert norm.running_var is not None
    gain = torch.rsqrt(norm.running_var + norm.eps)
    if norm.weight is not None:
        gain = gain * norm.weight.detach()
    offset = -norm.running_mean * gain
    if norm.bias is not None:
        offset = offset + norm.bias.detach()
    return gain, offset


def fold_into_next(norm: nn.BatchNorm2d, conv: nn.Conv2d) -> nn.Conv2d:
    """conv(norm(x)) as one convolution; conv must be 1x1, ungrouped and without padding."""
    gain, offset = affine_of(norm)
    weight = conv.weight.detach()
    return _with_weights(
        conv, weight * gain[:, None, None], _bias(conv) + weight[:, :, 0, 0] @ offset
    )


def scaled_output(conv: nn.Conv2d, scale: Tensor, shift: Tensor | float = 0.0) -> nn.Conv2d:
    """scale * conv(x) + shift, each (C,), as one convolution."""
    return _with_weights(
        conv, conv.weight.detach() * scale[:, None, None, None], scale * _bias(conv) + shift
    )


def _bias(conv: nn.Conv2d) -> Tensor:
    return conv.weight.new_zeros(conv.out_channels) if conv.bias is None else conv.bias.detach()


def _with_weights(conv: nn.Conv2d, weight: Tensor, bias: Tensor) -> nn.Conv2d:
    conv = copy.deepcopy(conv)
    conv.weight, conv.bias = nn.Parameter(weight.detach()), nn.Parameter(bias.detach())
    return conv
