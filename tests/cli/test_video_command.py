"""``geocalib video``, with a network that knows the clip by heart."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from clips import HEIGHT, WIDTH, ClipCalibrator, write_clip
from fake_calibrator import NothingToLoad, Run
from geocalib.cli.app import app
from geocalib.video import frames, records
from geocalib.video.frames import open_file
from geocalib.video.intrinsics import LensFilter, LensState

OUT = Path("clip.mp4.geocalib.jsonl")


@pytest.fixture
def calibrator(monkeypatch: pytest.MonkeyPatch) -> ClipCalibrator:
    fake = ClipCalibrator(card=SimpleNamespace(name="fake", trained=True))
    monkeypatch.setitem(
        sys.modules, "geocalib.pipeline.calibrator", SimpleNamespace(Calibrator=fake)
    )
    monkeypatch.setattr("geocalib.cli.network.EngineFuture", NothingToLoad)
    return fake


@pytest.fixture
def run(calibrator: ClipCalibrator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    write_clip(Path("clip.mp4"))

    def run(*arguments: object):  # type: ignore[no-untyped-def]
        result = CliRunner().invoke(app, ["video", *(str(a) for a in arguments)])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


def test_a_line_per_frame(run: Run, calibrator: ClipCalibrator) -> None:
    result = run("clip.mp4", "--every", 2)
    assert result.exit_code == 0
    assert result.stderr.splitlines()[0] == "10 frames"
    assert f"see {OUT}" in result.stderr
    found = records.read(OUT)
    assert [frame.index for frame in found] == list(range(0, 20, 2))
    assert [frame.raw.image for frame in found][:2] == ["clip.mp4#0", "clip.mp4#2"]
    assert calibrator.asked == list(range(0, 20, 2))
    for frame in found:
        assert frame.smoothed is not None
        assert frame.smoothed.roll_deg == pytest.approx(frame.index, abs=0.5)
        assert frame.smoothed.vfov_deg == pytest.approx(60)


def test_upright_and_plot(run: Run) -> None:
    outputs = ("-o", "a.jsonl", "--upright", "out/up.mp4", "--plot", "out/plot.png")
    assert run("clip.mp4", "--fps", 5, *outputs).exit_code == 0
    assert Path("out/plot.png").read_bytes().startswith(b"\x89PNG")
    with open_file("out/up.mp4") as source:
        turned = list(source.frames)
    assert len(turned) == 20  # also those that were not looked at
    assert turned[0].pixels.shape == (HEIGHT, WIDTH, 3)
    assert turned[-1].pixels[0, 0].max() < 60  # the corner of a turned picture is black
    assert sorted(p.name for p in Path("out").iterdir()) == ["plot.png", "up.mp4"]


def test_interrupted_and_resumed(run: Run, calibrator: ClipCalibrator) -> None:
    calibrator.interrupt_at = 10
    result = run("clip.mp4", "--every", 1, "--plot", "plot.png", "--upright", "up.mp4")
    assert result.exit_code == 130
    assert result.stderr == "error: interrupted; run the same command again to go on\n"
    assert [frame.index for frame in records.read(OUT)] == list(range(8))
    assert not Path("plot.png").exists()
    assert not Path("up.mp4").exists()
    calibrator.interrupt_at = None
    result = run("clip.mp4", "--every", 1, "--plot", "plot.png", "--upright", "up.mp4")
    assert result.exit_code == 0
    assert Path("plot.png").exists()
    assert result.stderr.splitlines()[0] == f"8 frames already in {OUT}: going on"
    assert calibrator.asked == list(range(20))
    at_once = run("clip.mp4", "--every", 1, "-o", "other.jsonl")
    assert at_once.exit_code == 0
    assert records.read(OUT) == records.read("other.jsonl")
    assert not list(Path.cwd().glob("*.lock"))


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C is heard, also in a run that was started in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_interrupted_in_the_middle_of_a_frame(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The frame is finished first: what is half done fits nothing."""
    begin = LensFilter.accepts

    def accepts(self: LensFilter, lens: LensState) -> bool:
        if self.count == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return begin(self, lens)

    with monkeypatch.context() as patched:
        patched.setattr(LensFilter, "accepts", accepts)
        assert run("clip.mp4").exit_code == 130
    assert [frame.index for frame in records.read(OUT)] == list(range(4))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert run("clip.mp4").exit_code == 0
    assert len(records.read(OUT)) == 20


