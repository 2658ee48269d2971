"""Hugin's projects, as Hugin's own tools see them."""

from __future__ import annotations

import math
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from calibrations import FAILURE, one
from geocalib.cameras import MODELS, Camera
from geocalib.errors import CameraError, FormatError
from geocalib.formats import hugin
from geocalib.formats.ptlens import IDEALS, TOLERANCE, to_ptlens
from geocalib.geometry.gravity import world_from_camera
from geocalib.result.calibration import Calibration
from lenses import PARAMETERS
from peers import Note, note

needs_hugin = pytest.mark.skipif(shutil.which("pano_trafo") is None, reason="no Hugin tools here")


def photo(folder: Path, size: tuple[int, int] = (640, 480), orientation: int = 1) -> str:
    """Soft blobs: half a pixel aside they look the same."""
    grid = np.random.default_rng(0).integers(0, 255, (9, 12, 3), np.uint8)
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = folder / "photo.png"
    Image.fromarray(grid).resize(size, Image.Resampling.BICUBIC).save(path, exif=exif)
    return str(path)


def panorama(text: str) -> dict[str, float]:
    """The numbers of the line of the panorama."""
    (line,) = [line for line in text.splitlines() if line.startswith("p ")]
    return {key: float(value) for key, value in re.findall(r" ([fwhv])([\d.]+)", line)}


def by_us(calibration: Calibration, text: str, pixels: np.ndarray) -> np.ndarray:
    """(N, 2) where pixels of the photo lie in the panorama; NaN near its ends."""
    rays, _ = calibration.cameras.unproject(pixels[None])
    x, y, z = world_from_camera(calibration.gravity) @ rays[0].T
    told = panorama(text)
    middle = 0.5 * np.array([told["w"], told["h"]])
    if told["f"] == 2:
        angles = np.stack([np.arctan2(x, z), np.arcsin(y)], -1)
        return np.where(
            np.abs(angles) < [3.0, 1.5], angles * told["w"] / (2 * np.pi) + middle, np.nan
        )
    focal = middle[0] / math.tan(0.5 * math.radians(told["v"]))
    plane = np.stack([x, y], -1) / z[:, None]
    return np.where(z[:, None] > 0.3, plane * focal + middle, np.nan)


def by_hugin(file: Path, pixels: np.ndarray) -> np.ndarray:
    """The same; Hugin counts from the centre of the first pixel."""
    lines = "\n".join(f"{x} {y}" for x, y in (pixels - 0.5).tolist())
    done = subprocess.run(
        ["pano_trafo", file, "0"], input=lines, capture_output=True, text=True, check=True
    )
    return np.array([line.split() for line in done.stdout.splitlines()], float) + 0.5


@needs_hugin
@pytest.mark.parametrize(
    ("model", "camera", "at_most"),
    [
        ("pinhole", {"c": (320.0, 240.0), "roll_deg": 30.0, "pitch_deg": 20.0}, 1e-4),
        ("pinhole", {"pitch_deg": -75.0}, 1e-4),
        ("pinhole", {"size": (480, 640), "c": (200.0, 350.0), "roll_deg": -100.0}, 1e-4),
        ("simple_radial", {"roll_deg": -12.0}, 1e-2),
        ("radial", {"distortion": [-0.1, -0.02]}, 0.2),
        ("division", {}, 0.2),
        ("kannala_brandt", {"distortion": [0.0] * 4, "f": 160.0}, 1e-2),
        ("double_sphere", {"distortion": [-0.2, 0.5]}, 0.2),
    ],
)
def test_hugin_sees_the_photo_as_we_do(
    tmp_path: Path, model: str, camera: dict[str, Any], at_most: float, record_property: Note
) -> None:
    size = camera.get("size", (640, 480))
    calibration = one(model, image=photo(tmp_path, size), **camera)
    (file,) = hugin.write([calibration], tmp_path)
    assert file == tmp_path / "photo.png.pto"
    across = np.linspace(0.02, 0.98, 9)
    pixels = np.stack(np.meshgrid(across, across), -1).reshape(-1, 2) * size
    expected = by_us(calibration, file.read_text(), pixels)
    seen = np.isfinite(expected).all(-1)
    assert seen.sum() > 20
    apart = np.abs(by_hugin(file, pixels) - expected)[seen].max()
    assert apart < at_most
    note(record_property, "hugin", "Hugin", apart)


