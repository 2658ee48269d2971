"""Pictures of reports: what is drawn is what was measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image

from calibrations import FAILURE
from geocalib.result.calibration import Outcome
from geocalib_lab.evaluation.plots import (
    FEWEST,
    draw_all,
    draw_errors,
    draw_sigmas,
    draw_truth,
    save_plots,
)
from geocalib_lab.evaluation.report import Report
from geocalib_lab.evaluation.run import evaluate
from geocalib_lab.evaluation.uncertainty import Deviations
from known_photos import FakeCalibrator, answer, by_name, sample


def test_every_error_is_in_the_histograms_and_every_answer_in_the_scatter() -> None:
    samples = [sample("a.png"), sample("b.png", vfov_deg=40.0), sample("c.png")]
    answers = {"a.png": answer(63.0), "b.png": answer(90.0), "c.png": FAILURE}
    report = evaluate(FakeCalibrator(by_name(answers)), samples)
    axes = draw_errors(report).axes
    heights = axes[3].patches[0].get_data().values
    assert sum(heights) == 3
    # Errors beyond the end, and failures, are in the last bar.
    assert heights[-1] == 2
    points = np.asarray(draw_truth(report).axes[0].collections[0].get_offsets())
    np.testing.assert_allclose(points, [[60, 3], [40, 50]])


def test_what_is_not_known_takes_no_room() -> None:
    samples = [replace(sample("a.png"), roll_deg=None, pitch_deg=None)]
    report = evaluate(FakeCalibrator(by_name({"a.png": answer(63.0)})), samples)
    assert [len(draw(report).axes) for draw in (draw_errors, draw_truth)] == [1, 1]


def test_coverage_of_true_sigmas_is_the_diagonal() -> None:
    errors = np.random.default_rng(0).standard_normal(20_000)
    true, small = Deviations(errors, np.ones(20_000)), Deviations(errors, np.full(20_000, 0.1))
    coverage = draw_sigmas({"gravity": true, "focal": small}).axes[-1]
    lines = {line.get_label(): line.get_xydata() for line in coverage.lines}
    expected, observed = lines["gravity"].T
    np.testing.assert_allclose(observed, expected, atol=0.02)
    expected, observed = lines["focal"].T
    assert (observed[1:] < expected[1:]).all()


def report_of(outcomes: list[Outcome]) -> Report:
    samples = [sample(f"{i}.png", pitch_deg=float(i)) for i in range(len(outcomes))]
    answers = {s.image.name: outcome for s, outcome in zip(samples, outcomes, strict=True)}
    return evaluate(FakeCalibrator(by_name(answers)), samples, name="town")


def test_what_says_nothing_is_not_drawn() -> None:
    assert list(draw_all(report_of([FAILURE]))) == ["errors", "truth"]
    assert list(draw_all(report_of([answer(61.0)]))) == ["errors", "truth", "sigmas"]


def test_files(tmp_path: Path) -> None:
    files = save_plots(report_of([answer(61.0)] * FEWEST), tmp_path / "new")
    assert list(files) == ["errors", "truth", "sigmas", "ranking"]
    for name, file in files.items():
        assert file.name == f"town-{name}.png"
        with Image.open(file) as picture:
            assert picture.convert("L").getextrema()[0] < 50
