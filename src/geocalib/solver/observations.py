"""From dense fields to the observations a fit runs on: pooled and packed.

A field is smooth, so neighbouring pixels say nearly the same. A cell of pixels is replaced by
one observation that is exact to first order: the confidence-weighted mean of its values, placed
at the equally weighted mean of its pixels, with the sum of their confidences.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import pad

from geocalib.geometry.fields import Fields, pixel_grid
from geocalib.geometry.tensors import map_tensors

STRAY = 0.15
"""Latitudes further than this (radians) from their cell's mean are strays that hardly count."""

STRAY_PASSES = 3

POLE_RADIUS = 0.05
"""Distance from the zenith or nadir (radians) at which an up-vector counts half."""


@dataclass(frozen=True)
class Observations:
    """N up-vectors and N latitudes per image."""

    at_x: Tensor
    """(B, 2 N) where they are, pixels: first the up-vectors, then the latitudes; or (B, N) where
    these share their places."""
    at_y: Tensor
    up_x: Tensor
    """(B, N), as all that follow."""
    up_y: Tensor
    up_weight: Tensor
    sin_latitude: Tensor
    latitude_weight: Tensor

    def __len__(self) -> int:
        return len(self.up_weight)

    @property
    def count(self) -> int:
        """N, padding included."""
        return self.up_weight.shape[1]

    def map(self, change: Callable[[Tensor], Tensor]) -> Observations:
        """With every tensor changed alike."""
        return map_tensors(change, self)

    def __getitem__(self, index: slice | Tensor) -> Observations:
        """A sub-batch."""
        return self.map(lambda value: value[index])

    def detach(self) -> Observations:
        """Without gradients."""
        return self.map(torch.Tensor.detach)

    def up_places(self) -> Tensor:
        """(B, N, 2)."""
        return torch.stack([self.at_x[:, : self.count], self.at_y[:, : self.count]], -1)

    def latitude_places(self) -> Tensor:
        """(B, N, 2)."""
        return torch.stack([self.at_x[:, -self.count :], self.at_y[:, -self.count :]], -1)

    def padded(self, count: int) -> Observations:
        """The same with N = count and separate places: what is added has no weight."""
        extra = (0, count - self.count)

        def separate(places: Tensor) -> Tensor:
            up, latitude = places[:, : self.count], places[:, -self.count :]
            return torch.cat([pad(up, extra), pad(latitude, extra)], 1)

        return Observations(
            at_x=separate(self.at_x),
            at_y=separate(self.at_y),
            up_x=pad(self.up_x, extra),
            up_y=pad(self.up_y, extra),
            up_weight=pad(self.up_weight, extra),
            sin_latitude=pad(self.sin_latitude, extra),
            latitude_weight=pad(self.latitude_weight, extra),
        )


def concatenate(parts: list[Observations]) -> Observations:
    """One batch of several, padded to the largest."""
    if len(parts) == 1:
        return parts[0]
    count = max(part.count for part in parts)
    padded = [part.padded(count) for part in parts]
    return map_tensors(lambda *values: torch.cat(values), *padded)


