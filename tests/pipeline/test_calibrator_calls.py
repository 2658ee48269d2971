"""Ways to say what is to be calibrated, and what is known of it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from geocalib import Calibration, Failure, Prior
from geocalib.errors import ConfigError, CouplingError, PriorError
from oracle_network import check, knowing, picture, truth

SIZE = (480, 360)


class TestStacks:
    def test_a_tensor_or_an_array_of_several_images(self) -> None:
        truths = [truth(SIZE, 50, 5), truth(SIZE, 60, -8)]
        calibrator = knowing(*truths)
        arrays = np.stack([picture(SIZE, mark) for mark in range(2)])
        tensors = torch.from_numpy(arrays).permute(0, 3, 1, 2)
        for images in (arrays, tensors, tensors[:1]):
            found: Any = calibrator.calibrate(images)
            assert len(found) == len(images)
            for one, known in zip(found, truths, strict=False):
                check(one, known)
        assert isinstance(calibrator.calibrate(tensors[0]), Calibration)

    def test_an_outcome_is_ok_or_not(self) -> None:
        found = knowing(truth()).calibrate([picture(SIZE, 0), "missing.jpg"])
        assert [outcome.ok for outcome in found] == [True, False]
        assert [isinstance(outcome, Failure) for outcome in found] == [False, True]
        assert "ok" not in found[0].to_dict()


class TestAngles:
    def test_values_fix_them(self) -> None:
        calibrator = knowing(truth(SIZE), truth((360, 480)))
        images = [picture(SIZE, 0), picture((360, 480), 1)]
        found = calibrator.calibrate(images, vfov_deg=40, roll_deg=[3, 4], pitch_deg=-2)
        same = calibrator.calibrate(images, fov=40, roll_deg=[3, 4], pitch_deg=-2)
        assert same == found  # by the name on the command line
        for one, roll in zip(found, (3, 4), strict=True):
            assert isinstance(one, Calibration)
            assert one.vfov_deg == pytest.approx(40, abs=1e-9)
            assert (one.roll_deg, one.pitch_deg) == pytest.approx((roll, -2), abs=1e-9)
            assert one.sigma.vfov_deg == one.sigma.roll_deg == one.sigma.pitch_deg == 0

    def test_priors_pull_them_as_much_as_they_say(self) -> None:
        # Of what is seen nothing is believed.
        calibrator = knowing(truth(SIZE), confidence_scale=1e12)
        one = calibrator.calibrate(
            picture(SIZE, 0),
            "simple_radial",
            vfov_deg=Prior(40, 2),
            roll_deg=Prior(20, 3),
            pitch_deg=Prior(-35, 0.5),
        )
        assert one.vfov_deg == pytest.approx(40, abs=0.01)
        assert (one.roll_deg, one.pitch_deg) == pytest.approx((20, -35), abs=0.01)
        sigma = one.sigma
        assert (sigma.roll_deg, sigma.pitch_deg) == pytest.approx((3, 0.5), rel=0.01)
        assert sigma.vfov_deg == pytest.approx(2, rel=0.01)

    def test_one_angle_leaves_the_other_to_the_picture(self) -> None:
        known = truth(SIZE, roll_deg=7, pitch_deg=-41)
        calibrator = knowing(known, confidence_scale=1.0)
        for wanted, sigma in ((0.0, 1e-4), (9.0, 1e-4)):
            one = calibrator.calibrate(picture(SIZE, 0), vfov_deg=50, roll_deg=Prior(wanted, sigma))
            assert one.roll_deg == pytest.approx(wanted, abs=0.01)
            assert one.sigma.roll_deg == pytest.approx(sigma, rel=0.01)
            assert one.pitch_deg == pytest.approx(-41, abs=1)
        one = calibrator.calibrate(picture(SIZE, 0), vfov_deg=50, pitch_deg=Prior(-30, 1e-4))
        assert one.pitch_deg == pytest.approx(-30, abs=0.01)
        assert one.roll_deg == pytest.approx(7, abs=1)

    def test_half_believed(self) -> None:
        """A prior as sure as the picture is met half-way."""
        calibrator = knowing(truth(SIZE, roll_deg=7, pitch_deg=-41), confidence_scale=30.0)
        free = calibrator.calibrate(picture(SIZE, 0), focal=400.0, prior="none")
        prior = Prior(free.roll_deg + 0.5, free.sigma.roll_deg)
        one = calibrator.calibrate(picture(SIZE, 0), focal=400.0, roll_deg=prior, prior="none")
        assert one.roll_deg == pytest.approx(free.roll_deg + 0.25, abs=0.03)
        assert one.sigma.roll_deg == pytest.approx(free.sigma.roll_deg / math.sqrt(2), rel=0.05)

    def test_a_set(self) -> None:
        calibrator = knowing(truth(SIZE), truth(SIZE))
        images = [picture(SIZE, 0), picture(SIZE, 1)]
        found = list(calibrator.calibrate_set(images, vfov_deg=40, roll_deg=1, pitch_deg=2))
        assert len(found) == 2
        for one in found:
            assert isinstance(one, Calibration)
            angles = (one.vfov_deg, one.roll_deg, one.pitch_deg)
            assert angles == pytest.approx((40, 1, 2), abs=1e-9)

    @pytest.mark.parametrize(
        ("known", "words"),
        [
            ({"vfov_deg": 40, "focal": 300}, "each say how long the lens is"),
            ({"vfov_deg": 40, "camera_model": "eucm"}, "eucm, whose field of view also"),
            ({"vfov_deg": 180}, "between 5 and 150"),
            ({"vfov_deg": Prior(40, 0)}, "vfov_deg sigma must be positive"),
            ({"vfov_deg": [40, 50]}, "for each of 1 images"),
            ({"roll_deg": 3}, "say where down is"),
            ({"pitch_deg": 3}, "say where down is"),
            ({"roll_deg": 3, "pitch_deg": Prior(3, 1)}, "together say where down is"),
            ({"roll_deg": Prior(3, 0)}, "gravity sigma must be positive"),
            ({"roll_deg": 3, "pitch_deg": 1, "gravity": [0, 1, 0]}, "already says where down is"),
        ],
    )
    def test_contradictions_are_refused(self, known: dict[str, Any], words: str) -> None:
        with pytest.raises(PriorError, match=words):
            knowing(truth(SIZE)).calibrate(picture(SIZE, 0), **known)


class TestModelPerImage:
    def test_each_image_has_its_own(self) -> None:
        truths = [
            truth(SIZE, 50, 5),
            truth(SIZE, 60, -8, model="simple_radial", hat=(-0.1,)),
            truth(SIZE, 55, 2),
        ]
        models = ["pinhole", "simple_radial", "pinhole"]
        sources = [picture(SIZE, mark) for mark in range(3)]
        found = knowing(*truths).calibrate(sources, models, roll_deg=Prior([5, -8, 2], 1.0))
        for one, known, model in zip(found, truths, models, strict=True):
            check(one, known)
            assert isinstance(one, Calibration)
            assert one.camera_model == model

    def test_images_of_one_camera_share_it(self) -> None:
        calibrator = knowing(truth(SIZE), truth(SIZE), truth(SIZE))
        sources = [picture(SIZE, mark) for mark in range(3)]
        models = ["pinhole", "division", "division"]
        found = calibrator.calibrate(sources, models, shared_intrinsics=[0, 1, 1])
        assert [len(one.distortion) for one in found if one.ok] == [0, 1, 1]
        with pytest.raises(CouplingError, match=r"image 1 is division, but another .* is pinhole"):
            calibrator.calibrate(sources, models, shared_intrinsics=True)

    def test_wrong_calls(self) -> None:
        calibrator, image = knowing(truth(SIZE)), picture(SIZE, 0)
        with pytest.raises(ConfigError, match="2 names for 1 images"):
            calibrator.calibrate([image], ["pinhole", "radial"])
        with pytest.raises(ConfigError, match="known of one camera model"):
            calibrator.calibrate([image, image], ["pinhole", "division"], distortion=[0.1])
        with pytest.raises(PriorError, match="eucm, whose field"):
            calibrator.calibrate([image, image], ["pinhole", "eucm"], vfov_deg=40)


class TestAspect:
    def test_is_found_where_it_is_free(self) -> None:
        known = truth((500, 340), vfov_deg=60, aspect=1.08)
        calibrator, image = knowing(known), picture((500, 340), 0)
        found = calibrator.calibrate(image, aspect=Prior(1.0, 0.2))
        assert found.fx / found.fy == pytest.approx(1.08, abs=2e-3)
        assert found.vfov_deg == pytest.approx(60, abs=0.1)
        assert found.parameters[-1] == "log aspect"
        assert found == Calibration.from_json(found.to_json())
        # The horizontal view is as uncertain as both focal lengths make it.
        fixed = calibrator.calibrate(image, aspect=1.08)
        assert fixed.fx / fixed.fy == 1.08
        assert fixed.parameters[-1] == "log f"
        assert found.sigma.hfov_deg > 1.1 * fixed.sigma.hfov_deg

    def test_is_1_where_nothing_is_said(self) -> None:
        found = knowing(truth((500, 340), aspect=1.02)).calibrate(picture((500, 340), 0))
        assert found.fx == found.fy

    def test_of_each_image(self) -> None:
        truths = [truth(SIZE, aspect=1.0), truth(SIZE, aspect=0.9)]
        sources = [picture(SIZE, 0), picture(SIZE, 1)]
        found = knowing(*truths).calibrate(sources, aspect=[1.0, 0.9])
        for one, known in zip(found, truths, strict=True):
            assert isinstance(one, Calibration)
            assert one.vfov_deg == pytest.approx(50, abs=0.05)
            assert one.fx == pytest.approx(known.camera.focal[0, 0].item(), rel=1e-3)

    def test_wrong_ones(self) -> None:
        with pytest.raises(PriorError, match="aspect, fx / fy, must be positive"):
            knowing(truth(SIZE)).calibrate(picture(SIZE, 0), aspect=-1.0)


def test_fields_at_the_size_of_the_image() -> None:
    calibrator = knowing(truth(SIZE))
    seen = calibrator.calibrate(picture(SIZE, 0), keep_fields=True).fields
    full = calibrator.calibrate(picture(SIZE, 0), keep_fields="full").fields
    assert seen is not None
    assert full is not None
    assert full.size == SIZE
    assert seen.size[0] < SIZE[0]
