import pytest
import torch

from geocalib.nets.lean import LeanConfig, LeanNetwork
from geocalib_lab.training.ablation import (
    AblationConfig,
    PublishedDecoders,
    build_network,
    keep_owners,
)

SMALL = LeanConfig("mscan_tiny", (32, 32, 32), 1)
IMAGES = torch.rand(2, 3, 64, 96, generator=torch.Generator().manual_seed(0))


def test_nothing_is_taken_away_by_default() -> None:
    assert isinstance(build_network(SMALL, AblationConfig()), LeanNetwork)


@pytest.mark.parametrize("decoder", ["lean", "published"])
def test_all_pixels_alike(decoder) -> None:
    torch.manual_seed(0)
    network = build_network(SMALL, AblationConfig(decoder, "alike")).eval()
    with torch.no_grad():
        prediction = network(IMAGES)
        plain = network.network(IMAGES)
    assert bool((prediction.up_confidence == 1).all() & (prediction.latitude_confidence == 1).all())
    torch.testing.assert_close(prediction.up, plain.up)
    assert not bool((plain.up_confidence == 1).any())


def test_published_decoders_learn() -> None:
    torch.manual_seed(0)
    network = PublishedDecoders("mscan_tiny", width=8, context_width=16, rank=4)
    prediction = network(IMAGES)
    assert prediction.up.shape == (2, 2, 64, 96)
    torch.testing.assert_close(prediction.up.norm(dim=1), torch.ones(2, 64, 96))
    assert prediction.latitude.shape == (2, 1, 64, 96)
    (prediction.latitude.square().mean() + prediction.up_confidence.mean()).backward()
    assert all(
        p.grad is not None for name, p in network.named_parameters() if "latitude_decoder.h" in name
    )


def test_fewer_owners_are_among_the_more() -> None:
    names = [f"train/owner{i}__tour__{j}.webp" for i in range(200) for j in range(2)]
    quarter, half = keep_owners(names, 0.25), keep_owners(names, 0.5)
    assert set(quarter) < set(half) < set(names)
    assert 0.15 < len(quarter) / len(names) < 0.35
    # An owner comes with all panoramas or with none.
    assert len(quarter) == 2 * len({name.split("__")[0] for name in quarter})
    assert keep_owners(names, 1.0) == names
