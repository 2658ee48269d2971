"""How cameras are turned: angles, quaternions and matrices against SciPy and the conventions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from geocalib.errors import FormatError
from geocalib.geometry.gravity import from_roll_pitch
from geocalib.rig import RigCamera, RigDescription, cube_faces, stereo_pair
from geocalib.rig.description import from_angles, parse_rotation

angles = st.floats(-89, 89)


@given(st.floats(-180, 180), angles, st.floats(-180, 180))
def test_angles_against_scipy(yaw: float, pitch: float, roll: float) -> None:
    expected = Rotation.from_euler("YXZ", [yaw, pitch, roll], degrees=True).as_matrix().T
    np.testing.assert_allclose(from_angles(yaw, pitch, roll), expected, atol=1e-12)


def test_angles_are_those_of_a_level_rig() -> None:
    """In a level rig a camera's roll and pitch are those that it is mounted with."""
    down = from_angles(70, -12, 8) @ np.array([0.0, 1.0, 0.0], np.float64)
    roll, pitch = np.deg2rad([8.0, -12.0])
    np.testing.assert_allclose(down, from_roll_pitch(roll, pitch))


@given(st.integers(0, 2**32 - 1))
def test_quaternions_and_poses(seed: int) -> None:
    turn = Rotation.random(random_state=seed)
    x, y, z, w = turn.as_quat()
    np.testing.assert_allclose(parse_rotation([w, x, y, z], "q"), turn.as_matrix(), atol=1e-12)
    np.testing.assert_allclose(
        parse_rotation([-2 * w, -2 * x, -2 * y, -2 * z], "q"), turn.as_matrix(), atol=1e-12
    )
    pose = np.eye(4)
    pose[:3, :3] = turn.as_matrix()
    pose[:3, 3] = 5, 6, 7
    for rows in (pose, pose[:3], pose[:3, :3]):
        np.testing.assert_allclose(parse_rotation(rows.tolist(), "T"), turn.as_matrix(), atol=1e-9)


def test_rounded_matrices_become_rotations() -> None:
    turn = Rotation.from_euler("xyz", [0.3, 0.2, 0.1]).as_matrix()
    found = parse_rotation(turn.round(3).tolist(), "T")
    np.testing.assert_allclose(found @ found.T, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(found, turn, atol=2e-3)


@pytest.mark.parametrize(
    "value",
    [
        None,
        "left",
        [0, 0, 0, 0],
        [1, 0, 0],
        [1, 0, math.nan, 0],
        np.diag([1, 1, -1]).tolist(),
        np.diag([1, 1, 1.1]).tolist(),
        [[1, 0, 0], [0, 1, 0]],
        [[1, 0, 0], [0, 1], [0, 0, 1]],
        [["a", 0, 0], [0, 1, 0], [0, 0, 1]],
        {"w": 1},
    ],
)
def test_no_rotation(value: object) -> None:
    with pytest.raises(FormatError, match=r"rig.json: T is no rotation; give a quaternion w, x, y"):
        parse_rotation(value, "rig.json: T")


def camera(name: str = "a", images: str = "a/*") -> RigCamera:
    return RigCamera(name, np.eye(3), images, name)


def test_rigs_that_cannot_be() -> None:
    with pytest.raises(FormatError, match="x: there is no camera"):
        RigDescription((), "x")
    with pytest.raises(FormatError, match="x: two cameras have the name 'a'"):
        RigDescription((camera(), camera(images="b/*")), "x")
    with pytest.raises(FormatError, match=r"x: two cameras have the images 'a/\*'"):
        RigDescription((camera(), camera("b")), "x")
    for pattern in ("left", "*/*", "*", "/*", ""):
        with pytest.raises(FormatError, match=r"x, camera a: images is .*; give the end of a path"):
            RigDescription((camera(images=pattern),), "x")


def test_cube() -> None:
    rig = cube_faces()
    assert rig.names == ("front", "right", "back", "left", "up", "down")
    assert {c.intrinsics for c in rig.cameras} == {"lens"}
    # Where the optical axes point in the rig: x right, y down, z ahead.
    axes = rig.camera_from_rig[:, 2]
    expected = [[0, 0, 1], [1, 0, 0], [0, 0, -1], [-1, 0, 0], [0, -1, 0], [0, 1, 0]]
    np.testing.assert_allclose(axes, expected, atol=1e-12)
    # The bottom of the up face, and the top of the down face, join the front face.
    np.testing.assert_allclose(rig.camera_from_rig[4, 1], [0, 0, 1], atol=1e-12)
    np.testing.assert_allclose(-rig.camera_from_rig[5, 1], [0, 0, 1], atol=1e-12)


def test_stereo() -> None:
    rig = stereo_pair(40)
    left, right = rig.camera_from_rig[:, 2]
    assert left[0] < 0 < right[0]
    assert math.degrees(math.acos(left @ right)) == pytest.approx(40)
    np.testing.assert_allclose(stereo_pair().camera_from_rig, np.stack([np.eye(3)] * 2))
