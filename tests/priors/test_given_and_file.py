"""What a caller gives is held against what the file says of the same, whatever the picture says."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from PIL.ExifTags import IFD, Base

from geocalib import Calibration, Prior
from geocalib.geometry.gravity import from_roll_pitch
from maker_notes import by_phone
from oracle_network import knowing, picture, truth

SIZE = (480, 360)
NOTHING = 1e12
"""Confidence scale of a network whose answers weigh nothing: no picture contradicts anything."""
SAID = "EXIF 28 mm"
"""50 degrees high: f is 386 pixels."""
FELT = "accelerometer in IMG.json"


def save(folder: Path, tags: dict[int, Any], name: str = "IMG", **beside: Any) -> str:
    """A picture with EXIF tags of the second directory, and a file beside it where it is given."""
    exif = Image.Exif()
    exif[Base.Orientation] = 1
    exif.get_ifd(IFD.Exif).update(tags)
    Image.fromarray(picture(SIZE, 0)).save(folder / f"{name}.png", exif=exif)
    if beside:
        (folder / f"{name}.json").write_text(json.dumps(beside))
    return str(folder / f"{name}.png")


def told(folder: Path, name: str = "IMG", millimetres: int = 28) -> str:
    """A picture whose file says 50 degrees, roll 5 and pitch 8."""
    down = {"gravity": direction(5, 8), "frame": "camera", "sigma_deg": 1.0}
    return save(folder, {Base.FocalLengthIn35mmFilm: millimetres}, name, **down)


def direction(roll_deg: float, pitch_deg: float) -> list[float]:
    down: list[float] = from_roll_pitch(*map(math.radians, (roll_deg, pitch_deg))).tolist()
    return down


def found(photo: str, **options: Any) -> Calibration:
    known = truth(SIZE, vfov_deg=50, roll_deg=5, pitch_deg=8)
    return knowing(known, confidence_scale=NOTHING).calibrate(photo, **options)


CONTRADICTED: list[tuple[dict[str, Any], str, str]] = [
    (
        {"vfov_deg": 20.0},
        SAID,
        "focal length: given (1021 px, vFoV 20.0°) contradicts EXIF 28 mm (",
    ),
    ({"vfov_deg": Prior(20.0, 1.0)}, SAID, "focal length: given (1021 px, vFoV 20.0°) contradicts"),
    ({"focal": 1021.0}, SAID, "focal length: given (1021 px, vFoV 20.0°) contradicts EXIF 28 mm ("),
    ({"focal": Prior(1021.0, 50.0)}, SAID, "focal length: given (1021 px"),
    (
        {"roll_deg": 0.0, "pitch_deg": 0.0},
        FELT,
        "gravity: given (roll +0.0°, pitch +0.0°) contradicts accelerometer in IMG.json "
        "(roll +5.0°, pitch +8.0°) by ",
    ),
    ({"gravity": [0.0, 3.0, 0.0]}, FELT, "gravity: given (roll +0.0°, pitch +0.0°) contradicts"),
    ({"gravity": Prior([0.0, 1.0, 0.0], 0.01)}, FELT, "gravity: given (roll +0.0°, pitch +0.0°)"),
    ({"roll_deg": Prior(-5.0, 0.5)}, FELT, "gravity: given (roll -5.0°, pitch +"),
]


@pytest.mark.parametrize(("options", "against", "words"), CONTRADICTED)
def test_what_the_file_contradicts_is_doubted(
    tmp_path: Path, options: dict[str, Any], against: str, words: str
) -> None:
    answer = found(told(tmp_path), **options)
    (check,) = [prior for prior in answer.priors if prior.against is not None]
    assert (check.source, check.against) == ("given", against)
    assert check.contradicts
    assert [one for one in answer.warnings if one.startswith(words) and f" {against} (" in one]
    assert not answer.trusted_gravity
    assert not answer.trusted_fov
    again = Calibration.from_json(answer.to_json())
    assert again.priors == answer.priors


@pytest.mark.parametrize(
    "options",
    [
        {"vfov_deg": 50.0},
        {"focal": Prior(380.0, 10.0)},
        {"roll_deg": 5.5, "pitch_deg": 7.5},
        {"pitch_deg": Prior(8.0, 1.0)},
    ],
)
def test_what_the_file_agrees_with_is_said_to_agree(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    answer = found(told(tmp_path), **options)
    (check,) = [prior for prior in answer.priors if prior.against is not None]
    assert check.tension < 1
    assert not any("given" in warning for warning in answer.warnings)
    agreed = [line for line in answer.verdict if "given" in line]
    assert len(agreed) == 1
    assert agreed[0].endswith(f"given, agrees with the picture and {check.against}")


def test_the_tension_is_the_distance_in_sigmas_of_both(tmp_path: Path) -> None:
    answer = found(told(tmp_path), roll_deg=Prior(8.0, 2.0), pitch_deg=Prior(8.0, 2.0))
    (check,) = [prior for prior in answer.priors if prior.against is not None]
    # 3 degrees of roll; the sensor's 1 degree is as much across a circle of pitch 8.
    one_angle = 3 / math.hypot(2, 1 / math.cos(math.radians(8)))
    assert check.tension == pytest.approx(chi_of_two(one_angle), rel=1e-3)
    assert (check.prior_sigma, check.estimate_sigma) == pytest.approx((2, 1))


def chi_of_two(distance: float) -> float:
    """The normal deviate that is as rare as this distance of two such variables."""
    from statistics import NormalDist

    return -NormalDist().inv_cdf(0.5 * math.exp(-0.5 * distance**2))


def test_where_the_file_is_not_asked_nothing_is_held_against_it(tmp_path: Path) -> None:
    options = {"vfov_deg": 20.0, "roll_deg": 0.0, "pitch_deg": 0.0}
    answer = found(told(tmp_path), exif=False, sensors=False, **options)
    assert [prior.against for prior in answer.priors] == [None, None]


def test_an_angle_is_held_against_that_angle_alone(tmp_path: Path) -> None:
    """A file with the elevation of the view says nothing of its roll."""
    photo = save(tmp_path, {Base.CameraElevationAngle: 8.0})

    def against(**options: Any) -> list[bool]:
        priors = found(photo, **options).priors
        return [prior.contradicts for prior in priors if prior.against is not None]

    assert against(roll_deg=40.0, pitch_deg=8.0) == [False]
    assert against(roll_deg=5.0, pitch_deg=30.0) == [True]
    assert against(pitch_deg=Prior(30.0, 1.0)) == [True]
    assert against(roll_deg=Prior(40.0, 1.0)) == []


def test_every_instrument_has_its_say(tmp_path: Path) -> None:
    """What contradicts a surer instrument would be ignored, and is no less a contradiction."""
    pixels = Image.fromarray(picture(SIZE, 0))
    (tmp_path / "IMG.jpg").write_bytes(by_phone(pixels, 5, 8, 28))
    beside = {"gravity": direction(-20, 8), "frame": "camera", "sigma_deg": 0.5}
    (tmp_path / "IMG.json").write_text(json.dumps(beside))
    answer = found(str(tmp_path / "IMG.jpg"), roll_deg=-20, pitch_deg=8)
    held = {prior.against: prior.contradicts for prior in answer.priors if prior.against}
    assert held == {"accelerometer in EXIF": True, "accelerometer in IMG.json": False}


def test_each_photo_is_held_against_its_own_file(tmp_path: Path) -> None:
    photos = [told(tmp_path, "a", 28), told(tmp_path, "b", 70)]
    known = truth(SIZE, vfov_deg=50, roll_deg=5, pitch_deg=8)
    calibrator = knowing(known, known, confidence_scale=1.0)
    for answers in (
        calibrator.calibrate(photos, vfov_deg=50),
        list(calibrator.calibrate_set(photos, vfov_deg=50)),
    ):
        doubted = []
        for answer in answers:
            assert isinstance(answer, Calibration)
            doubted.append(any("contradicts EXIF 70 mm (" in one for one in answer.warnings))
        assert doubted == [False, True]


@pytest.mark.parametrize(("k1", "contradicts"), [(0.2, True), (-0.058, False)])
def test_a_lens_is_held_against_that_of_its_name(
    tmp_path: Path, k1: float, contradicts: bool
) -> None:
    pytest.importorskip("lensfunpy", reason="no lensfunpy here")
    exif = Image.Exif()
    exif[Base.Make], exif[Base.Model] = "Canon", "Canon EOS 5D Mark II"
    inner = exif.get_ifd(IFD.Exif)
    inner[Base.LensModel], inner[Base.FocalLength] = "EF24-105mm f/4L IS USM", 24.0
    Image.fromarray(picture((480, 320), 0)).save(tmp_path / "photo.png", exif=exif)
    calibrator = knowing(truth((480, 320), 53.0), confidence_scale=NOTHING)
    photo = str(tmp_path / "photo.png")
    # Lensfun shares the same bend out over two numbers in another way.
    for distortion in ([k1], [k1, 0.0]):
        answer = calibrator.calibrate(photo, distortion=distortion)
        (check,) = [prior for prior in answer.priors if prior.against is not None]
        assert check.against == "Lensfun Canon EF 24-105mm f/4L IS USM"
        assert check.contradicts is contradicts
        if contradicts:
            assert any(one.startswith("distortion: given (+0.200") for one in answer.warnings)
