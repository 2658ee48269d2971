"""Nuke's .chan: one line for each image, as a frame of one camera.

Frame, translation in metres, rotation in degrees, and the vertical field of view in degrees, with
tabs between. The rotation is Rx Ry Rz, y up. Straight pictures of lenses that bend stand beside the
file.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

from geocalib.files import write_text
from geocalib.formats.outputs import calibrated, destination, image_names, one_each
from geocalib.formats.scenes import FRAME, PICTURE, scene_of, write_straight
from geocalib.result.calibration import Calibration, Outcome
from geocalib.result.record import Frame

FILE = "camera.chan"


def write(outcomes: Iterable[Outcome], path: str | Path, frame: Frame = FRAME) -> list[Path]:
    """Write camera.chan, and a straight picture for each image that needs one. See
    ``geocalib.formats`` for the path and what is returned."""
    file = destination(path, FILE)
    calibrations = calibrated(outcomes, frame)
    text = dumps(calibrations, frame)
    places = one_each(image_names(calibrations), file.parent, PICTURE)
    pictures = write_straight(dict(zip(places, calibrations, strict=True)))
    write_text(file, text)
    return [file, *pictures]


def dumps(outcomes: Iterable[Outcome], frame: Frame = FRAME) -> str:
    """Return the content of camera.chan, a line for each image."""
    return "".join(_line(n, c) for n, c in enumerate(calibrated(outcomes, frame), 1))


def _line(number: int, calibration: Calibration) -> str:
    scene = scene_of(calibration)
    scene.check_centred("Nuke's .chan")
    values = [0.0, scene.above_ground, 0.0, *scene.rotation_deg, math.degrees(scene.vfov)]
    return "\t".join([str(number), *map(repr, values)]) + "\n"
