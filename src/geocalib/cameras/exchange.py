"""Cameras in the words of COLMAP and OpenCV, and back.

COLMAP names a model and lists its parameters; its pixel centres are ours. OpenCV has a
calibration matrix and a distortion vector, for one of two modules; its principal point is ours
minus 0.5 (``geocalib.geometry.conventions``). Conversions are exact: what the other side
cannot say, or what our models cannot hold, raises a ``CameraError``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from geocalib.arrays import DType, namespace
from geocalib.cameras.camera import Camera
from geocalib.cameras.registry import get_model
from geocalib.errors import CameraError

Module = Literal["pinhole", "fisheye"]
"""OpenCV's functions of that kind: ``cv2.projectPoints`` or ``cv2.fisheye.projectPoints``."""

Entry = TypeVar("Entry")

LONGEST_SIDE = 1 << 31
"""Pixels: beyond it a file is damaged."""


class ColmapCamera(NamedTuple):
    """One camera as in COLMAP's cameras.txt."""

    name: str
    parameters: tuple[float, ...]


class OpenCVCamera(NamedTuple):
    """One camera as OpenCV's functions take it."""

    module: Module
    K: npt.NDArray[np.float64]
    """(3, 3) calibration matrix."""
    distortion: npt.NDArray[np.float64]
    """(5,) as (k1, k2, p1, p2, k3) for pinhole, (4,) as (k1, k2, k3, k4) for fisheye."""


class _Layout(NamedTuple):
    """How a format lists a camera: the model it reads as, and the parameters in order."""

    model: str
    parameters: tuple[str, ...]


def _layout(model: str, parameters: str) -> _Layout:
    return _Layout(model, tuple(parameters.split()))


COLMAP_LAYOUTS: Mapping[str, _Layout] = {
    "SIMPLE_PINHOLE": _layout("pinhole", "f cx cy"),
    "PINHOLE": _layout("pinhole", "fx fy cx cy"),
    "SIMPLE_RADIAL": _layout("simple_radial", "f cx cy k1"),
    "RADIAL": _layout("radial", "f cx cy k1 k2"),
    "OPENCV": _layout("radial", "fx fy cx cy k1 k2 p1 p2"),
    "FULL_OPENCV": _layout("radial", "fx fy cx cy k1 k2 p1 p2 k3 k4 k5 k6"),
    "SIMPLE_DIVISION": _layout("division", "f cx cy k"),
    "DIVISION": _layout("division", "fx fy cx cy k"),
    "SIMPLE_FISHEYE": _layout("kannala_brandt", "f cx cy"),
    "FISHEYE": _layout("kannala_brandt", "fx fy cx cy"),
    "SIMPLE_RADIAL_FISHEYE": _layout("kannala_brandt", "f cx cy k1"),
    "RADIAL_FISHEYE": _layout("kannala_brandt", "f cx cy k1 k2"),
    "OPENCV_FISHEYE": _layout("kannala_brandt", "fx fy cx cy k1 k2 k3 k4"),
    "THIN_PRISM_FISHEYE": _layout("kannala_brandt", "fx fy cx cy k1 k2 p1 p2 k3 k4 sx1 sy1"),
    "EUCM": _layout("eucm", "fx fy cx cy alpha beta"),
}
"""What COLMAP's models read as, or the next of its family that holds the values. Parameters that
the model lacks must be ``NEUTRAL``; those that the layout lacks are."""

COLMAP_IDS: Mapping[int, tuple[str, int]] = {
    0: ("SIMPLE_PINHOLE", 3),
    1: ("PINHOLE", 4),
    2: ("SIMPLE_RADIAL", 4),
    3: ("RADIAL", 5),
    4: ("OPENCV", 8),
    5: ("OPENCV_FISHEYE", 8),
    6: ("FULL_OPENCV", 12),
    7: ("FOV", 5),
    8: ("SIMPLE_RADIAL_FISHEYE", 4),
    9: ("RADIAL_FISHEYE", 5),
    10: ("THIN_PRISM_FISHEYE", 12),
    11: ("RAD_TAN_THIN_PRISM_FISHEYE", 16),
    12: ("SIMPLE_DIVISION", 4),
    13: ("DIVISION", 5),
    14: ("SIMPLE_FISHEYE", 3),
    15: ("FISHEYE", 4),
    16: ("EUCM", 6),
    17: ("EQUIRECTANGULAR", 2),
}
"""COLMAP's models by the ids of its binary files and databases: the name and how many parameters
there are."""

COLMAP_NAMES: Mapping[str, tuple[str, str]] = {
    "pinhole": ("SIMPLE_PINHOLE", "PINHOLE"),
    "simple_radial": ("SIMPLE_RADIAL", "OPENCV"),
    "radial": ("RADIAL", "OPENCV"),
    "radial3": ("FULL_OPENCV", "FULL_OPENCV"),
    "division": ("SIMPLE_DIVISION", "DIVISION"),
    "kannala_brandt": ("OPENCV_FISHEYE", "OPENCV_FISHEYE"),
    "ucm": ("EUCM", "EUCM"),
    "eucm": ("EUCM", "EUCM"),
}
"""What our models are written as: with square pixels, and with fx != fy."""

