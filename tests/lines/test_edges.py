"""Edges found to a fraction of a pixel."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import map_coordinates

from geocalib.lines.edges import along_their_edges, profiles, steepest


def test_profiles_are_the_brightness_along_normals() -> None:
    """SciPy is the oracle; it too counts pixels from the centre of the first one."""
    random = np.random.default_rng(0)
    grey = random.uniform(0, 255, (40, 60)).astype(np.float32)
    places = random.uniform(10, 30, (7, 5, 2))
    angle = random.uniform(0, 2 * np.pi, (7, 1))
    normals = np.stack([np.cos(angle), np.sin(angle)], -1)
    found = profiles(grey, places, normals, 4)
    assert found.shape == (7, 5, 9)
    points = places[..., None, :] + np.arange(-4, 5.0)[:, None] * normals[..., None, :]
    expected = map_coordinates(grey, [points[..., 1] - 0.5, points[..., 0] - 0.5], order=1)
    # OpenCV interpolates at 1/32 of a pixel.
    assert np.allclose(found, expected, atol=255 / 16)
    assert np.abs(found - expected).mean() < 2


def test_no_places_have_no_profiles() -> None:
    grey = np.zeros((8, 8), np.uint8)
    assert profiles(grey, np.zeros((0, 2)), np.zeros((0, 2)), 3).shape == (0, 7)


@pytest.mark.parametrize("place", [-1.3, -0.5, 0.0, 0.21, 1.7])
def test_the_steepest_place_of_a_bell(place: float) -> None:
    middle = np.arange(8) - 3.5
    slopes = 20 * np.exp(-0.5 * ((middle - place) / 1.2) ** 2)[None]
    offset, there = steepest(slopes)
    assert there.all()
    assert offset[0] == pytest.approx(place, abs=1e-6)


def test_what_falls_or_stays_level_has_no_edge() -> None:
    _, there = steepest(np.stack([np.full(8, -5.0), np.zeros(8), np.full(8, 0.5)]))
    assert not there.any()


def test_short_segments_are_turned_onto_their_edges() -> None:
    """Those of tiles, which the detector turns towards corners, are seen as the tiles are."""
    y, x = np.mgrid[:80, :120] + 0.5
    slope = 0.3
    side = 2 * (y - 40 - slope * (x - 60))
    grey = (128 + 60 * np.tanh(side)).astype(np.uint8)
    right = np.array([[50.0, 40 - 10 * slope], [70.0, 40 + 10 * slope]])
    turned = right + np.array([[0.0, 0.6], [0.0, -0.6]])
    (found,) = along_their_edges(grey, turned[None])
    off = found - right
    assert np.abs(off[:, 1] - slope * off[:, 0]).max() < 0.1


def test_segments_without_an_edge_stay() -> None:
    ends = np.array([[[10.0, 10.0], [40.0, 20.0]]])
    assert np.array_equal(along_their_edges(np.full((60, 60), 90, np.uint8), ends), ends)
    assert along_their_edges(np.zeros((9, 9), np.uint8), np.zeros((0, 2, 2))).shape == (0, 2, 2)
