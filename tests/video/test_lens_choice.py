"""One kind of lens for all frames of a video."""

from __future__ import annotations

import math

import pytest

from geocalib import Calibration
from geocalib.pipeline.options import Options
from geocalib.video.lens_choice import LensChoice
from oracle_network import knowing, picture, truth

SIZE = (480, 360)
FISHEYE = [
    truth(SIZE, roll_deg=4 * i, model="kannala_brandt", f=190.0, distortion=4 * [0.0])
    for i in range(3)
]


def test_frames_decide_together_and_answers_show_it() -> None:
    calibrator = knowing(*FISHEYE)
    frames = [picture(SIZE, i) for i in range(len(FISHEYE))]
    options = Options(lines="off")
    choice = LensChoice.by_frames(calibrator, frames, options)
    assert choice.options.camera_model == "ucm"
    (outcome,) = calibrator.calibrate(frames[:1], options=choice.options)
    answer = choice.applied(outcome)
    assert isinstance(answer, Calibration)
    assert answer.lens is not None
    assert answer.lens.camera_model == "ucm"
    # The comparison is of the lens, and not of where one of the frames looks.
    assert all(math.isnan(family.roll_deg) for family in answer.lens)
    true = math.degrees(FISHEYE[0].camera.border_vfov.item())
    assert answer.vfov_deg == pytest.approx(true, abs=1.5)
    # A run that goes on takes the choice of the one before.
    again = LensChoice.by_answers([answer], options)
    assert again.options.camera_model == "ucm"
    assert again.lens is not None
    assert str(again.lens) == str(choice.lens)


def test_what_is_named_stays() -> None:
    choice = LensChoice.by_frames(knowing(*FISHEYE), [], Options("pinhole"))
    assert choice.options.camera_model == "pinhole"
    assert choice.lens is None
