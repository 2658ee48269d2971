"""What may speak beside the pixels, asked for on the command line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from typer.testing import CliRunner

from fake_calibrator import FakeCalibrator, Run
from geocalib.cli.app import app
from geocalib.result.calibration import Calibration, Outcome
from geocalib.result.evidence import PriorCheck
from maker_notes import by_phone

TOWN = Path(__file__).parents[2] / "examples" / "town.jpg"

PRIORS = (
    PriorCheck("focal", "EXIF 26 mm", (1200.0,), 60.0, (700.0,), 35.0, 6.4),
    PriorCheck("gravity", "gimbal in XMP", (0.0, 1.0, 0.0), 1.0, (0.0, 0.6, 0.8), 2.0, 0.3),
)

OPTIONS = {"sensors", "any_rotation", "free_principal_point", "crop"}


@pytest.fixture
def told(calibrator: FakeCalibrator, monkeypatch: pytest.MonkeyPatch) -> FakeCalibrator:
    """The first photo's sensors say something."""
    plain = calibrator._one

    def one(image: str, camera_model: str) -> Outcome:
        outcome = plain(image, camera_model)
        speaks = isinstance(outcome, Calibration) and image.endswith("1.png")
        return replace(outcome, priors=PRIORS) if speaks else outcome  # type: ignore[arg-type]

    monkeypatch.setattr(calibrator, "_one", one)
    return calibrator


@pytest.mark.parametrize(
    ("words", "keywords"),
    [
        ([], {}),
        (["--sensors"], {}),
        (["--sensors", "on"], {}),
        (["--sensors", "off"], {"sensors": False}),
        (["--any-rotation", "auto"], {}),
        (["--any-rotation", "on"], {"any_rotation": "on"}),
        (["--any-rotation", "off"], {"any_rotation": "off"}),
        (["--free-principal-point"], {"free_principal_point": 0.1}),
        (["--crop", "1,2,32,24,64,48.5"], {"crop": (1, 2, 32, 24, 64, 48.5)}),
    ],
)
def test_options_reach_the_calibrator(
    run: Run,
    calibrator: FakeCalibrator,
    photos: list[str],
    words: list[str],
    keywords: dict[str, Any],
) -> None:
    assert run("calibrate", photos[0], *words).exit_code == 0
    ((_, known),) = calibrator.calls
    assert {name: known[name] for name in OPTIONS & known.keys()} == keywords


@pytest.mark.parametrize("option", ["--sensors", "--exif"])
@pytest.mark.parametrize("command", ["calibrate", "show", "upright"])
@pytest.mark.parametrize("word", ["maybe", "true", "0", "OF"])
def test_a_wrong_word_is_no_photo(
    run: Run, photos: list[str], command: str, option: str, word: str
) -> None:
    result = run(command, photos[0], option, word)
    assert result.exit_code == 2
    assert f"Invalid value for '{option}': '{word}' is not one of 'on', 'off'." in result.stderr


@pytest.mark.parametrize("photo", ["1.png", "./1.png", "gone.png", "album"])
def test_a_photo_after_the_bare_option_is_a_photo(
    run: Run, calibrator: FakeCalibrator, photos: list[str], photo: str
) -> None:
    Path("album").mkdir()
    for place in ("1.png", "album/1.png"):
        Path(place).write_bytes(Path(photos[0]).read_bytes())
    result = run("calibrate", "--sensors", photo)
    assert (result.exit_code == 0) is (photo != "gone.png")
    assert "Invalid value" not in result.stderr


def test_photos_of_another_shape_than_the_crop_fail_alone(
    run: Run, calibrator: FakeCalibrator, photos: list[str]
) -> None:
    Image.new("RGB", (48, 64)).save("tall.png")
    words = ("--crop", "0,0,64,48,128,96", "--fov", "60")
    result = run("calibrate", "tall.png", "gone.png", photos[0], *words)
    assert result.exit_code == 1
    assert "tall.png is 48x64 pixels, which is not the shape of a crop of 64x48" in result.stderr
    ((images, known),) = calibrator.calls
    assert images == [photos[0]]
    assert known["vfov_deg"] == 60


