"""The result of one image: what it says, its record, and the way from a fit to it."""

from __future__ import annotations

import base64
import io
import json
import math
import re
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from PIL import Image

from any_calibrations import calibrations
from calibrations import FAILURE, SIZE, one
from geocalib import Calibrator, Camera, Fields, Prior, Status, fit
from geocalib.arrays import to_numpy
from geocalib.errors import CameraError, FormatError
from geocalib.result.calibration import Calibration, Failure
from geocalib.result.schema import RECORD
from geocalib.result.trust import Doubt, judged
from geocalib.result.uncertainty import Trust, Uncertainty
from lenses import ALL_MODELS
from libraries import assert_same, numpy_of
from views import random_cameras, random_gravity, see, with_noise

# What it says -----------------------------------------------------------------------------------


def test_values_by_hand() -> None:
    c = one("pinhole", f=240.0, aspect=4 / 3, c=(300, 200), roll_deg=30, pitch_deg=-20)
    assert (c.width, c.height, c.camera_model) == (640, 480, "pinhole")
    assert (c.fx, c.fy, c.cx, c.cy) == (320, 240, 300, 200)
    assert c.K.tolist() == [[320, 0, 300], [0, 240, 200], [0, 0, 1]]
    assert c.distortion == ()
    assert c.roll_deg == pytest.approx(30)
    assert c.pitch_deg == pytest.approx(-20)
    assert (c.vfov_deg, c.hfov_deg) == pytest.approx((90, 90))
    assert one("radial").distortion == (-0.3, 0.1)


@pytest.mark.parametrize("model", ALL_MODELS)
def test_the_calibration_of_a_resampled_image(model: str) -> None:
    """Pixels scale with the image, angles stay."""
    whole = one(model, aspect=1.1, roll_deg=12)
    small = whole.at(320, 120)
    assert (small.width, small.height) == (320, 120)
    assert pytest.approx(np.diag([1 / 2, 1 / 4, 1]) @ whole.K) == small.K
    assert whole.K_at(320, 120) == pytest.approx(small.K)
    assert np.diag([640, 480, 1]) @ whole.K_at(1, 1) == pytest.approx(whole.K)
    pixels = np.array([[[200.0, 150.0], [320.0, 240.0], [400.0, 100.0]]])
    rays, _ = whole.cameras.unproject(pixels)
    again, _ = small.cameras.unproject(pixels * [1 / 2, 1 / 4])
    np.testing.assert_allclose(again, rays, atol=1e-12)
    assert small.gravity.tolist() == whole.gravity.tolist()


def test_the_sigmas_of_a_resampled_image() -> None:
    free = ("roll direction", "pitch direction", "log f", "cx", "cy", "log aspect")
    camera, down = one("pinhole", aspect=1.2).cameras, one().gravity
    root = np.diag([0.01, 0.02, 0.03, 5.0, 6.0, 0.01]) + 0.001
    covariance = root @ root.T
    whole = replace(
        one("pinhole", aspect=1.2),
        parameters=free,
        covariance=covariance,
        sigma=Uncertainty.of(camera, down, covariance, free),
    )
    small = whole.at(320, 120)
    expected = Uncertainty.of(small.cameras, down, small.covariance, free)
    assert astuple(small.sigma)[:7] == pytest.approx(astuple(expected)[:7])
    assert small.sigma.principal_point == pytest.approx(expected.principal_point)
    assert small.sigma.principal_point[0] == pytest.approx(whole.sigma.principal_point[0] / 2)
    assert Calibration.from_json(small.to_json()) == small


def test_what_tools_for_depth_ask() -> None:
    c = one("pinhole", f=240.0, aspect=4 / 3, c=(300, 200), roll_deg=30, pitch_deg=-20)
    assert (c.fov_x, c.f_px) == (pytest.approx(90), 320)
    R = c.T_WC[:3, :3]
    np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(R @ c.gravity, [0, 0, -1], atol=1e-12)
    # It heads along y, and looks down as the pitch says.
    ahead = np.radians(-20)
    np.testing.assert_allclose(R[:, 2], [0, np.cos(ahead), np.sin(ahead)], atol=1e-12)
    assert c.T_WC[:, 3].tolist() == [0, 0, 0, 1]


def test_trusted() -> None:
    assert one().trusted
    assert not replace(one(), trust=Trust(fov=False)).trusted
    assert not replace(one(), status=str(Status.MAX_ITERATIONS)).trusted


