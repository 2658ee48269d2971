"""Frames of files and cameras."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event
from types import SimpleNamespace

import av
import numpy as np
import pytest

from clips import FPS, HEIGHT, WIDTH, picture, shade_of, write_clip
from geocalib.errors import ConfigError, VideoError
from geocalib.video import frames
from geocalib.video.frames import VideoFrame, newest, open_camera, open_file, sampled


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    write_clip(tmp_path / "clip.mp4")
    return tmp_path / "clip.mp4"


def test_every_frame_in_order(clip: Path) -> None:
    with open_file(clip) as source:
        assert (source.count, source.rate) == (20, FPS)
        found = list(source.frames)
    assert [frame.index for frame in found] == list(range(20))
    assert [frame.time for frame in found] == pytest.approx([k / FPS for k in range(20)])
    assert [shade_of(frame.pixels) for frame in found] == list(range(20))
    assert found[0].pixels.shape == (HEIGHT, WIDTH, 3)
    assert np.abs(found[3].pixels.astype(int) - picture(3)).mean() < 5


def still(count: int, fps: float) -> list[VideoFrame]:
    return [VideoFrame(k, k / fps, picture(0)) for k in range(count)]


def test_sampling() -> None:
    assert [f.index for f in sampled(still(7, 10), 3, None)] == [0, 3, 6]
    assert [f.index for f in sampled(still(7, 10), None, 5)] == [0, 2, 4, 6]
    assert [f.index for f in sampled(still(4, 10), None, 30)] == [0, 1, 2, 3]
    assert [f.index for f in sampled(still(60, 29.97), None, 10)][:4] == [0, 3, 6, 9]


@pytest.mark.parametrize(
    ("every", "fps", "words"), [(0, None, "--every"), (None, 0.0, "--fps"), (2, 2.0, "one of them")]
)
def test_bad_sampling(every: int | None, fps: float | None, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        sampled([], every, fps)


def test_missing(tmp_path: Path) -> None:
    with pytest.raises(VideoError, match=r"no\.mp4 does not exist"), open_file(tmp_path / "no.mp4"):
        pass


@pytest.mark.parametrize("content", [b"", b"not a video at all" * 50])
def test_no_video(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.mp4"
    path.write_bytes(content)
    with pytest.raises(VideoError, match=r"bad\.mp4 cannot be opened"), open_file(path):
        pass


def test_sound_alone(tmp_path: Path) -> None:
    path = tmp_path / "sound.wav"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("pcm_s16le", rate=8000)
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 800), np.int16), "s16", "mono")
        frame.sample_rate = 8000
        container.mux(stream.encode(frame))
        container.mux(stream.encode())
    with pytest.raises(VideoError, match="no pictures, only audio"), open_file(path):
        pass


def test_cut_short(clip: Path) -> None:
    """The frames before the end come; some formats do not tell that there were more."""
    whole = clip.with_suffix(".ts")
    with av.open(str(clip)) as old, av.open(str(whole), "w") as new:
        stream = new.add_stream_from_template(old.streams.video[0])
        for packet in old.demux(video=0):
            if packet.dts is not None:
                packet.stream = stream
                new.mux(packet)
    data = whole.read_bytes()
    whole.write_bytes(data[: len(data) // 2])
    found = []
    with open_file(whole) as source, suppress(VideoError):
        for frame in source.frames:
            found.append(frame.index)
    assert found == list(range(len(found)))
    assert 0 < len(found) < 20


def test_damaged_in_the_middle() -> None:
    class Container:
        streams = SimpleNamespace(video=[SimpleNamespace(average_rate=10, guessed_rate=10)])

        def decode(self, stream: object) -> Iterator[SimpleNamespace]:
            for k in range(3):
                yield SimpleNamespace(time=k / 10, rotation=0, to_ndarray=lambda format: picture(0))
            raise av.error.InvalidDataError(1, "Invalid data found")

    found = frames._decoded(Container(), "clip.mp4")  # type: ignore[arg-type]
    assert [next(found).index for _ in range(3)] == [0, 1, 2]
    with pytest.raises(VideoError, match=r"clip\.mp4 is damaged after 0\.2 s \(Invalid data"):
        next(found)


def test_phones_turn_their_videos() -> None:
    """A quarter turn in the file's metadata is applied: the light square is found elsewhere."""
    turned = SimpleNamespace(time=0.0, rotation=90, to_ndarray=lambda format: picture(0))
    stream = SimpleNamespace(average_rate=10, guessed_rate=10)
    container = SimpleNamespace(
        streams=SimpleNamespace(video=[stream]), decode=lambda stream: iter([turned])
    )
    (frame,) = frames._decoded(container, "phone.mp4")  # type: ignore[arg-type]
    assert frame.pixels.shape == (WIDTH, HEIGHT, 3)
    assert frame.pixels[-8, 8].tolist() == [255, 255, 255]  # bottom left: counter-clockwise


def test_a_camera_gives_its_newest_frame() -> None:
    go, waiting = Event(), Event()

    def camera() -> Iterator[VideoFrame]:
        yield from still(5, 10)
        waiting.set()
        go.wait(10)
        yield VideoFrame(5, 0.5, picture(0))

    with newest(camera()) as taken:
        waiting.wait(10)
        assert next(taken).index == 4
        go.set()
        assert [frame.index for frame in taken] == [5]


def test_a_camera_that_breaks() -> None:
    def camera() -> Iterator[VideoFrame]:
        raise VideoError("unplugged")
        yield

    with newest(camera()) as taken, pytest.raises(VideoError, match="unplugged"):
        next(taken)


def test_a_file_in_the_place_of_a_camera(clip: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "camera_address", lambda number: (str(clip), None))
    with open_camera(0) as source:
        found = [frame.index for frame in source.frames]
    assert found == sorted(set(found))
    assert found[-1] == 19


def test_no_camera() -> None:
    with pytest.raises(VideoError, match="camera 99"), open_camera(99):
        pass
