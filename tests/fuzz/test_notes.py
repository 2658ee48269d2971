"""A thousand damaged makers' notes in photos with absurd orientations and numbers: each photo is
read, with one note about its sensors at most, and gravity is a direction or nothing."""

from __future__ import annotations

import math
import struct
from random import Random

import pytest
from PIL import TiffImagePlugin
from PIL.ExifTags import Base

from fuzz.damage import NUMBERS
from geocalib.imaging import read_photo
from geocalib.priors.readings import read_gravity
from maker_notes import OM_SYSTEM, apple, canon, olympus, panasonic, pentax, photo

NOTES = (
    apple((-0.06, -0.46, -0.89)),
    apple([(0, 0), (-1, 0), (1, 1)]),
    apple((-10.0, 0.0, 0.0)),
    panasonic(52, 118),
    olympus(-52, -118),
    olympus(-52, -118, signature=OM_SYSTEM),
    canon(3548, 118),
    pentax(struct.pack(">bbb", 1, -10, -24)),
    pentax(struct.pack(">xbxhh", 0, -10, -24), b"AOC\0MM", 0x4321),
)
CAMERAS = (
    {},
    {Base.Make: "Canon", Base.Model: "Canon EOS R5"},
    {Base.Make: "PENTAX", Base.Model: "PENTAX K-5"},
    {Base.Make: "RICOH", Base.Model: "PENTAX K-3 Mark III"},
)
ELEVATIONS = tuple(
    {Base.CameraElevationAngle: TiffImagePlugin.IFDRational(*ratio)} if ratio else {}
    for ratio in (None, (125, -10), (1, 0), (91, 1), (7, -1), (0, -1))
)
ORIENTATIONS = (1, 3, 6, 8, 0, 9, 65535)
BATCHES, EACH = 10, 100


def damaged(note: bytes, chance: Random) -> bytes:
    """With up to four bytes, numbers or pieces exchanged, or cut short."""
    data = bytearray(note)
    for _ in range(chance.randrange(5)):
        at = chance.randrange(len(data))
        kind = chance.randrange(4)
        if kind == 0:
            data[at] = chance.randrange(256)
        elif kind == 1:
            number = chance.choice(NUMBERS).to_bytes(4, chance.choice(("big", "little")))
            data[at : at + 4] = number
        elif kind == 2:
            data[at:at] = bytes(chance.randrange(1, 20))
        else:
            del data[at + 1 :]
    return bytes(data)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_damaged_notes(batch: int) -> None:
    chance = Random(batch)
    for _ in range(EACH):
        note = damaged(chance.choice(NOTES), chance)
        camera = chance.choice(CAMERAS) | chance.choice(ELEVATIONS)
        file = photo(note, chance.choice(ORIENTATIONS), (64, 48), camera)
        read = read_photo(file)
        told = read_gravity(None, read.metadata, read.size)
        assert len(told.notes) <= 1
        if told.gravity is not None:
            assert math.hypot(*told.gravity.gravity) == pytest.approx(1)
            assert 0 < told.gravity.sigma_deg < 15
        if told.angle is not None:
            assert told.gravity is None
            assert abs(told.angle.degrees) <= 90


def test_cut_files_are_read_or_refused() -> None:
    """Photos whose file ends early, HEIC and JPEG, as all other files."""
    pytest.importorskip("pillow_heif")
    from geocalib.errors import ImageError

    for kind in ("HEIF", "JPEG"):
        file = photo(apple((-0.06, -0.46, -0.89)), 6, (128, 96), kind=kind)
        for part in range(1, 20):
            try:
                read = read_photo(file[: len(file) * part // 20])
            except ImageError:
                continue
            told = read_gravity(None, read.metadata, read.size)
            assert len(told.notes) <= 1
