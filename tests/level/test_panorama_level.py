"""Panoramas of rendered worlds, turned by known angles, come back level."""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image
from scipy.spatial.transform import Rotation
from typer.testing import CliRunner

from geocalib import Calibrator
from geocalib.arrays import Array
from geocalib.cli.app import app
from geocalib.errors import PanoramaError
from geocalib.formats import json_lines
from geocalib.geometry.gravity import angle_between
from geocalib.imaging.panorama import cut, place_of
from geocalib.level.panorama import PanoramaLevel, level_of

LEVEL = np.array([0.0, 1.0, 0.0])


@pytest.fixture(scope="module")
def world() -> Array:
    """(H, W, 3) a level panorama."""
    worlds = pytest.importorskip("geocalib_lab.training.worlds", reason="the laboratory is missing")
    picture, _ = next(worlds.panoramas(1, 1024, 3, "cpu", supersample=1))
    return picture.numpy()


def turned(pixels: Array, from_level: Array) -> Array:
    """The panorama of a camera that was turned."""
    height, width = pixels.shape[:2]
    longitude = 2 * np.pi * ((np.arange(width) + 0.5) / width - 0.5)
    latitude = np.pi * (0.5 - (np.arange(height) + 0.5) / height)
    x, y = np.meshgrid(longitude, latitude)
    rays = np.stack([np.cos(y) * np.sin(x), -np.sin(y), np.cos(y) * np.cos(x)], -1)
    u, v = place_of(rays @ from_level)
    maps = (u * width - 0.5).astype(np.float32), (v * height - 0.5).astype(np.float32)
    return np.asarray(cv2.remap(pixels, *maps, cv2.INTER_LINEAR, borderMode=cv2.BORDER_WRAP))


@pytest.mark.parametrize("degrees", [(30, -11, 7), (-60, 20, -25)])
def test_turned_worlds_come_back_within_their_sigma(
    packaged: Calibrator, world: Array, degrees: tuple[int, int, int]
) -> None:
    from_level = Rotation.from_euler("yxz", degrees, degrees=True).as_matrix()
    level = level_of(packaged, turned(world, from_level))
    off = np.degrees(angle_between(level.down, from_level @ LEVEL))
    assert off < 3 * level.sigma_deg
    assert level.sigma_deg < 1
    roll, pitch = np.radians([level.roll_deg, level.pitch_deg])
    down = [np.sin(roll) * np.cos(pitch), np.cos(roll) * np.cos(pitch), -np.sin(pitch)]
    np.testing.assert_allclose(down, level.down, atol=1e-9)


def test_upright_views_are_those_of_the_level_world(world: Array) -> None:
    from_level = Rotation.from_euler("zx", (12, -9), degrees=True).as_matrix()
    level = PanoramaLevel(from_level @ LEVEL, 0.5, 24, 0)
    views = list(level.upright_views(turned(world, from_level), 4, 60.0))
    assert [view.heading_deg for view in views] == [0, 90, 180, 270]
    # Where the middle column looks, in the level world.
    ahead = from_level.T @ [0, 0, 1]
    heading = np.degrees(np.arctan2(ahead[0], ahead[2]))
    for view in views:
        found = view.calibration
        assert found.hfov_deg == pytest.approx(60)
        np.testing.assert_allclose(found.gravity, LEVEL)
        assert found.sigma.gravity_deg == pytest.approx(0.5)
        turn = Rotation.from_euler("y", heading + view.heading_deg, degrees=True).as_matrix()
        straight = cut(world, found.cameras, turn)
        apart = np.abs(view.pixels.astype(int) - straight).mean()
        assert apart < 0.5 * np.abs(np.roll(straight, 4, 0).astype(int) - straight).mean()


@pytest.mark.parametrize(("count", "fov"), [(0, 75.0), (4, 0.0), (4, 170.0)])
def test_views_that_cannot_be(world: Array, count: int, fov: float) -> None:
    with pytest.raises(PanoramaError, match=r"request at least 1|5 to 150 degrees wide"):
        next(PanoramaLevel(LEVEL, 0.5, 24, 0).upright_views(world, count, fov))


def test_command_says_the_level_and_writes_views(world: Array, tmp_path: Path) -> None:
    picture, folder = tmp_path / "hall.png", tmp_path / "views"
    Image.fromarray(world).save(picture)
    words = ["panorama", str(picture), "--views", str(folder), "--count", "3"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert "of 24 views agree" in result.output
    records = json_lines.read(folder / "views.jsonl")
    assert [record.image for record in records] == ["hall-000.jpg", "hall-120.jpg", "hall-240.jpg"]
    for record in records:
        with Image.open(folder / record.image) as view:
            assert view.size == (record.width, record.height)
        assert record.roll_deg == record.pitch_deg == 0
    again = CliRunner().invoke(app, words)
    assert again.exit_code != 0
    assert "--overwrite" in again.output
    assert json.loads((folder / "views.jsonl").read_text().splitlines()[0])["sigma"]["roll_deg"] < 2
