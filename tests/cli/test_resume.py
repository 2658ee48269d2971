"""A run that was interrupted goes on where it stopped."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from fake_calibrator import FakeCalibrator, Run, picture
from geocalib.formats import csv_table, json_lines
from geocalib.result.calibration import Calibration, Failure

NAMES = [f"{i}.png" for i in range(1, 11)]


def images(path: str) -> list[str | None]:
    """The names of the images in a file of JSON lines, in its order."""
    return [Path(record["image"]).name for record in json_lines.read_records(path)]


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
        "error: out.jsonl answers another question (--camera-model auto there, --camera-model "
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


@pytest.mark.parametrize("output", ["out.jsonl", "out.csv"])
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--fov", "50"), "no --fov there, --fov 50.0 here"),
        (("--focal", "70"), "no --focal there, --focal 70.0 here"),
        (("--lines", "off"), "--lines auto there, --lines off here"),
        (("--roll", "3", "--pitch", "4"), "no --roll there, --roll 3.0 here"),
        (("--exif", "off"), "--exif there, no --exif here"),
        (("--sensors", "off"), "--sensors there, no --sensors here"),
        (("--camera-model", "radial"), "--camera-model auto there, --camera-model radial here"),
        (("--crop", "0,0,64,48,128,96"), "no --crop there, --crop [0.0, 0.0, 64.0, 48.0, 128.0, "),
        (("--shared",), "no --shared there, --shared here"),
        (("--weights", "mine"), "--weights lean "),
    ],
)
def test_another_question_is_not_mixed_in(
    run: Run,
    calibrator: FakeCalibrator,
    photos: list[str],
    output: str,
    options: tuple[str, ...],
    words: str,
) -> None:
    Path("mine").write_bytes(b"weights")
    run("calibrate", *photos[:2], "-o", output)
    before, calls = Path(output).read_bytes(), len(calibrator.calls)
    result = run("calibrate", "photos", "-o", output, *options)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {output} answers another question ({words}")
    assert result.stderr.endswith("; choose another name or add --overwrite\n")
    assert len(result.stderr.splitlines()) == 1
    assert Path(output).read_bytes() == before
    assert len(calibrator.calls) == calls
    result = run("calibrate", *photos[:3], "-o", output, *options, "--overwrite")
    assert (result.exit_code, len(calibrator.images)) == (0, 2 + 3)
    assert sorted(path.name for path in Path.cwd().iterdir()) == ["mine", output, "photos"]


def test_another_version_or_other_weights_are_another_question(
    run: Run, photos: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("mine").write_bytes(b"weights")
    words = ("calibrate", photos[0], "-o", "out.jsonl", "--weights", "mine")
    assert run(*words).exit_code == 0
    Path("copy").write_bytes(b"weights")
    assert run(*words[:-1], "copy").exit_code == 0
    Path("mine").write_bytes(b"more weights")
    assert "answers another question (--weights" in run(*words).stderr
    Path("mine").write_bytes(b"weights")
    monkeypatch.setattr("importlib.metadata.version", lambda name: "99")
    result = run(*words)
    assert result.stderr.endswith(
        "there, geocalib 99 here); choose another name or add --overwrite\n"
    )


@pytest.mark.parametrize("output", ["out.jsonl", "out.csv"])
def test_answers_that_do_not_say_what_was_asked(run: Run, photos: list[str], output: str) -> None:
    """Of an earlier version, or of Python."""
    run("calibrate", "photos", "-o", "new.jsonl")
    outcomes = json_lines.read("new.jsonl")
    (json_lines if output == "out.jsonl" else csv_table).write(outcomes, output)
    before = Path(output).read_bytes()
    result = run("calibrate", "photos", "-o", output)
    assert (result.exit_code, result.stderr) == (
        2,
        f"error: {output} does not say what was asked, so nothing can be added to it; choose "
        "another name or add --overwrite\n",
    )
    assert Path(output).read_bytes() == before
    assert run("calibrate", "photos", "-o", output, "--overwrite").exit_code == 0


@pytest.mark.parametrize("output", ["out.jsonl", "out.csv"])
def test_a_photo_that_changed_is_done_again(
    run: Run, calibrator: FakeCalibrator, photos: list[str], output: str
) -> None:
    run("calibrate", "photos", "-o", output)
    # Another time of change alone is no change, nor is a photo that is gone.
    os.utime(photos[3], (1, 1))
    picture(80, 60, seed=77).save(photos[4])
    # Of the same size, as far as one can tell without reading it.
    state = os.stat(photos[5])
    Path(photos[5]).write_bytes(Path(photos[5]).read_bytes()[:-1] + b"x")
    os.utime(photos[5], ns=(state.st_atime_ns, state.st_mtime_ns + 1))
    result = run("calibrate", "photos", "-o", output)
    assert result.stderr.splitlines()[0].startswith("8 images already in")
    assert calibrator.images == [*NAMES, "5.png", "6.png"]
    read = json_lines.read if output == "out.jsonl" else csv_table.read
    outcomes = {outcome.image: outcome for outcome in read(output)}
    assert len(read(output)) == len(outcomes) == 10
    assert outcomes[photos[4]].width == 80


def test_a_table_goes_on(run: Run, calibrator: FakeCalibrator, photos: list[str]) -> None:
    Path(photos[1]).write_bytes(b"")
    run("calibrate", *photos[:3], "-o", "out.csv")
    picture(seed=1).save(photos[1])
    result = run("calibrate", "photos", "-o", "out.csv")
    assert result.stderr.splitlines() == [
        "2 images already in out.csv.partial.jsonl: going on with 8",
        "8 images calibrated; see out.csv",
    ]
    assert calibrator.images == [*NAMES[:3], "2.png", *NAMES[3:]]
    outcomes = csv_table.read("out.csv")
    assert sorted(str(outcome.image) for outcome in outcomes) == sorted(photos)
    assert all(isinstance(outcome, Calibration) for outcome in outcomes)
    before = Path("out.csv").read_bytes()
    result = run("calibrate", "photos", "-o", "out.csv")
    assert result.stderr.splitlines()[0] == "10 images already in out.csv: nothing is left to do"
    assert Path("out.csv").read_bytes() == before
    assert len(calibrator.images) == 11


def test_a_table_that_goes_on_is_whole_at_any_time(
    run: Run, calibrator: FakeCalibrator, photos: list[str]
) -> None:
    run("calibrate", *photos[:3], "-o", "out.csv")
    before = Path("out.csv").read_bytes()
    calibrator.interrupt_at = "6.png"
    assert run("calibrate", "photos", "-o", "out.csv").exit_code == 130
    assert Path("out.csv").read_bytes() == before
    calibrator.interrupt_at = None
    assert run("calibrate", "photos", "-o", "out.csv").exit_code == 0
    assert calibrator.images == NAMES
    assert len(csv_table.read("out.csv")) == 10


def test_what_is_to_be_replaced_stays_until_the_end(
    run: Run, calibrator: FakeCalibrator, photos: list[str]
) -> None:
    run("calibrate", "photos", "-o", "out.jsonl")
    before = Path("out.jsonl").read_bytes()
    words = ("calibrate", "photos", "-o", "out.jsonl", "--fov", "50", "--overwrite")
    calibrator.interrupt_at = "6.png"
    assert run(*words).exit_code == 130
    assert Path("out.jsonl").read_bytes() == before
    calibrator.interrupt_at = None
    assert "5 images already in out.jsonl.partial.jsonl: going on with 5" in run(*words).stderr
    assert calibrator.images == [*NAMES, *NAMES]
    requests = {record["request"] for record in json_lines.read_records("out.jsonl")}
    assert [json.loads(request)["fov"] for request in requests] == [50]
    assert sorted(path.name for path in Path.cwd().iterdir()) == ["out.jsonl", "photos"]


def test_fewer_images_of_one_camera_are_another_set(
    run: Run, calibrator: FakeCalibrator, photos: list[str]
) -> None:
    run("calibrate", "photos", "--shared", "-o", "out.jsonl")
    run("calibrate", *photos[:4], "--shared", "-o", "out.jsonl")
    assert [len(call) for call, _ in calibrator.calls] == [10, 4]
    assert sorted(images("out.jsonl")) == sorted(NAMES)
