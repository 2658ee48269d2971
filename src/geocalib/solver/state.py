"""The unknowns of a fit: gravity per time, intrinsics per camera, in double precision."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from geocalib import gravity as sphere
from geocalib.cameras.base import CameraModel
from geocalib.cameras.camera import Camera
from geocalib.conventions import VFOV_RANGE_DEG
from geocalib.fields import Free
from geocalib.solver.coupling import Coupling

WIDE_RADIUS = (0.02, 6.0)
"""H / 2f that a fit of a wide model stays within."""

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

    def detach(self) -> State:
        """Without gradients."""
        return State(*(value.detach() for value in vars(self).values()))

    def select(self, times: Tensor, cameras: Tensor) -> State:
        return State(
            self.gravity[times], self.log_f[cameras], self.distortion[cameras], self.c[cameras]
        )

    def replaced(self, part: State, times: Tensor, cameras: Tensor) -> State:
        """With the selected rows taken from ``part``."""
        return State(
            self.gravity.index_copy(0, times, part.gravity),
            self.log_f.index_copy(0, cameras, part.log_f),
            self.distortion.index_copy(0, cameras, part.distortion),
            self.c.index_copy(0, cameras, part.c),
        )

    def where(self, keep: Tensor, other: State, coupling: Coupling) -> State:
        """This state in the components (K,) to keep, the other one elsewhere."""
        time = keep[coupling.time_component]
        camera = keep[coupling.camera_component]
        return State(
            torch.where(time[:, None], self.gravity, other.gravity),
            torch.where(camera, self.log_f, other.log_f),
            torch.where(camera[:, None], self.distortion, other.distortion),
            torch.where(camera[:, None], self.c, other.c),
        )


@dataclass(frozen=True)
class Frame:
    """What stays fixed while the state moves."""

    model: CameraModel
    size: Tensor
    """(C, 2)."""
    aspect: Tensor
    """(C,)."""
    log_f_low: Tensor
    """(C,) bounds of log f."""
    log_f_high: Tensor
    free: Free

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
        return int(free.focal) + len(free.distortion) + 2 * int(free.principal_point)

    def images(
        self, state: State, coupling: Coupling, dtype: torch.dtype
    ) -> tuple[Camera, Tensor, Tensor]:
        """Camera, gravity (B, 3) and the directions (B, 3, 2) it varies in, of every image."""
        basis = sphere.tangent_basis(state.gravity)
        gravity = state.gravity
        intrinsics = [state.log_f.exp(), state.c, state.distortion, self.size, self.aspect]
        if not coupling.separate:
            gravity, basis = gravity[coupling.time], basis[coupling.time]
            intrinsics = [part[coupling.camera] for part in intrinsics]
        if coupling.rotation is not None:
            rotation = coupling.rotation.to(gravity.dtype)
            gravity, basis = (rotation @ gravity[..., None])[..., 0], rotation @ basis
        camera = Camera(self.model, *(part.to(dtype) for part in intrinsics))
        return camera, gravity.to(dtype), basis.to(dtype)

    def step(self, state: State, time_step: Tensor, camera_step: Tensor) -> State:
        """Move by (T, 2) on the sphere and (C, P) in the intrinsics, within bounds."""
        gravity, log_f, distortion, c = state.gravity, state.log_f, state.distortion, state.c
        if self.free.gravity:
            length = torch.linalg.vector_norm(time_step, dim=1, keepdim=True)
            gravity = sphere.move(
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
        return State(gravity, log_f, distortion, c)

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
