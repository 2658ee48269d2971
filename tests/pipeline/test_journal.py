"""Answers that are kept, and only those to the same question."""

from __future__ import annotations

from pathlib import Path

import pytest

from calibrations import FAILURE, one
from geocalib.errors import FormatError, OutputError
from geocalib.formats import json_lines
from geocalib.pipeline.runs.journal import Journal, check_same, request_of


@pytest.fixture
def photo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("photo.jpg").write_bytes(b"pixels")
    return "photo.jpg"


def kept(*images: str, together: bool = False) -> Journal:
    journal = Journal(Path("out.jsonl"), request_of("lean", fov=60, exif=False))
    with journal.appending(images, together) as append:
        for image in images:
            append(one(image=image))
    return journal


def test_a_request_says_what_was_given() -> None:
    request = request_of("lean", fov=60, exif=False, roll=None, crop=(1.0, 2.0))
    assert {key: value for key, value in request.items() if key != "version"} == {
        "weights": "lean",
        "fov": 60,
        "crop": [1.0, 2.0],
    }


def test_answers_are_as_they_were(photo: str) -> None:
    journal = kept(photo)
    assert journal.done([photo, "other.jpg"]) == {photo}
    assert list(journal.outcomes()) == json_lines.read("out.jsonl") == [one(image=photo)]
    with journal.appending(["bad.jpg"]) as append:
        append(FAILURE)
    assert journal.done([photo, "broken.jpg"]) == {photo}


def test_what_is_forgotten_and_adopted(photo: str) -> None:
    journal = kept(photo, "b.jpg")
    records = list(json_lines.read_records("out.jsonl"))
    journal.forget({photo})
    assert [outcome.image for outcome in journal.outcomes()] == ["b.jpg"]
    journal.adopt(records)
    assert [outcome.image for outcome in journal.outcomes()] == ["b.jpg", photo]
    before = Path("out.jsonl").stat()
    journal.forget({"c.jpg"})
    assert Path("out.jsonl").stat().st_ino == before.st_ino


def test_sets_are_done_all_or_none(photo: str) -> None:
    journal = kept(photo, "b.jpg", together=True)
    assert journal.done([photo, "b.jpg"], together=True) == {photo, "b.jpg"}
    for others in ([photo], [photo, "b.jpg", "c.jpg"]):
        assert journal.done(others, together=True) == set()


@pytest.mark.parametrize("noted", [None, "words", [1]])
def test_what_does_not_say_what_was_asked(noted: object) -> None:
    with pytest.raises(OutputError, match=r"^out\.jsonl does not say what was asked"):
        check_same(noted, {"fov": 60}, Path("out.jsonl"))


def test_others_are_discarded(photo: str) -> None:
    journal = kept(photo)
    journal.discard_others()
    assert journal.path.exists()
    Journal(journal.path, request_of("lean", fov=50)).discard_others()
    assert not journal.path.exists()


@pytest.mark.parametrize("line", ["words", '{"schema": "other"}', "[]"])
def test_broken_lines_are_named(photo: str, line: str) -> None:
    journal = kept(photo)
    with journal.path.open("a") as file:
        file.write(line + "\n")
    with pytest.raises(FormatError, match=r"out\.jsonl, line 2"):
        journal.done([photo])
