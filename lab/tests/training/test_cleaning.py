import math
from pathlib import Path

import pytest
import torch
from scipy.spatial.transform import Rotation
from torch import Tensor, nn
from torch.nn import functional

from geocalib.nets.prediction import Prediction
from geocalib_lab.panoramas.panorama import PanoramaBank
from geocalib_lab.training.cleaning import level_bank, measure_levels
from geocalib_lab.training.config import read_config


def compass(panorama_from_world: Tensor, width: int = 256) -> Tensor:
    """A panorama (H, W, 3) whose colours are the world's directions."""
    height = width // 2
    longitude = ((torch.arange(width) + 0.5) / width - 0.5) * 2 * math.pi
    latitude = (0.5 - (torch.arange(height)[:, None] + 0.5) / height) * math.pi
    ray = torch.stack(
        [
            latitude.cos() * longitude.sin(),
            -latitude.sin().expand(-1, width),
            latitude.cos() * longitude.cos(),
        ],
        -1,
    )
    world = ray @ panorama_from_world.float()
    return (127.5 + 127.5 * world).round().to(torch.uint8)


class ReadsTheCompass(nn.Module):
    """A network that knows the latitude from the colours, and does not know the up-vectors."""

    def forward(self, images: Tensor) -> Prediction:
        down = functional.avg_pool2d(2 * images - 1, 4)[:, 1]
        none = torch.zeros_like(down)
        return Prediction(
            up=torch.stack([none, none - 1], 1),
            latitude=torch.asin((-down).clamp(-1, 1))[:, None],
            up_confidence=none,
            latitude_confidence=none + 1,
        )


TILTS = ((0.0, 0.0), (3.0, -2.0))


@pytest.fixture
def bank() -> PanoramaBank:
    tilts = [Rotation.from_rotvec([x, 0, z], degrees=True) for x, z in TILTS]
    pictures = [compass(torch.tensor(tilt.as_matrix())) for tilt in tilts]
    return PanoramaBank.create(pictures, ["a__x__1", "b__x__1"])


CONFIG = read_config(None, ["sizes=[[96,96]]"])


def test_tilts_are_found(bank) -> None:
    levels = measure_levels(ReadsTheCompass(), bank, CONFIG)
    for level, (x, z) in zip(levels.values(), TILTS, strict=True):
        assert level.rotation_x_deg == pytest.approx(x, abs=0.1)
        assert level.rotation_z_deg == pytest.approx(z, abs=0.1)
    assert [level.verdict for level in levels.values()] == ["level", "tilted"]


def test_a_table_is_made_once_and_used(bank, tmp_path: Path) -> None:
    table = tmp_path / "levels.csv"
    upright = level_bank(bank, table, ReadsTheCompass(), CONFIG)
    torch.testing.assert_close(upright.panorama_from_world[0], torch.eye(3))
    expected = torch.tensor(Rotation.from_rotvec([3, 0, -2], degrees=True).as_matrix()).float()
    torch.testing.assert_close(upright.panorama_from_world[1], expected, atol=2e-3, rtol=0)
    # A second look measures the panorama itself once more, not what is left to correct.
    again = measure_levels(ReadsTheCompass(), upright, CONFIG)["b__x__1"]
    assert again.rotation_x_deg == pytest.approx(3, abs=0.1)
    # The table is read, not made anew.
    read = level_bank(bank, table, nn.Identity(), CONFIG)
    assert torch.equal(read.panorama_from_world, upright.panorama_from_world)
