"""Pictures within equirectangular panoramas show what lies where they look."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from geocalib import Camera
from geocalib.errors import PanoramaError
from geocalib.geometry.fields import pixel_grid
from geocalib.imaging.panorama import cut, place_of, read_panorama, shrunk

WIDTH = 1024


def directions() -> np.ndarray:
    """(H, W, 3) a panorama whose colours are the directions in which it looks."""
    longitude = 2 * np.pi * ((np.arange(WIDTH) + 0.5) / WIDTH - 0.5)
    latitude = np.pi * (0.5 - (np.arange(WIDTH // 2) + 0.5) / (WIDTH // 2))
    x, y = np.meshgrid(longitude, latitude)
    rays = np.stack([np.cos(y) * np.sin(x), -np.sin(y), np.cos(y) * np.cos(x)], -1)
    return (127.5 + 127.5 * rays).round().astype(np.uint8)


@pytest.mark.parametrize("model", ["pinhole", "kannala_brandt"])
@pytest.mark.parametrize("degrees", [(0, 0, 0), (180, 0, 0), (40, 80, 10), (-100, -70, 170)])
def test_pixels_show_where_they_look(model: str, degrees: tuple[int, int, int]) -> None:
    turn = Rotation.from_euler("yxz", degrees, degrees=True).as_matrix()
    camera = Camera.create(model, 90.0, (240, 160))
    picture = cut(directions(), camera, turn)
    rays, valid = camera.unproject(pixel_grid(240, 160, like=camera.f)[None])
    assert valid.all()
    seen = picture / 127.5 - 1
    np.testing.assert_allclose(seen, rays[0] @ turn.T, atol=0.02)


def test_places_are_from_the_left_and_from_the_top() -> None:
    rays = np.array([[0, 0, 2.0], [3, 0, 0], [0, -1, 0], [0, 1, 1]])
    u, v = place_of(rays)
    np.testing.assert_allclose(u, [0.5, 0.75, 0.5, 0.5])
    np.testing.assert_allclose(v, [0.5, 0.5, 0.0, 0.75])


def test_fine_panoramas_are_shrunk_to_what_a_view_shows() -> None:
    assert shrunk(directions(), 1000.0).shape == (512, 1024, 3)
    assert shrunk(directions(), 50.0).shape == (158, 315, 3)


def test_a_photo_is_no_panorama() -> None:
    with pytest.raises(PanoramaError, match="960x640 pixels; an equirectangular panorama"):
        read_panorama("examples/town.jpg")
