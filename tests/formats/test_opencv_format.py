"""OpenCV's YAML: OpenCV reads it and sees what we see."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from calibrations import one
from geocalib.cameras.exchange import OPENCV_MODULES
from geocalib.errors import FormatError
from geocalib.formats import FORMATS, opencv, readers
from geocalib.geometry.fields import pixel_grid
from geocalib.result.calibration import Calibration
from peers import Note, note

STOP = (cv2.TERM_CRITERIA_COUNT | cv2.TERM_CRITERIA_EPS, 200, 1e-12)


@pytest.mark.parametrize("model", OPENCV_MODULES)
def test_opencv_undistorts_alike(tmp_path: Path, model: str, record_property: Note) -> None:
    """To 0.01 pixels over the image, or as far off the axis as OpenCV's fisheye goes."""
    ours = one(model, aspect=1.1)
    (path,) = opencv.write([ours], tmp_path / "camera.yaml")

    storage = cv2.FileStorage(str(path), cv2.FILE_STORAGE_READ)
    size = tuple(int(storage.getNode(f"image_{side}").real()) for side in ("width", "height"))
    K = storage.getNode("camera_matrix").mat()
    distortion = storage.getNode("distortion_coefficients").mat()
    fisheye = storage.getNode("distortion_model").string() == "fisheye"
    assert size == (640, 480)
    assert fisheye == (model == "kannala_brandt")

    pixels = pixel_grid(64, 48, ours.gravity).reshape(1, -1, 2) * 10
    rays, valid = ours.cameras.unproject(pixels)
    seen = valid & (rays[..., 2] > 0.2)
    assert seen.sum() > 1000
    pixels, rays = pixels[seen], rays[seen]
    # OpenCV counts from the centre of the first pixel.
    points = pixels[:, None] - 0.5
    if fisheye:
        theirs = cv2.fisheye.undistortPoints(points, K, distortion, criteria=STOP)
    else:
        theirs = cv2.undistortPoints(points, K, distortion, criteria=STOP)
    expected = rays[:, :2] / rays[:, 2:]
    # In pixels of the undistorted image.
    apart = np.abs((theirs[:, 0] - expected) * [ours.fx, ours.fy]).max()
    assert apart < 0.01
    note(record_property, "opencv", "opencv-python-headless", apart)


@pytest.mark.parametrize("model", OPENCV_MODULES)
def test_round_trip(tmp_path: Path, model: str) -> None:
    written = one(model, f=300 + 1 / 3)
    (path,) = opencv.write([written], tmp_path / "camera.yaml")
    camera = opencv.read(path, model)
    assert camera.model is written.cameras.model
    assert camera.f.dtype == np.float64
    for name in ("size", "distortion", "aspect"):
        assert np.array_equal(getattr(camera, name), getattr(written.cameras, name))
    np.testing.assert_allclose(camera.c, written.cameras.c, rtol=0, atol=1e-12)
    np.testing.assert_allclose(camera.f, written.cameras.f, rtol=0, atol=0)


def test_what_others_write_is_read(tmp_path: Path) -> None:
    path = tmp_path / "camera.yml"
    path.write_text(
        "%YAML:1.0\n---\nimage_width: 640\nimage_height: 480\n"
        "camera_matrix: !!opencv-matrix\n   rows: 3\n   cols: 3\n   dt: d\n"
        "   data: [ 500., 0., 319.5, 0., 500., 239.5, 0., 0., 1. ]\n"
        "distortion_coefficients: !!opencv-matrix\n   rows: 4\n   cols: 1\n   dt: d\n"
        "   data: [ 0.1, 0., 0., 0. ]\n"
    )
    camera = opencv.read(path)
    assert camera.model.name == "radial"
    assert camera.c.tolist() == [[320.0, 240.0]]
    assert camera.distortion.tolist() == [[0.1, 0.0]]


def test_a_model_that_opencv_lacks() -> None:
    message = r"photo\.jpg: OpenCV has no counterpart of division.*camera_model='radial'"
    with pytest.raises(FormatError, match=message):
        opencv.dumps(one("division"))


@pytest.mark.parametrize("model", ["ucm", "eucm", "double_sphere"])
@pytest.mark.parametrize("name", ["opencv", "ros", "nerfstudio"])
def test_wide_lenses_that_opencv_lacks_are_its_nearest(
    tmp_path: Path, model: str, name: str
) -> None:
    """To a twentieth of a pixel of those that see them in pixels."""
    ours = one(model, aspect=1.1)
    (file,) = FORMATS[name]([ours], tmp_path)
    (found,) = readers.read(file).outcomes
    assert isinstance(found, Calibration)
    assert found.camera_model == "kannala_brandt"
    pixels = 10 * pixel_grid(64, 48, ours.gravity).reshape(1, -1, 2)
    rays, valid = ours.camera.unproject(pixels)
    theirs, seen = found.camera.project(rays)
    assert seen[valid].all()
    assert np.abs(theirs - pixels)[valid].max() < 0.05


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("image_width", "width", "lacks image_width"),
        ("camera_matrix", "K", "lacks camera_matrix"),
        ("plumb_bob", "spherical", "unknown distortion_model 'spherical'; known: plumb_bob, fish"),
        ("plumb_bob", "fisheye", "OpenCV's fisheye distortion has 4 values, got 5"),
        ("640", "many", "a size or a matrix is not of the form that it states"),
        ("rows: 3", "rows: 4", "a size or a matrix is not of the form that it states"),
        ("500.", "many", "a size or a matrix is not of the form that it states"),
    ],
)
def test_bad_files_are_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "camera.yaml"
    text = opencv.dumps(one())
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(FormatError, match=rf"camera\.yaml: {message}"):
        opencv.read(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"hello", ": this is not YAML that OpenCV can read"),
        (b"\xff\xfe\x00", ": this is not YAML that OpenCV can read"),
        (b"%YAML:1.0\n---\na: [1\n", ", line 4: is no YAML"),
    ],
)
def test_other_files(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "camera.yaml"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=rf"camera\.yaml{message}"):
        opencv.read(path)
