"""From dense fields to the observations a fit runs on: pooled and packed.

A field is smooth, so neighbouring pixels say nearly the same. A cell of pixels is replaced by
one observation that is exact to first order: the confidence-weighted mean of its values, placed
at the equally weighted mean of its pixels, with the sum of their confidences.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

from geocalib.arrays import Array, counting, detach, namespace, tiny, unstack, zeros
from geocalib.geometry.fields import Fields
from geocalib.records import dataclass, map_tensors

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

    @cached_property
    def count(self) -> int:
        """The number of places N, padding included."""
        return self.up_weight.shape[1]

    def map(self, change: Callable[[Array], Array]) -> Observations:
        """With every tensor changed alike."""
        return map_tensors(change, self)

    def __getitem__(self, index: slice | Array) -> Observations:
        """The observations of some of the images."""
        return self.map(lambda value: value[index])

    def detach(self) -> Observations:
        """The same values without gradients."""
        return self.map(detach)

    def up_places(self) -> Array:
        """The places of up-vectors in pixels, (B, N, 2)."""
        return namespace(self.at_x).stack(
            [self.at_x[:, : self.count], self.at_y[:, : self.count]], axis=-1
        )

    def latitude_places(self) -> Array:
        """The places of latitudes in pixels, (B, N, 2)."""
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
    x, y = (_rows(xp.broadcast_to(at, (1, height, width))) for at in _places(fields.up))
    up = fields.up.reshape(batch, 2, -1)
    return Observations(
        at_x=xp.broadcast_to(x, (batch, x.shape[1])),
        at_y=xp.broadcast_to(y, (batch, y.shape[1])),
        up_x=up[:, 0],
        up_y=up[:, 1],
        up_weight=_rows(fields.up_confidence),
        sin_latitude=xp.sin(_rows(fields.latitude)),
        latitude_weight=_rows(fields.latitude_confidence),
    )


def _places(values: Array) -> tuple[Array, Array]:
    """x (W,) and y (H, 1) of the pixels of values (..., H, W)."""
    height, width = values.shape[-2:]
    x = counting(width, values, values.dtype) + 0.5
    return x, (counting(height, values, values.dtype) + 0.5)[:, None]


def _rows(values: Array) -> Array:
    """(B, ...) as (B, N)."""
    return values.reshape(len(values), -1)


def _pooled(fields: Fields, side: int) -> Observations:
    latitude, latitude_weight = fields.latitude, fields.latitude_confidence
    xp = namespace(latitude)
    # All sums over cells at once: they are many, and small.
    of_up = _moments(fields.up_confidence, fields.up)
    of_both = xp.concat([of_up, _moments(latitude_weight, latitude)], axis=1)
    sums = _over_cells(of_both, side)
    up_total, (up_at_x, up_at_y, up_x, up_y) = _means(sums[:, : of_up.shape[1]])
    # The floor comes before the root, whose derivative at 0 is infinite.
    length = xp.sqrt((up_x * up_x + up_y * up_y).clip(tiny(up_x)))
    total, (at_x, at_y, mean) = _means(sums[:, of_up.shape[1] :])
    # A stray latitude would pull its cell's mean by its full distance: count it (much) less, and
    # move the cell's place along, which keeps the mean exact to first order. Cells without a
    # stray stay as they are, so that it does not matter what else is in the batch.
    distance = _distance(latitude, mean, side)
    if bool((distance > 1).any()):
        for _ in range(STRAY_PASSES):
            trusted = latitude_weight / (distance * distance).clip(1) ** 2
            _, (at_x, at_y, mean) = _means(_over_cells(_moments(trusted, latitude), side))
            distance = _distance(latitude, mean, side)
    return Observations(
        at_x=xp.concat([_rows(up_at_x), _rows(at_x)], axis=1),
        at_y=xp.concat([_rows(up_at_y), _rows(at_y)], axis=1),
        up_x=_rows(up_x / length),
        up_y=_rows(up_y / length),
        up_weight=_rows(up_total),
        sin_latitude=xp.sin(_rows(mean)),
        latitude_weight=_rows(total),
    )


def _moments(weight: Array, values: Array) -> Array:
    """(B, 3 + C, H, W): the weights (B, H, W), and these times x, y and each of C values
    (B, C, H, W)."""
    weight, (x, y) = weight[:, None], _places(weight)
    return namespace(weight).concat([weight, weight * x, weight * y, weight * values], axis=1)


def _means(sums: Array) -> tuple[Array, tuple[Array, ...]]:
    """From moments (B, 3 + C, h, w) summed over cells, the weights (B, h, w), and the weighted
    means of all else."""
    total = sums[:, 0]
    inverse = 1 / total.clip(tiny(total))
    return total, unstack(sums[:, 1:] * inverse[:, None], 1)


def _over_cells(values: Array, side: int) -> Array:
    """The sums (..., h, w) over cells of side x side of (..., H, W); those at the right and at the
    bottom may be smaller."""
    return _over_runs(_over_runs(values, side).mT, side).mT


def _over_runs(values: Array, side: int) -> Array:
    """The same over runs of ``side`` rows: (..., h, W)."""
    end = values.shape[-2] // side * side
    # Row by row: NumPy takes several times as long for a sum over so short an axis.
    whole = values[..., 0:end:side, :]
    for row in range(1, side):
        whole = whole + values[..., row:end:side, :]
    if end == values.shape[-2]:
        return whole
    rest = values[..., end:, :].sum(-2)[..., None, :]
    return namespace(values).concat([whole, rest], axis=-2)


def _distance(values: Array, means: Array, side: int) -> Array:
    """(B, H, W) how far values (B, 1, H, W) are from the means (B, h, w) of their cells, by
    ``STRAY``."""
    height, width = values.shape[-2:]
    xp = namespace(means)
    spread = xp.repeat(means, side, axis=2)[:, :, :width]
    return abs(values[:, 0] - xp.repeat(spread, side, axis=1)[:, :height]) / STRAY
