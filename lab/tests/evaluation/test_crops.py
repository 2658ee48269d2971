"""Crops show what their table says: the panorama encodes the height above the horizon."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from geocalib.errors import ConfigError, PanoramaError
from geocalib.geometry.fields import perspective_field
from geocalib_lab.evaluation.crops import CropConfig, render_crops
from geocalib_lab.evaluation.datasets import read_dataset

WIDTH = 256


@pytest.fixture
def panoramas(tmp_path: Path) -> Path:
    """Two panoramas whose brightness falls from 250 straight up to 70 straight down."""
    folder = tmp_path / "panos"
    folder.mkdir()
    latitude = 90 - 180 * (np.arange(WIDTH // 2) + 0.5) / (WIDTH // 2)
    pixels = np.broadcast_to((160 + latitude).round()[:, None, None], (WIDTH // 2, WIDTH, 3))
    for name in ("one.png", "two.png"):
        Image.fromarray(pixels.astype(np.uint8)).save(folder / name)
    return folder


@pytest.mark.parametrize("distorted", [False, True])
def test_crops_are_what_their_table_says(panoramas: Path, tmp_path: Path, distorted: bool) -> None:
    table = render_crops(panoramas, tmp_path / "out", CropConfig(3, (64, 48), distorted=distorted))
    samples = read_dataset(tmp_path / "out")
    assert read_dataset(table) == samples
    assert len(samples) == 6
    for sample in samples:
        assert sample.camera is not None
        assert sample.gravity is not None
        assert (sample.k1 is not None) == distorted
        _, latitude, valid = perspective_field(sample.camera, sample.gravity[None])
        shown = np.asarray(Image.open(sample.image), float)[..., 1] - 160
        expected = np.rad2deg(latitude[0, 0])
        seen = valid[0]
        assert seen.all()
        assert np.abs(shown - expected).mean() < 1
        assert sample.vfov_deg is not None
        assert sample.magnification == pytest.approx(
            24 / math.tan(math.radians(sample.vfov_deg) / 2) * 2 * math.pi / WIDTH
        )


def test_sampling_is_the_published_one(panoramas: Path, tmp_path: Path) -> None:
    render_crops(panoramas, tmp_path / "out", CropConfig(60, (32, 32), distorted=True))
    samples = read_dataset(tmp_path / "out")
    assert len(samples) == 120
    columns = [(s.roll_deg, s.pitch_deg, s.vfov_deg) for s in samples]
    low, high = np.min(columns, 0), np.max(columns, 0)
    assert (low >= [-45, -45, 20]).all()
    assert (low <= [-40, -40, 25]).all()
    assert (high <= [45, 45, 105]).all()
    assert (high >= [40, 40, 100]).all()
    hats = [s.k1 * (2 * math.tan(math.radians(s.vfov_deg) / 2)) ** 2 for s in samples]  # type: ignore[operator, arg-type]
    assert np.abs(hats).max() <= 0.3
    assert np.std(hats) == pytest.approx(0.07, rel=0.2)


def test_crops_depend_on_name_and_seed_alone(panoramas: Path, tmp_path: Path) -> None:
    def rows(out: str, per_panorama: int, seed: int = 0) -> dict[str, str]:
        table = render_crops(panoramas, tmp_path / out, CropConfig(per_panorama, (8, 8), seed=seed))
        with table.open(newline="") as stream:
            return {row["fname"]: row["roll"] for row in csv.DictReader(stream)}

    many, other_seed = rows("many", 2), rows("seed", 2, seed=1)
    assert len(set(many.values())) == 4
    assert not set(many.values()) & set(other_seed.values())
    (panoramas / "one.png").unlink()
    few = rows("few", 1)
    assert few == {"two_00.jpg": many["two_00.jpg"]}


def test_black_crops_are_left_out(panoramas: Path, tmp_path: Path) -> None:
    Image.new("RGB", (64, 32)).save(panoramas / "two.png")
    done = []
    render_crops(panoramas, tmp_path / "out", CropConfig(1, (8, 8)), done=lambda: done.append(1))
    assert [s.image.name for s in read_dataset(tmp_path / "out")] == ["one_00.jpg"]
    assert len(done) == 2


def test_what_is_no_panorama(tmp_path: Path) -> None:
    with pytest.raises(PanoramaError, match="holds no panorama"):
        render_crops(tmp_path, tmp_path / "out")
    Image.new("RGB", (64, 48)).save(tmp_path / "square.png")
    with pytest.raises(PanoramaError, match=r"square\.png is 64x48; a panorama is twice as wide"):
        render_crops(tmp_path, tmp_path / "out")
    (tmp_path / "square.png").write_text("no picture")
    with pytest.raises(PanoramaError, match="cannot read panorama"):
        render_crops(tmp_path, tmp_path / "out")


def test_people_hold_cameras_level(panoramas: Path, tmp_path: Path) -> None:
    render_crops(panoramas, tmp_path / "out", CropConfig(60, (16, 12), people=True))
    samples = read_dataset(tmp_path / "out")
    # Half of them by 1.2 degrees or less; a few by up to 20.
    assert np.median(np.abs([s.roll_deg for s in samples])) == pytest.approx(1.2, rel=0.5)
    # At 35 mm, the median lens, the vFoV of this shape is 41 degrees.
    assert np.median([s.vfov_deg for s in samples]) == pytest.approx(43, abs=6)


def test_scene_and_panorama(panoramas: Path, tmp_path: Path) -> None:
    manifest = tmp_path / "manifest.csv"
    manifest.write_text("file,scene\nval/one.png,indoor\n")
    render_crops(panoramas, tmp_path / "out", CropConfig(1, (8, 8)), manifest=manifest)
    found = [(s.panorama, s.scene) for s in read_dataset(tmp_path / "out")]
    assert found == [("one.png", "indoor"), ("two.png", None)]


def test_nonsense_is_refused() -> None:
    with pytest.raises(ConfigError, match="there are no 0 crops of 640x640 pixels"):
        CropConfig(0)
    with pytest.raises(ConfigError, match="crops of 8x0 pixels"):
        CropConfig(1, (8, 0))
