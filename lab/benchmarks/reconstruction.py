"""What our lenses are worth to COLMAP (docs/howto/reconstruction.md), on photos of rendered worlds.

python lab/benchmarks/reconstruction.py FOLDER    photos and models go there; photos that are there
                                                  are not rendered again. About 20 minutes.

Six photos of each world, by a camera that moves sideways, of one lens that bends a little. COLMAP
(Debian's, without a GPU) makes a model of them twice: with the focal length that it takes where
none is named, and with what ``geocalib calibrate --shared --format colmap-database`` writes.
"""

from __future__ import annotations

import argparse
import math
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
from PIL import Image

from geocalib.arrays import Array
from geocalib.cameras import Camera
from geocalib.geometry.fields import pixel_grid
from geocalib.geometry.gravity import from_roll_pitch, world_from_camera
from geocalib.localize.colmap_model import read_cameras, read_model
from geocalib_lab.training.worlds.desks import desk
from geocalib_lab.training.worlds.generator import render_world, sphere_rays
from geocalib_lab.training.worlds.rooms import room
from geocalib_lab.training.worlds.scene import Scene
from geocalib_lab.training.worlds.solids import World
from geocalib_lab.training.worlds.streets import street
from geocalib_lab.training.worlds.textures import Library
from geocalib_lab.training.worlds.tracing import nearest
from geocalib_lab.training.worlds.windows import sphere_windows

WORLDS = {"desk": desk, "room": room, "street": street}
PHOTOS = 6
SIZE = (480, 360)
FOCALS = {"wide": 0.55, "phone": 0.75}
"""Of each lens, in widths of the photo. COLMAP's guess is 1.2."""
BEND = -0.06
"""k1 times (width / f)^2."""
PANORAMA = 2048
"""Pixels around, of which the photos are cut."""
STEP = 0.06
"""From photo to photo, of the median distance of what is ahead."""


def lens(name: str) -> Camera:
    """The camera that took the photos."""
    focal = FOCALS[name]
    return Camera.create("simple_radial", focal * SIZE[0], SIZE, [[BEND * focal**2]])


def panoramas(kind: str) -> Iterator[Array]:
    """(H, W, 3) of 8 bits, of a world from places in a row across the direction that they face,
    which is that of most texture."""
    library = Library.draw(512, 0, "cpu")
    world = WORLDS[kind](library, random.Random(kind))
    first = render_world(world, library, 512, 1).numpy()
    edges = np.abs(np.diff(first[96:176].mean(-1), axis=1, append=0)).mean(0)
    around = np.convolve(np.tile(edges, 3), np.ones(80), "same")[512:1024]
    yaw = (int(around.argmax()) + 0.5) / 512 * 2 * math.pi - math.pi
    step = STEP * distance_ahead(world, library, yaw)
    for number in range(PHOTOS):
        aside = step * (number - (PHOTOS - 1) / 2)
        x, y, z = world.eye
        # Rows alternate, so that the places are not on one line.
        eye = (
            x + aside * math.cos(yaw),
            y - 0.5 * step * (number % 2),
            z - aside * math.sin(yaw),
        )
        seen = render_world(replace(world, eye=eye), library, PANORAMA, 1).numpy()
        yield np.roll(seen, -round(yaw / (2 * math.pi) * PANORAMA), 1)


def distance_ahead(world: World, library: Library, yaw: float) -> float:
    """Metres, the median within 25 degrees of the horizon, and of that direction."""
    scene = Scene.create(world.solids, world.eye, "cpu")
    rows = slice(92, 164)
    rays = sphere_rays(512, 256, rows, "cpu")
    distance, _ = nearest(scene, library, rays, sphere_windows(scene.corners, 512, 256, rows))
    column = round((yaw + math.pi) / (2 * math.pi) * 512)
    ahead = np.roll(distance.reshape(-1, 512).numpy(), 256 - column, 1)[:, 220:292]
    return float(np.median(ahead[np.isfinite(ahead)]))


def render(folder: Path, kind: str) -> None:
    """The photos of a world by each lens: FOLDER/LENS/KIND/0.jpg and so on."""
    for number, panorama in enumerate(panoramas(kind)):
        noise = np.random.default_rng(number)
        down = from_roll_pitch(*np.radians(noise.normal(0, (3.0, 6.0))))
        turn = 0.04 * (number - (PHOTOS - 1) / 2)
        for name in FOCALS:
            camera = lens(name)
            rays, _ = camera.unproject(pixel_grid(*SIZE, camera.f).reshape(1, -1, 2))
            x, y, z = (world_from_camera(down) @ np.asarray(rays)[0].T).reshape(3, *SIZE[::-1])
            column = ((np.arctan2(x, z) - turn) / (2 * math.pi) + 0.5) * PANORAMA - 0.5
            row = (0.5 + np.arcsin(y) / math.pi) * (PANORAMA / 2) - 0.5
            places = column.astype(np.float32), row.astype(np.float32)
            photo = cv2.remap(panorama, *places, cv2.INTER_CUBIC, borderMode=cv2.BORDER_WRAP)
            (folder / name / kind).mkdir(parents=True, exist_ok=True)
            Image.fromarray(photo).save(folder / name / kind / f"{number}.jpg", quality=95)


