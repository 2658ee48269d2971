"""From dense fields to the observations a fit runs on: pooled and packed.

A field is smooth, so neighbouring pixels say nearly the same. A cell of pixels is replaced by
one observation that is exact to first order: the confidence-weighted mean of its values, placed
at the equally weighted mean of its pixels, with the sum of their confidences.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from geocalib.arrays import Array, clip, counting, detach, namespace, tiny, unstack, zeros
from geocalib.geometry.fields import Fields, pixel_grid
from geocalib.geometry.tensors import map_tensors
from geocalib.records import dataclass

STRAY = 0.15
"""Latitudes further than this (radians) from their cell's mean are strays that hardly count."""

STRAY_PASSES = 3

POLE_RADIUS = 0.05
"""Distance from the zenith or nadir (radians) at which an up-vector counts half."""


@dataclass(frozen=True)
class Observations:
    """N up-vectors and N latitudes per image."""

    at_x: Array
    """(B, 2 N) where they are, pixels: first the up-vectors, then the latitudes; or (B, N) where
    these share their places."""
    at_y: Array
    up_x: Array
    """(B, N), as all that follow."""
    up_y: Array
    up_weight: Array
    sin_latitude: Array
    latitude_weight: Array

    def __len__(self) -> int:
        return len(self.up_weight)

    @property
    def count(self) -> int:
        """N, padding included."""
        return self.up_weight.shape[1]

    def map(self, change: Callable[[Array], Array]) -> Observations:
        """With every tensor changed alike."""
        return map_tensors(change, self)

    def __getitem__(self, index: slice | Array) -> Observations:
        """A sub-batch."""
        return self.map(lambda value: value[index])

    def detach(self) -> Observations:
        """Without gradients."""
        return self.map(detach)

    def up_places(self) -> Array:
        """(B, N, 2)."""
        return namespace(self.at_x).stack(
            [self.at_x[:, : self.count], self.at_y[:, : self.count]], axis=-1
        )

    def latitude_places(self) -> Array:
        """(B, N, 2)."""
        return namespace(self.at_x).stack(
            [self.at_x[:, -self.count :], self.at_y[:, -self.count :]], axis=-1
        )

    def padded(self, count: int) -> Observations:
        """The same with N = count and separate places: what is added has no weight."""
        xp = namespace(self.up_weight)
        extra = zeros((len(self), count - self.count), self.up_weight)

        def pad(values: Array) -> Array:
            return xp.concat([values, extra], axis=1)

        def separate(places: Array) -> Array:
            return xp.concat([pad(places[:, : self.count]), pad(places[:, -self.count :])], axis=1)

        return Observations(
            at_x=separate(self.at_x),
            at_y=separate(self.at_y),
            up_x=pad(self.up_x),
            up_y=pad(self.up_y),
            up_weight=pad(self.up_weight),
            sin_latitude=pad(self.sin_latitude),
            latitude_weight=pad(self.latitude_weight),
        )


def concatenate(parts: list[Observations]) -> Observations:
    """One batch of several, padded to the largest."""
    if len(parts) == 1:
        return parts[0]
    count = max(part.count for part in parts)
    padded = [part.padded(count) for part in parts]
    return map_tensors(lambda *values: namespace(values[0]).concat(values), *padded)


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
    cosine2 = 1 - namespace(known).where(known, observations.sin_latitude, 0.0) ** 2
    trust = cosine2 / (cosine2 + POLE_RADIUS**2)
    return replace(observations, up_weight=observations.up_weight * trust)


def _dense(fields: Fields) -> Observations:
    width, height = fields.size
    batch = len(fields)
    xp = namespace(fields.up)
    x, y = unstack(pixel_grid(width, height, fields.up).reshape(-1, 2))
    up = fields.up.reshape(batch, 2, -1)
    return Observations(
        at_x=xp.broadcast_to(x, (batch, len(x))),
        at_y=xp.broadcast_to(y, (batch, len(y))),
        up_x=up[:, 0],
        up_y=up[:, 1],
        up_weight=_rows(fields.up_confidence),
        sin_latitude=xp.sin(_rows(fields.latitude)),
        latitude_weight=_rows(fields.latitude_confidence),
    )


