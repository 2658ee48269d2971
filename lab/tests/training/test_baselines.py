"""Baselines learn, on the crops that ours learns from; resume, and become files that are read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from geocalib.cameras import Camera
from geocalib.errors import ConfigError
from geocalib.geometry.gravity import angle_between, from_roll_pitch
from geocalib.nets.direct import BINS, Binned, ParamNet, Regressed, bins_of
from geocalib.nets.lean import LeanConfig
from geocalib.result.calibration import Calibration
from geocalib_lab.evaluation.direct import camera_of
from geocalib_lab.evaluation.methods.baselines import Baselines
from geocalib_lab.panoramas.panorama import PanoramaBank
from geocalib_lab.training import checkpoint
from geocalib_lab.training.__main__ import main
from geocalib_lab.training.augment import AugmentConfig
from geocalib_lab.training.batches import make_draw, validation_pictures
from geocalib_lab.training.config import TrainingConfig, read_config
from geocalib_lab.training.direct import parameters_of
from geocalib_lab.training.losses import LossConfig
from geocalib_lab.training.networks import Baseline, build_network
from geocalib_lab.training.processes import Process
from geocalib_lab.training.release import Start, time_spent
from geocalib_lab.training.release import main as release
from geocalib_lab.training.schedule import ScheduleConfig
from geocalib_lab.training.trainer import Trainer
from geocalib_lab.training.validate import evaluate
from little_encoder import register_little

CONFIGS = Path(__file__).parents[2] / "configs"
LITTLE = LeanConfig("little", (8, 8, 32), blocks=1)
NAMES: tuple[Baseline, ...] = ("deepcalib", "paramnet")


@pytest.fixture(autouse=True)
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    register_little(monkeypatch)


def panorama() -> np.ndarray:
    """(H, W, 3): brighter upwards, with posts of noise."""
    rng = np.random.default_rng(0)
    grey = np.linspace(230, 20, 64)[:, None, None] * np.ones((1, 128, 3))
    grey[:, rng.integers(0, 128, 12)] = rng.integers(0, 255, (12, 3))
    return grey.round().astype(np.uint8)


def config_of(baseline: Baseline) -> TrainingConfig:
    return TrainingConfig(
        batch=4,
        sizes=((32, 32),),
        compile=False,
        hidden_nadir=0.0,
        network=LITTLE,
        baseline=baseline,
        augment=AugmentConfig(changed_share=0.0),
        loss=LossConfig(cells=8),
        schedule=ScheduleConfig(warmup_steps=1, fields_only=0.0),
    )


def trainer_of(config: TrainingConfig) -> Trainer:
    torch.manual_seed(0)
    bank = PanoramaBank.create([torch.from_numpy(panorama())], ["a"])
    network = build_network(config.network, config.baseline)
    process = Process(0, 1, torch.device("cpu"))
    return Trainer(config, network, make_draw(bank, config), process)


def test_parameters_are_those_of_the_camera() -> None:
    roll, pitch = torch.tensor([0.3, -0.2]), torch.tensor([-0.9, 0.4])
    gravity = from_roll_pitch(roll, pitch)
    f, k1 = torch.tensor([100.0, 60.0]), torch.tensor([[-0.05], [0.1]])
    camera = Camera.create("simple_radial", f, (96, 64), k1)
    values = parameters_of(camera, gravity)
    torch.testing.assert_close(values[:, :2], torch.stack([roll, pitch], 1))
    torch.testing.assert_close(values[:, 3], k1[:, 0] * (64 / f) ** 2)
    found, down = camera_of(values, "simple_radial", camera.size)
    torch.testing.assert_close(found.f, f)
    torch.testing.assert_close(found.distortion, k1)
    assert float(angle_between(down, gravity).max()) < 1e-3
    # In another size, the same view.
    larger, _ = camera_of(values, "pinhole", 2 * camera.size)
    torch.testing.assert_close(larger.f, 2 * f)
    assert larger.distortion.shape == (2, 0)


@pytest.mark.parametrize("baseline", NAMES)
def test_it_learns_pictures_that_it_sees_again_and_again(baseline: Baseline) -> None:
    config = config_of(baseline)
    rates = replace(config.optimiser, rate=1e-2, encoder_rate=1e-2, weight_decay=0.0)
    trainer = trainer_of(replace(config, optimiser=rates))
    trainer.generator.manual_seed(0)
    batch = trainer.draw((32, 32), trainer.generator, trainer.clock)
    trainer.draw = lambda *_: batch
    # A regressor has to follow fields that change under it.
    steps = 30 if baseline == "paramnet" else 12
    reports = [trainer.step(0.5) for _ in range(steps)]
    first, last = ({n: float(v) for n, v in reports[i].parts.items()} for i in (0, -1))
    camera, seen = {"gravity", "vfov", "distortion"}, {"up", "latitude"}
    assert first.keys() == camera | (seen if baseline == "paramnet" else set())
    # Each is judged by itself.
    for parts in filter(first.keys().__ge__, (camera, seen)):
        assert sum(last[n] for n in parts) < 0.8 * sum(first[n] for n in parts)
    assert trainer.skipped == 0
    if isinstance(trainer.network, ParamNet):
        # Confidences have nothing to learn from, and stay alike.
        fields = trainer.network.eval()(batch.images).fields
        assert bool((fields.up_confidence == 0.5).all() & (fields.latitude_confidence == 0.5).all())


def test_fields_learn_nothing_from_the_regressor() -> None:
    trainer = trainer_of(config_of("paramnet"))
    batch = trainer.draw((32, 32), trainer.generator, trainer.clock)
    output = trainer.network(batch.images)
    assert isinstance(output, Regressed)
    output.values.sum().backward()
    learns = {n.split(".")[0] for n, p in trainer.network.named_parameters() if p.grad is not None}
    assert learns == {"read", "regress"}


def test_paramnet_learns_fields_first() -> None:
    config = config_of("paramnet")
    trainer = trainer_of(replace(config, schedule=ScheduleConfig(fields_only=0.5)))
    before = trainer.network.get_parameter("regress.weight").clone()
    assert trainer.step(0.4).parts.keys() == {"up", "latitude"}
    assert torch.equal(trainer.network.get_parameter("regress.weight"), before)
    assert "vfov" in trainer.step(0.5).parts
    assert not torch.equal(trainer.network.get_parameter("regress.weight"), before)


def test_crops_are_those_of_ours() -> None:
    ours = read_config(CONFIGS / "lean.toml")
    for name in NAMES:
        config = read_config(CONFIGS / f"{name}.toml")
        assert config.baseline == name
        assert replace(config, baseline=None, loss=ours.loss, schedule=ours.schedule) == ours
        assert replace(config.schedule, fields_only=0.0) == ours.schedule


def test_settings_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="baseline must be"):
        read_config(None, ["baseline=magic"])
    (tmp_path / "a.toml").write_text('like = "b.toml"\nbatch = 3\n[loss]\nup = 2.0')
    with pytest.raises(ConfigError, match=r"b\.toml does not exist"):
        read_config(tmp_path / "a.toml")
    (tmp_path / "b.toml").write_text("batch = 5\nseed = 7\n[loss]\nup = 1.0\nlatitude = 3.0")
    config = read_config(tmp_path / "a.toml")
    assert (config.batch, config.seed, config.loss.up, config.loss.latitude) == (3, 7, 2.0, 3.0)
    (tmp_path / "c.toml").write_text('like = "a.toml"\n[loss]\nlatitude = 4.0')
    config = read_config(tmp_path / "c.toml")
    assert (config.batch, config.seed, config.loss.up, config.loss.latitude) == (3, 7, 2.0, 4.0)
    with pytest.raises(ConfigError, match=r"wide\.share is not for baselines"):
        read_config(None, ["baseline=deepcalib", "wide.share=0.1"])


def test_the_wide_stage_goes_on_from_the_thinned_network() -> None:
    wide, thinned = (read_config(CONFIGS / f"{name}.toml") for name in ("wide", "thinned"))
    assert wide.network == thinned.network
    assert wide.batch == sum(wide.wide.counts(wide.batch).values()) + 333
    assert (thinned.wide.share, thinned.validation.wide) == (0.0, 0)


@pytest.mark.parametrize("name", NAMES)
def test_from_panoramas_to_an_answer(
    name: Baseline, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Train, resume, validate, release, and answer a photograph."""
    for split in ("train", "val"):
        (tmp_path / split).mkdir()
        Image.fromarray(panorama()).save(tmp_path / split / "a__b.webp", lossless=True)
    settings = [f"baseline={name}"]
    settings += ["sizes=[[32, 32]]", "batch=2", "log_every=1", "validation.normalise=2"]
    settings += ["validation.size=[32, 32]", "validation.people=0", "validation.distorted=0"]
    settings += [
        "network.encoder=little",
        "network.widths=[8, 8, 32]",
        "detail=24",
        "validation.per_panorama=1",
    ]
    common = ["--config", str(CONFIGS / "tiny.toml"), "--panos", str(tmp_path), "--device", "cpu"]
    common += ["--cache", str(tmp_path), "--set", *settings]

    common += ["--out", str(tmp_path / "out"), "--steps"]
    whole = tmp_path / "out" / "whole.pt"
    assert main([*common, "1"]) == 0
    before = checkpoint.load(whole)
    assert main([*common, "2", "--resume", str(whole)]) == 0
    after = checkpoint.load(whole)
    assert (before["steps"], after["steps"]) == (1, 2)
    assert before["network"].keys() == after["network"].keys()
    assert capsys.readouterr().out.count("validation | published roll") == 2
    file = tmp_path / "made" / f"{name}.safetensors"
    words = ["--config", str(CONFIGS / "tiny.toml"), "--set", *settings, "--on", "a processor"]
    words += ["--travel", str(tmp_path / "out" / "travel"), "--out", str(file)]
    assert release(words) == 0
    assert "minutes of training on a processor, 2 steps of 2 crops" in capsys.readouterr().out
    assert release(words) == 2
    assert "exists; choose another name or add --overwrite" in capsys.readouterr().err
    picture = tmp_path / "photo.png"
    Image.fromarray(panorama()[:, :90]).save(picture)
    # The fields of ParamNet are a method of their own.
    for word in ("paramnet", "fields") if name == "paramnet" else (name,):
        method = Baselines(file.parent, "cpu").load(word)
        assert (method.card.name, method.card.short_side, method.card.detail) == (word, 32, 24)
        (found,) = method.calibrate([picture], "pinhole", lines="off", exif=False)
        assert isinstance(found, Calibration)
        assert (found.width, found.height) == (90, 64)


