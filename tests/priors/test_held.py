"""Gravity by what cameras noted of how they were held."""

from __future__ import annotations

import math
import struct
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, TiffImagePlugin
from PIL.ExifTags import Base

from geocalib.geometry.gravity import to_roll_pitch
from geocalib.geometry.orientation import upright
from geocalib.imaging import read_photo
from geocalib.priors.gravity_reading import GravityReading
from geocalib.priors.readings import (
    PHONE_SIGMA_DEG,
    held_gravity,
    is_cut,
    is_edited,
    noted_angle,
    read_gravity,
)
from maker_notes import OM_SYSTEM, apple, canon, olympus, panasonic, pentax, photo
from oracle_network import knowing, picture, truth

UP = {1: (-1.0, 0.0, 0.0), 3: (1.0, 0.0, 0.0), 6: (0.0, -1.0, 0.0), 8: (0.0, 1.0, 0.0)}
"""What the accelerometer of a phone feels as it is held level so that its picture, of that
orientation, is upright: x to the right and y to the top of the upright phone."""


PICTURE = Image.fromarray(picture((480, 360), 0))
"""For the network that knows the truth."""


ELEVATION = {Base.CameraElevationAngle: TiffImagePlugin.IFDRational(-125, 10)}


def reading(data: bytes) -> GravityReading:
    read = read_photo(data)
    gravity, notes = held_gravity(read.metadata, read.size)
    assert notes == ()
    assert gravity is not None
    return gravity


def angles(gravity: GravityReading) -> tuple[float, float]:
    """Roll and pitch, degrees."""
    roll, pitch = np.rad2deg(to_roll_pitch(np.array(gravity.gravity))).tolist()
    return roll, pitch


def refused(data: bytes) -> tuple[str, ...]:
    read = read_photo(data)
    gravity, notes = held_gravity(read.metadata, read.size)
    assert gravity is None
    return notes


class TestPhone:
    @pytest.mark.parametrize("orientation", UP)
    @pytest.mark.parametrize("kind", ["JPEG", "HEIF"])
    def test_a_level_phone(self, orientation: int, kind: str) -> None:
        # Large enough for the codec to keep the size.
        said = reading(photo(apple(UP[orientation]), orientation, (128, 96), kind=kind))
        assert said.gravity == pytest.approx((0, 1, 0), abs=1e-6)
        assert said.sigma_deg == pytest.approx(PHONE_SIGMA_DEG)

    def test_a_table_from_above(self) -> None:
        # Screen up: at rest the accelerometer feels -1 g along z.
        tilt = math.radians(60)
        felt = (0.0, -math.cos(tilt), -math.sin(tilt))
        _, pitch = angles(reading(photo(apple(felt), 6)))
        assert pitch == pytest.approx(-60, abs=1e-3)

    @pytest.mark.parametrize("orientation", [1, 3, 6, 8, 2, 4, 5, 7])
    def test_orientation_turns_it_as_it_turns_the_pixels(self, orientation: int) -> None:
        felt = (-0.8, -0.5, -math.sqrt(1 - 0.89))
        said = reading(photo(apple(felt), orientation))
        plain = reading(photo(apple(felt), 1))
        assert said.gravity == pytest.approx(upright(plain.gravity, orientation))

    def test_one_in_motion_is_less_sure(self) -> None:
        sigmas = [reading(photo(apple((-g, 0, 0)))).sigma_deg for g in (1.0, 1.02, 0.96, 1.1)]
        assert sigmas == sorted(sigmas)
        assert sigmas[-1] > 3 * sigmas[0]

    @pytest.mark.parametrize(
        "felt", [(-10.0, 0.0, 0.0), (0.0, 0.0, 0.0), [(0, 0)] * 3, [(-1, 1), (0, 0), (0, 1)]]
    )
    def test_absurd_ones_are_one_note(self, felt: list[float]) -> None:
        (note,) = refused(photo(apple(felt)))
        assert note == "how the camera was held makes no sense in the file and was ignored"

    def test_front_cameras_are_left_alone(self) -> None:
        lens = {Base.LensModel: "iPhone 13 front camera 2.71mm f/2.2"}
        assert refused(photo(apple(UP[1]), tags=lens)) == ()

    @pytest.mark.parametrize("held", [6, 8])
    def test_one_that_a_program_has_set_upright(self, held: int) -> None:
        # It stands, which no sensor does, and its orientation is lost.
        said = reading(photo(apple(UP[held]), 1, (48, 64)))
        assert said.gravity == pytest.approx((0, 1, 0), abs=1e-6)

    def test_one_that_was_set_upright_and_looks_straight_down(self) -> None:
        (note,) = refused(photo(apple((0.1, -0.2, -0.97)), 1, (48, 64)))
        assert "gravity does not tell which way" in note


