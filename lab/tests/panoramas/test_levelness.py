"""A tilt that is known is found, whatever a few of the views say."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation
from torch import Tensor

from geocalib.errors import PanoramaError
from geocalib_lab.panoramas.levelness import Level, estimate_level, read_levels, write_levels


def downs(
    tilt: Rotation, noise_deg: float, count: int = 64, outliers: int = 0, seed: int = 0
) -> Tensor:
    """Gravities (N, 3), in the frame of a panorama that is tilted, with errors along both axes."""
    generator = torch.Generator().manual_seed(seed)
    errors = math.radians(noise_deg) * torch.randn(count, 2, generator=generator)
    level = torch.stack([errors[:, 0], torch.ones(count), errors[:, 1]], -1).double()
    level[:outliers] = torch.tensor([1.0, 1.0, 0.3], dtype=torch.float64)
    found: Tensor = torch.from_numpy(tilt.apply(level.numpy()))
    return found / found.norm(dim=1, keepdim=True)


@settings(max_examples=20, deadline=None)
@given(st.floats(-20, 20), st.floats(-20, 20))
def test_exact_views_give_the_exact_tilt(x: float, z: float) -> None:
    tilt = Rotation.from_rotvec([x, 0, z], degrees=True)
    level = estimate_level(downs(tilt, noise_deg=0.0, count=8))
    assert (level.rotation_x_deg, level.rotation_z_deg) == pytest.approx((x, z), abs=1e-6)
    assert level.tilt_deg == pytest.approx(math.hypot(x, z), abs=1e-6)
    expected = torch.from_numpy(tilt.as_matrix())
    torch.testing.assert_close(level.panorama_from_world, expected, atol=1e-7, rtol=0)


@pytest.mark.parametrize("outliers", [0, 6, 24])
def test_noise_and_outliers(outliers: int) -> None:
    tilt = Rotation.from_rotvec([2.0, 0, -1.0], degrees=True)
    level = estimate_level(downs(tilt, noise_deg=1.5, outliers=outliers))
    assert level.rotation_x_deg == pytest.approx(2, abs=0.7)
    assert level.rotation_z_deg == pytest.approx(-1, abs=0.7)
    assert level.verdict == "tilted"
    assert level.spread_deg == pytest.approx(1.5, rel=0.25 if outliers < 10 else 1.2)
    if outliers < 10:
        assert 64 - outliers - 5 <= level.views <= 64 - outliers


def test_sigma_is_the_scatter_of_the_answer() -> None:
    level = Rotation.identity()
    found = [estimate_level(downs(level, 2.0, count=32, seed=seed)) for seed in range(60)]
    scatter = torch.tensor([one.rotation_x_deg for one in found]).std().item()
    stated = sum(one.sigma_deg for one in found) / len(found)
    assert stated == pytest.approx(scatter, rel=0.3)
    # Three sigmas of two components are seldom exceeded by chance.
    assert sum(one.verdict == "level" for one in found) >= 56


def test_views_that_agree_on_nothing() -> None:
    generator = torch.Generator().manual_seed(0)
    anywhere = torch.randn(32, 3, generator=generator) + torch.tensor([0.0, 1.0, 0.0])
    assert estimate_level(anywhere).verdict == "unclear"


def test_small_tilts_are_let_be() -> None:
    tilt = Rotation.from_rotvec([0.4, 0, 0], degrees=True)
    assert estimate_level(downs(tilt, noise_deg=0.0)).verdict == "level"


def test_table(tmp_path: Path) -> None:
    levels = {
        "train/a.webp": Level(1.25, -0.5, 2.0, 0.25, 60),
        "b, c.webp": Level(0.0, 0.125, 9.0, 1.5, 40),
    }
    file = tmp_path / "levels.csv"
    write_levels(levels, file)
    assert read_levels(file) == levels
    lines = file.read_text().splitlines()
    assert lines[1].startswith("train/a.webp,1.34")
    assert lines[1].endswith(",tilted")
    assert lines[2].endswith(",unclear")
    file.write_text("file,tilt_deg\na,1\n")
    with pytest.raises(PanoramaError, match=r"levels\.csv is no table of levels"):
        read_levels(file)


def test_bad_gravities() -> None:
    with pytest.raises(PanoramaError, match=r"4 or more gravities \(N, 3\), got \(3, 3\)"):
        estimate_level(torch.eye(3))
    with pytest.raises(PanoramaError, match="not finite"):
        estimate_level(torch.full((5, 3), torch.nan))
