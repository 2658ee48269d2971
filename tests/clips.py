"""For the tests of videos: short clips, and what a network might say about their frames."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray

from calibrations import one
from geocalib.geometry.gravity import from_roll_pitch
from geocalib.pipeline.options import AUTO, Options
from geocalib.result.calibration import Calibration, Failure, Outcome

WIDTH, HEIGHT, FPS = 64, 48, 10


def picture(shade: int) -> NDArray[np.uint8]:
    """(HEIGHT, WIDTH, 3): brighter by the shade, with a light square at the top left."""
    pixels = np.full((HEIGHT, WIDTH, 3), 20 + 8 * shade, np.uint8)
    pixels[4:12, 4:12] = 255
    return pixels


def shade_of(pixels: NDArray[np.uint8]) -> int:
    """The inverse of ``picture``, in spite of the codec."""
    return round((float(np.median(pixels)) - 20) / 8)


def write_clip(path: Path, frames: int = 20) -> None:
    """A file of so many frames, each of a shade of its own."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=FPS, options={"crf": "5"})
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        stream.codec_context.time_base = Fraction(1, FPS)
        for k in range(frames):
            frame = av.VideoFrame.from_ndarray(picture(k), format="rgb24")
            frame.pts = k
            container.mux(stream.encode(frame))
        container.mux(stream.encode())


def seen(
    roll_deg: float = 0.0,
    pitch_deg: float = 0.0,
    vfov_deg: float = 60.0,
    sigma_deg: float = 0.5,
    sigma_log_f: float = 0.1,
    model: str = "pinhole",
) -> Calibration:
    """What a network might say of a frame of a clip."""
    angles = np.deg2rad([roll_deg, pitch_deg])
    focal = HEIGHT / (2 * math.tan(math.radians(vfov_deg) / 2))
    size = {"size": (WIDTH, HEIGHT), "c": (WIDTH / 2, HEIGHT / 2)}
    made = one(model, None, f=focal, **size)
    variances = [math.radians(sigma_deg) ** 2] * 2 + [sigma_log_f**2] * (len(made.parameters) - 2)
    return replace(
        made,
        gravity=from_roll_pitch(angles[0], angles[1]),
        covariance=np.diag(variances),
    )


@dataclass
class ClipCalibrator:
    """Knows the frames of a clip by their shades: frame k has a roll of k degrees."""

    asked: list[int] = field(default_factory=list)
    """The shades of all frames, in the order in which they came."""
    known: list[dict[str, Any]] = field(default_factory=list)
    """The keywords of each call."""
    interrupt_at: int | None = None
    fails_at: int | None = None
    device: str = "cpu"
    card: Any = None

    def of(self, made: object) -> ClipCalibrator:
        return self

    def calibrate(
        self, images: list[NDArray[np.uint8]], camera_model: str = "pinhole", **known: Any
    ) -> list[Outcome]:
        if isinstance(options := known.get("options"), Options):
            camera_model = str(options.camera_model)
        if camera_model == AUTO:
            # What kind of lens it is: asked of some frames before anything else.
            return [seen() for _ in images]
        shades = [shade_of(image) for image in images]
        if self.interrupt_at in shades:
            raise KeyboardInterrupt
        self.asked.extend(shades)
        self.known.append(known)
        return [
            Failure(None, WIDTH, HEIGHT, "nothing to see")
            if shade == self.fails_at
            else seen(roll_deg=float(shade), model=camera_model)
            for shade in shades
        ]
