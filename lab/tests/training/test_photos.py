"""Photographs whose focal length is known, and of some gravity: cropped, drawn, learnt from and
judged by."""

from __future__ import annotations

import csv
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from geocalib.cameras import Camera
from geocalib.errors import ConfigError, ImageError
from geocalib.geometry.fields import pixel_grid
from geocalib.geometry.gravity import from_roll_pitch, to_roll_pitch
from geocalib.nets.direct import BINS, Binned
from geocalib_lab.panoramas.panorama import PanoramaBank
from geocalib_lab.training.__main__ import main
from geocalib_lab.training.augment import AugmentConfig
from geocalib_lab.training.batches import Batch, PartClock, make_draw
from geocalib_lab.training.config import TrainingConfig, read_config
from geocalib_lab.training.direct import loss_of
from geocalib_lab.training.losses import LossConfig
from geocalib_lab.training.owners import among
from geocalib_lab.training.photos import (
    PhotoBank,
    PhotoConfig,
    owner_of,
    read_photo_bank,
)
from little_encoder import register_little

CPU = torch.device("cpu")
CONFIGS = Path(__file__).parents[2] / "configs"


def write_photos(folder: Path) -> Path:
    """Ramps: red grows to the right, green downwards, from 0 to 1 between the edges."""
    rows = []
    for number, (split, owner, size, focal) in enumerate(
        [
            ("train", "ann", (48, 32), 40.0),
            ("train", "ann", (32, 48), 50.0),
            ("train", "bob", (48, 32), 60.0),
            ("train", "cid", (32, 48), 70.0),
            ("train", "dan", (48, 32), 80.0),
            ("val", "eve", (48, 32), 90.0),
        ]
    ):
        name = f"{split}/{owner}__{number}.png"
        x, y = ((np.arange(n) + 0.5) / n * 255 for n in size)
        ramp = np.zeros((size[1], size[0], 3))
        ramp[..., 0], ramp[..., 1] = x, y[:, None]
        (folder / split).mkdir(parents=True, exist_ok=True)
        Image.fromarray(ramp.round().astype(np.uint8)).save(folder / name)
        rows.append({"image": name, "focal": focal})
    with (folder / "photos.csv").open("w", newline="") as lines:
        table = csv.DictWriter(lines, ["image", "focal"])
        table.writeheader()
        table.writerows(rows)
    return folder


