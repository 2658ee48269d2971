"""Which way is down in a model, by photos whose gravity is known up to known errors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from geocalib.errors import PriorError
from geocalib.level import down_of, upright_turn
from leaning import DOWN, photos


def off_deg(direction: np.ndarray) -> float:
    return float(
        np.degrees(np.arctan2(np.linalg.norm(np.cross(direction, DOWN)), direction @ DOWN))
    )


def test_exact_photos_say_it_exactly() -> None:
    down = down_of(*photos(5))
    assert off_deg(down.direction) < 1e-6
    assert down.outliers == ()


@pytest.mark.parametrize("seed", range(8))
def test_a_hundred_photos_level_to_a_tenth_of_a_degree(seed: int) -> None:
    """Of a roll and pitch that single photos know to 0.5 and 1 degree, a fifth of them wrong."""
    down = down_of(*photos(100, (0.5, 1.0), wrong=20, seed=seed))
    assert off_deg(down.direction) < 0.2
    assert set(range(20)) <= set(down.outliers)
    assert len(down.outliers) < 25
    assert all(down.off_deg[:20] > 15)


def test_sigma_is_honest() -> None:
    """Over many models, whether or not the photos know how good they are."""
    for claimed in (1.0, 0.3, 3.0):
        squared = []
        for seed in range(100):
            rotations, calibrations = photos(40, (0.5, 1.0), wrong=4, seed=seed)
            for calibration in calibrations:
                calibration.covariance[:2, :2] *= claimed**2
            down = down_of(rotations, calibrations)
            assert down.sigma_deg < 0.35
            squared.append((off_deg(down.direction) / down.sigma_deg) ** 2)
        # Two dimensions, of which sigma is the larger one.
        assert 0.5 < np.mean(squared) < 2.5


def test_what_is_surer_counts_more() -> None:
    """The roll is better known than the pitch: photos in all directions know both from it."""
    alike = [off_deg(down_of(*photos(60, (1.0, 1.0), seed=s)).direction) for s in range(20)]
    better = [off_deg(down_of(*photos(60, (0.2, 1.0), seed=s)).direction) for s in range(20)]
    assert np.mean(better) < 0.5 * np.mean(alike)


def test_few_photos() -> None:
    for count in (1, 2, 3):
        down = down_of(*photos(count, (0.5, 0.5), seed=count))
        assert off_deg(down.direction) < 2
        assert 0.2 < down.sigma_deg < 2


def test_photos_that_contradict_each_other() -> None:
    rotations, calibrations = photos(2)
    calibrations[1] = replace(calibrations[0], gravity=-calibrations[0].gravity)
    rotations[1] = rotations[0]
    with pytest.raises(PriorError, match="contradict each other"):
        down_of(rotations, calibrations)


@pytest.mark.parametrize("up", [(0.0, 0, 1), (0.0, -1, 0)])
def test_the_turn_is_the_shortest(up: tuple[float, ...]) -> None:
    axis = np.array(up)
    for down in (DOWN, -axis, axis, np.array([1.0, 0, 0])):
        turn = upright_turn(down, axis)
        np.testing.assert_allclose(turn @ turn.T, np.eye(3), atol=1e-12)
        assert np.linalg.det(turn) == pytest.approx(1)
        np.testing.assert_allclose(turn @ down, -axis, atol=1e-12)
        # Its axis is level, so that no heading changes.
        angle = np.arccos(np.clip(-down @ axis, -1, 1))
        assert np.trace(turn) == pytest.approx(1 + 2 * np.cos(angle))
