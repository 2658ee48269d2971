"""Sigmas learnt from errors, and the file that they are kept in."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from geocalib import Calibrator
from geocalib.errors import ConfigError, ImageError, WeightsError
from geocalib.nets.weights.catalogue import PACKAGES, SIGMAS, is_here, packaged
from geocalib.pipeline.engines.load import load_engine
from geocalib.pipeline.engines.onnx import OnnxEngine
from geocalib.pipeline.engines.sigmas import find_sigmas, read_sigmas, save_sigmas
from geocalib_lab.evaluation.datasets import Sample
from geocalib_lab.evaluation.uncertainty import ONE_SIGMA
from geocalib_lab.training.owners import among
from geocalib_lab.training.sigmas import (
    Fits,
    choose,
    gather,
    held_out_factors,
    labelled_photos,
    learn,
    main,
    table,
)

SLOPE = 0.8


def made_up(count: int = 1500, noise: float = 0.0, gravity_of_photos: bool = False) -> Fits:
    """Errors of roll that grow with how far a camera leans, of pitch with its focal length, and of
    log f with its sigma; photographs err twice as much. noise: one sigma of the truth of roll."""
    random = np.random.default_rng(0)
    values = random.normal(size=(count, 6))
    photo = np.arange(count) % 3 == 0
    off = random.normal(size=(count, 3))
    off[:, :2] *= np.exp(SLOPE * values[:, [5, 3]])
    off[:, 2] *= np.exp(-SLOPE * values[:, 2])
    off[photo] *= 2
    off[:, 0] += noise * random.normal(size=count)
    if not gravity_of_photos:
        off[photo, :2] = np.nan
    owners = [str(index % 40) for index in range(count)]
    known = np.full((count, 3), [noise, 0, 0])
    return Fits(owners, photo, values, off, known, photo & (values[:, 4] > 1))


def test_what_errors_grow_with_is_found() -> None:
    learnt = learn(made_up())
    np.testing.assert_allclose(learnt.roll[1:], [0, 0, 0, 0, 0, SLOPE], atol=0.08)
    np.testing.assert_allclose(learnt.pitch[1:], [0, 0, 0, SLOPE, 0, 0], atol=0.08)
    np.testing.assert_allclose(learnt.focal[1:], [0, 0, -SLOPE, 0, 0, 0], atol=0.06)


def test_two_thirds_of_the_worse_kind_are_within_one_sigma() -> None:
    fits = made_up()
    factors = learn(fits).factors(fits.traits)
    within = np.abs(fits.off) < factors
    assert within[fits.photo, 2].mean() == pytest.approx(ONE_SIGMA, abs=0.01)
    assert within[~fits.photo, 2].mean() > 0.9
    np.testing.assert_allclose(within[~fits.photo, :2].mean(0), ONE_SIGMA, atol=0.01)


def test_the_noise_of_the_truth_is_not_taken_for_errors() -> None:
    clean, noisy = made_up(), made_up(noise=0.7)
    for each in ("roll", "pitch"):
        np.testing.assert_allclose(
            getattr(learn(noisy), each), getattr(learn(clean), each), atol=0.15
        )
    ignored = replace(noisy, noise=np.zeros_like(noisy.noise))
    assert learn(ignored).roll[0] > learn(clean).roll[0] + 0.2


def test_gravity_of_photographs_counts_where_it_is_known() -> None:
    fits = made_up(gravity_of_photos=True)
    within = np.abs(fits.off) < learn(fits).factors(fits.traits)
    np.testing.assert_allclose(within[fits.photo].mean(0), ONE_SIGMA, atol=0.01)
    assert (within[~fits.photo].mean(0) > 0.9).all()


def test_the_table_compares_owners_that_were_held_out() -> None:
    fits = made_up()
    lines = table(fits, held_out_factors(fits), "held out")
    rows = {line.split(" |")[0][2:]: line.split("|")[4:6] for line in lines}
    numbers = {
        name: [[float(cell) for cell in part.split(",")] for part in rows[name]]
        for name in ("roll, crops", "focal, photographs")
    }
    for surprise, _ in numbers.values():
        assert surprise[1] < surprise[0] - 0.1
    (_, rank) = numbers["roll, crops"]
    assert rank[1] > rank[0] + 0.1
    assert "roll, photographs" not in rows


def test_the_table_tells_steep_photographs_apart() -> None:
    fits = made_up(gravity_of_photos=True)
    factors = np.ones_like(fits.off)
    factors[fits.steep] = 0.5
    lines = list(table(fits, factors, "val"))
    found = {line.split(" |")[0][2:]: line.split("|")[3].split(",") for line in lines[2:]}
    kinds = {"level": (fits.photo & ~fits.steep, 1), "steep": (fits.steep, 2)}
    for name, (kind, wider) in kinds.items():
        card = np.quantile(np.abs(fits.off[kind, 1]), ONE_SIGMA)
        shown = [float(cell) for cell in found[f"pitch, {name} photographs"]]
        assert shown == pytest.approx([card, wider * card], abs=0.006)


def test_owners_of_many_photographs_do_not_outweigh_others_and_val_is_never_learnt_from() -> None:
    names = [*(f"train/a__{i:02}.jpg" for i in range(30)), "train/b__1.jpg", "val/c__1.jpg"]
    photos = [Sample(Path(name), 4, 3) for name in names]
    chosen = [str(sample.image) for sample in choose(photos, 10, set(), [])]
    assert len(chosen) == 11
    assert "train/b__1.jpg" in chosen
    assert not any(name.startswith("val") for name in chosen)


def test_photographs_by_owners_learnt_from_are_left_out_and_none_counts_twice() -> None:
    names = ("a__1", "a__2", "b__1", "c__1")
    photos = [Sample(Path(f"photos/train/{name}.jpg"), 4, 3) for name in names]
    held = [Sample(Path("labelled/train/c__1.jpg"), 4, 3)]
    chosen = [sample.image.stem for sample in choose(photos, 10, {"b"}, held)]
    assert chosen == ["a__1", "a__2"]


def test_labelled_photographs_are_those_of_the_owners_chosen_at_rest(tmp_path: Path) -> None:
    folder = write_labelled(tmp_path, ["ann", "bob"], ["eve"])
    with (folder / "phones.csv").open("a") as table:
        table.write("train/bob__0.png,40,3,-50,1.1\n")
    (ann,) = labelled_photos(folder, "train", lambda owner: owner == "ann")
    assert ann.image == folder / "train/ann__0.png"
    assert (ann.roll_deg, ann.pitch_deg) == (3, -40)
    assert (ann.roll_sigma_deg, ann.pitch_sigma_deg) == (0.5, 1.2)
    assert ann.vfov_deg == pytest.approx(2 * math.degrees(math.atan(24 / 60)))
    assert labelled_photos(folder, "train", lambda owner: owner == "bob") == []
    (eve,) = labelled_photos(folder, "val", lambda owner: True)
    assert eve.image.parent.name == "val"
    (folder / "val/eve__0.png").write_bytes(b"")
    with pytest.raises(ImageError, match="cannot be read"):
        labelled_photos(folder, "val", lambda owner: True)


def write_picture(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    noise = np.random.default_rng(len(str(path))).integers(0, 255, (48, 64, 3), np.uint8)
    Image.fromarray(noise).save(path)


def write_labelled(folder: Path, train: list[str], val: list[str]) -> Path:
    """A folder of photographs for training, one of each owner, with gravity."""
    rows = ["image,focal,roll_deg,pitch_deg,norm_g"]
    for split, owners in (("train", train), ("val", val)):
        for owner in owners:
            write_picture(folder / split / f"{owner}__0.png")
            rows.append(f"{split}/{owner}__0.png,60,3,-40,1.001")
    (folder / "phones.csv").write_text("\n".join(rows) + "\n")
    return folder


def test_one_command_learns_from_folders_and_judges_by_val(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    owners = [str(number) for number in range(12)]
    labelled = write_labelled(tmp_path / "labelled", owners, ["eve", "dan"])
    crops, photos = tmp_path / "crops", tmp_path / "photos"
    rows = ["image,width,height,roll_deg,pitch_deg,vfov_deg,panorama"]
    for number in range(12):
        write_picture(crops / f"images/{number:04}.png")
        rows.append(f"{number:04}.png,64,48,{number},{-number},50,p{number}")
    (crops / "images.csv").write_text("\n".join(rows) + "\n")
    rows = ["image,width,height,vfov_deg"]
    for owner in owners:
        write_picture(photos / f"train/{owner}__1.png")
        rows.append(f"train/{owner}__1.png,64,48,50")
    (photos / "photos.csv").write_text("\n".join(rows) + "\n")
    held = [owner for owner in owners if not among(0.5)(owner)]
    out = tmp_path / SIGMAS
    words = ["--crops", str(crops), "--photos", str(photos), "--labelled", str(labelled)]
    words += ["--owners", "0.5", "--answers", str(tmp_path / "answers.jsonl"), "--out", str(out)]
    assert main(words) == 0
    _, learnt = read_sigmas(out)
    assert np.isfinite(learnt.roll).all()
    learnt_from, judged_by = capsys.readouterr().out.split("\n\n")
    assert f"| roll, steep photographs | {len(held)} |" in learnt_from
    assert f"| focal, photographs | {2 * len(held)} |" in learnt_from
    assert "| roll, crops | 12 |" in learnt_from
    assert "| roll, photographs | 2 |" in judged_by


def test_answers_have_the_sigmas_of_the_card_and_nothing_usual(
    tmp_path: Path, picture: Path
) -> None:
    engine = load_engine("lean", "onnx", "cpu", compile=False)
    fits = gather(engine, [Sample(picture, 64, 48)], tmp_path / "answers.jsonl")
    alone = Calibrator("lean", device="cpu").calibrate(
        picture, "pinhole", prior="none", lines="off", exif=False, any_rotation="off"
    )
    learnt = find_sigmas(engine.card.sha256)
    assert learnt is not None
    sigmas = np.exp(fits.traits[:, :3]) * learnt.factors(fits.traits)
    np.testing.assert_allclose(np.sqrt(np.diag(alone.covariance)), sigmas[0], rtol=0.05)


def test_answers_are_kept_and_not_mixed_with_those_of_other_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, picture: Path
) -> None:
    engine, kept = load_engine("lean", "onnx", "cpu", compile=False), tmp_path / "answers.jsonl"
    samples = [Sample(picture, 64, 48, roll_deg=0, pitch_deg=0, vfov_deg=50, panorama="p")]
    first = gather(engine, samples, kept)
    assert first.traits.shape == (1, 6)
    assert np.isfinite(first.off).all()
    # Half a line, as an interruption leaves it.
    kept.write_text(kept.read_text() + '{"image": "x')
    monkeypatch.setattr(OnnxEngine, "predict", None)
    np.testing.assert_array_equal(gather(engine, samples, kept).off, first.off)
    assert '"x' not in kept.read_text()
    kept.write_text(json.dumps({"weights": "others"}) + "\n")
    with pytest.raises(ConfigError, match="other weights"):
        gather(engine, samples, kept)


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "picture.png"
    write_picture(path)
    return path


@pytest.mark.parametrize("name", [name for name in PACKAGES if is_here(name)])
def test_packaged_sigmas_are_those_of_the_packaged_weights(name: str) -> None:
    card = OnnxEngine(name, "cpu").card
    assert read_sigmas(packaged(name, SIGMAS))[0] == card.sha256
    assert find_sigmas(card.sha256) is not None
    assert find_sigmas("others") is None


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / SIGMAS
    save_sigmas(path, "abc", learn(made_up(200)))
    assert read_sigmas(path)[0] == "abc"
    path.write_text(path.read_text()[:50])
    with pytest.raises(WeightsError, match="damaged"):
        read_sigmas(path)