def _rows(values: Array) -> Array:
    """(B, ...) as (B, N)."""
    return values.reshape(len(values), -1)


def _pooled(fields: Fields, side: int) -> Observations:
    up_weight, latitude_weight = fields.up_confidence, fields.latitude_confidence
    latitude = fields.latitude[:, 0]
    xp = namespace(latitude)
    up_total, up_at, (up_x, up_y) = _cell_means(up_weight, [fields.up[:, 0], fields.up[:, 1]], side)
    # The floor comes before the root, whose derivative at 0 is infinite.
    length = xp.sqrt(clip(up_x * up_x + up_y * up_y, tiny(up_x)))
    total, latitude_at, (mean,) = _cell_means(latitude_weight, [latitude], side)
    # A stray latitude would pull its cell's mean by its full distance: count it (much) less, and
    # move the cell's place along, which keeps the mean exact to first order. Cells without a
    # stray stay as they are, so that it does not matter what else is in the batch.
    if _strays(latitude, mean, side):
        for _ in range(STRAY_PASSES):
            distance = (latitude - _spread(mean, latitude, side)) / STRAY
            trusted = latitude_weight / clip(distance * distance, 1) ** 2
            _, latitude_at, (mean,) = _cell_means(trusted, [latitude], side)
    return Observations(
        at_x=xp.concat([_rows(up_at[0]), _rows(latitude_at[0])], axis=1),
        at_y=xp.concat([_rows(up_at[1]), _rows(latitude_at[1])], axis=1),
        up_x=_rows(up_x / length),
        up_y=_rows(up_y / length),
        up_weight=_rows(up_total),
        sin_latitude=xp.sin(_rows(mean)),
        latitude_weight=_rows(total),
    )


def _cell_means(
    weight: Array, values: list[Array], side: int
) -> tuple[Array, tuple[Array, Array], list[Array]]:
    """Over cells of side x side pixels of (B, H, W): the sum of the weights (B, h, w), the
    weighted mean place (x, y) and the weighted means of the values."""
    xp = namespace(weight)
    _, height, width = weight.shape
    x = counting(width, weight, weight.dtype) + 0.5
    y = counting(height, weight, weight.dtype) + 0.5
    rows = _over_runs(xp.sum, weight, side)
    total = _over_runs(xp.sum, rows.mT, side).mT
    inverse = 1 / clip(total, tiny(total))
    at_x = _over_runs(xp.sum, (rows * x).mT, side).mT * inverse
    at_y, *means = (
        _over_cells(xp.sum, value * weight, side) * inverse for value in (y[:, None], *values)
    )
    return total, (at_x, at_y), means


def _over_cells(reduce: Callable[..., Array], values: Array, side: int) -> Array:
    """The sums, say, (B, h, w) over cells of side x side of (B, H, W); those at the right and at
    the bottom may be smaller."""
    return _over_runs(reduce, _over_runs(reduce, values, side).mT, side).mT


def _over_runs(reduce: Callable[..., Array], values: Array, side: int) -> Array:
    """The same over runs of ``side`` rows, which is fast: (B, h, W)."""
    batch, height, width = values.shape
    count = height // side
    end = count * side
    whole = reduce(values[:, :end].reshape(batch, count, side, width), axis=2)
    if end == height:
        return whole
    rest = reduce(values[:, end:], axis=1, keepdims=True)
    return namespace(values).concat([whole, rest], axis=1)


def _strays(values: Array, cells: Array, side: int) -> bool:
    """Whether any pixel is a stray in its cell."""
    xp = namespace(values)
    high, low = _over_cells(xp.max, values, side), _over_cells(xp.min, values, side)
    return bool(xp.maximum(high - cells, cells - low).max() > STRAY)


def _spread(cells: Array, like: Array, side: int) -> Array:
    """Every pixel of (B, H, W) gets the value of its cell (B, h, w)."""
    _, height, width = like.shape
    xp = namespace(cells)
    spread = xp.repeat(cells, side, axis=2)[:, :, :width]
    return xp.repeat(spread, side, axis=1)[:, :height]