@pytest.mark.parametrize("model", ALL_MODELS)
def test_horizon_is_horizontal_and_in_the_image(model: str) -> None:
    c = one(model)
    points = c.horizon()
    assert len(points) > 100
    assert bool(((points >= 0) & (points <= c.cameras.size)).all())
    rays, valid = c.cameras.unproject(points[None])
    assert bool(valid.all())
    np.testing.assert_allclose(rays[0] @ c.gravity, 0, atol=1e-9)


def test_horizon_out_of_view() -> None:
    assert one("pinhole", pitch_deg=80).horizon().shape == (0, 2)


def test_equality_and_repr_leave_fields_out() -> None:
    up = np.zeros((1, 2, 4, 4))
    fields = Fields(up, up[:, :1], up[:, 0], up[:, 0])
    seen = replace(one(), fields=fields)
    assert seen == one()
    assert "fields" not in repr(seen)
    assert seen.to_dict() == one().to_dict()
    assert one() != one(f=501.0)
    assert one() != one(roll_deg=5.1)
    assert one() != FAILURE
    assert one() != "photo.jpg"


@pytest.mark.parametrize("name", ["undistort", "upright", "rectify"])
@pytest.mark.parametrize("border", ["keep", "crop"])
def test_warps_are_those_of_imaging(name: str, border: str) -> None:
    from geocalib.imaging import warp

    c = one(size=(64, 48), c=(32, 24), f=50.0)
    photo = Image.fromarray(np.arange(64 * 48 * 3, dtype=np.uint8).reshape(48, 64, 3))
    placed = () if name == "undistort" else (c.gravity,)
    expected = getattr(warp, name)(photo, c.cameras, *placed, border)
    found = getattr(c, name)(photo, border)
    assert np.array_equal(np.asarray(found.image), np.asarray(expected.image))
    assert np.array_equal(found.camera.K, expected.camera.K)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cameras": Camera.create("pinhole", 500, SIZE, dtype=np.float32)}, "NumPy in float64"),
        ({"gravity": torch.tensor([0.0, 1.0, 0.0])}, "NumPy in float64"),
        ({"gravity": np.ones((1, 3))}, r"gravity \(3,\), got 1 cameras and \(1, 3\)"),
        (
            {"cameras": Camera.create("pinhole", np.ones(2), size=(640, 480))},
            "one camera .* got 2 cameras",
        ),
        ({"parameters": ("log f",)}, r"covariance must be \(1, 1\) .* \(log f\), got \(4, 4\)"),
        ({"gravity": np.full((3,), np.nan)}, "photo.jpg: .* not finite"),
    ],
)
def test_impossible_calibrations(change: dict[str, Any], message: str) -> None:
    with pytest.raises(CameraError, match=message):
        replace(one(), **change)


# The record -------------------------------------------------------------------------------------


def refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is not JSON")


@settings(max_examples=30, deadline=None)
@given(calibrations())
def test_json_round_trip_is_exact(written: Calibration) -> None:
    text = written.to_json()
    assert "\n" not in text
    assert text.isascii()
    json.loads(text, parse_constant=refuse)
    read = Calibration.from_json(text)
    assert read == written
    assert read.to_json() == text
    for name in ("f", "c", "distortion", "size", "focal", "K"):
        assert np.array_equal(getattr(read.cameras, name), getattr(written.cameras, name))
    assert np.array_equal(read.gravity, written.gravity)
    np.testing.assert_array_equal(read.covariance, written.covariance)
    np.testing.assert_equal(read.sigma, written.sigma)
    assert read.cameras.model is written.cameras.model


def test_record_by_hand() -> None:
    c = replace(one("pinhole", c=(320, 240), roll_deg=0, pitch_deg=0), warnings=("so so",))
    record = c.to_dict()
    assert tuple(record) == RECORD.keys
    assert record["schema"] == "geocalib/4"
    assert record["image"] == "photo.jpg"
    assert record["distortion"] == []
    assert record["gravity"] == [0.0, 1.0, 0.0]
    assert record["vfov_deg"] == pytest.approx(2 * math.degrees(math.atan(0.48)))
    assert record["hfov_deg"] == pytest.approx(2 * math.degrees(math.atan(0.64)))
    assert record["parameters"] == ["roll direction", "pitch direction", "log f"]
    assert np.shape(record["covariance"]) == (3, 3)
    assert record["status"] == "converged"
    assert record["warnings"] == ["so so"]
    nothing = ("error", "lines", "request", "photo")
    assert [record[key] for key in nothing] == [None] * 4
    assert record["priors"] == []
    assert record["sigma"] == {
        "roll_deg": 0.3,
        "pitch_deg": 0.4,
        "gravity_deg": 0.45,
        "vfov_deg": 1.2,
        "hfov_deg": 1.5,
        "focal": 12.5,
        "aspect": 0.0,
        "distortion": [],
        "principal_point": [0.0, 0.0],
    }


