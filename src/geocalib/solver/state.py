"""The unknowns of a fit: gravity per time, intrinsics per camera, in double precision."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from geocalib.cameras.base import CameraModel
from geocalib.cameras.camera import Camera
from geocalib.geometry import gravity as sphere
from geocalib.geometry.conventions import VFOV_RANGE_DEG
from geocalib.geometry.fields import Free
from geocalib.geometry.tensors import map_tensors
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

    gravity: Tensor
    """(T, 3)."""
    log_f: Tensor
    """(C,)."""
    distortion: Tensor
    """(C, D)."""
    c: Tensor
    """(C, 2)."""
    log_stretch: Tensor
    """(C,) by what the aspect exceeds that of the frame."""

    def detach(self) -> State:
        """Without gradients."""
        return map_tensors(Tensor.detach, self)

    def select(self, times: Tensor, cameras: Tensor) -> State:
        return State(
            gravity=self.gravity[times],
            log_f=self.log_f[cameras],
            distortion=self.distortion[cameras],
            c=self.c[cameras],
            log_stretch=self.log_stretch[cameras],
        )

    def replaced(self, part: State, times: Tensor, cameras: Tensor) -> State:
        """With the selected rows taken from ``part``."""
        return State(
            gravity=self.gravity.index_copy(0, times, part.gravity),
            log_f=self.log_f.index_copy(0, cameras, part.log_f),
            distortion=self.distortion.index_copy(0, cameras, part.distortion),
            c=self.c.index_copy(0, cameras, part.c),
            log_stretch=self.log_stretch.index_copy(0, cameras, part.log_stretch),
        )

    def where(self, keep: Tensor, other: State, coupling: Coupling) -> State:
        """This state in the components (K,) to keep, the other one elsewhere."""
        time = keep[coupling.time_component]
        camera = keep[coupling.camera_component]
        return State(
            gravity=torch.where(time[:, None], self.gravity, other.gravity),
            log_f=torch.where(camera, self.log_f, other.log_f),
            distortion=torch.where(camera[:, None], self.distortion, other.distortion),
            c=torch.where(camera[:, None], self.c, other.c),
            log_stretch=torch.where(camera, self.log_stretch, other.log_stretch),
        )


@dataclass(frozen=True)
class Frame:
    """What stays fixed while the state moves."""

    model: CameraModel
    size: Tensor
    """(C, 2)."""
    aspect: Tensor
    """(C,) fx / fy, if no stretch of the state changes it."""
    log_f_low: Tensor
    """(C,) bounds of log f."""
    log_f_high: Tensor
    free: Free
    move: Callable[[Tensor, Tensor], Tensor] = sphere.move
    """How gravity (T, 3) follows a tangent step (T, 2)."""

    @classmethod
    def create(cls, model: CameraModel, size: Tensor, aspect: Tensor, free: Free) -> Frame:
        """The frame of cameras with images of that size (C, 2) and aspect (C,)."""
        shortest, longest = focal_range(model)
        height = size[:, 1]
        low, high = torch.log(shortest * height), torch.log(longest * height)
        return cls(model, size, aspect, low, high, free)

    def select(self, cameras: Tensor) -> Frame:
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
        free = self.free
        return len(replace(free, gravity=False).names(self.model))

    def images(
        self, state: State, coupling: Coupling, dtype: torch.dtype
    ) -> tuple[Camera, Tensor, Tensor]:
        """Camera, gravity (B, 3) and the directions (B, 3, 2) it varies in, of every image."""
        basis = sphere.tangent_basis(state.gravity)
        gravity = state.gravity
        camera = Camera(
            model=self.model,
            f=state.log_f.exp(),
            c=state.c,
            distortion=state.distortion,
            size=self.size,
            aspect=self.aspect * state.log_stretch.exp(),
        )
        if not coupling.separate:
            gravity, basis = gravity[coupling.time], basis[coupling.time]
            camera = camera[coupling.camera]
        if coupling.rotation is not None:
            rotation = coupling.rotation.to(gravity.dtype)
            gravity, basis = (rotation @ gravity[..., None])[..., 0], rotation @ basis
        return camera.to(dtype), gravity.to(dtype), basis.to(dtype)

    def step(self, state: State, time_step: Tensor, camera_step: Tensor) -> State:
        """Move by (T, 2) on the sphere and (C, P) in the intrinsics, within bounds."""
        gravity, log_f, distortion, c = state.gravity, state.log_f, state.distortion, state.c
        log_stretch = state.log_stretch
        if self.free.gravity:
            length = torch.linalg.vector_norm(time_step, dim=1, keepdim=True)
            gravity = self.move(
                gravity, time_step * (LONGEST_STEP / length.clamp(min=LONGEST_STEP))
            )
        at = 0
        if self.free.focal:
            moved = log_f + camera_step[:, 0].clamp(-LONGEST_STEP, LONGEST_STEP)
            log_f = torch.minimum(torch.maximum(moved, self.log_f_low), self.log_f_high)
            at = 1
        if self.free.distortion:
            columns = list(distortion.unbind(1))
            for i in self.free.distortion:
                columns[i] = (columns[i] + camera_step[:, at]).clamp(*self.model.bounds[i])
                at += 1
            distortion = torch.stack(columns, 1)
            if not self.model.unit_centre and self.free.focal:
                log_f = log_f - self._bend_of_magnification(state.distortion, distortion)
        if self.free.principal_point:
            c = c + camera_step[:, at : at + 2]
        if self.free.aspect:
            moved = log_stretch + camera_step[:, -1]
            log_stretch = moved.clamp(-LARGEST_STRETCH, LARGEST_STRETCH)
        return State(
            gravity=gravity, log_f=log_f, distortion=distortion, c=c, log_stretch=log_stretch
        )

    def _bend_of_magnification(self, before: Tensor, after: Tensor) -> Tensor:
        """What the log magnification f depth(0) gains beyond first order, (C,).

        Taking it off f keeps the magnification, which the data fix well, on the straight line
        of the linearised step while f and the distortion trade off along a curved valley.
        """
        centre = before.new_zeros(len(before), 1)
        jet = self.model.jet(centre, tuple(k[:, None] for k in before.unbind(1)))
        depth, _ = self.model.depth(centre, tuple(k[:, None] for k in after.unbind(1)))
        slope = torch.cat(jet.d_k, 1) / jet.depth
        return torch.log(depth / jet.depth)[:, 0] - (slope * (after - before)).sum(1)
