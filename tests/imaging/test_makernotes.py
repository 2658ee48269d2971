"""Numbers out of makers' notes, against exiftool's reading of the same files."""

from __future__ import annotations

import json
import math
import shutil
import struct
import subprocess
from pathlib import Path
from random import Random

import numpy as np
import pytest
from PIL.ExifTags import Base

from geocalib.geometry.gravity import to_roll_pitch
from geocalib.imaging import read_photo
from geocalib.imaging.metadata import MOST_NUMBERS, held
from geocalib.priors.readings import held_gravity
from maker_notes import OM_SYSTEM, apple, canon, olympus, panasonic, pentax, photo

NOTES = {
    "iPhone": apple((-0.06055, -0.46245, -0.89227)),
    "Panasonic": panasonic(-123, 45),
    "Olympus": olympus(37, -208),
    "OM System": olympus(-1793, 12, signature=OM_SYSTEM),
}


K5 = {Base.Make: "PENTAX", Base.Model: "PENTAX K-5"}
K3_III = {Base.Make: "RICOH IMAGING COMPANY, LTD.", Base.Model: "PENTAX K-3 Mark III"}
OLD, NEW = struct.pack(">bbb", 9, 7, -23), struct.pack(">xbxhh", 0, -31, 64)
AOC = b"AOC\0MM"
GAUGES = {
    "Canon": ({Base.Make: "Canon", Base.Model: "Canon EOS R5"}, canon(3476, 104)),
    "Canon, down": ({Base.Make: "Canon", Base.Model: "Canon EOS R5"}, canon(52, 3490)),
    "K-5": (K5, pentax(OLD)),
    "K-5, moved": (K5, pentax(OLD, AOC, 0x4321)),
    "K-3 Mark III": (K3_III, pentax(NEW)),
    "K-3 Mark III, moved": (K3_III, pentax(NEW, AOC, 0x4321)),
}


@pytest.mark.skipif(shutil.which("exiftool") is None, reason="exiftool is not installed")
@pytest.mark.parametrize("camera", GAUGES)
def test_gauges_that_exiftool_turns_into_angles(camera: str, tmp_path: Path) -> None:
    """It documents "degrees of clockwise camera rotation" and "of upward camera tilt", as ours."""
    tags, note = GAUGES[camera]
    file = tmp_path / "photo.jpg"
    file.write_bytes(photo(note, tags=tags))
    words = ["exiftool", "-j", "-n", "-MakerNotes:all", "-ExifToolVersion", str(file)]
    (told,) = json.loads(subprocess.run(words, check=True, capture_output=True).stdout)
    if not camera.startswith("K-5") and told["ExifToolVersion"] < 13:
        pytest.skip("this exiftool does not know the tag yet")
    read = read_photo(file)
    gravity, notes = held_gravity(read.metadata, read.size)
    assert notes == ()
    assert gravity is not None
    angles = np.rad2deg(to_roll_pitch(np.array(gravity.gravity)))
    assert angles.tolist() == pytest.approx([told["RollAngle"], told["PitchAngle"]])


@pytest.mark.parametrize("order", "<>")
def test_canons_in_either_byte_order(order: str) -> None:
    tags = {Base.Make: "Canon", Base.Model: "Canon EOS R5"}
    numbers, notes = held({**tags, Base.MakerNote: canon(35, 3590, order=order)})
    assert notes == ()
    assert numbers["canon_level"][4:6] == (35, 3590)


def test_gauges_of_unknown_models_are_not_read() -> None:
    assert held({**K5, Base.Model: "PENTAX KP", Base.MakerNote: pentax(OLD)}) == ({}, ())


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
        tags, whole = random.choice([*GAUGES.values(), *(({}, each) for each in NOTES.values())])
        note = bytearray(whole)
        for _ in range(random.randint(1, 4)):
            note[random.randrange(len(note))] = random.choice((0, 1, 0x7F, 0x80, 0xFF))
        if random.random() < 0.2:
            del note[random.randrange(len(note)) :]
        numbers, notes = held({**tags, Base.MakerNote: bytes(note)})
        assert len(notes) <= 1
        assert all(len(values) <= MOST_NUMBERS for values in numbers.values())
