"""ROS' camera_info, as a YAML parser of ROS' own kind reads it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import yaml

from calibrations import one
from geocalib.cameras import to_opencv
from geocalib.errors import FormatError
from geocalib.formats import ros


def matrix(part: dict[str, Any]) -> np.ndarray:
    assert all(isinstance(value, float) for value in part["data"])
    return np.array(part["data"]).reshape(part["rows"], part["cols"])


@pytest.mark.parametrize(
    ("model", "name", "distortion"),
    [
        ("pinhole", "plumb_bob", [0, 0, 0, 0, 0]),
        ("simple_radial", "plumb_bob", [1e-5, 0, 0, 0, 0]),
        ("radial", "plumb_bob", [-0.25, 2.5e-7, 0, 0, 0]),
        ("kannala_brandt", "equidistant", [0.05, -1e-16, 0.002, 0]),
    ],
)
def test_by_hand(model: str, name: str, distortion: list[float]) -> None:
    calibration = one(model, f=300 + 1 / 3, aspect=1.5, distortion=distortion[: _count(model)])
    info = yaml.safe_load(ros.dumps(calibration))
    assert (info["image_width"], info["image_height"]) == (640, 480)
    assert info["distortion_model"] == name
    K = matrix(info["camera_matrix"])
    f = 300 + 1 / 3
    assert K.tolist() == [[1.5 * f, 0, 310.3 - 0.5], [0, f, 251.7 - 0.5], [0, 0, 1]]
    assert matrix(info["distortion_coefficients"]).tolist() == [distortion]
    assert matrix(info["rectification_matrix"]).tolist() == np.eye(3).tolist()
    P = matrix(info["projection_matrix"])
    assert P[:, :3].tolist() == K.tolist()
    assert P[:, 3].tolist() == [0, 0, 0]
    assert np.array_equal(K, to_opencv(calibration.cameras)[0].K)


def _count(model: str) -> int:
    return len(one(model).distortion)


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("in/my photo-1.jpg", "my_photo_1"),
        ("0123.jpg", "0123"),
        ("no.jpg", "no"),
        ("é: #.png", "____"),
        (None, "camera"),
    ],
)
def test_camera_name(image: str | None, name: str) -> None:
    assert yaml.safe_load(ros.dumps(one(image=image)))["camera_name"] == name


def test_a_model_that_ros_lacks() -> None:
    with pytest.raises(FormatError, match=r"division.*calibrate with camera_model='radial'"):
        ros.dumps(one("division"))
