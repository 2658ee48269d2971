"""Numbers out of makers' notes, against exiftool's reading of the same files."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from pathlib import Path
from random import Random

import pytest
from PIL.ExifTags import Base

from geocalib.imaging import read_photo
from geocalib.imaging.makernotes import held
from maker_notes import OM_SYSTEM, apple, olympus, panasonic, photo

NOTES = {
    "iPhone": apple((-0.06055, -0.46245, -0.89227)),
    "Panasonic": panasonic(-123, 45),
    "Olympus": olympus(37, -208),
    "OM System": olympus(-1793, 12, signature=OM_SYSTEM),
}


@pytest.mark.skipif(shutil.which("exiftool") is None, reason="exiftool is not installed")
@pytest.mark.parametrize("camera", NOTES)
def test_exiftool_reads_the_same(camera: str, tmp_path: Path) -> None:
    file = tmp_path / "photo.jpg"
    file.write_bytes(photo(NOTES[camera]))
    words = ["exiftool", "-j", "-n", "-MakerNotes:all", str(file)]
    (told,) = json.loads(subprocess.run(words, check=True, capture_output=True).stdout)
    ours = read_photo(file).metadata.held
    if camera == "iPhone":
        theirs = [float(part) for part in told["AccelerationVector"].split()]
        assert ours["apple_acceleration"] == pytest.approx(theirs)
    elif camera == "Panasonic":
        (roll,), (pitch,) = ours["panasonic_roll"], ours["panasonic_pitch"]
        assert (roll - 0x10000) / 10 == pytest.approx(told["RollAngle"])
        assert -pitch / 10 == pytest.approx(told["PitchAngle"])
    else:
        (roll, on), (pitch, _) = ours["olympus_roll"], ours["olympus_pitch"]
        assert on == 1
        assert -roll / 10 == pytest.approx(told["RollAngle"])
        assert pitch / 10 == pytest.approx(told["PitchAngle"])


def test_a_little_endian_note() -> None:
    note = olympus(5, 6)
    assert held({Base.MakerNote: note})[0]["olympus_pitch"] == (6, 1)


def test_no_ratio_is_no_number() -> None:
    numbers, notes = held({Base.MakerNote: apple([(0, 0), (-1, 1), (1, 0)])})
    assert notes == ()
    nothing, down, infinite = numbers["apple_acceleration"]
    assert math.isnan(nothing)
    assert math.isnan(infinite)
    assert down == -1


@pytest.mark.parametrize("note", [b"", b"Nikon\0", b"Apple", "text", 7, None])
def test_other_notes_are_none(note: object) -> None:
    assert held({Base.MakerNote: note}) == ({}, ())


def test_a_note_that_is_cut_short() -> None:
    note = apple((0.0, -1.0, 0.0))
    numbers, notes = held({Base.MakerNote: note[:-1]})
    assert numbers == {}
    assert notes == ("the maker's note in the EXIF data is damaged and was ignored",)


def test_a_thousand_damaged_notes() -> None:
    """Each is read, or is one note; and what is read are a few numbers."""
    random = Random(0)
    for _ in range(1000):
        note = bytearray(random.choice(list(NOTES.values())))
        for _ in range(random.randint(1, 4)):
            note[random.randrange(len(note))] = random.choice((0, 1, 0x7F, 0x80, 0xFF))
        if random.random() < 0.2:
            del note[random.randrange(len(note)) :]
        numbers, notes = held({Base.MakerNote: bytes(note)})
        assert len(notes) <= 1
        assert all(len(values) <= 16 for values in numbers.values())
