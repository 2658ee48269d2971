"""The one layout of records: every outcome has it, and so have Arrow, JSON Schema and pages."""

from __future__ import annotations

import io
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from any_calibrations import outcomes
from calibrations import FAILURE, one
from geocalib.errors import MissingPackageError
from geocalib.formats import schemas
from geocalib.result.calibration import OUTLIER, Failure, Outcome, read_outcome
from geocalib.result.evidence import Lines, PriorCheck, Verdict
from geocalib.result.schema import RECORD, Kind, Many, Null, Scalar, Struct
from geocalib.result.uncertainty import Uncertainty
from geocalib.video.records import FRAME, origin_of, to_line
from geocalib.video.track import Tracked
from lenses import ALL_MODELS

DOCS = Path(__file__).parents[2] / "docs"

LINES = Lines(Verdict.CROSSED, 12, (30, 8), 5, 0.97, 0.25, -0.5, 1.75)
PRIORS = (
    PriorCheck("focal", "EXIF tag", (500.0,), 15.0, (480.0,), 20.0, 0.8),
    PriorCheck("gravity", "gimbal", (0.0, 1.0, 0.0), 1.0, (0.0, 0.6, 0.8), math.nan, math.nan),
    PriorCheck("focal", "given", (500.0,), 0.0, (480.0,), 20.0, 0.8, against="EXIF tag"),
)

EVERY: list[Outcome] = [
    FAILURE,
    Failure("c.jpg", 640, 480, "c.jpg shows another camera", OUTLIER),
    *(one(model) for model in ALL_MODELS),
    replace(one(), lines=LINES, priors=PRIORS, warnings=("so so",)),
    replace(one(image=None), sigma=Uncertainty.unknown(one().cameras)),
    replace(one(), parameters=(), covariance=one().covariance[:0, :0]),
]
"""Of every camera model and of every kind."""


def check(value: Any, kind: Kind, null: bool) -> None:
    """That a value of a record is just of this kind, type by type."""
    if value is None:
        assert null
    elif isinstance(kind, Struct):
        assert tuple(value) == kind.keys
        for field in kind.fields:
            check(value[field.name], field.kind, field.null is not Null.NEVER)
    elif isinstance(kind, Many):
        assert isinstance(value, list)
        assert kind.length in (None, len(value))
        for item in value:
            check(item, kind.of, kind.gaps)
    else:
        types = {Scalar.TEXT: str, Scalar.NUMBER: float, Scalar.FLAG: bool}
        types |= dict.fromkeys((Scalar.WHOLE, Scalar.COUNT), int)
        assert type(value) is types[kind]


@pytest.mark.parametrize("outcome", EVERY, ids=lambda outcome: type(outcome).__name__)
def test_every_record_has_the_layout(outcome: Outcome) -> None:
    check(outcome.to_dict(), RECORD, null=False)
    assert read_outcome(json.loads(outcome.to_json()), "x") == outcome


@settings(max_examples=30, deadline=None)
@given(outcomes())
def test_any_record_has_the_layout(outcome: Outcome) -> None:
    check(outcome.to_dict(), RECORD, null=False)


def test_null_if_failed_is_never_null_in_an_answer() -> None:
    for outcome in EVERY:
        record = outcome.to_dict()
        for field in RECORD.fields:
            if field.null is Null.FAILED and outcome.ok:
                assert record[field.name] is not None


def through_parquet(records: Sequence[dict[str, Any]], layout: Struct) -> list[dict[str, Any]]:
    """Records as a file of Parquet gives them back; it has the schema to the letter."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    schema = schemas.arrow_schema(layout)
    file = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(records, schema=schema), file)
    file.seek(0)
    table = parquet.read_table(file)
    assert table.schema.names == list(layout.keys)
    # Parquet calls the items of lists by another name.
    assert table.cast(schema).schema == schema
    found: list[dict[str, Any]] = table.to_pylist()
    return found


def test_parquet_gives_every_outcome_back() -> None:
    photo = {"bytes": 6, "modified_ns": 1794824375038765065, "sha256": None, "set": None}
    noted = one().to_dict() | {"request": '{"fov": 60}', "photo": photo}
    records = [*(outcome.to_dict() for outcome in EVERY), noted]
    found = through_parquet(records, RECORD)
    assert found == records
    assert [read_outcome(record, "x") for record in found] == [*EVERY, one()]


@pytest.mark.parametrize("outcome", EVERY, ids=lambda outcome: type(outcome).__name__)
def test_parquet_takes_each_alone(outcome: Outcome) -> None:
    """No column's type hangs on what happens to be in it."""
    (found,) = through_parquet([outcome.to_dict()], RECORD)
    assert read_outcome(found, "x") == outcome


@settings(max_examples=20, deadline=None)
@given(st.lists(outcomes(), max_size=3))
def test_parquet_gives_any_outcomes_back(written: list[Outcome]) -> None:
    found = through_parquet([outcome.to_dict() for outcome in written], RECORD)
    assert [read_outcome(record, "x") for record in found] == written


def test_arrow_has_no_text_for_some_names() -> None:
    """As docs/formats.md says."""
    pyarrow = pytest.importorskip("pyarrow")
    record = one(image=b"caf\xe9.jpg".decode("utf-8", "surrogateescape")).to_dict()
    with pytest.raises(UnicodeEncodeError):
        pyarrow.Table.from_pylist([record], schema=schemas.arrow_schema())


def test_json_lines_are_read_by_arrow_itself(tmp_path: Path) -> None:
    pyarrow_json = pytest.importorskip("pyarrow.json")
    file = tmp_path / "out.jsonl"
    file.write_text("".join(f"{outcome.to_json()}\n" for outcome in EVERY))
    schema = schemas.arrow_schema()
    options = pyarrow_json.ParseOptions(explicit_schema=schema)
    table = pyarrow_json.read_json(file, parse_options=options)
    assert [read_outcome(record, "x") for record in table.to_pylist()] == EVERY


def test_frames_of_a_video() -> None:
    frames = [
        Tracked(0, 0.0, one(), one(), "ok", 0),
        Tracked(1, 0.1, FAILURE, None, "failed", 0),
    ]
    lines = [json.loads(to_line(frame, origin_of({"fov": 60}, None))) for frame in frames]
    for line in lines:
        check(line, FRAME, null=False)
    assert through_parquet(lines, FRAME) == lines


def test_arrow_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingPackageError, match=r'pip install "geocalib\[parquet\]"'):
        schemas.arrow_schema()


def test_json_schema() -> None:
    found = schemas.json_schema()
    assert found["required"] == list(found["properties"]) == list(RECORD.keys)
    parts = found["properties"]
    assert parts["schema"] == {"type": "string"}
    assert parts["width"] == {"type": ["integer", "null"], "minimum": 0}
    gravity = {"type": ["array", "null"], "items": {"type": "number"}}
    assert parts["gravity"] == gravity | {"minItems": 3, "maxItems": 3}
    rows = {"type": "array", "items": {"type": ["number", "null"]}}
    assert parts["covariance"] == {"type": "array", "items": rows}
    assert parts["lines"]["type"] == ["object", "null"]
    assert parts["priors"]["items"]["required"][0] == "quantity"


@pytest.mark.parametrize(("page", "layout"), [("formats.md", RECORD), ("video.md", FRAME)])
def test_pages_show_the_layout(page: str, layout: Struct) -> None:
    """If this fails, put what ``schemas.markdown`` gives into the page."""
    assert f"\n\n{schemas.markdown(layout)}\n\n" in (DOCS / page).read_text()
