"""Straight lines in ``Calibrator.calibrate``."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from geocalib import Calibrator
from geocalib.errors import ConfigError, ImageError
from geocalib.result.evidence import Verdict

EXAMPLES = Path(__file__).parents[2] / "examples"
TRUTH = json.loads((EXAMPLES / "town.json").read_text(encoding="utf-8"))
"""Of the town: its roll and pitch, degrees."""


@pytest.fixture(scope="module")
def town() -> Image.Image:
    return Image.open(EXAMPLES / "town.jpg")


def test_lines_sharpen_a_town(packaged: Calibrator, town: Image.Image) -> None:
    plain = packaged.calibrate(town, lines="off")
    sharp = packaged.calibrate(town)
    assert plain.lines is None
    assert sharp.lines is not None
    assert sharp.lines.verdict is Verdict.CROSSED
    assert abs(sharp.roll_deg - TRUTH["roll_deg"]) < 0.3
    assert abs(sharp.pitch_deg - TRUTH["pitch_deg"]) < 0.5
    assert sharp.sigma.roll_deg < plain.sigma.roll_deg


@pytest.mark.parametrize("model", ["simple_radial", "radial"])
def test_lenses_with_distortion_are_as_right_and_no_surer(
    packaged: Calibrator, town: Image.Image, model: str
) -> None:
    straight, answer = (packaged.calibrate(town, name) for name in ("pinhole", model))
    assert answer.lines is not None
    assert answer.lines.verdict is Verdict.CROSSED
    assert abs(answer.roll_deg - TRUTH["roll_deg"]) < 0.3
    assert all(abs(k) < 0.05 for k in answer.distortion)
    assert answer.sigma.gravity_deg > 0.95 * straight.sigma.gravity_deg
    assert answer.sigma.vfov_deg > 0.95 * straight.sigma.vfov_deg


def test_where_lines_say_nothing_the_answer_is_the_same(packaged: Calibrator) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (480, 640, 3), dtype=np.uint8)
    looked, alone = (packaged.calibrate(noise, lines=how) for how in ("auto", "off"))
    assert replace(looked, lines=None) == alone
    assert looked.lines is not None
    assert looked.lines.verdict is Verdict.TOO_FEW


def test_lines_only(packaged: Calibrator, town: Image.Image) -> None:
    answer = packaged.calibrate(town, lines="only")
    assert abs(answer.roll_deg - TRUTH["roll_deg"]) < 1.0
    blank = Image.new("RGB", (640, 480), "gray")
    with pytest.raises(ImageError, match="too few straight lines"):
        packaged.calibrate(blank, lines="only")
    with pytest.raises(ConfigError, match="asks lines alone; drop"):
        packaged.calibrate(town, lines="only", focal=500.0)


def test_unknown_modes(packaged: Calibrator, town: Image.Image) -> None:
    with pytest.raises(ConfigError, match="auto, off, only"):
        packaged.calibrate(town, lines="some")  # type: ignore[call-overload]


def test_images_of_one_camera_stay_alike(packaged: Calibrator, town: Image.Image) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (640, 960, 3), dtype=np.uint8)
    first, second = packaged.calibrate([town, noise], shared_intrinsics=True)
    assert first.fy == second.fy