@pytest.mark.parametrize(
    ("file", "options"),
    [
        ("other.mp4", ()),
        ("clip.mp4", ("--fov", "90")),
        ("clip.mp4", ("--every", "5")),
        ("clip.mp4", ("--camera-model", "radial")),
    ],
)
def test_answers_of_something_else_are_not_mixed_in(
    run: Run, file: str, options: tuple[str, ...]
) -> None:
    write_clip(Path("other.mp4"))
    run("clip.mp4")
    before = OUT.read_bytes()
    result = run(file, *options, "-o", OUT)
    assert result.exit_code == 2
    assert f"error: {OUT} answers another question (" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert OUT.read_bytes() == before


def test_a_new_start_keeps_the_old_lines_until_it_is_done(
    run: Run, calibrator: ClipCalibrator
) -> None:
    run("clip.mp4", "--every", 2)
    before = OUT.read_bytes()
    calibrator.interrupt_at = 10
    anew = ("clip.mp4", "--every", 1, "--overwrite")
    assert run(*anew).exit_code == 130
    assert OUT.read_bytes() == before
    calibrator.interrupt_at = None
    assert "8 frames already in" in run(*anew).stderr
    assert [frame.index for frame in records.read(OUT)] == list(range(20))
    assert sorted(path.name for path in Path.cwd().iterdir()) == ["clip.mp4", str(OUT)]


def test_nothing_is_done_twice(run: Run, calibrator: ClipCalibrator) -> None:
    run("clip.mp4")
    before = OUT.read_bytes()
    run("clip.mp4", "--upright", "up.mp4")
    assert calibrator.asked == list(range(20))
    assert OUT.read_bytes() == before


def test_failed_frames_are_tried_again(run: Run, calibrator: ClipCalibrator) -> None:
    calibrator.fails_at = 5
    result = run("clip.mp4")
    assert result.exit_code == 1
    assert result.stderr.splitlines()[0] == "20 frames, 1 without an answer"
    calibrator.fails_at = None
    assert run("clip.mp4").exit_code == 0
    assert calibrator.asked[20:] == [5]
    assert [frame.index for frame in records.read(OUT)] == list(range(20))


def test_what_is_known_goes_in(run: Run, calibrator: ClipCalibrator) -> None:
    run("clip.mp4", "--fov", 90)
    assert calibrator.known[0]["options"].vfov_deg == 90


def test_camera(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file in its place."""
    monkeypatch.setattr(frames, "camera_address", lambda number: ("clip.mp4", None))
    result = run("--camera", 0, "--upright", "up.mp4")
    assert result.exit_code == 0
    found = records.read("camera-0.geocalib.jsonl")
    assert found
    assert found[-1].raw.image == f"camera 0#{found[-1].index}"
    with open_file("up.mp4") as source:
        assert len(list(source.frames)) == len(found)
    again = run("--camera", 0)
    assert again.exit_code == 2
    assert "camera-0.geocalib.jsonl exists; choose another name or add --over" in again.stderr


def test_a_camera_ends_with_control_c(
    run: Run, calibrator: ClipCalibrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "camera_address", lambda number: ("clip.mp4", None))
    monkeypatch.setattr(frames, "newest", frames.contextmanager(lambda all: (yield all)))
    calibrator.interrupt_at = 6
    result = run("--camera", 0, "--upright", "up.mp4", "--plot", "plot.png")
    assert result.exit_code == 0
    assert len(records.read("camera-0.geocalib.jsonl")) == 6
    with open_file("up.mp4") as source:
        assert len(list(source.frames)) == 6
    assert Path("plot.png").exists()


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ((), "name a video file, or a camera"),
        (("clip.mp4", "--camera", "0"), "one of the two"),
        (("no.mp4",), "no.mp4 does not exist; check the name"),
        (("notes.txt",), "notes.txt cannot be opened as a video"),
        (("https://a.org/b.mp4",), "https://a.org/b.mp4 is on the web, and nothing is downloaded"),
        (("clip.mp4", "--every", "0"), "--every must be 1 or more"),
        (("clip.mp4", "--every", "2", "--fps", "3"), "one of them"),
        (("clip.mp4", "--upright", "up.gif"), "up.gif: videos are written as"),
        (("clip.mp4", "--upright", "clip.mp4"), "clip.mp4 is an input and stays"),
        (("clip.mp4", "--plot", "plot.jpg"), "plots are written as .png"),
        (("clip.mp4", "-o", "notes.txt"), "notes.txt exists and is not from geocalib"),
    ],
)
def test_mistakes_are_one_line(run: Run, arguments: tuple[str, ...], line: str) -> None:
    Path("notes.txt").write_text("buy milk\n")
    result = run(*arguments)
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
    assert line in result.stderr
    assert not OUT.exists()
