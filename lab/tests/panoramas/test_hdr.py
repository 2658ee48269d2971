"""Light probes become pictures that can be looked at."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from geocalib.errors import PanoramaError
from geocalib_lab.panoramas.decode import decode_folder
from geocalib_lab.panoramas.hdr import read_hdr, tone_map
from geocalib_lab.panoramas.pictures import find_panoramas, panorama_width, read_panorama


@pytest.fixture
def probe(tmp_path: Path) -> Path:
    """A red upper and a dark lower half, with a sun that is 10000 times as bright."""
    light = np.full((32, 64, 3), 0.02, np.float32)
    light[:16] = (0.2, 0.2, 2.0)  # OpenCV writes blue first
    light[4:6, 4:6] = 20_000
    file = tmp_path / "probe.hdr"
    assert cv2.imwrite(str(file), light)
    return file


def test_what_was_written_is_seen(probe: Path) -> None:
    shown = read_hdr(probe)
    assert (shown.shape, shown.dtype) == ((32, 64, 3), np.uint8)
    upper, lower, sun = *shown[[12, 28], 40].astype(int), shown[4, 4]
    assert upper[0] > upper[1] + 80
    assert abs(upper[1] - upper[2]) <= 2
    # Details of the dark half survive the sun.
    assert 20 < lower[0] < upper[0]
    assert sun.min() == 255


def test_exposure_does_not_depend_on_the_unit() -> None:
    light = np.random.default_rng(0).lognormal(0, 2, (20, 40, 3)).astype(np.float32)
    np.testing.assert_allclose(tone_map(1000 * light), tone_map(light), atol=1)


def test_the_curve_by_hand() -> None:
    """Even light is its own geometric mean: middle grey, 0.18 (1 + 0.18) / (1 + 0.18)."""
    shown = tone_map(np.full((4, 8, 3), 7.0, np.float32))
    assert set(shown.ravel()) == {round(255 * (1.055 * 0.18 ** (1 / 2.4) - 0.055))}


def test_brighter_stays_brighter() -> None:
    ramp = np.repeat(np.geomspace(1e-3, 1e3, 200)[None, :, None], 3, -1).astype(np.float32)
    assert (np.diff(tone_map(ramp)[0, :, 0].astype(int)) >= 0).all()


def test_light_that_is_none() -> None:
    light = np.zeros((4, 8, 3), np.float32)
    assert tone_map(light).max() == 0
    light[0, 0] = (np.nan, -5, 1)
    light[1] = 0.5
    assert tone_map(light)[1].min() > 0


def test_every_kind_is_found_and_decoded(probe: Path, tmp_path: Path) -> None:
    for name in ("b.png", "a.WEBP", "c.jpg"):
        Image.new("RGB", (64, 32), "red").save(tmp_path / name)
    (tmp_path / "notes.txt").write_text("no panorama")
    names = [path.name for path in find_panoramas(tmp_path)]
    assert names == ["a.WEBP", "b.png", "c.jpg", "probe.hdr"]
    index = decode_folder(tmp_path, tmp_path / "out" / "all.rgb", names)
    entries = json.loads(index.read_text())
    assert [entry["width"] for entry in entries] == [64] * 4
    pixels = np.fromfile(tmp_path / "out" / "all.rgb", np.uint8)
    start = entries[-1]["offset"]
    np.testing.assert_array_equal(
        pixels[start : start + 3 * 64 * 32].reshape(32, 64, 3), read_hdr(probe)
    )
    assert panorama_width(probe) == read_panorama(probe).width == 64


def test_what_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.hdr"
    with pytest.raises(PanoramaError, match=r"a\.hdr: it is missing or damaged"):
        read_hdr(file)
    assert cv2.imwrite(str(file), np.ones((8, 8, 3), np.float32))
    with pytest.raises(PanoramaError, match=r"a\.hdr is 8x8; a panorama is twice as wide"):
        read_panorama(file)
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(PanoramaError, match="needs OpenCV to be read"):
        read_hdr(file)


@pytest.mark.parametrize("name", ["RGB", "RGBA", "Y"])
def test_exr(tmp_path: Path, name: str) -> None:
    openexr = pytest.importorskip("OpenEXR")
    shape = {"RGB": (16, 32, 3), "RGBA": (16, 32, 4), "Y": (16, 32)}[name]
    light = np.random.default_rng(0).lognormal(0, 2, shape).astype(np.float32)
    header = {"compression": openexr.ZIP_COMPRESSION, "type": openexr.scanlineimage}
    with openexr.File(header, {name: light}) as file:
        file.write(str(tmp_path / "probe.exr"))
    colours = np.repeat(light[..., None], 3, -1) if name == "Y" else light[..., :3]
    np.testing.assert_array_equal(read_hdr(tmp_path / "probe.exr"), tone_map(colours))


def test_a_damaged_exr(tmp_path: Path) -> None:
    pytest.importorskip("OpenEXR")
    (tmp_path / "probe.exr").write_bytes(b"v/1\x01 and no more")
    with pytest.raises(PanoramaError, match=r"cannot read panorama .*probe\.exr"):
        read_hdr(tmp_path / "probe.exr")