def test_failure_record() -> None:
    failure = Failure("a.jpg", 640, 480, "failed: no pixel has a positive confidence")
    record = failure.to_dict()
    assert tuple(record) == RECORD.keys
    known = {"schema": "geocalib/4", "image": "a.jpg", "width": 640, "height": 480}
    known |= {"error": failure.error}
    lists = ("distortion", "parameters", "covariance", "warnings", "priors", "lens", "drawn")
    assert record == dict.fromkeys(RECORD.keys) | known | {key: [] for key in lists}
    assert Failure.from_dict(json.loads(failure.to_json())) == failure
    with pytest.raises(FormatError, match="x: holds no calibration: failed: no pixel"):
        Calibration.from_dict(record, "x")
    with pytest.raises(FormatError, match="x: holds a calibration"):
        Failure.from_dict(one().to_dict(), "x")
    with pytest.raises(FormatError, match=r"a\.jpg: a failure needs an error"):
        Failure("a.jpg", None, None, "")


def test_what_others_add_to_a_record_is_passed_over() -> None:
    assert Calibration.from_dict(one().to_dict() | {"seconds": 0.1}) == one()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"schema": "geocalib/9"},
            "unknown schema 'geocalib/9'; .* reads 'geocalib/1', 'geocalib/2', 'geocalib/3' and",
        ),
        ({"camera_model": "fish"}, "unknown camera model 'fish'; known: pinhole, "),
        ({"camera_model": None}, "camera_model must be text, got None"),
        (
            {"distortion": [0.1, 0.2]},
            r"distortion must be a list of 1 numbers \(k1\) for simple_radial, got \[0.1, 0.2\]",
        ),
        ({"distortion": [None]}, r"distortion must be a list of numbers, got \[None\]"),
        ({"width": 640.5}, "width must be a whole number that is not negative, got 640.5"),
        ({"height": 0}, "height must be a positive whole number of pixels, got 0"),
        ({"fx": None}, "fx must be a number, got None"),
        ({"fy": -1}, r"fy must be positive, between 0.00064 and 6.4e\+08 pixels, got -1"),
        ({"cx": True}, "cx must be a number, got True"),
        ({"cy": math.inf}, "cy must be a number, got inf"),
        ({"gravity": [0, 1]}, r"gravity must be a list of 3 numbers, got \[0, 1\]"),
        ({"gravity": [0, 2, 0]}, r"gravity must be a unit vector, got \[0, 2, 0\]"),
        ({"sigma": 3}, "sigma must be an object, got 3"),
        ({"sigma": {}}, "sigma.roll_deg is missing"),
        (
            {"sigma": one("radial").to_dict()["sigma"]},
            r"sigma.distortion must be a list of 1 numbers or nulls, .* got \[0.01, 0.01\]",
        ),
        ({"covariance": [[1]]}, r"covariance must be 4 rows of 4, .* parameters, got \[\[1\]\]"),
        ({"covariance": [[1]] * 4}, "covariance must be 4 rows of 4, one for each of parameters"),
        ({"covariance": [1]}, r"covariance\[0\] must be a list of numbers or nulls, got 1"),
        ({"parameters": "f"}, "parameters must be a list of texts, got 'f'"),
        ({"warnings": [1]}, r"warnings must be a list of texts, got \[1\]"),
        ({"status": ""}, "status must be text, got ''"),
        ({"image": 7}, "image must be text, got 7"),
        ({"error": 7}, "error must be text, got 7"),
        ({"error": ""}, "error must be text, got ''"),
        ({"priors": None}, "priors must be a list of objects, got None"),
        ({"request": {"fov": 60}}, "request must be text, got {'fov': 60}"),
        ({"photo": {"bytes": 1}}, "photo.modified_ns is missing"),
    ],
)
def test_bad_records_are_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(FormatError, match=f"^r.jsonl, line 3: {message}"):
        Calibration.from_dict(one().to_dict() | change, "r.jsonl, line 3")


@pytest.mark.parametrize("key", RECORD.keys)
def test_missing_keys_are_named(key: str) -> None:
    record = one().to_dict()
    del record[key]
    with pytest.raises(FormatError, match=rf"record: (unknown schema None|{key} is missing)"):
        Calibration.from_dict(record)


