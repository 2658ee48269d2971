"""Photographs cut out of panoramas, with their truth: a set to measure on.

The layout is the published one: ``images/`` and ``images.csv``, in radians.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator, Sequence
from io import BytesIO
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from geocalib.errors import PanoramaError
from geocalib.files import write_bytes
from geocalib.geometry.gravity import to_roll_pitch
from geocalib_lab.evaluation.crop_views import Crop, CropConfig, draw_crops
from geocalib_lab.panoramas.holes import MOST_BLACK, black_share
from geocalib_lab.panoramas.panorama import PanoramaBank, read_scenes, render
from geocalib_lab.panoramas.pictures import find_panoramas, read_panorama

QUALITY = 95
"""The quality of the JPEG files."""

TABLE = "images.csv"
UNFINISHED = f"{TABLE}.partial"
"""What a run leaves that was interrupted; the next one begins again."""

COLUMNS = (
    *("fname", "width", "height", "vfov", "roll", "pitch", "k1"),
    *("magnification", "scene", "panorama", "camera", "rig", "rotation"),
)


def render_crops(
    panoramas: Path,
    out: Path,
    config: CropConfig | None = None,
    *,
    manifest: Path | None = None,
    done: Callable[[], None] = lambda: None,
    failed: Callable[[PanoramaError], None] | None = None,
) -> Path:
    """Write crops of all panoramas of a folder, and return their table.

    The crops of a panorama depend on its file's name and the settings alone (which of them share
    a camera also on the folder), and fewer crops are the first of more. As published, crops with
    1% or more black pixels are left out. Beyond the published columns (k1 only with distortion)
    there are magnification: pixels of the crop per pixel of the panorama, at the centre;
    panorama: its file; scene, if a manifest with the columns file and scene tells; camera: equal
    where the lens is; rig: equal for the crops of one shot; and rotation: camera_from_rig as a
    quaternion w x y z. done: called after each panorama; failed: takes the errors of those that
    cannot be read, while the others are cut; without it the first one ends all.
    """
    config = config or CropConfig()
    images = out / "images"
    images.mkdir(parents=True, exist_ok=True)
    scenes = {} if manifest is None else read_scenes(manifest)
    left_out = {
        "k1": not config.distorted,
        "scene": manifest is None,
        "camera": config.rig is None and config.same_camera is None,
        "rig": config.rig is None,
        "rotation": config.rig is None,
    }
    columns = [name for name in COLUMNS if not left_out.get(name)]
    # Under its name the table is always complete.
    table, partial = out / TABLE, out / UNFINISHED
    with partial.open("w", newline="", encoding="utf-8") as stream:
        rows = csv.DictWriter(stream, columns, extrasaction="ignore", lineterminator="\n")
        rows.writeheader()
        paths = find_panoramas(panoramas)
        for number, path in enumerate(paths):
            scene = scenes.get(path.name, "")
            try:
                for row in _crops_of(path, (number, len(paths)), config, images):
                    rows.writerow({**row, "scene": scene, "panorama": path.name})
            except PanoramaError as error:
                if failed is None:
                    raise
                failed(error)
            done()
    partial.replace(table)
    return table


def _crops_of(
    path: Path, place: tuple[int, int], config: CropConfig, images: Path
) -> Iterator[dict[str, object]]:
    """Write the crops of a panorama; their rows of the table."""
    pixels = torch.from_numpy(np.array(read_panorama(path)))
    bank = PanoramaBank.create([pixels], [path.name])
    for tries in draw_crops(bank, path.stem, place, config):
        row = _crop(bank, tries, config.size, images)
        if row is not None:
            yield row


def _crop(
    bank: PanoramaBank, tries: Sequence[Crop], size: tuple[int, int], images: Path
) -> dict[str, object] | None:
    """Write the first of several views that is not black, and return its truth in radians; None
    if there is none."""
    only = torch.zeros(1, dtype=torch.long)
    for crop in tries:
        rotation = crop.panorama_from_camera[None].to(crop.camera.f.dtype)
        picture = render(bank, only, crop.camera, rotation, *size)
        if black_share(picture).item() >= MOST_BLACK:
            continue
        pixels = (255 * picture[0]).round().to(torch.uint8).permute(1, 2, 0).numpy()
        name = f"{crop.name}.jpg"
        content = BytesIO()
        Image.fromarray(pixels).save(content, "JPEG", quality=QUALITY, subsampling=0)
        write_bytes(images / name, content.getbuffer())
        roll, pitch = to_roll_pitch(crop.gravity.double())
        return {
            "fname": name,
            "width": size[0],
            "height": size[1],
            "vfov": crop.camera.vfov.item(),
            "roll": roll.item(),
            "pitch": pitch.item(),
            "k1": crop.camera.distortion.item(),
            "magnification": crop.camera.f.item() * 2 * math.pi / bank.width.item(),
            **crop.columns,
        }
    return None
