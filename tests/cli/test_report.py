"""Numbers as people read them."""

from __future__ import annotations

import io
import itertools
import math
import sys
from dataclasses import replace

import pytest

from calibrations import FAILURE, one
from geocalib import console
from geocalib.cli import report
from geocalib.result.trust import Doubt, judged
from geocalib.solver import Status


def test_what_was_held_fixed_or_is_not_known() -> None:
    calibration = one("kannala_brandt")
    sigma = replace(calibration.sigma, roll_deg=0.0, pitch_deg=math.nan)
    cells = [cell.plain for cell in report.row(replace(calibration, sigma=sigma))]
    assert cells[1:3] == ["+5.00 fixed", "-10.00 ± ?"]
    assert [line.split()[0] for line in cells[5].splitlines()] == ["k1", "k2", "k3", "k4"]


def test_a_view_beyond_the_lens() -> None:
    calibration = one("eucm", f=60.0, distortion=[0.8, 1.2])
    assert math.isnan(calibration.vfov_deg)
    assert report.row(calibration)[3].plain == "-"


def test_status() -> None:
    def status(**changes: object) -> str:
        return report.row(replace(one(), **changes))[-1].plain

    assert status() == "ok"
    doubted = judged(one(), (Doubt("dark"), Doubt("small")))
    assert report.row(doubted)[-1].plain == "dark\nsmall"
    unsure = judged(one("pinhole"), (Doubt("the field of view is uncertain", ("fov",)),))
    assert report.row(unsure)[-1].plain == "gravity ok\nthe field of view is uncertain"
    assert status(status=str(Status.STALLED)).startswith("no step lowers the cost")
    assert report.row(FAILURE)[-1].plain == "failed"


@pytest.mark.parametrize(
    ("names", "shown", "caption"),
    [
        (["photos/a.jpg"], ["photos/a.jpg"], "± is one sigma"),
        (["photos/a.jpg", "photos/ab.jpg"], ["a.jpg", "ab.jpg"], "in photos; ± is one sigma"),
        (["photos/a.jpg", "photo.jpg"], ["photos/a.jpg", "photo.jpg"], "± is one sigma"),
        (["/x/a.jpg", "/y/a.jpg"], ["x/a.jpg", "y/a.jpg"], "in /; ± is one sigma"),
    ],
)
def test_a_folder_that_all_share_is_named_once(
    capsys: pytest.CaptureFixture[str], names: list[str], shown: list[str], caption: str
) -> None:
    report.print_table([report.row(one(image=name)) for name in names])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[3 : 3 + len(names)]] == shown
    assert lines[-1].strip() == caption


def test_failures_alone_have_no_sigmas(capsys: pytest.CaptureFixture[str]) -> None:
    report.print_table([report.row(FAILURE)])
    assert "sigma" not in capsys.readouterr().out


def test_a_narrow_terminal_shows_every_number(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    name = "long name " * 5
    rows = [report.row(one("pinhole", f"a/{i}/{name}.jpg")) for i in range(3)]
    report.print_table([*rows, report.row(FAILURE)])
    text = capsys.readouterr().out
    assert text.count("+5.00 ± 0.30  -10.00 ± 0.40  51.3 ± 1.2  500 ± 12") == 3
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("columns", [60, 40, 24])
def test_a_terminal_too_narrow_for_a_table_shows_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    report.print_table([report.row(one("radial", "a.jpg", distortion=[-0.1, 0.2]))] * 2)
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= columns
    words = " ".join(text.split())
    for shown in ("roll °: +5.00 ± 0.30", "focal px: 500 ± 12", "status: ok"):
        assert words.count(shown) == 2
    assert words.count("distortion: k1 -0.1000 ± 0.0100; k2 +0.2000 ± 0.0100") == 2


@pytest.mark.parametrize(
    "setting",
    [("LC_ALL", "C"), ("LC_ALL", "POSIX"), ("TERM", "dumb"), ("encoding", "ascii")],
)
def test_ascii_where_there_is_nothing_else(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, setting: tuple[str, str]
) -> None:
    name, value = setting
    if name == "encoding":
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), value))
    else:
        monkeypatch.setenv(name, value)
    calibration = replace(one(), warnings=("the field of view is uncertain (± 17°)",))
    report.print_table([report.row(calibration)])
    if name == "encoding":
        sys.stdout.seek(0)
        text = sys.stdout.read()
    else:
        text = capsys.readouterr().out
    assert text.isascii()
    assert "vFoV deg" in text
    assert "51.3 +- 1.2" in text
    assert "uncertain (+- 17deg)" in text
    assert "-----" in text


def test_lines_of_progress_without_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = itertools.count(0, 10)
    monkeypatch.setattr(console.time, "monotonic", lambda: float(next(clock)))
    with console.progress(8, "calibrating") as advance:
        for _ in range(8):
            advance()
    assert capsys.readouterr().err.splitlines() == [
        "calibrating: 3 of 8, about 50 s left",
        "calibrating: 6 of 8, about 20 s left",
    ]


def test_a_short_run_needs_no_word(capsys: pytest.CaptureFixture[str]) -> None:
    with console.progress(3, "calibrating") as advance:
        for _ in range(3):
            advance()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("seconds", "words"), [(9.6, "10 s"), (130, "2 min"), (5990, "100 min"), (9000, "2.5 h")]
)
def test_how_long_it_will_take(seconds: float, words: str) -> None:
    assert console._duration(seconds) == words