def run(*words: object) -> str:
    """What a program prints."""
    command = [str(word) for word in words]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout + done.stderr


def colmap(photos: Path, out: Path, known: bool) -> tuple[int, float, float, float]:
    """How many photos are registered, the focal lengths before and after, pixels, and the mean
    reprojection error, pixels, of the largest model; NaN where there is none."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    database = out / "database.db"
    run("colmap", "database_creator", "--database_path", database)
    of = ("--database_path", database, "--image_path", photos)
    start = 1.2 * SIZE[0]
    if known:
        options = ("--shared", "--camera-model", "simple_radial", "--format", "colmap-database")
        run(sys.executable, "-m", "geocalib", "calibrate", photos, *options, "-o", database)
    said = run(
        *("colmap", "feature_extractor", *of, "--SiftExtraction.use_gpu", 0),
        *("--ImageReader.single_camera", 1, "--ImageReader.camera_model", "SIMPLE_RADIAL"),
    )
    if known:
        start = float(re.findall(r"Focal Length:\s+([\d.]+)px \(Prior\)", said)[0])
    run("colmap", "exhaustive_matcher", "--database_path", database, "--SiftMatching.use_gpu", 0)
    # It fails where it finds no first pair.
    mapper = ("colmap", "mapper", *map(str, of), "--output_path", str(out))
    subprocess.run(mapper, check=False, capture_output=True)
    models = [path.parent for path in out.glob("*/cameras.bin")]
    if not models:
        return 0, start, math.nan, math.nan
    model = max(models, key=lambda path: len(read_model(path).images))
    (camera,) = read_cameras(model).values()
    printed = run("colmap", "model_analyzer", "--path", model)
    error = float(re.findall(r"Mean reprojection error: ([\d.]+)", printed)[0])
    return len(read_model(model).images), start, float(camera.f[0]), error


def draw(model: Path, file: Path) -> None:
    """Points and cameras of a model as COLMAP wrote it, seen along its first camera's y axis: each
    camera is its place and the borders of what it sees."""
    import matplotlib.pyplot as plt

    read = read_model(model)
    first = min(read.images.values(), key=lambda image: image.name).rotation
    points = np.stack([*read.points.values()]) @ first.T
    figure, axes = plt.subplots(figsize=(5, 5), layout="constrained")
    axes.plot(points[:, 0], points[:, 2], ".", markersize=1.5, color="tab:gray")
    (camera,) = read_cameras(model).values()
    edge = camera.border_middles(0)
    rays = np.asarray(camera.unproject(edge)[0])[0]
    reach = 0.15 * np.median(np.linalg.norm(points, axis=1))
    for image in read.images.values():
        place = -image.rotation.T @ image.translation
        ends = place + reach * rays @ image.rotation
        corners = np.stack([ends[0], place, ends[1], ends[0]]) @ first.T
        axes.plot(corners[:, 0], corners[:, 2], color="tab:red", linewidth=1)
    low, high = np.percentile(points, [1, 99], axis=0)
    axes.set(xlim=(low[0] - reach, high[0] + reach), ylim=(-2 * reach, high[2] + reach))
    axes.set(aspect="equal", xticks=[], yticks=[])
    axes.set_title(f"{len(read.images)} cameras and {len(points)} points, from above", fontsize=10)
    figure.savefig(file, dpi=110)


def main() -> None:
    """Print a row for each world and lens."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    for kind in WORLDS:
        if not (folder / "phone" / kind / f"{PHOTOS - 1}.jpg").exists():
            render(folder, kind)
    print("| lens | world | cameras | f at the start | registered | f at the end | reprojection |")
    print("| --- " * 7 + "|")
    for name, focal in FOCALS.items():
        truth = focal * SIZE[0]
        for kind in WORLDS:
            for known in (False, True):
                by = "ours" if known else "COLMAP's"
                out = folder / "models" / name / kind / by[:4]
                count, start, end, error = colmap(folder / name / kind, out, known)
                print(
                    f"| {name} | {kind} | {by} | {start / truth - 1:+.1%} | {count} of {PHOTOS} "
                    f"| {end / truth - 1:+.1%} | {error:.2f} |",
                    flush=True,
                )
                if known and count:
                    draw(out / "0", out / "cameras.jpg")


if __name__ == "__main__":
    main()
