"""USD as text: a stage with the camera of one photo, in centimetres, y up.

Apertures and focal lengths are tenths of a unit of the stage: of centimetres, millimetres.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from geocalib.formats import scenes
from geocalib.formats.scenes import FRAME, SceneCamera, write_scenes
from geocalib.result.calibration import Outcome
from geocalib.result.record import Frame

SUFFIX = ".usda"

CENTIMETRES = 100.0
"""Centimetres in a metre, USD's unit."""

STAGE = """\
#usda 1.0
(
    customLayerData = {{
        string picture = {picture}
        int2 pixels = ({width}, {height})
    }}
    defaultPrim = "World"
    metersPerUnit = 0.01
    upAxis = "Y"
)

def Xform "World"
{{
    def Camera "Camera" (
        displayName = {name}
    )
    {{
        token projection = "perspective"
        float focalLength = {focal!r}
        float horizontalAperture = {film[0]!r}
        float verticalAperture = {film[1]!r}
        float horizontalApertureOffset = {offset[0]!r}
        float verticalApertureOffset = {offset[1]!r}
        float2 clippingRange = ({near!r}, {far!r})
        matrix4d xformOp:transform = ({rows})
        uniform token[] xformOpOrder = ["xformOp:transform"]
    }}
}}
"""


def write(outcomes: Iterable[Outcome], path: str | Path, frame: Frame = FRAME) -> list[Path]:
    """Write a file per image, and a straight picture beside it where the lens bends. See
    ``geocalib.formats`` for the path and what is returned."""
    return write_scenes(outcomes, path, stage, SUFFIX, frame)


def stage(scene: SceneCamera) -> str:
    """The content of a file."""
    pose = scene.pose_y_up
    pose[:3, 3] *= CENTIMETRES
    near, far = scene.clip
    # Vectors are rows there.
    rows = ", ".join(f"({', '.join(map(repr, row))})" for row in pose.T.tolist())
    return STAGE.format(
        name=_quoted(scene.name),
        picture=_quoted(scene.picture),
        width=scene.width,
        height=scene.height,
        focal=scene.focal_mm,
        film=scene.film_mm,
        offset=scene.film_offset_mm,
        near=near * CENTIMETRES,
        far=far * CENTIMETRES,
        rows=rows,
    )


def _quoted(text: str) -> str:
    return json.dumps(text.encode("utf-8", "replace").decode(), ensure_ascii=False)


dumps = scenes.each(stage)
