"""Which images share a camera or a gravity, and the arrow-shaped systems that follow.

Every image has a time (whose gravity it sees) and a camera (whose intrinsics it has). Alone,
both are its own; images of one group share the camera; images of a rig share both. What is
connected through shared unknowns forms a component, solved and converged by itself.

Gravities couple only to the cameras of their component, so each is eliminated in its own
2 x 2 block (Schur complement): time and memory grow linearly with the number of images.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from geocalib.errors import CouplingError


@dataclass(frozen=True)
class Rig:
    """Cameras rigidly mounted together, seen at several times."""

    camera_from_rig: Tensor
    """(M, 3, 3) known rotation of each camera: gravity in it is rotation @ rig gravity."""
    camera: Sequence[int] | Tensor
    """For each image, the index of its camera in ``camera_from_rig``."""
    time: Sequence[int] | Tensor
    """For each image, an integer that is equal for images taken at once."""

    def __getitem__(self, rows: Sequence[int]) -> Rig:
        """As some of the images see it."""
        camera, time = torch.as_tensor(self.camera), torch.as_tensor(self.time)
        return Rig(self.camera_from_rig, camera[list(rows)], time[list(rows)])


@dataclass(frozen=True)
class Coupling:
    """B images, T times, C cameras, K components of at most S cameras each."""

    time: Tensor
    """(B,) time of each image."""
    camera: Tensor
    """(B,) camera of each image."""
    rotation: Tensor | None
    """(B, 3, 3) from the frame of the time's gravity to the image's; None: identity."""
    time_component: Tensor
    """(T,)."""
    camera_component: Tensor
    """(C,)."""
    camera_slot: Tensor
    """(C,) position of each camera among those of its component."""
    slots: int
    """S."""
    components: int
    """K."""

    @property
    def separate(self) -> bool:
        """Whether every image stands alone (then all indices are the image's own)."""
        return self.components == len(self.time)

    def select(self, keep: Tensor) -> tuple[Coupling, Tensor, Tensor, Tensor]:
        """The sub-problem of some components (K,) and the indices of its images, times, cameras."""
        images = keep[self.camera_component[self.camera]].nonzero()[:, 0]
        times = keep[self.time_component].nonzero()[:, 0]
        cameras = keep[self.camera_component].nonzero()[:, 0]
        component = keep.cumsum(0) - 1
        new_time = torch.empty_like(self.time_component)
        new_time[times] = torch.arange(len(times), device=times.device)
        new_camera = torch.empty_like(self.camera_component)
        new_camera[cameras] = torch.arange(len(cameras), device=cameras.device)
        sub = Coupling(
            new_time[self.time[images]],
            new_camera[self.camera[images]],
            None if self.rotation is None else self.rotation[images],
            component[self.time_component[times]],
            component[self.camera_component[cameras]],
            self.camera_slot[cameras],
            self.slots,
            int(keep.sum()),
        )
        return sub, images, times, cameras

    def times_sum(self, per_time: Tensor) -> Tensor:
        """(T, ...) summed over the times of each component, (K, ...)."""
        if self.separate:
            return per_time
        return _add(per_time, self.time_component, self.components)

    def times_max(self, per_time: Tensor) -> Tensor:
        """Largest magnitude (K,) of (T, n) values among the times of each component."""
        if per_time.shape[1] == 0:
            return per_time.new_zeros(self.components)
        largest = per_time.abs().amax(1)
        if self.separate:
            return largest
        zeros = largest.new_zeros(self.components)
        return zeros.scatter_reduce(0, self.time_component, largest, "amax")

    def by_component(self, per_camera: Tensor) -> Tensor:
        """(C, n) laid out as (K, S n), zeros in empty slots."""
        if self.separate:
            return per_camera
        at = self.camera_component * self.slots + self.camera_slot
        laid = _add(per_camera, at, self.components * self.slots)
        return laid.reshape(self.components, -1)

    def component_sum(self, per_image: Tensor) -> Tensor:
        """(B, ...) summed over the images of each component, (K, ...)."""
        if self.separate:
            return per_image
        return _add(per_image, self.camera_component[self.camera], self.components)


def couple(
    images: int, groups: Sequence[int] | Tensor | None, rig: Rig | None, device: torch.device
) -> Coupling:
    """The coupling that the arguments of ``fit`` describe."""
    own = torch.arange(images, device=device)
    if groups is None and rig is None:
        zeros = torch.zeros_like(own)
        return Coupling(own, own, None, own, own, zeros, 1, images)
    time, rotation, camera = own, None, own
    if rig is not None:
        camera = _indices("rig.camera", rig.camera, images, device)
        time = _numbered(_indices("rig.time", rig.time, images, device))
        rotation = _rotations(rig, camera)
    if groups is not None:
        camera = _indices("groups", groups, images, device)
    camera = _numbered(camera)
    times, cameras = int(time.max()) + 1, int(camera.max()) + 1
    pairs = _numbered(time * cameras + camera)
    if rig is not None and groups is None and int(pairs.max()) + 1 < images:
        raise CouplingError("rig: two images have the same camera at the same time")
    time_component, camera_component = _components(time, camera, times, cameras)
    if int(camera_component.max()) + 1 == images:
        return Coupling(own, own, rotation, own, own, torch.zeros_like(own), 1, images)
    order = camera_component.argsort(stable=True)
    first = torch.searchsorted(camera_component[order], camera_component[order])
    slot = torch.empty_like(order)
    slot[order] = torch.arange(cameras, device=device) - first
    return Coupling(
        time,
        camera,
        rotation,
        time_component,
        camera_component,
        slot,
        int(slot.max()) + 1,
        int(camera_component.max()) + 1,
    )


def _indices(
    name: str, values: Sequence[int] | Tensor, images: int, device: torch.device
) -> Tensor:
    indices = torch.as_tensor(values, device=device)
    if indices.shape != (images,) or indices.is_floating_point():
        raise CouplingError(
            f"{name} must hold one integer per image ({images}), got shape "
            f"{tuple(indices.shape)} of {indices.dtype}"
        )
    return indices.long()


def _rotations(rig: Rig, camera: Tensor) -> Tensor:
    rotations = torch.as_tensor(rig.camera_from_rig, device=camera.device)
    if rotations.dim() != 3 or rotations.shape[1:] != (3, 3):
        raise CouplingError(
            f"rig.camera_from_rig must be (cameras, 3, 3), got {tuple(rotations.shape)}"
        )
    if bool(((camera < 0) | (camera >= len(rotations))).any()):
        raise CouplingError(f"rig.camera must lie in 0 .. {len(rotations) - 1}")
    product = rotations.double() @ rotations.double().transpose(1, 2)
    off = (product - torch.eye(3, device=camera.device)).abs().amax((1, 2))
    wrong = (off > 1e-4) | (torch.linalg.det(rotations.double()) < 0)
    if bool(wrong.any()):
        raise CouplingError(f"rig.camera_from_rig[{int(wrong.nonzero()[0])}] is no rotation")
    return rotations[camera]


def _numbered(values: Tensor) -> Tensor:
    """The values replaced by 0, 1, ... in the order in which they first appear.

    So the indices of images that stand alone ascend together, also in any selection of them.
    """
    numbers: Tensor = torch.unique(values, return_inverse=True)[1]
    place = torch.arange(len(values), device=values.device)
    count = int(numbers.max()) + 1
    first = torch.full((count,), len(values), device=values.device)
    first = first.scatter_reduce(0, numbers, place, "amin")
    return first.argsort().argsort()[numbers]


def _components(time: Tensor, camera: Tensor, times: int, cameras: int) -> tuple[Tensor, Tensor]:
    """Connected components of times (T,) and cameras (C,), numbered from 0."""
    label = torch.arange(cameras, device=time.device)
    while True:
        # The smallest label spreads from cameras to times and back, taking short cuts.
        low = torch.full((times,), cameras, device=time.device, dtype=label.dtype)
        low = low.scatter_reduce(0, time, label[camera], "amin")
        spread = label.scatter_reduce(0, camera, low[time], "amin")
        spread = spread[spread]
        if bool((spread == label).all()):
            break
        label = spread
    numbered = _numbered(label)
    of_time = torch.empty(times, device=time.device, dtype=label.dtype)
    of_time[time] = numbered[camera]
    return of_time, numbered


@dataclass(frozen=True)
class Arrow:
    """A symmetric arrow-shaped system: A (T, a, a) on the times, C (K, Q, Q) on the components'
    cameras, B (T, a, Q) between a time and the cameras of its component."""

    A: Tensor
    B: Tensor
    C: Tensor

    @classmethod
    def assemble(cls, matrix: Tensor, coupling: Coupling, a: int) -> Arrow:
        """Sum per-image matrices (B, P, P), whose first ``a`` parameters belong to the time."""
        top, side, bottom = matrix[:, :a, :a], matrix[:, :a, a:], matrix[:, a:, a:]
        if coupling.separate:
            return cls(top, side, bottom)
        times, own = len(coupling.time_component), side.shape[2]
        slots, cameras = coupling.slots, len(coupling.camera_component)
        at = coupling.time * slots + coupling.camera_slot[coupling.camera]
        B = _add(side, at, times * slots).reshape(times, slots, a, own)
        C = matrix.new_zeros(coupling.components, slots, own, slots, own)
        component, slot = coupling.camera_component, coupling.camera_slot
        C[component, slot, :, slot, :] = _add(bottom, coupling.camera, cameras)
        return cls(
            _add(top, coupling.time, times),
            B.transpose(1, 2).reshape(times, a, slots * own),
            C.reshape(coupling.components, slots * own, slots * own),
        )

    def plus_diagonal(self, time: Tensor, camera: Tensor, coupling: Coupling) -> Arrow:
        """With (T, a) and (C, Q / S) added on the diagonal."""
        return Arrow(
            self.A + torch.diag_embed(time),
            self.B,
            self.C + torch.diag_embed(coupling.by_component(camera)),
        )

    def damped(self, damping: Tensor, coupling: Coupling) -> Arrow:
        """With (1 + damping) on the diagonal, damping (K,); empty slots become solvable."""
        return Arrow(
            self.A + _damping(self.A, damping[coupling.time_component, None]),
            self.B,
            self.C + _damping(self.C, damping[:, None]),
        )

    def eliminate(self, coupling: Coupling) -> Elimination:
        """Eliminate the times."""
        inverse = torch.linalg.inv_ex(self.A)[0]
        AB = inverse @ self.B
        S = self.C - coupling.times_sum(self.B.transpose(1, 2) @ AB)
        return Elimination(inverse, AB, S)


@dataclass(frozen=True)
class Elimination:
    """What is left of an arrow system: A^-1, A^-1 B and the Schur complement S (K, Q, Q)."""

    A_inverse: Tensor
    AB: Tensor
    S: Tensor

    def solve(self, b_time: Tensor, b_camera: Tensor, coupling: Coupling) -> tuple[Tensor, Tensor]:
        """Solutions (T, a) and (K, Q)."""
        reduced = b_camera - coupling.times_sum(
            (self.AB.transpose(1, 2) @ b_time.unsqueeze(-1)).squeeze(-1)
        )
        x_camera = torch.linalg.solve_ex(self.S, reduced.unsqueeze(-1))[0]
        x_time = self.A_inverse @ b_time.unsqueeze(-1) - self.AB @ x_camera[coupling.time_component]
        return x_time.squeeze(-1), x_camera.squeeze(-1)


def assemble_vector(vector: Tensor, coupling: Coupling, a: int) -> tuple[Tensor, Tensor]:
    """Sum per-image vectors (B, P) to (T, a) and (K, Q)."""
    if coupling.separate:
        return vector[:, :a], vector[:, a:]
    cameras = len(coupling.camera_component)
    return (
        _add(vector[:, :a], coupling.time, len(coupling.time_component)),
        coupling.by_component(_add(vector[:, a:], coupling.camera, cameras)),
    )


def to_cameras(by_component: Tensor, coupling: Coupling) -> Tensor:
    """(K, Q) to (C, Q / S): each camera its own part."""
    if coupling.separate:
        return by_component
    parts = by_component.reshape(coupling.components, coupling.slots, -1)
    return parts[coupling.camera_component, coupling.camera_slot]


def _damping(matrix: Tensor, factor: Tensor) -> Tensor:
    diagonal = matrix.diagonal(dim1=1, dim2=2)
    return torch.diag_embed(torch.where(diagonal == 0, 1.0, factor * diagonal))


def _add(values: Tensor, index: Tensor, count: int) -> Tensor:
    """Rows of values summed by index into ``count`` rows."""
    return values.new_zeros(count, *values.shape[1:]).index_add(0, index, values)
