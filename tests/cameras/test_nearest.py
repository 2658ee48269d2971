"""The nearest camera of another model."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from geocalib.cameras import Camera
from geocalib.cameras.nearest import nearest
from geocalib.errors import CameraError
from geocalib.geometry.fields import pixel_grid

SIZE = (640, 480)


@pytest.mark.parametrize("bend", [0.4, 0.58, 0.7])
@pytest.mark.parametrize("hfov_deg", [100, 150, 180])
def test_pixels_of_a_wide_lens_stay_where_they_are(bend: float, hfov_deg: float) -> None:
    half = math.radians(hfov_deg) / 2
    if math.cos(half) < -0.9 * min(bend / (1 - bend), (1 - bend) / bend):
        pytest.skip("the model does not see as far")
    f = 320 * (bend + (1 - bend) * math.cos(half)) / math.sin(half)
    given = Camera.create("ucm", [f, 1.2 * f], SIZE, [bend], c=(300.0, 250.0), dtype=np.float64)
    found = nearest(given, "kannala_brandt")
    assert found.model.name == "kannala_brandt"
    pixels = 10 * pixel_grid(64, 48, given.f).reshape(1, -1, 2)
    for one, other in zip(given, found, strict=True):
        rays, valid = one.unproject(pixels)
        again, seen = other.project(rays)
        assert seen[valid].all()
        assert np.abs(again - pixels)[valid].max() < 0.2


def test_pixels_of_ptlens_stay_where_they_are() -> None:
    given = Camera.create("ptlens", 420.0, SIZE, [0.01, -0.12, 0.05], dtype=np.float64)
    found = nearest(given, "radial3")
    assert found.model.name == "radial3"
    pixels = 10 * pixel_grid(64, 48, given.f).reshape(1, -1, 2)
    again, seen = found.project(given.unproject(pixels)[0])
    assert seen.all()
    assert np.abs(again - pixels).max() < 0.05


def test_a_fisheye_stays_the_same_in_torch() -> None:
    given = Camera.create(
        "kannala_brandt", torch.tensor([190.0]).double(), SIZE, [0.02, -0.01, 0.003, 0.0]
    )
    found = nearest(given, "kannala_brandt")
    assert isinstance(found.f, torch.Tensor)
    assert found.f.item() == pytest.approx(190, rel=1e-9)
    assert found.distortion[0].tolist() == pytest.approx(given.distortion[0].tolist(), abs=1e-6)


def test_a_lens_that_misses_has_none() -> None:
    with pytest.raises(CameraError, match=r"the nearest kannala_brandt misses this lens by \d"):
        nearest(Camera.create("pinhole", 20.0, SIZE, dtype=np.float64), "kannala_brandt")
