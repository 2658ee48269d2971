"""Sensors, crops and free principal points reach the fit of a network that knows the truth."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from PIL.ExifTags import IFD, Base

from geocalib import Calibration, Failure, Prior
from geocalib.errors import ConfigError
from geocalib.geometry.gravity import from_roll_pitch
from geocalib.priors.enabled import VAGUE_RADIANS, with_starts
from geocalib.solver.known import Given
from oracle_network import check, knowing, picture, truth
from views import gravity_error_deg

SIZE = (480, 360)
NOTHING = 1e12
"""Confidence scale of a network whose answers weigh nothing."""


def save(
    folder: Path, name: str = "IMG", mark: int = 0, millimetres: int | None = None, **beside: Any
) -> str:
    """A picture with a 35 mm equivalent and a file beside it, where they are given."""
    exif = Image.Exif()
    exif[Base.Orientation] = 1
    if millimetres is not None:
        exif.get_ifd(IFD.Exif)[Base.FocalLengthIn35mmFilm] = millimetres
    file = folder / f"{name}.png"
    Image.fromarray(picture(SIZE, mark)).save(file, exif=exif)
    if beside:
        (folder / f"{name}.json").write_text(json.dumps(beside))
    return str(file)


def down(roll_deg: float, pitch_deg: float) -> list[float]:
    angles = np.deg2rad([roll_deg, pitch_deg])
    return from_roll_pitch(angles[0], angles[1]).tolist()


class TestSensors:
    def test_gravity_beside_the_photo(self, tmp_path: Path) -> None:
        said = down(20, 10)
        photo = save(tmp_path, gravity=said, frame="camera", sigma_deg=2)
        calibrator = knowing(truth(SIZE), confidence_scale=NOTHING)
        found = calibrator.calibrate(photo)
        assert found.gravity.tolist() == pytest.approx(said, abs=1e-4)
        assert found.sigma.gravity_deg == pytest.approx(2, rel=1e-3)

    def test_what_is_given_wins(self, tmp_path: Path) -> None:
        photo = save(tmp_path, millimetres=50, gravity=down(20, 10), frame="camera")
        known = truth(SIZE)
        found = knowing(known).calibrate(photo, focal=known.camera.f, gravity=known.gravity[0])
        check(found, known)
        assert {prior.source for prior in found.priors} == {"given"}
        beside = [prior.against for prior in found.priors if prior.against]
        assert beside == ["EXIF 50 mm", "accelerometer in IMG.json"]

    def test_where_it_is_off_nothing_is_read(self, tmp_path: Path) -> None:
        photo = save(tmp_path, millimetres=50, gravity=down(40, 10), frame="camera")
        known = truth(SIZE)
        found = knowing(known).calibrate(photo, exif=False, sensors=False)
        check(found, known)
        assert found.priors == ()

    def test_some_of_a_list_have_sensors(self, tmp_path: Path) -> None:
        truths = [truth(SIZE, roll_deg=5), truth(SIZE, roll_deg=-5)]
        first = save(tmp_path, "a", 0, gravity=down(5, -11), frame="camera", sigma_deg=0.01)
        second = save(tmp_path, "b", 1)
        found = knowing(*truths).calibrate([first, "missing.png", second])
        assert isinstance(found[1], Failure)
        for outcome, known in zip((found[0], found[2]), truths, strict=True):
            assert isinstance(outcome, Calibration)
            assert gravity_error_deg(outcome.gravity[None], known.gravity).item() < 0.02
        assert [len(o.priors) for o in found if isinstance(o, Calibration)] == [1, 0]

    def test_a_bad_file_is_a_warning(self, tmp_path: Path) -> None:
        photo = save(tmp_path, gravity=[0, 1], frame="camera")
        found = knowing(truth(SIZE)).calibrate(photo)
        (warning,) = found.warnings
        assert "IMG.json: gravity must be 3 numbers" in warning


class TestTension:
    def test_good_and_wrong_exif(self, tmp_path: Path) -> None:
        # 50 degrees over 360 pixels: f is 386 pixels of a diagonal of 600, 27.8 mm of 43.3.
        calibrator = knowing(truth(SIZE, vfov_deg=50), confidence_scale=0.03)
        good = calibrator.calibrate(save(tmp_path, millimetres=28), exif=True)
        (prior,) = good.priors
        assert prior.tension < 1
        assert good.trusted
        wrong = calibrator.calibrate(save(tmp_path, millimetres=50), exif=True)
        (prior,) = wrong.priors
        assert prior.tension > 3
        # What the picture says without it, although the answer was pulled.
        assert prior.estimate[0] == pytest.approx(386, rel=1e-2)
        assert prior.prior[0] == pytest.approx(50 * 600 / math.hypot(36, 24), rel=1e-6)
        assert any(warning.startswith("focal length: EXIF 50 mm (") for warning in wrong.warnings)
        assert not wrong.trusted

    def test_a_lens_of_sixty_metres(self, tmp_path: Path) -> None:
        photo = save(tmp_path, millimetres=60000)
        found = knowing(truth(SIZE)).calibrate(photo)
        assert "EXIF FocalLengthIn35mmFilm makes no sense and was ignored" in found.warnings

    def test_gravity(self, tmp_path: Path) -> None:
        calibrator = knowing(truth(SIZE, roll_deg=7, pitch_deg=-11), confidence_scale=0.03)
        for said, agrees in ((down(7.5, -11), True), (down(27, -11), False)):
            photo = save(tmp_path, gravity=said, frame="camera")
            (prior,) = calibrator.calibrate(photo).priors
            assert prior.contradicts is not agrees


class TestCrop:
    @pytest.mark.parametrize("given", ["single", "each"])
    def test_the_principal_point_is_the_middle_of_the_whole(self, given: str) -> None:
        # 480x360 of 1000x700, cut out from (10, 20).
        crop = (10, 20, 480, 360, 1000, 700)
        known = truth(SIZE, c=(490.0, 330.0))
        crops: Any = crop if given == "single" else [crop]
        (found,) = knowing(known).calibrate([picture(SIZE, 0)], crop=crops)
        check(found, known)
        assert found.sigma.principal_point == (0, 0)

    def test_exif_of_the_whole_tells_of_the_part(self, tmp_path: Path) -> None:
        photo = Image.fromarray(picture(SIZE, 0))
        exif = Image.Exif()
        exif[Base.Orientation] = 1
        whole = {Base.ExifImageWidth: 1000, Base.ExifImageHeight: 700}
        exif.get_ifd(IFD.Exif).update(whole | {Base.FocalLengthIn35mmFilm: 30})
        photo.save(tmp_path / "cut.png", exif=exif)
        calibrator = knowing(truth(SIZE), confidence_scale=NOTHING)
        path = str(tmp_path / "cut.png")
        cut = calibrator.calibrate(path, exif=True, crop=(0, 0, 480, 360, 1000, 700))
        assert cut.fy == pytest.approx(30 * math.hypot(1000, 700) / math.hypot(36, 24), rel=1e-3)
        assert not any("cropped" in warning for warning in cut.warnings)
        unknown = calibrator.calibrate(path, exif=True)
        assert unknown.priors == ()
        assert any("cropped" in warning for warning in unknown.warnings)

    def test_another_shape(self) -> None:
        with pytest.raises(ConfigError, match="not the shape of a crop of 360x360"):
            knowing(truth(SIZE)).calibrate(picture(SIZE, 0), crop=(0, 0, 360, 360, 480, 480))


class TestFreePrincipalPoint:
    def test_it_moves_to_the_truth(self) -> None:
        known = truth(SIZE, roll_deg=20, pitch_deg=-25, c=(290.0, 150.0))
        calibrator = knowing(known, confidence_scale=1e-6)
        found = calibrator.calibrate(picture(SIZE, 0), free_principal_point=0.2)
        assert (found.cx, found.cy) == (pytest.approx(290, abs=3), pytest.approx(150, abs=3))
        assert found.parameters[-2:] == ("cx", "cy")

    def test_its_sigma_is_a_share_of_the_longer_side(self) -> None:
        calibrator = knowing(truth(SIZE), confidence_scale=NOTHING)
        found = calibrator.calibrate(picture(SIZE, 0), free_principal_point=0.05)
        assert found.sigma.principal_point == (pytest.approx(24), pytest.approx(24))
        # Around the middle of the whole picture, of which half the width is left.
        cut = (0, 0, 480, 360, 960, 720)
        found = calibrator.calibrate(picture(SIZE, 0), free_principal_point=0.05, crop=cut)
        assert found.sigma.principal_point == (pytest.approx(48), pytest.approx(48))
        assert (found.cx, found.cy) == (pytest.approx(480, abs=0.1), pytest.approx(360, abs=0.1))

    @pytest.mark.parametrize("share", [0.0, -1.0, math.inf, math.nan])
    def test_bad_shares(self, share: float) -> None:
        with pytest.raises(ConfigError, match="free_principal_point is one sigma"):
            knowing(truth(SIZE)).calibrate(picture(SIZE, 0), free_principal_point=share)

    def test_a_point_that_is_given_is_not_free(self) -> None:
        with pytest.raises(ConfigError, match="principal_point already says"):
            knowing(truth(SIZE)).calibrate(
                picture(SIZE, 0), free_principal_point=0.1, principal_point=(240, 180)
            )


def test_where_sensors_are_silent_the_search_starts_as_the_picture_stands() -> None:
    down = np.array([1.0, 0.0, 0.0], np.float64)
    told = np.array([[0.0, 0.6, 0.8], [0.0, 1.0, 0.0]], np.float64)
    sigma = np.array([[0.02], [VAGUE_RADIANS]], np.float64)
    given = Given(None, Prior(told, sigma), None, None)
    gravity = with_starts(given, [down, down]).gravity
    assert isinstance(gravity, Prior)
    assert gravity.value.tolist() == [[0.0, 0.6, 0.8], [1.0, 0.0, 0.0]]
    assert np.array_equal(gravity.sigma, sigma)
    assert with_starts(given, [None, None]) is given
    held = replace(given, gravity=told)
    assert with_starts(held, [down, down]) is held
