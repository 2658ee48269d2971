"""Panoramas whose brightness tells where down is, looked at by a method that reads it off."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from scipy.spatial.transform import Rotation

from calibrations import FAILURE
from geocalib.errors import ConfigError, PanoramaError
from geocalib.geometry.fields import pixel_grid
from geocalib.result.calibration import Outcome
from geocalib_lab.evaluation.levels import VFOV_DEG, check_level
from known_photos import CARD, answer


class Reader:
    """Fits the gravity whose product with each ray is the brightness there."""

    card = CARD

    def __init__(self, fails: int = 0) -> None:
        self.fails = fails

    def calibrate(self, images: Sequence[Any], camera_model: str, **options: Any) -> list[Outcome]:
        height, width, _ = images[0].shape
        focal = options["focal"]
        assert focal == pytest.approx(0.5 * height / math.tan(math.radians(VFOV_DEG) / 2))
        at = pixel_grid(width, height, np.ones(1))
        rays = np.dstack([(at - [width / 2, height / 2]) / focal, np.ones((height, width))])
        rays = (rays / np.linalg.norm(rays, axis=-1, keepdims=True)).reshape(-1, 3)
        outcomes: list[Outcome] = [FAILURE] * self.fails
        for image in images[self.fails :]:
            value = image[..., 1].reshape(-1) / 127.5 - 1
            gravity = np.linalg.lstsq(rays, value, rcond=None)[0]
            outcomes.append(replace(answer(), gravity=gravity / np.linalg.norm(gravity)))
        return outcomes


@pytest.fixture
def tilted(tmp_path: Path) -> Path:
    """The down of this panorama is that of a world turned by 3 degrees about x, -2 about z."""
    height, width = 256, 512
    longitude = 2 * np.pi * ((np.arange(width) + 0.5) / width - 0.5)
    latitude = np.pi * (0.5 - (np.arange(height) + 0.5) / height)[:, None]
    rays = np.stack(
        [
            np.cos(latitude) * np.sin(longitude),
            -np.sin(latitude) * np.ones_like(longitude),
            np.cos(latitude) * np.cos(longitude),
        ],
        -1,
    )
    down = Rotation.from_rotvec([3.0, 0.0, -2.0], degrees=True).apply([0.0, 1.0, 0.0])
    value = (127.5 * (1 + rays @ down)).round().astype(np.uint8)
    file = tmp_path / "tilted.png"
    Image.fromarray(np.repeat(value[..., None], 3, -1)).save(file)
    return file


def test_a_tilt_is_found(tilted: Path) -> None:
    level = check_level(Reader(), tilted, views=6)
    assert level.rotation_x_deg == pytest.approx(3, abs=0.05)
    assert level.rotation_z_deg == pytest.approx(-2, abs=0.05)
    assert level.spread_deg < 0.2
    assert (level.views, level.verdict) == (6, "tilted")


def test_views_without_an_answer(tilted: Path) -> None:
    assert check_level(Reader(fails=1), tilted, views=6).tilt_deg == pytest.approx(3.6, abs=0.1)
    with pytest.raises(PanoramaError, match="only 3 of its views have an answer"):
        check_level(Reader(fails=3), tilted, views=6)
    with pytest.raises(ConfigError, match="3 views tell no tilt"):
        check_level(Reader(), tilted, views=3)