def test_photos_are_decoded_by_the_calibrator_alone(
    run: Run, photos: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their sizes, which --crop asks for, are in their headers."""
    decoded = []

    def load(image: Image.Image, name: str) -> None:
        decoded.append(name)
        image.load()

    monkeypatch.setattr("geocalib.imaging.read._load", load)
    words = ("--crop", "0,0,64,48,128,96", "--fov", "60")
    assert run("calibrate", *photos[:2], *words).exit_code == 0
    assert decoded == photos[:2]


def test_show_takes_them_too(run: Run, calibrator: FakeCalibrator, photos: list[str]) -> None:
    flags = ("--sensors", "off", "--any-rotation", "on", "--free-principal-point")
    assert run("show", photos[0], *flags, "--crop", "0,0,64,48,128,96").exit_code == 0
    ((_, known),) = calibrator.calls
    assert known.keys() >= OPTIONS


def test_the_report(run: Run, told: FakeCalibrator, photos: list[str]) -> None:
    result = run("calibrate", *photos[:2], "--sensors", "--prior-report")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert "gravity: gimbal in XMP, agrees" in result.stdout
    (focal,) = [line for line in lines if "EXIF 26 mm" in line]
    assert "f 1200 ± 60 px" in focal
    assert "the picture: f 700 ± 35 px" in focal
    assert focal.rstrip().endswith("6.4")
    (gravity,) = [line for line in lines if "gimbal in XMP  " in line]
    assert "roll +0.0, pitch +0.0 ± 1.0 °" in gravity
    assert "roll +0.0, pitch -53.1 ± 2.0 °" in gravity


def test_beside_data_the_report_goes_to_standard_error(
    run: Run, told: FakeCalibrator, photos: list[str]
) -> None:
    result = run("calibrate", photos[0], "--exif", "--prior-report", "--json")
    (record,) = map(json.loads, result.stdout.splitlines())
    assert [prior["tension"] for prior in record["priors"]] == [6.4, 0.3]
    (gravity,) = [line for line in result.stderr.splitlines() if "gimbal in XMP" in line]
    assert "roll +0.0, pitch -53.1 ± 2.0 °" in gravity  # On one line, however long.


def test_the_prior_of_photographs(run: Run, calibrator: FakeCalibrator, photos: list[str]) -> None:
    run("calibrate", photos[0], "--prior", "photos")
    run("calibrate", photos[0], "--prior", "none")
    assert [known.get("prior") for _, known in calibrator.calls] == ["photos", "none"]


@pytest.mark.parametrize(
    ("words", "doubt"),
    [
        (["--fov", "20"], "focal length: given (1815 px, vFoV 20.0°) contradicts EXIF 21 mm ("),
        (["--focal", "1815"], "focal length: given (1815 px, vFoV 20.0°) contradicts EXIF 21 mm ("),
        (
            ["--roll", "0", "--pitch", "0"],
            "contradicts accelerometer in EXIF (roll +6.0°, pitch +8.0°)",
        ),
    ],
)
def test_what_is_given_against_the_file(tmp_path: Path, words: list[str], doubt: str) -> None:
    """With the packaged network, from the words to the table and the record."""
    photo = tmp_path / "phone.jpg"
    photo.write_bytes(by_phone(Image.open(TOWN), 6, 8, 21))
    asked = ["calibrate", str(photo), *words, "--lines", "off"]
    table = CliRunner().invoke(app, asked).stdout
    assert doubt in " ".join(table.split())
    assert "ok" not in table.split()
    record = json.loads(CliRunner().invoke(app, [*asked, "--json"]).stdout)
    assert any(doubt in warning for warning in record["warnings"])
    assert max(prior["tension"] for prior in record["priors"] if prior["against"]) > 3
    silent = [*asked, "--json", "--exif", "off", "--sensors", "off"]
    record = json.loads(CliRunner().invoke(app, silent).stdout)
    assert [prior["against"] for prior in record["priors"]] == [None]


def test_silent_sensors(run: Run, calibrator: FakeCalibrator, photos: list[str]) -> None:
    result = run("calibrate", photos[0], "--sensors", "--prior-report")
    assert "no sensor says anything" in result.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--prior-report", "--exif", "off", "--sensors", "off"], "drop --exif off"),
        (["--crop", "1,2,3"], "--crop takes six numbers"),
        (["--crop", "a,b,c,d,e,f"], "--crop takes six numbers"),
        (["--lines", "only", "--any-rotation", "on"], "asks lines alone; drop any_rotation"),
        (["--shared", "--prior", "photos"], "drop prior"),
    ],
)
def test_what_cannot_be_asked(
    run: Run, calibrator: FakeCalibrator, photos: list[str], words: list[str], says: str
) -> None:
    result = run("calibrate", photos[0], *words)
    assert result.exit_code == 2
    assert says in result.stderr
    assert calibrator.calls == []
