"""The whole loop on small things: it learns, resumes bit for bit, skips, validates and exports."""

from __future__ import annotations

import csv
import math
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, multiprocessing, nn
from torch.nn import functional

from geocalib.errors import ConfigError
from geocalib.geometry.fields import perspective_field
from geocalib.nets.encoders import ENCODERS
from geocalib.nets.prediction import Prediction
from geocalib_lab.panoramas.panorama import PanoramaBank
from geocalib_lab.panoramas.views import ViewConfig
from geocalib_lab.panoramas.wide import WideConfig
from geocalib_lab.training import checkpoint
from geocalib_lab.training.__main__ import main
from geocalib_lab.training.augment import AugmentConfig
from geocalib_lab.training.batches import Batch, PartClock, make_draw, validation_pictures
from geocalib_lab.training.config import (
    OptimiserConfig,
    TrainingConfig,
    ValidationConfig,
    read_config,
)
from geocalib_lab.training.direct import loss_of, wide_loss
from geocalib_lab.training.journal import plot
from geocalib_lab.training.loop import Budget, Places, train
from geocalib_lab.training.losses import LossConfig
from geocalib_lab.training.processes import Process, join
from geocalib_lab.training.schedule import ScheduleConfig
from geocalib_lab.training.trainer import Average, Trainer, make_optimiser
from geocalib_lab.training.validate import Pictures, evaluate, one_line, refresh_batch_norms
from little_encoder import LITTLE
from views import see

ALONE = Process(0, 1, torch.device("cpu"))


