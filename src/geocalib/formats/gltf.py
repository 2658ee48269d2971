"""glTF 2.0: a scene with the camera of one photo, in metres, y up, above a ground at y = 0."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from geocalib.formats import scenes
from geocalib.formats.scenes import FRAME, SceneCamera, write_scenes
from geocalib.result.calibration import Outcome
from geocalib.result.record import Frame

SUFFIX = ".gltf"


def write(outcomes: Iterable[Outcome], path: str | Path, frame: Frame = FRAME) -> list[Path]:
    """Write a file per image, and a straight picture beside it where the lens bends. See
    ``geocalib.formats`` for the path and what is returned."""
    return write_scenes(outcomes, path, document, SUFFIX, frame)


def document(scene: SceneCamera) -> str:
    """The content of a file."""
    scene.check_centred("glTF")
    near, far = scene.clip
    camera = {
        "name": scene.name,
        "type": "perspective",
        "perspective": {
            "aspectRatio": scene.width / scene.fx / (scene.height / scene.fy),
            "yfov": scene.vfov,
            "znear": near,
            "zfar": far,
        },
        "extras": {"picture": scene.picture, "width": scene.width, "height": scene.height},
    }
    # glTF lists matrices by columns.
    node = {"name": scene.name, "camera": 0, "matrix": scene.pose_y_up.T.ravel().tolist()}
    values = {
        "asset": {"version": "2.0", "generator": "geocalib"},
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [node],
        "cameras": [camera],
    }
    return json.dumps(values, indent=2) + "\n"


dumps = scenes.each(document)