def write_phones(folder: Path) -> Path:
    """The same with gravity, the first of them taken in motion."""
    write_photos(folder)
    with (folder / "photos.csv").open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    (folder / "photos.csv").unlink()
    for number, row in enumerate(rows):
        row |= {"roll_deg": "5", "pitch_deg": str(-20 * number)}
        row["norm_g"] = "1.2" if number == 0 else "1.01"
    with (folder / "phones.csv").open("w", newline="") as lines:
        table = csv.DictWriter(lines, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    return folder


def whole_photo_bank(folder: Path) -> PhotoBank:
    return read_photo_bank(write_photos(folder), "train", lambda owner: True, CPU)


def little_run(folder: Path, photos: Path, *more: str, steps: str = "1") -> list[str]:
    """The words of a run with photographs, of a little network and noisy panoramas."""
    noise = np.random.default_rng(0).integers(0, 255, (32, 64, 3), dtype=np.uint8)
    for split in ("train", "val"):
        (folder / split).mkdir(exist_ok=True)
        Image.fromarray(noise).save(folder / split / "a__b.webp")
    settings = ["sizes=[[32, 32]]", "batch=4", "photos.share=0.5", "validation.steep=2"]
    settings += ["network.encoder=little", "network.widths=[8, 8, 32]", "photos.owners=0.5"]
    settings += ["validation.size=[32, 32]", "validation.people=0", "validation.distorted=0"]
    settings += ["validation.normalise=4", "validation.per_panorama=1", *more]
    words = ["--config", str(CONFIGS / "tiny.toml"), "--panos", str(folder), "--steps", steps]
    words += ["--photos", str(photos), "--device", "cpu", "--out", str(folder / "out")]
    return [*words, "--set", *settings]


def test_a_crop_shows_the_middle_and_its_camera_knows(tmp_path: Path) -> None:
    photo_bank = whole_photo_bank(tmp_path)
    index = torch.tensor([0, 1])
    images, camera = photo_bank.crop(index, (24, 24), torch.tensor([1.0, 2.0]))
    # Squares of 32 and of 16 pixels, from photographs of 48 x 32 and 32 x 48.
    for image, photo, seen in zip(images, ((48, 32), (32, 48)), (32, 16), strict=True):
        for channel, size in enumerate(photo):
            along = image[channel].mean(channel)
            expected = 0.5 + ((torch.arange(24) + 0.5) / 24 - 0.5) * seen / size
            torch.testing.assert_close(along, expected, atol=4e-3, rtol=0)
    wanted = [2 * math.atan(32 / 2 / 40), 2 * math.atan(16 / 2 / 50)]
    torch.testing.assert_close(camera.vfov, torch.tensor(wanted))


def test_standing_pictures_come_from_standing_photographs(tmp_path: Path) -> None:
    photo_bank = whole_photo_bank(tmp_path)
    generator = torch.Generator().manual_seed(0)
    _, standing, gravity = photo_bank.draw(40, (24, 32), PhotoConfig(magnified=1.0), generator)
    _, lying, _ = photo_bank.draw(40, (32, 24), PhotoConfig(magnified=1.0), generator)
    assert gravity is None
    # As large as the photographs are: in shorter sides of 32.
    for camera, focal in ((standing, (50.0, 70.0)), (lying, (40.0, 60.0, 80.0))):
        seen = (camera.f * 32 / 24).round().unique().tolist()
        assert set(seen) == set(focal)
    _, closer, _ = photo_bank.draw(200, (32, 24), PhotoConfig(magnified=1.5), generator)
    ratio = closer.f.max() / (80 * 24 / 32)
    assert 1.4 < ratio <= 1.5


def test_turned_crops_show_what_their_camera_and_gravity_say() -> None:
    """A photograph is painted with the direction of each pixel's ray in the world."""
    side, focal = 200, 160.0
    down = from_roll_pitch(torch.tensor([0.2]), torch.tensor([-0.5]))
    camera = Camera.create("pinhole", torch.tensor([focal]), (side, side))
    grid = pixel_grid(side, side, camera.f).reshape(1, -1, 2)
    rays, _ = camera.unproject(grid)
    sines = (rays @ down[0]).reshape(1, 1, side, side)
    painted = (127.5 * (1 + sines)).round().to(torch.uint8).expand(1, 3, side, side)
    size, f, weight = torch.tensor([[200.0, 200.0]]), torch.tensor([focal]), torch.ones(1)
    bank = PhotoBank(painted, size, f, weight, down)
    config = PhotoConfig(magnified=1.6, turned_deg=25.0)
    images, cameras, gravity = bank.draw(12, (48, 40), config, torch.Generator().manual_seed(3))
    assert gravity is not None
    grid = pixel_grid(48, 40, cameras.f).reshape(1, -1, 2).expand(12, -1, 2)
    rays, _ = cameras.unproject(grid)
    expected = (rays @ gravity[..., None]).reshape(12, 40, 48)
    shown = images[:, 0] * 2 - 1
    inside = slice(8, -8)
    torch.testing.assert_close(
        shown[:, inside, inside], expected[:, inside, inside], atol=0.012, rtol=0
    )
    roll, pitch = to_roll_pitch(gravity)
    assert roll.std() > 0.1
    assert pitch.std() > 0.05


def test_owners_are_learnt_from_or_judged_by(tmp_path: Path) -> None:
    folder = write_photos(tmp_path)
    owners = {owner_of(name) for name in ("train/ann__0.png", "train/bob__2.png", "dan__4.png")}
    assert owners == {"ann", "bob", "dan"}
    names = [str(number) for number in range(400)]
    chosen = list(map(among(0.8), names))
    assert 0.7 < np.mean(chosen) < 0.9
    fewer = list(map(among(0.4), names))
    assert not any(few and not many for few, many in zip(fewer, chosen, strict=True))
    photo_banks = [
        read_photo_bank(folder, "train", chosen, CPU)
        for chosen in (lambda owner: owner == "ann", lambda owner: owner != "ann")
    ]
    assert [len(photo_bank) for photo_bank in photo_banks] == [2, 3]
    # Two photographs of one owner weigh more than one, less than twice.
    one, two = float(photo_banks[1].weight[0]), float(photo_banks[0].weight.sum())
    assert one < two < 2 * one
    with pytest.raises(ConfigError, match="has no photographs"):
        read_photo_bank(folder, "train", lambda owner: owner == "nobody", CPU)
    with pytest.raises(ImageError, match=r"photos\.csv does not exist"):
        read_photo_bank(tmp_path / "val", "train", lambda owner: True, CPU)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name,focal\na,3\n", "needs columns image and focal"),
        ("image,focal\ntrain/a.png\n", "needs columns image and focal"),
        ("image,focal\ntrain/a.png,-2\n", "the focal length of train/a.png is -2 pixels"),
    ],
)
def test_a_table_that_says_too_little(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "photos.csv").write_text(text)
    with pytest.raises(ImageError, match=said):
        read_photo_bank(tmp_path, "train", lambda owner: True, CPU)


