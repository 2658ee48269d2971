"""Crops: their principal points and focal lengths, exactly; and bad ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from geocalib.cameras import Camera
from geocalib.errors import ConfigError
from geocalib.priors.crop import Crop, crops_of
from geocalib.priors.exif import FocalReading

CROP = Crop(100, 50, 400, 300, 1000, 800)


@pytest.mark.parametrize("size", [(400, 300), (800, 600), (201, 150)])
def test_as_cameras_are_cropped_and_resized(size: tuple[int, int]) -> None:
    full = Camera.create("pinhole", f=np.array(900.0), size=(1000, 800))
    cut = full.crop(100, 50, 400, 300).resize(*size)
    assert CROP.principal_point(size) == pytest.approx(cut.c[0].tolist(), rel=1e-12)
    focal = CROP.focal(FocalReading(900, 27, "tag"), size)
    assert focal.focal_px == pytest.approx(cut.f.item(), rel=1e-12)
    assert focal.sigma_px == pytest.approx(0.03 * cut.f.item())


@pytest.mark.parametrize(
    "numbers",
    [
        (-1, 0, 10, 10, 20, 20),
        (11, 0, 10, 10, 20, 20),
        (0, 11, 10, 10, 20, 20),
        (0, 0, 0, 10, 20, 20),
        (0, 0, 30, 10, 20, 20),
        (float("nan"), 0, 10, 10, 20, 20),
    ],
)
def test_a_crop_lies_in_its_picture(numbers: tuple[float, ...]) -> None:
    with pytest.raises(ConfigError, match="a crop must"):
        Crop(*numbers)


def test_a_picture_has_the_shape_of_its_crop() -> None:
    CROP.check((801, 600), "a.jpg")
    with pytest.raises(ConfigError, match=r"a\.jpg is 300x400 pixels.*400x300"):
        CROP.check((300, 400), "a.jpg")


@pytest.mark.parametrize("given", [CROP, (100, 50, 400, 300, 1000, 800)])
def test_one_for_all(given: Any) -> None:
    assert crops_of(given, 2) == (CROP, CROP)


def test_one_for_each_and_none() -> None:
    assert crops_of([None, [100, 50, 400, 300, 1000, 800]], 2) == (None, CROP)
    assert crops_of(None, 3) == (None, None, None)


@pytest.mark.parametrize("given", [(1, 2, 3), [CROP], [CROP, (1, 2)], ["a", "b"]])
def test_what_is_no_crop_is_named(given: Any) -> None:
    with pytest.raises(ConfigError, match="crop"):
        crops_of(given, 2)
