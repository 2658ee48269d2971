"""Where learnt sigmas are used: in answers of the network alone, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from geocalib import Calibrator, Prior
from geocalib.pipeline import job
from geocalib.pipeline.engines.onnx import OnnxEngine
from geocalib.pipeline.engines.sigmas import find_sigmas
from geocalib.priors.photos import GRAVITY_WIDER, UNLEARNT_WIDER
from geocalib.result.calibration import Calibration
from geocalib.solver.sigma_calibration import traits
from pages import remembered

TOWN = Path(__file__).parents[2] / "examples" / "town.jpg"


@pytest.fixture(scope="module")
def calibrator(packaged: Calibrator) -> Iterator[Calibrator]:
    """A calibrator whose network looks at each picture once: the questions about it differ."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OnnxEngine, "_run", remembered(OnnxEngine._run, skipped=1))
        yield packaged


@pytest.fixture(scope="module")
def noise() -> Image.Image:
    pixels = np.random.default_rng(0).integers(0, 255, (96, 128, 3), dtype=np.uint8)
    return Image.fromarray(pixels)


def same(a: Calibration, b: Calibration) -> bool:
    """Whether two answers have the same sigmas; the answers themselves always are the same."""
    assert (a.fy, a.roll_deg, a.pitch_deg) == (b.fy, b.roll_deg, b.pitch_deg)
    return a.sigma == b.sigma


@pytest.mark.parametrize(
    ("options", "used"),
    [
        ({"lines": "off"}, True),
        ({}, False),
        ({"lines": "off", "camera_model": "simple_radial"}, False),
        ({"lines": "off", "focal": Prior(500.0, 100.0)}, False),
        ({"lines": "off", "gravity": (0, 1, 0)}, False),
    ],
)
def test_in_answers_of_the_network_alone(
    calibrator: Calibrator, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], used: bool
) -> None:
    learnt = calibrator.calibrate(TOWN, **options, prior="none")
    monkeypatch.setattr(job, "find_sigmas", lambda sha256: None)
    assert same(learnt, calibrator.calibrate(TOWN, **options, prior="none")) is not used


def test_not_for_images_that_share_a_camera(
    calibrator: Calibrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def twice() -> Calibration:
        answers = calibrator.calibrate([TOWN, TOWN], shared_intrinsics=True, lines="off")
        assert isinstance(answers[0], Calibration)
        return answers[0]

    learnt = twice()
    monkeypatch.setattr(job, "find_sigmas", lambda sha256: None)
    assert same(learnt, twice())


def test_where_lines_are_not_used_and_by_as_much_as_was_learnt(
    calibrator: Calibrator, noise: Image.Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = calibrator.calibrate(noise, prior="none")
    assert answer.lines is not None
    assert not answer.lines.verdict.used
    found = find_sigmas(calibrator.card.sha256)
    assert found is not None
    monkeypatch.setattr(job, "find_sigmas", lambda sha256: None)
    before = calibrator.calibrate(noise, prior="none")
    (factors,) = found.factors(
        traits(before.cameras, before.gravity[None], before.covariance[None])
    )
    larger = np.sqrt(np.diag(answer.covariance) / np.diag(before.covariance))
    np.testing.assert_allclose(larger, factors, rtol=0.05)


@pytest.mark.parametrize(
    ("options", "wider"), [({}, GRAVITY_WIDER), ({"focal": 500.0}, UNLEARNT_WIDER)]
)
def test_on_photographs_gravity_is_less_sure_without_them(
    calibrator: Calibrator, options: dict[str, Any], wider: float
) -> None:
    photograph, crop = (
        calibrator.calibrate(TOWN, lines="off", prior=prior, **options).sigma.gravity_deg
        for prior in ("photos", "none")
    )
    # What is usual of focal lengths tells of gravity as well.
    assert photograph == pytest.approx(wider * crop, rel=0.15)
