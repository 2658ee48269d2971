"""The kind of lens of a video, if it is not named: frames from all over the video decide
together, and every frame is then calibrated as if that model had been named."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from geocalib.pipeline.options import AUTO, Options
from geocalib.result.calibration import Calibration, Outcome
from geocalib.result.evidence import Lens

if TYPE_CHECKING:
    from geocalib.imaging import ImageSource
    from geocalib.pipeline.calibrator import Calibrator

DECIDING = 8
"""Number of frames that decide together."""


@dataclass(frozen=True)
class LensChoice:
    """How to ask about each frame of a video."""

    options: Options
    """With the name of a camera model, unless no frame could tell one."""
    lens: Lens | None = None
    """The comparison that every answer shows; None where the caller named the model."""

    @classmethod
    def by_frames(
        cls, calibrator: Calibrator, frames: Sequence[ImageSource], options: Options
    ) -> LensChoice:
        """The choice of frames of one size, which one lens took."""
        if options.camera_model != AUTO or not frames:
            return cls(options)
        together = replace(options, shared_intrinsics=True)
        return cls.by_answers(calibrator.calibrate(frames, options=together), options)

    @classmethod
    def by_answers(cls, answers: Iterable[Outcome], options: Options) -> LensChoice:
        """The choice that answers to the same question show, such as those of an earlier run."""
        found = next((each for each in answers if isinstance(each, Calibration)), None)
        if options.camera_model != AUTO or found is None:
            return cls(options)
        lens = None if found.lens is None else found.lens.of_any_picture
        return cls(replace(options, camera_model=found.camera_model), lens)

    def applied(self, outcome: Outcome) -> Outcome:
        """The answer of a frame, which says how its camera model was chosen."""
        if self.lens is None or not isinstance(outcome, Calibration):
            return outcome
        return outcome.with_lens(self.lens, outcome.covariance)
