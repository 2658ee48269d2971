"""Which camera took an image and when, told by its path; and a fit of what was matched."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from geocalib.cameras import Camera
from geocalib.errors import CouplingError
from geocalib.geometry.fields import Fields, perspective_field
from geocalib.geometry.gravity import angle_between, from_roll_pitch
from geocalib.rig import RigCamera, RigDescription, cube_faces, match_images
from geocalib.rig.description import from_angles
from geocalib.solver import fit


def rig(**patterns: str) -> RigDescription:
    """Cameras that look the same way, one lens each."""
    eye = np.eye(3)
    cameras = (RigCamera(name, eye, images, name) for name, images in patterns.items())
    return RigDescription(tuple(cameras), "test")


def matched(description: RigDescription, *images: str) -> list[tuple[str, str]]:
    """Name of the camera and step of each image."""
    shots = match_images(description, images)
    return [
        (description.names[camera], step)
        for camera, step in zip(shots.camera, shots.step, strict=True)
    ]


@pytest.mark.parametrize(
    ("pattern", "image", "step"),
    [
        ("left/*", "left/1.jpg", "1"),
        ("left/*", "trip/left/1.b.jpg", "1.b"),
        ("left/*", "left/data/7.png", "data/7"),
        ("left/*", "left/left/7.png", "7"),
        ("left/*", "/a/left/7", "7"),
        ("left_*", "x/left_0001.jpg", "0001"),
        ("left_*.png", "left_0001.png", "0001"),
        ("*_left", "x/0001_left.jpg", "0001"),
        ("rig1/cam1/*", "all/rig1/cam1/3.jpg", "3"),
        ("cam(1)/*", "cam(1)/3.jpg", "3"),
    ],
)
def test_patterns(pattern: str, image: str, step: str) -> None:
    assert matched(rig(a=pattern), image) == [("a", step)]


@pytest.mark.parametrize(
    ("pattern", "image"),
    [
        ("left/*", "bleft/1.jpg"),
        ("left/*", "left.jpg"),
        ("left_*.png", "left_1.jpg"),
        ("rig1/cam1/*", "rig1/x/cam1/1.jpg"),
        ("*_left", "_left.jpg"),
    ],
)
def test_strangers(pattern: str, image: str) -> None:
    shots = match_images(rig(a=pattern), [image])
    assert (shots.images, shots.strangers) == ((), (image,))


def test_the_closest_folder_and_the_longest_prefix_win() -> None:
    description = rig(left="left/*", right="right/*", one="cam1*", ten="cam10*")
    images = ("left/right/1.jpg", "right/left/1.jpg", "cam1_5.jpg", "cam10_5.jpg")
    assert matched(description, *images) == [
        ("right", "1"),
        ("left", "1"),
        ("one", "_5"),
        ("ten", "_5"),
    ]


def test_paths_from_within_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "left").mkdir()
    monkeypatch.chdir(tmp_path / "left")
    images = ["3.jpg", os.path.join("..", "right", "3.jpg")]
    shots = match_images(rig(left="left/*", right="right/*"), images)
    assert shots.images == tuple(images)
    assert shots.time == [0, 0]


def test_two_images_at_once() -> None:
    with pytest.raises(CouplingError, match=r"a/left/1\.jpg and b/left/1\.png: both are left at 1"):
        match_images(rig(left="left/*"), ["a/left/1.jpg", "b/left/1.png"])


def test_times_and_lenses() -> None:
    """Steps of different rigs are different times; a lens may be shared across cameras."""
    eye = np.eye(3)
    description = RigDescription(
        (
            RigCamera("a", eye, "a/*", "wide", "1"),
            RigCamera("b", eye, "b/*", "tele", "1"),
            RigCamera("c", eye, "c/*", "wide", "2"),
        ),
        "test",
    )
    shots = match_images(description, ["b/1.jpg", "a/1.jpg", "c/1.jpg", "a/2.jpg", "odd.jpg"])
    assert shots.time == [0, 0, 1, 2]
    assert shots.steps == 3
    assert shots.intrinsics == [0, 1, 1, 1]
    assert shots.strangers == ("odd.jpg",)
    assert list(shots.rig.camera) == [1, 0, 2, 0]


def test_a_fit_finds_one_gravity_per_step_and_one_lens() -> None:
    """Exact fields of a cube that is turned twice; the up and the down face alone are hard."""
    faces = cube_faces()
    names = [f"{name}/{step}.jpg" for step in (1, 2) for name in faces.names]
    shots = match_images(faces, names)
    angles = np.deg2rad([[10.0, -20.0], [-35.0, 5.0]])
    gravities = from_roll_pitch(*angles.T)[np.array(shots.time)]
    rotations = faces.camera_from_rig[list(shots.camera)]
    true = (rotations @ gravities[..., None])[..., 0]
    f = np.full((12,), 30.0, np.float64)
    camera = Camera.create("pinhole", f, (60, 60))
    up, latitude, _ = perspective_field(camera, true)
    ones = np.ones_like(latitude[:, 0])
    fields = Fields(up, latitude, ones, ones)
    result = fit(fields, "pinhole", groups=shots.intrinsics, rig=shots.rig)
    assert angle_between(result.gravity, true).max() < 1e-5
    np.testing.assert_allclose(result.camera.f, f, rtol=1e-5, atol=0)
    assert len(set(result.camera.f.tolist())) == 1


def test_a_wrong_rotation_is_felt() -> None:
    """The same with a rig that is not the true one: the rotations are used."""
    description = RigDescription(
        (
            RigCamera("a", from_angles(), "a/*", "a"),
            RigCamera("b", from_angles(roll_deg=20), "b/*", "b"),
        ),
        "test",
    )
    shots = match_images(description, ["a/1.jpg", "b/1.jpg"])
    camera = Camera.create("pinhole", np.full((2,), 30.0, np.float64), (60, 60))
    level = np.array([[0.0, 1.0, 0.0]] * 2, np.float64)
    up, latitude, _ = perspective_field(camera, level)
    ones = np.ones_like(latitude[:, 0])
    result = fit(Fields(up, latitude, ones, ones), "pinhole", rig=shots.rig)
    rotations = description.camera_from_rig
    np.testing.assert_allclose(
        (rotations[0].T @ result.gravity[0]), (rotations[1].T @ result.gravity[1])
    )
    assert np.rad2deg(angle_between(result.gravity, level).max()) > 5
