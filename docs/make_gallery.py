"""Make the gallery again, pictures and page: ``python docs/make_gallery.py``.

Five photographs of examples/photographs, and twenty of rendered worlds, chosen for what they show
and not for how well they go, with what the packaged weights find in them. Worlds are kept in
out/gallery: each takes a minute to render.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from geocalib import Calibration, Calibrator, Camera
from geocalib.geometry.gravity import from_roll_pitch, world_from_camera
from geocalib.overlay import overlay
from geocalib.synthetic import render_scene
from geocalib_lab.evaluation.metrics import gravity_errors, vfov_error
from geocalib_lab.panoramas.panorama import PanoramaBank, render
from geocalib_lab.training.worlds import panoramas

DOCS = Path(__file__).parent
PHOTOGRAPHS = DOCS.parent / "examples" / "photographs"
PICTURES = DOCS / "pictures" / "gallery"
PAGE = DOCS / "gallery.md"
WORLDS = DOCS.parent / "out" / "gallery"
WORLD_WIDTH = 2048
SIZE = (768, 576)
SHOWN_WIDTH = 520
GOOD_DEG = 3.0
"""Largest error of gravity and, three times as large, of the field of view in a good answer."""


@dataclass(frozen=True)
class Photo:
    """A photograph to take. Angles in degrees."""

    shows: str
    seed: int
    """Of the world, or of the town."""
    roll: float
    pitch: float
    vfov: float
    yaw: float = 0.0
    town: bool = False
    camera_model: str = "pinhole"
    distortion: tuple[float, ...] = ()

    @property
    def gravity(self) -> torch.Tensor:
        """(1, 3)."""
        return from_roll_pitch(*torch.deg2rad(torch.tensor([[self.roll], [self.pitch]])))

    @property
    def camera(self) -> Camera:
        """A batch of 1 in float32; the field of view of wide models is that of a pinhole."""
        f = 0.5 * SIZE[1] / math.tan(math.radians(0.5 * self.vfov))
        model, k = self.camera_model, self.distortion
        return Camera.create(model, f=f, size=SIZE, distortion=k, dtype=torch.float32)

    def take(self) -> Image.Image:
        if self.town:
            colours = render_scene(self.camera, self.gravity, self.seed, subpixels=2)[0]
        else:
            bank = PanoramaBank.create([_world(self.seed)], ["world"], ["world"])
            yaw = torch.deg2rad(torch.tensor([self.yaw]))
            turn = world_from_camera(self.gravity, yaw)
            colours = render(bank, torch.tensor([0]), self.camera, turn, *SIZE)[0].permute(1, 2, 0)
        return Image.fromarray((255 * colours).round().clamp(0, 255).byte().numpy())


REAL = {
    "leuven": "A street, by a phone; its accelerometer says roll +0.5 and pitch +8.6",
    "building": "A building, from its lawn",
    "pagoda": "A pagoda, from the distance: a narrow view",
    "cameraman": "A meadow with little to go by",
    "coffee": "A cup from above: nothing here tells how wide the view is",
}
"""Photographs, and what they show."""

PHOTOS = (
    Photo("A town, level", 21, 0, 0, 55, town=True),
    Photo("Looking down at the square", 23, 3, -20, 65, town=True),
    Photo("Looking up at the houses", 24, 0, 35, 60, town=True),
    Photo("Through a lens that bends", 25, -4, 3, 75, 0, True, "simple_radial", (-0.12,)),
    Photo("From far away", 26, 1, 3, 25, town=True),
    Photo("Rolled by 40 degrees", 27, 40, 10, 60, town=True),
    Photo("Through a fisheye", 28, 5, -5, 90, 0, True, "kannala_brandt", (0.02, 0.0, 0.0, 0.0)),
    Photo("A street", 306, 2, 4, 60),
    Photo("A street, to the side", 306, -8, 12, 45, yaw=90),
    Photo("A street, wide, tilted both ways", 314, 20, 25, 90, yaw=45),
    Photo("A plaza", 302, 4, 8, 50),
    Photo("A room", 308, 1, -5, 65, yaw=30),
    Photo("The floor of a room", 308, 15, -35, 70, yaw=200),
    Photo("A hall", 327, 0, 3, 75),
    Photo("The ceiling of a hall", 327, -6, 20, 60, yaw=120),
    Photo("Nature", 303, -3, 2, 55),
    Photo("Nature, narrow", 303, 5, -15, 40, yaw=150),
    Photo("A desk from above", 301, 10, -50, 60),
    Photo("From the air", 300, 0, -25, 50),
    Photo("From the air, steep", 300, -5, -60, 70, yaw=90),
)


def main() -> None:
    calibrator = Calibrator()
    PICTURES.mkdir(parents=True, exist_ok=True)
    photographs = []
    for name, shows in REAL.items():
        found = calibrator.calibrate(PHOTOGRAPHS / f"{name}.jpg")
        file = _draw(Image.open(PHOTOGRAPHS / f"{name}.jpg"), found, name)
        photographs.append("\n".join(_lines(shows, file, f"Found: {_found(found)}.", found)))
    parts: dict[str, list[str]] = {heading: [] for heading in HEADINGS}
    for number, photo in enumerate(PHOTOS, 1):
        picture = photo.take()
        found = calibrator.calibrate(picture, photo.camera_model)
        heading, text = _entry(photo, found, _draw(picture, found, f"{number:02}"))
        parts[heading].append(text)
        print(number, heading, photo.shows, flush=True)
    sections = [
        f"### {heading}\n\n{HEADINGS[heading]}\n\n" + "\n".join(parts[heading]) for heading in parts
    ]
    page = [INTRODUCTION, *photographs, WORLDS_INTRODUCTION, *sections]
    PAGE.write_text("\n".join(page), encoding="utf-8")


INTRODUCTION = """# Gallery

