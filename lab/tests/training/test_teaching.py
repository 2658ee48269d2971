"""A network that also tells the camera directly, and one that learns what another sees."""

from __future__ import annotations

import csv
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor
from torch.nn import functional

from geocalib.cameras import Camera
from geocalib.errors import ConfigError
from geocalib.nets.direct import DeepCalib, TellingNetwork
from geocalib.nets.lean import LeanConfig, LeanNetwork
from geocalib.nets.prediction import Prediction
from geocalib.nets.weights import load_network, save_weights
from geocalib_lab.panoramas.panorama import PanoramaBank
from geocalib_lab.training.__main__ import main
from geocalib_lab.training.augment import AugmentConfig
from geocalib_lab.training.batches import Batch, PartClock, make_draw, shrink
from geocalib_lab.training.config import TrainingConfig, read_config
from geocalib_lab.training.direct import loss_of
from geocalib_lab.training.losses import LossConfig, distance_from
from geocalib_lab.training.release import main as release
from geocalib_lab.training.teaching import Teacher, read_teacher
from known_photos import CARD
from little_encoder import register_little

CPU = torch.device("cpu")
CONFIGS = Path(__file__).parents[2] / "configs"
LITTLE = LeanConfig("little", (8, 8, 32), blocks=1)


@pytest.fixture(autouse=True)
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    register_little(monkeypatch)


def lean_network() -> LeanNetwork:
    torch.manual_seed(0)
    return LeanNetwork(LITTLE).eval()


def random_prediction(seed: int) -> Prediction:
    generator = torch.Generator().manual_seed(seed)
    up, latitude = (torch.randn(2, n, 8, 8, generator=generator) for n in (2, 1))
    confidences = torch.rand(2, 2, 8, 8, generator=generator)
    return Prediction(functional.normalize(up, dim=1), 0.5 * latitude, *confidences)


def test_in_the_pupils_own_size_it_says_what_it_sees() -> None:
    network = lean_network()
    images = torch.rand(2, 3, 64, 96)
    taught = Teacher(network, 64, 64).fields(images, (96, 64))
    for found, expected in zip(taught, network(images), strict=True):
        torch.testing.assert_close(found, expected)


