"""Render the pictures of the how-to pages in the programs themselves, without a display:
``python docs/make_handover_pictures.py [NAME ...]``. Needs Blender, Hugin's tools and lensfunpy.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from PIL import Image, ImageDraw

from geocalib import Calibrator, Camera
from geocalib.formats import FORMATS, fspy
from geocalib.geometry.gravity import from_roll_pitch, world_from_camera
from geocalib.localize.rotation import from_vector
from geocalib.synthetic import render_scene, scene_distances

HERE = Path(__file__).parent
ROOT = HERE.parent
TOWN = ROOT / "examples" / "town.jpg"
PHOTOGRAPHS = ROOT / "examples" / "photographs"
PICTURES = HERE / "pictures"
LOAD = ROOT / "tests" / "formats" / "in_blender.py"
"""Reads fSpy's files in Blender, by fSpy's rules, and glTF by Blender's own importer."""

IN_BLENDER = """
import bpy
from math import radians
scene = bpy.context.scene
ground = next((t for t in bpy.data.objects if t.name.startswith("ground of ")), None)
if ground is None:
    bpy.ops.mesh.primitive_grid_add(
        x_subdivisions=20, y_subdivisions=20, size=20, location=(0, 10, 0)
    )
    ground = bpy.context.object
ground.hide_render = False
scene.render.film_transparent = True
wires = ground.modifiers.new("wires", "WIREFRAME")
wires.thickness = 0.03
for thing in [t for t in bpy.data.objects if t.name in ("Cube", "Light")]:
    bpy.data.objects.remove(thing)

def material(name, colour, strength):
    made = bpy.data.materials.new(name)
    made.use_nodes = True
    shader = made.node_tree.nodes["Principled BSDF"]
    shader.inputs["Base Color"].default_value = (*colour, 1)
    shader.inputs["Emission"].default_value = (*colour, 1)
    shader.inputs["Emission Strength"].default_value = strength
    return made

ground.data.materials.append(material("lines", (1.0, 0.1, 0.5), 1.0))
bpy.ops.mesh.primitive_cube_add(size=1.2, location=(-0.6, 5.5, 0.6), rotation=(0, 0, radians(25)))
bpy.context.object.data.materials.append(material("box", (1.0, 0.55, 0.1), 0.1))
bpy.ops.object.light_add(type="SUN", rotation=(radians(40), radians(20), 0))
bpy.context.object.data.energy = 4
scene.render.engine = "CYCLES"
scene.cycles.device, scene.cycles.samples = "CPU", 16
scene.cycles.use_denoising = False
scene.view_settings.view_transform = "Standard"
scene.use_nodes = True
tree = scene.node_tree
layers = tree.nodes["Render Layers"]
photo = tree.nodes.new("CompositorNodeImage")
photo.image = bpy.data.images.load(PICTURE)
over = tree.nodes.new("CompositorNodeAlphaOver")
tree.links.new(photo.outputs[0], over.inputs[1])
tree.links.new(layers.outputs[0], over.inputs[2])
tree.links.new(over.outputs[0], tree.nodes["Composite"].inputs[0])
scene.render.image_settings.file_format = "JPEG"
scene.render.image_settings.quality = 85
scene.render.filepath = OUT
bpy.ops.render.render(write_still=True)
"""


CLOUD_IN_BLENDER = """
import bpy
from math import radians
for thing in list(bpy.data.objects):
    bpy.data.objects.remove(thing)
bpy.ops.import_mesh.ply(filepath=CLOUD)
cloud = bpy.context.object
material = bpy.data.materials.new("colours")
material.use_nodes = True
nodes, links = material.node_tree.nodes, material.node_tree.links
nodes.clear()
colours, light = nodes.new("ShaderNodeAttribute"), nodes.new("ShaderNodeEmission")
colours.attribute_name = cloud.data.color_attributes[0].name
out = nodes.new("ShaderNodeOutputMaterial")
links.new(colours.outputs["Color"], light.inputs["Color"])
links.new(light.outputs[0], out.inputs["Surface"])
cloud.data.materials.append(material)
camera = bpy.data.cameras.new("viewer")
viewer = bpy.data.objects.new("viewer", camera)
viewer.location, viewer.rotation_euler = (14, -14, 8), (radians(72), 0, radians(45))
scene = bpy.context.scene
scene.collection.objects.link(viewer)
scene.camera = viewer
scene.render.resolution_x, scene.render.resolution_y = 480, 400
scene.render.engine = "CYCLES"
scene.cycles.device, scene.cycles.samples, scene.cycles.use_denoising = "CPU", 4, False
scene.view_settings.view_transform = "Standard"
scene.world.node_tree.nodes["Background"].inputs[0].default_value = (1, 1, 1, 1)
scene.render.image_settings.file_format = "JPEG"
scene.render.filepath = OUT
bpy.ops.render.render(write_still=True)
"""