@pytest.mark.parametrize("text", ["", "{", "nope", '{"schema": NaN}'])
def test_text_that_is_not_json(text: str) -> None:
    with pytest.raises(FormatError, match=r"a\.json: this is not JSON"):
        Calibration.from_json(text, "a.json")


# From a fit -------------------------------------------------------------------------------------


def fitted(model: str, **known: Any) -> tuple[Any, Camera]:
    """A fit to two noisy images of 64 x 48 pixels, and the second camera at 640 x 480."""
    true = one(model, roll_deg=10, pitch_deg=15).cameras.resize(64, 48)
    gravity = torch.from_numpy(np.stack([one().gravity, one(roll_deg=10, pitch_deg=15).gravity]))
    two = true[[0, 0]].map(torch.from_numpy)
    result = fit(with_noise(see(two, gravity), 1.0, seed=0), model, **known)
    return result, result.camera[1].resize(640, 480)


@pytest.mark.parametrize("model", ["pinhole", "radial", "kannala_brandt"])
def test_from_fit(model: str) -> None:
    result, camera = fitted(model)
    c = Calibration.from_fit(result, 1, camera, "a.jpg", ["blurred"])
    assert (c.image, c.warnings, c.status) == ("a.jpg", ("blurred",), result.status[1])
    assert c.parameters == result.parameters
    assert np.array_equal(c.covariance, result.covariance[1])
    assert (c.width, c.height) == (640, 480)
    assert c.fy == pytest.approx(10 * result.camera.f[1].item())
    for name in ("roll_deg", "pitch_deg", "vfov_deg", "hfov_deg"):
        assert getattr(c, name) == pytest.approx(getattr(result, name)[1].item())
    for name in ("roll_deg", "pitch_deg", "gravity_deg", "vfov_deg"):
        assert getattr(c.sigma, name) == pytest.approx(getattr(result.sigma, name)[1].item())
    assert c.sigma.focal == pytest.approx(10 * result.sigma.focal[1].item())
    assert c.sigma.distortion == tuple(result.sigma.distortion[1].tolist())
    assert c.sigma.principal_point == (0, 0)
    assert c.sigma.aspect == 0
    assert Calibration.from_json(c.to_json()) == c


def test_principal_point_is_in_pixels_of_the_original() -> None:
    result, camera = fitted("pinhole", principal_point=Prior([32.0, 24.0], 2.0))
    camera = camera.resize(1280, 480)
    c = Calibration.from_fit(result, 1, camera)
    assert c.parameters[-2:] == ("cx", "cy")
    x, y = result.sigma.principal_point[1].tolist()
    assert c.sigma.principal_point == pytest.approx((20 * x, 10 * y))
    deviations = np.sqrt(np.diagonal(c.covariance))
    assert deviations[-2:].tolist() == pytest.approx([20 * x, 10 * y])
    assert np.array_equal(c.covariance[:3, :3], result.covariance[1, :3, :3])
    # Correlations have no unit.
    before = result.covariance[1].numpy()
    before = before / np.outer(*[np.sqrt(np.diagonal(before))] * 2)
    np.testing.assert_allclose(c.covariance / np.outer(deviations, deviations), before)


def test_the_aspect_is_that_of_the_original() -> None:
    result, camera = fitted("pinhole", aspect=Prior(1.0, 0.05))
    c = Calibration.from_fit(result, 1, camera.resize(1280, 480))
    assert c.fx / c.fy == pytest.approx(2 * result.camera.aspect[1].item())
    assert c.sigma.aspect == pytest.approx(2 * result.sigma.aspect[1].item())
    assert c.sigma.aspect == pytest.approx(c.fx / c.fy * np.sqrt(c.covariance[-1, -1]).item())
    assert 0.001 < c.sigma.aspect < 0.1
    assert Calibration.from_json(c.to_json()).sigma.aspect == c.sigma.aspect


@pytest.mark.parametrize("model", ALL_MODELS)
def test_sigmas_of_the_views_against_differences(model: str) -> None:
    """Linear propagation, with slopes from central differences, of a view that was cropped."""
    result, camera = fitted(model)
    camera = camera.crop(-20, -30, 680, 500).map(to_numpy)
    c = Calibration.from_fit(result, 1, camera)
    for name in ("vfov", "hfov"):
        slopes = []
        for parameter in c.parameters:
            ends = []
            for step in (-1e-6, 1e-6):
                f, distortion = camera.f.copy(), camera.distortion.copy()
                if parameter == "log f":
                    f = f * math.exp(step)
                elif parameter in camera.model.parameters:
                    distortion[:, camera.model.parameters.index(parameter)] += step
                ends.append(getattr(replace(camera, f=f, distortion=distortion), name).item())
            slopes.append((ends[1] - ends[0]) / 2e-6)
        slope = np.array(slopes, np.float64)
        expected = math.degrees(math.sqrt(slope @ c.covariance @ slope))
        assert expected > 0
        assert getattr(c.sigma, f"{name}_deg") == pytest.approx(expected, rel=1e-5)


