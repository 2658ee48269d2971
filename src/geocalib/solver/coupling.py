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
from functools import cached_property

from geocalib import records
from geocalib.arrays import (
    Array,
    Device,
    cast,
    counting,
    diagonal,
    diagonal_matrices,
    double,
    inverse,
    max_rows,
    min_rows,
    namespace,
    row_max,
    solve,
    sum_rows,
    to_array,
    zeros,
)
from geocalib.errors import CouplingError


@dataclass(frozen=True)
class Rig:
    """Cameras rigidly mounted together, seen at several times."""

    camera_from_rig: Array
    """(M, 3, 3) known rotation of each camera: gravity in it is rotation @ rig gravity."""
    camera: Sequence[int] | Array
    """For each image, the index of its camera in ``camera_from_rig``."""
    time: Sequence[int] | Array
    """For each image, an integer that is equal for images taken at once."""

    def __getitem__(self, rows: Sequence[int]) -> Rig:
        """As some of the images see it."""
        camera, time = ([int(index[row]) for row in rows] for index in (self.camera, self.time))
        return Rig(self.camera_from_rig, camera, time)


@records.dataclass(frozen=True)
class Coupling:
    """B images, T times, C cameras, K components of at most S cameras each."""

    time: Array
    """(B,) time of each image."""
    camera: Array
    """(B,) camera of each image."""
    rotation: Array | None
    """(B, 3, 3) from the frame of the time's gravity to the image's; None: identity."""
    time_component: Array
    """(T,)."""
    camera_component: Array
    """(C,)."""
    camera_slot: Array
    """(C,) position of each camera among those of its component."""
    slots: int
    """The number of slots, S."""
    components: int
    """The number of connected components, K."""

    @cached_property
    def separate(self) -> bool:
        """Whether every image stands alone (then all indices are the image's own)."""
        return self.components == len(self.time)

    def select(self, keep: Array) -> tuple[Coupling, Array, Array, Array]:
        """The sub-problem of some components (K,) and the indices of its images, times, cameras."""
        xp = namespace(keep)
        images = xp.nonzero(keep[self.camera_component[self.camera]])[0]
        times = xp.nonzero(keep[self.time_component])[0]
        cameras = xp.nonzero(keep[self.camera_component])[0]
        component = xp.cumulative_sum(cast(keep, xp.int64)) - 1
        new_time = xp.empty_like(self.time_component)
        new_time[times] = counting(len(times), times)
        new_camera = xp.empty_like(self.camera_component)
        new_camera[cameras] = counting(len(cameras), cameras)
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

    def times_sum(self, per_time: Array) -> Array:
        """(T, ...) summed over the times of each component, (K, ...)."""
        if self.separate:
            return per_time
        return sum_rows(per_time, self.time_component, self.components)

    def times_max(self, per_time: Array) -> Array:
        """Largest magnitude (K,) of (T, n) values among the times of each component."""
        largest = row_max(abs(per_time))
        if self.separate:
            return largest
        return max_rows(zeros((self.components,), largest), self.time_component, largest)

    def by_component(self, per_camera: Array) -> Array:
        """(C, n) laid out as (K, S n), zeros in empty slots."""
        if self.separate:
            return per_camera
        at = self.camera_component * self.slots + self.camera_slot
        laid = sum_rows(per_camera, at, self.components * self.slots)
        return laid.reshape(self.components, -1)

    def component_sum(self, per_image: Array) -> Array:
        """(B, ...) summed over the images of each component, (K, ...)."""
        if self.separate:
            return per_image
        return sum_rows(per_image, self.camera_component[self.camera], self.components)


