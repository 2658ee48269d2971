"""What is known of the originals, alone or shared, reaches the fit of the right image."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
import pytest
from PIL import Image
from PIL.ExifTags import IFD, Base

from geocalib import Calibration, Failure, Prior, Rig
from geocalib.errors import (
    CameraError,
    ConfigError,
    CouplingError,
    ImageError,
    PriorError,
)
from oracle_network import Oracle, Truth, check, knowing, picture, truth
from views import gravity_error_deg


def png(size: tuple[int, int], mark: int, exif: Image.Exif | None = None) -> bytes:
    file = io.BytesIO()
    Image.fromarray(picture(size, mark)).save(file, "PNG", exif=exif)
    return file.getvalue()


def focal_exif(millimetres: int, orientation: int = 1) -> Image.Exif:
    exif = Image.Exif()
    exif[Base.Orientation] = orientation
    exif.get_ifd(IFD.Exif)[Base.FocalLengthIn35mmFilm] = millimetres
    return exif


class TestKnown:
    def test_hard_values_are_returned_as_they_were_given(self) -> None:
        known = truth((641, 479), model="simple_radial", hat=[-0.1])
        given: dict[str, Any] = {
            "focal": 701.3,
            "gravity": [0.1, 0.9, 0.2],
            "distortion": [-0.07],
            "principal_point": [300.1, 250.7],
        }
        calibrator, source = knowing(known), picture(known.size, 0)
        found = calibrator.calibrate(source, "simple_radial", **given)
        assert found.fy == 701.3
        assert (found.cx, found.cy) == (300.1, 250.7)
        assert found.distortion == (-0.07,)
        direction = np.array([0.1, 0.9, 0.2], np.float64)
        assert gravity_error_deg(found.gravity, direction).item() < 1e-6
        assert found.parameters == ()
        assert found.sigma.focal == found.sigma.gravity_deg == found.sigma.vfov_deg == 0

    @pytest.mark.parametrize("focal", [1e-9, 1.0, 1e5, Prior(1e-9, 1.0)])
    def test_a_focal_length_that_no_lens_has_is_refused(self, focal: Any) -> None:
        known = truth((480, 360))
        with pytest.raises(ImageError, match=r"no lens's for 480x360 pixels; give 48 to 4123"):
            knowing(known).calibrate(picture(known.size, 0), focal=focal)

    def test_one_focal_length_for_large_and_small(self) -> None:
        truths = [truth((480, 360)), truth((48, 36))]
        sources = [picture(known.size, i) for i, known in enumerate(truths)]
        first, second = knowing(*truths).calibrate(sources, focal=1000.0)
        assert isinstance(first, Calibration)
        assert first.fy == 1000
        assert isinstance(second, Failure)
        assert "a focal length of 1000 pixels is no lens's for 48x36 pixels" in second.error
        again = list(knowing(*truths).calibrate_set(sources, cameras=[0, 1], focal=1000.0))
        assert isinstance(again[0], Calibration)
        assert isinstance(again[1], Failure)
        assert again[1].error == second.error

    def test_a_known_focal_length_is_one_of_the_original(self) -> None:
        known = truth((960, 720))
        found = knowing(known).calibrate(picture(known.size, 0), focal=known.camera.f.item())
        check(found, known)
        # With a wrong one the pitch, seen through the same latitudes, is still the true one.
        wrong = knowing(known).calibrate(picture(known.size, 0), focal=1.2 * known.camera.f.item())
        assert wrong.fy == 1.2 * known.camera.f.item()
        assert wrong.pitch_deg == pytest.approx(-11, abs=1)

    def test_a_known_principal_point_is_one_of_the_original(self) -> None:
        known = truth((643, 479), c=(301.0, 262.0))
        calibrator, source = knowing(known), picture(known.size, 0)
        check(calibrator.calibrate(source, principal_point=[301.0, 262.0]), known)
        off = calibrator.calibrate(source)
        assert (off.cx, off.cy) == (321.5, 239.5)
        assert gravity_error_deg(off.gravity[None], known.gravity).item() > 1

    def test_a_free_principal_point_is_found(self) -> None:
        known = truth((640, 480), c=(310.0, 252.0))
        found = knowing(known, confidence_scale=1e-6).calibrate(
            picture(known.size, 0), principal_point=Prior([320.0, 240.0], 50.0)
        )
        assert (found.cx, found.cy) == (pytest.approx(310, abs=0.7), pytest.approx(252, abs=0.7))
        assert found.fy == pytest.approx(known.camera.f.item(), rel=2e-3)
        assert 0 < found.sigma.principal_point[0] < 1

    def test_where_the_picture_says_nothing_a_prior_is_the_answer(self) -> None:
        """With its sigma, in pixels of the original: closed form for data without weight."""
        known = truth((960, 723), model="radial", hat=[0.0, 0.0])
        found = knowing(known, confidence_scale=1e12).calibrate(
            picture(known.size, 0),
            "radial",
            focal=Prior(800.0, 40.0),
            gravity=Prior([0.0, 1.0, 0.0], math.radians(3)),
            distortion=Prior([0.05, -0.01], [0.02, 0.003]),
            principal_point=Prior([470.0, 371.0], [12.0, 7.0]),
        )
        assert found.fy == pytest.approx(800, rel=1e-4)
        assert found.sigma.focal == pytest.approx(40, rel=1e-3)
        assert (found.cx, found.cy) == (pytest.approx(470, abs=0.01), pytest.approx(371, abs=0.01))
        assert found.sigma.principal_point == (
            pytest.approx(12, rel=1e-3),
            pytest.approx(7, rel=1e-3),
        )
        assert found.distortion == (pytest.approx(0.05, abs=1e-4), pytest.approx(-0.01, abs=1e-4))
        assert found.sigma.distortion == (
            pytest.approx(0.02, rel=1e-3),
            pytest.approx(0.003, rel=1e-3),
        )
        assert found.gravity.tolist() == pytest.approx([0, 1, 0], abs=1e-4)
        assert found.sigma.gravity_deg == pytest.approx(3, rel=1e-3)
        covariance = np.sqrt(np.diagonal(found.covariance))
        expected = [math.radians(3)] * 2 + [40 / 800, 0.02, 0.003, 12, 7]
        np.testing.assert_allclose(covariance, np.array(expected), rtol=1e-3, atol=0)

    def test_one_for_each_image_with_a_failure_in_between(self) -> None:
        shapes = [(640, 480), (480, 640), (640, 480)]
        truths = [truth(size, roll_deg=5 * i) for i, size in enumerate(shapes)]
        sources: list[Any] = [picture(size, i) for i, size in enumerate(shapes)]
        sources.insert(1, "missing.jpg")
        gravity = np.arange(1.0, 13).reshape(4, 3)
        gravity /= np.linalg.norm(gravity, axis=1, keepdims=True)
        focal, points = [700.0, 1.0, 800.0, 900.0], np.arange(8.0).reshape(4, 2) + 300
        calibrator = knowing(*truths, confidence_scale=1e12)
        hard = calibrator.calibrate(sources, focal=focal, gravity=gravity, principal_point=points)
        soft = calibrator.calibrate(
            sources,
            focal=Prior(focal, [10.0, 1.0, 20.0, 30.0]),
            gravity=Prior(gravity, [0.01, 1.0, 0.02, 0.03]),
            principal_point=Prior(points, [1.0, 1.0, 2.0, 3.0]),
        )
        for found in (hard, soft):
            assert isinstance(found[1], Failure)
            for i in (0, 2, 3):
                one = found[i]
                assert isinstance(one, Calibration)
                assert one.fy == pytest.approx(focal[i], rel=1e-4)
                assert (one.cx, one.cy) == pytest.approx(tuple(points[i].tolist()), abs=1e-3)
                assert gravity_error_deg(one.gravity, gravity[i]).item() < 0.01
        for i, sigma in ((0, 1.0), (2, 2.0), (3, 3.0)):
            one = soft[i]
            assert isinstance(one, Calibration)
            assert one.sigma.focal == pytest.approx(10 * sigma, rel=1e-3)
            assert one.sigma.principal_point == pytest.approx((sigma, sigma), rel=1e-3)
            assert one.sigma.gravity_deg == pytest.approx(math.degrees(sigma / 100), rel=1e-3)

    def test_as_many_images_as_a_value_has_numbers(self) -> None:
        """Numbers in a row are those of one value, however many images there are."""
        calibrator = knowing(truth())
        one = picture((480, 360), 0)
        for found in calibrator.calibrate([one, "missing.jpg", one], gravity=[0.0, 0.8, 0.6])[::2]:
            assert isinstance(found, Calibration)
            assert found.gravity.tolist() == pytest.approx([0, 0.8, 0.6])
        found = calibrator.calibrate(["missing.jpg", one], principal_point=[230.0, 170.0])[1]
        assert (found.cx, found.cy) == (230, 170)
        found = calibrator.calibrate(["missing.jpg", one], "radial", distortion=[0.01, 0.02])[1]
        assert found.distortion == (0.01, 0.02)
        found = calibrator.calibrate(
            ["missing.jpg", one], "simple_radial", distortion=[0.01, 0.02]
        )[1]
        assert found.distortion == (0.02,)

    def test_exif_helps_the_images_that_have_it(self) -> None:
        known = truth((640, 480), vfov_deg=50)
        told, untold = png(known.size, 0, focal_exif(28)), png(known.size, 0)
        expected = 28 * 800 / math.hypot(36, 24)
        calibrator = knowing(known, confidence_scale=1e4)
        first, second, third = calibrator.calibrate([untold, told, untold])
        assert second.fy == pytest.approx(expected, rel=1e-3)
        assert second.sigma.focal == pytest.approx(0.0336 * expected, rel=1e-2)
        assert first.fy == third.fy
        assert first.fy == pytest.approx(calibrator.calibrate(untold).fy, rel=1e-4)
        assert first.sigma.focal > 10 * second.sigma.focal
        # Unless it is not asked for, or something else is said.
        assert calibrator.calibrate(told, exif=False).fy == pytest.approx(first.fy, rel=1e-4)
        assert calibrator.calibrate(told, focal=300.0).fy == 300
        assert calibrator.calibrate(untold, exif=False) == calibrator.calibrate(untold)

    def test_exif_of_one_image_tells_of_all_of_its_camera(self) -> None:
        known = truth((640, 480))
        told, untold = png(known.size, 0, focal_exif(28)), png(known.size, 0)
        expected = 28 * 800 / math.hypot(36, 24)
        found = knowing(known, confidence_scale=1e4).calibrate(
            [untold, untold, told], shared_intrinsics=True
        )
        assert len(found) == 3
        for one in found:
            assert one.fy == pytest.approx(expected, rel=1e-3)
            assert one.sigma.focal == pytest.approx(0.0336 * expected, rel=1e-2)

    @pytest.mark.parametrize(
        ("known", "error", "words"),
        [
            ({"camera_model": "fish"}, CameraError, "unknown camera model 'fish'"),
            ({"focal": -5.0}, PriorError, "focal must be a positive number"),
            ({"focal": [500.0, 600.0]}, PriorError, "one row for each of 3 images"),
            ({"focal": "long"}, PriorError, "focal must hold numbers"),
            ({"focal": Prior(500.0, 0.0)}, PriorError, "focal sigma must be positive"),
            ({"gravity": [0.0, 1.0]}, PriorError, "gravity must be 3 numbers"),
            ({"distortion": [0.1] * 3}, ConfigError, "3 numbers, .* name the camera_model"),
            (
                {"camera_model": "pinhole", "distortion": [0.1]},
                PriorError,
                "pinhole has no distortion",
            ),
            ({"principal_point": 3.0}, PriorError, "principal_point must be 2 numbers"),
            ({"shared_intrinsics": [0, 1]}, CouplingError, "2 integers for 3 images"),
            (
                {"shared_intrinsics": True, "focal": [500.0, 600.0, 500.0]},
                PriorError,
                "focal of image [01] differs",
            ),
            (
                {"rig": Rig(np.eye(3)[None], [0, 0], [0, 1])},
                CouplingError,
                r"rig.camera must hold one integer per image \(3\)",
            ),
        ],
    )
    def test_a_wrong_call_is_refused_before_any_work(
        self, known: dict[str, Any], error: type[Exception], words: str
    ) -> None:
        calibrator = knowing(truth())
        with pytest.raises(error, match=words):
            calibrator.calibrate([picture((480, 360), 0), "missing.jpg", "none.jpg"], **known)
        oracle = calibrator._engine.network
        assert isinstance(oracle, Oracle)
        assert oracle.batches == []


class TestSharing:
    def test_one_camera(self) -> None:
        size = (640, 479)
        truths = [truth(size, 50, 5), truth(size, 54, -8), None, truth(size, 52, 20)]
        sources: list[Any] = [picture(size, i) for i in range(4)]
        sources.insert(1, "missing.jpg")
        found = knowing(*truths).calibrate(sources, shared_intrinsics=True)
        assert [isinstance(one, Failure) for one in found] == [False, True, False, True, False]
        good = [one for one in found if isinstance(one, Calibration)]
        assert good[0].fy == good[1].fy == good[2].fy
        assert 50.5 < good[0].vfov_deg < 53.5
        for one, roll in zip(good, (5, -8, 20), strict=True):
            assert one.roll_deg == pytest.approx(roll, abs=1)
            assert (one.cx, one.cy) == (320, 239.5)

    def test_groups(self) -> None:
        shapes = [(640, 480), (480, 640)] * 2 + [(640, 480)]
        truths = [truth(size, 45 + 5 * (i % 2), 3 * i) for i, size in enumerate(shapes)]
        sources: list[Any] = [picture(size, i) for i, size in enumerate(shapes)]
        sources.insert(0, "missing.jpg")
        for groups in ([7, 1, 9, 1, 9, 1], np.array([7, 1, 9, 1, 9, 1])):
            found = knowing(*truths).calibrate(sources, shared_intrinsics=groups)
            assert isinstance(found[0], Failure)
            for one, known in zip(found[1:], truths, strict=True):
                check(one, known)
            assert found[1].fy == found[3].fy == found[5].fy
            assert found[2].fy == found[4].fy

    def test_images_of_one_camera_have_one_size(self) -> None:
        calibrator = knowing(truth((640, 480)), truth((320, 240)))
        sources = [picture((640, 480), 0), picture((320, 240), 1)]
        with pytest.raises(CouplingError, match=r"320x240 pixels, but .*, of the same .* 640x480"):
            calibrator.calibrate(sources, shared_intrinsics=True)
        assert len(calibrator.calibrate(sources)) == 2

    def test_a_rig(self) -> None:
        """Two cameras, the second turned by 30 degrees to the side and of another size."""
        turn = math.radians(30)
        side = np.array(
            [
                [math.cos(turn), 0, -math.sin(turn)],
                [0, 1, 0],
                [math.sin(turn), 0, math.cos(turn)],
            ],
            np.float64,
        )
        rotations = np.stack([np.eye(3), side])
        truths = []
        for roll in (4, -9):
            first = truth((640, 480), 60, roll)
            second = truth((480, 640), 70)
            truths += [first, Truth(second.camera, first.gravity @ side.T)]
        sources: list[Any] = [picture(known.size, i) for i, known in enumerate(truths)]
        sources.insert(2, "missing.jpg")
        rig = Rig(rotations, camera=[0, 1, 0, 0, 1], time=[5, 5, 6, 7, 7])
        found = knowing(*truths).calibrate(sources, rig=rig)
        assert isinstance(found.pop(2), Failure)
        for one, known in zip(found, truths, strict=True):
            check(one, known)
        assert found[0].fy == found[2].fy
        np.testing.assert_allclose(found[1].gravity, side @ found[0].gravity)


def test_a_prior_is_as_sure_as_it_says_whatever_becomes_of_the_sigmas() -> None:
    """A network whose sigmas are halved in the end has seen nothing: what was told remains."""
    known = truth((480, 360))
    calibrator = knowing(known, confidence_scale=1e9, sigma_scale={"focal": 0.5, "gravity": 3.0})
    prior = Prior(500.0, 20.0)
    gravity = Prior([0.0, 1.0, 0.0], 0.02)
    found = calibrator.calibrate(picture((480, 360), 0), focal=prior, gravity=gravity, lines="off")
    assert found.sigma.focal == pytest.approx(20, rel=1e-3)
    assert found.sigma.gravity_deg == pytest.approx(math.degrees(0.02), rel=1e-3)