The answers of the packaged weights: the horizon in magenta, lines of equal latitude, up-vectors.
Numbers are roll, pitch and vertical field of view in degrees. `python docs/make_gallery.py` makes
this page.

## Photographs

Their truth is unknown: does the horizon lie where you would draw it?
[Credits and licences](../examples/photographs/CREDITS.md).
"""

WORLDS_INTRODUCTION = f"""## Rendered worlds

{len(PHOTOS)} rendered pictures, whose truth is known. They were chosen before they were calibrated,
and sorted afterwards.
"""

HEADINGS = {
    "Right": f"Gravity within {GOOD_DEG:g} and the field of view within {3 * GOOD_DEG:g} degrees.",
    "Wrong, and it says so": "The answer has a warning.",
    "Wrong, and sure of it": "No warning.",
}


def _draw(picture: Image.Image, found: Calibration, name: str) -> str:
    """The file with what was found drawn on a picture, as the page links to it."""
    drawn = overlay(picture, found).convert("RGB")
    drawn.thumbnail((SHOWN_WIDTH, SHOWN_WIDTH), Image.Resampling.LANCZOS)
    drawn.save(PICTURES / f"{name}.jpg", quality=80, optimize=True)
    return f"pictures/gallery/{name}.jpg"


def _entry(photo: Photo, found: Calibration, file: str) -> tuple[str, str]:
    """The heading that a photo belongs to, and its part of the page."""
    errors = gravity_errors(torch.as_tensor(found.gravity)[None], photo.gravity.double())
    gravity = errors["gravity"].item()
    vfov = float(
        vfov_error(found.cameras, photo.camera.map(lambda v: np.asarray(v, np.float64)))[0]
    )
    good = gravity < GOOD_DEG and vfov < 3 * GOOD_DEG
    rest = "Wrong, and sure of it" if found.trusted else "Wrong, and it says so"
    true_vfov = math.degrees(float(photo.camera.vfov[0]))
    title = photo.shows + (f", `{photo.camera_model}`" if photo.camera_model != "pinhole" else "")
    true = f"True: {photo.roll:+.1f}, {photo.pitch:+.1f}, {true_vfov:.1f}"
    lines = _lines(title, file, f"{true}; found: {_found(found)}.", found)
    return "Right" if good else rest, "\n".join(lines)


def _lines(title: str, file: str, numbers: str, found: Calibration) -> list[str]:
    """The part of the page on one picture."""
    warnings = [f"*{warning}*\n" for warning in found.warnings]
    return [f"**{title}**", "", f"![drawn]({file})", "", numbers, "", *warnings]


def _found(found: Calibration) -> str:
    """Roll, pitch and vertical field of view, each with one sigma."""
    sigma = found.sigma
    answers = (
        (found.roll_deg, sigma.roll_deg, "+.1f"),
        (found.pitch_deg, sigma.pitch_deg, "+.1f"),
        (found.vfov_deg, sigma.vfov_deg, ".1f"),
    )
    return ", ".join(f"{value:{style}} ± {one_sigma:.1f}" for value, one_sigma, style in answers)


def _world(seed: int) -> torch.Tensor:
    """(H, W, 3) uint8."""
    kept = WORLDS / f"{seed}.png"
    if not kept.exists():
        WORLDS.mkdir(parents=True, exist_ok=True)
        picture, _ = next(panoramas(1, WORLD_WIDTH, seed, "cpu", supersample=1))
        Image.fromarray(picture.numpy()).save(kept)
    return torch.from_numpy(np.array(Image.open(kept).convert("RGB")))


if __name__ == "__main__":
    main()
