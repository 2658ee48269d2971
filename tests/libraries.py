"""The same things on NumPy and on torch, for the tests that compare both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
from torch import Tensor


def numpy_of(value: Any) -> Any:
    """The same with NumPy arrays in place of tensors, also within dataclasses and sequences."""
    if isinstance(value, Tensor):
        return value.numpy()
    if is_dataclass(value) and not isinstance(value, type):
        named = {field.name: getattr(value, field.name) for field in fields(value)}
        return replace(value, **{name: numpy_of(part) for name, part in named.items()})
    if isinstance(value, list | tuple):
        return type(value)(map(numpy_of, value))
    return value


def assert_same(on_torch: Any, on_numpy: Any, tolerance: float = 1e-9) -> None:
    """Equal to the tolerance, relative above 1 and absolute below, and each in its library."""
    if isinstance(on_torch, Tensor):
        assert isinstance(on_numpy, np.ndarray | np.generic)
        assert str(on_torch.dtype).removeprefix("torch.") == str(on_numpy.dtype)
        np.testing.assert_allclose(on_numpy, on_torch.numpy(), rtol=tolerance, atol=tolerance)
    elif isinstance(on_torch, float):
        np.testing.assert_allclose(on_numpy, on_torch, rtol=tolerance, atol=tolerance)
    elif isinstance(on_torch, Mapping):
        assert set(on_torch) == set(on_numpy)
        for name, value in on_torch.items():
            assert_same(value, on_numpy[name], tolerance)
    elif is_dataclass(on_torch):
        for field in fields(on_torch):
            assert_same(getattr(on_torch, field.name), getattr(on_numpy, field.name), tolerance)
    elif isinstance(on_torch, Sequence) and not isinstance(on_torch, str):
        for value, same in zip(on_torch, on_numpy, strict=True):
            assert_same(value, same, tolerance)
    else:
        assert on_numpy == on_torch
