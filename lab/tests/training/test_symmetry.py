"""A network that leans to one side is set upright."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from geocalib.nets.lean import LeanConfig, LeanNetwork
from geocalib.nets.prediction import Prediction
from geocalib_lab.training.symmetry import lean_of, remove_lean


@pytest.fixture(scope="module")
def pictures() -> Tensor:
    return torch.rand(6, 3, 64, 96, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def network() -> LeanNetwork:
    torch.manual_seed(2)
    config = LeanConfig(encoder="efficientnet_lite2", widths=(16, 16, 32), blocks=1)
    return LeanNetwork(config).eval()


class Leaning(torch.nn.Module):
    """Answers up-vectors that are level but for a constant angle, clockwise."""

    def __init__(self, angle: float, confidence: float = 1.0) -> None:
        super().__init__()
        self.angle, self.confidence = angle, confidence

    def forward(self, images: Tensor) -> Prediction:
        batch, _, height, width = images.shape
        up = torch.tensor([math.sin(self.angle), -math.cos(self.angle)])
        ones = torch.full((batch, height, width), self.confidence)
        return Prediction(
            up[:, None, None].expand(batch, 2, height, width), ones[:, None], ones, ones
        )


@pytest.mark.parametrize("confidence", [1.0, 1e-20])
@pytest.mark.parametrize("angle", [-0.02, 0.0, 0.01])
def test_lean_is_what_a_mirror_does_not_turn_round(
    pictures: Tensor, angle: float, confidence: float
) -> None:
    leans = lean_of(Leaning(angle, confidence), pictures)  # type: ignore[arg-type]
    torch.testing.assert_close(leans, torch.full((6,), angle))


def test_nothing_leans_afterwards(network: LeanNetwork, pictures: Tensor) -> None:
    with torch.no_grad():
        network.heads.mix.bias[:2] = torch.tensor([0.03, -1.0])  # about 1.7 degrees clockwise
    found = remove_lean(network, [pictures[:3], pictures[3:]])
    assert found == pytest.approx(0.03, abs=0.01)
    assert abs(float(lean_of(network, pictures).median())) < 1e-5


def test_only_the_up_vectors_turn(network: LeanNetwork, pictures: Tensor) -> None:
    with torch.no_grad():
        before = network(pictures)
        remove_lean(network, [pictures])
        after = network(pictures)
    for name in ("latitude", "up_confidence", "latitude_confidence"):
        assert torch.equal(getattr(before, name), getattr(after, name))
