"""Arrays of NumPy and tensors of torch, handled alike: mathematics is written once for both.

It is made of three things: what arrays of both libraries do by themselves (operators, indexing,
``reshape``, ``clip``, ``sum(axis)``, ``all()``, ``any()``, ``mT``), the functions of the array API
standard, which ``namespace`` finds, and the few below that the standard lacks or that are slow
there. NumPy has the standard's functions itself (all but sorting downwards); torch's come from
array-api-compat.

torch is not imported here before somebody brings something of it along.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any, TypeAlias, TypeGuard

import numpy as np

Array: TypeAlias = Any
"""An array of NumPy or a tensor of torch."""
DType: TypeAlias = Any
Device: TypeAlias = Any
Namespace: TypeAlias = Any
"""A library's functions, by the names of the array API standard."""

NUMPY: Any = (np.ndarray, np.generic)
"""The types of NumPy's arrays; any other array here is a tensor."""

quiet = np.errstate(all="ignore")
"""Decorates what divides by 0 and the like on purpose: NumPy is not to warn of it."""


# Which library -----------------------------------------------------------------------------------


def is_array(thing: object) -> bool:
    return isinstance(thing, NUMPY) or (is_tensor(thing) and hasattr(thing, "ndim"))


def is_tensor(thing: object) -> TypeGuard[Any]:
    """Whether it is torch's: a tensor, a dtype, a device."""
    return namespace(thing) is not np


def namespace(thing: object) -> Namespace:
    """The library of an array, a dtype or a device: torch's is torch, that of all else NumPy."""
    return _library(type(thing))  # type: ignore[arg-type]  # types are hashable


@cache
def _library(kind: type) -> Namespace:
    if any(base.__module__.partition(".")[0] == "torch" for base in kind.__mro__):
        return _torch_namespace()
    return np


def _torch_namespace() -> Namespace:
    from array_api_compat import torch as torch_namespace

    return torch_namespace


def common_namespace(*things: object) -> Namespace:
    """The library of several things: torch if one of them is torch's, else NumPy."""
    return _torch_namespace() if any(map(is_tensor, things)) else np


# Making arrays, and their kinds of number --------------------------------------------------------


def to_array(
    value: Any, xp: Namespace, dtype: DType | None = None, device: Device | None = None
) -> Array:
    """Numbers or an array, of any library, in that one. Gradients are kept by torch."""
    if xp is np:
        return np.asarray(to_numpy(value), dtype=dtype)
    # Tensors cannot share memory that is not to be written to.
    if isinstance(value, np.ndarray) and not value.flags.writeable:
        value = value.copy()
    return xp.as_tensor(value, dtype=dtype, device=device)


def to_numpy(value: Any) -> Any:
    """A tensor, of any device, as an array of NumPy; anything else as it is."""
    return value.detach().cpu().numpy() if is_tensor(value) else value


def as_array(value: Any, like: Array, dtype: DType | None = None) -> Array:
    """The same in the library and on the device of ``like``; of its dtype, if none is given."""
    return to_array(value, namespace(like), like.dtype if dtype is None else dtype, like.device)


def as_floats(value: Any, xp: Namespace, dtype: DType | None = None) -> Array:
    """The same of that dtype; or of its own if that is a floating one, or of the library's
    default."""
    array = to_array(value, xp, dtype)
    if xp.isdtype(array.dtype, "real floating"):
        return array
    return cast(array, xp.__array_namespace_info__().default_dtypes()["real floating"])


def as_doubles(value: Any, like: Array | None = None) -> Array:
    """The same in double precision, in the library of ``like``, NumPy by default."""
    xp = common_namespace(like)
    return to_array(value, xp, xp.float64)


def zeros(shape: Sequence[int], like: Array) -> Array:
    """With the dtype and device of ``like``."""
    return namespace(like).zeros(tuple(shape), dtype=like.dtype, device=like.device)


def counting(count: int, like: Array, dtype: DType | None = None) -> Array:
    """0, 1, ..., count - 1: integers, or of that dtype."""
    xp = namespace(like)
    return xp.arange(count, dtype=xp.int64 if dtype is None else dtype, device=like.device)


def cast(x: Array, dtype: DType) -> Array:
    """With that kind of number; the same array where it has it already."""
    return x.astype(dtype, copy=False) if isinstance(x, NUMPY) else x.to(dtype)


def double(x: Array) -> Array:
    """The same array in double precision."""
    return cast(x, namespace(x).float64)


def eps(x: Array) -> float:
    """Relative rounding of its kind of number."""
    return float(_finfo(x.dtype).eps)


def tiny(x: Array) -> float:
    """Smallest normal number of its kind."""
    return float(_finfo(x.dtype).smallest_normal)


@cache
def _finfo(dtype: DType) -> Any:
    return namespace(dtype).finfo(dtype)


# Elements and axes -------------------------------------------------------------------------------


def degrees(x: Array) -> Array:
    """Angles in degrees, of radians."""
    return math.degrees(1) * x


