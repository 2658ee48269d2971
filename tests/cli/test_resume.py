"""A run that was interrupted goes on where it stopped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fake_calibrator import FakeCalibrator, Run, picture
from geocalib.calibration import Calibration, Failure
from geocalib.formats import csv_table, json_lines

NAMES = [f"{i}.png" for i in range(1, 11)]


def images(path: str) -> list[str | None]:
    """The names of the images in a file of JSON lines, in its order."""
    return [Path(record["image"]).name for record in json_lines.read_records(path)]


@pytest.fixture(autouse=True)
def one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    from geocalib.cli import engine

    monkeypatch.setattr(engine, "CHUNK", {"cpu": 1})


@pytest.mark.usefixtures("photos")
class TestInterrupted:
    def test_goes_on(self, run: Run, calibrator: FakeCalibrator) -> None:
        calibrator.interrupt_at = "5.png"
        result = run("calibrate", "photos", "-o", "out.jsonl")
        assert result.exit_code == 130
        assert result.stderr.splitlines() == [
            "error: interrupted; run the same command again to go on"
        ]
        assert images("out.jsonl") == NAMES[:4]
        kept = Path("out.jsonl").read_bytes()

        calibrator.interrupt_at = None
        result = run("calibrate", "photos", "-o", "out.jsonl")
        assert result.exit_code == 0
        assert result.stderr.splitlines() == [
            "4 images already in out.jsonl: going on with 6",
            "6 images calibrated; see out.jsonl",
        ]
        assert calibrator.images == NAMES
        assert images("out.jsonl") == NAMES
        assert Path("out.jsonl").read_bytes().startswith(kept)

    def test_in_the_middle_of_a_line(self, run: Run, calibrator: FakeCalibrator) -> None:
        run("calibrate", "photos", "-o", "out.jsonl")
        whole = Path("out.jsonl").read_bytes()
        Path("out.jsonl").write_bytes(whole[:-100])
        result = run("calibrate", "photos", "-o", "out.jsonl")
        assert result.stderr.splitlines()[0] == "9 images already in out.jsonl: going on with 1"
        assert calibrator.images == [*NAMES, NAMES[-1]]
        assert Path("out.jsonl").read_bytes() == whole

    def test_on_the_way_to_another_format(self, run: Run, calibrator: FakeCalibrator) -> None:
        calibrator.interrupt_at = "5.png"
        assert run("calibrate", "photos", "-o", "out.csv").exit_code == 130
        assert not Path("out.csv").exists()
        calibrator.interrupt_at = None
        assert run("calibrate", "photos", "-o", "out.csv").exit_code == 0
        assert calibrator.images == NAMES
        assert len(csv_table.read("out.csv")) == 10
        assert sorted(path.name for path in Path.cwd().iterdir()) == ["out.csv", "photos"]

    def test_a_table_shows_what_there_is(self, run: Run, calibrator: FakeCalibrator) -> None:
        calibrator.interrupt_at = "5.png"
        result = run("calibrate", "photos")
        assert result.exit_code == 130
        assert result.stderr == "error: interrupted\n"
        assert result.stdout.count(".png") == 4

    def test_images_of_one_camera_are_done_all_or_none(
        self, run: Run, calibrator: FakeCalibrator
    ) -> None:
        run("calibrate", "photos", "--shared", "-o", "out.jsonl")
        lines = Path("out.jsonl").read_bytes().splitlines(keepends=True)
        other = lines[0].replace(b"photos/1.png", b"other.png")
        Path("out.jsonl").write_bytes(b"".join([other, *lines[:3]]))
        result = run("calibrate", "photos", "--shared", "-o", "out.jsonl")
        assert result.stderr.splitlines() == ["10 images calibrated; see out.jsonl"]
        assert [len(call) for call, _ in calibrator.calls] == [10, 10]
        assert images("out.jsonl") == ["other.png", *NAMES]
        run("calibrate", "photos", "--shared", "-o", "out.jsonl")
        assert len(calibrator.calls) == 2


def test_failed_images_are_tried_again(
    run: Run, calibrator: FakeCalibrator, photos: list[str]
) -> None:
    Path("photos/3.png").write_bytes(b"")
    Path("photos/7.png").write_bytes(b"")
    assert run("calibrate", "photos", "-o", "out.jsonl").exit_code == 1
    picture().save("photos/3.png")
    assert run("calibrate", "photos", "-o", "out.jsonl").exit_code == 1
    assert calibrator.images == [*NAMES, "3.png", "7.png"]
    outcomes = {str(outcome.image): outcome for outcome in json_lines.read("out.jsonl")}
    assert sorted(outcomes) == sorted(photos)
    assert isinstance(outcomes["photos/3.png"], Calibration)
    assert isinstance(outcomes["photos/7.png"], Failure)
    assert len(images("out.jsonl")) == 10


def test_nothing_left_to_do(run: Run, calibrator: FakeCalibrator, photos: list[str]) -> None:
    run("calibrate", "photos", "-o", "out.jsonl")
    result = run("calibrate", "photos", "-o", "out.jsonl")
    assert result.exit_code == 0
    assert result.stderr.splitlines()[0] == (
        "10 images already in out.jsonl: nothing is left to do"
    )
    assert len(calibrator.opened) == 1


def test_answers_for_other_images_stay(run: Run, photos: list[str]) -> None:
    Path("photos/2.png").write_bytes(b"")
    run("calibrate", *photos[:2], "-o", "out.jsonl")
    run("calibrate", photos[2], "-o", "out.jsonl")
    assert images("out.jsonl") == NAMES[:3]


def test_answers_for_another_camera_model(run: Run, photos: list[str]) -> None:
    run("calibrate", "photos", "-o", "out.jsonl")
    before = Path("out.jsonl").read_bytes()
    result = run("calibrate", "photos", "-o", "out.jsonl", "--camera-model", "radial")
    assert result.exit_code == 2
    assert result.stderr == (
        "error: out.jsonl answers another question (--camera-model pinhole there, --camera-model "
        "radial here); choose another name or add --overwrite\n"
    )
    assert Path("out.jsonl").read_bytes() == before


def test_a_file_that_is_not_ours_is_left_alone(run: Run, photos: list[str]) -> None:
    Path("diary.json").write_text(json.dumps({"dear": "diary"}) + "\n")
    result = run("calibrate", "photos", "--json", "-o", "diary.json")
    assert result.exit_code == 2
    assert result.stderr == (
        "error: diary.json exists and is not from geocalib; choose another name or add "
        "--overwrite\n"
    )
    assert json.loads(Path("diary.json").read_text()) == {"dear": "diary"}
