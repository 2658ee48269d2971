"""A known length on a photo: how high its camera stands, in records and in files."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from calibrations import one
from geocalib import Calibration, Calibrator, Options, Ruler
from geocalib.arrays import Array
from geocalib.cli.app import app
from geocalib.errors import ConfigError, FormatError, GeoCalibError
from geocalib.formats import FORMATS, csv_table, fspy, json_lines
from geocalib.geometry import gravity as sphere
from geocalib.geometry.drawn import END
from geocalib.geometry.ruler import parse_ruler

TOWN = Path(__file__).parents[2] / "examples/town.jpg"
HEIGHT = 2.3
"""Metres of the cameras of these tests above the ground."""
NEAR, FAR = (-0.5, HEIGHT, 5.0), (1.0, HEIGHT, 6.5)
"""Points of the ground in the level frame of a camera: x right, y down, z ahead, metres."""


def pixel(calibration: Calibration, point: tuple[float, float, float]) -> list[float]:
    ray = np.array([point]) @ sphere.world_from_camera(calibration.gravity)
    pixels, seen = calibration.cameras.project(ray[None])
    assert seen.all()
    place: list[float] = pixels[0, 0].tolist()
    return place


def on_the_ground(calibration: Calibration) -> Ruler:
    ends = [*pixel(calibration, NEAR), *pixel(calibration, FAR)]
    return Ruler(*ends, metres=math.dist(NEAR, FAR))


def standing(calibration: Calibration, tall: float) -> Ruler:
    """Of a post at the nearer of the points, from its top to its foot."""
    top = (NEAR[0], NEAR[1] - tall, NEAR[2])
    return Ruler(*pixel(calibration, top), *pixel(calibration, NEAR), metres=tall, kind="up")


RULERS: list[Callable[[Calibration], Ruler]] = [
    on_the_ground,
    lambda calibration: standing(calibration, 0.8),
    lambda calibration: standing(calibration, 3.1),
]


@pytest.mark.parametrize("model", ["pinhole", "radial", "division", "kannala_brandt"])
@pytest.mark.parametrize("ruler", RULERS)
def test_a_known_camera_stands_as_high_as_it_does(
    model: str, ruler: Callable[[Calibration], Ruler]
) -> None:
    truth = one(model)
    marked = ruler(truth)
    for each in (marked, Ruler(*marked.ends[1], *marked.ends[0], marked.metres, marked.kind)):
        found = truth.measured(each).ruler
        assert found is not None
        assert found.camera_height == pytest.approx(HEIGHT, rel=1e-9)
        assert found.ruler == each


@pytest.mark.parametrize("ruler", RULERS)
def test_the_height_is_as_sure_as_it_says(ruler: Callable[[Calibration], Ruler]) -> None:
    """Against cameras, gravities and ends of the rulers that are off by chance."""
    truth = one("pinhole")
    names, sigmas = (
        ("roll direction", "pitch direction", "log f", "cx", "cy"),
        [1e-3] * 3 + [0.5] * 2,
    )
    truth = replace(truth, parameters=names, covariance=np.diag(np.square(sigmas)))
    marked = ruler(truth)
    said = truth.measured(marked).ruler
    assert said is not None
    rng, found = np.random.default_rng(0), []
    for _ in range(2000):
        off, ends = rng.normal(size=5) * sigmas, rng.normal(size=4) * END * 640
        camera = replace(truth.cameras, f=truth.cameras.f * np.exp(off[2]))
        camera = replace(camera, c=camera.c + off[3:])
        gravity = sphere.move(truth.gravity, off[:2])
        moved = Ruler(*(np.ravel(marked.ends) + ends).tolist(), marked.metres, marked.kind)
        other = replace(truth, cameras=camera, gravity=gravity).measured(moved).ruler
        assert other is not None
        found.append(other.camera_height)
    assert said.camera_height_sigma == pytest.approx(float(np.std(found)), rel=0.08)


def test_what_is_held_adds_nothing_to_its_sigma() -> None:
    truth = one("pinhole")
    held = replace(truth, parameters=(), covariance=np.zeros((0, 0)))
    sigmas = [each.measured(on_the_ground(truth)).ruler for each in (held, truth)]
    assert sigmas[0] is not None
    assert sigmas[1] is not None
    assert 0 < sigmas[0].camera_height_sigma < sigmas[1].camera_height_sigma
    unknown = replace(truth, covariance=np.full_like(truth.covariance, math.nan))
    record = unknown.measured(on_the_ground(truth)).to_dict()["ruler"]
    assert record["camera_height_sigma"] is None


@pytest.mark.parametrize(
    ("ruler", "why"),
    [
        (Ruler(300, 400, 500, 10, 1), r"ends at \(500, 10\), above the horizon: no ground"),
        (Ruler(300, 60, 300, 10, 1, "up"), "stands above the horizon: its foot must be on"),
        (Ruler(100, 400, 500, 400, 1, "up"), "its ends are not seen above each other"),
        (Ruler(300, 400, 300, 481, 1), r"ends at \(300, 481\), outside the picture of 640x480"),
        (Ruler(300, 400, 300, 400, 1), "is shorter than a pixel"),
        (Ruler(300, 400, 350, 410, 0), "must be longer than 0 metres, got 0"),
        (Ruler(300, 400, 350, 410, -2), "must be longer than 0 metres, got -2"),
        (Ruler(300, math.nan, 350, 410, 2), "must have finite numbers, got 300, nan"),
        (Ruler(300, 400, 350, 410, math.inf), "must have finite numbers"),
        (Ruler(300, 400, 350, 410, 1, "wall"), "lies along 'wall'; known: ground, up"),
    ],
)
def test_nonsense_is_refused_in_one_sentence(ruler: Ruler, why: str) -> None:
    with pytest.raises(ConfigError, match=f"^ruler .*{why}"):
        one("pinhole").measured(ruler)


def test_where_a_lens_shows_nothing_there_is_no_ground() -> None:
    bent = one("division", distortion=[0.6], f=200.0)
    with pytest.raises(ConfigError, match=r"ends at \(1, 479\), where the lens shows nothing"):
        bent.measured(Ruler(300, 300, 1, 479, 1))


def test_what_passes_below_the_camera_does_not_stand() -> None:
    down = one("pinhole", roll_deg=0, pitch_deg=-90, c=(320.0, 240.0))
    with pytest.raises(ConfigError, match="not seen above each other"):
        down.measured(Ruler(320, 140, 320, 400, 1, "up"))


@pytest.mark.parametrize("text", ["1,2,3,4", "1,2,3,4,a", "1,2,3,4,5,up,up", ""])
def test_a_ruler_that_is_none(text: str) -> None:
    with pytest.raises(ConfigError, match="ruler must be x0,y0,x1,y1,metres"):
        parse_ruler(text)


def test_a_ruler_as_it_is_typed() -> None:
    assert parse_ruler("1,2, 3,4.5,6") == Ruler(1, 2, 3, 4.5, 6)
    assert parse_ruler("1,2,3,4,5,UP") == Ruler(1, 2, 3, 4, 5, "up")


# Records


def test_its_record_comes_back(tmp_path: Path) -> None:
    truth = one()
    kept = [truth.measured(on_the_ground(truth)), truth.measured(standing(truth, 3.1)), truth]
    for format in (json_lines, csv_table):
        (file,) = format.write(kept, tmp_path)
        assert format.read(file) == kept
    record = kept[0].to_dict()
    for key, value in (("metres", -1.0), ("camera_height", 0.0), ("kind", "wall")):
        with pytest.raises(FormatError, match="ruler"):
            Calibration.from_dict({**record, "ruler": {**record["ruler"], key: value}})


@pytest.mark.parametrize("orientation", range(2, 9))
def test_the_pixels_of_another_frame_tell_the_same(orientation: int) -> None:
    truth = one(orientation=orientation)
    seen = truth.measured(on_the_ground(truth))
    stored = seen.in_frame("stored")
    assert stored.ruler is not None
    again = stored.measured(stored.ruler.ruler).ruler
    assert again is not None
    assert again.camera_height == pytest.approx(HEIGHT, rel=1e-9)
    assert again.camera_height_sigma == pytest.approx(stored.ruler.camera_height_sigma, rel=1e-4)


def test_a_smaller_picture_tells_the_same() -> None:
    truth = one("pinhole")
    small = truth.measured(on_the_ground(truth)).at(320, 120)
    assert small.ruler is not None
    again = small.measured(small.ruler.ruler).ruler
    assert again is not None
    assert again.camera_height == pytest.approx(HEIGHT, rel=1e-9)


# Files for other programs


def height_in(format: str, file: Path) -> float:
    """Metres, as the file has it."""
    if format == "fspy":
        return float(fspy.read(file).pose[2, 3])
    text = file.read_text()
    if format == "gltf":
        return float(json.loads(text)["nodes"][0]["matrix"][13])
    if format == "nuke":
        return float(text.split("\t")[2])
    pattern, unit = {
        "blender": (r"HEIGHT = (\S+)  # metres above the ground: by the ruler", 1),
        "maya": (r"PLACE = \(0\.0, (\S+), 0\.0\)  # .* by the ruler", 100),
        "usd": (r"transform = .*\(0\.0, (\S+), 0\.0, 1\.0\)\)", 100),
    }[format]
    (found,) = re.findall(pattern, text)
    return float(found) / unit


@pytest.mark.parametrize("format", ["blender", "fspy", "gltf", "maya", "nuke", "usd"])
def test_a_file_has_the_scale(tmp_path: Path, format: str) -> None:
    photo = tmp_path / "photo.jpg"
    Image.new("RGB", (640, 480)).save(photo)
    truth = one("pinhole", image=str(photo), c=(320.0, 240.0))
    file = FORMATS[format]([truth.measured(on_the_ground(truth))], tmp_path / "out")[0]
    assert height_in(format, file) == pytest.approx(HEIGHT, rel=1e-9)


def test_the_length_is_right_in_the_world_of_a_file(tmp_path: Path) -> None:
    photo = tmp_path / "photo.jpg"
    Image.new("RGB", (640, 480)).save(photo)
    truth = one("pinhole", image=str(photo))
    marked = on_the_ground(truth)
    (file,) = fspy.write([truth.measured(marked)], tmp_path / "out")
    project = fspy.read(file)
    rays, _ = project.camera.unproject(np.array([marked.ends]))
    way: Array = rays[0] * [1, -1, -1] @ project.pose[:3, :3].T
    feet = project.pose[:3, 3] - project.pose[2, 3] * way / way[:, 2:]
    assert np.abs(feet[:, 2]).max() < 1e-9
    assert math.dist(*feet.tolist()) == pytest.approx(marked.metres, rel=1e-9)


# Calls


def test_it_goes_with_one_photo(packaged: Calibrator) -> None:
    with pytest.raises(ConfigError, match="a ruler lies on one photograph"):
        packaged.calibrate([TOWN, TOWN], ruler=Ruler(300, 600, 500, 600, 1))
    with pytest.raises(ConfigError, match='lines "only" asks lines alone; drop ruler'):
        Options(lines="only", ruler=Ruler(300, 600, 500, 600, 1))
    with pytest.raises(GeoCalibError, match=r"town\.jpg: ruler ends at \(300, 0\), above the hor"):
        packaged.calibrate(TOWN, lines="off", ruler=Ruler(300, 0, 500, 600, 1))


def test_it_changes_nothing_but_the_scale(packaged: Calibrator) -> None:
    bare = packaged.calibrate(TOWN)
    ruler = Ruler(300, 600, 500, 600, 1)
    with_it = packaged.calibrate(TOWN, ruler=ruler)
    assert with_it == bare.measured(ruler)
    assert with_it.ruler is not None
    assert str(with_it.ruler) in with_it.verdict


def test_on_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "out.jsonl"
    asked = ["calibrate", str(TOWN), "--lines", "off", "--ruler"]
    result = CliRunner().invoke(app, [*asked, "300,600,500,600,1", "-o", str(file)])
    assert result.exit_code in (0, None), result.output
    (answer,) = json_lines.read(file)
    assert isinstance(answer, Calibration)
    assert answer.ruler is not None
    assert answer.ruler.metres == 1
    result = CliRunner().invoke(app, [*asked, "300,0,500,600,1", "--json"])
    assert result.exit_code == 1
    assert "above the horizon: no ground is there" in result.stderr
