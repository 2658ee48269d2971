"""Pictures with times, from a file or from a camera: the rest of the program sees no difference."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from threading import Condition, Thread
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from geocalib.errors import ConfigError, MissingPackageError, VideoError, how_to_get
from geocalib.files.image_files import is_url, not_fetched

if TYPE_CHECKING:
    from av.container import InputContainer

CAMERAS = {
    "linux": ("/dev/video{}", "v4l2"),
    "darwin": ("{}:none", "avfoundation"),
    "win32": ("video={}", "dshow"),
}
"""How a camera is called, and by which driver, on each system."""


@dataclass(frozen=True)
class VideoFrame:
    """One picture of a video."""

    index: int
    """Its place among all frames of the source, from 0."""
    time: float
    """Seconds from the first frame."""
    pixels: npt.NDArray[np.uint8]
    """(H, W, 3) RGB, the right way up for the one who plays the video."""


@dataclass(frozen=True)
class Source:
    """Frames in order, which can be read once."""

    name: str
    """The name in messages."""
    rate: Fraction
    """Approximate number of frames per second."""
    count: int
    """Approximate number of frames; 0 if unknown."""
    frames: Iterator[VideoFrame]


@contextmanager
def open_file(path: str | Path) -> Iterator[Source]:
    """The video of a file."""
    with _opened(str(path), None, str(path)) as container:
        yield _source(container, str(path))


def spread_over(path: str | Path, count: int) -> list[VideoFrame]:
    """A few frames from all over the video of a file, or fewer, where it cannot be read there.
    Their places and times are not known."""
    import av

    found: list[VideoFrame] = []
    with _opened(str(path), None, str(path)) as container:
        length = container.duration or 0
        for part in range(count):
            try:
                container.seek(round((part + 0.5) / count * length))
                found.append(next(_decoded(container, str(path))))
            except (VideoError, av.error.FFmpegError, OSError):
                continue
    return found


@contextmanager
def open_camera(number: int) -> Iterator[Source]:
    """A camera of this computer: the newest frame whenever one is wanted."""
    name = f"camera {number}"
    address, driver = camera_address(number)
    with _opened(address, driver, name) as container:
        source = _source(container, name)
        with newest(source.frames) as frames:
            yield Source(name, source.rate, 0, frames)


def camera_address(number: int) -> tuple[str, str | None]:
    """What to open for a camera, and with which driver."""
    if sys.platform not in CAMERAS:
        raise VideoError(f"cameras are not known on {sys.platform}; record a file and use that")
    address, driver = CAMERAS[sys.platform]
    return address.format(number), driver


def sampled(
    frames: Iterable[VideoFrame], every: int | None, fps: float | None
) -> Iterator[VideoFrame]:
    """Every so manieth of the frames, or so many a second; all of them where neither is given."""
    if every is not None and fps is not None:
        raise ConfigError("--every and --fps each say which frames to take; give one of them")
    if every is not None and every < 1:
        raise ConfigError(f"--every must be 1 or more frames, got {every}")
    if fps is not None and not fps > 0:
        raise ConfigError(f"--fps must be a positive number of frames per second, got {fps:g}")
    return _sampled(frames, every or 1, fps)


def _sampled(frames: Iterable[VideoFrame], every: int, fps: float | None) -> Iterator[VideoFrame]:
    taken = -1
    for frame in frames:
        # Times are rounded by the file, a little early or late.
        slot = None if fps is None else int(frame.time * fps + 1e-3)
        if (frame.index % every == 0) if slot is None else (slot > taken):
            taken = taken if slot is None else slot
            yield frame


@contextmanager
def newest(frames: Iterator[VideoFrame]) -> Iterator[Iterator[VideoFrame]]:
    """The newest frame at each request; frames in between are skipped."""
    box: list[VideoFrame] = []
    state: dict[str, Any] = {"ended": False, "stopped": False, "error": None}
    changed = Condition()

    def read() -> None:
        try:
            for frame in frames:
                with changed:
                    box[:] = [frame]
                    changed.notify()
                    if state["stopped"]:
                        return
        except VideoError as error:
            state["error"] = error
        finally:
            with changed:
                state["ended"] = True
                changed.notify()

    def take() -> Iterator[VideoFrame]:
        while True:
            with changed:
                changed.wait_for(lambda: bool(box) or state["ended"])
                if not box:
                    break
                frame = box.pop()
            yield frame
        if state["error"] is not None:
            raise state["error"]

    thread = Thread(target=read, daemon=True)
    thread.start()
    try:
        yield take()
    finally:
        state["stopped"] = True
        # A file or a camera must not be closed while somebody reads it.
        thread.join()


@contextmanager
def _opened(address: str, driver: str | None, name: str) -> Iterator[InputContainer]:
    if driver is None and is_url(address):
        raise VideoError(not_fetched(name))
    try:
        import av
    except ImportError:
        raise MissingPackageError(f"videos need PyAV: {how_to_get('video')}") from None
    try:
        container = av.open(address, format=driver)
    except FileNotFoundError:
        raise VideoError(f"{name} does not exist; check the name") from None
    except (av.error.FFmpegError, OSError) as error:
        raise VideoError(f"{name} cannot be opened as a video ({_reason(error)})") from None
    with container:
        if not container.streams.video:
            raise VideoError(f"{name} holds no pictures, only {_streams(container)}")
        yield container


def _source(container: InputContainer, name: str) -> Source:
    stream = container.streams.video[0]
    stream.thread_type = "AUTO"
    rate = stream.average_rate or stream.guessed_rate or Fraction(25)
    count = stream.frames
    if not count and container.duration:
        count = round(container.duration / 1e6 * rate)
    return Source(name, Fraction(rate), count, _decoded(container, name))


def _decoded(container: InputContainer, name: str) -> Iterator[VideoFrame]:
    import av

    stream = container.streams.video[0]
    rate = float(stream.average_rate or stream.guessed_rate or 25)
    first: float | None = None
    time, index = 0.0, -1
    try:
        for picture in container.decode(stream):
            index += 1
            stamp = picture.time
            first = stamp if first is None else first
            # Some files have frames without a time; none goes back.
            now = index / rate if stamp is None or first is None else stamp - first
            time = now if index == 0 else max(now, time + 1e-6)
            pixels = picture.to_ndarray(format="rgb24")
            turns = round(picture.rotation / 90)
            yield VideoFrame(index, time, np.ascontiguousarray(np.rot90(pixels, turns)))
    except (av.error.FFmpegError, OSError) as error:
        where = f"after {time:.1f} s" if index >= 0 else "from the start"
        raise VideoError(f"{name} is damaged {where} ({_reason(error)})") from None
    if index < 0:
        raise VideoError(f"{name} holds no frame that can be decoded")


def _streams(container: InputContainer) -> str:
    return ", ".join(sorted({stream.type for stream in container.streams})) or "nothing"


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error).splitlines()[0]
