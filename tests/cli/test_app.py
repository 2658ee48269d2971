"""The commands as a whole: help, versions, errors, and how they end."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import textwrap
import time
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from PIL.ExifTags import IFD, Base
from typer.testing import CliRunner

from fake_calibrator import FakeCalibrator, Run, picture
from geocalib import console
from geocalib.cameras import MODELS
from geocalib.cli import plugins
from geocalib.cli.app import app
from geocalib.formats import FORMATS, json_lines
from geocalib.nets.weights.catalogue import WEIGHT_NAMES
from maker_notes import apple, photo

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "command-line.md"
COMMANDS = (
    *("calibrate", "show", "undistort", "upright", "rectify", "info"),
    *("eval", "train", "dataset", "export", "video", "rig", "localize", "serve", "batch"),
    *("level", "convert"),
)
OTHER_PAGES = {
    "video": "video.md",
    "rig": "rig.md",
    "localize": "localization.md",
    "batch": "batch.md",
    "serve": "server.md",
    "level": "howto/splats.md",
    "convert": "formats.md",
    "eval": "evaluation.md",
    "train": "training.md",
    "dataset": "evaluation.md",
    "export": "model-card.md",
}
"""Where the options of commands are told that have a page of their own."""

REAL = textwrap.dedent(
    f"""
    import sys, time
    from types import SimpleNamespace
    sys.path.insert(0, {str(TESTS)!r})
    from fake_calibrator import FakeCalibrator, NothingToLoad
    class Slow(FakeCalibrator):
        def calibrate(self, *arguments, **known):
            time.sleep(0.05)
            return super().calibrate(*arguments, **known)
    sys.modules["geocalib.pipeline.calibrator"] = SimpleNamespace(Calibrator=Slow())
    from geocalib.cli import network
    network.EngineFuture = NothingToLoad
    from geocalib.cli.app import main
    main()
    """
)
"""A process of its own, as users start one; only the network is missing."""
COMMAND = "from geocalib.cli.app import main; main()"
"""As users start it, for what ends before the network is needed."""


def test_help_names_every_command(run: Run) -> None:
    text = run("--help").stdout
    assert all(re.search(rf"^  {command} ", text, re.MULTILINE) for command in COMMANDS)
    for command in COMMANDS:
        assert run(command, "-h").exit_code == 0


@pytest.mark.parametrize("words", [("eval", "--dataset", "photos"), ("train",), ("dataset", "get")])
def test_without_the_laboratory_its_commands_say_how_to_get_it(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugins, "entry_points", lambda **_: ())
    plugins._command.cache_clear()
    result = CliRunner().invoke(app, words)
    plugins._command.cache_clear()
    assert result.exit_code == 2
    assert result.stderr == (
        f"error: {words[0]} needs the laboratory: pip install ./lab, in a checkout of geocalib\n"
    )


def test_help_of_calibrate_is_in_groups(run: Run) -> None:
    text = run("calibrate", "--help").stdout
    headings = re.findall(r"^(\S.*):$", text, re.MULTILINE)
    groups = ["Input", "What you know", "Lens", "Output", "Speed"]
    assert headings == ["Arguments", *groups, "Other"]
    assert text.index("What you know:") < text.index("--focal") < text.index("Lens:")


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in ("export", "info")])
def test_every_option_is_in_a_group(name: str, run: Run) -> None:
    other = run(name, "--help").stdout.partition("\nOther:\n")[2]
    loose = set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", other, re.MULTILINE))
    assert loose <= {"--help", "--threshold", "--seed"}


def test_nothing_heavy_is_imported_for_help() -> None:
    script = (
        "import sys, geocalib.cli.app; "
        "print(*{'torch', 'numpy', 'PIL', 'matplotlib', 'cv2', 'rich'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert done.stdout.split() == []


def test_version(run: Run) -> None:
    assert run("--version").stdout == f"geocalib {version('geocalib')}\n"


def test_what_the_file_of_a_photo_tells(run: Run, tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[Base.Orientation], exif[Base.Make], exif[Base.Model] = 6, "Apple", "iPhone 12"
    inner = exif.get_ifd(IFD.Exif)
    inner[Base.FocalLength], inner[Base.FocalLengthIn35mmFilm] = 4.2, 26
    picture(403, 302).save(tmp_path / "a.jpg", exif=exif)
    (tmp_path / "a.json").write_text('{"gravity": [0, 1, 0], "frame": "camera"}')
    picture(320, 240).save(tmp_path / "b.png")
    result = run("info", str(tmp_path / "a.jpg"), str(tmp_path / "b.png"))
    assert result.exit_code == 0
    facts = [line.split(maxsplit=1) for line in result.stdout.splitlines()]
    names = [words[0] for words in facts]
    said = " ".join(result.stdout.split())
    assert "size 302x403, stored on its side" in said
    assert "camera Apple, iPhone 12" in said
    assert "focal length 4.2 mm 35 mm equivalent 26 mm" in said
    # 26 mm of 43.27 are 303 of 504 pixels; 3.4% of them 10, and 2 atan(403 / 605) 67.3 degrees.
    assert "fy 303 ± 10 px, by EXIF 26 mm vFoV 67.3 ± 1.8" in said
    assert "gravity roll +0.0, pitch +0.0 ± 1°, by accelerometer" in said
    assert names.count("photo") == 2
    assert said.endswith("camera unknown fy unknown gravity unknown")
    piped = run("info", "-", stdin=(tmp_path / "b.png").read_bytes()).stdout
    assert piped.split()[:4] == ["photo", "-", "size", "320x240,"]


def test_every_reading_of_a_photo_is_told_with_its_worth(run: Run, tmp_path: Path) -> None:
    tags = {Base.FocalLengthIn35mmFilm: 33, Base.FocalLength: 4.12, Base.Model: "iPhone 5"}
    felt = apple((-1.0, 0.0, 0.0))
    (tmp_path / "a.jpg").write_bytes(photo(felt, tags={Base.Software: "GIMP 2.10", **tags}))
    (tmp_path / "a.json").write_text('{"gravity": [0, 1, 0], "frame": "camera"}')
    said = " ".join(run("info", str(tmp_path / "a.jpg")).stdout.split())
    # The surer of both focal lengths counts: 80 pixels are 5.68 mm on the diagonal.
    assert "not used fy 61 ± 2 px, by EXIF 33 mm fy 58 ± 1 px, by EXIF 4.12 mm by" in said
    assert "apple acceleration -1 0 0" in said
    assert "combined gravity roll +0.0, pitch +0.0 ± 0.9°, by accelerometer in EXIF" in said
    assert "combined gravity roll +0.0, pitch +0.0 ± 1°, by accelerometer in a.json" in said
    assert " gravity roll +0.0, pitch +0.0 ± 0.67°, by accelerometer in EXIF and acc" in said
    assert "file written by a program since" in said


def test_a_photo_that_cannot_be_read_tells_nothing(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(b"dear diary")
    result = run("info", str(tmp_path / "a.jpg"))
    assert result.exit_code == 1
    assert "is no image that can be read" in result.stderr


def test_info(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GEOCALIB_CACHE", str(tmp_path / "cache"))
    result = run("info")
    assert result.exit_code == 0
    facts = (version("geocalib"), torch.__version__, "cpu", str(tmp_path / "cache"), "CC-BY-4.0")
    for name in (*facts, *WEIGHT_NAMES, *MODELS, *FORMATS):
        assert name in result.stdout
    assert "downloaded at first use" in result.stdout
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "geocalib-pinhole.tar").touch()
    assert "in the cache folder" in run("info").stdout


def test_an_expected_error_is_one_line(run: Run, photos: list[str]) -> None:
    result = run("calibrate", "photos", "--roll", "3")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == ("error: roll needs pitch as well: together they say where down is\n")
    result = run("calibrate", "photos", "--camera-model", "fisheye")
    assert result.exit_code == 2
    assert "double_sphere" in result.stderr


def test_show(run: Run, calibrator: FakeCalibrator, photos: list[str]) -> None:
    result = run("show", photos[0])
    assert result.exit_code == 0
    assert result.stderr == "drawn in 1.png.geocalib.png\n"
    assert "60.0 ± 1.2" in result.stdout
    assert calibrator.calls[0][1]["keep_fields"] is True
    run("show", photos[0], "-o", "drawn/it.png")
    for file in ("1.png.geocalib.png", "drawn/it.png"):
        with Image.open(file) as image:
            assert image.format == "PNG"
    result = run("show", "photos")
    assert result.exit_code == 2
    assert "show draws one photo; calibrate --overlay" in result.stderr


def everything(terminal: int) -> bytes:
    """What was written to a terminal that is closed at its other end: it comes in pieces of a few
    kilobytes."""
    seen = b""
    with suppress(OSError):  # How Linux says that there is no more.
        while piece := os.read(terminal, 1 << 16):
            seen += piece
    return seen


def test_a_terminal_gets_a_bar_and_a_pipe_the_answers(photos: list[str], tmp_path: Path) -> None:
    """Both at once: standard error is a terminal, standard output is a pipe."""
    main, terminal = os.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "100"}
    environment.pop("NO_COLOR", None)
    done = subprocess.run(
        [sys.executable, "-c", REAL, "calibrate", "photos", "--json"],
        stdout=subprocess.PIPE,
        stderr=terminal,
        cwd=tmp_path,
        env=environment,
        check=True,
    )
    os.close(terminal)
    seen = everything(main).decode()
    os.close(main)
    assert [json.loads(line)["image"] for line in done.stdout.splitlines()] == photos
    assert "calibrating" in seen
    assert "10/10" in seen
    assert "schema" not in seen


def started(
    folder: Path, *words: str, program: str = REAL, shell: str = "", **environment: str
) -> Any:
    """A command in a process of its own, with redirections of the shell behind it."""
    command = ["sh", "-c", f'exec "$@" {shell}', "sh", sys.executable, "-c", program, *words]
    return subprocess.run(
        command, cwd=folder, env=os.environ | environment, capture_output=True, timeout=60
    )


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
def test_streams_that_are_closed(photos: list[str], tmp_path: Path, closed: str) -> None:
    done = started(tmp_path, "calibrate", "-", program=COMMAND, shell=closed)
    assert done.returncode == 2
    assert done.stdout == b""
    told = {"<&-": b"error: standard input is closed; give it a list of paths\n", "2>&-": b""}
    empty = b"error: the list on standard input is empty; give it a path per line\n"
    assert done.stderr == told.get(closed, empty)


def test_a_closed_stream_costs_no_answer(photos: list[str], tmp_path: Path) -> None:
    for closed in (">&-", "2>&-"):
        done = started(tmp_path, "calibrate", "photos", "-o", f"{closed[0]}.jsonl", shell=closed)
        assert (done.returncode, done.stdout) == (0, b"")
        assert len(list(json_lines.read_records(tmp_path / f"{closed[0]}.jsonl"))) == 10


def test_a_pipe_is_not_waited_for(photos: list[str], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jpg")
    done = started(tmp_path, "calibrate", "pipe.jpg")
    assert done.returncode == 1
    assert b"pipe.jpg is a pipe, a socket or a device; save the photo in a file" in done.stderr


def test_what_libraries_say_is_not_for_users(tmp_path: Path) -> None:
    """The decoder of damaged TIFF files prints by itself; Pillow warns of damaged EXIF data."""
    file = io.BytesIO()
    picture(320, 240).save(file, "TIFF", compression="tiff_lzw")
    damaged = bytearray(file.getvalue())
    damaged[3000:3100] = bytes(100)
    (tmp_path / "a.tif").write_bytes(damaged)
    exif = Image.Exif()
    exif[0x010F] = "a maker with a name"
    picture(320, 240).save(tmp_path / "b.jpg", exif=exif.tobytes()[:-12])
    done = started(tmp_path, "calibrate", "a.tif", "b.jpg", "--json")
    assert all(
        line.startswith((b"error: a.tif is damaged", b"1 image calibrated"))
        for line in done.stderr.splitlines()
    )
    assert len(done.stderr.splitlines()) == 2


@pytest.mark.parametrize(
    "plain", [{"LC_ALL": "", "LANG": "C"}, {"PYTHONIOENCODING": "ascii"}, {"TERM": "dumb"}]
)
def test_plain_terminals_get_ascii(
    photos: list[str], tmp_path: Path, plain: dict[str, str]
) -> None:
    done = started(tmp_path, "calibrate", "photos", **plain)
    assert done.returncode == 0
    assert done.stdout.isascii()
    assert b"60.0 +- 1.2" in done.stdout
    assert b"\\x" not in done.stdout


def test_a_reader_that_stops_reading(photos: list[str], tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", REAL, "calibrate", "photos", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        bufsize=0,
        # No more fits into the pipe, so that there is something to write when it is closed.
        pipesize=4096,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    json.loads(process.stdout.readline())
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 141


def test_a_process_that_is_killed_resumes(run: Run, tmp_path: Path) -> None:
    Path("photos").mkdir()
    names = [f"photos/{i}.png" for i in range(200)]
    for name in names:
        picture().save(name)
    command = [sys.executable, "-c", REAL, "calibrate", "photos", "-o", "out.jsonl"]
    process = subprocess.Popen(command, cwd=tmp_path)
    output = tmp_path / "out.jsonl"
    while not output.exists() or output.stat().st_size < 5000:
        time.sleep(0.01)
        assert process.poll() is None
    process.kill()
    process.wait()
    done = len(list(json_lines.read_records(output)))
    assert 0 < done < 200
    result = run("calibrate", "photos", "-o", "out.jsonl")
    assert f"{done} images already in out.jsonl: going on with {200 - done}" in result.stderr
    assert [record["image"] for record in json_lines.read_records(output)] == names


def test_printable() -> None:
    assert console.printable("café ±\n\x1b[0m\udce9") == r"café ±\n\x1b[0m\udce9"


def test_the_page_names_every_option(run: Run) -> None:
    for command in COMMANDS:
        page = PAGE.read_text()
        assert f"geocalib {command}" in page
        if command in OTHER_PAGES:
            page += (PAGE.parent / OTHER_PAGES[command]).read_text()
        options = set(re.findall(r"--[a-z-]+", run(command, "--help").stdout))
        assert "--help" in options
        assert {option for option in options if option not in page} <= {"--help"}


def test_without_a_command_there_is_help() -> None:
    done = subprocess.run([sys.executable, "-c", COMMAND], capture_output=True, text=True)
    assert "Traceback" not in done.stderr
    assert "calibrate" in done.stdout + done.stderr


@pytest.mark.parametrize("blocked", ["", "import sys; sys.modules['torch'] = None; "])
def test_misspelt_weights_are_told_at_once(tmp_path: Path, blocked: str) -> None:
    picture().save(tmp_path / "a.png")
    words = ("calibrate", tmp_path / "a.png", "--weights", "leen")
    done = subprocess.run(
        [sys.executable, "-c", blocked + COMMAND, *words], capture_output=True, text=True
    )
    assert done.returncode == 2
    known = ", ".join(WEIGHT_NAMES)
    assert done.stderr == (
        f"error: no weights are named 'leen', and no file is; there are {known}\n"
    )