class TestGauge:
    @pytest.mark.parametrize(
        "note",
        [panasonic(52, 118), olympus(-52, -118), olympus(-52, -118, signature=OM_SYSTEM)],
    )
    def test_roll_and_pitch(self, note: bytes) -> None:
        assert angles(reading(photo(note))) == pytest.approx((5.2, -11.8))

    @pytest.mark.parametrize("roll", [30, 930])
    def test_a_standing_camera_counts_from_either_side(self, roll: int) -> None:
        found, pitch = angles(reading(photo(panasonic(roll, -40), 6)))
        assert found == pytest.approx(3)
        assert pitch == pytest.approx(4)

    def test_a_pentax_stands_as_its_file_says(self) -> None:
        tags = {Base.Make: "PENTAX", Base.Model: "PENTAX K-5 II s"}
        note = pentax(struct.pack(">bbb", 11, -8, 6))
        assert angles(reading(photo(note, 6, tags=tags))) == pytest.approx((4, -3))
        # Its gauge saw it standing, and the file was not turned since.
        refused(photo(note, 1, tags=tags))

    @pytest.mark.parametrize("note", [canon(0, 0), canon(100, 1000), canon(100, 0)[:-30]])
    def test_canons_that_make_no_sense(self, note: bytes) -> None:
        assert len(refused(photo(note, tags={Base.Make: "Canon"}))) == 1

    @pytest.mark.parametrize("note", [panasonic(0, 0), olympus(10, 10, on=0), panasonic(0, 950)])
    def test_those_that_are_off_tell_nothing(self, note: bytes) -> None:
        refused(photo(note))


class TestElevation:
    @pytest.mark.parametrize("orientation", [1, 6])
    def test_it_is_the_pitch_and_nothing_else(self, tmp_path: Path, orientation: int) -> None:
        file = tmp_path / "photo.jpg"
        turned = PICTURE.transpose(Image.Transpose.ROTATE_90) if orientation == 6 else PICTURE
        file.write_bytes(photo(b"", orientation, picture=turned, tags=ELEVATION))
        # The network sees hardly anything: what is known of gravity is the file's.
        calibrator = knowing(truth((480, 360)), confidence_scale=1e3)
        found = calibrator.calibrate(file)
        bare = calibrator.calibrate(file, sensors=False)
        assert found.pitch_deg == pytest.approx(-12.5, abs=1)
        assert found.sigma.pitch_deg < 1.6 < 0.5 * bare.sigma.pitch_deg
        assert found.roll_deg == pytest.approx(bare.roll_deg, abs=0.1 * bare.sigma.roll_deg)
        # What is known of the pitch tells of the roll through the picture, and no more.
        assert found.sigma.roll_deg > 0.9 * bare.sigma.roll_deg
        (check,) = found.priors
        assert (check.quantity, check.source, check.used) == ("gravity", "elevation in EXIF", True)

    def test_other_photos_of_a_batch_are_answered_as_alone(self, tmp_path: Path) -> None:
        files = [tmp_path / f"{name}.jpg" for name in ("angle", "phone", "none")]
        files[0].write_bytes(photo(b"", picture=PICTURE, tags=ELEVATION))
        files[1].write_bytes(photo(apple(UP[1]), picture=PICTURE))
        files[2].write_bytes(photo(b"", picture=PICTURE))
        calibrator = knowing(truth((480, 360)))
        together = calibrator.calibrate(files)
        for file, each in zip(files, together, strict=True):
            alone = calibrator.calibrate(file)
            assert each.gravity.tolist() == alone.gravity.tolist()

    def test_photos_of_one_camera_do_without(self, tmp_path: Path) -> None:
        files = [tmp_path / f"{name}.jpg" for name in "ab"]
        for file in files:
            file.write_bytes(photo(b"", picture=PICTURE, tags=ELEVATION))
        for found in knowing(truth((480, 360))).calibrate(files, shared_intrinsics=True):
            assert found.priors == ()

    def test_the_angles_of_a_gauge_count_before_it(self) -> None:
        read = read_photo(photo(panasonic(52, 118), tags=ELEVATION))
        told = read_gravity(None, read.metadata, read.size)
        assert told.gravity is not None
        assert told.angle is None

    @pytest.mark.parametrize("value", [(95, 1), (-4000, 10), (1, 0)])
    def test_absurd_ones_are_one_note(self, value: tuple[int, int]) -> None:
        tags = {Base.CameraElevationAngle: TiffImagePlugin.IFDRational(*value)}
        angle, notes = noted_angle(tags, (64, 48))
        assert angle is None
        assert notes == ("EXIF CameraElevationAngle makes no sense and was ignored",)

    @pytest.mark.parametrize("below", [-1, 0xFFFFFFFF])
    def test_unknown_ones_are_none(self, below: int) -> None:
        tags = {Base.CameraElevationAngle: TiffImagePlugin.IFDRational(10, below)}
        assert noted_angle(tags, (64, 48)) == (None, ())