def test_a_share_of_a_batch_is_photographs(tmp_path: Path) -> None:
    grey = torch.full((32, 64, 3), 128, dtype=torch.uint8)
    bank = PanoramaBank.create([grey], ["a"])
    config = TrainingConfig(
        batch=8,
        hidden_nadir=0.0,
        baseline="deepcalib",
        photos=PhotoConfig(share=0.25),
        augment=AugmentConfig(changed_share=0.0),
    )
    draw = make_draw(bank, config, whole_photo_bank(tmp_path))
    batch = draw((32, 32), torch.Generator().manual_seed(0), PartClock(CPU))
    assert batch.view_only.tolist() == 6 * [False] + 2 * [True]
    assert len(batch.images) == len(batch.camera) == len(batch.gravity) == 8
    varies = batch.images.flatten(1).std(1) > 0.1
    assert varies.tolist() == batch.view_only.tolist()
    without = replace(config, photos=PhotoConfig(share=0.0))
    batch = make_draw(bank, without, whole_photo_bank(tmp_path))(
        (32, 32), torch.Generator().manual_seed(0), PartClock(CPU)
    )
    assert not batch.view_only.any()


def test_of_photographs_the_view_alone_is_learnt() -> None:
    camera = Camera.create("simple_radial", torch.tensor([50.0, 60.0]), (64, 64))
    yes = torch.ones(2, dtype=torch.bool)
    only = torch.tensor([False, True])
    level = torch.tensor([[0.0, 1.0, 0.0]]).expand(2, 3)
    batch = Batch(torch.zeros(2, 3, 64, 64), camera, level, ~only, yes, only)
    logits = torch.zeros(2, 4, BINS, requires_grad=True)
    loss_of(Binned(logits), batch, LossConfig(), True).total.backward()
    assert logits.grad is not None
    learns = logits.grad.abs().sum(-1) > 0
    assert learns.tolist() == [[True, True, True, True], [False, False, True, False]]


def test_phones_tell_gravity_unless_they_move(tmp_path: Path) -> None:
    photo_bank = read_photo_bank(write_phones(tmp_path), "train", lambda owner: True, CPU)
    assert len(photo_bank) == 4
    assert photo_bank.gravity is not None
    roll, pitch = to_roll_pitch(photo_bank.gravity)
    torch.testing.assert_close(roll.rad2deg(), torch.full((4,), 5.0))
    torch.testing.assert_close(pitch.rad2deg(), torch.tensor([-20.0, -40.0, -60.0, -80.0]))
    # Of owners with one photograph each, steeper ones are drawn more often.
    assert (photo_bank.weight.diff() > 0).all()
    config = TrainingConfig(batch=8, photos=PhotoConfig(share=0.5), hidden_nadir=0.0)
    grey = torch.full((32, 64, 3), 128, dtype=torch.uint8)
    bank = PanoramaBank.create([grey], ["a"])
    draw = make_draw(bank, config, photo_bank)
    batch = draw((32, 32), torch.Generator().manual_seed(0), PartClock(CPU))
    assert not batch.view_only.any()
    roll, pitch = to_roll_pitch(batch.gravity[4:])
    # Half of them are seen in a mirror.
    torch.testing.assert_close(roll.abs().rad2deg(), torch.full((4,), 5.0))
    assert set(pitch.rad2deg().round().tolist()) <= {-20.0, -40.0, -60.0, -80.0}


def test_fields_do_not_learn_from_photographs_without_gravity(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    register_little(monkeypatch)
    words = little_run(tmp_path, write_photos(tmp_path / "photos"))
    assert main(words) == 2
    assert "tells nothing of gravity" in capsys.readouterr().err


def test_fields_learn_from_photographs_with_gravity(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register_little(monkeypatch)
    phones = write_phones(tmp_path / "phones")
    words = little_run(tmp_path, phones, "photos.turned_deg=20", steps="2")
    assert main(words) == 0
    with (tmp_path / "out" / "travel" / "validation.csv").open() as lines:
        row = list(csv.DictReader(lines))[-1]
    assert float(row["val-lying_gravity_median"]) >= 0
    assert float(row["steep_gravity_median"]) >= 0


def test_photographs_that_are_nowhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert read_config(CONFIGS / "opinion.toml").photos.share > 0
    words = ["--config", str(CONFIGS / "opinion.toml"), "--panos", str(tmp_path), "--steps", "1"]
    assert main([*words, "--out", str(tmp_path / "out")]) == 2
    assert "photos.share needs --photos" in capsys.readouterr().err


def test_a_run_is_judged_by_photographs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    register_little(monkeypatch)
    words = little_run(tmp_path, write_photos(tmp_path / "photos"), "baseline=deepcalib")
    assert main(words) == 0
    with (tmp_path / "out" / "travel" / "validation.csv").open() as lines:
        (row,) = csv.DictReader(lines)
    assert "val-lying vfov" in capsys.readouterr().out
    held = {name for name in row if name.startswith("held-")}
    assert {name.partition("_")[2] for name in held} >= {"vfov_median", "vfov_auc5"}
    assert not any("gravity" in name for name in row if name.startswith(("held-", "val-")))
