"""Pictures as files: all that was seen comes back."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from PIL.ExifTags import Base
from PIL.TiffImagePlugin import IFDRational

from geocalib.arrays import Array
from geocalib.errors import FormatError
from geocalib.geometry.segments import Curves, Segments
from geocalib.imaging.metadata import Metadata
from geocalib.priors.enabled import File
from geocalib.priors.exif import focal_reading
from geocalib.sets.image_record import ImageRecord
from geocalib.solver.joint import Plane
from geocalib.solver.known import Mapping
from geocalib.solver.observations import Observations


def numbers(*shape: int, dtype: npt.DTypeLike = np.float64) -> Array:
    generator = np.random.default_rng(sum(shape))
    return generator.random(shape).astype(dtype)


def record() -> ImageRecord:
    tags = {
        Base.Model: "Pixel 7",
        Base.FocalLength: IFDRational(415, 100),
        Base.FocalLengthIn35mmFilm: 26,
        Base.DigitalZoomRatio: IFDRational(0, 0),
    }
    shared = numbers(1, 12)
    return ImageRecord(
        File("photos/é.jpg", "é.jpg", (640, 480), Metadata(6, tags, b"<x:xmpmeta/>\xff\0")),
        Plane(Mapping(numbers(1, 2), numbers(1, 2)), numbers(1, 2), numbers(1, 2)),
        # Views of one tensor, one of them not contiguous.
        Observations(*(shared[:, ::2] for _ in range(2)), *(numbers(1, 3) for _ in range(5))),
        numbers(3),
        ("cropped", "blurred"),
        Segments(numbers(4, 2, 2), 0.1 + 0.2, Curves(numbers(2, 5, 2), numbers(2, 5), numbers(2))),
    )


def same(one: object, other: object) -> None:
    if isinstance(one, np.ndarray):
        assert isinstance(other, np.ndarray)
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)
    elif hasattr(one, "__dataclass_fields__"):
        assert type(one) is type(other)
        for name, value in vars(one).items():
            if name != "tags":
                same(value, getattr(other, name))
    else:
        assert one == other


def test_it_comes_back() -> None:
    before = record()
    after = ImageRecord.from_bytes(before.to_bytes(), "a.record")
    same(before, after)
    was, now = before.file.metadata.tags, after.file.metadata.tags
    assert now.keys() == was.keys()
    assert now[Base.Model] == "Pixel 7"
    assert math.isnan(now[Base.DigitalZoomRatio])
    del was[Base.DigitalZoomRatio], now[Base.DigitalZoomRatio]  # type: ignore[attr-defined]
    assert focal_reading(now, (640, 480)) == focal_reading(was, (640, 480))


def test_what_was_not_seen_stays_unseen() -> None:
    bare = replace(record(), down=None, segments=None, notes=())
    bare = replace(bare, file=File(None, "image", (64, 48), Metadata()))
    same(bare, ImageRecord.from_bytes(bare.to_bytes(), "a.record"))


def test_another_safetensors_file_is_none() -> None:
    from safetensors.numpy import save

    for data in (save({"a": np.zeros(1)}), save({"a": np.zeros(1)}, {"record": "{}"})):
        with pytest.raises(FormatError, match=r"a\.record is damaged \(KeyError\)"):
            ImageRecord.from_bytes(data, "a.record")
