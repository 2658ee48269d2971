"""The packaged ONNX file beside the packaged weights in torch."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.resources import as_file
from pathlib import Path

import numpy as np
import pytest
import torch

from geocalib import Calibration, Calibrator, Camera
from geocalib.errors import ConfigError, WeightsError
from geocalib.geometry.gravity import from_roll_pitch
from geocalib.nets.weights import catalogue
from geocalib.nets.weights.catalogue import weights_file
from geocalib.nets.weights.files import load_network
from geocalib.pipeline.engines import onnx as onnx_session
from geocalib.pipeline.engines.onnx import Floats, OnnxEngine
from geocalib.pipeline.engines.torch import TorchEngine
from geocalib.pipeline.parallel.threads import BEHIND
from geocalib.synthetic import render_scene


@pytest.fixture(scope="module")
def engine() -> OnnxEngine:
    return OnnxEngine(device="cpu")


@pytest.fixture(scope="module")
def in_torch() -> TorchEngine:
    return TorchEngine(load_network("lean"), torch.device("cpu"), compile=False)


@pytest.fixture(scope="module")
def packaged() -> Path:
    with as_file(catalogue.packaged("lean", "lean.onnx")) as path:
        return path


@cache
def towns(width: int, height: int) -> Floats:
    """(2, 3, height, width) of one town."""
    roll, pitch = torch.tensor([[0.1, -0.2], [0.05, 0.2]])
    camera = Camera.create("pinhole", f=torch.full((2,), 0.8 * width), size=(width, height))
    pictures = render_scene(camera, from_roll_pitch(roll, pitch), subpixels=1)
    return np.ascontiguousarray(pictures.permute(0, 3, 1, 2))


def test_it_was_made_from_the_packaged_weights(engine: OnnxEngine) -> None:
    assert engine.card == load_network("lean").card, (
        "the weights have changed: run geocalib export onnx --refer "
        "-o src/geocalib/weights/lean.onnx"
    )


@pytest.mark.parametrize("size", [(96, 64), (64, 96), (160, 160)])
def test_engines_agree(engine: OnnxEngine, in_torch: TorchEngine, size: tuple[int, int]) -> None:
    images = towns(*size)
    found, expected = engine.predict(images), in_torch.predict(images)
    assert found.size == expected.size
    for name in ("up", "latitude", "up_confidence", "latitude_confidence"):
        np.testing.assert_allclose(
            getattr(found, name), getattr(expected, name), rtol=0, atol=1e-4, err_msg=name
        )
    assert engine.spec == in_torch.spec
    assert engine.batch == in_torch.batch
    assert engine.confidence_scale == in_torch.confidence_scale


def test_confidences_near_zero_agree(engine: OnnxEngine, in_torch: TorchEngine) -> None:
    """Relative to themselves: they are the weights of a fit."""
    noise = np.random.default_rng(0).random((1, 3, 64, 96), np.float32)
    found, expected = engine.predict(noise), in_torch.predict(noise)
    for name in ("up_confidence", "latitude_confidence"):
        assert getattr(expected, name).min() < 2e-3, name
        np.testing.assert_allclose(
            getattr(found, name), getattr(expected, name), rtol=1e-3, atol=0, err_msg=name
        )


@pytest.mark.parametrize("size", [(96, 64), (320, 256)])
def test_how_pictures_stand_agrees(
    engine: OnnxEngine, in_torch: TorchEngine, size: tuple[int, int]
) -> None:
    assert engine.has_orientation
    images = np.rot90(towns(*size), 1, (-2, -1))
    told = [each(images) for one in (engine, in_torch) for each in (one.orientation, _told(one))]
    for other in told[1:]:
        np.testing.assert_allclose(other, told[0], rtol=0, atol=1e-3)


def _told(engine: OnnxEngine | TorchEngine) -> Callable[[Floats], Floats]:
    """How pictures stand, by a look at all of them."""
    return lambda images: engine.predict_oriented(images)[1]


def test_a_look_sees_the_same_fields(engine: OnnxEngine, in_torch: TorchEngine) -> None:
    for one in (engine, in_torch):
        alone, (fields, _) = one.predict(towns(96, 64)), one.predict_oriented(towns(96, 64))
        for name, value in vars(alone).items():
            np.testing.assert_array_equal(getattr(fields, name), value, err_msg=name)


def test_opinions_agree() -> None:
    large = OnnxEngine("large")
    in_torch = TorchEngine(load_network("large"), torch.device("cpu"), compile=False)
    assert large.has_focal_head
    assert in_torch.has_focal_head
    images = towns(320, 240)[:1]
    found, expected = large.focal_estimate(images), in_torch.focal_estimate(images)
    assert found.shape == (1, 2)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)


def test_lean_has_no_second_opinion(engine: OnnxEngine, in_torch: TorchEngine) -> None:
    assert not engine.has_focal_head
    assert not in_torch.has_focal_head


def test_calibrations_agree() -> None:
    photos = [picture.transpose(1, 2, 0) for picture in towns(320, 240)]
    one, two = (Calibrator(device="cpu", engine=name) for name in ("onnx", "torch"))
    assert one.card == two.card
    assert one.device == two.device == "cpu"
    for a, b in zip(one.calibrate(photos), two.calibrate(photos), strict=True):
        assert isinstance(a, Calibration)
        assert isinstance(b, Calibration)
        for name in ("roll_deg", "pitch_deg", "vfov_deg"):
            assert getattr(a, name) == pytest.approx(getattr(b, name), abs=0.01), name
            sigmas = getattr(a.sigma, name), getattr(b.sigma, name)
            assert sigmas[0] == pytest.approx(sigmas[1], rel=1e-3), name
        assert a.warnings == b.warnings


def test_the_same_bits_every_time(engine: OnnxEngine) -> None:
    images = towns(96, 64)
    first = engine.predict(images)
    # Among others, in a session of its own, and from several threads at once.
    engine.predict(towns(64, 64))
    others = [engine.predict(images), OnnxEngine(device="cpu").predict(images)]
    with ThreadPoolExecutor(2) as pool:
        others += pool.map(engine.predict, [images] * 2)
    for other in others:
        assert np.array_equal(first.up, other.up)
        assert np.array_equal(first.latitude, other.latitude)
        assert np.array_equal(first.up_confidence, other.up_confidence)


@pytest.mark.skipif(sys.platform != "linux", reason="single threads have no priority elsewhere")
def test_a_network_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of its threads but the one that asks it, and the bits are those of one thread."""

    def threads() -> set[int]:
        return {int(entry) for entry in os.listdir("/proc/self/task")}

    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    before, own = threads(), os.getpriority(os.PRIO_PROCESS, 0)
    several = OnnxEngine(device="cpu")
    started = [os.getpriority(os.PRIO_PROCESS, thread) for thread in threads() - before]
    assert len(started) >= 2
    assert set(started) == {min(own + BEHIND, 19)}
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    images = towns(96, 64)
    one, other = several.predict(images), OnnxEngine(device="cpu").predict(images)
    assert np.array_equal(one.up, other.up)
    assert np.array_equal(one.latitude_confidence, other.latitude_confidence)


