"""Point clouds and splats turned: what was seen before is seen from the turned place."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from scipy.special import sph_harm_y

from geocalib.errors import FormatError
from geocalib.level.ply import basis, turned

TURN = Rotation.from_euler("xyz", [40, -70, 110], degrees=True)


def splats(count: int, degree: int = 3, order: str = "little") -> tuple[bytes, np.ndarray]:
    """A file as the trainers of splats write it, and its rows."""
    rest = 3 * ((degree + 1) ** 2 - 1)
    names = [
        *("x", "y", "z", "nx", "ny", "nz", "f_dc_0", "f_dc_1", "f_dc_2"),
        *(f"f_rest_{i}" for i in range(rest)),
        *("opacity", "scale_0", "scale_1", "scale_2", "rot_0", "rot_1", "rot_2", "rot_3"),
    ]
    sign = "<" if order == "little" else ">"
    table = np.zeros(count, [(name, f"{sign}f4") for name in names])
    rng = np.random.default_rng(count)
    for name in names:
        table[name] = rng.normal(size=count)
    header = [
        "ply",
        f"format binary_{order}_endian 1.0",
        "comment made by hand",
        f"element vertex {count}",
        *(f"property float {name}" for name in names),
        "end_header",
        "",
    ]
    return "\n".join(header).encode() + table.tobytes(), table


def rows_of(content: bytes, like: np.ndarray) -> np.ndarray:
    return np.frombuffer(content, like.dtype, len(like), content.index(b"end_header\n") + 11)


def real_harmonics(degree: int, order: int, directions: np.ndarray) -> np.ndarray:
    """By SciPy, with the signs of (-1)^m that splats have."""
    x, y, z = directions.T
    value = sph_harm_y(degree, abs(order), np.arccos(z), np.arctan2(y, x))
    if order == 0:
        return value.real
    return math.sqrt(2) * (value.real if order > 0 else value.imag)


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_harmonics_are_those_of_the_textbook(degree: int) -> None:
    rng = np.random.default_rng(1)
    directions = rng.normal(size=(50, 3))
    directions /= np.linalg.norm(directions, axis=-1, keepdims=True)
    ours = basis(degree, directions)
    for column, order in enumerate(range(-degree, degree + 1)):
        expected = real_harmonics(degree, order, directions)
        np.testing.assert_allclose(ours[:, column], expected, atol=1e-12)


@pytest.mark.parametrize("degree", [0, 1, 2, 3])
@pytest.mark.parametrize("order", ["little", "big"])
def test_splats_look_the_same_from_the_turned_place(degree: int, order: str) -> None:
    content, before = splats(7, degree, order)
    after = rows_of(turned(content, TURN.as_matrix(), "s.ply"), before)
    assert turned(content, TURN.as_matrix(), "s.ply").startswith(content[:60])

    def column(table: np.ndarray, *names: str) -> np.ndarray:
        return np.stack([table[name] for name in names], -1).astype(float)

    for names in (("x", "y", "z"), ("nx", "ny", "nz")):
        np.testing.assert_allclose(
            column(after, *names), TURN.apply(column(before, *names)), atol=1e-5
        )
    for name in ("opacity", "scale_0", "scale_1", "scale_2", "f_dc_0", "f_dc_1", "f_dc_2"):
        assert np.array_equal(after[name], before[name])

    def shapes(table: np.ndarray) -> np.ndarray:
        """(N, 3, 3) covariance of each splat in the world."""
        w, x, y, z = column(table, "rot_0", "rot_1", "rot_2", "rot_3").T
        R = Rotation.from_quat(np.stack([x, y, z, w], -1)).as_matrix()
        scale = np.exp(column(table, "scale_0", "scale_1", "scale_2"))
        return R @ (scale[:, :, None] ** 2 * R.mT)

    R = TURN.as_matrix()
    np.testing.assert_allclose(shapes(after), R @ shapes(before) @ R.T, rtol=1e-4, atol=1e-4)

    def colours(table: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """(N, 3) what is added to the mean colour in a direction."""
        count = (degree + 1) ** 2 - 1
        seen = [
            real_harmonics(n, m, direction[None])
            for n in range(1, degree + 1)
            for m in range(-n, n + 1)
        ]
        values = [
            column(table, *(f"f_rest_{c * count + i}" for i in range(count))) @ np.ravel(seen)
            for c in range(3)
        ]
        return np.stack(values, -1)

    if degree:
        for direction in np.eye(3):
            expected = colours(before, direction)
            np.testing.assert_allclose(colours(after, TURN.apply(direction)), expected, atol=1e-4)


def test_a_mesh_in_text() -> None:
    content = (
        b"ply\nformat ascii 1.0\nelement vertex 2\nproperty double x\nproperty uchar red\n"
        b"property double y\nproperty double z\nelement face 1\n"
        b"property list uchar int vertex_indices\nend_header\n"
        b"1 255 2 3\n0.5 7 0 -4\n3 0 1 1\n"
    )
    R = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])
    assert turned(content, R, "m.ply") == content.replace(b"1 255 2 3", b"-2 255 1 3").replace(
        b"0.5 7 0 -4", b"0 7 0.5 -4"
    )


def test_faces_behind_the_vertices_stay() -> None:
    content, _ = splats(3, 0)
    content = content.replace(
        b"end_header", b"element face 1\nproperty list uchar int vertex_indices\nend_header"
    )
    content += b"\x03" + np.arange(3, dtype="<i4").tobytes()
    assert turned(content, TURN.as_matrix(), "m.ply").endswith(content[-13:])


CONTENT, _ = splats(4)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a photo", "is no PLY file"),
        (CONTENT[:100], "its header has no end"),
        (CONTENT[:-1], "is cut short; export it again"),
        (CONTENT.replace(b"property float x\n", b"property float u\n"), "no x, y and z"),
        (CONTENT.replace(b"float f_rest_44", b"float g_rest_44"), "44 coefficients f_rest"),
        (CONTENT.replace(b"float opacity", b"uint packed_scale"), "its splats are compressed"),
        (CONTENT.replace(b"float nx", b"color nx"), "odd line 'property color nx'"),
        (CONTENT.replace(b"element vertex", b"element point"), "has no element vertex"),
    ],
)
def test_files_that_cannot_be_turned(content: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=rf"^s\.ply.*{message}"):
        turned(content, TURN.as_matrix(), "s.ply")