def test_what_cannot_be_released(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    network = build_network(LITTLE, "deepcalib")
    checkpoint.export_shards(network.state_dict(), tmp_path / "ema")
    settings = ["network.encoder=little", "network.widths=[8, 8, 32]", "network.blocks=1"]
    out = tmp_path / "a.safetensors"

    def said(*words: str) -> str:
        given = ["--set", *settings, *words, "--travel", str(tmp_path), "--out", str(out)]
        assert release(given) == 2
        return capsys.readouterr().err

    assert "training.csv does not exist; it tells how long" in said("baseline=deepcalib")
    assert "holds another network than the settings" in said("baseline=paramnet")
    (tmp_path / "training.csv").write_text("step,seconds\n")
    assert "training.csv has no line yet" in said("baseline=deepcalib")
    (tmp_path / "training.csv").write_text("words\nalone\n")
    assert "is no log of a training run" in said("baseline=deepcalib")
    assert not out.exists()


def test_the_start_of_a_run_is_mixed_in(tmp_path: Path) -> None:
    ends = [build_network(LITTLE, "deepcalib").state_dict() for _ in range(2)]
    begun, ended = (
        checkpoint.export_shards(state, tmp_path / name)
        and checkpoint.import_shards(tmp_path / name)
        for state, name in zip(ends, ("begun", "ended"), strict=True)
    )
    mixed = Start(tmp_path / "begun", 0.25).mixed_into(ended)
    assert mixed.keys() == ended.keys()
    for name, value in mixed.items():
        expected = 0.25 * begun[name].float() + 0.75 * ended[name].float()
        torch.testing.assert_close(value.float(), expected, atol=1e-3, rtol=1e-3)
        assert value.dim() < 2 or torch.equal(value, value.half().float())
    del ended["classify.bias"]
    with pytest.raises(ConfigError, match="holds another network than the run"):
        Start(tmp_path / "begun", 0.25).mixed_into(ended)
    with pytest.raises(ConfigError, match="between 0 and 1"):
        Start(tmp_path / "begun", 1.5)


def test_time_of_resumed_runs_adds_up(tmp_path: Path) -> None:
    log = tmp_path / "training.csv"
    log.write_text("step,seconds\n1,30\n2,60\n3,20\n4,90\n5,30\n")
    assert time_spent(log) == (5, 3.0)


def test_baselines_make_no_table_of_levels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--panos", str(tmp_path), "--out", str(tmp_path / "out"), "--steps", "1"]
    words += ["--levels", str(tmp_path / "levels.csv"), "--set", "baseline=deepcalib"]
    assert main(words) == 2
    assert (
        "levels.csv does not exist; a network of fields alone makes it" in capsys.readouterr().err
    )


def test_perfect_answers_are_perfect() -> None:
    """Validation compares what is answered with the truth, signs and sizes included."""

    class Oracle(torch.nn.Module):
        def __init__(self, values: torch.Tensor) -> None:
            super().__init__()
            self.values = values

        def forward(self, images: torch.Tensor) -> Binned:
            logits = torch.full((len(images), 4, BINS), -30.0)
            return Binned(logits.scatter_(2, bins_of(self.values)[..., None], 30.0))

    config = config_of("deepcalib")
    plan = replace(config.validation, size=(64, 64), people_size=(96, 64), people=3, distorted=3)
    config = replace(config, detail=48, validation=replace(plan, per_panorama=3))
    bank = PanoramaBank.create([torch.from_numpy(panorama())], ["a"])
    for pictures in validation_pictures(bank, config):
        truth = parameters_of(pictures.camera, pictures.gravity)
        numbers = evaluate(Oracle(truth), [pictures], 16)
        assert numbers[f"{pictures.name}_roll_median"] < 0.2
        assert numbers[f"{pictures.name}_pitch_median"] < 0.4
        assert numbers[f"{pictures.name}_vfov_median"] < 0.3
        if pictures.name == "distorted":
            assert numbers["distorted_k1_hat_median"] < 0.003
