"""``calibrate --shared``: who shares a camera, and what becomes of those who do not belong."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from fake_calibrator import FakeCalibrator, Run, picture
from geocalib.formats import csv_table, json_lines
from geocalib.result.calibration import OUTLIER, Calibration, Failure, Outcome


@pytest.fixture
def screenshot(calibrator: FakeCalibrator, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a photo that is found to be an outlier."""
    name = "photos/3.png"

    found = FakeCalibrator.calibrate_set

    def calibrate_set(self: FakeCalibrator, images: Sequence[str], **how: Any) -> Iterator[Outcome]:
        for outcome in found(self, images, **how):
            odd = Failure(name, 64, 48, f"{name} looks as if it were a screenshot", OUTLIER)
            yield odd if outcome.image == name else outcome

    monkeypatch.setattr(FakeCalibrator, "calibrate_set", calibrate_set)
    return name


@pytest.mark.usefixtures("photos")
class TestWhoShares:
    def test_by_size(self, run: Run, calibrator: FakeCalibrator) -> None:
        picture(80, 48).save("photos/2.png")
        picture(48, 64).save("photos/3.png")
        assert run("calibrate", "photos", "--shared").exit_code == 0
        ((_, known),) = calibrator.calls
        assert known["cameras"] == [0, 1, *[0] * 8]

    def test_all(self, run: Run, calibrator: FakeCalibrator) -> None:
        picture(80, 48).save("photos/2.png")
        run("calibrate", "photos", "--shared", "--cameras", "all")
        assert calibrator.calls[0][1]["cameras"] == [0] * 10

    def test_a_table(self, run: Run, calibrator: FakeCalibrator) -> None:
        names = [f"{i}.png,{'left' if i < 6 else 'right'}" for i in range(1, 10)]
        Path("who.csv").write_text("\n".join(["image,camera", *names]) + "\n")
        run("calibrate", "photos", "--shared", "--cameras", "who.csv")
        assert calibrator.calls[0][1]["cameras"] == [0] * 5 + [1] * 4 + [2]

    def test_what_is_known_reaches_the_set(self, run: Run, calibrator: FakeCalibrator) -> None:
        run("calibrate", "photos", "--shared", "--exif", "--lines", "off", "--any-rotation", "on")
        known = calibrator.calls[0][1]
        assert known["exif"] is True
        assert known["lines"] == "off"
        assert known["any_rotation"] == "on"

    @pytest.mark.parametrize(
        ("words", "error"),
        [
            (["--cameras", "all"], "cameras says which photos share a camera; add shared"),
            (["--shared", "--cameras", "none.csv"], "none.csv cannot be read"),
        ],
    )
    def test_errors(self, run: Run, words: list[str], error: str) -> None:
        result = run("calibrate", "photos", *words)
        assert result.exit_code == 2
        assert error in result.stderr


@pytest.mark.usefixtures("photos")
class TestOutliers:
    def test_json_lines(self, run: Run, screenshot: str) -> None:
        result = run("calibrate", "photos", "--shared", "-o", "out.jsonl")
        assert result.exit_code == 0
        assert result.stderr.splitlines() == [
            f"warning: outlier: {screenshot} looks as if it were a screenshot",
            "9 images calibrated, 1 outlier left out; see out.jsonl",
        ]
        record = json.loads(Path("out.jsonl").read_text().splitlines()[2])
        assert record["status"] == "outlier"
        told = {"schema", "image", "width", "height", "status", "error", "request", "photo"}
        assert all(value in (None, []) for key, value in record.items() if key not in told)
        outcomes = json_lines.read("out.jsonl")
        assert outcomes[2].status == OUTLIER
        assert sum(isinstance(outcome, Calibration) for outcome in outcomes) == 9

    def test_csv(self, run: Run, screenshot: str) -> None:
        run("calibrate", "photos", "--shared", "-o", "out.csv")
        outcomes = csv_table.read("out.csv")
        assert outcomes[2] == Failure(
            screenshot, 64, 48, f"{screenshot} looks as if it were a screenshot", OUTLIER
        )

    def test_the_table(self, run: Run, screenshot: str) -> None:
        rows = run("calibrate", "photos", "--shared").stdout.splitlines()
        (row,) = [line for line in rows if "3.png" in line]
        assert row.split() == ["3.png", "outlier"]

    def test_other_programs_get_the_rest(self, run: Run, screenshot: str) -> None:
        run("calibrate", "photos", "--shared", "--format", "colmap", "-o", "model")
        text = Path("model/cameras.txt").read_text()
        assert screenshot not in text
        assert "photos/4.png" in text

    def test_they_are_not_tried_again(
        self, run: Run, calibrator: FakeCalibrator, screenshot: str
    ) -> None:
        run("calibrate", "photos", "--shared", "-o", "out.jsonl")
        run("calibrate", "photos", "--shared", "-o", "out.jsonl")
        assert len(calibrator.calls) == 1
