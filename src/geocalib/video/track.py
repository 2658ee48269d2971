"""The calibrations of a video from those of its frames: one lens, a gravity that moves smoothly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal

import torch

from geocalib import gravity as sphere
from geocalib.calibration import Calibration, Failure, Outcome
from geocalib.uncertainty import Uncertainty
from geocalib.video.intrinsics import Lens, LensFilter
from geocalib.video.motion import MotionFilter, Pose, Sight, smooth
from geocalib.video.rivals import Rivals

Status = Literal["ok", "outlier", "failed"]
"""Of a frame: used; left out as it contradicts its neighbours; without an answer of its own."""


@dataclass(frozen=True)
class Tracked:
    """A frame and what the video says of it."""

    index: int
    """Among all frames of the video, from 0."""
    time: float
    """Seconds."""
    raw: Outcome
    """What the frame says alone."""
    smoothed: Calibration | None
    """What all frames say; None before the first answer."""
    status: Status
    segment: int
    """How often the lens has changed before: a zoom starts another segment."""


class Tracker:
    """Follows a video while it runs: what is said of a frame rests on those before it."""

    def __init__(self) -> None:
        self._lens: Rivals[LensFilter, Lens] = Rivals(LensFilter.start)
        self._motion: Rivals[MotionFilter, Sight] = Rivals(MotionFilter.start)
        self._frames: list[tuple[int, float, Outcome]] = []
        self._latest: Calibration | None = None

    def add(self, index: int, time: float, raw: Outcome) -> Tracked:
        """The next frame, of a later time than the one before."""
        self._frames.append((index, time, raw))
        if isinstance(raw, Failure):
            self._lens.add(None)
            self._motion.add(None)
        else:
            self._latest = raw
            self._lens.add(lens_of(raw))
            self._motion.add(sight_of(raw, time, self._known(-1, self._current())))
        smoothed = None
        if self._latest is not None and self._motion.current is not None:
            pose = self._motion.current.pose
            smoothed = combined(self._latest, self._current(), pose, raw.image)
        return Tracked(index, time, raw, smoothed, self._status(-1), self._lens.segment)

    def smoothed(self) -> list[Tracked]:
        """All frames so far, each as all of them together have it."""
        if self._latest is None:
            return [Tracked(*frame, None, "failed", 0) for frame in self._frames]
        segments = _filled(self._lens.segments)
        lenses = self._lenses()
        poses = self._poses([lenses.get(segment) for segment in segments])
        tracked, like = [], self._latest
        for k, (index, time, raw) in enumerate(self._frames):
            like = raw if isinstance(raw, Calibration) else like
            answer = combined(like, lenses.get(segments[k]), poses[k], raw.image)
            tracked.append(Tracked(index, time, raw, answer, self._status(k), segments[k]))
        return tracked

    def _current(self) -> Lens | None:
        return None if self._lens.current is None else self._lens.current.lens

    def _known(self, k: int, lens: Lens | None) -> Lens | None:
        """The lens, if frame k was taken with it."""
        return None if self._lens.segments[k] is None else lens

    def _status(self, k: int) -> Status:
        raw = self._frames[k][2]
        if isinstance(raw, Failure):
            return "failed"
        strange = lens_of(raw) is not None and self._lens.segments[k] is None
        return "outlier" if strange or self._motion.segments[k] is None else "ok"

    def _lenses(self) -> dict[int, Lens]:
        """The lens of each segment."""
        filters: dict[int, LensFilter] = {}
        for segment, (_, _, raw) in zip(self._lens.segments, self._frames, strict=True):
            if segment is None or isinstance(raw, Failure):
                continue
            lens = lens_of(raw)
            assert lens is not None
            before = filters.get(segment)
            filters[segment] = LensFilter.start(lens) if before is None else before.updated(lens)
        return {segment: filter.lens for segment, filter in filters.items()}

    def _poses(self, lenses: Sequence[Lens | None]) -> list[Pose]:
        """Gravity at each frame, with the lens that it was taken with."""
        poses: list[Pose] = []
        numbered = enumerate(_filled(self._motion.segments))
        for _, part in groupby(numbered, key=lambda pair: pair[1]):
            frames = [k for k, _ in part]
            sights = [
                sight_of(raw, time, self._known(k, lenses[k]))
                for k in frames
                for _, time, raw in [self._frames[k]]
                if self._motion.segments[k] is not None and isinstance(raw, Calibration)
            ]
            poses.extend(smooth(sights, [self._frames[k][1] for k in frames]))
        return poses


def lens_of(calibration: Calibration) -> Lens | None:
    """What a frame says about the lens; None if everything about it was known before."""
    names = calibration.parameters[2:]
    if not names:
        return None
    values = {"log f": math.log(calibration.fy)}
    values |= zip(calibration.camera.model.parameters, calibration.distortion, strict=True)
    mean = torch.tensor([values[name] for name in names], dtype=torch.float64)
    return Lens(mean, calibration.covariance[2:, 2:])


def sight_of(calibration: Calibration, time: float, lens: Lens | None) -> Sight:
    """What a frame says about gravity, given the lens, where that is known better."""
    gravity, covariance = calibration.gravity, calibration.covariance
    own, seen = lens_of(calibration), covariance[:2, :2]
    if own is None or lens is None:
        return Sight(time, gravity, seen)
    # The conditional mean and covariance of two that were estimated together.
    gain = torch.linalg.solve(own.covariance, covariance[2:, :2]).T
    gravity = sphere.move(gravity, gain @ (lens.mean - own.mean))
    seen = seen - gain @ (own.covariance - lens.covariance) @ gain.T
    return Sight(time, gravity, 0.5 * (seen + seen.T))


def combined(like: Calibration, lens: Lens | None, pose: Pose, image: str | None) -> Calibration:
    """The calibration of a frame with another lens and gravity; like: one of the same camera."""
    camera = like.camera
    covariance = torch.zeros_like(like.covariance)
    covariance[:2, :2] = pose.covariance
    if lens is not None:
        values = dict(zip(like.parameters[2:], lens.mean.tolist(), strict=True))
        distortion = [
            values.get(name, k)
            for name, k in zip(camera.model.parameters, like.distortion, strict=True)
        ]
        camera = replace(
            camera,
            f=torch.tensor([values.get("log f", math.log(like.fy))], dtype=torch.float64).exp(),
            distortion=torch.tensor([distortion], dtype=torch.float64),
        )
        covariance[2:, 2:] = lens.covariance
    sigma = Uncertainty.of(camera, pose.gravity, covariance, like.parameters)
    return Calibration(image, camera, pose.gravity, sigma, covariance, like.parameters, "converged")


def _filled(segments: Sequence[int | None]) -> list[int]:
    """The segments with that of the frame before for every outlier."""
    last = next((segment for segment in segments if segment is not None), 0)
    filled = []
    for segment in segments:
        last = last if segment is None else segment
        filled.append(last)
    return filled
