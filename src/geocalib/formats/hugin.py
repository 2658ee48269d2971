"""Hugin's project file: the lens of one photo and how its camera was turned.

The panorama of the project is the picture of a level camera that looks the same way, as ``geocalib
rectify`` makes it: ``nona -o level photo.jpg.pto`` renders it, and in Hugin it can be changed. Of
views too steep or too wide for that it is the whole sphere. Hugin looks at pixels as they are
stored; turned by EXIF or not, the horizon comes out level.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from geocalib.arrays import Array
from geocalib.cameras import Camera
from geocalib.errors import CameraError, FormatError, ImageError
from geocalib.files import write_text
from geocalib.formats.outputs import SAID, STRAIGHTEN, convert, files_of_each
from geocalib.formats.ptlens import IDEALS, from_ptlens, to_ptlens
from geocalib.geometry.gravity import from_roll_pitch, to_roll_pitch
from geocalib.imaging import warp
from geocalib.result.calibration import Calibration, Outcome
from geocalib.result.record import Frame

SUFFIX = ".pto"
FRAME: Frame = "stored"

SPHERE = 2
"""Hugin's number of the equirectangular projection."""

VALUE = re.compile(r" ([a-z])(=?[-+.\d][-+.\deE]*)")
"""A number of an image in a project, or the number of the image that has it."""

LARGEST_SPHERE = 30_000
"""Pixels around a whole sphere."""


def write(outcomes: Iterable[Outcome], path: str | Path, frame: Frame = FRAME) -> list[Path]:
    """Write a file per image. See ``geocalib.formats`` for the path and what is returned.

    Hugin looks for the photo from the folder of the file, so its path starts there.
    """
    files = files_of_each(outcomes, path, SUFFIX, frame)
    texts = {
        file: _project(c, os.path.relpath(c.image, file.parent) if c.image else "image", frame)
        for file, c in files.items()
    }
    for file, text in texts.items():
        write_text(file, text)
    return list(texts)


def dumps(calibration: Calibration, frame: Frame = FRAME) -> str:
    """The content of a file beside its photo."""
    name = Path(calibration.image or "image").name
    return _project(calibration.in_frame(frame), name, frame)


def _project(calibration: Calibration, photo: str, frame: Frame) -> str:
    if re.search('["\\n\\r]', photo):
        raise FormatError(
            f"{photo!r}: Hugin has no place for such a name; call the photo otherwise"
        )
    lens = convert(to_ptlens, calibration, STRAIGHTEN)
    roll, pitch = (math.degrees(angle) for angle in to_roll_pitch(calibration.gravity))
    camera, width, height = calibration.cameras, calibration.width, calibration.height
    (a, b, c), (d, e) = lens.abc, (camera.c[0] - 0.5 * camera.size[0]).tolist()
    turned = {"r": roll, "p": pitch, "y": 0.0}
    bent = {"a": a, "b": b, "c": c, "d": d, "e": e, "g": 0.0, "t": 0.0}
    rest = {"Eev": 0.0, "Er": 1.0, "Eb": 1.0, "Va": 1.0}
    numbers = _words({"v": math.degrees(lens.hfov(width)), **turned, **bent, **rest})
    return (
        "# hugin project file\n"
        "#hugin_ptoversion 2\n"
        f"# {SAID[frame]}\n"
        f'p {_panorama(calibration, lens.focal)} n"JPEG q95"\n'
        "m i3\n"
        f'i w{width} h{height} f{IDEALS[lens.ideal].hugin} {numbers} n"{photo}"\n'
    )


def _panorama(calibration: Calibration, focal: float) -> str:
    """The picture to make, around the level direction in which the camera looks."""
    try:
        level = warp.rectified(calibration.cameras, calibration.gravity)
    except ImageError:
        around = min(round(2 * math.pi * focal), LARGEST_SPHERE) // 2 * 2
        return f"f{SPHERE} w{around} h{around // 2} v360"
    f, c, size = float(level.focal[0, 0]), level.c[0], level.size[0]
    whole = 2 * np.ceil(np.maximum(c, size - c)) + 2
    left, top = np.round(0.5 * whole - c).astype(int).tolist()
    width, height = size.astype(int).tolist()
    vfov = math.degrees(2 * math.atan2(0.5 * float(whole[0]), f))
    window = f"S{left},{left + width},{top},{top + height}"
    return f"f0 w{whole[0]:.0f} h{whole[1]:.0f} v{vfov!r} {window}"


def _words(values: dict[str, float]) -> str:
    return " ".join(f"{name}{value!r}" for name, value in values.items())


def read(path: str | Path) -> list[tuple[str, Camera, Array]]:
    """For each image of a project the path of its file, its camera (a batch of 1), and gravity (3,)
    in its frame, if the panorama is level."""
    file = Path(path)
    text = file.read_text(encoding="utf-8", errors="surrogateescape")
    rows: list[dict[str, str]] = []
    for line in text.splitlines():
        if line.startswith("i "):
            words, _, name = line.partition(' n"')
            rows.append(dict(VALUE.findall(words)) | {"n": name.rstrip().removesuffix('"')})
    if not rows or not any(line.startswith("p ") for line in text.splitlines()):
        raise FormatError(f"{file} is no project of Hugin's with images in it")
    try:
        return [_read_image(file, rows, row) for row in rows]
    except FormatError:
        raise
    except (KeyError, ValueError, IndexError, OverflowError):
        raise FormatError(
            f"{file}: an image lacks w, h, f, v, r or p, or one is no number"
        ) from None


def _read_image(
    file: Path, rows: list[dict[str, str]], row: dict[str, str]
) -> tuple[str, Camera, Array]:
    def number(name: str) -> float:
        text = row.get(name, "0")
        # "=0" is what image 0 has.
        value = float(rows[int(text[1:])].get(name, "0") if text.startswith("=") else text)
        if not math.isfinite(value):
            raise ValueError
        return value

    projection = int(row["f"])
    names = [name for name, known in IDEALS.items() if known.hugin == projection]
    if not names or number("g") or number("t"):
        raise FormatError(
            f"{file}: {row['n']} has a projection or a shear (g, t) that is not read; read are the "
            f"projections {', '.join(str(known.hugin) for known in IDEALS.values())}"
        )
    size = np.array([number("w"), number("h")])
    half_view, ideal = math.radians(number("v")) / 2, IDEALS[names[0]]
    if not (size.min() > 0 and 0 < half_view < ideal.widest):
        raise ValueError
    focal = 0.5 * size[0] / float(ideal.radius(np.array(half_view)))
    c = 0.5 * size + [number("d"), number("e")]
    try:
        camera = from_ptlens(names[0], focal, (number("a"), number("b"), number("c")), size, c)
    except CameraError as error:
        raise FormatError(f"{file}: {row['n']}: {error}") from None
    roll, pitch = (np.array(math.radians(number(name))) for name in "rp")
    photo = Path(os.path.normpath(file.parent / row["n"])).as_posix()
    return photo, camera, from_roll_pitch(roll, pitch)
