"""The video turned upright: every frame in its plane, by its smoothed roll."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

from geocalib.errors import ConfigError, VideoError
from geocalib.files import replacing
from geocalib.geometry import gravity as sphere
from geocalib.result.calibration import Calibration
from geocalib.video.frames import VideoFrame
from geocalib.video.track import Tracked

CONTAINERS = {".mp4": "mp4", ".mov": "mov", ".mkv": "matroska"}
"""What FFmpeg calls the files that are written."""
CODEC = "libx264"
QUALITY = {"crf": "18"}
TICKS = 90_000
"""Ticks of the video's clock per second."""

Pixels = npt.NDArray[np.uint8]


def upright(pixels: Pixels, calibration: Calibration) -> Pixels:
    """The picture (H, W, 3) turned about the principal point until its roll is 0.

    Of the same size, so that corners are lost, and black where nothing was seen.
    """
    roll = math.radians(calibration.roll_deg)
    cosine, sine = math.cos(roll), math.sin(roll)
    # From new pixels to old ones; an image may be stretched, so it is turned where it is not.
    stretch = np.diag([calibration.fx, calibration.fy])
    turn = stretch @ np.array([[cosine, sine], [-sine, cosine]]) @ np.linalg.inv(stretch)
    # OpenCV counts from the centre of the first pixel.
    centre = np.array([calibration.cx, calibration.cy]) - 0.5
    matrix = np.column_stack([turn, centre - turn @ centre])
    flags = cv2.INTER_LANCZOS4 | cv2.WARP_INVERSE_MAP
    height, width = pixels.shape[:2]
    turned = cv2.warpAffine(pixels, matrix, (width, height), flags=flags)
    return np.asarray(turned, dtype=np.uint8)


@dataclass(frozen=True)
class Way:
    """The smoothed calibrations of a video, and what lies between them."""

    times: Sequence[float]
    """Times of frames, seconds, ascending."""
    calibrations: Sequence[Calibration]

    @classmethod
    def through(cls, frames: Sequence[Tracked]) -> Way:
        """Those that have an answer."""
        known = [(frame.time, frame.smoothed) for frame in frames if frame.smoothed is not None]
        if not known:
            raise VideoError("no frame has an answer, so the video cannot be turned upright")
        return cls([time for time, _ in known], [calibration for _, calibration in known])

    def at(self, time: float) -> Calibration:
        """At any time: the lens of the last one, and gravity on the way to the next."""
        after = bisect_right(self.times, time)
        if after in (0, len(self.times)):
            return self.calibrations[min(after, len(self.times) - 1)]
        start, end = self.times[after - 1 : after + 1]
        before, target = self.calibrations[after - 1], self.calibrations[after].gravity
        basis = sphere.tangent_basis(before.gravity)
        step = sphere.difference(before.gravity, target, basis) * (time - start) / (end - start)
        return replace(before, gravity=sphere.move(before.gravity, step, basis))


def check_name(path: Path) -> None:
    """Raises where a video cannot be written under that name."""
    if path.suffix.lower() not in CONTAINERS:
        raise ConfigError(f"{path}: videos are written as {', '.join(CONTAINERS)}; choose one")


@contextmanager
def writing(path: Path, rate: Fraction) -> Iterator[Callable[[VideoFrame], None]]:
    """A video file that frames are given to; it appears when it is whole."""
    import av

    with replacing(path) as file:
        container = av.open(file, "w", format=CONTAINERS[path.suffix.lower()])
        with container:
            stream = container.add_stream(CODEC, rate=rate, options=QUALITY)
            assert isinstance(stream, av.VideoStream)
            stream.pix_fmt = "yuv420p"
            stream.codec_context.time_base = Fraction(1, TICKS)

            def write(frame: VideoFrame) -> None:
                # The codec halves the resolution of colours.
                height, width = (side // 2 * 2 for side in frame.pixels.shape[:2])
                if not stream.codec_context.is_open:
                    stream.width, stream.height = width, height
                pixels = np.ascontiguousarray(frame.pixels[:height, :width])
                picture = av.VideoFrame.from_ndarray(pixels, format="rgb24")
                picture.pts = round(frame.time * TICKS)
                picture.time_base = Fraction(1, TICKS)
                container.mux(stream.encode(picture))

            yield write
            container.mux(stream.encode())
