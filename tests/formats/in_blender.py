"""Run by Blender: say where its camera sees the corners of the ground and the horizon.

``blender -b -P SCRIPT -P in_blender.py -- OUT.json`` after a script of ours, or
``blender -b -P in_blender.py -- OUT.json FILE.fspy``, which reads fSpy's file by its rules, or
``blender -b -P in_blender.py -- OUT.json FILE WIDTH HEIGHT`` with one that Blender itself imports:
glTF, or Nuke's .chan.
"""

import json
import math
import struct
import sys

import bpy
from bpy_extras.object_utils import world_to_camera_view
from mathutils import Matrix, Vector


def load_fspy(path):
    with open(path, "rb") as file:
        content = file.read()
    magic, version, text, image = struct.unpack_from("<4sIII", content)
    assert (magic, version) == (b"fspy", 1)
    assert image > 0
    state = json.loads(content[16 : 16 + text])
    told = state["cameraParameters"]
    assert state["calibrationSettingsBase"]["referenceDistanceUnit"] == "Meters"
    data = bpy.data.cameras.new("fspy")
    data.sensor_fit = "HORIZONTAL"
    data.angle = told["horizontalFieldOfView"]
    width, height = told["imageWidth"], told["imageHeight"]
    # Both span -1 to 1 along the longer side; Blender's shift is in widths.
    half = 0.5 * max(width, height)
    data.shift_x = -told["principalPoint"]["x"] * half / width
    data.shift_y = -told["principalPoint"]["y"] * half / width
    viewer = bpy.data.objects.new("fspy", data)
    viewer.matrix_world = Matrix(told["cameraTransform"]["rows"])
    scene = bpy.context.scene
    scene.collection.objects.link(viewer)
    scene.camera = viewer
    scene.render.resolution_x, scene.render.resolution_y = width, height
    scene.render.resolution_percentage = 100


def load(file, width, height):
    scene = bpy.context.scene
    if file.endswith(".gltf"):
        bpy.data.objects.remove(scene.camera)
        bpy.ops.import_scene.gltf(filepath=file)
        scene.camera = next(thing for thing in scene.objects if thing.type == "CAMERA")
    else:
        bpy.ops.preferences.addon_enable(module="io_anim_nuke_chan")
        viewer = bpy.data.objects.new("nuke", bpy.data.cameras.new("nuke"))
        scene.collection.objects.link(viewer)
        bpy.context.view_layer.objects.active = scene.camera = viewer
        # Blender names the rotation that comes first: Rx Ry Rz is its ZYX.
        bpy.ops.import_scene.import_chan(
            filepath=file, z_up=True, rotation_order="ZYX",
            sensor_width=36, sensor_height=36 * height / width,
        )  # fmt: skip
        scene.frame_set(1)
    scene.render.resolution_x, scene.render.resolution_y = width, height
    scene.render.resolution_percentage = 100


def pixel(point):
    scene = bpy.context.scene
    seen = world_to_camera_view(scene, scene.camera, Vector(point))
    width, height = scene.render.resolution_x, scene.render.resolution_y
    return [seen.x * width, (1 - seen.y) * height, seen.z]


out, *file = sys.argv[sys.argv.index("--") + 1 :]
if len(file) == 1:
    load_fspy(file[0])
elif file:
    load(file[0], int(file[1]), int(file[2]))
bpy.context.view_layer.update()
things = [thing.name for thing in bpy.data.objects]
camera = bpy.context.scene.camera.data
ground = next((thing for thing in bpy.data.objects if thing.name.startswith("ground of ")), None)
corners = [tuple(v.co) for v in ground.data.vertices] if ground else []
corners = corners or [(x, y, 0.0) for x in (-2, 0, 2) for y in (2, 5, 10)]
horizon = next((thing for thing in bpy.data.objects if thing.name.startswith("horizon of ")), None)
with open(out, "w") as file:
    json.dump(
        {
            "things": things,
            "corners": corners,
            "pixels": [pixel(corner) for corner in corners],
            "horizon": pixel(horizon.location) if horizon else None,
            "backgrounds": [b.image.filepath for b in camera.background_images],
            "sizes": [list(b.image.size) for b in camera.background_images],
            "lens": [camera.lens, camera.sensor_width, camera.clip_start, camera.clip_end],
            "angle": math.degrees(camera.angle_x),
        },
        file,
    )