def couple(
    images: int, groups: Sequence[int] | Array | None, rig: Rig | None, device: Device = "cpu"
) -> Coupling:
    """The coupling that the arguments of ``fit`` describe, in the library of the device; by
    default, NumPy's."""
    xp = namespace(device)
    own = xp.arange(images, dtype=xp.int64, device=device)
    time, rotation, camera = own, None, own
    if groups is not None:
        camera = _indices("groups", groups, images, device)
    if rig is None and (groups is None or images == 1):
        return Coupling(own, own, None, own, own, xp.zeros_like(own), 1, images)
    if rig is not None:
        mounted = _indices("rig.camera", rig.camera, images, device)
        time = _numbered(_indices("rig.time", rig.time, images, device))
        rotation = _rotations(rig, mounted)
        camera = mounted if groups is None else camera
    camera = _numbered(camera)
    times, cameras = int(time.max()) + 1, int(camera.max()) + 1
    pairs = _numbered(time * cameras + camera)
    if rig is not None and groups is None and int(pairs.max()) + 1 < images:
        raise CouplingError("rig: two images have the same camera at the same time")
    time_component, camera_component = _components(time, camera, times, cameras)
    if int(camera_component.max()) + 1 == images:
        return Coupling(own, own, rotation, own, own, xp.zeros_like(own), 1, images)
    order = xp.argsort(camera_component, stable=True)
    first = xp.searchsorted(camera_component[order], camera_component[order])
    slot = xp.empty_like(order)
    slot[order] = counting(cameras, order) - first
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


def _indices(name: str, values: Sequence[int] | Array, images: int, device: Device) -> Array:
    xp = namespace(device)
    indices = to_array(values, xp, device=device)
    if indices.shape != (images,) or xp.isdtype(indices.dtype, "real floating"):
        raise CouplingError(
            f"{name} must hold one integer per image ({images}), got shape "
            f"{tuple(indices.shape)} of {indices.dtype}"
        )
    return cast(indices, xp.int64)


def _rotations(rig: Rig, camera: Array) -> Array:
    xp = namespace(camera)
    rotations = to_array(rig.camera_from_rig, xp, device=camera.device)
    if rotations.ndim != 3 or rotations.shape[1:] != (3, 3):
        raise CouplingError(
            f"rig.camera_from_rig must be (cameras, 3, 3), got {tuple(rotations.shape)}"
        )
    if bool(((camera < 0) | (camera >= len(rotations))).any()):
        raise CouplingError(f"rig.camera must lie in 0 .. {len(rotations) - 1}")
    product = double(rotations) @ double(rotations).mT
    identity = xp.eye(3, dtype=xp.float64, device=camera.device)
    off = xp.max(abs(product - identity), axis=(1, 2))
    wrong = (off > 1e-4) | (xp.linalg.det(double(rotations)) < 0)
    if bool(wrong.any()):
        raise CouplingError(f"rig.camera_from_rig[{int(xp.nonzero(wrong)[0][0])}] is no rotation")
    return rotations[camera]


def _numbered(values: Array) -> Array:
    """The values replaced by 0, 1, ... in the order in which they first appear.

    So the indices of images that stand alone ascend together, also in any selection of them.
    """
    xp = namespace(values)
    numbers = xp.unique_inverse(values)[1]
    place = counting(len(values), values)
    count = int(numbers.max()) + 1
    first = min_rows(xp.full_like(place[:count], len(values)), numbers, place)
    return xp.argsort(xp.argsort(first))[numbers]


def _components(time: Array, camera: Array, times: int, cameras: int) -> tuple[Array, Array]:
    """Connected components of times (T,) and cameras (C,), numbered from 0."""
    xp = namespace(time)
    label = counting(cameras, time)
    while True:
        # The smallest label spreads from cameras to times and back, taking short cuts.
        low = min_rows(xp.full_like(counting(times, time), cameras), time, label[camera])
        spread = min_rows(label, camera, low[time])
        spread = spread[spread]
        if bool((spread == label).all()):
            break
        label = spread
    numbered = _numbered(label)
    of_time = counting(times, time)
    of_time[time] = numbered[camera]
    return of_time, numbered