OPENCV_LAYOUTS: Mapping[Module, _Layout] = {
    "pinhole": _layout("radial", "k1 k2 p1 p2 k3 k4 k5 k6 s1 s2 s3 s4 tau_x tau_y"),
    "fisheye": _layout("kannala_brandt", "k1 k2 k3 k4"),
}
"""OpenCV's distortion vectors; that of pinhole may also stop early."""

OPENCV_MODULES: Mapping[str, tuple[Module, int]] = {
    "pinhole": ("pinhole", 5),
    "simple_radial": ("pinhole", 5),
    "radial": ("pinhole", 5),
    "radial3": ("pinhole", 5),
    "kannala_brandt": ("fisheye", 4),
}
"""The module of our models and the length of the distortion vector written."""

OPENCV_LENGTHS: Mapping[Module, tuple[int, ...]] = {
    "pinhole": (0, 4, 5, 8, 12, 14),
    "fisheye": (4,),
}
"""Lengths of distortion vector that OpenCV accepts."""

FAMILIES: tuple[tuple[str, ...], ...] = (
    ("pinhole", "simple_radial", "radial", "radial3"),
    ("ucm", "eucm"),
)
"""Models whose parameters of the same name mean the same, so that one can be read as another; each
holds what those before it do."""

PLACES = ("fx", "fy", "cx", "cy")
"""Names of the intrinsics that every camera has."""

NEUTRAL: Mapping[str, float] = {"beta": 1.0}
"""Values of parameters that a model lacks, where they are not 0."""


def to_colmap(camera: Camera) -> list[ColmapCamera]:
    """COLMAP's name and parameters of each camera of the batch.

    >>> to_colmap(Camera.create("radial", f=500, size=(640, 480), distortion=[-0.25, 0.125]))
    [ColmapCamera(name='RADIAL', parameters=(500.0, 320.0, 240.0, -0.25, 0.125))]
    """
    names = _counterpart("COLMAP", COLMAP_NAMES, camera)
    cameras = []
    for values in _named_values(camera):
        name = names[values["fx"] != values["fy"]]
        parameters = COLMAP_LAYOUTS[name].parameters
        cameras.append(ColmapCamera(name, tuple(_value(values, p) for p in parameters)))
    return cameras


def from_colmap(
    name: str,
    parameters: Sequence[float],
    size: Any,
    model: str | None = None,
    dtype: DType | None = None,
) -> Camera:
    """The camera (a batch of 1) of COLMAP's model name and parameters.

    size: image width and height, pixels. model: the model to read it as, by default the one in
    ``COLMAP_LAYOUTS`` or a larger one that holds the values; another of its family in ``FAMILIES``
    where the values allow it.
    """
    if name not in COLMAP_LAYOUTS:
        raise CameraError(
            f"COLMAP's {name} has no counterpart here; readable: {', '.join(COLMAP_LAYOUTS)}"
        )
    layout = COLMAP_LAYOUTS[name]
    if len(parameters) != len(layout.parameters):
        raise CameraError(
            f"COLMAP's {name} has {len(layout.parameters)} parameters "
            f"({', '.join(layout.parameters)}), got {len(parameters)}"
        )
    values = dict(zip(layout.parameters, map(float, parameters), strict=True))
    if "f" in values:
        values["fx"] = values["fy"] = values.pop("f")
    return _camera(f"COLMAP's {name}", layout.model, values, size, model, dtype)


def to_opencv(camera: Camera) -> list[OpenCVCamera]:
    """OpenCV's module, matrix and distortion vector of each camera of the batch.

    >>> camera = Camera.create("simple_radial", f=500, size=(640, 480), distortion=[-0.25])
    >>> module, K, distortion = to_opencv(camera)[0]
    >>> module, K[0, 2].item(), distortion.tolist()
    ('pinhole', 319.5, [-0.25, 0.0, 0.0, 0.0, 0.0])
    """
    module, length = _counterpart("OpenCV", OPENCV_MODULES, camera)
    parameters = OPENCV_LAYOUTS[module].parameters[:length]
    cameras = []
    for values in _named_values(camera):
        K = _matrix(values["fx"], values["fy"], values["cx"] - 0.5, values["cy"] - 0.5)
        distortion = np.array([_value(values, p) for p in parameters])
        cameras.append(OpenCVCamera(module, K, distortion))
    return cameras