def observe(fields: Fields, cells: int | None) -> Observations:
    """The observations of a batch of fields.

    cells: pool to cells of a whole number of pixels, at least this many along the shorter side;
    None keeps every pixel.
    """
    side = 1 if cells is None else max(1, min(fields.size) // cells)
    observations = _dense(fields) if side == 1 else _pooled(fields, side)
    # Towards the zenith and the nadir the up-vector turns ever faster, and a place that is off
    # by little means an up-vector that is off by much.
    known = observations.latitude_weight > 0
    cosine2 = 1 - torch.where(known, observations.sin_latitude, 0.0) ** 2
    trust = cosine2 / (cosine2 + POLE_RADIUS**2)
    return replace(observations, up_weight=observations.up_weight * trust)


def _dense(fields: Fields) -> Observations:
    width, height = fields.size
    batch = len(fields)
    x, y = pixel_grid(width, height, fields.up).reshape(-1, 2).unbind(-1)
    up = fields.up.flatten(2)
    return Observations(
        at_x=x.expand(batch, -1),
        at_y=y.expand(batch, -1),
        up_x=up[:, 0],
        up_y=up[:, 1],
        up_weight=fields.up_confidence.flatten(1),
        sin_latitude=torch.sin(fields.latitude.flatten(1)),
        latitude_weight=fields.latitude_confidence.flatten(1),
    )


def _pooled(fields: Fields, side: int) -> Observations:
    up_weight, latitude_weight = fields.up_confidence, fields.latitude_confidence
    latitude = fields.latitude[:, 0]
    up_total, up_at, (up_x, up_y) = _cell_means(up_weight, [fields.up[:, 0], fields.up[:, 1]], side)
    # The floor comes before the root, whose derivative at 0 is infinite.
    length = torch.sqrt((up_x * up_x + up_y * up_y).clamp(min=torch.finfo(up_x.dtype).tiny))
    total, latitude_at, (mean,) = _cell_means(latitude_weight, [latitude], side)
    # A stray latitude would pull its cell's mean by its full distance: count it (much) less, and
    # move the cell's place along, which keeps the mean exact to first order. Cells without a
    # stray stay as they are, so that it does not matter what else is in the batch.
    if _strays(latitude, mean, side):
        for _ in range(STRAY_PASSES):
            distance = (latitude - _spread(mean, latitude, side)) / STRAY
            trusted = latitude_weight / (distance * distance).clamp(min=1) ** 2
            _, latitude_at, (mean,) = _cell_means(trusted, [latitude], side)
    return Observations(
        at_x=torch.cat([up_at[0].flatten(1), latitude_at[0].flatten(1)], 1),
        at_y=torch.cat([up_at[1].flatten(1), latitude_at[1].flatten(1)], 1),
        up_x=(up_x / length).flatten(1),
        up_y=(up_y / length).flatten(1),
        up_weight=up_total.flatten(1),
        sin_latitude=torch.sin(mean.flatten(1)),
        latitude_weight=total.flatten(1),
    )


def _cell_means(
    weight: Tensor, values: list[Tensor], side: int
) -> tuple[Tensor, tuple[Tensor, Tensor], list[Tensor]]:
    """Over cells of side x side pixels of (B, H, W): the sum of the weights (B, h, w), the
    weighted mean place (x, y) and the weighted means of the values."""
    _, height, width = weight.shape
    x = torch.arange(width, dtype=weight.dtype, device=weight.device) + 0.5
    y = torch.arange(height, dtype=weight.dtype, device=weight.device) + 0.5
    # Along one axis at a time: rows first is fast, and serves the sums over x.
    rows = _sum_runs(weight, side, 1)
    total = _sum_runs(rows, side, 2)
    inverse = 1 / total.clamp(min=torch.finfo(total.dtype).tiny)
    at_x = _sum_runs(rows * x, side, 2) * inverse
    at_y = _sum_runs(_sum_runs(weight, side, 2) * y[:, None], side, 1) * inverse
    means = [_sum_runs(_sum_runs(v * weight, side, 1), side, 2) * inverse for v in values]
    return total, (at_x, at_y), means


def _runs(values: Tensor, side: int, dim: int) -> Tensor:
    """Runs of ``side`` along a dimension of (B, H, W) as a dimension of their own behind it;
    the last one is filled up with zeros."""
    missing = -values.shape[dim] % side
    if missing:
        values = pad(values, (0, missing) if dim == 2 else (0, 0, 0, missing))
    shape = list(values.shape)
    shape[dim : dim + 1] = [shape[dim] // side, side]
    return values.reshape(shape)


def _sum_runs(values: Tensor, side: int, dim: int) -> Tensor:
    """Sums of runs of ``side`` along a dimension of (B, H, W)."""
    return _runs(values, side, dim).sum(dim + 1)


def _strays(values: Tensor, cells: Tensor, side: int) -> bool:
    """Whether any pixel is a stray in its cell."""
    _, height, width = values.shape
    if height % side or width % side:
        missing = (0, -width % side, 0, -height % side)
        values = pad(values[:, None], missing, mode="replicate")[:, 0]
    rows = _runs(values, side, 1)
    high = _runs(rows.amax(2), side, 2).amax(3)
    low = _runs(rows.amin(2), side, 2).amin(3)
    return bool(torch.maximum(high - cells, cells - low).amax() > STRAY)


def _spread(cells: Tensor, like: Tensor, side: int) -> Tensor:
    """Every pixel of (B, H, W) gets the value of its cell (B, h, w)."""
    _, height, width = like.shape
    spread = cells.repeat_interleave(side, 2)[:, :, :width].repeat_interleave(side, 1)
    return spread[:, :height]
