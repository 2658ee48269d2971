"""What can be asked for, and what contradicts itself."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from fake_calibrator import FakeCalibrator
from geocalib.cameras import MODELS
from geocalib.cli.options import chosen_format
from geocalib.errors import ConfigError, PriorError
from geocalib.formats import FORMATS
from geocalib.pipeline.options import CameraModelName, Format, Keywords, Options


def test_the_names_are_those_of_the_package() -> None:
    assert [name for name in CameraModelName if name.named] == list(MODELS)
    assert [name for name in CameraModelName if not name.named] == ["auto"]
    assert {m for m in CameraModelName if m.wide} == {n for n, m in MODELS.items() if m.wide}
    assert list(Format) == list(FORMATS)


@pytest.mark.parametrize(
    ("known", "message"),
    [
        ({"focal": 500.0, "vfov_deg": 60.0}, "each say how long the lens is"),
        ({"focal": 0.0}, "focal must be a positive number of pixels, got 0"),
        ({"focal": float("nan")}, "focal must be a positive number of pixels, got nan"),
        ({"vfov_deg": 4.0}, "fov must lie between 5 and 150 degrees, got 4"),
        ({"vfov_deg": 60.0, "camera_model": CameraModelName.EUCM}, "eucm, .* give focal"),
        ({"roll_deg": 1.0}, "roll needs pitch as well"),
        ({"pitch_deg": 1.0}, "pitch needs roll as well"),
        ({"roll_deg": 181.0, "pitch_deg": 0.0}, "roll must lie between -180 and 180"),
        ({"roll_deg": 0.0, "pitch_deg": -91.0}, "pitch must lie between -90 and 90"),
    ],
)
def test_what_contradicts_itself(known: dict[str, Any], message: str) -> None:
    with pytest.raises(PriorError, match=message):
        Options(**known)


def test_what_goes_together() -> None:
    told = {"focal": 500.0, "roll_deg": 0.0, "pitch_deg": 0.0, "exif": False}
    options = Options("eucm", shared_intrinsics="exif", **told)  # type: ignore[arg-type]
    assert {name: getattr(options, name) for name in told} == told
    assert Options("radial").exif
    assert Options("radial", lines="only").exif


def test_the_fields_are_the_keywords() -> None:
    names = [field.name for field in fields(Options)]
    assert sorted(Keywords.__annotations__) == sorted([*names[1:], "fov"])


def test_both_names_of_the_field_of_view() -> None:
    assert Options.create(None, None, {"fov": 50}).vfov_deg == 50
    assert Options.create(None, None, {"vfov_deg": 50}).vfov_deg == 50
    with pytest.raises(ConfigError, match="two names of one value"):
        Options.create(None, None, {"fov": 50, "vfov_deg": 60})


def test_a_zero_is_a_value() -> None:
    assert Options(roll_deg=0, pitch_deg=0.0).given() == ["roll_deg", "pitch_deg"]
    assert Options(roll_deg=0, pitch_deg=0.0).to_request()["roll"] == 0
    assert Options(exif=True, sensors=True).given() == []
    with pytest.raises(ConfigError, match="drop roll_deg, pitch_deg"):
        Options(lines="only", roll_deg=0.0, pitch_deg=0.0)


@pytest.mark.parametrize(
    ("asked", "chosen"),
    [
        ((False, False, None, None), None),
        ((True, False, None, None), Format.JSON),
        ((True, False, None, "out.csv"), Format.JSON),
        ((False, True, None, None), Format.CSV),
        ((False, False, Format.ROS, "cameras"), Format.ROS),
        ((False, False, None, "a.b/out.jsonl"), Format.JSON),
        ((False, False, None, "out.JSON"), Format.JSON),
        ((False, False, None, "out.csv"), Format.CSV),
    ],
)
def test_the_format(asked: Any, chosen: Format | None) -> None:
    assert chosen_format(*asked) == chosen


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ((True, True, None, None), "--json and --csv contradict each other"),
        ((True, False, Format.ROS, "x"), "--json and --format ros contradict each other"),
        ((False, False, None, "out.txt"), "out.txt: in which format"),
        ((False, False, None, "a.csv/out"), "a.csv/out: in which format"),
        ((False, False, Format.COLMAP, None), "--format colmap writes files; say where with -o"),
    ],
)
def test_no_format(asked: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        chosen_format(*asked)


def test_the_calibrator_of_these_tests_knows_the_keywords_of_the_real_one() -> None:
    fake = FakeCalibrator()
    for call in (fake.calibrate, fake.calibrate_set):
        with pytest.raises(TypeError, match="unexpected keyword argument 'focol'"):
            call([], focol=1.0)
    assert fake.calls == []
