"""A small network through an ONNX file and back."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from torch import Tensor, nn

from geocalib.errors import WeightsError
from geocalib.files import sha256_of
from geocalib.nets import encoders
from geocalib.nets.direct import DeepCalib
from geocalib.nets.lean import LeanConfig, LeanNetwork
from geocalib.nets.weights.card import WeightCard
from geocalib.nets.weights.files import load_network, read_direct, save_weights
from geocalib.pipeline.engines.onnx import OnnxEngine
from little_encoder import LITTLE

# Found, not imported: that takes seconds in every process which collects the tests.
pytestmark = pytest.mark.skipif(
    not (find_spec("onnx") and find_spec("onnxscript")), reason="onnx and onnxscript are missing"
)

CARD = WeightCard(
    name="mine",
    architecture="lean",
    short_side=64,
    largest_aspect=2.0,
    confidence_scale=3e-4,
    trained=True,
    licence="Apache-2.0",
    source="a test",
    description="small",
)


@pytest.fixture(scope="module", autouse=True)
def shapes_are_computed() -> Iterator[None]:
    """The exporter remembers what operations give, by their inputs. Where sizes are symbols, to
    find it again takes longer than to compute it; so does the garbage that these leave behind."""
    import torch._dynamo

    # Not by pytest's patch, which takes the setting away in the end.
    with torch._dynamo.config.patch(fake_tensor_cache_enabled=False):
        gc.disable()
        yield
        gc.enable()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """With little.safetensors, and little.onnx made from it."""
    from geocalib.nets.onnx_export import export_onnx

    place = tmp_path_factory.mktemp("exported")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(encoders.ENCODERS, "little", LITTLE)
        torch.manual_seed(0)
        network = LeanNetwork(LeanConfig("little", (8, 16, 32), blocks=1))
        for module in network.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.running_mean.normal_(0, 0.2)
                module.running_var.uniform_(0.5, 2)
        save_weights(place / "little.safetensors", network.eval(), CARD)
        export_onnx(place / "little.safetensors", place / "little.onnx")
        yield place


class Bare(nn.Module):
    """An encoder of patches alone."""

    widths = (4, 8, 12, 16)
    strides = (4, 8, 16, 32)

    def __init__(self) -> None:
        super().__init__()
        layers = zip((3, *self.widths), self.widths, (4, 2, 2, 2), strict=False)
        self.stages = nn.ModuleList(nn.Conv2d(a, b, k, stride=k) for a, b, k in layers)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        levels = [x]
        for stage in self.stages:
            levels.append(stage(levels[-1]))
        return tuple(levels[1:])


BARE = encoders.EncoderSpec(Bare, (0.5,) * 3, (0.25,) * 3)


@pytest.mark.parametrize("shape", [(1, 64, 96), (3, 96, 64), (2, 128, 128), (1, 32, 32)])
def test_any_number_and_size(folder: Path, shape: tuple[int, int, int]) -> None:
    count, height, width = shape
    images = torch.rand(count, 3, height, width, generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        expected = load_network(folder / "little.safetensors").network(images)
    found = OnnxEngine(folder / "little.onnx").predict(images)
    for name, value in expected._asdict().items():
        np.testing.assert_allclose(getattr(found, name), value.numpy(), rtol=0, atol=1e-5)


def test_a_network_that_answers_cameras(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from geocalib.nets.onnx_export import export_onnx

    monkeypatch.setitem(encoders.ENCODERS, "bare", BARE)
    torch.manual_seed(0)
    # Attention, and layers of encoders, are in the other network.
    network = DeepCalib(LeanConfig("bare", (8, 16, 32), blocks=0)).eval()
    file = tmp_path / "little.safetensors"
    save_weights(file, network, replace(CARD, architecture="deepcalib"))
    export_onnx(file, tmp_path / "little.onnx", refer=True)
    session = onnxruntime.InferenceSession(tmp_path / "little.onnx")
    images = torch.rand(2, 3, 64, 96, generator=torch.Generator().manual_seed(1))
    (found,) = session.run(["logits"], {"image": images.numpy()})
    with torch.inference_mode():
        expected = read_direct(file)[0](images).logits
    np.testing.assert_allclose(found, expected.numpy(), rtol=0, atol=1e-4)
    # It is no network of fields.
    with pytest.raises(WeightsError, match="is no network of geocalib"):
        OnnxEngine(tmp_path / "little.onnx")


def test_its_card_travels_along(folder: Path) -> None:
    engine = OnnxEngine(folder / "little.onnx")
    assert engine.card == load_network(folder / "little.safetensors").card
    assert engine.card.sha256 == sha256_of(folder / "little.safetensors")
    assert (engine.spec.short_side, engine.spec.multiple, engine.spec.largest_aspect) == (64, 32, 2)
    assert engine.confidence_scale == 3e-4
    # The classifier in the package was fitted to other weights.
    assert not engine.has_orientation


def test_numbers_are_kept_as_they_are_in_the_weights(folder: Path) -> None:
    """Also where a batch norm was folded, and where a kernel got zeros to be padded evenly."""
    import onnx

    model = onnx.load(str(folder / "little.onnx"))
    numbers = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    large = {name: value for name, value in numbers.items() if value.size >= 256}
    assert large
    assert {value.dtype for value in large.values()} == {np.dtype(np.float16)}
    network = load_network(folder / "little.safetensors").network
    folded = network.get_submodule("encoder.trunk.stages.3.spread.conv.weight".rpartition(".")[0])
    assert isinstance(folded, nn.Conv2d)
    assert folded.kernel_size == (6, 6)
    assert numbers["encoder.trunk.stages.3.spread.conv.weight.half"].shape[-2:] == (5, 5)


def test_numbers_left_in_the_weights(folder: Path) -> None:
    import onnx

    from geocalib.nets.onnx_export import _refer, export_onnx

    model = onnx.load(str(folder / "little.onnx"))
    _refer(model.graph, folder / "little.safetensors")
    stored = load_network(folder / "little.safetensors").network.state_dict()
    matrices = {f"{name}.half" for name, value in stored.items() if "qkv.weight" in name}
    outside = {t.name for t in model.graph.initializer if t.external_data and not t.raw_data}
    assert matrices <= outside
    assert len(outside) > 10
    (folder / "slim.onnx").write_bytes(model.SerializeToString())
    images = np.random.default_rng(0).random((1, 3, 64, 96), np.float32)
    whole, slim = (
        OnnxEngine(folder / name).predict(images) for name in ("little.onnx", "slim.onnx")
    )
    for name in ("up", "latitude", "up_confidence", "latitude_confidence"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(slim, name))
    with pytest.raises(
        WeightsError, match=r"cannot refer to .*little\.safetensors, which is in anot"
    ):
        export_onnx(folder / "little.safetensors", folder.parent / "slim.onnx", refer=True)


def test_maps_that_are_added_are_known_to_be_alike(folder: Path) -> None:
    """Then ONNX Runtime adds within convolutions."""
    import onnx

    model = onnx.load(str(folder / "little.onnx"))
    onnx.checker.check_model(model)
    shapes = {
        v.name: [d.dim_param for d in v.type.tensor_type.shape.dim] for v in model.graph.value_info
    }
    sums = [node.input for node in model.graph.node if node.op_type == "Add"]
    maps = [[shapes[name] for name in names] for names in sums if set(names) <= set(shapes)]
    # Of the context, of two levels that each are joined by three sums and refined by another.
    assert len(maps) >= 3 + 2 * 4
    for first, second in maps:
        assert all(first[axis] for axis in (0, 2, 3))
        assert first == second


def test_nothing_of_where_it_was_made(folder: Path) -> None:
    content = (folder / "little.onnx").read_bytes()
    assert str(Path(encoders.__file__).parents[2]).encode() not in content
    assert b"stack_trace" not in content


def test_only_lean_networks(tmp_path: Path) -> None:
    from geocalib.nets.onnx_export import export_onnx

    with pytest.raises(WeightsError, match="published-pinhole cannot be exported; give lean, or a"):
        export_onnx("published-pinhole", tmp_path / "a.onnx")
    assert list(tmp_path.iterdir()) == []