@pytest.mark.parametrize(
    ("software", "size", "edited", "cut"),
    [
        ("17.5.1", (4032, 3024), False, False),
        ("26.0", (3024, 3024), False, False),
        ("Photos 3.0", (3264, 2448), True, False),
        ("17.5.1", (1250, 938), True, False),
        ("17.5.1", (3622, 4829), True, True),
    ],
)
def test_what_was_done_since_leaves_traces(
    software: str, size: tuple[int, int], edited: bool, cut: bool
) -> None:
    tags: dict[int, object] = {Base.Make: "Apple", Base.Software: software}
    assert is_edited(tags, size) is edited
    assert is_cut(tags, size) is cut
    assert not is_edited({Base.Make: "OM Digital"}, size)


class TestCalibration:
    def test_it_is_used_by_default(self, tmp_path: Path) -> None:
        file = tmp_path / "phone.jpg"
        file.write_bytes(photo(apple((-1.0, 0.0, 0.0)), picture=PICTURE))
        calibrator = knowing(truth((480, 360)), confidence_scale=1e12)
        found = calibrator.calibrate(file)
        assert found.gravity.tolist() == pytest.approx([0, 1, 0], abs=1e-3)
        (check,) = found.priors
        assert (check.quantity, check.source) == ("gravity", "accelerometer in EXIF")
        assert calibrator.calibrate(file, sensors=False).priors == ()

    @pytest.mark.parametrize(
        ("software", "believed"), [("17.5.1", "sensor"), ("Photos 3.0", "picture")]
    )
    def test_who_is_believed_is_said(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, software: str, believed: str
    ) -> None:
        # The picture is level and sure of it; the phone felt that it lay on its side.
        monkeypatch.setattr("geocalib.priors.readings.LYING_SIDES", (480,))
        file = tmp_path / "phone.jpg"
        tags = {Base.Software: software}
        felt = apple((0.0, -1.0, 0.0))
        file.write_bytes(photo(felt, tags=tags, picture=PICTURE))
        known = truth((480, 360))
        found = knowing(known, confidence_scale=0.03).calibrate(file)
        (check,) = found.priors
        assert check.contradicts
        assert check.used is (believed == "sensor")
        assert str(check) in found.warnings
        expected = [1, 0, 0] if believed == "sensor" else known.gravity[0].tolist()
        # What the network saw is heeded by a hundredth.
        assert found.gravity.tolist() == pytest.approx(expected, abs=0.05)

    def test_damage_is_one_warning(self, tmp_path: Path) -> None:
        file = tmp_path / "phone.jpg"
        file.write_bytes(photo(apple((-1.0, 0.0, 0.0))[:-5], picture=PICTURE))
        warnings = knowing(truth((480, 360))).calibrate(file).warnings
        assert sum("maker's note in the EXIF data is damaged" in each for each in warnings) == 1


def test_it_costs_next_to_nothing() -> None:
    data = read_photo(photo(apple(UP[1])))
    start = time.perf_counter()
    for _ in range(100):
        held_gravity(data.metadata, data.size)
    assert (time.perf_counter() - start) / 100 < 3e-3