@records.dataclass(frozen=True)
class Arrow:
    """A symmetric arrow-shaped system: A (T, a, a) on the times, C (K, Q, Q) on the components'
    cameras, B (T, a, Q) between a time and the cameras of its component."""

    A: Array
    B: Array
    C: Array

    @classmethod
    def assemble(cls, matrix: Array, coupling: Coupling, a: int) -> Arrow:
        """Sum per-image matrices (B, P, P), whose first ``a`` parameters belong to the time."""
        top, side, bottom = matrix[:, :a, :a], matrix[:, :a, a:], matrix[:, a:, a:]
        if coupling.separate:
            return cls(top, side, bottom)
        times, own = len(coupling.time_component), side.shape[2]
        slots, cameras = coupling.slots, len(coupling.camera_component)
        at = coupling.time * slots + coupling.camera_slot[coupling.camera]
        B = sum_rows(side, at, times * slots).reshape(times, slots, a, own)
        C = zeros((coupling.components, slots, own, slots, own), matrix)
        component, slot = coupling.camera_component, coupling.camera_slot
        C[component, slot, :, slot, :] = sum_rows(bottom, coupling.camera, cameras)
        return cls(
            sum_rows(top, coupling.time, times),
            namespace(B).permute_dims(B, (0, 2, 1, 3)).reshape(times, a, slots * own),
            C.reshape(coupling.components, slots * own, slots * own),
        )

    def plus_diagonal(self, time: Array, camera: Array, coupling: Coupling) -> Arrow:
        """With (T, a) and (C, Q / S) added on the diagonal."""
        return Arrow(
            self.A + diagonal_matrices(time),
            self.B,
            self.C + diagonal_matrices(coupling.by_component(camera)),
        )

    def damped(self, damping: Array, coupling: Coupling) -> Arrow:
        """With (1 + damping) on the diagonal, damping (K,); empty slots become solvable."""
        return Arrow(
            damped(self.A, damping[coupling.time_component, None]),
            self.B,
            damped(self.C, damping[:, None]),
        )

    def eliminate(self, coupling: Coupling) -> Elimination:
        """Eliminate the gravities of all times."""
        A_inverse = inverse(self.A)
        AB = A_inverse @ self.B
        S = self.C - coupling.times_sum(self.B.mT @ AB)
        return Elimination(A_inverse, AB, S)


@records.dataclass(frozen=True)
class Elimination:
    """What is left of an arrow system: A^-1, A^-1 B and the Schur complement S (K, Q, Q)."""

    A_inverse: Array
    AB: Array
    S: Array

    def solve(self, b_time: Array, b_camera: Array, coupling: Coupling) -> tuple[Array, Array]:
        """Solutions (T, a) and (K, Q)."""
        reduced = b_camera - coupling.times_sum((self.AB.mT @ b_time[..., None])[..., 0])
        x_camera = solve(self.S, reduced[..., None])
        x_time = self.A_inverse @ b_time[..., None] - self.AB @ x_camera[coupling.time_component]
        return x_time[..., 0], x_camera[..., 0]


def assemble_vector(vector: Array, coupling: Coupling, a: int) -> tuple[Array, Array]:
    """Sum per-image vectors (B, P) to (T, a) and (K, Q)."""
    if coupling.separate:
        return vector[:, :a], vector[:, a:]
    cameras = len(coupling.camera_component)
    return (
        sum_rows(vector[:, :a], coupling.time, len(coupling.time_component)),
        coupling.by_component(sum_rows(vector[:, a:], coupling.camera, cameras)),
    )


def to_cameras(by_component: Array, coupling: Coupling) -> Array:
    """(K, Q) to (C, Q / S): each camera its own part."""
    if coupling.separate:
        return by_component
    parts = by_component.reshape(coupling.components, coupling.slots, -1)
    return parts[coupling.camera_component, coupling.camera_slot]


def damped(matrix: Array, damping: Array) -> Array:
    """Matrices (n, p, p) with (1 + damping) on their diagonals, damping (n, 1); solvable where
    nothing is known of a parameter."""
    values = diagonal(matrix)
    added = namespace(values).where(values == 0, 1.0, damping * values)
    return matrix + diagonal_matrices(added)