@needs_hugin
@pytest.mark.parametrize("orientation", [1, 6])
def test_nona_levels_the_photo_as_rectify_does(tmp_path: Path, orientation: int) -> None:
    stored = (640, 480) if orientation == 1 else (480, 640)
    path = photo(tmp_path, stored, orientation)
    calibration = one("simple_radial", image=path, orientation=orientation)
    (file,) = hugin.write([calibration], tmp_path / "projects")
    assert 'n"../photo.png"' in file.read_text()
    subprocess.run(["nona", "-o", tmp_path / "level", file], check=True, capture_output=True)
    ours = calibration.rectify(path)
    with Image.open(tmp_path / "level.jpg") as opened:
        theirs = np.asarray(opened.convert("RGB"), float)
    assert np.abs(np.array(theirs.shape[1::-1]) - ours.image.size).max() <= 1
    height, width = np.minimum(theirs.shape[:2], ours.valid.shape)
    apart = np.abs(theirs[:height, :width] - np.asarray(ours.image, float)[:height, :width])
    inside = ours.valid[:height, :width] & (theirs.sum(-1) > 0)[:height, :width]
    # Sampled up to half a pixel apart, and stored as JPEG.
    assert apart[inside].mean() < 3
    assert inside.mean() > 0.6


def test_tools_of_hugin_take_the_project(tmp_path: Path) -> None:
    if shutil.which("pto_var") is None:
        pytest.skip("no Hugin tools here")
    (file,) = hugin.write([one("simple_radial", image=photo(tmp_path), roll_deg=7)], tmp_path)
    out = tmp_path / "changed.pto"
    subprocess.run(["pto_var", "--set", "y0=30", "-o", out, file], check=True, capture_output=True)
    (line,) = [line for line in out.read_text().splitlines() if line.startswith("i ")]
    told = dict(re.findall(r" ([vrpyb])(-?[\d.e-]+)", line))
    assert float(told["r"]) == pytest.approx(7)
    assert float(told["p"]) == pytest.approx(-10)
    assert float(told["y"]) == 30


@pytest.mark.parametrize("model", sorted(PARAMETERS))
def test_the_polynomial_says_the_lens_or_refuses(model: str) -> None:
    f = 200.0 if MODELS[model].wide else 500.0
    said = 0
    for distortion in PARAMETERS[model]:
        camera = Camera.create(model, f=f, size=(640, 480), distortion=distortion, c=(310, 250))
        try:
            (lens,) = to_ptlens(camera)
        except CameraError:
            continue
        said += 1
        radii = np.linspace(1, 380, 50)
        pixels = np.array([310, 250]) + radii[:, None] * [0.6, 0.8]
        rays, valid = camera.unproject(pixels[None])
        x, y, z = rays[0].T
        ideal = IDEALS[lens.ideal].radius(np.arctan2(np.hypot(x, y), z)) * lens.focal / 240
        a, b, c = lens.abc
        bent = 240 * ideal * (a * ideal**3 + b * ideal**2 + c * ideal + 1 - a - b - c)
        assert np.abs(bent - radii)[valid[0]].max() < TOLERANCE * 480 * 1.01
    assert said


def test_what_hugin_cannot_hold(tmp_path: Path) -> None:
    for calibration, message in (
        (one(aspect=1.1), r"photo\.jpg: its pixels are not square.*geocalib undistort"),
        (one(image='a"b.jpg'), "call the photo otherwise"),
        (one("kannala_brandt", distortion=[-0.03, 0.004, -0.001, 0]), "misses this lens by"),
        (FAILURE, "there is no camera to write"),
    ):
        with pytest.raises(FormatError, match=message):
            hugin.write([calibration], tmp_path / "new")
    assert list(tmp_path.iterdir()) == []
