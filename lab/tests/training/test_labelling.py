"""Photographs whose gravity an accelerometer or sure weights tell, in one folder."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from geocalib import Calibrator
from geocalib_lab.training.labelling import COLUMNS, main
from geocalib_lab.training.photos import read_photo_labels

TOWN = Path(__file__).parents[3] / "examples" / "town.jpg"
FOCAL = 330.0


def write_table(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


@pytest.fixture
def folders(tmp_path: Path) -> list[str]:
    """One photograph by a phone; others of a town, two of them with an accelerometer, one
    edited and one of noise."""
    with Image.open(TOWN) as picture:
        town = picture.convert("RGB").resize((480, 320))
    noise = np.random.default_rng(0).integers(0, 255, (320, 480, 3), dtype=np.uint8)
    about = {"width": 480, "height": 320, "focal": FOCAL, "vfov_deg": 51.7}
    gravity = {"roll_deg": 1.5, "pitch_deg": -7.0, "norm_g": 1.001}
    phones, photos = tmp_path / "phones", tmp_path / "photos"
    write_table(phones / "phones.csv", [{"image": "train/p__1.png", **about, **gravity}])
    names = ["rest__1", "moved__1", "edited__1", "town__1", "noise__1"]
    write_table(
        photos / "photos.csv",
        [
            {"image": f"train/{name}.png", **about, "edited": int(name == "edited__1")}
            for name in names
        ],
    )
    write_table(
        photos / "gravity.csv",
        [
            {"image": f"train/{name}.png", **gravity, "trust": int(name == "rest__1")}
            for name in ("rest__1", "moved__1")
        ],
    )
    for folder, each in ((phones, ["p__1"]), (photos, names)):
        (folder / "train").mkdir()
        for name in each:
            shown = Image.fromarray(noise) if name == "noise__1" else town
            shown.save(folder / "train" / f"{name}.png")
    out = tmp_path / "out"
    options = {"phones": phones, "photos": photos, "weights": "lean", "owners": 1, "out": out}
    return [f"--{name}={value}" for name, value in options.items()]


def test_who_tells_gravity(folders: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(folders) == 0
    assert "2 photographs with an accelerometer, 2 of 3 others labelled" in capsys.readouterr().out
    out = Path(folders[-1].partition("=")[2])
    labels = read_photo_labels(out, "train")
    assert {Path(name).stem for name in labels} == {"p__1", "rest__1", "moved__1", "town__1"}
    assert all((out / name).exists() for name in labels)
    assert labels["train/rest__1.png"].tilt == (1.5, -7.0)
    answer = Calibrator("lean").calibrate(out / "train" / "town__1.png", focal=FOCAL)
    assert labels["train/town__1.png"].tilt == pytest.approx(
        (answer.roll_deg, answer.pitch_deg), abs=1e-3
    )


def test_an_interrupted_run_goes_on(folders: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(folders) == 0
    out = Path(folders[-1].partition("=")[2])
    table = (out / "phones.csv").read_text()
    kept = (out / "answers.jsonl").read_text().splitlines(keepends=True)
    (out / "answers.jsonl").write_text("".join(kept[:-1]) + kept[-1][:20])
    asked: list[Any] = []
    calibrate = Calibrator.calibrate

    def noted(self: Calibrator, images: list[Path], **more: Any) -> Any:
        asked.extend(images)
        return calibrate(self, images, **more)

    monkeypatch.setattr(Calibrator, "calibrate", noted)
    assert main(folders) == 0
    assert len(asked) == 1
    assert (out / "phones.csv").read_text() == table


@pytest.mark.parametrize("column", [COLUMNS[3], COLUMNS[7]])
def test_a_table_without_a_column_is_named(
    folders: list[str], column: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table = Path(folders[0].partition("=")[2]) / "phones.csv"
    table.write_text(table.read_text().replace(column, "else"))
    assert main(folders) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert str(table) in line
    assert column in line
