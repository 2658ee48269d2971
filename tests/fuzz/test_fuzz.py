"""Damaged files of every kind: each ends in an answer or in a ``GeoCalibError``.

``GEOCALIB_FUZZ`` says how many, 2000 if it does not; ``make fuzz`` reads twenty thousand.
"""

from __future__ import annotations

import math
import os

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from fuzz.corpus import CONVERTIBLE, corpus
from fuzz.damage import damaged_bytes, damaged_text
from fuzz.watched import Watched

pytest.importorskip("pillow_heif")
pytest.importorskip("h5py")

CASES = int(os.environ.get("GEOCALIB_FUZZ", "2000"))

IMAGES = {"JPEG": 90, "PNG": 90, "WebP": 70, "TIFF": 120, "HEIC": 70, "GIF": 60}
BESIDE_PIXELS = {"EXIF": 60, "XMP": 40, "sidecar": 40}
TABLES = {"answers": 60, "table": 40, "cameras": 20, "truth": 30, "levels": 20}
CAMERAS = {"OpenCV": 40, "rig YAML": 30, "rig JSON": 30, "COLMAP text": 30, "COLMAP binary": 30}
MATCHES = {"hloc lists": 20, "HDF5": 60}
SHARES = IMAGES | BESIDE_PIXELS | TABLES | CAMERAS | MATCHES | dict.fromkeys(CONVERTIBLE, 100)
"""Of 1950 files, those for each reader."""

BINARY = {
    *("JPEG", "PNG", "WebP", "TIFF", "HEIC", "GIF", "EXIF", "COLMAP binary", "HDF5"),
    *("convert COLMAP binary", "convert COLMAP database", "convert fSpy"),
}


@pytest.mark.parametrize("reader", SHARES)
def test_good_files_are_read(watched: Watched, reader: str) -> None:
    files = corpus()[reader]
    assert files
    for data in files:
        assert watched.read(reader, data) is None


@pytest.mark.parametrize("reader", SHARES)
def test_damaged_files(watched: Watched, reader: str) -> None:
    strategy = damaged_bytes if reader in BINARY else damaged_text

    @settings(
        max_examples=math.ceil(CASES * SHARES[reader] / sum(SHARES.values())),
        derandomize=True,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def check(data: st.DataObject) -> None:
        file = data.draw(strategy(corpus()[reader]))
        verdict = watched.read(reader, file)
        assert verdict is None, f"{file!r}\n{verdict}"

    check()
