"""Photos stored in mixed orientations, through the real COLMAP with the cameras that we write."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from calibrations import one
from geocalib.arrays import Array
from geocalib.formats import colmap
from geocalib.geometry.orientation import UNDOES
from geocalib.localize.colmap_model import read_model
from geocalib.result.record import Frame

FOCAL = 420.0
SIZE = (400, 300)
CENTRE = (190.0, 160.0)
ORIENTATIONS = (1, 6, 3, 8, 6, 1)

pytestmark = pytest.mark.skipif(shutil.which("colmap") is None, reason="there is no colmap")


def seen(number: int, size: tuple[int, int], centre: tuple[float, float]) -> Array:
    """(H, W, 3) of a floor and two walls, patterned all over, from one of several places."""
    noise = np.random.default_rng(1)
    pattern = sum(
        cv2.resize(noise.normal(size=(n, n)).astype(np.float32), (1024, 1024)) for n in (64, 200)
    )
    pattern = np.clip(128 + 45 * np.asarray(pattern), 0, 255).astype(np.float32)
    x, y = np.meshgrid(np.arange(size[0]) + 0.5, np.arange(size[1]) + 0.5)
    rays = np.stack([(x - centre[0]) / FOCAL, (y - centre[1]) / FOCAL, np.ones_like(x)], -1)
    turn = cv2.Rodrigues(np.array([0.12 + 0.02 * number, 0.09 * (number - 2.5), 0.0]))[0]
    rays = rays @ turn
    place = np.array([0.35 * (number - 2.5), -0.25 * (number % 3), 0.15 * (number % 2)])
    colours, nearest = np.zeros_like(x, np.float32), np.full_like(x, np.inf)
    # Each is a plane: an axis, and where on it.
    for axis, at in ((1, 1.5), (2, 5.0), (0, 2.8)):
        with np.errstate(divide="ignore", invalid="ignore"):
            distance = (at - place[axis]) / rays[..., axis]
        points = place + distance[..., None] * rays
        u, v = np.delete(points, axis, -1).transpose(2, 0, 1).astype(np.float32)
        found = cv2.remap(
            pattern, 100 * u + 300 * axis, 100 * v, cv2.INTER_LINEAR, borderMode=cv2.BORDER_WRAP
        )
        front = (distance > 0) & (distance < nearest)
        colours[front], nearest[front] = found[front], distance[front]
    return np.repeat(colours[..., None], 3, -1).astype(np.uint8)


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lying and standing ones, each stored as its orientation says."""
    folder = tmp_path_factory.mktemp("photos")
    for number, orientation in enumerate(ORIENTATIONS):
        size, centre = upright_camera(orientation)
        exif = Image.Exif()
        exif[0x0112] = UNDOES.get(orientation, orientation)
        picture = Image.fromarray(seen(number, size, centre))
        stored = turned(picture, UNDOES.get(orientation, orientation))
        exif[0x0112] = orientation
        stored.save(folder / f"{number}.jpg", quality=95, exif=exif)
    return folder


def upright_camera(orientation: int) -> tuple[tuple[int, int], tuple[float, float]]:
    """Size and principal point of the camera whose stored pixels are all alike."""
    stored = replace(
        one("pinhole", f=FOCAL, size=SIZE, c=CENTRE), frame="stored", orientation=orientation
    )
    camera = stored.in_frame("upright")
    return (camera.width, camera.height), (camera.cx, camera.cy)


def turned(picture: Image.Image, orientation: int) -> Image.Image:
    ways = {3: Image.Transpose.ROTATE_180, 6: Image.Transpose.ROTATE_270}
    ways[8] = Image.Transpose.ROTATE_90
    return picture.transpose(ways[orientation]) if orientation in ways else picture


def reconstructed(photos: Path, folder: Path, frame: Frame) -> tuple[int, list[float]]:
    """How many photos COLMAP registers, and the focal lengths that it ends at."""
    calibrations = []
    for number, orientation in enumerate(ORIENTATIONS):
        size, centre = upright_camera(orientation)
        # The focal length that it starts from is a little off.
        camera = one("pinhole", f=1.04 * FOCAL, size=size, c=centre, image=f"{number}.jpg")
        calibrations.append(replace(camera, orientation=orientation))
    text = colmap.dumps(calibrations, frame)
    models = dict(re.findall(r"^(\d+) (\w+ \d+ \d+ .*)$", text, re.MULTILINE))
    members = defaultdict(list)
    for number, name in re.findall(r"^# (\d+) (\S+\.jpg)$", text, re.MULTILINE):
        members[number].append(name)

    def run(command: str, *words: str) -> None:
        line = ["colmap", command, "--database_path", str(folder / "database.db"), *words]
        subprocess.run(line, check=True, capture_output=True, timeout=300)

    for number, names in members.items():
        (folder / "list.txt").write_text("\n".join(names) + "\n")
        model, _, _, *parameters = models[number].split()
        words = ["--image_path", str(photos), "--image_list_path", str(folder / "list.txt")]
        words += ["--ImageReader.single_camera", "1", "--ImageReader.camera_model", model]
        words += ["--ImageReader.camera_params", ",".join(parameters)]
        words += ["--SiftExtraction.use_gpu", "0", "--SiftExtraction.max_num_features", "800"]
        run("feature_extractor", *words)
    run("exhaustive_matcher", "--SiftMatching.use_gpu", "0")
    out = folder / "sparse"
    out.mkdir()
    run("mapper", "--image_path", str(photos), "--output_path", str(out))
    if not (out / "0").exists():
        return 0, []
    line = f"colmap model_converter --input_path {out / '0'} --output_path {out} --output_type TXT"
    subprocess.run(line.split(), check=True, capture_output=True)
    rows = [line.split() for line in (out / "cameras.txt").read_text().splitlines()]
    focals = [float(row[4]) for row in rows if row[0] != "#"]
    return len(read_model(out / "0").images), focals


def test_all_photos_are_registered_at_the_true_focal_length(photos: Path, tmp_path: Path) -> None:
    count, focals = reconstructed(photos, tmp_path, "stored")
    assert count == len(ORIENTATIONS)
    # Stored alike, they have one camera.
    assert focals == pytest.approx([FOCAL], rel=0.005)


def test_cameras_of_upright_pictures_are_wrong_for_it(photos: Path, tmp_path: Path) -> None:
    """So that the test above can fail."""
    count, focals = reconstructed(photos, tmp_path, "upright")
    assert count < len(ORIENTATIONS) or focals != pytest.approx([FOCAL] * len(focals), rel=0.02)
