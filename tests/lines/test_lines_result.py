"""What is said of lines, and how it travels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from calibrations import one
from geocalib.errors import FormatError
from geocalib.formats import csv_table
from geocalib.result.calibration import Calibration
from geocalib.result.evidence import Lines, Verdict
from geocalib.result.schema import LINES

USED = Lines(Verdict.CROSSED, 12, (30, 8), 5, 0.97, 0.25, -0.5, 1.75)
UNUSED = Lines(Verdict.UNLIKELY, unused=40, probability=0.8)


@pytest.mark.parametrize("lines", [USED, UNUSED, None])
def test_the_record_gives_it_back(lines: Lines | None, tmp_path: Path) -> None:
    answer = replace(one(), lines=lines)
    assert Calibration.from_json(answer.to_json()).lines == lines
    csv_table.write([answer], tmp_path / "out.csv")
    (read,) = csv_table.read(tmp_path / "out.csv")
    assert isinstance(read, Calibration)
    assert read.lines == lines


def test_all_keys_are_there_or_none() -> None:
    for lines in (USED, UNUSED):
        assert tuple(replace(one(), lines=lines).to_dict()["lines"]) == LINES.keys
    assert one().to_dict()["lines"] is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"verdict": "perhaps"}, "lines.verdict must be one of"),
        ({"vertical": -1}, "lines.vertical must be a whole number"),
        ({"level": [1.5]}, "lines.level must be a list of whole numbers"),
        ({"probability": None}, "lines.probability must be a number"),
    ],
)
def test_bad_values_are_named(change: dict[str, Any], message: str) -> None:
    record = replace(one(), lines=USED).to_dict()
    record["lines"] |= change
    with pytest.raises(FormatError, match=message):
        Calibration.from_dict(record)


@pytest.mark.parametrize("verdict", Verdict)
def test_every_verdict_is_a_sentence_that_says_whether_lines_count(verdict: Verdict) -> None:
    text = str(Lines(verdict, 3, (4,)))
    assert text.startswith(f"lines {verdict}")
    assert ("3 vertical, 4 level" in text) == verdict.used
    assert "\n" not in text
