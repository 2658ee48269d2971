"""PLY files turned: point clouds, meshes and Gaussian splats.

Turned are positions, normals, and of splats their rotations and spherical harmonics; scales are
along the axes of each splat itself and stay. All else in the file stays as it is, byte by byte.

A colour seen from the direction d is c0 + sum of c_lm Y_lm(d), with the real harmonics of degree
1 to 3. In a world that was turned by R it must be seen from R d: each degree is a space of its
own, so its coefficients are multiplied by a matrix that follows from enough directions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from geocalib.arrays import Array
from geocalib.errors import FormatError
from geocalib.localize.rotation import to_quaternion
from geocalib.records import dataclass

MOST = 3
"""The highest degree of spherical harmonics."""


def basis(degree: int, directions: Array) -> Array:
    """(N, 2 degree + 1) the harmonics of a degree of unit directions (N, 3), in the order and with
    the signs that splats have them."""
    x, y, z = directions.T
    if degree == 1:
        rows = math.sqrt(3 / (4 * math.pi)) * np.array([-y, z, -x])
    elif degree == 2:
        a, b = math.sqrt(15 / (4 * math.pi)), math.sqrt(5 / (16 * math.pi))
        rows = np.array(
            [a * x * y, -a * y * z, b * (3 * z * z - 1), -a * x * z, 0.5 * a * (x * x - y * y)]
        )
    elif degree == 3:
        a, b = math.sqrt(35 / (32 * math.pi)), math.sqrt(105 / (4 * math.pi))
        c, d = math.sqrt(21 / (32 * math.pi)), math.sqrt(7 / (16 * math.pi))
        rows = np.array(
            [
                -a * y * (3 * x * x - y * y),
                b * x * y * z,
                -c * y * (5 * z * z - 1),
                d * z * (5 * z * z - 3),
                -c * x * (5 * z * z - 1),
                0.5 * b * z * (x * x - y * y),
                -a * x * (x * x - 3 * y * y),
            ]
        )
    else:
        raise ValueError(f"degree {degree}")
    return rows.T


def turn_matrix(degree: int, rotation: Array) -> Array:
    """(K, K) what the coefficients (K,) of a degree become when the world is turned by a rotation
    (3, 3)."""
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(64, 3))
    directions /= np.linalg.norm(directions, axis=-1, keepdims=True)
    # The turned colour at d is the old one at R' d.
    turned: Array = np.linalg.lstsq(
        basis(degree, directions), basis(degree, directions @ rotation), rcond=None
    )[0]
    return turned


KINDS = {
    **dict.fromkeys(("char", "int8"), "i1"),
    **dict.fromkeys(("uchar", "uint8"), "u1"),
    **dict.fromkeys(("short", "int16"), "i2"),
    **dict.fromkeys(("ushort", "uint16"), "u2"),
    **dict.fromkeys(("int", "int32"), "i4"),
    **dict.fromkeys(("uint", "uint32"), "u4"),
    **dict.fromkeys(("float", "float32"), "f4"),
    **dict.fromkeys(("double", "float64"), "f8"),
}
"""PLY's names of numbers, and NumPy's."""

ORDERS = {"binary_little_endian": "<", "binary_big_endian": ">", "ascii": ""}

VECTORS = (("x", "y", "z"), ("nx", "ny", "nz"))

ROTATION = ("rot_0", "rot_1", "rot_2", "rot_3")
"""Properties of a rotation, a quaternion w, x, y, z."""

AT_ONCE = 1 << 16
"""Rows that are turned at a time."""


@dataclass(frozen=True)
class _Element:
    name: str
    count: int
    properties: tuple[tuple[str, str], ...]
    """Name and kind of each; the kind of a list is empty."""

    @property
    def is_plain(self) -> bool:
        return all(kind for _, kind in self.properties)


def turned(content: bytes, rotation: Array, source: str) -> bytes:
    """The file of a world that was turned by a rotation (3, 3); errors name the source."""
    order, elements, start = _header(content, source)
    names = [element.name for element in elements]
    if "vertex" not in names:
        raise FormatError(f"{source}: has no element vertex; give a point cloud or splats")
    before, vertex = elements[: names.index("vertex")], elements[names.index("vertex")]
    columns = [name for name, _ in vertex.properties]
    if any(name.startswith("packed_") for name in columns):
        raise FormatError(f"{source}: its splats are compressed; export them as plain PLY")
    if not set("xyz") <= set(columns):
        raise FormatError(f"{source}: its vertices have no x, y and z")
    if not all(element.is_plain for element in (*before, vertex)):
        raise FormatError(f"{source}: lists before or in its vertices are not read; export it anew")
    if order == "ascii":
        return _turned_text(content, start, before, vertex, rotation, source)
    kinds = [(name, ORDERS[order] + KINDS[kind]) for name, kind in vertex.properties]
    row = np.dtype(kinds)
    start += sum(
        element.count * sum(np.dtype(KINDS[kind]).itemsize for _, kind in element.properties)
        for element in before
    )
    if len(content) - start < vertex.count * row.itemsize:
        raise FormatError(f"{source} is cut short; export it again")
    result = bytearray(content)
    table = np.frombuffer(result, row, vertex.count, start)
    for first in range(0, vertex.count, AT_ONCE):
        _turn(table[first : first + AT_ONCE], columns, rotation, source)
    return bytes(result)


def _turned_text(
    content: bytes,
    start: int,
    before: Sequence[_Element],
    vertex: _Element,
    rotation: Array,
    source: str,
) -> bytes:
    lines = content[start:].decode("ascii", "replace").split("\n")
    first = sum(element.count for element in before)
    words = [line.split() for line in lines[first : first + vertex.count]]
    columns = [name for name, _ in vertex.properties]
    if len(words) < vertex.count or any(len(row) != len(columns) for row in words):
        raise FormatError(f"{source} is cut short, or a vertex has not {len(columns)} numbers")
    table = np.zeros(vertex.count, [(name, "f8") for name in columns])
    try:
        for place, name in enumerate(columns):
            table[name] = [row[place] for row in words]
    except ValueError:
        raise FormatError(f"{source}: a vertex holds something that is no number") from None
    changed = _turn(table, columns, rotation, source)
    for place, name in enumerate(columns):
        if name in changed:
            for row, value in zip(words, table[name].tolist(), strict=True):
                row[place] = f"{value:.9g}"
    lines[first : first + vertex.count] = [" ".join(row) for row in words]
    return content[:start] + "\n".join(lines).encode("ascii", "replace")


def _turn(
    table: npt.NDArray[np.void], columns: Sequence[str], rotation: Array, source: str
) -> set[str]:
    """Turn rows in place; the names of the columns that were changed."""
    changed: set[str] = set()

    def apply(names: Sequence[str], matrix: Array) -> None:
        values = np.stack([table[name] for name in names], -1).astype(np.float64) @ matrix.T
        for place, name in enumerate(names):
            table[name] = values[:, place]
        changed.update(names)

    for vector in VECTORS:
        if set(vector) <= set(columns):
            apply(vector, rotation)
    if set(ROTATION) <= set(columns):
        apply(ROTATION, _product_matrix(to_quaternion(rotation)))
    for names, degree in _harmonics(columns, source):
        apply(names, turn_matrix(degree, rotation))
    return changed


def _product_matrix(q: Array) -> Array:
    """(4, 4) matrix of the quaternion product with q from the left."""
    w, x, y, z = q.tolist()
    return np.array([[w, -x, -y, -z], [x, w, -z, y], [y, z, w, -x], [z, -y, x, w]])


def _harmonics(columns: Sequence[str], source: str) -> Iterator[tuple[list[str], int]]:
    """The columns of each degree of each colour; those of one colour stand together."""
    count = sum(re.fullmatch(r"f_rest_\d+", name) is not None for name in columns)
    known = {3 * ((degree + 1) ** 2 - 1): degree for degree in range(MOST + 1)}
    if count not in known:
        raise FormatError(
            f"{source}: has {count} coefficients f_rest; splats of degree 0 to {MOST} have "
            f"{', '.join(map(str, known))}"
        )
    for colour in range(3):
        for degree in range(1, known[count] + 1):
            first = colour * (count // 3) + degree**2 - 1
            yield [f"f_rest_{first + place}" for place in range(2 * degree + 1)], degree


def _header(content: bytes, source: str) -> tuple[str, list[_Element], int]:
    """The order of bytes, the elements, and where the data begin."""
    if not content.startswith((b"ply\n", b"ply\r\n")):
        raise FormatError(f"{source} is no PLY file")
    end = re.search(rb"\nend_header\r?\n", content[: 1 << 20])
    if end is None:
        raise FormatError(f"{source} is cut short: its header has no end")
    order = ""
    elements: list[_Element] = []
    for line in content[: end.start()].decode("ascii", "replace").splitlines()[1:]:
        match line.split():
            case ["format", name, _] if name in ORDERS:
                order = name
            case ["element", name, count] if count.isdecimal():
                elements.append(_Element(name, int(count), ()))
            case ["property", "list", _, _, name] if elements:
                elements[-1] = _with(elements[-1], name, "")
            case ["property", kind, name] if elements and kind in KINDS:
                elements[-1] = _with(elements[-1], name, kind)
            case ["comment" | "obj_info", *_] | []:
                pass
            case _:
                raise FormatError(f"{source}: the header has an odd line {line!r:.60}")
    if not order:
        raise FormatError(f"{source}: the header names no format")
    return order, elements, end.end()


def _with(element: _Element, name: str, kind: str) -> _Element:
    return _Element(element.name, element.count, (*element.properties, (name, kind)))
