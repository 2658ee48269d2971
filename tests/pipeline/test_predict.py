"""Photographs through a network: each by itself, in order, and decoded once."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch
from PIL import Image

from geocalib.imaging import ImageSource
from geocalib.nets.weights.files import LoadedNetwork
from geocalib.pipeline import orientation
from geocalib.pipeline.engines.torch import TorchEngine
from geocalib.pipeline.predict import NetworkOutput, run_network
from geocalib.pipeline.prepare import path_of
from geocalib.result.calibration import Failure
from geocalib.result.trust import BLANK
from oracle_network import CARD, Oracle, picture, truth

SIZES = [(480, 360), (320, 320), (640, 480)]
"""The first and the last have inputs of one size."""


@pytest.fixture
def oracle() -> Oracle:
    return Oracle([truth(size) for size in SIZES])


@pytest.fixture
def engine(oracle: Oracle) -> TorchEngine:
    loaded = LoadedNetwork(oracle, CARD)  # type: ignore[arg-type]
    return TorchEngine(loaded, torch.device("cpu"), compile=False)


@pytest.fixture
def photos(tmp_path: Path) -> list[ImageSource]:
    paths = [tmp_path / f"{i}.png" for i in range(len(SIZES))]
    for i, path in enumerate(paths):
        Image.fromarray(picture(SIZES[i], i)).save(path)
    return list(paths)


def test_inputs_of_one_size_are_seen_together(
    engine: TorchEngine, oracle: Oracle, photos: list[ImageSource]
) -> None:
    outputs = list(run_network(engine, photos, with_lines=False, rotation="off"))
    assert sorted(oracle.batches) == [1, 2]
    for output, size, path in zip(outputs, SIZES, photos, strict=True):
        assert isinstance(output, NetworkOutput)
        assert output.file.size == size
        assert output.file.path == str(path)
        width, height = output.fields.size
        assert (output.view.width / width, len(output.fields)) == (
            pytest.approx(output.view.height / height, rel=0.02),
            1,
        )
        assert output.segments is None
        assert output.down is None
        assert output.notes == ()
        # The field is that of the camera: up where its roll says.
        up = output.fields.up[0, :, height // 2, width // 2]
        assert math.degrees(math.atan2(-up[0], -up[1])) == pytest.approx(7, abs=0.2)


def test_lines_found_beside_the_network_are_the_same(
    engine: TorchEngine, photos: list[ImageSource], monkeypatch: pytest.MonkeyPatch
) -> None:
    tiles = np.full((360, 480, 3), 8, np.uint8)
    tiles[..., 1] += np.kron(np.indices((9, 12)).sum(0) % 2, np.full((40, 40), 200)).astype(
        np.uint8
    )
    sources: list[ImageSource] = [photos[0], "gone.jpg", tiles]
    found = []
    for count in ("1", "2"):
        monkeypatch.setenv("OMP_NUM_THREADS", count)
        outputs = list(run_network(engine, sources, with_lines=True, rotation="off"))
        assert isinstance(outputs.pop(1), Failure)
        found.append([output.lines for output in outputs if isinstance(output, NetworkOutput)])
    for alone, beside in zip(*found, strict=True):
        assert alone is not None
        assert beside is not None
        assert np.array_equal(alone.ends, beside.ends)
        assert np.array_equal(alone.curves.points, beside.curves.points)
    assert found[0][1]


def test_what_cannot_be_read_fails_alone(engine: TorchEngine, photos: list[ImageSource]) -> None:
    blank = np.full((48, 64, 3), 8, np.uint8)
    sources: list[ImageSource] = [photos[0], "gone.jpg", blank, photos[1]]
    outputs = list(run_network(engine, sources, with_lines=True, rotation="off"))
    first, gone, empty, last = outputs
    assert isinstance(gone, Failure)
    assert (gone.image, gone.width) == ("gone.jpg", None)
    assert "does not exist" in gone.error
    assert isinstance(empty, NetworkOutput)
    assert empty.notes == (BLANK,)
    assert empty.segments is not None
    assert len(empty.segments) == 0
    assert isinstance(first, NetworkOutput)
    assert isinstance(last, NetworkOutput)
    assert (first.file.size, last.file.size) == (SIZES[0], SIZES[1])


def test_a_large_photo_is_decoded_once(
    engine: TorchEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "large.jpg"
    Image.fromarray(picture((2600, 1950), 2)).save(path, quality=95)
    decoded = []

    def load(image: Image.Image, name: str) -> None:
        decoded.append(name)
        image.load()

    monkeypatch.setattr("geocalib.imaging.read._load", load)
    (output,) = run_network(engine, [path], with_lines=True, rotation="off")
    assert isinstance(output, NetworkOutput)
    assert output.segments is not None
    assert decoded == [str(path)]


def test_sources_that_have_a_path() -> None:
    assert path_of("a.jpg") == path_of(Path("a.jpg")) == "a.jpg"
    assert path_of(b"bytes") is None
    assert path_of(np.zeros((4, 4))) is None


def test_a_second_opinion_is_on_the_original_as_it_stands(
    engine: TorchEngine, photos: list[ImageSource], monkeypatch: pytest.MonkeyPatch
) -> None:
    shapes = []

    def focal_estimate(_: TorchEngine, images: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        shapes.append(images.shape[-2:])
        return np.tile([math.log(0.7), 0.2], (len(images), 1))

    monkeypatch.setattr(TorchEngine, "has_focal_head", True)
    monkeypatch.setattr(TorchEngine, "focal_estimate", focal_estimate)
    (output,) = run_network(engine, photos[2:], False, "off", with_focal_estimates=True)
    assert isinstance(output, NetworkOutput)
    assert output.focal_estimate is not None
    diagonal = math.hypot(output.view.width, output.view.height)
    assert math.exp(output.focal_estimate.log_f) == pytest.approx(0.7 * diagonal)
    assert output.focal_estimate.sigma == 0.2
    # One that lies on a side is asked about as it stands.
    assert isinstance(photos[2], Path)
    lying = np.rot90(np.asarray(Image.open(photos[2])))
    monkeypatch.setattr(TorchEngine, "has_orientation", True)
    monkeypatch.setattr(
        TorchEngine,
        "predict_oriented",
        lambda self, images: (self.predict(images), np.zeros((1, 4))),
    )
    monkeypatch.setattr(orientation, "_orientations", lambda *_: ([1], [()]))
    (again,) = run_network(engine, [lying], False, "auto", with_focal_estimates=True)
    assert isinstance(again, NetworkOutput)
    assert shapes[1] == shapes[0]
    # And nobody is asked for nothing.
    (unasked,) = run_network(engine, photos[2:], False, "off")
    assert isinstance(unasked, NetworkOutput)
    assert unasked.focal_estimate is None
    assert len(shapes) == 2
