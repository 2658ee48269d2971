"""The calibrations of a video from those of its frames: one lens, a gravity that moves smoothly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal

import numpy as np

from geocalib.cameras import Camera
from geocalib.geometry.fields import LOG_F
from geocalib.result.calibration import Calibration, Failure, Outcome
from geocalib.result.uncertainty import Uncertainty
from geocalib.video.change_detector import ChangeDetector
from geocalib.video.heading import Heading, Turn
from geocalib.video.intrinsics import LensFilter, LensState, Stretch
from geocalib.video.motion import FrameGravity, GravityEstimate, Moment, MotionFilter, smooth
from geocalib.video.turns import Flow, turn_of

Status = Literal["ok", "outlier", "failed"]
"""A frame is used, left out as it contradicts its neighbours, or has no answer of its own."""


@dataclass(frozen=True)
class Tracked:
    """A frame and what the video says of it."""

    index: int
    """Among all frames of the video, from 0."""
    time: float
    """Time of the frame, seconds."""
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
        self._lens: ChangeDetector[LensFilter, LensState] = ChangeDetector(LensFilter.start)
        self._motion: ChangeDetector[MotionFilter, FrameGravity] = ChangeDetector(
            MotionFilter.start
        )
        self._frames: list[tuple[int, float, Outcome]] = []
        self._turns: list[Turn | None] = []
        self._stretches: dict[int, Stretch] = {}
        self._heading = Heading.start()
        self._latest: Calibration | None = None

    def add(self, index: int, time: float, raw: Outcome, flow: Flow | None = None) -> Tracked:
        """The next frame, of a later time than the one before; flow: from that to this one."""
        self._frames.append((index, time, raw))
        answer = None if isinstance(raw, Failure) else raw
        self._latest = answer or self._latest
        self._lens.add(None if answer is None else lens_of(answer))
        lens, turn = self._current(), None
        if flow is not None and self._latest is not None:
            turn = turn_of(flow, camera_of(self._latest, lens))
        self._turns.append(turn)
        if turn is not None:
            before = self._stretches.get(self._lens.segment, Stretch())
            after = before.plus(turn.better_log_f, turn.information)
            self._stretches[self._lens.segment] = after
            lens = self._current()
        self._heading = self._heading.after(self._seen_by(lens, turn))
        moment = Moment(time, self._heading)
        self._motion.add(None if answer is None else sight_of(answer, moment))
        smoothed = None
        if self._latest is not None and self._motion.current is not None:
            pose = self._motion.current.pose_at(moment)
            smoothed = combined(self._latest, lens, pose, raw.image)
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

    def _current(self) -> LensState | None:
        filter = self._lens.current
        return None if filter is None else self._improved(filter.lens, self._lens.segment)

    def _improved(self, lens: LensState, segment: int) -> LensState:
        """The lens of a segment with what turns of the camera say of it."""
        assert self._latest is not None
        if LOG_F not in self._latest.parameters:
            return lens
        return self._stretches.get(segment, Stretch()).improved(lens)

    def _status(self, k: int) -> Status:
        raw = self._frames[k][2]
        if isinstance(raw, Failure):
            return "failed"
        strange = lens_of(raw) is not None and self._lens.segments[k] is None
        return "outlier" if strange or self._motion.segments[k] is None else "ok"

    def _lenses(self) -> dict[int, LensState]:
        """The lens of each segment."""
        filters: dict[int, LensFilter] = {}
        for segment, (_, _, raw) in zip(self._lens.segments, self._frames, strict=True):
            if segment is None or isinstance(raw, Failure):
                continue
            lens = lens_of(raw)
            assert lens is not None
            before = filters.get(segment)
            filters[segment] = LensFilter.start(lens) if before is None else before.updated(lens)
        return {number: self._improved(filter.lens, number) for number, filter in filters.items()}

    def _poses(self, lenses: Sequence[LensState | None]) -> list[GravityEstimate]:
        """Gravity at each frame, with the lens that it was taken with."""
        poses: list[GravityEstimate] = []
        heading, moments = Heading.start(), []
        for (_, time, _), turn, lens in zip(self._frames, self._turns, lenses, strict=True):
            heading = heading.after(self._seen_by(lens, turn))
            moments.append(Moment(time, heading))
        numbered = enumerate(_filled(self._motion.segments))
        for _, part in groupby(numbered, key=lambda pair: pair[1]):
            frames = [k for k, _ in part]
            sights = [
                sight_of(raw, moments[k])
                for k in frames
                for _, _, raw in [self._frames[k]]
                if self._motion.segments[k] is not None and isinstance(raw, Calibration)
            ]
            poses.extend(smooth(sights, [moments[k] for k in frames]))
        return poses

    def _seen_by(self, lens: LensState | None, turn: Turn | None) -> Turn | None:
        """A turn as the lens has it, where that has a focal length of its own."""
        if turn is None or lens is None or self._latest is None:
            return turn
        if LOG_F not in self._latest.parameters:
            return turn
        return turn.of_lens(float(lens.mean[0]), float(lens.covariance[0, 0]))


def lens_of(calibration: Calibration) -> LensState | None:
    """What a frame says about the lens; None if everything about it was known before."""
    names = calibration.parameters[2:]
    if not names:
        return None
    values = {LOG_F: math.log(calibration.fy)}
    values |= zip(calibration.cameras.model.parameters, calibration.distortion, strict=True)
    mean = np.array([values[name] for name in names])
    return LensState(mean, calibration.covariance[2:, 2:])


def sight_of(calibration: Calibration, moment: Moment) -> FrameGravity:
    """What a frame says about gravity.

    As it is, not as it would be with the lens of all frames: what a network gets wrong about lens
    and gravity of a scene is not tied together as its covariance has it.
    """
    return FrameGravity(moment, calibration.gravity, calibration.covariance[:2, :2])


def camera_of(like: Calibration, lens: LensState | None) -> Camera:
    """The camera of a frame with another lens; like: a calibration of the same camera."""
    if lens is None:
        return like.cameras
    values = dict(zip(like.parameters[2:], lens.mean.tolist(), strict=True))
    pairs = zip(like.cameras.model.parameters, like.distortion, strict=True)
    distortion = [values.get(name, k) for name, k in pairs]
    return replace(
        like.cameras,
        f=np.exp([values.get(LOG_F, math.log(like.fy))]),
        distortion=np.array([distortion]).reshape(1, -1),
    )


def combined(
    like: Calibration, lens: LensState | None, pose: GravityEstimate, image: str | None
) -> Calibration:
    """The calibration of a frame with another lens and gravity; like: one of the same camera."""
    camera = camera_of(like, lens)
    covariance = np.zeros_like(like.covariance)
    covariance[:2, :2] = pose.covariance
    if lens is not None:
        covariance[2:, 2:] = lens.covariance
    sigma = Uncertainty.of(
        camera, pose.gravity, covariance, like.parameters, between_borders=like.lens is not None
    )
    return Calibration(
        image,
        camera,
        pose.gravity,
        sigma,
        covariance,
        like.parameters,
        "converged",
        lens=like.lens,
    )


def _filled(segments: Sequence[int | None]) -> list[int]:
    """The segments with that of the frame before for every outlier."""
    last = next((segment for segment in segments if segment is not None), 0)
    filled = []
    for segment in segments:
        last = last if segment is None else segment
        filled.append(last)
    return filled