def inverse_root(x: Array, floored: bool = False) -> Array:
    """The inverse of the square root, 1 / sqrt(x). floored: of at least the smallest normal
    number, which keeps it finite at 0."""
    if floored:
        x = x.clip(tiny(x))
    return 1 / np.sqrt(x) if isinstance(x, NUMPY) else x.rsqrt()


def unstack(x: Array, axis: int = -1) -> tuple[Array, ...]:
    """The slices along an axis, without it."""
    if not isinstance(x, NUMPY):
        return tuple(x.unbind(axis))
    if axis != -1:
        x = np.moveaxis(x, axis, -1)
    return tuple([x[..., i] for i in range(x.shape[-1])])


def row_max(values: Array) -> Array:
    """(n,) the largest of each row of (n, m), 0 if there are no columns."""
    if values.shape[1] == 0:
        return zeros(values.shape[:1], values)
    # NumPy's function takes longer than its method, where arrays are small.
    return values.max(axis=1) if isinstance(values, NUMPY) else values.amax(1)


# Rows by index -----------------------------------------------------------------------------------


def sum_rows(values: Array, index: Array, count: int) -> Array:
    """Rows of values (n, ...) summed by index (n,) into ``count`` rows."""
    total = zeros((count, *values.shape[1:]), values)
    if not isinstance(values, NUMPY):
        return total.index_add(0, index, values)
    np.add.at(total, index, values)
    return total


def mean_rows(values: Array, index: Array, count: int) -> Array:
    """(count, ...) the means of the values (n, ...) with that index (n,)."""
    ones = namespace(values).ones(len(values), dtype=values.dtype, device=values.device)
    number = sum_rows(ones, index, count)
    return sum_rows(values, index, count) / number.reshape(-1, *(1,) * (values.ndim - 1))


def max_rows(start: Array, index: Array, values: Array) -> Array:
    """(count,) the largest of the start and of all values (n,) with that index (n,)."""
    if not isinstance(start, NUMPY):
        return start.scatter_reduce(0, index, values, "amax")
    largest = start.copy()
    np.maximum.at(largest, index, values)
    return largest


def min_rows(start: Array, index: Array, values: Array) -> Array:
    """(count,) the smallest of the start and of all values (n,) with that index (n,)."""
    return -max_rows(-start, index, -values)


def replace_rows(x: Array, index: Array, rows: Array) -> Array:
    """With the rows of that index (n,) taken from ``rows`` (n, ...)."""
    if not isinstance(x, NUMPY):
        return x.index_copy(0, index, rows)
    x = x.copy()
    x[index] = rows
    return x


# Matrices ----------------------------------------------------------------------------------------


def diagonal(matrices: Array) -> Array:
    """(..., n) of (..., n, n)."""
    if isinstance(matrices, NUMPY):
        return matrices.diagonal(axis1=-2, axis2=-1)
    return namespace(matrices).linalg.diagonal(matrices)


def diagonal_matrices(diagonals: Array) -> Array:
    """(..., n, n) with these diagonals (..., n)."""
    if not isinstance(diagonals, NUMPY):
        return diagonals.diag_embed()
    size = diagonals.shape[-1]
    entries = np.zeros((*diagonals.shape[:-1], size * size), diagonals.dtype)
    entries[..., :: size + 1] = diagonals
    return entries.reshape(*diagonals.shape, size)


def inverse(matrices: Array) -> Array:
    """The inverses of matrices (n, p, p); that of a singular one is not finite."""
    if not isinstance(matrices, NUMPY):
        return namespace(matrices).linalg.inv_ex(matrices)[0]
    try:
        return np.linalg.inv(matrices)
    except np.linalg.LinAlgError:
        return np.stack([_inverse_or_nan(matrix) for matrix in matrices])


def _inverse_or_nan(matrix: Array) -> Array:
    try:
        return np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        return np.full_like(matrix, np.nan)


def solve(matrices: Array, right: Array) -> Array:
    """(n, p, q) of (n, p, p) x = (n, p, q); NaN or infinite where a matrix is singular."""
    if not isinstance(matrices, NUMPY):
        return namespace(matrices).linalg.solve_ex(matrices, right)[0]
    try:
        return np.linalg.solve(matrices, right)
    except np.linalg.LinAlgError:
        return np.stack([_inverse_or_nan(m) @ r for m, r in zip(matrices, right, strict=True)])


# Derivatives, which only torch records -----------------------------------------------------------


def copied(x: Array) -> Array:
    """One of its own memory, which inference has not marked."""
    return x.copy() if isinstance(x, NUMPY) else x.clone()


def detach(x: Array) -> Array:
    """The same values without the history of gradients."""
    return x if isinstance(x, NUMPY) else x.detach()


def no_gradients() -> AbstractContextManager[Any]:
    """A context in which no gradients are recorded."""
    return _if_torch("no_grad")


def inference() -> AbstractContextManager[Any]:
    """A context in which nothing that is made can ever be recorded: faster than
    ``no_gradients``."""
    return _if_torch("inference_mode")


def _if_torch(name: str) -> AbstractContextManager[Any]:
    """A context of torch; without torch in this process, one that does nothing."""
    context = getattr(sys.modules.get("torch"), name, None)
    return nullcontext() if context is None else context()
