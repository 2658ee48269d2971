"""``python -m geocalib.evaluation``: what it prints, writes and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from geocalib.evaluation import commands
from geocalib.evaluation.__main__ import main
from geocalib.evaluation.datasets import read_dataset
from geocalib.nets.weights import read_weights
from known_photos import FakeCalibrator, answer, save_little_weights, write_set

HEADER = "image,width,height,roll_deg,pitch_deg,vfov_deg\n"


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Weights and device of each calibrator; all find 62 degrees, sure of it to 10% of f."""
    found: list[tuple[str, str]] = []

    def open_fake(weights: str, *, device: str) -> FakeCalibrator:
        found.append((str(weights), device))
        return FakeCalibrator(lambda _: answer(62.0, roll_deg=1.0))

    monkeypatch.setattr(commands, "Calibrator", open_fake)
    return found


def photos(folder: Path, vfov_deg: float = 60.0, count: int = 12) -> Path:
    return write_set(folder, "gt.csv", HEADER + f"a.png,64,48,0.5,0,{vfov_deg}\n" * count)


def test_run(
    tmp_path: Path,
    opened: list[tuple[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    drawn = []
    monkeypatch.setattr(
        commands, "save_plots", lambda report, out: drawn.append((report.name, out))
    )
    sets = [str(photos(tmp_path / "town")), str(photos(tmp_path / "sea", 50.0, 1))]
    out = tmp_path / "out"
    words = ["run", "--weights", "mine", "--dataset", *sets, "--blur", "16", "--out", str(out)]
    assert main([*words, "--device", "cpu"]) == 0
    assert opened == [("mine", "cpu")]
    text = capsys.readouterr().out
    assert "| town | pinhole | 12" in text
    assert "+12.00" in text
    # The fake answers the same whatever it sees.
    assert "| town | 16         | +0.00" in text
    assert (out / "report.md").read_text() == text[:-1]
    assert json.loads((out / "town.json").read_text())["summary"]["vfov_median"] == pytest.approx(2)
    assert len((out / "sea.csv").read_text().splitlines()) == 2
    assert drawn == [("town", out), ("sea", out)]


def test_crops(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pixels = np.random.default_rng(0).integers(1, 255, (32, 64, 3), dtype=np.uint8)
    (tmp_path / "val").mkdir()
    Image.fromarray(pixels).save(tmp_path / "val" / "a.png")
    words = ["crops", "--panos", str(tmp_path), "--split", "val", "--out", str(tmp_path / "set")]
    assert main([*words, "--per-panorama", "2", "--size", "16", "--distorted"]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "set" / "images.csv")
    samples = read_dataset(tmp_path / "set")
    assert len(samples) == 2
    assert all(sample.k1 for sample in samples)
    assert main([*words, "--per-panorama", "0"]) == 2


def test_calibrate(
    tmp_path: Path,
    opened: list[tuple[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    weights = save_little_weights(tmp_path / "mine.safetensors", monkeypatch)
    near, far = photos(tmp_path / "near", 61.0), photos(tmp_path / "far", 40.0)
    out = tmp_path / "new.safetensors"
    words = ["calibrate", "--weights", str(weights), "--dataset", str(near), "--out", str(out)]
    assert main(words) == 0
    alone = read_weights(out)[1]
    assert alone.description == read_weights(weights)[1].description
    assert main([*words, "--focal-dataset", str(far), "--description", "truer"]) == 0
    card = read_weights(out)[1]
    assert card.description == "truer"
    # Half of the angles are off by 0.5 (roll), the others exact, and all have a sigma of 1.
    assert card.sigma_scale["gravity"] == alone.sigma_scale["gravity"] == pytest.approx(0.5)
    # log(tan(31) / tan(20)) over 0.1, where that is the larger one.
    assert alone.sigma_scale["focal"] == pytest.approx(0.1983, abs=1e-3)
    assert card.sigma_scale["focal"] == pytest.approx(5.01, abs=1e-2)
    assert "focal 5.01" in capsys.readouterr().out
    assert main([*words, "--focal-dataset", str(photos(tmp_path / "few", count=1))]) == 2
    assert "too few photographs" in capsys.readouterr().err


def test_what_is_wrong_is_one_line(
    tmp_path: Path, opened: list[tuple[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "--dataset", str(tmp_path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "holds no table" in line
    twins = [str(photos(tmp_path / side / "town")) for side in ("left", "right")]
    assert main(["run", "--dataset", *twins]) == 2
    assert "two sets are called town" in capsys.readouterr().err
