from __future__ import annotations

import copy
import dataclasses
import json
import math

import pytest
import torch

from geocalib.errors import ConfigError
from geocalib.nets.encoders import ENCODERS
from geocalib.nets.folding import fold_batch_norm
from geocalib.nets.lean import Heads, LeanConfig, LeanNetwork, Place, cell_coordinates
from geocalib.nets.prediction import Prediction
from geocalib_lab.cost import measure_cost


@pytest.fixture(scope="module", params=ENCODERS)
def network(request: pytest.FixtureRequest) -> LeanNetwork:
    torch.manual_seed(0)
    return LeanNetwork(LeanConfig(request.param)).eval()


@pytest.fixture(scope="module")
def default() -> LeanNetwork:
    torch.manual_seed(0)
    return LeanNetwork(LeanConfig()).eval()


def largest_difference(first: Prediction, second: Prediction) -> float:
    return max(float((a - b).detach().abs().max()) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize(("height", "width"), [(32, 32), (64, 96), (96, 32)])
@torch.no_grad()
def test_fields_have_the_stated_shapes_and_ranges(
    network: LeanNetwork, height: int, width: int
) -> None:
    prediction = network(torch.rand(2, 3, height, width))
    h, w = height // network.stride, width // network.stride
    assert [tuple(value.shape) for value in prediction] == [
        (2, 2, h, w),
        (2, 1, h, w),
        (2, h, w),
        (2, h, w),
    ]
    torch.testing.assert_close(prediction.up.norm(dim=1), torch.ones(2, h, w))
    assert prediction.latitude.abs().max() < torch.pi / 2
    for confidence in prediction[2:]:
        assert 0 < confidence.min() <= confidence.max() < 1


@torch.no_grad()
def test_a_fresh_network_answers_a_level_camera(network: LeanNetwork) -> None:
    prediction = network(torch.rand(1, 3, 96, 96))
    assert (prediction.up[:, 1] < -0.9).all()
    assert prediction.latitude.abs().max() < 0.3
    for confidence in prediction[2:]:
        assert (confidence - 0.5).abs().max() < 0.1


@torch.no_grad()
def test_answers_are_repeatable_and_independent_of_batch_mates(network: LeanNetwork) -> None:
    images = torch.rand(3, 3, 64, 96)
    together = network(images)
    assert largest_difference(together, network(images)) == 0
    for i, image in enumerate(images):
        alone = network(image[None])
        assert largest_difference(alone, Prediction(*(v[i : i + 1] for v in together))) < 1e-5


@torch.no_grad()
def test_a_folded_network_gives_the_same(network: LeanNetwork) -> None:
    folded = fold_batch_norm(copy.deepcopy(network)).to(memory_format=torch.channels_last)
    assert not any(isinstance(m, torch.nn.BatchNorm2d) for m in folded.modules())
    image = torch.rand(1, 3, 64, 96)
    assert largest_difference(network(image), folded(image)) < 1e-5


def test_gradients_reach_every_parameter(network: LeanNetwork) -> None:
    network.zero_grad()
    prediction = network(torch.rand(2, 3, 64, 96))
    torch.manual_seed(1)
    sum((value * torch.randn_like(value)).sum() for value in prediction).backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        assert parameter.grad.abs().max() > 0, name


# Processors without bfloat16 compute it in another way, and torch says so.
@pytest.mark.filterwarnings("ignore:mkldnn_matmul failed")
@pytest.mark.usefixtures("bfloat16")
@pytest.mark.parametrize("network", ["efficientnet_lite2"], indirect=True)
def test_bfloat16_autocast_gives_finite_full_precision_fields(network: LeanNetwork) -> None:
    network.zero_grad()
    image = torch.rand(1, 3, 32, 64)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        prediction = network(image)
    assert {value.dtype for value in prediction} == {torch.float32}
    assert largest_difference(prediction, network(image)) < 0.05
    # Unit to float precision, not to that of bfloat16.
    torch.testing.assert_close(prediction.up.norm(dim=1), torch.ones(1, 8, 16))
    sum(value.sum() for value in prediction).backward()
    assert all(torch.isfinite(p.grad).all() for p in network.parameters() if p.grad is not None)


def test_cost_is_within_the_budget(network: LeanNetwork) -> None:
    cost = measure_cost(network, 320, 320)
    assert cost.parameters <= 16_000_000
    assert cost.flops <= 12e9


def test_config_survives_plain_data() -> None:
    config = LeanConfig("efficientnet_lite2", widths=(32, 64, 96), blocks=1)
    rebuilt = LeanConfig(**json.loads(json.dumps(dataclasses.asdict(config))))
    assert rebuilt == config
    network = LeanNetwork(config)
    assert network.config == config
    LeanNetwork(rebuilt).load_state_dict(network.state_dict())


@pytest.mark.parametrize("widths", [(64, 128), (64, 128, 100), (0, 128, 160)])
def test_impossible_widths_are_refused(widths: tuple[int, ...]) -> None:
    with pytest.raises(ConfigError, match="widths must be three"):
        LeanConfig(widths=widths)  # type: ignore[arg-type]


def test_coordinates_are_measured_from_the_centre_in_half_short_sides() -> None:
    like = torch.zeros(1, dtype=torch.float64)
    expected = torch.tensor([-0.75, -0.25, 0.25, 0.75], dtype=torch.float64)
    for axis in cell_coordinates(4, 4, like):
        torch.testing.assert_close(axis, expected)
    # Wider or taller, the same cells around the centre keep their coordinates.
    torch.testing.assert_close(cell_coordinates(4, 10, like)[0][3:7], expected)
    torch.testing.assert_close(cell_coordinates(6, 4, like)[1][1:5], expected)
    # A finer grid has its coarser cells' coordinates as means.
    fine, _ = cell_coordinates(8, 8, like)
    torch.testing.assert_close(fine.view(4, 2).mean(1), expected)


@torch.no_grad()
def test_places_are_mixed_from_coordinates_and_waves_cell_by_cell() -> None:
    place = Place(7).double()
    features = torch.rand(2, 7, 4, 6, dtype=torch.float64)
    placed = place(features) - features
    assert placed.shape == features.shape
    torch.testing.assert_close(placed[0], placed[1])
    for row in range(4):
        for column in range(6):
            x, y = (column + 0.5 - 3) / 2, (row + 0.5 - 2) / 2
            waves = [
                wave(math.pi / 2 * 2**octave * value)
                for wave in (math.sin, math.cos)
                for octave in range(4)
                for value in (x, y)
            ]
            inputs = torch.tensor([x, y, *waves], dtype=torch.float64).view(1, 18, 1, 1)
            expected = place.mix(inputs)[0, :, 0, 0]
            torch.testing.assert_close(placed[0, :, row, column], expected)


@torch.no_grad()
def test_a_position_matters(default: LeanNetwork) -> None:
    """The same content everywhere, yet another answer at each place."""
    latitude = default(torch.full((1, 3, 96, 96), 0.5)).latitude[0, 0]
    assert latitude[12, 4:20].std() > 1e-4
    assert latitude[4:20, 12].std() > 1e-4


def heads_with_raw_values(values: list[float]) -> tuple[Heads, torch.Tensor]:
    """Heads whose convolution hands its input through."""
    heads = Heads(5)
    with torch.no_grad():
        heads.mix.weight.copy_(torch.eye(5)[:, :, None, None])
        heads.mix.bias.zero_()
    return heads, torch.tensor(values).view(1, 5, 1, 1).requires_grad_()


@pytest.mark.parametrize("z", [-3.0, -0.4, 0.0, 1.0, 5.0])
def test_latitude_is_the_published_function(z: float) -> None:
    heads, raw = heads_with_raw_values([0.0, -2.0, z, 0.0, 0.0])
    latitude = heads(raw).latitude
    expected = torch.asin(torch.tanh(torch.tensor(z, dtype=torch.float64)))
    assert latitude.item() == pytest.approx(expected.item(), abs=1e-6)
    latitude.sum().backward()
    assert raw.grad is not None
    assert raw.grad[0, 2].item() == pytest.approx(1 / math.cosh(z), rel=1e-4)


@pytest.mark.parametrize("raw_values", [[0.0, 0, 1e4, 1e4, -1e4], [1e-9, 1e-9, -1e4, 0, 0]])
def test_slopes_stay_finite_at_extreme_values(raw_values: list[float]) -> None:
    heads, raw = heads_with_raw_values(raw_values)
    prediction = heads(raw)
    sum(value.sum() for value in prediction).backward()
    assert all(torch.isfinite(value).all() for value in prediction)
    assert raw.grad is not None
    assert raw.grad.abs().max() <= 2e3
