"""Videos turned upright."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from clips import FPS, HEIGHT, WIDTH, picture, seen, shade_of
from geocalib.errors import ConfigError, VideoError
from geocalib.video.frames import VideoFrame, open_file
from geocalib.video.stabilise import Way, check_name, upright, writing
from geocalib.video.track import Tracked


def test_as_the_upright_of_photos() -> None:
    """The middle of what the exact warp of photos makes."""
    ramp = np.linspace(0, 255, WIDTH)[None, :, None] * np.linspace(0.3, 1, HEIGHT)[:, None, None]
    pixels = np.repeat(ramp, 3, axis=2).astype(np.uint8)
    frame = seen(roll_deg=12.0)
    large = frame.upright(pixels)
    whole = np.asarray(large.image).astype(int)
    left, top = (round(v) for v in (large.camera.c[0] - frame.camera.c).tolist())
    wanted = whole[top : top + HEIGHT, left : left + WIDTH]
    found = upright(pixels, frame).astype(int)
    inner = (slice(12, -12), slice(12, -12))
    # The larger picture may lie half a pixel off.
    assert np.abs(found[inner] - wanted[inner]).max() < 6


def test_level_frames_stay() -> None:
    assert np.array_equal(upright(picture(3), seen()), picture(3))


def frame(time: float, roll_deg: float | None) -> Tracked:
    answer = None if roll_deg is None else seen(roll_deg=roll_deg)
    return Tracked(0, time, seen(), answer, "ok", 0)


def test_on_the_way() -> None:
    way = Way.through([frame(0.0, None), frame(1.0, 4.0), frame(2.0, 8.0)])
    times = (0.0, 1.0, 1.25, 2.0, 3.0)
    assert [way.at(t).roll_deg for t in times] == pytest.approx([4, 4, 5, 8, 8])


def test_no_way() -> None:
    with pytest.raises(VideoError, match="no frame has an answer"):
        Way.through([frame(0.0, None)])


@pytest.mark.parametrize("suffix", ["mp4", "mkv", "mov"])
def test_written_and_read_back(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"out.{suffix}"
    with writing(path, Fraction(FPS)) as write:
        for k in range(6):
            write(VideoFrame(k, k / FPS, picture(k)[:-1]))  # an odd height
        assert not path.exists()
    with open_file(path) as source:
        found = list(source.frames)
    assert [shade_of(f.pixels) for f in found] == list(range(6))
    assert [f.time for f in found] == pytest.approx([k / FPS for k in range(6)], abs=2e-3)
    assert found[0].pixels.shape == (HEIGHT - 2, WIDTH, 3)


def test_names() -> None:
    check_name(Path("a/b.MP4"))
    with pytest.raises(ConfigError, match=r"out\.gif: videos are written as \.mp4"):
        check_name(Path("out.gif"))
