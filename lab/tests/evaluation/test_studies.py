"""What knowing more is worth: rows about the same photographs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from calibrations import FAILURE
from geocalib_lab.evaluation.datasets import Sample
from geocalib_lab.evaluation.report import Report
from geocalib_lab.evaluation.run import Setting, evaluate
from geocalib_lab.evaluation.studies import averaged, joint_study, partial_study, same_camera
from geocalib_lab.evaluation.tables import study_table
from known_photos import FakeCalibrator, answer, by_name, sample

OURS = ("fields", "fields and lines")


def wide_then_narrow(samples: Sequence[Sample], setting: Setting) -> Report:
    """Answers 50 and 70 degrees in turn where images are alone, and the truth for more."""
    alone = setting.images_per_fit == 1
    vfovs = [(50.0 if i % 2 else 70.0) if alone else 60.0 for i in range(len(samples))]
    answers = {s.image.name: answer(vfov) for s, vfov in zip(samples, vfovs, strict=True)}
    return evaluate(FakeCalibrator(by_name(answers)), samples)


def test_joint_beside_averaged() -> None:
    samples = [sample(f"{i}.png") for i in range(5)]
    other = wide_then_narrow(samples, Setting())
    study = joint_study("town", samples, [4, 1, 2], wide_then_narrow, {"other": other})
    rows = {label: report for label, report in study.rows if report is not None}
    ways = [f"{way}, {how}" for way in OURS for how in ("jointly", "averaged")]
    ways.append("other, averaged")
    assert list(study.curves) == ways
    assert list(rows) == [f"{n}: {way}" for way in ways for n in (1, 2, 4)]
    assert {len(report) for report in rows.values()} == {4}
    assert rows["2: fields, jointly"].errors["vfov"].max() < 1e-9
    # The mean of log f, by hand.
    tangent = math.sqrt(math.tan(math.radians(25)) * math.tan(math.radians(35)))
    expected = 60 - math.degrees(2 * math.atan(tangent))
    for way in ways[1::2] + ways[-1:]:
        np.testing.assert_allclose(rows[f"2: {way}"].errors["vfov"], expected)
        np.testing.assert_allclose(rows[f"4: {way}"].errors["vfov"], expected)
    for way in ways:
        assert rows[f"1: {way}"].errors["vfov"].tolist() == pytest.approx([10] * 4)
    table = study_table(study)
    assert table.header == ["vFoV by", "photos", "1 image", "2 images", "4 images"]
    assert [row[0] for row in table.rows] == ["level, 28 mm", *ways]
    assert table.rows[1][1:4] == ["4", "10.00", "0.00"]


def test_averages_leave_out_failures() -> None:
    answers = {"0.png": answer(50.0, k1=0.1), "1.png": FAILURE, "2.png": answer(50.0, k1=0.3)}
    samples = [sample(name, k1=0.2) for name in (*answers, "1.png")]
    alone = evaluate(FakeCalibrator(by_name(answers)), samples)
    report = averaged(alone, 4)
    np.testing.assert_allclose(report.errors["vfov"], [10, np.inf, 10, np.inf])
    np.testing.assert_allclose(report.errors["k1"], [0, np.inf, 0, np.inf], atol=1e-12)
    assert averaged(alone, 1).errors["k1"][0] == pytest.approx(0.1)


def test_photographs_of_one_camera() -> None:
    samples = [
        sample("a1.png"),
        sample("b1.png", vfov_deg=50.0),
        sample("a2.png"),
        sample("c1.png", k1=0.1),
        sample("b2.png", vfov_deg=50.0),
        sample("a3.png"),
        sample("?.png", vfov_deg=None),
    ]
    names = [s.image.name for s in same_camera(samples, 2)]
    assert names == ["a1.png", "a2.png", "b1.png", "b2.png"]
    assert len(same_camera(samples, 1)) == 6
    assert same_camera(samples, 4) == []


def test_what_is_told_is_not_counted() -> None:
    asked: list[tuple[int, Setting]] = []

    def ask(samples: Sequence[Sample], setting: Setting) -> Report:
        asked.append((len(samples), setting))
        return evaluate(FakeCalibrator(lambda _: answer(61.0)), samples)

    samples = [sample(), sample(roll_deg=None), sample(vfov_deg=None)]
    study = partial_study("town", samples, ["gravity", "focal"], ask)
    assert study is not None
    assert asked == [(1, Setting()), (1, Setting("gravity")), (1, Setting("focal"))]
    known = {label: set(report.summary()) for label, report in study.rows}
    assert "gravity_median" not in known["gravity"]
    assert "vfov_median" in known["gravity"] & known["nothing"] - known["focal"]
    assert partial_study("town", samples[1:], ["focal"], ask) is None


def test_all_known_is_asked_where_something_is_left_to_find() -> None:
    def ask(samples: Sequence[Sample], setting: Setting) -> Report:
        return evaluate(FakeCalibrator(lambda _: answer(61.0, k1=0.1)), samples)

    study = partial_study("town", [sample(k1=0.2)], ["both", "exif"], ask)
    assert study is not None
    assert study.kinds == ("gravity", "vfov", "pixels")
    _, (both, left), (exif, whole) = study.rows
    assert (both, exif) == ("both", "EXIF: focal length in whole mm")
    assert left is not None
    assert whole is not None
    assert {"gravity_median", "vfov_median"}.isdisjoint(left.summary())
    assert left.summary()["pixels_median"] == whole.summary()["pixels_median"] > 0
    assert "vfov_median" in whole.summary()
    # Of a pinhole nothing is left.
    study = partial_study("town", [sample()], ["both", "exif"], ask)
    assert study is not None
    assert len(study.rows) == 2
