"""COLMAP and OpenCV: the parameters said by hand, and OpenCV's own projection as the judge."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest
import torch

from geocalib.arrays import to_numpy
from geocalib.cameras import Camera, from_colmap, from_opencv, to_colmap, to_opencv
from geocalib.cameras.exchange import (
    COLMAP_LAYOUTS,
    COLMAP_NAMES,
    OPENCV_MODULES,
)
from geocalib.errors import CameraError
from samples import pixels_in_domain, sample_camera

SIZE = (640, 480)


def square(camera: Camera) -> Camera:
    return replace(camera, aspect=torch.ones_like(camera.aspect))


def assert_same_camera(found: Camera, expected: Camera) -> None:
    assert found.model is expected.model
    for name in ("f", "c", "distortion", "size", "aspect"):
        np.testing.assert_allclose(
            to_numpy(getattr(found, name)), to_numpy(getattr(expected, name)), rtol=1e-6, atol=1e-6
        )


# COLMAP -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "aspect", "distortion", "name", "parameters"),
    [
        ("pinhole", 1, (), "SIMPLE_PINHOLE", (500, 310, 250)),
        ("pinhole", 2, (), "PINHOLE", (1000, 500, 310, 250)),
        ("simple_radial", 1, (-0.25,), "SIMPLE_RADIAL", (500, 310, 250, -0.25)),
        ("simple_radial", 2, (-0.25,), "OPENCV", (1000, 500, 310, 250, -0.25, 0, 0, 0)),
        ("radial", 1, (-0.25, 0.5), "RADIAL", (500, 310, 250, -0.25, 0.5)),
        ("radial", 2, (-0.25, 0.5), "OPENCV", (1000, 500, 310, 250, -0.25, 0.5, 0, 0)),
        ("division", 1, (-0.25,), "SIMPLE_DIVISION", (500, 310, 250, -0.25)),
        ("division", 2, (-0.25,), "DIVISION", (1000, 500, 310, 250, -0.25)),
        ("kannala_brandt", 1, (1, 2, 3, 4), "OPENCV_FISHEYE", (500, 500, 310, 250, 1, 2, 3, 4)),
        ("eucm", 2, (0.5, 1.5), "EUCM", (1000, 500, 310, 250, 0.5, 1.5)),
        ("ucm", 1, (0.5,), "EUCM", (500, 500, 310, 250, 0.5, 1)),
        ("radial3", 1, (1, 2, 3), "FULL_OPENCV", (500, 500, 310, 250, 1, 2, 0, 0, 3, 0, 0, 0)),
    ],
)
def test_colmap_by_hand(
    model: str,
    aspect: float,
    distortion: tuple[float, ...],
    name: str,
    parameters: tuple[float, ...],
) -> None:
    camera = Camera.create(
        model,
        f=500.0,
        size=SIZE,
        distortion=distortion,
        c=(310, 250),
        aspect=aspect,
        dtype=torch.float32,
    )
    assert to_colmap(camera) == [(name, parameters)]
    assert_same_camera(from_colmap(name, parameters, SIZE, model=model), camera)


@pytest.mark.parametrize("model", COLMAP_NAMES)
def test_colmap_round_trip_of_a_batch(model: str) -> None:
    for camera in (sample_camera(model), square(sample_camera(model))):
        written = to_colmap(camera)
        assert len(written) == len(camera)
        for one, (name, parameters) in zip(camera, written, strict=True):
            read = from_colmap(name, parameters, SIZE, model=model, dtype=torch.float64)
            assert_same_camera(read, one)


def test_colmap_names_each_camera_of_a_batch() -> None:
    camera = Camera.create("radial", f=500.0, size=SIZE, aspect=[1.0, 2.0], dtype=torch.float32)
    assert [one.name for one in to_colmap(camera)] == ["RADIAL", "OPENCV"]


@pytest.mark.parametrize(
    ("name", "parameters", "model", "distortion"),
    [
        ("OPENCV", (500, 500, 310, 250, 0.1, 0.2, 0, 0), "radial", (0.1, 0.2)),
        ("FULL_OPENCV", (500, 500, 310, 250, 0.1, *[0] * 7), "radial", (0.1, 0)),
        ("FULL_OPENCV", (500, 500, 310, 250, 0.1, 0, 0, 0, 0.3, 0, 0, 0), "radial3", (0.1, 0, 0.3)),
        ("EUCM", (500, 500, 310, 250, 0.6, 1), "eucm", (0.6, 1)),
        ("SIMPLE_FISHEYE", (500, 310, 250), "kannala_brandt", (0, 0, 0, 0)),
        ("FISHEYE", (500, 500, 310, 250), "kannala_brandt", (0, 0, 0, 0)),
        ("SIMPLE_RADIAL_FISHEYE", (500, 310, 250, 0.1), "kannala_brandt", (0.1, 0, 0, 0)),
        ("RADIAL_FISHEYE", (500, 310, 250, 0.1, 0.2), "kannala_brandt", (0.1, 0.2, 0, 0)),
        (
            "THIN_PRISM_FISHEYE",
            (500, 500, 310, 250, 0.1, 0.2, 0, 0, 0.3, 0.4, 0, 0),
            "kannala_brandt",
            (0.1, 0.2, 0.3, 0.4),
        ),
    ],
)
def test_colmap_models_that_are_only_read(
    name: str, parameters: tuple[float, ...], model: str, distortion: tuple[float, ...]
) -> None:
    expected = Camera.create(
        model, f=500.0, size=SIZE, distortion=distortion, c=(310, 250), dtype=torch.float32
    )
    assert_same_camera(from_colmap(name, parameters, SIZE), expected)


def test_colmap_tables_agree() -> None:
    for model, names in COLMAP_NAMES.items():
        for name in names:
            held = set(sample_camera(model).model.parameters)
            assert held <= set(COLMAP_LAYOUTS[name].parameters)


@pytest.mark.parametrize(
    ("name", "parameters", "model", "message"),
    [
        ("FOV", (500, 500, 310, 250, 0.9), None, "COLMAP's FOV has no counterpart .* EUCM"),
        ("RADIAL", (500, 310, 250), None, r"RADIAL has 5 parameters \(f, cx, .*\), got 3"),
        (
            "OPENCV",
            (500, 500, 310, 250, 0.1, 0.2, 0.3, 0),
            None,
            "OPENCV with p1 = 0.3 is not a radial camera, which has k1, k2",
        ),
        (
            "FULL_OPENCV",
            (500, 500, 310, 250, 0.1, 0.2, 0, 0, 0, 0, 0.5, 0),
            None,
            "FULL_OPENCV with k5 = 0.5",
        ),
        ("SIMPLE_RADIAL", (500, 310, 250, 0.1), "pinhole", "k1 = 0.1 .* has no distortion"),
        ("SIMPLE_RADIAL", (500, 310, 250, 0.1), "division", "read as pinhole or .*, not as div"),
        ("EUCM", (500, 500, 310, 250, 0.6, 1.1), "ucm", "beta = 1.1 is not a ucm camera"),
        ("DIVISION", (500, 0, 310, 250, 0.1), None, "positive focal lengths, .* fy = 0"),
    ],
)
def test_colmap_errors(
    name: str, parameters: tuple[float, ...], model: str | None, message: str
) -> None:
    with pytest.raises(CameraError, match=message):
        from_colmap(name, parameters, SIZE, model=model)


def test_what_cannot_be_written() -> None:
    # The k4 of COLMAP and OpenCV is another one, in a denominator.
    for model in ("double_sphere", "radial4", "division2"):
        for write in (to_colmap, to_opencv):
            with pytest.raises(CameraError, match=rf"has no counterpart of {model}, .*neither"):
                write(sample_camera(model))
    message = r"OpenCV has no counterpart of eucm, which can be written to COLMAP; OpenCV takes pi"
    with pytest.raises(CameraError, match=message):
        to_opencv(sample_camera("eucm"))


# OpenCV -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", OPENCV_MODULES)
def test_opencv_projects_alike(model: str) -> None:
    camera = sample_camera(model)
    for one, (module, K, distortion) in zip(camera, to_opencv(camera), strict=True):
        rays, _ = one.unproject(pixels_in_domain(one, count=40))
        # OpenCV divides by the depth, even for the fisheye.
        rays = rays[rays[..., 2] > 0.05]
        ours, valid = one.project(rays[None])
        assert bool(valid.all())
        points = rays.numpy().reshape(-1, 1, 3)
        zero = np.zeros(3)
        if module == "fisheye":
            theirs, _ = cv2.fisheye.projectPoints(points, zero, zero, K, distortion)
        else:
            theirs, _ = cv2.projectPoints(points, zero, zero, K, distortion)
        assert len(theirs) > 10
        np.testing.assert_allclose(theirs.reshape(-1, 2) + 0.5, ours[0].numpy(), atol=1e-9)


@pytest.mark.parametrize("model", OPENCV_MODULES)
def test_opencv_undistorts_alike(model: str) -> None:
    camera = sample_camera(model)
    stop = (cv2.TERM_CRITERIA_COUNT | cv2.TERM_CRITERIA_EPS, 500, 1e-14)
    for one, (module, K, distortion) in zip(camera, to_opencv(camera), strict=True):
        # OpenCV's iterations converge where the distortion is mild.
        pixels = pixels_in_domain(one, count=40, part=0.4)
        rays, _ = one.unproject(pixels)
        points = pixels.numpy().reshape(-1, 1, 2) - 0.5
        if module == "fisheye":
            theirs = cv2.fisheye.undistortPoints(points, K, distortion, criteria=stop)
        else:
            theirs = cv2.undistortPoints(points, K, distortion, criteria=stop)
        ours = (rays[..., :2] / rays[..., 2:])[0].numpy()
        np.testing.assert_allclose(theirs.reshape(-1, 2), ours, atol=1e-8)


@pytest.mark.parametrize("model", OPENCV_MODULES)
def test_opencv_round_trip_of_a_batch(model: str) -> None:
    camera = sample_camera(model)
    written = to_opencv(camera)
    assert len(written) == len(camera)
    for one, (module, K, distortion) in zip(camera, written, strict=True):
        read = from_opencv(K, distortion, SIZE, module, model=model, dtype=torch.float64)
        assert_same_camera(read, one)


def test_opencv_by_hand() -> None:
    K = [[1000, 0, 309.5], [0, 500, 249.5], [0, 0, 1]]
    camera = from_opencv(K, [[0.1, 0.2, 0, 0, 0]], SIZE)
    assert camera.model.name == "radial"
    assert camera.c.tolist() == [[310.0, 250.0]]
    assert camera.focal.tolist() == [[1000.0, 500.0]]
    # As calibrateCamera gives it.
    longer = from_opencv(K, [0.1, 0.2, 0, 0, 0.3], SIZE)
    assert longer.model.name == "radial3"
    np.testing.assert_allclose(longer.distortion, [[0.1, 0.2, 0.3]])
    assert from_opencv(K, None, SIZE).model.name == "pinhole"
    assert from_opencv(K, [0.1, 0, 0, 0], SIZE, "fisheye").model.name == "kannala_brandt"


IDENTITY = np.eye(3)


@pytest.mark.parametrize(
    ("K", "distortion", "module", "message"),
    [
        (IDENTITY, [0.1, 0.2, 0.3, 0, 0], "pinhole", "p1 = 0.3 is not a radial camera"),
        (IDENTITY, [0.1, 0.2, 0, 0, 0.3, 0.4, 0, 0], "pinhole", "k3 = 0.3, k4 = 0.4 is not a ra"),
        (IDENTITY, [0] * 11 + [0.5], "pinhole", "s4 = 0.5"),
        (IDENTITY, [0.1], "pinhole", "has 0 or 4 or 5 or 8 or 12 or 14 values, got 1"),
        (IDENTITY, [0.1] * 5, "fisheye", "has 4 values, got 5"),
        (IDENTITY, [0.1] * 4, "omnidir", "unknown OpenCV module 'omnidir'; known: pinhole, fish"),
        (np.eye(2), None, "pinhole", r"K must be \(3, 3\), got \(2, 2\)"),
        ([[1, 0.1, 0], [0, 1, 0], [0, 0, 1]], None, "pinhole", r"K must be \[\[fx, 0, cx\]"),
    ],
)
def test_opencv_errors(K: object, distortion: object, module: str, message: str) -> None:
    with pytest.raises(CameraError, match=message):
        from_opencv(K, distortion, SIZE, module)  # type: ignore[arg-type]