class Small(nn.Module):
    """The least that has an encoder, a batch norm and a layer that draws random numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(3, 16, 4, stride=4), nn.BatchNorm2d(16))
        self.mix = nn.Sequential(nn.ReLU(), nn.Dropout(0.1), nn.Conv2d(16, 5, 3, padding=1))

    def forward(self, image: Tensor) -> Prediction:
        raw = self.mix(self.encoder(image))
        up = raw[:, :2] + torch.tensor([0.0, -2.0])[:, None, None]
        confidence = torch.sigmoid(raw[:, 3:])
        return Prediction(
            functional.normalize(up, dim=1),
            torch.atan(raw[:, 2:3]),
            confidence[:, 0],
            confidence[:, 1],
        )


CONFIG = TrainingConfig(
    batch=4,
    sizes=((32, 32), (48, 32)),
    compile=False,
    log_every=2,
    time_every=2,
    hidden_nadir=0.0,
    loss=LossConfig(cells=8),
    optimiser=OptimiserConfig(rate=1e-2, encoder_rate=1e-2),
    schedule=ScheduleConfig(warmup_steps=2, decay=0.3, fields_only=0.4),
    validation=ValidationConfig(
        size=(32, 32),
        people_size=(48, 32),
        per_panorama=2,
        people=3,
        distorted=3,
        batch=4,
        normalise=8,
    ),
)


def panorama(seed: int, width: int = 128) -> Tensor:
    """(H, W, 3) uint8: grey tells the sine of the latitude, the colours some poles."""
    rows = (np.arange(width // 2) + 0.5) / (width // 2)
    grey = 0.5 + 0.4 * np.sin(math.pi * (0.5 - rows))
    picture = np.repeat(np.repeat(grey[:, None, None], width, 1), 3, 2)
    poles = np.random.default_rng(seed).integers(0, width, 6)
    picture[:, poles, 1] = 0.2
    return torch.from_numpy((255 * picture).round().astype(np.uint8))


def bank_of(count: int = 2) -> PanoramaBank:
    return PanoramaBank.create(
        [panorama(i) for i in range(count)], [f"o__{i}" for i in range(count)]
    )


def trainer_of(config: TrainingConfig = CONFIG, network: nn.Module | None = None) -> Trainer:
    torch.manual_seed(0)
    return Trainer(config, network or Small(), make_draw(bank_of(), config), ALONE)


def run(trainer: Trainer, steps: int, total: int) -> list[float]:
    losses = []
    while trainer.steps < steps:
        parts = trainer.step(trainer.steps / total).parts
        losses.append(float(parts["up"] + parts["latitude"]))
    return losses


def same(a: object, b: object) -> bool:
    """Equal bit for bit, in all their parts."""
    if isinstance(a, Tensor):
        return isinstance(b, Tensor) and torch.equal(a, b)
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    return a == b


def test_pictures_show_what_their_labels_say() -> None:
    config = replace(
        CONFIG,
        batch=16,
        augment=AugmentConfig(changed_share=0.0),
        views=ViewConfig(distorted_share=0.5, largest_magnification=100.0),
    )
    plain = panorama(0)[:, :, :1].repeat(1, 1, 3)
    bank = PanoramaBank.create([plain], ["plain"])
    generator = torch.Generator().manual_seed(3)
    batch = make_draw(bank, config)((48, 32), generator, PartClock(torch.device("cpu")))
    fields = see(batch.camera, batch.gravity, torch.float32)
    sine = (batch.images[:, :1] - 0.5) / 0.4
    assert (sine - torch.sin(fields.latitude)).abs().max() < 0.03
    assert batch.keep.all()
    bent = batch.camera.distortion[:, 0] != 0
    assert 0 < int(bent.sum()) < 16
    assert torch.equal(bent, batch.bends)


def test_loss_falls_on_pictures_seen_again_and_again() -> None:
    config = replace(
        CONFIG,
        sizes=((32, 32),),
        augment=AugmentConfig(changed_share=0.0),
        optimiser=OptimiserConfig(rate=3e-2, encoder_rate=3e-2),
        schedule=ScheduleConfig(warmup_steps=1, fields_only=0.6),
    )
    trainer = trainer_of(config)
    trainer.generator.manual_seed(0)
    batch = trainer.draw((32, 32), trainer.generator, trainer.clock)
    trainer.draw = lambda *_: batch
    losses = run(trainer, 30, 30)
    assert sum(losses[-4:]) < 0.6 * sum(losses[:4])
    assert trainer.skipped == 0


def wide_config() -> TrainingConfig:
    """Two thirds of twelve pictures wide, through all models, half of these off centre."""
    return replace(
        CONFIG,
        batch=12,
        wide=WideConfig(share=0.67, circular_share=0.5, off_centre_share=0.5),
        validation=replace(CONFIG.validation, wide=4),
    )


def test_wide_pictures_are_the_last_of_a_batch() -> None:
    config = wide_config()
    batch = trainer_of(config).draw((48, 32), torch.Generator(), PartClock(torch.device("cpu")))
    assert len(batch.images) == 12
    assert len(batch.gravity) == len(batch.keep) == 4
    assert [part.camera.model.name for part in batch.wide] == [
        "ucm",
        "kannala_brandt",
        "division",
        "pinhole",
    ]
    assert sum(len(part) for part in batch.wide) == 8


def test_wide_pictures_are_learnt_from_and_each_counts_the_same() -> None:
    config = wide_config()
    trainer = trainer_of(config)
    batch = trainer.draw((48, 32), torch.Generator(), trainer.clock)
    fields = trainer.network(batch.images)
    first = replace(batch, images=batch.images[:4], wide=())
    ordinary = loss_of(Prediction(*(value[:4] for value in fields)), first, config.loss, True)
    wide = wide_loss(Prediction(*(value[4:] for value in fields)), batch.wide, config.loss, True)
    both = loss_of(fields, batch, config.loss, True)
    torch.testing.assert_close(both.total, (ordinary.total + 2 * wide.total) / 3)
    assert {"gravity", "wide_up", "wide_latitude", "wide_keep", "wide_gravity", "wide_vfov"} <= set(
        both.parts
    )
    report = trainer.step(0.9)
    assert math.isfinite(report.norm)
    assert trainer.skipped == 0


def test_wide_views_are_validated_with_their_models() -> None:
    sets = {pictures.name: pictures for pictures in validation_pictures(bank_of(1), wide_config())}
    models = {"wideucm": "ucm", "widekb": "kannala_brandt", "widepin": "pinhole"}
    for name, model in models.items():
        assert sets[name].model == sets[name].camera.model.name == model
        numbers = evaluate(Small().eval(), [sets[name]], 4)
        assert math.isfinite(numbers[f"{name}_latitude_median"])
        assert f"{name}_k1_hat_median" not in numbers


class Truthful(nn.Module):
    """A network that knows what pictures show."""

    def __init__(self, pictures: Pictures) -> None:
        super().__init__()
        self.pictures = pictures

    def forward(self, images: Tensor) -> Prediction:
        assert self.pictures.gravity is not None
        height, width = (n // 4 for n in images.shape[-2:])
        camera = self.pictures.camera.resize(width, height)
        up, latitude, valid = perspective_field(camera, self.pictures.gravity)
        sure = valid.float()
        return Prediction(up, latitude, sure, sure)


def test_views_off_centre_are_fitted_about_their_principal_points() -> None:
    sets = {pictures.name: pictures for pictures in validation_pictures(bank_of(1), wide_config())}
    for name in ("wideucm", "wideoff"):
        numbers = evaluate(Truthful(sets[name]), [sets[name]], len(sets[name]))
        assert numbers[f"{name}_gravity_median"] < 1e-3
        assert numbers[f"{name}_vfov_median"] < 1e-3


def test_resuming_is_exact(tmp_path: Path) -> None:
    straight = trainer_of()
    run(straight, 6, 6)
    first = trainer_of()
    run(first, 3, 6)
    checkpoint.save(first.state(), tmp_path / "whole.pt")
    torch.manual_seed(99)
    second = Trainer(CONFIG, Small(), make_draw(bank_of(), CONFIG), ALONE)
    second.restore(checkpoint.load(tmp_path / "whole.pt"))
    run(second, 6, 6)
    assert same(second.state(), straight.state())
    assert not same(first.state(), straight.state())


def test_a_step_that_is_not_finite_is_skipped() -> None:
    trainer = trainer_of()
    run(trainer, 1, 10)
    draw = trainer.draw

    def broken(size: tuple[int, int], generator: torch.Generator, clock: PartClock) -> Batch:
        batch = draw(size, generator, clock)
        return replace(batch, images=batch.images * torch.nan)

    before = {name: value.clone() for name, value in trainer.network.named_parameters()}
    trainer.draw = broken
    report = trainer.step(0.9)
    assert not math.isfinite(report.norm)
    assert trainer.skipped == 1
    assert same(before, dict(trainer.network.named_parameters()))


def test_a_network_that_does_not_compile_runs_as_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(images: Tensor) -> Prediction:
        raise RuntimeError("no compiler here\nand a long story")

    monkeypatch.setattr(torch, "compile", lambda *_, **__: refuse)
    compiled = trainer_of(replace(CONFIG, compile=True))
    plain = trainer_of()
    assert run(compiled, 2, 10) == run(plain, 2, 10)
    assert capsys.readouterr().out.count("no compiler here") == 1


def test_average_follows_the_weights() -> None:
    network = nn.BatchNorm1d(1)
    average = Average(network)
    with torch.no_grad():
        network.weight.fill_(2.0)
        network.num_batches_tracked.fill_(5)
    average.update(0.9)
    # From 1 towards 2 with a decay of 1 / 10, as it is the first update.
    assert float(average.state["weight"]) == pytest.approx(1.9)
    assert int(average.state["num_batches_tracked"]) == 5
    for _ in range(200):
        average.update(0.5)
    assert float(average.state["weight"]) == pytest.approx(2)


def test_norms_and_biases_do_not_decay_and_the_encoder_has_its_rate() -> None:
    network = Small()
    config = OptimiserConfig(rate=3.0, encoder_rate=1.0, weight_decay=0.1)
    optimiser = make_optimiser(network, config, torch.device("cpu"))
    found = {
        id(parameter): (group["full_rate"], group["weight_decay"])
        for group in optimiser.param_groups
        for parameter in group["params"]
    }
    assert len(found) == len(list(network.parameters()))
    assert found[id(network.encoder[0].weight)] == (1.0, 0.1)
    assert found[id(network.encoder[0].bias)] == (1.0, 0.0)
    assert found[id(network.encoder[1].weight)] == (1.0, 0.0)
    assert found[id(network.mix[2].weight)] == (3.0, 0.1)


def test_budget() -> None:
    assert Budget(steps=10).progress(5, 1e9) == 0.5
    assert Budget(seconds=20).progress(10**9, 5) == 0.25
    assert Budget(10, 20).progress(9, 5) == 0.9
    assert Budget(seconds=-3).progress(0, 0.1) >= 1
    with pytest.raises(ConfigError, match="give steps or minutes"):
        Budget()


def test_train_leaves_everything_behind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trainer = trainer_of(replace(CONFIG, validation=replace(CONFIG.validation, every_seconds=0.0)))
    pictures = validation_pictures(bank_of(1), CONFIG)
    assert {p.name: len(p) for p in pictures} == {"published": 2, "people": 3, "distorted": 3}
    places = Places(tmp_path / "whole.pt", tmp_path / "travel")
    numbers = train(trainer, pictures, Budget(steps=4), places)
    assert trainer.steps == 4
    assert numbers["published_gravity_median"] >= 0
    assert "distorted_k1_hat_median" in numbers
    with (places.travel / "training.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    assert [row["step"] for row in rows] == ["2", "4"]
    assert all(float(row["backward_ms"]) > 0 for row in rows)
    assert rows[0]["gravity"] == ""
    assert float(rows[1]["gravity"]) > 0
    with (places.travel / "validation.csv").open() as lines:
        assert [row["step"] for row in csv.DictReader(lines)] == ["1", "2", "3", "4", "4"]
    assert "validation | published roll" in capsys.readouterr().out
    # What is exported is the average, with statistics of its own.
    ema = checkpoint.import_shards(places.travel / "ema")
    torch.testing.assert_close(
        ema["mix.2.weight"], trainer.average.state["mix.2.weight"], rtol=1e-3, atol=1e-4
    )
    assert not torch.allclose(
        ema["encoder.1.running_var"], trainer.average.state["encoder.1.running_var"]
    )
    # The raw weights are those after the three steps before the rate decays.
    stable = trainer_of(trainer.config)
    run(stable, 3, 4)
    torch.testing.assert_close(
        checkpoint.import_shards(places.travel / "raw"),
        dict(stable.network.state_dict()),
        rtol=1e-3,
        atol=1e-4,
    )
    plot(places.travel, tmp_path / "curves.png")
    with Image.open(tmp_path / "curves.png") as picture:
        assert picture.width > 600


def test_validation_is_fixed_and_perfect_fields_are_perfect() -> None:
    first, again = (validation_pictures(bank_of(1), CONFIG) for _ in range(2))
    assert all(torch.equal(a.images, b.images) for a, b in zip(first, again, strict=True))

    class Oracle(nn.Module):
        """Knows the answers of one set of pictures, batch after batch."""

        def __init__(self, pictures: Pictures) -> None:
            super().__init__()
            width, height = pictures.images.shape[3] / 2, pictures.images.shape[2] / 2
            fields = see(pictures.camera.resize(width, height), pictures.gravity, torch.float32)
            self.answers = iter([fields[i : i + 4] for i in range(0, len(pictures), 4)])

        def forward(self, images: Tensor) -> Prediction:
            assert 0 <= float(images.min()) <= float(images.max()) <= 1
            return Prediction(*vars(next(self.answers)).values())

    for pictures in first:
        numbers = evaluate(Oracle(pictures), [pictures], 4)
        for key, value in numbers.items():
            assert value == pytest.approx(100 if "auc" in key else 0, abs=0.05), key
        assert one_line(numbers).startswith(f"{pictures.name} roll")


def test_batch_norms_are_recomputed_from_the_pictures_given() -> None:
    network = nn.Sequential(nn.BatchNorm2d(3), nn.Dropout(0.5)).train()
    network[0].running_mean.fill_(7.0)
    batches = [torch.randn(4, 3, 8, 8) * 2 + 1 for _ in range(3)]
    refresh_batch_norms(network, batches)
    means = torch.stack([b.mean((0, 2, 3)) for b in batches]).mean(0)
    variances = torch.stack([b.var((0, 2, 3)) for b in batches]).mean(0)
    torch.testing.assert_close(network[0].running_mean, means)
    torch.testing.assert_close(network[0].running_var, variances)
    assert network[0].momentum == 0.1
    assert not any(module.training for module in network.modules())


def test_command_trains_resumes_and_starts_from_exports(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ENCODERS, "little", LITTLE)
    for split in ("train", "val"):
        (tmp_path / split).mkdir()
        Image.fromarray(panorama(1).numpy()).save(tmp_path / split / "a__b__c.webp", lossless=True)
    config = Path(__file__).parents[2] / "configs" / "tiny.toml"
    common = ["--config", str(config), "--panos", str(tmp_path), "--device", "cpu"]
    common += [
        "--set",
        "network.encoder=little",
        "sizes=[[64, 64]]",
        "batch=2",
        "log_every=1",
        "validation.normalise=2",
    ]
    common += ["validation.size=[64, 64]", "validation.people=0", "validation.distorted=0"]
    out = tmp_path / "out"
    assert main([*common, "--out", str(out), "--steps", "1"]) == 0
    assert (
        main([*common, "--out", str(out), "--steps", "2", "--resume", str(out / "whole.pt")]) == 0
    )
    with (out / "travel" / "training.csv").open() as lines:
        assert [row["step"] for row in csv.DictReader(lines)] == ["1", "2"]
    capsys.readouterr()
    wider = [*common, "network.widths=[16, 32, 64]", "--resume", str(out / "whole.pt")]
    assert main([*wider, "--out", str(tmp_path / "wider"), "--steps", "2"]) == 2
    assert "is of another network; give the settings" in capsys.readouterr().err
    other = tmp_path / "other"
    init = ["--init", str(out / "travel" / "raw"), "--minutes", "0"]
    assert main([*common, "--out", str(other), *init]) == 0
    old, new = (checkpoint.import_shards(o / "travel" / "raw") for o in (out, other))
    assert same(old, new)
    capsys.readouterr()
    bad = ["--panos", str(tmp_path / "train"), "--steps", "1", "--out"]
    assert main([*bad, str(tmp_path / "third")]) == 2
    assert "holds no panorama" in capsys.readouterr().err
    # What was trained is not lost to a run that does not go on from it.
    before = (out / "whole.pt").read_bytes()
    assert main([*common, "--out", str(out), "--steps", "1"]) == 2
    assert "whole.pt exists; choose another name or add --over" in capsys.readouterr().err
    again = [*common, "--out", str(out), "--steps", "1", "--overwrite"]
    assert main([*again, *init[:2]]) == 2
    assert "raw-00.pt is an input and stays as it is" in capsys.readouterr().err
    assert (out / "whole.pt").read_bytes() == before
    assert main(again) == 0
    with (out / "travel" / "training.csv").open() as lines:
        assert [row["step"] for row in csv.DictReader(lines)] == ["1"]


def _train_together(rank: int, folder: Path) -> None:
    os.environ |= {
        "RANK": str(rank),
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": (folder / "port").read_text(),
    }
    torch.set_num_threads(1)
    with join("cpu") as process:
        torch.manual_seed(0)
        trainer = Trainer(CONFIG, Small(), make_draw(bank_of(), CONFIG), process)
        # The processes disagree on the time that is left; the leader's word counts.
        budget = Budget(steps=3 if rank == 0 else 50)
        train(trainer, [], budget, Places(folder / "whole.pt", folder / "travel"))
        checkpoint.save(trainer.state(), folder / f"{rank}.pt")


def test_processes_share_their_gradients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        (tmp_path / "port").write_text(str(free.getsockname()[1]))
    monkeypatch.setattr(os, "environ", os.environ.copy())
    other = multiprocessing.get_context("spawn").Process(target=_train_together, args=(1, tmp_path))
    other.start()
    _train_together(0, tmp_path)
    other.join()
    assert other.exitcode == 0
    first, second = (checkpoint.load(tmp_path / f"{rank}.pt") for rank in (0, 1))
    assert first["steps"] == second["steps"] == 3
    for name, _ in Small().named_parameters():
        assert torch.equal(first["network"][name], second["network"][name])
    alone = trainer_of()
    run(alone, 3, 3)
    assert not torch.equal(alone.network.mix[2].weight, first["network"]["mix.2.weight"])
    assert (tmp_path / "whole.pt").exists()


class TestConfig:
    def test_files_of_the_repository_are_valid(self) -> None:
        paths = list((Path(__file__).parents[2] / "configs").glob("*.toml"))
        assert {"lean.toml", "tiny.toml"} <= {path.name for path in paths}
        assert all(read_config(path).batch > 0 for path in paths)

    def test_values_and_overrides(self, tmp_path: Path) -> None:
        path = tmp_path / "a.toml"
        path.write_text("batch = 3\nsizes = [[64, 32]]\n[optimiser]\nrate = 1\n[loss]\nhuber = 0.1")
        config = read_config(path, ["optimiser.clip=2.5", "network.encoder=mscan_tiny"])
        assert (config.batch, config.sizes) == (3, ((64, 32),))
        assert (config.optimiser.rate, config.optimiser.clip) == (1.0, 2.5)
        assert config.loss.huber == 0.1
        assert config.network.encoder == "mscan_tiny"
        assert read_config(None) == TrainingConfig()

    @pytest.mark.parametrize(
        ("override", "message"),
        [
            ("bach=3", "unknown setting bach; known: seed, batch"),
            ("optimiser.speed=3", r"unknown setting optimiser\.speed; known: rate"),
            ("batch=3.5", "batch must be int, got 3.5"),
            ("batch=many", "batch must be int, got 'many'"),
            ("sizes=[[1, 2, 3]]", "sizes must be"),
            ("sizes=[]", "sizes is empty"),
            ("loss.huber=[]", r"loss\.huber must be"),
            ("optimiser=3", "optimiser must be OptimiserConfig"),
            ("compile", "write key=value"),
        ],
    )
    def test_mistakes_are_named(self, override: str, message: str) -> None:
        with pytest.raises(ConfigError, match=message):
            read_config(None, [override])

    def test_files_that_cannot_be_read(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="does not exist"):
            read_config(tmp_path / "none.toml")
        (tmp_path / "bad.toml").write_text("batch = = 3")
        with pytest.raises(ConfigError, match="is no TOML file"):
            read_config(tmp_path / "bad.toml")
