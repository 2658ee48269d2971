"""Crops of one camera, and of rigs, are what their table says they are."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from geocalib.errors import ConfigError, FormatError
from geocalib.geometry.fields import perspective_field
from geocalib.localize.rotation import from_quaternion
from geocalib.rig import cube_faces, stereo_pair
from geocalib_lab.evaluation.crop_views import CropConfig
from geocalib_lab.evaluation.crops import render_crops
from geocalib_lab.evaluation.datasets import Sample, read_dataset
from known_photos import write_set

WIDTH = 128


@pytest.fixture
def panoramas(tmp_path: Path) -> Path:
    """Three panoramas whose brightness falls from 250 straight up to 70 straight down."""
    folder = tmp_path / "panos"
    folder.mkdir()
    latitude = 90 - 180 * (np.arange(WIDTH // 2) + 0.5) / (WIDTH // 2)
    pixels = np.broadcast_to((160 + latitude).round()[:, None, None], (WIDTH // 2, WIDTH, 3))
    for name in ("one.png", "two.png", "zoo.png"):
        Image.fromarray(pixels.astype(np.uint8)).save(folder / name)
    return folder


def shows_its_truth(sample: Sample) -> bool:
    """Whether the brightness is that of the height above the horizon."""
    assert sample.camera is not None
    assert sample.gravity is not None
    _, latitude, _ = perspective_field(sample.camera, sample.gravity[None])
    shown = np.asarray(Image.open(sample.image), float)[..., 1] - 160
    off = np.abs(shown - np.rad2deg(latitude[0, 0]))
    return bool(off.mean() < 2)


def test_every_so_many_crops_have_one_camera(panoramas: Path, tmp_path: Path) -> None:
    config = CropConfig(4, (24, 16), distorted=True, same_camera=5)
    render_crops(panoramas, tmp_path / "out", config)
    samples = read_dataset(tmp_path / "out")
    groups = defaultdict(list)
    for sample in samples:
        groups[sample.camera_name].append(sample)
    # Of 12 crops, 2 are left over.
    assert sorted(groups) == ["0000", "0001"]
    for group in groups.values():
        assert len(group) == 5
        assert len({(sample.vfov_deg, sample.k1) for sample in group}) == 1
        assert len({sample.roll_deg for sample in group}) == 5
        assert len({sample.panorama for sample in group}) == 3
    assert len({group[0].vfov_deg for group in groups.values()}) == 2
    assert all(map(shows_its_truth, samples))


def test_no_crop_of_a_group_is_missing(panoramas: Path, tmp_path: Path) -> None:
    """The lower half of one panorama is black: views of it are drawn again."""
    pixels = np.array(Image.open(panoramas / "two.png"))
    pixels[WIDTH // 3 :] = 0
    Image.fromarray(pixels).save(panoramas / "two.png")
    render_crops(panoramas, tmp_path / "some", CropConfig(8, (8, 8)))
    render_crops(panoramas, tmp_path / "all", CropConfig(8, (8, 8), same_camera=24))
    assert len(read_dataset(tmp_path / "some")) < 24
    assert len(read_dataset(tmp_path / "all")) == 24


@pytest.mark.parametrize("rig", [cube_faces(), stereo_pair(50)])
def test_shots_of_a_rig(panoramas: Path, tmp_path: Path, rig: object) -> None:
    render_crops(panoramas, tmp_path / "out", CropConfig(2, (16, 16), rig=rig))  # type: ignore[arg-type]
    shots = defaultdict(list)
    for sample in read_dataset(tmp_path / "out"):
        shots[sample.rig].append(sample)
    names = [camera.name for camera in rig.cameras]  # type: ignore[attr-defined]
    assert len(shots) == 6
    assert list(shots)[:2] == ["one_00", "one_01"]
    downs = []
    for shot, samples in shots.items():
        assert [s.image.stem for s in samples] == [f"{shot}_{name}" for name in names]
        lenses = len({s.camera_name for s in samples})
        assert lenses == (1 if len(names) == 6 else 2)
        assert len({s.vfov_deg for s in samples}) == lenses
        # All photographs of a shot agree on where down is in the frame of the rig.
        quaternions = np.array([s.camera_from_rig for s in samples])
        gravities = np.stack([s.gravity for s in samples])  # type: ignore[arg-type]
        down = np.einsum("nij,ni->nj", from_quaternion(quaternions), gravities)
        np.testing.assert_allclose(down, down[:1].repeat(len(names), 0), atol=1e-6)
        downs.append(down[0])
        assert all(map(shows_its_truth, samples))
    assert len({tuple(down.round(6)) for down in downs}) == 6


def test_columns_only_where_they_say_something(panoramas: Path, tmp_path: Path) -> None:
    headers = {}
    for name, config in {
        "plain": CropConfig(1, (8, 8)),
        "shared": CropConfig(1, (8, 8), same_camera=1),
        "rig": CropConfig(1, (8, 8), rig=stereo_pair()),
    }.items():
        table = render_crops(panoramas, tmp_path / name, config)
        headers[name] = table.read_text().splitlines()[0].split(",")[8:]
    assert headers == {"plain": [], "shared": ["camera"], "rig": ["camera", "rig", "rotation"]}


def test_nonsense_is_refused() -> None:
    with pytest.raises(ConfigError, match="no camera takes 0 crops; give 1 or more"):
        CropConfig(same_camera=0)
    with pytest.raises(ConfigError, match="of shared cameras or of rigs; give one of them"):
        CropConfig(same_camera=2, rig=stereo_pair())


@pytest.mark.parametrize("cell", ["1 0 0", "0 0 0 0", "a 0 0 0", "nan 0 0 0", "1 0 0 0 0"])
def test_bad_rotations(tmp_path: Path, cell: str) -> None:
    text = f"image,width,height,rig,rotation\na.png,64,48,r,{cell}\n"
    folder = write_set(tmp_path / "set", "gt.csv", text)
    with pytest.raises(FormatError, match=r"line 2: rotation is '.*', not a quaternion w x y z"):
        read_dataset(folder)


def test_columns_of_a_table(tmp_path: Path) -> None:
    text = "image,width,height,camera,rig,rotation\na.png,64,48,c,r,1 0 -2 0\nb.png,64,48,,,\n"
    first, second = read_dataset(write_set(tmp_path / "set", "gt.csv", text))
    assert (first.camera_name, first.rig, first.camera_from_rig) == ("c", "r", (1, 0, -2, 0))
    assert (second.camera_name, second.rig, second.camera_from_rig) == (None, None, None)
