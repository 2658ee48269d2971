"""``geocalib convert``: cameras come back the same from every format that is read."""

from __future__ import annotations

import json
import os
import re
import struct
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner, Result

from calibrations import FAILURE, one
from geocalib.cameras import Camera
from geocalib.cli.app import app
from geocalib.formats import FORMATS, readers
from geocalib.formats.outputs import NO_GRAVITY
from geocalib.result.calibration import Calibration

MIDDLE = (320.0, 240.0)

LENSES = {
    "pinhole": one("pinhole", c=MIDDLE),
    "simple_radial": one("simple_radial", c=MIDDLE),
    "kannala_brandt": one("kannala_brandt", distortion=[0.0] * 4, c=MIDDLE),
}
"""Lenses that most formats hold."""

HELD = {
    "pinhole": {*FORMATS},
    "simple_radial": {*FORMATS},
    "kannala_brandt": {*FORMATS} - {"realityscan"},
}
"""The formats that can say a lens, some of them by a straight picture."""

EXACT = {"json", "csv", "colmap", "colmap-database", "opencv", "ros", "nerfstudio", "hugin"}
"""Formats that are read, and hold the lens itself."""

SOURCES = {
    "pinhole": sorted({*EXACT, "fspy"}),
    "simple_radial": sorted(EXACT),
    "kannala_brandt": sorted(EXACT),
}

PLACED = {"colmap-database", "nerfstudio", "blender", "gltf", "usd", "hugin"}
"""Formats whose files say where the photo is, from their own place, or when they were made."""

PAIRS = [
    (lens, a, b) for lens, sources in SOURCES.items() for a in sources for b in sorted(FORMATS)
]


def run(*words: object) -> Result:
    return CliRunner().invoke(app, ["convert", *map(str, words)])


