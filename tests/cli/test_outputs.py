"""Whatever is named as an output, nothing of the user's is lost."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fake_calibrator import FakeCalibrator, Run, picture
from geocalib.formats import csv_table, json_lines

FULL = Path("/dev/full")


def content() -> dict[str, bytes]:
    """All files below the current folder."""
    return {str(p): p.read_bytes() for p in sorted(Path().rglob("*")) if p.is_file()}


@pytest.fixture
def place(run: Run, photos: list[str]) -> None:
    """Files that commands might be told to write, by mistake."""
    Path("other.png").write_bytes(Path(photos[1]).read_bytes())
    Path("linked.png").symlink_to(photos[0])
    Path("hard.png").hardlink_to(photos[0])
    rows = ["image,camera", *(f"{name},one" for name in photos)]
    Path("who.csv").write_text("\n".join(rows) + "\n")
    Path("gt.csv").write_text("image,vfov_deg\n1.png,60\n")
    Path("model").mkdir()
    Path("model/cameras.txt").write_text("1 PINHOLE 1000 800 800 800 500 400\n")
    Path("photos/1.json").write_text(json.dumps({"gravity": [0, 1, 0], "frame": "camera"}))


INPUT = "is an input and stays as it is; choose another output"
EXISTS = "exists; choose another name or add --overwrite"
FOREIGN = "exists and is not from geocalib; choose another name or add --overwrite"


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("overwrite", [(), ("--overwrite",)])
@pytest.mark.parametrize(
    ("words", "file"),
    [
        (("calibrate", "photos", "--csv", "-o", "photos/1.png"), "photos/1.png"),
        (("calibrate", "photos", "--json", "-o", "photos/1.png"), "photos/1.png"),
        (("calibrate", "photos", "--json", "-o", "linked.png"), "linked.png"),
        (("calibrate", "photos", "--json", "-o", "hard.png"), "hard.png"),
        (
            ("calibrate", "photos/1.png", "--format", "opencv", "-o", "photos/1.png"),
            "photos/1.png",
        ),
        (("calibrate", "photos/1.png", "--format", "ros", "-o", "hard.png"), "hard.png"),
        (("calibrate", "photos", "--format", "colmap", "-o", "photos/2.png"), "photos/2.png"),
        (("calibrate", "photos", "--format", "nerfstudio", "-o", "photos/2.png"), "photos/2.png"),
        (("calibrate", "photos", "--shared", "--cameras", "who.csv", "-o", "who.csv"), "who.csv"),
        (("calibrate", "photos", "-o", "photos/1.json"), "photos/1.json"),
        (("show", "photos/1.png", "-o", "photos/1.png"), "photos/1.png"),
        (("show", "photos/1.png", "-o", "linked.png"), "linked.png"),
        (("upright", "photos", "-o", "photos"), "photos/1.png"),
        (("undistort", "photos/1.png", "-o", "hard.png"), "hard.png"),
        (("rectify", "photos/1.png", "-o", "hard.png"), "hard.png"),
    ],
)
def test_inputs_are_never_written_to(
    run: Run, words: tuple[str, ...], file: str, overwrite: tuple[str, ...]
) -> None:
    before = content()
    result = run(*words, *overwrite)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"error: {file} {INPUT}\n"
    assert content() == before


def test_the_list_of_photos_stays(run: Run, photos: list[str], monkeypatch: object) -> None:
    """Its name is known to the shell alone."""
    Path("list.csv").write_text("\n".join(photos))
    with Path("list.csv").open("rb") as stdin:
        saved = os.dup(0)
        os.dup2(stdin.fileno(), 0)
        try:
            result = run(
                *("calibrate", "-", "-o", "list.csv", "--overwrite"),
                stdin=Path("list.csv").read_bytes(),
            )
        finally:
            os.dup2(saved, 0)
            os.close(saved)
    assert result.stderr == f"error: list.csv {INPUT}\n"


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("calibrate", "photos", "-o", "gt.csv"), f"gt.csv {FOREIGN}"),
        (("calibrate", "photos", "--json", "-o", "gt.csv"), f"gt.csv {FOREIGN}"),
        (("calibrate", "photos", "--format", "colmap", "-o", "model"), "model/cameras.txt"),
        (("calibrate", "photos/1.png", "--format", "opencv", "-o", "other.png"), "other.png"),
        (("show", "photos/1.png", "-o", "other.png"), f"other.png {EXISTS}"),
        (("upright", "photos/1.png", "-o", "other.png"), f"other.png {EXISTS}"),
        (("rectify", "photos/1.png", "-o", "other.png"), f"other.png {EXISTS}"),
    ],
)
def test_what_exists_is_replaced_only_if_asked(
    run: Run, calibrator: FakeCalibrator, words: tuple[str, ...], line: str
) -> None:
    before = content()
    result = run(*words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"error: {line}")
    assert len(result.stderr.splitlines()) == 1
    assert "choose another name or add --overwrite" in result.stderr
    assert content() == before
    assert calibrator.calls == []
    assert run(*words, "--overwrite").exit_code == 0
    changed = {name for name, value in content().items() if before.get(name) != value}
    assert changed == {line.partition(" ")[0]}


def test_all_files_are_checked_before_one_is_written(run: Run, photos: list[str]) -> None:
    Path("out").mkdir()
    Path("out/9.png").write_bytes(b"mine")
    Path("out/9.png.yaml").write_bytes(b"mine")
    for words in (("upright", "photos"), ("calibrate", "photos", "--format", "opencv")):
        result = run(*words, "-o", "out")
        assert result.exit_code == 2
        assert f".png{'' if 'upright' in words else '.yaml'} {EXISTS}" in result.stderr
    Path("drawn").mkdir()
    Path("drawn/9.png.geocalib.png").write_bytes(b"mine")
    for more in ((), ("--json",), ("-o", "out.jsonl"), ("-o", "out.csv")):
        result = run("calibrate", "photos", "--overlay", "drawn", *more)
        assert result.stderr == f"error: drawn/9.png.geocalib.png {EXISTS}\n"
    assert sorted(content()) == sorted(
        [*photos, "out/9.png", "out/9.png.yaml", "drawn/9.png.geocalib.png"]
    )


def test_commands_can_be_repeated_with_overwrite(run: Run, photos: list[str]) -> None:
    two = photos[:2]
    for words in (
        ("rectify", *two, "-o", "level"),
        ("show", photos[0], "-o", "drawn.png"),
        ("calibrate", *two, "--format", "colmap", "-o", "model"),
        ("calibrate", *two, "--format", "ros", "-o", "ros"),
        ("calibrate", *two, "--overlay", "drawn"),
    ):
        assert run(*words).exit_code == 0
        before = content()
        assert run(*words).exit_code == 2
        assert run(*words, "--overwrite").exit_code == 0
        assert content() == before


def test_two_images_for_one_picture(run: Run) -> None:
    picture().save("a.gif")
    picture(seed=1).save("a.gif.png")
    result = run("upright", "a.gif", "a.gif.png", "-o", "out")
    assert "out/a.gif.png would be written twice" in result.stderr
    assert not Path("out").exists()


@pytest.mark.usefixtures("photos")
class TestOneAtATime:
    def test_a_second_run_waits(self, run: Run, calibrator: FakeCalibrator) -> None:
        from geocalib.files import locked

        for output, place in (("out.jsonl", "out.jsonl"), ("model", "model/cameras.txt")):
            words = ("calibrate", "photos", "-o", output)
            words = (*words, "--format", "colmap") if output == "model" else words
            with locked(Path(place)):
                result = run(*words)
            assert result.exit_code == 2
            assert result.stderr == (
                f"error: {place} is being written by process {os.getpid()}; wait for it, or "
                "choose another output\n"
            )
            assert calibrator.calls == []
            assert run(*words).exit_code == 0
            calibrator.calls.clear()
        assert not list(Path().rglob("*.lock"))


@pytest.mark.usefixtures("photos")
class TestDevices:
    @pytest.mark.skipif(not FULL.exists(), reason="a device of Linux")
    @pytest.mark.parametrize("format", ["json", "csv", "colmap", "nerfstudio"])
    def test_a_full_disk(self, run: Run, format: str) -> None:
        result = run("calibrate", "photos", "--format", format, "-o", "/dev/full")
        assert result.exit_code == 2
        assert result.stderr == "error: /dev/full: No space left on device\n"

    @pytest.mark.skipif(not FULL.exists(), reason="a device of Linux")
    def test_a_full_disk_for_pictures(self, run: Run) -> None:
        Path("out.png").symlink_to(FULL)
        for command in ("rectify", "show"):
            result = run(command, "photos/1.png", "-o", "out.png")
            assert result.exit_code == 2
            assert result.stderr == "error: out.png: No space left on device\n"

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
    def test_a_folder_that_may_only_be_read(self, run: Run) -> None:
        Path("fixed").mkdir(mode=0o500)
        for words in (("calibrate", "--json"), ("upright",)):
            result = run(*words, "photos/1.png", "-o", "fixed/out.png")
            assert result.exit_code == 2
            assert result.stderr == "error: fixed/out.png: Permission denied\n"

    def test_nowhere(self, run: Run) -> None:
        for format in ("json", "csv", "colmap"):
            result = run("calibrate", "photos", "--format", format, "-o", os.devnull)
            assert (result.exit_code, result.stderr) == (0, "10 images calibrated\n")
        assert not list(Path("/dev").glob("null.*"))

    def test_standard_output_of_any_kind(self, run: Run) -> None:
        """As with > and >>: what is in a file stays there, and a photo is no file to add to."""
        Path("all.jsonl").write_text("mine\n")
        with Path("all.jsonl").open("ab") as file:
            result = run("calibrate", "photos", "--json", "-o", f"/dev/fd/{file.fileno()}")
        assert (result.exit_code, len(Path("all.jsonl").read_text().splitlines())) == (0, 11)
        with Path("photos/1.png").open("ab") as file:
            name = f"/dev/fd/{file.fileno()}"
            assert run("calibrate", "photos", "--json", "-o", name).stderr == (
                f"error: {name} {INPUT}\n"
            )

    def test_a_pipe(self, run: Run) -> None:
        reading, writing = os.pipe()
        run("calibrate", "photos/1.png", "--csv", "-o", f"/dev/fd/{writing}")
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            Path("piped.csv").write_bytes(pipe.read())
        (outcome,) = csv_table.read("piped.csv")
        assert outcome.image == "photos/1.png"


@pytest.mark.usefixtures("photos")
def test_an_empty_file_may_be_filled(run: Run) -> None:
    """As mktemp makes them."""
    for name in ("out.jsonl", "out.csv"):
        Path(name).touch()
        assert run("calibrate", "photos", "-o", name).exit_code == 0
    assert len(json_lines.read("out.jsonl")) == len(csv_table.read("out.csv")) == 10


def test_drawings_of_an_interrupted_run_are_gone_on_with(
    run: Run, calibrator: FakeCalibrator, photos: list[str]
) -> None:
    words = ("calibrate", "photos", "-o", "out.csv", "--overlay", "drawn")
    calibrator.interrupt_at = "5.png"
    assert run(*words).exit_code == 130
    calibrator.interrupt_at = None
    # Drawn, but its answer was not kept.
    kept = Path("out.csv.partial.jsonl").read_bytes().splitlines(keepends=True)
    Path("out.csv.partial.jsonl").write_bytes(b"".join(kept[:-1]))
    assert run(*words).exit_code == 0
    assert len(list(Path("drawn").iterdir())) == len(csv_table.read("out.csv")) == 10
    drawn = np.asarray(Image.open("drawn/4.png.geocalib.png"))
    assert drawn.shape[:2] == (48, 64)
