"""Files in ``older/``, as the version before the layout was fixed wrote them."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from geocalib.errors import FormatError, OutputError
from geocalib.formats import csv_table, json_lines
from geocalib.pipeline.runs.journal import Journal, check_record
from geocalib.result.calibration import OUTLIER, Calibration, Failure, read_outcome
from geocalib.result.schema import RECORD
from geocalib.video import records

OLDER = Path(__file__).parent / "older"

EXACT = ("image", "width", "height", "camera_model", "fx", "fy", "cx", "cy", "distortion")
EXACT += ("gravity", "parameters", "covariance", "status", "warnings")


def old() -> list[dict[str, Any]]:
    return [json.loads(line) for line in (OLDER / "calibrations.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("format", [json_lines, csv_table])
def test_answers_are_what_they_were(format: ModuleType) -> None:
    suffix = "jsonl" if format is json_lines else "csv"
    found = format.read(OLDER / f"calibrations.{suffix}")
    good, plain, broken, outlier = found
    for outcome, record in zip((good, plain), old(), strict=False):
        assert isinstance(outcome, Calibration)
        new = outcome.to_dict()
        assert tuple(new) == RECORD.keys
        assert {key: new[key] for key in EXACT} == {key: record[key] for key in EXACT}
        assert new["sigma"] == record["sigma"] | {"aspect": 0.0}
        assert new["vfov_deg"] == pytest.approx(record["vfov_deg"])
    assert good.to_dict()["lines"] == old()[0]["lines"]
    assert plain.lines is None
    # Tables did not tell them.
    priors = [prior | {"used": True, "against": None} for prior in old()[0]["priors"]]
    assert good.to_dict()["priors"] == (priors if format is json_lines else [])
    assert broken == Failure("broken.jpg", None, None, "broken.jpg: the file ends too early")
    assert outlier == Failure("c.jpg", 640, 480, "c.jpg shows another camera", OUTLIER)


def test_how_sure_a_free_aspect_is_was_not_told() -> None:
    (found,) = json_lines.read(OLDER / "aspect.jsonl")
    assert isinstance(found, Calibration)
    assert math.isnan(found.sigma.aspect)


@pytest.mark.parametrize("key", ["lines", "priors"])
def test_keys_that_were_there_only_sometimes(key: str) -> None:
    record = old()[0]
    del record[key]
    assert not getattr(read_outcome(record, "x"), key)


@pytest.mark.parametrize("damage", [3, "words", {}])
@pytest.mark.parametrize("key", ["parameters", "sigma", "lines", "priors", "error", "schema"])
def test_damaged_records_are_named(key: str, damage: object) -> None:
    with pytest.raises(FormatError, match=r"^x: "):
        Calibration.from_dict(old()[0] | {key: damage}, "x")


def test_nothing_is_added_to_them(tmp_path: Path) -> None:
    request = {"version": "0.1.0", "weights": "lean", "fov": 60}
    path = tmp_path / "journal.jsonl"
    shutil.copy(OLDER / "journal.jsonl", path)
    before = path.read_bytes()
    refusal = r"journal\.jsonl holds records of geocalib/1, not geocalib/4; choose another name or"
    with pytest.raises(OutputError, match=refusal):
        Journal(path, request).done(["photo.jpg"])
    with pytest.raises(OutputError, match=refusal):
        json_lines.Writer(path)
    assert path.read_bytes() == before
    (row,) = csv_table.read_records(OLDER / "journal.csv")
    with pytest.raises(OutputError, match="holds records of geocalib/1, not geocalib/4"):
        check_record(row, request, OLDER / "journal.csv")
    assert json_lines.is_ours(path)
    assert csv_table.is_ours(OLDER / "journal.csv")
    assert csv_table.is_ours(OLDER / "calibrations.csv")
    Journal(path, request).discard_others()
    assert not path.exists()


def test_a_line_that_was_cut_short(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_bytes((OLDER / "calibrations.jsonl").read_bytes()[:-40])
    assert len(json_lines.read(path)) == 3


def test_videos(tmp_path: Path) -> None:
    path = OLDER / "video.jsonl"
    first, second = records.read(path)
    assert first.smoothed == first.raw
    assert isinstance(second.raw, Failure)
    assert records.is_ours(path)
    with pytest.raises(
        OutputError, match="holds records of geocalib-video/1, not geocalib-video/3"
    ):
        records.answers(path, {"fov": 60}, str(tmp_path / "clip.mp4"))