def test_what_is_stretched_for_the_teacher_is_turned_back(monkeypatch: pytest.MonkeyPatch) -> None:
    network = lean_network()
    seen = []

    def diagonal(images: Tensor) -> Prediction:
        seen.append(images.shape[-2:])
        up = torch.full((1, 2, images.shape[-2] // 4, images.shape[-1] // 4), math.sqrt(0.5))
        return Prediction(up, up[:, :1], up[:, 0], up[:, 0])

    monkeypatch.setattr(network, "forward", diagonal)
    taught = Teacher(network, 96, 64).fields(torch.rand(1, 3, 64, 80), (80, 64))
    # 120 x 96 would be the shape; in steps of 32 it is a little wider.
    assert seen == [(96, 128)]
    assert taught.up.shape == (1, 2, 16, 20)
    slope = taught.up[0, 1] / taught.up[0, 0]
    torch.testing.assert_close(slope, torch.full_like(slope, (128 / 80) / (96 / 64)))


def test_a_distance_is_the_angle_and_the_latitude() -> None:
    taught = random_prediction(0)
    assert float(distance_from(taught, taught, 0.5).abs().max()) < 1e-6
    turn = torch.tensor([[math.cos(0.2), -math.sin(0.2)], [math.sin(0.2), math.cos(0.2)]])
    turned = taught._replace(up=torch.einsum("ij,bjhw->bihw", turn, taught.up))
    torch.testing.assert_close(distance_from(turned, taught, 0.5), torch.full((2,), 0.2))
    higher = taught._replace(latitude=taught.latitude + 0.1)
    torch.testing.assert_close(distance_from(higher, taught, 1.0), torch.full((2,), 0.1))
    # Only where the teacher is sure, if all is weighed by that.
    sure = torch.zeros(2, 8, 8)
    sure[:, 0, 0] = 1.0
    only = taught._replace(latitude_confidence=sure)
    moved = taught.latitude.clone()
    moved[..., 0, 0] += 0.3
    apart = distance_from(taught._replace(latitude=moved), only, 0.0)
    torch.testing.assert_close(apart, torch.full((2,), 0.3))


def test_a_photograph_teaches_the_view_and_what_a_teacher_sees() -> None:
    camera = Camera.create("simple_radial", torch.tensor([50.0, 60.0]), (64, 64))
    yes, only = torch.ones(2, dtype=torch.bool), torch.tensor([False, True])
    level = torch.tensor([[0.0, 1.0, 0.0]]).expand(2, 3)
    batch = Batch(torch.rand(2, 3, 64, 64), camera, level, ~yes, yes, only)
    network = TellingNetwork(LITTLE).eval()
    for taught, learns in ((None, [True, False]), (random_prediction(1), [True, True])):
        output = network(batch.images)
        fields = Prediction(*(v.detach()[..., :8, :8].clone() for v in output.fields))
        latitude = fields.latitude.requires_grad_()
        told = output._replace(fields=fields)
        losses = loss_of(told, replace(batch, taught=taught), LossConfig(cells=8), True)
        losses.total.backward()
        assert latitude.grad is not None
        assert (latitude.grad.flatten(1).abs().sum(1) > 0).tolist() == learns
        assert ("teacher" in losses.parts) == (taught is not None)
        assert {"direct_vfov", "direct_gravity", "direct_distortion"} <= losses.parts.keys()
    assert network.classify.weight.grad is not None


def test_what_tells_directly_is_a_network_of_its_own() -> None:
    network = TellingNetwork(LITTLE).eval()
    images = torch.rand(1, 3, 64, 64)
    told, direct = network(images), network.direct().eval()
    assert isinstance(direct, DeepCalib)
    torch.testing.assert_close(direct(images).logits, told.direct.logits)
    for found, expected in zip(told.fields, network.fields(images), strict=True):
        torch.testing.assert_close(found, expected)


def test_the_teacher_sees_pictures_before_they_are_changed() -> None:
    rng = np.random.default_rng(0)
    noise = torch.from_numpy(rng.integers(0, 255, (64, 128, 3), dtype=np.uint8))
    bank = PanoramaBank.create([noise], ["a"])
    config = TrainingConfig(batch=4, detail=24, hidden_nadir=0.0, network=LITTLE)
    teacher = Teacher(lean_network(), 64, 48)
    batches = [
        make_draw(bank, replace(config, augment=AugmentConfig(changed_share=share)), None, teacher)(
            (32, 32), torch.Generator().manual_seed(0), PartClock(CPU)
        )
        for share in (0.0, 1.0)
    ]
    plain, changed = batches
    assert plain.images.shape == (4, 3, 32, 32)
    assert plain.taught is not None
    assert changed.taught is not None
    torch.testing.assert_close(plain.taught.latitude, changed.taught.latitude)
    assert plain.taught.latitude.shape == (4, 1, 8, 8)
    assert float((plain.images - changed.images).abs().max()) > 0.05


def test_a_shrunk_picture_keeps_its_mean() -> None:
    images = torch.rand(1, 3, 48, 64)
    smaller = shrink(images, (32, 24))
    assert smaller.shape == (1, 3, 24, 32)
    torch.testing.assert_close(smaller.mean((2, 3)), images.mean((2, 3)), atol=2e-2, rtol=0)


def test_from_a_teacher_to_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (32, 64, 3), dtype=np.uint8)
    for split in ("train", "val"):
        (tmp_path / split).mkdir()
        Image.fromarray(noise).save(tmp_path / split / "a__b.webp")
    card = replace(CARD, short_side=64, detail=48)
    teacher = tmp_path / "teacher.safetensors"
    save_weights(teacher, lean_network(), card)
    assert (read_teacher(teacher, CPU).short_side, read_teacher(teacher, CPU).detail) == (64, 48)
    settings = ["tells=true", "sizes=[[32, 32]]", "detail=24", "batch=4", "log_every=1"]
    settings += ["network.encoder=little", "network.widths=[8, 8, 32]", "loss.cells=8"]
    settings += ["validation.size=[32, 32]", "validation.people=0", "validation.distorted=0"]
    settings += ["validation.normalise=4", "validation.per_panorama=1"]
    words = ["--config", str(CONFIGS / "tiny.toml"), "--panos", str(tmp_path), "--device", "cpu"]
    words += ["--teacher", str(teacher), "--out", str(tmp_path / "out"), "--set", *settings]
    assert main([*words, "--steps", "1"]) == 0
    assert "told" in capsys.readouterr().out
    with (tmp_path / "out" / "travel" / "training.csv").open() as lines:
        (row,) = csv.DictReader(lines)
    assert float(row["teacher"]) > 0
    assert float(row["direct_vfov"]) > 0
    out = tmp_path / "fields.safetensors"
    words = ["--config", str(CONFIGS / "tiny.toml"), "--set", *settings, "--out", str(out)]
    assert release([*words, "--travel", str(tmp_path / "out" / "travel")]) == 0
    assert isinstance(load_network(out).network, LeanNetwork)


def test_what_cannot_tell() -> None:
    with pytest.raises(ConfigError, match="no baseline and no ablation"):
        read_config(None, ["tells=true", "baseline=deepcalib"])
    with pytest.raises(ConfigError, match="no baseline and no ablation"):
        read_config(None, ["tells=true", "ablation.confidences=alike"])
    assert read_config(CONFIGS / "taught.toml").photos.share > 0