def run_blender(*words: object) -> None:
    """Run scripts in Blender, without a display."""
    command = ["blender", "-b", "--factory-startup", "--python-exit-code", "1"]
    subprocess.run([*command, *map(str, words)], check=True, stdout=subprocess.DEVNULL, timeout=600)


def script(folder: Path, text: str, **names: object) -> Path:
    """A file of that script, with values for its names."""
    file = folder / "render.py"
    file.write_text("".join(f"{name} = {str(value)!r}\n" for name, value in names.items()) + text)
    return file


def blender(folder: Path) -> None:
    """The town with a ground and a box, rendered by Blender."""
    calibration = Calibrator().calibrate(TOWN)
    project = FORMATS["blender"]([calibration], folder / "town.blender.py")[0]
    out = PICTURES / "in-blender.jpg"
    run_blender("-P", project, "-P", script(folder, IN_BLENDER, OUT=out, PICTURE=TOWN))
    shrink(out)


def in_fspy(folder: Path) -> None:
    """A street with a ground and a box, by the camera of a file of fSpy's."""
    calibration = Calibrator().calibrate(PHOTOGRAPHS / "leuven.jpg")
    file = FORMATS["fspy"]([calibration], folder / "street.fspy")[0]
    picture, out = folder / "street.jpg", PICTURES / "from-fspy.jpg"
    picture.write_bytes(fspy.read(file).image)
    render = script(folder, IN_BLENDER, OUT=out, PICTURE=picture)
    run_blender("-P", LOAD, "-P", render, "--", folder / "seen.json", file)
    shrink(out)


def in_gltf(folder: Path) -> None:
    """The town by the camera of a file of glTF, as Blender imports it."""
    calibration = Calibrator().calibrate(TOWN)
    file = FORMATS["gltf"]([calibration], folder / "town.gltf")[0]
    out = PICTURES / "from-gltf.jpg"
    render = script(folder, IN_BLENDER, OUT=out, PICTURE=TOWN)
    size = (calibration.width, calibration.height)
    run_blender("-P", LOAD, "-P", render, "--", folder / "seen.json", file, *size)
    shrink(out)


def hugin(folder: Path) -> None:
    """The town, levelled by Hugin's nona."""
    calibration = Calibrator().calibrate(TOWN)
    project = FORMATS["hugin"]([calibration], folder / "town.pto")[0]
    subprocess.run(["nona", "-o", folder / "by-nona", project], check=True)
    out = PICTURES / "by-hugin.jpg"
    out.write_bytes((folder / "by-nona.jpg").read_bytes())
    shrink(out)


def lensfun(folder: Path) -> None:
    """The town through a lens that bends, and as Lensfun straightens it by our profile."""
    import cv2
    import lensfunpy

    camera = Camera.create("simple_radial", f=420.0, size=(640, 480), distortion=[-0.25])
    bent = rendered(camera, from_roll_pitch(np.array(0.0), np.array(0.1)))
    exif = Image.Exif()
    exif[0x010F], exif[0x0110] = "Town", "Camera"
    exif.get_ifd(0x8769)[0x920A] = 24.0
    bent.save(folder / "bent.jpg", quality=95, exif=exif)
    found = Calibrator().calibrate(folder / "bent.jpg", "simple_radial")
    (file,) = FORMATS["lensfun"]([found], folder)
    database = lensfunpy.Database(paths=[str(file)], load_common=False, load_bundled=False)
    (body,) = database.find_cameras("Town", "Camera")
    (lens,) = database.find_lenses(body)
    change = lensfunpy.Modifier(lens, body.crop_factor, *bent.size)
    change.initialize(24.0, 8.0, 1000.0)
    places = change.apply_geometry_distortion()
    straight = Image.fromarray(cv2.remap(np.asarray(bent), places, None, cv2.INTER_LANCZOS4))
    beside([bent, straight], ["photo", "Lensfun, with lens.xml"], PICTURES / "by-lensfun.jpg")


