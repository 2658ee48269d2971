"""Records line by line: exact, and fit to be resumed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from any_calibrations import outcomes
from calibrations import FAILURE, one, several
from geocalib.errors import FormatError
from geocalib.formats import json_lines


@settings(max_examples=30, deadline=None)
@given(st.lists(outcomes(), max_size=3))
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, written: list) -> None:
    path = tmp_path_factory.mktemp("json") / "out.jsonl"
    assert json_lines.write(written, path) == [path]
    assert json_lines.read(path) == written
    assert path.read_text() == json_lines.dumps(written)


def test_every_line_is_a_json_object(tmp_path: Path) -> None:
    (path,) = json_lines.write([*several(), FAILURE], tmp_path)
    assert path == tmp_path / "calibrations.jsonl"
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert [r["image"] for r in records] == [
        "left/a.jpg",
        "left/b.jpg",
        "right/a.jpg",
        "broken.jpg",
    ]
    assert list(json_lines.read_records(path)) == records


def test_file_names_of_any_bytes(tmp_path: Path) -> None:
    name = b"caf\xe9\xff.jpg".decode("utf-8", "surrogateescape")
    (path,) = json_lines.write([one(image=name)], tmp_path / "out.jsonl")
    assert json_lines.read(path)[0].image == name


def test_lines_are_there_before_the_file_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "new" / "out.jsonl"
    with json_lines.Writer(path) as writer:
        for count, calibration in enumerate(several(), 1):
            writer.write(calibration)
            assert len(json_lines.read(path)) == count


@pytest.mark.parametrize("cut", [1, 2, 15, 400])
def test_an_interrupted_run_resumes(tmp_path: Path, cut: int) -> None:
    first, second, third = several()
    (path,) = json_lines.write([first, second], tmp_path / "out.jsonl")
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    # The end of the line alone is no loss.
    left = [first, second] if cut == 1 else [first]
    assert json_lines.read(path) == left
    with json_lines.Writer(path) as writer:
        writer.write(third)
    assert json_lines.read(path) == [*left, third]


def test_resumes_where_the_cut_leaves_a_single_character(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_bytes(b"{")
    assert json_lines.read(path) == []
    with json_lines.Writer(path) as writer:
        writer.write(FAILURE)
    assert json_lines.read(path) == [FAILURE]


def test_writing_anew_replaces_and_appending_keeps(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    json_lines.write(several(), path)
    json_lines.write([FAILURE], path)
    with json_lines.Writer(path) as writer:
        writer.write(one())
    assert json_lines.read(path) == [FAILURE, one()]


def test_blank_lines_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text("\n" + json_lines.dumps([FAILURE]) + "\n")
    assert json_lines.read(path) == [FAILURE]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"schema": "geocalib/4", "ima', r"line 2: this is not JSON"),
        ("[1, 2]", r"line 2: a record is a JSON object, got \[1, 2\]"),
        ('{"schema": "geocalib/9"}', r"line 2: unknown schema 'geocalib/9'; .* reads 'geocalib/1'"),
        ('{"image": "a.jpg"}', r"line 2: unknown schema None"),
        ('{"schema": "geocalib/4", "fx": NaN}', r"line 2: this is not JSON: NaN is not a JSON num"),
    ],
)
def test_malformed_lines_are_named(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text(FAILURE.to_json() + "\n" + line + "\n" + FAILURE.to_json() + "\n")
    with pytest.raises(FormatError, match=rf"out\.jsonl, {message}"):
        json_lines.read(path)
    with pytest.raises(FormatError, match=message):
        list(json_lines.read_records(path))


def test_a_bad_value_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text(json.dumps(one().to_dict() | {"fx": "wide"}))
    with pytest.raises(FormatError, match=r"out\.jsonl, line 1: fx must be a number, got 'wide'"):
        json_lines.read(path)


@pytest.mark.parametrize("content", [b"\xff\xd8\xff\xe0 a photograph", b"{'python': 1}", b"[1]"])
def test_a_file_of_another_kind_is_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "photo.jpg"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=r"photo\.jpg, its last line"):
        json_lines.Writer(path)
    assert path.read_bytes() == content
