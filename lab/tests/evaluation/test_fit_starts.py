"""Starts and fits from fields that are exact: the truth comes back, in pixels of the photograph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibrations import FAILURE
from geocalib.cameras import get_model
from geocalib.errors import ConfigError
from geocalib.geometry.fields import Fields, perspective_field
from geocalib.imaging import ImageSource, InputSpec, prepare, read_photo
from geocalib.result.calibration import Outcome
from geocalib_lab.evaluation.answers import truth_of
from geocalib_lab.evaluation.datasets import Sample
from geocalib_lab.evaluation.starts import DAMPINGS, STEPS, descent_study, starts_study
from known_photos import CARD, sample, save_picture

SIDE = 64
SIZE = (140, 96)
"""A picture of which the network sees the middle."""


class Exact:
    """Sees the fields of the truth."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        self.card = replace(CARD, short_side=SIDE)
        self.samples = {s.image: s for s in samples}

    def calibrate(
        self, images: Sequence[ImageSource], camera_model: str, **options: Any
    ) -> list[Outcome]:
        unheard = {"exif": False, "prior": "none", "sensors": False}
        assert options == {"keep_fields": True, **unheard}
        return [self._one(self.samples[Path(str(image))]) for image in images]

    def _one(self, truth: Sample) -> Outcome:
        if not truth.image.exists():
            return FAILURE
        answer = truth_of(truth, SIZE)
        assert answer is not None
        given = prepare(read_photo(truth.image), InputSpec(SIDE))
        assert given.size == (64, 64)
        camera = given.view.to_input(answer.cameras, given.size)
        up, latitude, _ = perspective_field(camera, answer.gravity[None])
        ones = np.ones((1, *given.size))
        camera = replace(
            answer.cameras, model=get_model("pinhole"), distortion=answer.cameras.distortion[:, :0]
        )
        sigma = replace(answer.sigma, distortion=())
        return replace(answer, cameras=camera, sigma=sigma, fields=Fields(up, latitude, ones, ones))


def two_and_one_that_is_gone(folder: Path) -> list[Sample]:
    samples = [
        sample(str(save_picture(folder / f"{i}.png", SIZE)), roll_deg=roll, vfov_deg=vfov)
        for i, (roll, vfov) in enumerate([(10.0, 50.0), (-20.0, 70.0)])
    ]
    samples = [replace(s, width=SIZE[0], height=SIZE[1], pitch_deg=5.0) for s in samples]
    return [*samples, replace(samples[0], image=folder / "gone.png")]


def test_starts(tmp_path: Path) -> None:
    samples = two_and_one_that_is_gone(tmp_path)
    count: list[int] = []
    study = starts_study(
        Exact(samples), samples, ["trivial", "heuristic", "ransac"], done=lambda: count.append(1)
    )
    assert len(count) == 3
    rows = {label: report.errors for label, report in study.rows}
    for kind in ("trivial", "heuristic", "ransac"):
        np.testing.assert_allclose(rows[f"{kind} + fit"]["gravity"], [0, 0, np.inf], atol=1e-3)
        np.testing.assert_allclose(rows[f"{kind} + fit"]["vfov"], [0, 0, np.inf], atol=1e-3)
    # A level camera of 0.7 times the longer side, which is that of the square the network sees.
    np.testing.assert_allclose(rows["trivial alone"]["roll"], [10, 20, np.inf])
    trivial_deg = np.rad2deg(2 * np.arctan(0.5 / 0.7))
    expected = [abs(trivial_deg - 50), abs(trivial_deg - 70), np.inf]
    np.testing.assert_allclose(rows["trivial alone"]["vfov"], expected, rtol=1e-6)
    assert rows["heuristic alone"]["gravity"][:2].max() < 2
    steps = study.beside["median steps"]
    assert steps.keys() == {label for label in rows if label.endswith("fit")}
    assert all(1 <= int(count) <= 30 for count in steps.values())
    assert rows["ransac alone"]["vfov"][:2].max() < 3


def test_a_fit_descends_step_by_step(tmp_path: Path) -> None:
    samples = two_and_one_that_is_gone(tmp_path)
    study = descent_study(Exact(samples), samples)
    rows = {label: report.errors for label, report in study.rows if report is not None}
    assert len(rows) == len(STEPS) + 1 + len(DAMPINGS)
    steps = {label: int(count) for label, count in study.beside["median steps"].items()}
    for count in STEPS:
        label = f"at most {count} step" + "s" * (count > 1)
        assert steps[label] <= count
        assert rows[label]["vfov"][2] == np.inf
    one, two = (rows[label]["gravity"][:2].max() for label in ("at most 1 step", "at most 3 steps"))
    assert one > 10 * two
    for label in ("at most 30 steps, damping 0.1", "damping 0.001 first", "damping 10 first"):
        np.testing.assert_allclose(rows[label]["gravity"][:2], 0, atol=1e-3)
        np.testing.assert_allclose(rows[label]["vfov"][:2], 0, atol=1e-3)
    assert steps["damping 10 first"] > steps["damping 0.001 first"]


def test_weights_whose_field_is_not_exact() -> None:
    calibrator = Exact([])
    calibrator.card = replace(calibrator.card, legacy_up_field=True)
    with pytest.raises(ConfigError, match="cannot start elsewhere"):
        starts_study(calibrator, [sample(k1=0.1)], ["trivial"])
