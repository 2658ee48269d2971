"""Calibrations of stored pixels: against rays cast by hand, for all eight EXIF orientations."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image, ImageOps

from calibrations import one
from geocalib.arrays import Array
from geocalib.errors import ConfigError, FormatError
from geocalib.formats import colmap, csv_table, json_lines, nerfstudio, opencv, ros
from geocalib.geometry.fields import ALONG_PITCH, ALONG_ROLL, CX, CY, LOG_ASPECT, LOG_F
from geocalib.geometry.gravity import move, tangent_basis
from geocalib.result.calibration import Calibration
from geocalib.result.evidence import Lines, PriorCheck, Verdict
from geocalib.result.uncertainty import Uncertainty

EIGHT = range(1, 9)
FREE = (ALONG_ROLL, ALONG_PITCH, LOG_F, CX, CY, LOG_ASPECT)


def full(orientation: int) -> Calibration:
    """Everything free, nothing in the middle, nothing square."""
    root = np.random.default_rng(0).normal(size=(6, 6)) * 0.01
    plain = one("radial", aspect=1.25, distortion=[-0.1, 0.02])
    covariance = root @ root.T
    sigma = Uncertainty.of(plain.cameras, plain.gravity, covariance, FREE)
    return replace(
        plain, covariance=covariance, parameters=FREE, sigma=sigma, orientation=orientation
    )


def as_stored(orientation: int, width: int, height: int) -> Array:
    """(H, W, 2) pixel centres of the upright picture, at the places where they are stored, by
    Pillow: EXIF orientation applied to it must give the upright picture."""
    x, y = np.meshgrid(np.arange(width) + 0.5, np.arange(height) + 0.5)
    undo = {6: 8, 8: 6}.get(orientation, orientation)

    def turned(values: Array) -> Array:
        image = Image.fromarray(values.astype(np.float32))
        exif = Image.Exif()
        exif[0x0112] = undo
        image.getexif().update(exif)
        return np.asarray(ImageOps.exif_transpose(image))

    return np.stack([turned(x), turned(y)], -1)


@pytest.mark.parametrize("orientation", EIGHT)
def test_every_pixel_keeps_its_angle_to_gravity(orientation: int) -> None:
    before = full(orientation)
    after = before.in_frame("stored")
    places = as_stored(orientation, before.width, before.height)
    assert (after.height, after.width) == places.shape[:2]
    rows, columns = np.mgrid[0 : after.height : 50, 0 : after.width : 50]
    stored = np.stack([columns + 0.5, rows + 0.5], -1).reshape(-1, 2)
    seen = places[rows, columns].reshape(-1, 2).astype(np.float64)
    rays = [
        camera.unproject(pixels[None])[0][0]
        for camera, pixels in ((before.cameras, seen), (after.cameras, stored))
    ]
    np.testing.assert_allclose(rays[1] @ after.gravity, rays[0] @ before.gravity, atol=1e-9)
    np.testing.assert_allclose(rays[1][:, 2], rays[0][:, 2], atol=1e-9)


@pytest.mark.parametrize("orientation", EIGHT)
def test_there_and_back(orientation: int) -> None:
    before = full(orientation)
    back = before.in_frame("stored").in_frame("upright")
    assert (back.width, back.height, back.parameters) == (640, 480, before.parameters)
    for name in ("gravity", "covariance", "K", "distortion"):
        np.testing.assert_allclose(getattr(back, name), getattr(before, name), atol=1e-12)
    for name in ("roll_deg", "pitch_deg", "vfov_deg", "hfov_deg", "focal", "aspect"):
        assert getattr(back.sigma, name) == pytest.approx(getattr(before.sigma, name), rel=1e-9)
    assert back.sigma.principal_point == pytest.approx(before.sigma.principal_point)


@pytest.mark.parametrize("orientation", EIGHT)
def test_covariances_turn_along(orientation: int) -> None:
    """Against differences: a covariance of rank one is the square of a step."""
    step = 1e-6 * np.array([1.0, -2.0, 3.0, 400.0, -500.0, 2.5])
    before = replace(full(orientation), covariance=np.outer(step, step))
    there = before.in_frame("stored")
    moved = replace(
        before,
        gravity=move(before.gravity, step[:2]),
        cameras=replace(
            before.cameras,
            f=before.cameras.f * np.exp(step[2]),
            c=before.cameras.c + step[3:5],
            aspect=before.cameras.aspect * np.exp(step[5]),
        ),
    ).in_frame("stored")
    basis = tangent_basis(there.gravity)
    found = np.array(
        [
            *(basis.T @ (moved.gravity - there.gravity)),
            np.log(moved.fy / there.fy),
            moved.cx - there.cx,
            moved.cy - there.cy,
            np.log(moved.fx / moved.fy * there.fy / there.fx),
        ]
    )
    assert there.parameters == FREE
    np.testing.assert_allclose(there.covariance, np.outer(found, found), atol=2e-16, rtol=1e-3)


def test_a_free_aspect_frees_the_focal_length_of_a_picture_on_its_side() -> None:
    names = (ALONG_ROLL, ALONG_PITCH, LOG_ASPECT)
    fixed = replace(full(6), parameters=names, covariance=np.diag([1e-4, 1e-4, 4e-4]))
    turned = fixed.in_frame("stored")
    assert turned.parameters == (*names, LOG_F)
    assert turned.sigma.focal == pytest.approx(0.02 * turned.fy)
    assert replace(fixed, orientation=3).in_frame("stored").parameters == names


def test_a_gravity_beside_a_picture_on_its_side() -> None:
    """A phone held upright stores its picture lying: the top of the picture is to its left."""
    held = one(roll_deg=0, pitch_deg=0, size=(480, 640), c=(240, 300))
    stored = replace(held, orientation=6).in_frame("stored")
    assert (stored.width, stored.height, stored.cx, stored.cy) == (640, 480, 300, 240)
    np.testing.assert_allclose(stored.gravity, [1, 0, 0], atol=1e-12)
    stored = replace(held, orientation=8).in_frame("stored")
    assert (stored.cx, stored.cy) == (340, 240)
    np.testing.assert_allclose(stored.gravity, [-1, 0, 0], atol=1e-12)


def test_what_was_said_beside_the_answer_turns_along() -> None:
    before = replace(
        full(6),
        lines=Lines(Verdict.CROSSED, roll_deg=1.0, pitch_deg=0.0, vfov_deg=2.0),
        priors=(
            PriorCheck("gravity", "phone", (0.0, 0.6, 0.8), 1.0, (0.6, 0.8, 0.0), 2.0, 0.1),
            PriorCheck("focal", "EXIF", (400.0,), 8.0, (480.0,), 16.0, 0.2),
        ),
    )
    after = before.in_frame("stored")
    gravity, focal = after.priors
    assert (gravity.prior, gravity.estimate) == ((0.6, 0.0, 0.8), (0.8, -0.6, 0.0))
    assert (focal.prior, focal.estimate) == ((500.0,), (600.0,))
    assert (focal.prior_sigma, focal.estimate_sigma) == (10.0, 20.0)
    assert after.lines is not None
    assert after.lines.roll_deg == pytest.approx(1.0, abs=0.05)
    assert after.lines.vfov_deg > 0


def test_the_frame_is_in_the_record(tmp_path: Path) -> None:
    stored = full(6).in_frame("stored")
    record = stored.to_dict()
    assert (record["frame"], record["orientation"], record["width"]) == ("stored", 6, 480)
    assert Calibration.from_dict(record) == stored
    for format, name in ((json_lines, "a.jsonl"), (csv_table, "a.csv")):
        format.write([full(6)], tmp_path / name, "stored")
        assert format.read(tmp_path / name) == [stored]
        format.write([stored], tmp_path / name)
        (back,) = format.read(tmp_path / name)
        assert isinstance(back, Calibration)
        assert (back.frame, back.width) == ("upright", 640)
    for damage in ({"frame": "sideways"}, {"orientation": 9}, {"orientation": 0}):
        with pytest.raises(FormatError, match=next(iter(damage))):
            Calibration.from_dict(record | damage)
    with pytest.raises(ConfigError, match="known: upright, stored"):
        stored.in_frame("sideways")  # type: ignore[arg-type]


def test_a_record_that_does_not_tell_is_not_guessed_at(tmp_path: Path) -> None:
    unknown = replace(full(1), orientation=None)
    assert json_lines.write([unknown], tmp_path / "a.jsonl")
    with pytest.raises(FormatError, match=r"photo\.jpg: this older record does not say"):
        colmap.write([unknown], tmp_path)
    assert colmap.write([unknown], tmp_path, "upright")


@pytest.mark.parametrize("orientation", EIGHT)
def test_opencv_sees_the_frame_that_its_files_are_in(tmp_path: Path, orientation: int) -> None:
    """And Pillow, which nerfstudio reads with, that of its own."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    stored = (480, 640) if orientation > 4 else (640, 480)
    photo = tmp_path / "photo.png"
    Image.new("RGB", stored).save(photo, exif=exif)
    written = replace(one(), orientation=orientation)
    (file,) = opencv.write([written], tmp_path / "camera.yaml")
    seen = cv2.imread(str(photo))
    assert seen is not None
    camera = opencv.read(file)
    assert camera.size.tolist() == [[seen.shape[1], seen.shape[0]]]
    (file,) = nerfstudio.write([written], tmp_path / "transforms.json")
    values = json.loads(file.read_text())
    with Image.open(photo) as image:
        assert (values["w"], values["h"]) == image.size
    assert values["pixels"] == "stored"


def test_files_say_which_frame_they_are_in() -> None:
    for dumps in (opencv.dumps, ros.dumps):
        assert "EXIF orientation is applied" in dumps(full(6).in_frame("stored"))
        assert "EXIF orientation is not applied" in dumps(full(6), "stored")
    assert "EXIF orientation is not applied" in colmap.dumps([full(6)])
    assert "480 640" in colmap.dumps([full(6)])
    assert "640 480" in colmap.dumps([full(6)], "upright")
