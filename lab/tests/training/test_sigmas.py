"""Sigmas learnt from errors, and the file that they are kept in."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from geocalib.errors import ConfigError, WeightsError
from geocalib.nets.weights.catalogue import PACKAGES, SIGMAS, is_here, packaged
from geocalib.pipeline.engines.load import load_engine
from geocalib.pipeline.engines.onnx import OnnxEngine
from geocalib.pipeline.engines.sigmas import find_sigmas, read_sigmas, save_sigmas
from geocalib_lab.evaluation.datasets import Sample
from geocalib_lab.evaluation.uncertainty import ONE_SIGMA
from geocalib_lab.training.sigmas import Fits, choose, gather, learn, table

SLOPE = 0.8


def made_up(count: int = 1500) -> Fits:
    """Errors of roll that grow with how far a camera leans, of pitch with its focal length, and of
    log f with its sigma; photographs, which tell no gravity, err twice as much."""
    random = np.random.default_rng(0)
    values = random.normal(size=(count, 6))
    photo = np.arange(count) % 3 == 0
    off = random.normal(size=(count, 3))
    off[:, :2] *= np.exp(SLOPE * values[:, [5, 3]])
    off[:, 2] *= np.exp(-SLOPE * values[:, 2]) * np.where(photo, 2, 1)
    off[photo, :2] = np.nan
    return Fits([str(index % 40) for index in range(count)], photo, values, off)


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


def test_the_table_compares_owners_that_were_held_out() -> None:
    rows = {line.split(" |")[0][2:]: line.split("|")[3:5] for line in table(made_up())}
    numbers = {
        name: [[float(cell) for cell in part.split(",")] for part in rows[name]]
        for name in ("roll, crops", "focal, photographs")
    }
    for surprise, _ in numbers.values():
        assert surprise[1] < surprise[0] - 0.1
    (_, rank) = numbers["roll, crops"]
    assert rank[1] > rank[0] + 0.1
    assert "roll, photographs" not in rows


def test_owners_of_many_photographs_do_not_outweigh_others_and_val_is_never_learnt_from() -> None:
    names = [*(f"train/a__{i:02}.jpg" for i in range(30)), "train/b__1.jpg", "val/c__1.jpg"]
    photos = [Sample(Path(name), 4, 3) for name in names]
    chosen = [str(sample.image) for sample in choose(photos, each=10)]
    assert len(chosen) == 11
    assert "train/b__1.jpg" in chosen
    assert not any(name.startswith("val") for name in chosen)


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
    from PIL import Image

    path = tmp_path / "picture.png"
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (48, 64, 3), np.uint8)).save(path)
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