class TestFiles:
    def test_a_damaged_file(
        self, tmp_path: Path, packaged: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        for content in (b"", b"nonsense", packaged.read_bytes()[:1_000_000]):
            (tmp_path / "a.onnx").write_bytes(content)
            with pytest.raises(WeightsError) as caught:
                Calibrator(tmp_path / "a.onnx")
            assert str(caught.value) == (
                f"{tmp_path / 'a.onnx'} is no ONNX file, or damaged; "
                "write one with geocalib export onnx"
            )
        assert capfd.readouterr() == ("", "")

    def test_weights_that_are_not_exported(self) -> None:
        with (
            weights_file("lean") as path,
            pytest.raises(WeightsError, match=r"no ONNX file.*write one with geocalib export onnx"),
        ):
            Calibrator(path, engine="onnx")
        with pytest.raises(WeightsError, match="published-pinhole runs in torch alone"):
            Calibrator("published-pinhole", engine="onnx")
        with pytest.raises(WeightsError, match="no weights are named 'heavy'"):
            Calibrator("heavy", engine="onnx")

    def test_the_network_of_somebody_else(self, tmp_path: Path) -> None:
        onnx = pytest.importorskip("onnx")
        value = onnx.helper.make_tensor_value_info("image", onnx.TensorProto.FLOAT, [1])
        other = onnx.helper.make_tensor_value_info("up", onnx.TensorProto.FLOAT, [1])
        node = onnx.helper.make_node("Identity", ["image"], ["up"])
        graph = onnx.helper.make_graph([node], "other", [value], [other])
        opset = onnx.helper.make_opsetid("", 20)
        model = onnx.helper.make_model(graph, opset_imports=[opset], ir_version=10)
        onnx.save(model, str(tmp_path / "a.onnx"))
        with pytest.raises(WeightsError, match=r"a\.onnx is no network of geocalib; write one"):
            OnnxEngine(tmp_path / "a.onnx")

    def test_a_bad_card(self, tmp_path: Path, packaged: Path) -> None:
        content = packaged.read_bytes()
        assert content.count(b'"short_side": ') == 1
        (tmp_path / "a.onnx").write_bytes(content.replace(b'"short_side"', b'"shirt_side"'))
        # Where its numbers are.
        shutil.copy(packaged.with_suffix(".safetensors"), tmp_path)
        with pytest.raises(WeightsError, match=r"a\.onnx: its weight card has an unknown 'shirt_s"):
            OnnxEngine(tmp_path / "a.onnx")


class TestDevices:
    @pytest.mark.parametrize("name", ["tpu", "cpu:1", "cuda", "cuda:0", ""])
    def test_a_device_that_is_not_there(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        monkeypatch.setattr(onnx_session, "available", lambda: ["CPUExecutionProvider"])
        with pytest.raises(ConfigError, match=f"no device '{name}' here; use auto or one of: cpu"):
            OnnxEngine(device=name)


def test_what_a_file_is_read_with_needs_no_torch() -> None:
    script = (
        "import sys\n"
        "from geocalib.nets import focal_head, onnx_names\n"
        "from geocalib.nets.weights import card, catalogue\n"
        "print(*{'torch'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []
