"""A script for Blender: camera, background picture, ground and horizon of one photo.

``blender -P photo.jpg.blender.py`` opens it; in Blender itself, run it in the text editor.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from geocalib.formats import scenes
from geocalib.formats.scenes import FILM_WIDTH, FRAME, SceneCamera, write_scenes
from geocalib.result.calibration import Outcome
from geocalib.result.record import Frame

SUFFIX = ".blender.py"

SCRIPT = """\
# The camera of {name!r}, found by geocalib: run it as  blender -P THIS_FILE

import os

import bpy
from mathutils import Matrix

NAME = {name!r}
PICTURE = {picture!r}  # from the folder of this file
SIZE = {size!r}  # pixels
FOCAL, SENSOR = {focal!r}, {sensor!r}  # millimetres, across the width
SHIFT = {shift!r}  # of the principal point, in widths of the picture
PIXEL_ASPECT = {aspect!r}
CLIP = {clip!r}  # metres
HEIGHT = {height!r}  # metres above the ground: {source}, which sets the scale
POSE = {pose}
GRID, CELL = 20, 1.0  # cells of the ground, and metres


def build():
    camera = bpy.data.cameras.new(NAME)
    camera.sensor_fit, camera.sensor_width = "HORIZONTAL", SENSOR
    camera.lens_unit, camera.lens = "MILLIMETERS", FOCAL
    camera.shift_x, camera.shift_y = SHIFT
    camera.clip_start, camera.clip_end = CLIP
    viewer = bpy.data.objects.new(NAME, camera)
    viewer.matrix_world = Matrix(POSE)

    edge = [CELL * (i - GRID / 2) for i in range(GRID + 1)]
    corners = [(x, y + CELL * GRID / 2, 0.0) for y in edge for x in edge]
    faces = [
        (row + i, row + i + 1, row + i + GRID + 2, row + i + GRID + 1)
        for row in range(0, GRID * (GRID + 1), GRID + 1)
        for i in range(GRID)
    ]
    mesh = bpy.data.meshes.new("ground of " + NAME)
    mesh.from_pydata(corners, [], faces)
    ground = bpy.data.objects.new(mesh.name, mesh)
    ground.display_type, ground.hide_render = "WIRE", True

    horizon = bpy.data.objects.new("horizon of " + NAME, None)
    horizon.empty_display_size = 0.02 * CLIP[1]
    horizon.location = (0.0, 0.5 * CLIP[1], HEIGHT)

    scene = bpy.context.scene
    for thing in (viewer, ground, horizon):
        scene.collection.objects.link(thing)
    scene.camera = viewer
    scene.render.resolution_x, scene.render.resolution_y = SIZE
    scene.render.resolution_percentage = 100
    scene.render.pixel_aspect_x, scene.render.pixel_aspect_y = PIXEL_ASPECT
    scene.render.film_transparent = True
    show_picture(camera)


def show_picture(camera):
    folder = os.path.dirname(os.path.abspath(globals().get("__file__") or bpy.data.filepath))
    file = os.path.join(folder, PICTURE)
    if not os.path.exists(file):
        print(file + " is not there: the camera has no background")
        return
    background = camera.background_images.new()
    background.image = bpy.data.images.load(file)
    background.alpha, background.display_depth = 1.0, "BACK"
    background.frame_method = "STRETCH"
    camera.show_background_images = True


build()
"""


def write(outcomes: Iterable[Outcome], path: str | Path, frame: Frame = FRAME) -> list[Path]:
    """Write a script per image, and a straight picture beside it where the lens bends. See
    ``geocalib.formats`` for the path and what is returned."""
    return write_scenes(outcomes, path, script, SUFFIX, frame)


def script(scene: SceneCamera) -> str:
    """The content of a file."""
    # Blender's shift is that of the view, in widths of the picture as it is seen.
    square = scene.fx / scene.fy
    width, height = scene.width, scene.height
    rows = ", ".join(str(row) for row in scene.pose.tolist())
    return SCRIPT.format(
        name=scene.name,
        picture=scene.picture,
        size=(width, height),
        focal=scene.focal_mm,
        sensor=FILM_WIDTH,
        shift=((0.5 * width - scene.cx) / width, (scene.cy - 0.5 * height) / width * square),
        # Pixels are as much wider as the focal length across is shorter; Blender takes 1 at least.
        aspect=(max(1.0, 1 / square), max(1.0, square)),
        clip=scene.clip,
        height=scene.above_ground,
        source=scene.scale_source,
        pose=f"[{rows}]",
    )


dumps = scenes.each(script)