@pytest.fixture
def photo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """In a folder of its own, where commands run."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "photo.jpg"
    Image.effect_noise((640, 480), 50).convert("RGB").save(path)
    return path


def grid(camera: Camera) -> np.ndarray:
    """(N, 3) the rays of pixels all over the picture."""
    across = np.linspace(0.02, 0.98, 7)
    pixels = np.stack(np.meshgrid(across, across), -1).reshape(-1, 2) * [640, 480]
    rays, valid = camera.unproject(pixels[None])
    assert valid.all()
    return rays[0]


def apart(camera: Camera, other: Camera) -> float:
    """Pixels between where two cameras see the same rays, at most."""
    pixels = [lens.project(grid(camera)[None])[0] for lens in (camera, other)]
    return float(np.abs(pixels[0] - pixels[1]).max())


@pytest.mark.parametrize(("lens", "a", "b"), PAIRS)
def test_every_pair(photo: Path, lens: str, a: str, b: str) -> None:
    given = LENSES[lens]
    source, target = FORMATS[a]([given], ".")[0], Path("new")
    read = readers.read(source).outcomes[0]
    assert isinstance(read, Calibration)
    assert apart(given.cameras, read.cameras) < 1e-6
    result = run(source, target, "--format", b)
    if FORMATS[b].shows_gravity and read.status == NO_GRAVITY:
        assert "does not say which way is down" in result.output
    elif b not in HELD[lens]:
        assert "geocalib undistort" in result.output
    else:
        assert result.exit_code == 0, result.output
        written = next(file for file in target.rglob("*") if not file.name.endswith("straight.jpg"))
        if b in EXACT:
            (back,) = readers.read(written).outcomes
            assert isinstance(back, Calibration)
            assert apart(given.cameras, back.cameras) < 1e-6
            assert os.path.basename(str(back.image)) == "photo.jpg"
            if NO_GRAVITY not in (read.status, back.status):
                np.testing.assert_allclose(back.gravity, given.gravity, atol=1e-9)
        return
    assert result.exit_code == 2
    assert result.output.count("\n") == 1
    assert not target.exists()


@pytest.mark.parametrize("b", ["json", "csv"])
@pytest.mark.parametrize("a", ["json", "csv"])
def test_records_are_kept_to_the_last_bit(photo: Path, a: str, b: str) -> None:
    records = [one(), one("ucm", image="b.jpg"), FAILURE]
    (source,) = FORMATS[a](records, "there")
    result = run(source, "new", "--format", b)
    # Some images have no answer.
    assert result.exit_code == 1
    (file,) = Path("new").iterdir()
    assert readers.read(file).outcomes == records


def test_the_name_says_the_format(photo: Path) -> None:
    (source,) = FORMATS["json"]([one("pinhole", c=MIDDLE)], "out.jsonl")
    for name, format in (
        ("a.csv", "csv"),
        ("cameras.txt", "colmap"),
        ("a.db", "colmap-database"),
        ("transforms.json", "nerfstudio"),
        ("a.json", "json"),
        ("photo.jpg.blender.py", "blender"),
        ("a.fspy", "fspy"),
        ("a.gltf", "gltf"),
        ("a.usda", "usd"),
        ("a.chan", "nuke"),
        ("a.pto", "hugin"),
        ("lens.xml", "lensfun"),
    ):
        result = run(source, name)
        assert result.exit_code == 0, result.output
        FORMATS[format]([one("pinhole", c=MIDDLE)], f"expected/{name}")
        expected = Path("expected", name).read_bytes()
        if format not in PLACED:
            assert Path(name).read_bytes() == expected
    for name, message in (
        ("a.yaml", "--format opencv or --format ros"),
        ("a.xmp", "--format xmp or --format realityscan"),
        ("folder", "in which format? Add --format NAME"),
    ):
        assert message in run(source, name).output


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jpg", None, "holds no cameras that are read here; read are json, csv, colmap,"),
        ("a.json", b"{}", "holds no cameras that are read here"),
        ("a.json", b'{"frames": [{}]}', "is no transforms.json with file_path"),
        ("a.json", b'{"frames": 3}', "is no transforms.json with file_path"),
        ("a.yaml", b"a: [", "is no YAML"),
        ("a.yaml", b"a: 1", "lacks image_width"),
        ("cameras.txt", b"1 PINHOLE 640", "must be CAMERA_ID MODEL WIDTH HEIGHT PARAMS"),
        ("cameras.txt", b"# nothing\n", "holds no camera"),
        ("cameras.bin", b"\1\0", "is cut short or is no COLMAP file"),
        ("a.db", b"SQLite format 3\0" + bytes(200), "cannot be read as a database of COLMAP's"),
        ("a.fspy", b"fspy" + struct.pack("<3I", 1, 5, 0), "is cut short"),
        ("a.pto", b"p f0\n", "is no project of Hugin's with images"),
        ("a.pto", b'p f0\ni w640 h480 f0 n"a.jpg"\n', "lacks w, h, f, v, r or p"),
        ("a.pto", b'p f0\ni w640 h480 f4 v50 r0 p0 n"a.jpg"\n', "a projection .* not read"),
        ("a.pto", b'p f0\ni w640 h480 f0 v50 r0 p0 a=7 n"a.jpg"\n', "an image lacks"),
        ("a.pto", b'p f0\ni w640 h480 f0 v50 r0 p0 a30 n"a.jpg"\n', "shows nothing but the middle"),
        ("nothing.db", b"", "holds no cameras that are read here"),
    ],
)
def test_files_of_others_are_one_sentence(
    photo: Path, name: str, content: bytes | None, message: str
) -> None:
    Path(name).write_bytes(photo.read_bytes() if content is None else content)
    result = run(name, "new.jsonl")
    assert result.exit_code == 2
    assert re.search(message, result.output), result.output
    assert name in result.output
    assert result.output.count("\n") == 1
    assert not Path("new.jsonl").exists()


def test_nothing_is_overwritten(photo: Path) -> None:
    (source,) = FORMATS["colmap"]([one("pinhole")], "model")
    Path("out.jsonl").write_text("mine")
    before = source.read_bytes()
    assert "out.jsonl exists" in run(source, "out.jsonl").output
    assert Path("out.jsonl").read_text() == "mine"
    for words in ((source, "--format", "colmap"), (photo, "--format", "json")):
        result = run(source, *words, "--overwrite")
        assert "is an input and stays as it is" in result.output
    assert source.read_bytes() == before
    assert run(source, "out.jsonl", "--overwrite").exit_code == 0
    assert run("gone", "new.json").output == "error: gone does not exist\n"


def test_a_photo_tells_how_it_is_turned(photo: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (640, 480)).save(photo, exif=exif)
    upright = one("simple_radial", size=(480, 640), c=(230.0, 330.0), orientation=6)
    (source,) = FORMATS["colmap"]([upright], "model")
    result = run(source, "photo.yaml", "--format", "opencv")
    assert result.exit_code == 0, result.output
    (back,) = readers.read("photo.yaml").outcomes
    assert isinstance(back, Calibration)
    np.testing.assert_allclose(back.cameras.K, upright.cameras.K)
    photo.unlink()
    assert "1 photo not found" in run(source, "again.yaml", "--format", "opencv").output


def test_what_is_not_known_stays_unknown(photo: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 8
    Image.new("RGB", (640, 480)).save(photo, exif=exif)
    (source,) = FORMATS["colmap"]([one("radial")], "model")
    assert run(source, "out.jsonl").exit_code == 0
    record = json.loads(Path("out.jsonl").read_text())
    assert not record["trusted_gravity"]
    assert record["status"] == NO_GRAVITY
    assert {value for value in record["sigma"].values() if not isinstance(value, list)} == {None}
    result = run("out.jsonl", "photo.jpg.blender.py")
    assert "out.jsonl does not say which way is down, which --format blender shows" in result.output


def test_folders(photo: Path) -> None:
    images = [one("pinhole", image=f"{name}.jpg", f=f) for name, f in (("a", 300.0), ("b", 400.0))]
    FORMATS["opencv"](images, "cameras")
    assert run("cameras", "out.csv").exit_code == 0
    found = readers.read("out.csv").outcomes
    assert [c.cameras.f.item() for c in found if isinstance(c, Calibration)] == [300.0, 400.0]
    FORMATS["hugin"](images[:1], "cameras")
    assert "cameras holds files of hugin and opencv; give one" in run("cameras", "o.db").output
    (Path("empty")).mkdir()
    assert "empty holds no file of cameras" in run("empty", "o.db").output


def test_foreign_transforms_tell_no_gravity(photo: Path) -> None:
    """The worlds of others stand as they like."""
    (source,) = FORMATS["nerfstudio"]([one("radial")], "transforms.json")
    values = json.loads(source.read_text())
    del values["pixels"]
    source.write_text(json.dumps(values))
    (read,) = readers.read(source).outcomes
    assert isinstance(read, Calibration)
    assert read.status == NO_GRAVITY
    assert (read.frame, read.cameras.f.item()) == ("stored", 500.0)
