"""Render the pictures of the how-to pages in the programs themselves, without a display:
``python docs/make_handover_pictures.py``. Needs Blender and Hugin's tools.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image

from geocalib import Calibrator
from geocalib.formats import FORMATS

HERE = Path(__file__).parent
TOWN = HERE.parent / "examples" / "town.jpg"
PICTURES = HERE / "pictures"

IN_BLENDER = """
import bpy
from math import radians
scene = bpy.context.scene
ground = next(t for t in bpy.data.objects if t.name.startswith("ground of "))
ground.hide_render = False
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
scene.cycles.device, scene.cycles.samples = "CPU", 64
scene.cycles.use_denoising = False
scene.view_settings.view_transform = "Standard"
scene.use_nodes = True
tree = scene.node_tree
layers = tree.nodes["Render Layers"]
photo = tree.nodes.new("CompositorNodeImage")
photo.image = scene.camera.data.background_images[0].image
over = tree.nodes.new("CompositorNodeAlphaOver")
tree.links.new(photo.outputs[0], over.inputs[1])
tree.links.new(layers.outputs[0], over.inputs[2])
tree.links.new(over.outputs[0], tree.nodes["Composite"].inputs[0])
scene.render.image_settings.file_format = "JPEG"
scene.render.image_settings.quality = 85
scene.render.filepath = OUT
bpy.ops.render.render(write_still=True)
"""


def blender(folder: Path) -> None:
    """The town with a ground and a box, rendered by Blender."""
    calibration = Calibrator().calibrate(TOWN)
    script = FORMATS["blender"]([calibration], folder / "town.blender.py")[0]
    extra = folder / "render.py"
    out = PICTURES / "in-blender.jpg"
    extra.write_text(f"OUT = {str(out)!r}\n{IN_BLENDER}")
    command = ["blender", "-b", "--factory-startup", "--python-exit-code", "1"]
    subprocess.run([*command, "-P", script, "-P", extra], check=True, stdout=subprocess.DEVNULL)
    shrink(out)


def hugin(folder: Path) -> None:
    """The town, levelled by Hugin's nona."""
    calibration = Calibrator().calibrate(TOWN)
    project = FORMATS["hugin"]([calibration], folder / "town.pto")[0]
    subprocess.run(["nona", "-o", folder / "by-nona", project], check=True)
    out = PICTURES / "by-hugin.jpg"
    out.write_bytes((folder / "by-nona.jpg").read_bytes())
    shrink(out)


def shrink(picture: Path) -> None:
    """At most 800 pixels across."""
    with Image.open(picture) as image:
        image.load()
    image.thumbnail((800, 800))
    image.convert("RGB").save(picture, quality=80)


def main() -> int:
    with TemporaryDirectory() as folder:
        blender(Path(folder))
        hugin(Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
