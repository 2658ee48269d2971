"""``geocalib undistort``, ``upright`` and ``rectify``."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from calibrations import one
from fake_calibrator import FakeCalibrator, Run, picture
from geocalib.formats import json_lines
from geocalib.imaging import read_photo
from geocalib.result.calibration import Failure

COMMANDS = ("undistort", "upright", "rectify")


def pixels(path: str | Path) -> np.ndarray:
    return read_photo(path, short_side=None).pixels


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("border", ["keep", "crop"])
def test_the_picture_is_that_of_the_calibration(
    run: Run, calibrator: FakeCalibrator, photos: list[str], command: str, border: str
) -> None:
    options = ["--crop"] if border == "crop" else []
    result = run(command, photos[0], "-o", "out.png", *options)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "1 picture written to out.png\n"
    (outcome,) = calibrator.calibrate([photos[0]], calibrator.calls[0][1]["camera_model"])
    expected = getattr(outcome, command)(photos[0], border).image
    np.testing.assert_array_equal(pixels("out.png"), np.asarray(expected))


def test_the_picture_tells_its_kind_of_lens_unless_it_is_named(
    run: Run, calibrator: FakeCalibrator, photos: list[str]
) -> None:
    for command in COMMANDS:
        run(command, photos[0], "-o", f"{command}.png")
    models = [known["camera_model"] for _, known in calibrator.calls]
    assert models == ["auto", "auto", "auto"]
    result = run("undistort", photos[0], "-o", "x.png", "--camera-model", "pinhole")
    assert result.exit_code == 2
    assert "a pinhole camera bends nothing" in result.stderr


def test_doubts_are_said_beside_the_picture(
    run: Run, calibrator: FakeCalibrator, photos: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    doubt = "gravity: given (roll +0.0°, pitch +0.0°) contradicts the picture by 37.1 sigma"
    answer = calibrator._one
    monkeypatch.setattr(
        calibrator, "_one", lambda *asked: replace(answer(*asked), warnings=(doubt,))
    )
    result = run("upright", photos[0], "-o", "out.png", "--roll", 0, "--pitch", 0)
    assert result.stderr.splitlines()[0] == f"warning: {photos[0]}: {doubt}"


def test_many_photos_keep_their_folders(run: Run, photos: list[str]) -> None:
    Path("photos/deep").mkdir()
    picture().save("photos/deep/1.jpg")
    picture().save("photos/deep/moving.gif")
    Path("photos/3.png").write_bytes(b"")
    result = run("upright", "photos", "-r", "gone.jpg", "-o", "out")
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        "error: photos/3.png is empty; copy it again",
        "error: gone.jpg does not exist; check the path",
        "11 pictures written to out",
    ]
    written = sorted(str(path) for path in Path("out").rglob("*.*"))
    kept = [f"out/{photo}" for photo in photos if photo != "photos/3.png"]
    assert written == sorted([*kept, "out/photos/deep/1.jpg", "out/photos/deep/moving.gif.png"])


def test_a_photo_that_cannot_be_rectified(run: Run, photos: list[str]) -> None:
    steep = one("pinhole", photos[0], pitch_deg=80, size=(64, 48), c=(32, 24))
    level = one("pinhole", photos[1], size=(64, 48), c=(32, 24))
    json_lines.write([steep, level], "saved.jsonl")
    result = run("rectify", *photos[:2], "-o", "out", "--calibration", "saved.jsonl")
    assert result.exit_code == 1
    assert result.stderr.splitlines()[0].startswith("error: photos/1.png: a pitch of 80 degrees")
    assert [path.name for path in Path("out").iterdir()] == ["2.png"]


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("photos", "photos/1.png is an input and stays as it is; choose another output"),
        ("photos/1.png", "photos/1.png is an input and stays as it is"),
        ("link.png", "link.png is an input and stays as it is"),
        ("out.txt", "out.txt: pictures are written as .jpg, .jpeg, .png"),
    ],
)
def test_photos_are_never_overwritten(
    run: Run, photos: list[str], output: str, message: str
) -> None:
    Path("link.png").symlink_to("photos/1.png")
    before = Path(photos[0]).read_bytes()
    result = run("upright", photos[0], "-o", output)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {message}")
    assert Path(photos[0]).read_bytes() == before


def test_many_photos_do_not_share_a_file(run: Run, photos: list[str]) -> None:
    result = run("upright", "photos", "-o", "out.png")
    assert (result.exit_code, result.stderr) == (
        2,
        "error: out.png is one file for 10 images; give a folder\n",
    )


def test_formats_of_pictures(run: Run, photos: list[str]) -> None:
    for suffix, kind in {"jpg": "JPEG", "webp": "WEBP", "tif": "TIFF", "PNG": "PNG"}.items():
        run("upright", photos[0], "-o", f"new/out.{suffix}")
        with Image.open(f"new/out.{suffix}") as image:
            assert image.format == kind


class TestSaved:
    """A calibration that was found before."""

    def test_in_the_place_of_a_new_one(
        self, run: Run, calibrator: FakeCalibrator, photos: list[str]
    ) -> None:
        run("calibrate", "photos", "-o", "saved.jsonl", "--camera-model", "radial")
        calls = len(calibrator.calls)
        result = run("undistort", "photos", "-o", "out", "--calibration", "saved.jsonl")
        assert result.exit_code == 0
        assert len(calibrator.calls) == calls
        (outcome,) = calibrator.calibrate([photos[3]], "radial")
        expected = np.asarray(outcome.undistort(photos[3]).image)
        np.testing.assert_array_equal(pixels("out/4.png"), expected)

    def test_from_another_folder(
        self,
        run: Run,
        calibrator: FakeCalibrator,
        photos: list[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        run("calibrate", "photos", "-o", "saved.jsonl")
        (outcome,) = calibrator.calibrate([photos[0]])
        expected = np.asarray(outcome.upright(photos[0]).image)
        calls = len(calibrator.calls)
        monkeypatch.chdir("photos")
        result = run("upright", "1.png", "-o", "../out.png", "--calibration", "../saved.jsonl")
        assert result.exit_code == 0
        assert len(calibrator.calls) == calls
        np.testing.assert_array_equal(pixels("../out.png"), expected)

    def test_not_of_this_photo(self, run: Run, photos: list[str]) -> None:
        size = {"size": (64, 48), "c": (32, 24)}
        saved = [one("pinhole", f"{folder}/1.png", **size) for folder in "ab"]
        failed = Failure(photos[3], None, None, f"{photos[3]} is empty; copy it again")
        other = one("pinhole", photos[2], size=(100, 100))
        json_lines.write([*saved, other, failed], "saved.jsonl")
        result = run("upright", *photos[:4], "-o", "out", "--calibration", "saved.jsonl")
        assert result.exit_code == 1
        lines = result.stderr.splitlines()
        assert lines[:2] == [
            "error: photos/1.png: saved.jsonl names 2 others alike; calibrate it first",
            "error: photos/2.png: saved.jsonl does not name it; calibrate it first",
        ]
        assert "100" in lines[2]
        assert lines[3] == "error: photos/4.png is empty; copy it again"
        assert len(lines) == 4

    def test_a_focal_length_that_no_lens_has(self, run: Run, photos: list[str]) -> None:
        run("calibrate", *photos[:2], "-o", "saved.jsonl")
        first, second = Path("saved.jsonl").read_text().splitlines()
        record = json.loads(first) | {"fx": 1e-300, "fy": 1e-300}
        Path("saved.jsonl").write_text(f"{json.dumps(record)}\n{second}\n")
        result = run("rectify", *photos[:2], "-o", "out", "--calibration", "saved.jsonl")
        assert result.exit_code == 1
        assert result.stderr.startswith(
            "error: photos/1.png: saved.jsonl, photos/1.png: fx must be positive, between "
        )
        assert Path("out/2.png").exists()

    def test_no_such_file(self, run: Run, photos: list[str]) -> None:
        result = run("upright", photos[0], "-o", "out.png", "--calibration", "gone.jsonl")
        assert (result.exit_code, result.stderr) == (
            2,
            "error: gone.jsonl: No such file or directory\n",
        )
