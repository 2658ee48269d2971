"""From dense fields to the observations a fit runs on: checked, pooled, packed.

A field is smooth, so neighbouring pixels say nearly the same. A cell of pixels is replaced by
one observation that is exact to first order: the confidence-weighted mean of its values, placed
at the equally weighted mean of its pixels, with the sum of their confidences.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from dataclasses import fields as dataclass_fields

import torch
from torch import Tensor
from torch.nn import functional as F

from geocalib.fields import Fields, pixel_grid

CLEARLY_OUT = 0.1
"""Latitudes further than this (radians) from their cell's mean count less in it."""

POLE_RADIUS = 0.05
"""Distance from the zenith or nadir (radians) at which an up-vector counts half."""


@dataclass(frozen=True)
class Observations:
    """N up-vectors and N latitudes per image, each (B, N) and at a place of its own."""

    up_at_x: Tensor
    up_at_y: Tensor
    up_x: Tensor
    up_y: Tensor
    up_weight: Tensor
    latitude_at_x: Tensor
    latitude_at_y: Tensor
    sin_latitude: Tensor
    latitude_weight: Tensor

    def __len__(self) -> int:
        return len(self.up_weight)

    @property
    def count(self) -> int:
        """N, padding included."""
        return self.up_weight.shape[1]

    @property
    def same_places(self) -> bool:
        """Whether up-vectors and latitudes sit at the same points."""
        return self.up_at_x is self.latitude_at_x

    def __getitem__(self, index: slice | Tensor) -> Observations:
        """A sub-batch."""
        parts = {f.name: getattr(self, f.name)[index] for f in dataclass_fields(self)}
        if self.same_places:
            parts["latitude_at_x"], parts["latitude_at_y"] = parts["up_at_x"], parts["up_at_y"]
        return Observations(**parts)

    def detach(self) -> Observations:
        """Without gradients."""
        parts = {f.name: getattr(self, f.name).detach() for f in dataclass_fields(self)}
        if self.same_places:
            parts["latitude_at_x"], parts["latitude_at_y"] = parts["up_at_x"], parts["up_at_y"]
        return Observations(**parts)

    def padded(self, count: int) -> Observations:
        """The same with N = count: what is added has no weight."""
        missing = count - self.count
        if missing == 0:
            return self
        return Observations(
            **{f.name: F.pad(getattr(self, f.name), (0, missing)) for f in dataclass_fields(self)}
        )


def concatenate(parts: list[Observations]) -> Observations:
    """One batch of several, padded to the largest."""
    if len(parts) == 1:
        return parts[0]
    count = max(part.count for part in parts)
    parts = [part.padded(count) for part in parts]
    return Observations(
        **{
            f.name: torch.cat([getattr(part, f.name) for part in parts])
            for f in dataclass_fields(Observations)
        }
    )


def observe(fields: Fields, cells: int | None) -> Observations:
    """The observations of a batch of fields.

    cells: pool to cells of a whole number of pixels, at least this many along the shorter side;
    None keeps every pixel.
    """
    width, height = fields.size
    side = 1 if cells is None else max(1, min(width, height) // cells)
    observations = _dense(fields) if side == 1 else _pooled(fields, side)
    # Towards the zenith and the nadir the up-vector turns ever faster and a place that is off
    # by little means an up-vector that is off by much.
    cosine2 = 1 - observations.sin_latitude**2
    trust = cosine2 / (cosine2 + POLE_RADIUS**2)
    return replace(observations, up_weight=observations.up_weight * trust)


def _dense(fields: Fields) -> Observations:
    width, height = fields.size
    batch = len(fields)
    x, y = pixel_grid(width, height, fields.up).reshape(-1, 2).unbind(-1)
    at_x, at_y = x.expand(batch, -1), y.expand(batch, -1)
    up = fields.up.flatten(2)
    return Observations(
        at_x,
        at_y,
        up[:, 0],
        up[:, 1],
        fields.up_confidence.flatten(1),
        at_x,
        at_y,
        torch.sin(fields.latitude.flatten(1)),
        fields.latitude_confidence.flatten(1),
    )


def _pooled(fields: Fields, side: int) -> Observations:
    width, height = fields.size
    grid = pixel_grid(width, height, fields.up).permute(2, 0, 1)[None]
    up_weight = fields.up_confidence[:, None]
    weight, mean = _weighted_means(
        torch.cat([fields.up, grid.expand_as(fields.up)], 1), up_weight, side
    )
    length = torch.linalg.vector_norm(mean[:, :2], dim=1, keepdim=True)
    up = mean[:, :2] / length.clamp(min=torch.finfo(mean.dtype).tiny)

    latitude = torch.cat([fields.latitude, grid.expand_as(fields.up)], 1)
    latitude_weight = fields.latitude_confidence[:, None]
    total, centre = _weighted_means(latitude, latitude_weight, side)
    # A stray latitude would pull its cell's mean by its full distance: count it less, and move
    # the cell's place along, which keeps the mean exact to first order.
    for _ in range(2):
        around = _spread(centre[:, :1], side, height, width)
        distance = (fields.latitude - around).abs()
        trusted = latitude_weight * (CLEARLY_OUT / distance.clamp(min=CLEARLY_OUT))
        _, centre = _weighted_means(latitude, trusted, side)
    flat = [t.flatten(1) for t in (*mean[:, 2:].unbind(1), *up.unbind(1), weight[:, 0])]
    return Observations(
        *flat,
        centre[:, 1].flatten(1),
        centre[:, 2].flatten(1),
        torch.sin(centre[:, 0].flatten(1)),
        total.flatten(1),
    )


def _weighted_means(values: Tensor, weight: Tensor, side: int) -> tuple[Tensor, Tensor]:
    """Sum of weights (B, 1, h, w) and weighted means (B, C, h, w) over cells of side x side."""
    stacked = torch.cat([values * weight, weight], 1)
    sums = F.avg_pool2d(stacked, side, ceil_mode=True, divisor_override=1)
    total = sums[:, -1:]
    return total, sums[:, :-1] / total.clamp(min=torch.finfo(total.dtype).tiny)


def _spread(cells: Tensor, side: int, height: int, width: int) -> Tensor:
    """Every pixel gets its cell's value: (B, 1, h, w) to (B, 1, H, W)."""
    repeated = cells.repeat_interleave(side, 2).repeat_interleave(side, 3)
    return repeated[:, :, :height, :width]
