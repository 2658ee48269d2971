"""The unknowns of a fit: gravity per time, intrinsics per camera, in double precision."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

from geocalib.arrays import (
    Array,
    DType,
    cast,
    inverse_root,
    namespace,
    replace_rows,
    unstack,
    zeros,
)
from geocalib.cameras.base import CameraModel
from geocalib.cameras.camera import Camera
from geocalib.geometry import gravity as sphere
from geocalib.geometry.conventions import VFOV_RANGE_DEG
from geocalib.geometry.fields import Free
from geocalib.records import dataclass
from geocalib.solver.coupling import Coupling

WIDE_RADIUS = (0.02, 6.0)
"""H / 2f that a fit of a wide model stays within."""

LARGEST_STRETCH = math.log(2)
"""Largest log of an aspect over the one it starts from."""

LONGEST_STEP = 1.0
"""Longest step of gravity (radians) and log f in one iteration."""


def focal_range(model: CameraModel) -> tuple[float, float]:
    """The shortest and the longest focal length of a fit, in heights of the image."""
    if model.wide:
        low, high = WIDE_RADIUS
    else:
        low, high = (math.tan(0.5 * math.radians(vfov)) for vfov in VFOV_RANGE_DEG)
    return 0.5 / high, 0.5 / low


@dataclass(frozen=True)
class State:
    """T gravities and C cameras."""

    gravity: Array
    """(T, 3)."""
    log_f: Array
    """(C,)."""
    distortion: Array
    """(C, D)."""
    c: Array
    """(C, 2)."""
    log_stretch: Array
    """(C,) by what the aspect exceeds that of the frame."""

    @cached_property
    def basis(self) -> Array:
        """(T, 3, 2) the directions in which gravity varies."""
        return sphere.tangent_basis(self.gravity)

    def select(self, times: Array, cameras: Array) -> State:
        return State(
            gravity=self.gravity[times],
            log_f=self.log_f[cameras],
            distortion=self.distortion[cameras],
            c=self.c[cameras],
            log_stretch=self.log_stretch[cameras],
        )

    def replaced(self, part: State, times: Array, cameras: Array) -> State:
        """With the selected rows taken from ``part``."""
        return State(
            gravity=replace_rows(self.gravity, times, part.gravity),
            log_f=replace_rows(self.log_f, cameras, part.log_f),
            distortion=replace_rows(self.distortion, cameras, part.distortion),
            c=replace_rows(self.c, cameras, part.c),
            log_stretch=replace_rows(self.log_stretch, cameras, part.log_stretch),
        )

    def where(self, keep: Array, other: State, coupling: Coupling) -> State:
        """This state in the components (K,) to keep, the other one elsewhere."""
        if bool(keep.all()):
            return self
        xp = namespace(keep)
        time = keep[coupling.time_component]
        camera = keep[coupling.camera_component]
        return State(
            gravity=xp.where(time[:, None], self.gravity, other.gravity),
            log_f=xp.where(camera, self.log_f, other.log_f),
            distortion=xp.where(camera[:, None], self.distortion, other.distortion),
            c=xp.where(camera[:, None], self.c, other.c),
            log_stretch=xp.where(camera, self.log_stretch, other.log_stretch),
        )


@dataclass(frozen=True)
class Frame:
    """What stays fixed while the state moves."""

    model: CameraModel
    size: Array
    """(C, 2)."""
    aspect: Array
    """(C,) fx / fy, if no stretch of the state changes it."""
    log_f_low: Array
    """(C,) bounds of log f."""
    log_f_high: Array
    free: Free
    move: Callable[[Array, Array], Array] | None = None
    """How gravity (T, 3) follows a tangent step (T, 2); None: along a great circle."""

    @classmethod
    def create(cls, model: CameraModel, size: Array, aspect: Array, free: Free) -> Frame:
        """The frame of cameras with images of that size (C, 2) and aspect (C,)."""
        shortest, longest = focal_range(model)
        height = size[:, 1]
        low, high = map(namespace(height).log, (shortest * height, longest * height))
        return cls(model, size, aspect, low, high, free)

    def select(self, cameras: Array) -> Frame:
        return replace(
            self,
            size=self.size[cameras],
            aspect=self.aspect[cameras],
            log_f_low=self.log_f_low[cameras],
            log_f_high=self.log_f_high[cameras],
        )

    @property
    def intrinsics(self) -> int:
        """Number of free parameters of a camera."""
        return self.free.intrinsics

    def images(self, state: State, coupling: Coupling, dtype: DType) -> tuple[Camera, Array, Array]:
        """Camera, gravity (B, 3) and the directions (B, 3, 2) it varies in, of every image."""
        xp, gravity, basis = namespace(state.gravity), state.gravity, state.basis
        camera = Camera(
            model=self.model,
            f=xp.exp(state.log_f),
            c=state.c,
            distortion=state.distortion,
            size=self.size,
            aspect=self.aspect * xp.exp(state.log_stretch) if self.free.aspect else self.aspect,
        )
        if not coupling.separate:
            gravity, basis = gravity[coupling.time], basis[coupling.time]
            camera = camera[coupling.camera]
        if coupling.rotation is not None:
            rotation = cast(coupling.rotation, gravity.dtype)
            gravity, basis = (rotation @ gravity[..., None])[..., 0], rotation @ basis
        if dtype == gravity.dtype:
            return camera, gravity, basis
        return camera.cast(dtype), cast(gravity, dtype), cast(basis, dtype)

    def step(self, state: State, time_step: Array, camera_step: Array) -> State:
        """Move by (T, 2) on the sphere and (C, P) in the intrinsics, within bounds."""
        gravity, log_f, distortion, c = state.gravity, state.log_f, state.distortion, state.c
        log_stretch, xp = state.log_stretch, namespace(state.gravity)
        if self.free.gravity:
            square = (time_step * time_step).sum(1)[:, None]
            short = time_step * (LONGEST_STEP * inverse_root(square.clip(LONGEST_STEP**2)))
            gravity = (
                sphere.move(gravity, short, state.basis)
                if self.move is None
                else self.move(gravity, short)
            )
        at = 0
        if self.free.focal:
            moved = log_f + camera_step[:, 0].clip(-LONGEST_STEP, LONGEST_STEP)
            log_f = xp.minimum(xp.maximum(moved, self.log_f_low), self.log_f_high)
            at = 1
        if self.free.distortion:
            columns = list(unstack(distortion, 1))
            for i in self.free.distortion:
                columns[i] = (columns[i] + camera_step[:, at]).clip(*self.model.bounds[i])
                at += 1
            distortion = xp.stack(columns, axis=1)
            if not self.model.unit_centre and self.free.focal:
                log_f = log_f - self._bend_of_magnification(state.distortion, distortion)
        if self.free.principal_point:
            c = c + camera_step[:, at : at + 2]
        if self.free.aspect:
            moved = log_stretch + camera_step[:, -1]
            log_stretch = moved.clip(-LARGEST_STRETCH, LARGEST_STRETCH)
        return State(
            gravity=gravity, log_f=log_f, distortion=distortion, c=c, log_stretch=log_stretch
        )

    def at_bounds(self, state: State) -> tuple[Array, Array]:
        """Which intrinsics (C, P) have their lowest value, and which their highest."""
        lowest, highest = [], []
        if self.free.focal:
            lowest.append(state.log_f <= self.log_f_low)
            highest.append(state.log_f >= self.log_f_high)
        for i in self.free.distortion:
            low, high = self.model.bounds[i]
            lowest.append(state.distortion[:, i] <= low)
            highest.append(state.distortion[:, i] >= high)
        xp = namespace(state.log_f)
        none = xp.zeros_like(state.log_f, dtype=xp.bool)
        rest = [none] * (self.intrinsics - len(lowest))
        if not self.intrinsics:
            return none[:, None][:, :0], none[:, None][:, :0]
        return xp.stack([*lowest, *rest], axis=1), xp.stack([*highest, *rest], axis=1)

    def _bend_of_magnification(self, before: Array, after: Array) -> Array:
        """What the log magnification f depth(0) gains beyond first order, (C,).

        Taking it off f keeps the magnification, which the data fix well, on the straight line
        of the linearised step while f and the distortion trade off along a curved valley.
        """
        xp, centre = namespace(before), zeros((len(before), 1), before)
        jet = self.model.jet(centre, tuple(k[:, None] for k in unstack(before, 1)))
        depth, _ = self.model.depth(centre, tuple(k[:, None] for k in unstack(after, 1)))
        slope = xp.concat(jet.d_k, axis=1) / jet.depth
        return xp.log(depth / jet.depth)[:, 0] - (slope * (after - before)).sum(1)
