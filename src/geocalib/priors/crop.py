"""A known crop: where the picture was cut out of a larger one, whose lens it still has."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from geocalib.errors import ConfigError

if TYPE_CHECKING:
    from geocalib.priors.exif import FocalReading

SHAPE = 0.02
"""Relative difference of two aspect ratios that is more than the rounding of a resize."""


@dataclass(frozen=True)
class Crop:
    """A window of a full picture, in its pixels; what was cut out may have been resized since."""

    left: float
    top: float
    width: float
    height: float
    full_width: float
    full_height: float

    def __post_init__(self) -> None:
        if not all(map(math.isfinite, astuple(self))):
            raise ConfigError(f"a crop must be finite, got {self}")
        right, bottom = self.left + self.width, self.top + self.height
        inside = self.left >= 0 and self.top >= 0 and self.width > 0 and self.height > 0
        if not inside or right > self.full_width or bottom > self.full_height:
            raise ConfigError(
                f"a crop must lie in its full picture: left {self.left:g} and top {self.top:g}, "
                f"{self.width:g}x{self.height:g} of {self.full_width:g}x{self.full_height:g}"
            )

    def check(self, size: tuple[int, int], name: str) -> None:
        """That a picture of (width, height) can be what was cut out."""
        if abs(math.log(self.width / self.height * size[1] / size[0])) > SHAPE:
            raise ConfigError(
                f"{name} is {size[0]}x{size[1]} pixels, which is not the shape of a crop of "
                f"{self.width:g}x{self.height:g}"
            )

    def principal_point(self, size: tuple[int, int]) -> tuple[float, float]:
        """The middle of the full picture, in pixels of the cut one of (width, height)."""
        return (
            (0.5 * self.full_width - self.left) * size[0] / self.width,
            (0.5 * self.full_height - self.top) * size[1] / self.height,
        )

    def focal(self, hint: FocalReading, size: tuple[int, int]) -> FocalReading:
        """A focal length in pixels of the full picture, in those of the cut one."""
        scale = size[1] / self.height
        return replace(hint, focal_px=scale * hint.focal_px, sigma_px=scale * hint.sigma_px)

    @property
    def full_size(self) -> tuple[int, int]:
        return round(self.full_width), round(self.full_height)


CropLike: TypeAlias = Crop | Sequence[float] | Sequence[Crop | Sequence[float] | None] | None
"""Nothing, one for all images, or one (or None) for each; as a ``Crop`` or its six numbers."""


def crops_of(given: CropLike, count: int) -> tuple[Crop | None, ...]:
    """One for each of so many images."""
    if given is None or isinstance(given, Crop) or _is_one(given):
        return (_crop(given),) * count
    if len(given) != count:
        raise ConfigError(f"crop holds {len(given)} crops for {count} images; give one each")
    return tuple(map(_crop, given))


def _is_one(given: Sequence[object]) -> bool:
    return bool(given) and all(isinstance(value, int | float) for value in given)


def _crop(given: object) -> Crop | None:
    if given is None or isinstance(given, Crop):
        return given
    if isinstance(given, Sequence) and len(given) == 6 and _is_one(given):
        return Crop(*map(float, given))
    raise ConfigError(
        f"a crop is left, top, width, height, full width and full height, got {given!r:.80}"
    )
