"""A script for Maya: camera, picture and ground of one photo.

Run it in Maya's script editor (Python), or with ``mayapy``. Maya counts in centimetres, its film in
inches; y is up. The camera turns by Ry Rx Rz, which Maya calls "zxy".
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from geocalib.formats import scenes
from geocalib.formats.scenes import FRAME, SceneCamera, write_scenes
from geocalib.formats.usd import CENTIMETRES
from geocalib.result.calibration import Outcome
from geocalib.result.record import Frame

SUFFIX = ".maya.py"

INCH = 25.4
"""An inch in millimetres."""

SCRIPT = """\
# The camera of {name!r}, found by geocalib: run it in Maya

import os

from maya import cmds

PICTURE = {picture!r}  # from the folder of this file
SIZE = {size!r}  # pixels
FOCAL = {focal!r}  # millimetres
FILM = {film!r}  # inches
OFFSET = {offset!r}  # of the film's middle, inches
CLIP = {clip!r}  # centimetres
PLACE = {place!r}  # centimetres: the height is {source}, which sets the scale
TURN = {turn!r}  # degrees

viewer, shape = cmds.camera(
    focalLength=FOCAL,
    horizontalFilmAperture=FILM[0],
    verticalFilmAperture=FILM[1],
    horizontalFilmOffset=OFFSET[0],
    verticalFilmOffset=OFFSET[1],
    filmFit="horizontal",
    nearClipPlane=CLIP[0],
    farClipPlane=CLIP[1],
)
cmds.setAttr(viewer + ".rotateOrder", 2)  # "zxy"
cmds.setAttr(viewer + ".translate", *PLACE, type="double3")
cmds.setAttr(viewer + ".rotate", *TURN, type="double3")
cmds.setAttr("defaultResolution.width", SIZE[0])
cmds.setAttr("defaultResolution.height", SIZE[1])
cmds.setAttr("defaultResolution.deviceAspectRatio", FILM[0] / FILM[1])
cmds.polyPlane(width=2000, height=2000, subdivisionsX=20, subdivisionsY=20, name="ground")
file = os.path.join(os.path.dirname(globals().get("__file__", "")), PICTURE)
if os.path.exists(file):
    cmds.imagePlane(camera=shape, fileName=os.path.abspath(file))
"""


def write(outcomes: Iterable[Outcome], path: str | Path, frame: Frame = FRAME) -> list[Path]:
    """Write a script per image, and a straight picture beside it where the lens bends. See
    ``geocalib.formats`` for the path and what is returned."""
    return write_scenes(outcomes, path, script, SUFFIX, frame)


def script(scene: SceneCamera) -> str:
    """The content of a file."""
    return SCRIPT.format(
        name=scene.name,
        picture=scene.picture,
        size=(scene.width, scene.height),
        focal=scene.focal_mm,
        film=tuple(side / INCH for side in scene.film_mm),
        offset=tuple(side / INCH for side in scene.film_offset_mm),
        clip=tuple(CENTIMETRES * side for side in scene.clip),
        place=(0.0, scene.above_ground * CENTIMETRES, 0.0),
        source=scene.scale_source,
        turn=scene.rotation_deg,
    )


dumps = scenes.each(script)
