"""The heading of walls, from their edges in photos that look in all directions."""

from __future__ import annotations

import numpy as np
import pytest

from geocalib.cameras import Camera
from geocalib.geometry.gravity import from_roll_pitch, world_from_camera
from geocalib.geometry.segments import Segments
from geocalib.level.heading import dominant_heading, votes

LEVEL_TO_Z_UP = np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])


def ballots(
    heading_deg: float, walls: int = 40, others: int = 60
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Of six photos with edges of walls at a heading, and edges that lie at will."""
    rng = np.random.default_rng(3)
    camera = Camera.create("simple_radial", f=400.0, size=(640, 480), distortion=[-0.1])
    found = []
    for _ in range(6):
        gravity = from_roll_pitch(*np.deg2rad(rng.normal(size=(2, 1)) * [[5], [10]]))
        yaw = rng.uniform(-3, 3)
        world = LEVEL_TO_Z_UP @ world_from_camera(gravity[0], np.array(yaw))
        start = rng.uniform([-4, -4, -2], [4, 4, 3], (walls + others, 3)) + world @ [0, 0, 8]
        turn = np.deg2rad(heading_deg) + np.pi / 2 * rng.integers(0, 4, walls)
        along = np.column_stack([np.cos(turn), np.sin(turn), 0 * turn])
        along = np.concatenate([along, rng.normal(size=(others, 3))])
        ends = np.stack([start, start + along], 1) @ world
        pixels, valid = camera.project(ends[None])
        pixels = pixels[0][valid[0].all(-1) & (ends[..., 2] > 1).all(-1)]
        pixels += rng.normal(size=pixels.shape) * 0.3
        found.append(votes(Segments(pixels, 0.35), camera, world))
    return found


@pytest.mark.parametrize("heading_deg", [0.0, 12.5, -30.0, 44.0, -44.9])
def test_walls_are_found_among_other_edges(heading_deg: float) -> None:
    found = dominant_heading(ballots(heading_deg))
    assert found is not None
    off = (np.degrees(found) - heading_deg + 45) % 90 - 45
    assert abs(off) < 0.4


def test_where_there_are_no_walls() -> None:
    assert dominant_heading(ballots(0.0, walls=0, others=300)) is None
    assert dominant_heading([]) is None