def level(folder: Path) -> None:
    """A cloud of points that was turned at will, before and after ``geocalib level``."""
    camera = Camera.create("pinhole", f=160.0, size=(320, 240))
    turn = from_vector(np.radians([35.0, -20.0, 10.0]))
    poses, points, colours = [], [], []
    for number in range(4):
        gravity = from_roll_pitch(np.radians(6.0 * number - 9), np.radians(12.0 - 6 * number))
        picture = rendered(camera, gravity)
        picture.save(folder / f"{number}.jpg", quality=95)
        rays, far = (x[0].numpy() for x in scene_distances(camera, gravity[None]))
        near = (far < 30) & (np.random.default_rng(number).random(far.shape) < 0.3)
        points.append((rays * far[..., None])[near] @ turn.T)
        colours.append(np.asarray(picture)[near])
        pose = np.column_stack([turn @ world_from_camera(gravity), np.zeros(3)])
        poses.append(f"{number}.jpg {' '.join(map(repr, pose.ravel().tolist()))}")
    (folder / "poses.txt").write_text("\n".join(poses) + "\n")
    write_ply(folder / "cloud.ply", np.concatenate(points), np.concatenate(colours))
    command = [sys.executable, "-m", "geocalib", "level", "poses.txt", "--images", ".", "--ply"]
    subprocess.run([*command, "cloud.ply", "-o", "upright/poses.txt"], check=True, cwd=folder)
    pictures = []
    for name, cloud in (("before", "cloud.ply"), ("after", "upright/cloud.ply")):
        out = folder / f"{name}-drawn.jpg"
        run_blender("-P", script(folder, CLOUD_IN_BLENDER, OUT=out, CLOUD=folder / cloud))
        with Image.open(out) as image:
            pictures.append(image.convert("RGB"))
    beside(pictures, ["as it was", "after geocalib level"], PICTURES / "levelled.jpg")


def rendered(camera: Camera, gravity: np.ndarray) -> Image.Image:
    """The town as a camera at its middle takes it; gravity (3,)."""
    pixels = render_scene(camera, gravity[None])[0].numpy()
    return Image.fromarray((255 * pixels).round().astype(np.uint8))


def write_ply(file: Path, points: np.ndarray, colours: np.ndarray) -> None:
    """Points (N, 3) with colours (N, 3) of 8 bits, each as a small triangle: Blender shows colours
    of meshes alone."""
    corners = points[:, None] + np.random.default_rng(0).normal(0, 0.05, (len(points), 3, 3))
    rows = np.zeros(3 * len(points), [("at", "<f4", 3), ("colour", "u1", 3)])
    rows["at"], rows["colour"] = corners.reshape(-1, 3), colours.repeat(3, 0)
    faces = np.zeros(len(points), [("count", "u1"), ("of", "<i4", 3)])
    faces["count"], faces["of"] = 3, np.arange(3 * len(points)).reshape(-1, 3)
    head = ["ply", "format binary_little_endian 1.0", f"element vertex {len(rows)}"]
    head += [f"property float {axis}" for axis in "xyz"]
    head += [f"property uchar {name}" for name in ("red", "green", "blue")]
    head += [f"element face {len(faces)}", "property list uchar int vertex_indices", "end_header"]
    file.write_bytes("\n".join([*head, ""]).encode() + rows.tobytes() + faces.tobytes())


def beside(pictures: list[Image.Image], names: list[str], file: Path) -> None:
    """Pictures in a row, each with its name."""
    width = sum(picture.width for picture in pictures) + 8 * (len(pictures) - 1)
    row = Image.new("RGB", (width, max(picture.height for picture in pictures)), "white")
    left = 0
    for picture, name in zip(pictures, names, strict=True):
        row.paste(picture, (left, 0))
        ImageDraw.Draw(row).text(
            (left + 8, 8), name, "white", stroke_width=2, stroke_fill="black", font_size=22
        )
        left += picture.width + 8
    row.save(file, quality=80)
    shrink(file)


def shrink(picture: Path) -> None:
    """At most 800 pixels across."""
    with Image.open(picture) as image:
        image.load()
    image.thumbnail((800, 800))
    image.convert("RGB").save(picture, quality=80)


MAKERS: dict[str, Callable[[Path], None]] = {
    "blender": blender,
    "fspy": in_fspy,
    "gltf": in_gltf,
    "hugin": hugin,
    "lensfun": lensfun,
    "level": level,
}
"""The pictures by the names of what they show."""


def main(names: list[str]) -> int:
    for name in names or MAKERS:
        with TemporaryDirectory() as folder:
            MAKERS[name](Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