def from_opencv(
    K: npt.ArrayLike,
    distortion: npt.ArrayLike | None,
    size: Any,
    module: Module = "pinhole",
    model: str | None = None,
    dtype: DType | None = None,
) -> Camera:
    """The camera (a batch of 1) of OpenCV's (3, 3) matrix and distortion vector.

    size: image width and height, pixels. model: the model to read it as, by default radial for
    the module pinhole (pinhole where there is no distortion vector, radial3 where k3 is not 0) and
    kannala_brandt for fisheye; another of its family in ``FAMILIES`` where the values allow it.
    """
    if module not in get_args(Module):
        raise CameraError(f"unknown OpenCV module {module!r}; known: {', '.join(get_args(Module))}")
    matrix = np.asarray(K, dtype=np.float64)
    vector = np.asarray([] if distortion is None else distortion, dtype=np.float64).ravel()
    if matrix.shape != (3, 3):
        raise CameraError(f"K must be (3, 3), got {matrix.shape}")
    fx, fy, cx, cy = matrix[[0, 1, 0, 1], [0, 1, 2, 2]].tolist()
    if not np.array_equal(matrix, _matrix(fx, fy, cx, cy)):
        raise CameraError(f"K must be [[fx, 0, cx], [0, fy, cy], [0, 0, 1]], got {matrix.tolist()}")
    layout, lengths = OPENCV_LAYOUTS[module], OPENCV_LENGTHS[module]
    if len(vector) not in lengths:
        raise CameraError(
            f"OpenCV's {module} distortion has {' or '.join(map(str, lengths))} values, "
            f"got {len(vector)}"
        )
    values = dict(zip(layout.parameters, vector.tolist(), strict=False))
    values |= {"fx": fx, "fy": fy, "cx": cx + 0.5, "cy": cy + 0.5}
    default = layout.model if len(vector) else "pinhole"
    return _camera(f"OpenCV's {module}", default, values, size, model, dtype)


def _matrix(fx: float, fy: float, cx: float, cy: float) -> npt.NDArray[np.float64]:
    return np.array([[fx, 0.0, cx], [0.0, fy, cy], [0.0, 0.0, 1.0]])


def _counterpart(system: str, table: Mapping[str, Entry], camera: Camera) -> Entry:
    """The entry of the camera's model in one of the tables above."""
    name = camera.model.name
    if name not in table:
        elsewhere = [
            other
            for other, others in (("COLMAP", COLMAP_NAMES), ("OpenCV", OPENCV_MODULES))
            if name in others
        ]
        raise CameraError(
            f"{system} has no counterpart of {name}, which can be written to "
            f"{' and '.join(elsewhere) or 'neither COLMAP nor OpenCV'}; "
            f"{system} takes {', '.join(table)}"
        )
    return table[name]


def _named_values(camera: Camera) -> list[dict[str, float]]:
    """Each camera's parameters by name; with square pixels also as f."""
    camera = camera.batch()
    parts = [camera.focal, camera.c, camera.distortion]
    rows = namespace(camera.f).concat(parts, axis=-1).tolist()
    names = (*PLACES, *camera.model.parameters)
    return [dict(zip(names, row, strict=True)) | {"f": row[1]} for row in rows]


def _value(values: Mapping[str, float], name: str) -> float:
    """That of a parameter, which may be missing where it says nothing."""
    return values.get(name, NEUTRAL.get(name, 0.0))


def _left_over(model: str, values: Mapping[str, float]) -> list[str]:
    """The parameters that say something which the model cannot hold, with their values."""
    held = (*PLACES, *get_model(model).parameters)
    return [
        f"{name} = {value}"
        for name, value in values.items()
        if name not in held and value != NEUTRAL.get(name, 0.0)
    ]


def _check_numbers(source: str, values: Mapping[str, float], size: Any) -> None:
    for name, value in values.items():
        if not math.isfinite(value):
            raise CameraError(f"{source} needs finite numbers, got {name} = {value}")
    if not all(0 < side <= LONGEST_SIDE for side in size):
        raise CameraError(f"{source} needs a width and a height in pixels, got {size!r:.60}")


def _camera(
    source: str,
    default: str,
    values: dict[str, float],
    size: Any,
    model: str | None,
    dtype: DType | None,
) -> Camera:
    """The camera of parameters given by name, which must fit the model exactly."""
    family = next((family for family in FAMILIES if default in family), (default,))
    if model is None:
        larger = family[family.index(default) :]
        model = next((name for name in larger if not _left_over(name, values)), default)
    if model not in family:
        raise CameraError(f"{source} can be read as {' or '.join(family)}, not as {model}")
    fx, fy, cx, cy = (values[name] for name in PLACES)
    if not (0 < fx < math.inf and 0 < fy < math.inf):
        raise CameraError(f"{source} needs positive focal lengths, got fx = {fx}, fy = {fy}")
    _check_numbers(source, values, size)
    held, left_over = get_model(model).parameters, _left_over(model, values)
    if left_over:
        raise CameraError(
            f"{source} with {', '.join(left_over)} is not a {model} camera, which has "
            f"{', '.join(held) or 'no distortion'}"
        )
    return Camera.create(
        model,
        f=fy,
        size=size,
        distortion=[_value(values, name) for name in held],
        c=(cx, cy),
        aspect=fx / fy,
        dtype=dtype,
    )