def test_views_beyond_the_lens_are_not_known() -> None:
    result, camera = fitted("eucm")
    camera = camera.crop(-2000, 0, 4640, 480)
    c = Calibration.from_fit(result, 1, camera)
    assert math.isnan(c.hfov_deg)
    assert math.isnan(c.sigma.hfov_deg)
    assert c.sigma.vfov_deg > 0
    record = c.to_dict()
    assert (record["hfov_deg"], record["sigma"]["hfov_deg"]) == (None, None)
    assert Calibration.from_json(c.to_json()) == c


def test_from_a_single_precision_fit_in_inference_mode() -> None:
    true = one("pinhole").cameras.resize(64, 48).map(torch.tensor)
    fields = see(true, torch.from_numpy(one().gravity)[None], torch.float32)
    with torch.inference_mode():
        result = fit(fields, "pinhole")
        c = Calibration.from_fit(result, 0, result.camera.resize(640, 480))
    assert np.linalg.norm(c.gravity).item() == pytest.approx(1, abs=1e-15)
    assert Calibration.from_json(c.to_json()) == c


def test_a_failed_fit_is_no_calibration() -> None:
    nothing = np.zeros((1, 2, 48, 64))
    result = fit(Fields(nothing, nothing[:, :1], nothing[:, 0], nothing[:, 0]))
    with pytest.raises(CameraError, match=r"a\.jpg: .* not finite"):
        Calibration.from_fit(result, 0, result.camera, "a.jpg")


def test_a_fit_of_numpy_arrays_is_written_as_that_of_tensors() -> None:
    camera = random_cameras("simple_radial", 1, seed=0, size=(24, 20))
    fields = see(camera, random_gravity(1, seed=1))
    records = []
    for each in (fields, numpy_of(fields)):
        found = fit(each, "simple_radial", principal_point=Prior([12.0, 10.0], 0.5))
        original = found.camera.resize(48, 40)
        calibration = Calibration.from_fit(found, 0, original)
        assert isinstance(calibration.gravity, np.ndarray)
        better = calibration.moved(original, found.gravity[0], found.covariance[0])
        assert better.status == Status.CONVERGED
        records.append(calibration.to_dict())
        assert Calibration.from_dict(records[-1]).to_dict() == records[-1]
    assert_same(*records, tolerance=1e-6)


def test_the_camera_of_one_answer_is_one_camera(packaged: Calibrator) -> None:
    one = packaged.calibrate(Path(__file__).parents[2] / "examples" / "town.jpg")
    assert float(one.camera.f) == one.fy
    assert one.camera.size.tolist() == [960, 640]
    assert (one.camera.c.shape, one.K.shape, one.gravity.shape) == ((2,), (3, 3), (3,))


def test_words_are_those_of_the_table(packaged: Calibrator) -> None:
    photo = str(Path(__file__).parents[2] / "examples" / "town.jpg")
    answer = replace(packaged.calibrate(photo, "simple_radial"), image="a.jpg")
    one = judged(answer, (Doubt("odd"),))
    words = r"a\.jpg: roll \+6\.\d\d ± 0\.\d\d°, pitch \+8\.\d\d ± 0\.\d\d°, vFoV 5\d\.\d ± \d\.\d°"
    assert re.fullmatch(words + r", focal \d+ ± \d+ px, k1 [+-]0\.\d{4} ± 0\.\d{4}, odd", str(one))
    assert repr([one]) == f"[<Calibration {one}>]"
    assert one._repr_html_() == f"<div>{one}</div>"  # as there is no such file
    shown = replace(one, image=photo)._repr_html_()
    data = re.fullmatch(r'<img alt="" src="data:image/jpeg;base64,(.+)"><div>.+</div>', shown)
    assert data is not None
    assert max(Image.open(io.BytesIO(base64.b64decode(data[1]))).size) == 720
    assert str(Failure("a.jpg", None, None, "a.jpg is empty")) == "a.jpg is empty"
