"""Profiles of lenses, as Lensfun itself takes them (lensfunpy)."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from PIL.ExifTags import IFD, Base

from calibrations import one
from geocalib.errors import FormatError
from geocalib.formats import lensfun
from geocalib.result.calibration import Calibration
from peers import Note, note


def photo(folder: Path, name: str = "photo.jpg", lens: str | None = None, **tags: Any) -> str:
    """A photo of a camera; tags are EXIF's."""
    exif = Image.Exif()
    exif[Base.Make], exif[Base.Model] = "Maker & Sons", "Camera <1>"
    inner = exif.get_ifd(IFD.Exif)
    if lens is not None:
        inner[Base.LensModel] = lens
    for tag, value in tags.items():
        inner[Base[tag]] = value
    path = folder / name
    Image.new("RGB", (64, 48)).save(path, exif=exif)
    return str(path)


def bent(file: Path, calibration: Calibration, focal_mm: float) -> tuple[np.ndarray, Any]:
    """(H, W, 2) where Lensfun takes pixels of the straight picture from, and its lens."""
    lensfunpy = pytest.importorskip("lensfunpy", reason="no lensfunpy here")
    database = lensfunpy.Database(paths=[str(file)], load_common=False, load_bundled=False)
    (camera,) = database.find_cameras("Maker & Sons", "Camera <1>")
    (lens,) = database.find_lenses(camera)
    assert lens.min_focal <= focal_mm <= lens.max_focal
    change = lensfunpy.Modifier(lens, camera.crop_factor, calibration.width, calibration.height)
    every = lensfunpy.ModifyFlags.DISTORTION | lensfunpy.ModifyFlags.GEOMETRY
    change.initialize(focal_mm, 8.0, 1000.0, 1.0, lensfunpy.LensType.RECTILINEAR, flags=every)
    return change.apply_geometry_distortion() + 0.5, lens


@pytest.mark.parametrize(
    ("model", "camera", "at_most"),
    [
        ("simple_radial", {"c": (320.0, 240.0)}, 0.35),
        ("simple_radial", {}, 0.35),
        ("radial", {"distortion": [-0.1, -0.02], "size": (480, 640), "c": (240.0, 320.0)}, 0.5),
        ("division", {}, 0.5),
        ("kannala_brandt", {"distortion": [0.0] * 4, "f": 300.0, "c": (320.0, 240.0)}, 0.5),
        ("double_sphere", {"distortion": [-0.2, 0.5], "f": 300.0, "c": (320.0, 240.0)}, 0.7),
    ],
)
def test_lensfun_bends_as_the_camera_does(
    tmp_path: Path, model: str, camera: dict[str, Any], at_most: float, record_property: Note
) -> None:
    """Straight pixels of a pinhole camera are where Lensfun takes them from. It counts half the
    shorter side as one pixel less, which makes a third of a pixel at the corners here."""
    calibration = one(model, image=photo(tmp_path, FocalLength=4.5), **camera)
    (file,) = lensfun.write([calibration], tmp_path)
    assert file == tmp_path / "lens.xml"
    found, _ = bent(file, calibration, 4.5)
    # Lensfun keeps the scale of the ideal lens.
    height, width = found.shape[:2]
    rows, columns = np.mgrid[:height:20, :width:20] + 0.5
    (lens,) = lensfun.to_ptlens(calibration.cameras)
    middle = calibration.cameras.c[0]
    plane = np.stack([columns, rows], -1).reshape(-1, 2) - middle
    rays = np.concatenate([plane / lens.focal, np.ones_like(plane[:, :1])], -1)
    expected, valid = calibration.cameras.project(rays[None])
    apart = np.abs(found[::20, ::20].reshape(-1, 2) - expected[0])[valid[0]].max()
    assert apart < at_most
    note(record_property, "lensfun", "lensfunpy", apart)


def test_one_entry_for_each_focal_length_and_the_surest_counts(tmp_path: Path) -> None:
    wide, tele = {"FocalLength": 4.5}, {"FocalLength": 9.0}
    images = [
        one(image=photo(tmp_path, "a.jpg", **wide), distortion=[-0.1], c=(320, 240)),
        one(image=photo(tmp_path, "b.jpg", **wide), f=900.0, distortion=[-0.05], c=(320, 240)),
        one(image=photo(tmp_path, "c.jpg", **tele), f=1000.0, distortion=[0.02], c=(320, 240)),
    ]
    (file,) = lensfun.write(images, tmp_path)
    rows = [line for line in file.read_text().splitlines() if "<distortion" in line]
    # The sigmas of all are 12.5 pixels: the second says most.
    assert [line.split('"')[3] for line in rows] == ["4.5", "9"]
    (lens,) = lensfun.to_ptlens(images[1].cameras)
    assert f'k1="{lens.abc[1]!r}"' in rows[0]


def test_a_lens_with_a_name_fits_any_camera(tmp_path: Path) -> None:
    calibration = one("pinhole", image=photo(tmp_path, lens="A 35mm f/2", FocalLength=35.0))
    (file,) = lensfun.write([calibration], tmp_path)
    text = file.read_text()
    assert "<mount>Generic</mount>" in text
    assert "<model>A 35mm f/2</model>" in text
    assert "<camera>" not in text


def test_focal_length_and_crop_factor_are_those_of_the_picture(tmp_path: Path) -> None:
    calibration = one("pinhole", image="gone.jpg", c=(320, 240))
    text = lensfun.dumps([calibration])
    equivalent = 500 / 800 * math.hypot(36, 24)
    assert f'focal="{equivalent:.2f}"' in text
    assert "<cropfactor>1.0000</cropfactor>" in text


def test_lenses_without_a_profile(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"photo\.jpg: .*polynomial misses .*geocalib undistort"):
        lensfun.write([one("kannala_brandt", distortion=[-0.03, 0.004, -0.001, 0])], tmp_path)
    assert list(tmp_path.iterdir()) == []
