"""Numbers as people read them."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from calibrations import FAILURE, one
from geocalib.cli import report
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
    assert status(warnings=("dark", "small")) == "dark\nsmall"
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


def test_a_narrow_terminal_shows_every_number(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "UNBOUNDED", 80)
    rows = [report.row(one(image=f"a/{i}/{'long name ' * 5}.jpg")) for i in range(3)]
    report.print_table([*rows, report.row(FAILURE)])
    text = capsys.readouterr().out
    assert text.count("+5.00 ± 0.30  -10.00 ± 0.40  51.3 ± 1.2  500 ± 12") == 3
    assert max(map(len, text.splitlines())) <= 80
