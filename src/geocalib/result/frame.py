"""The two frames of a picture: as it is seen upright, and as the pixels lie in its file.

EXIF orientation (1 to 8) says how the stored pixels are turned, and seldom mirrored, to be seen
upright. Answers are in the upright frame; many programs read the stored pixels and know nothing of
EXIF, so that cameras, gravity and covariances have to be turned along before they are handed over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import radians, sin
from typing import Protocol

import numpy as np

from geocalib.arrays import Array
from geocalib.cameras import Camera
from geocalib.geometry import gravity as sphere
from geocalib.geometry.fields import ALONG_PITCH, ALONG_ROLL, CX, CY, LOG_ASPECT, LOG_F
from geocalib.geometry.orientation import upright
from geocalib.records import dataclass
from geocalib.result.evidence import Angles, DrawnCheck, Lens, LensFamily, Lines, PriorCheck
from geocalib.result.ruler import MeasuredRuler


@dataclass(frozen=True)
class Turned:
    """What a calibration holds of a picture that was turned."""

    camera: Camera
    gravity: Array
    covariance: Array
    parameters: tuple[str, ...]
    lines: Lines | None
    lens: Lens | None
    priors: tuple[PriorCheck, ...]
    drawn: tuple[DrawnCheck, ...]
    ruler: MeasuredRuler | None


class TurnableAnswer(Angles, Protocol):
    """A calibration, as far as turning its picture changes it."""

    @property
    def cameras(self) -> Camera: ...
    @property
    def gravity(self) -> Array: ...
    @property
    def covariance(self) -> Array: ...
    @property
    def parameters(self) -> tuple[str, ...]: ...
    @property
    def lines(self) -> Lines | None: ...
    @property
    def lens(self) -> Lens | None: ...
    @property
    def priors(self) -> tuple[PriorCheck, ...]: ...
    @property
    def drawn(self) -> tuple[DrawnCheck, ...]: ...
    @property
    def ruler(self) -> MeasuredRuler | None: ...


def turned(old: TurnableAnswer, turn: int) -> Turned:
    """That of the picture as EXIF orientation 1 to 8 turns it. Segments of lines stay behind."""
    axes = np.array([upright(axis, turn) for axis in ((1.0, 0, 0), (0, 1.0, 0), (0, 0, 1.0))]).T
    camera, gravity = _camera(old.cameras, turn), axes @ old.gravity
    bases = sphere.tangent_basis(old.gravity), sphere.tangent_basis(gravity)
    names, jacobian = _jacobian(old.parameters, bases[1].T @ axes @ bases[0], axes)
    return Turned(
        camera,
        gravity,
        jacobian @ old.covariance @ jacobian.T,
        names,
        None if old.lines is None else _lines(old.lines, old, camera, gravity, axes),
        None if old.lens is None else Lens(tuple(_family(each, axes) for each in old.lens)),
        tuple(_prior(prior, turn, old.cameras.aspect.item()) for prior in old.priors),
        tuple(_drawn(line, old.cameras, turn) for line in old.drawn),
        None
        if old.ruler is None
        else old.ruler.mapped(lambda x, y: _place(x, y, old.cameras, turn)),
    )


def _camera(old: Camera, turn: int) -> Camera:
    """A batch of 1. Distortion is radial: it stays as it is."""
    size, f, aspect = old.size[0], old.f, old.aspect
    x, y = _place(old.c[0, 0], old.c[0, 1], old, turn)
    if turn > 4:
        size, f, aspect = size[::-1], f * aspect, 1 / aspect
    return replace(old, f=f, aspect=aspect, size=size[None], c=np.array([[x, y]]))


def _place(x: float, y: float, old: Camera, turn: int) -> tuple[float, float]:
    """Where a place of the old picture is in the turned one."""
    width, height = old.size[0]
    if turn > 4:
        x, y, width, height = y, x, height, width
    x = width - x if turn in (2, 3, 6, 7) else x
    y = height - y if turn in (3, 4, 7, 8) else y
    return float(x), float(y)


def _drawn(line: DrawnCheck, old: Camera, turn: int) -> DrawnCheck:
    """A drawn line, on the turned picture."""
    x0, y0 = _place(line.x0, line.y0, old, turn)
    x1, y1 = _place(line.x1, line.y1, old, turn)
    return replace(line, x0=x0, y0=y0, x1=x1, y1=y1)


def _jacobian(names: Sequence[str], along: Array, axes: Array) -> tuple[tuple[str, ...], Array]:
    """The free parameters of the turned picture, and their derivatives by those of the old one.

    along: (2, 2) of the directions on the sphere; axes: (3, 3) of the camera's axes. A picture on
    its side has its fx for fy, so that a free aspect frees the focal length as well.
    """
    rates: dict[tuple[str, str], float] = {
        (name, name): 1.0 for name in names if name not in (CX, CY, ALONG_ROLL, ALONG_PITCH)
    }
    for pair, block in (((ALONG_ROLL, ALONG_PITCH), along), ((CX, CY), axes[:2, :2])):
        for i, new in enumerate(pair):
            rates |= {(new, old): block[i, j] for j, old in enumerate(pair) if block[i, j]}
    if axes[0, 1]:
        rates |= {(LOG_F, LOG_ASPECT): 1.0, (LOG_ASPECT, LOG_ASPECT): -1.0}
    renamed = [new for new, old in rates if old in names and new not in names]
    new_names = (*names, *dict.fromkeys(renamed))
    rows = [[rates.get((new, old), 0.0) for old in names] for new in new_names]
    return new_names, np.array(rows, np.float64).reshape(len(new_names), len(names))


def _lines(old: Lines, before: Angles, camera: Camera, gravity: Array, axes: Array) -> Lines:
    """By how much lines moved the turned answer. In the field of view to first order."""
    moved = np.radians([before.roll_deg - old.roll_deg, before.pitch_deg - old.pitch_deg])
    start = np.array(sphere.to_roll_pitch(axes @ sphere.from_roll_pitch(moved[0], moved[1])))
    roll, pitch = np.degrees(np.array(sphere.to_roll_pitch(gravity)) - start).tolist()
    vfov = old.vfov_deg
    if axes[0, 1]:
        vfov *= sin(camera.vfov.item()) / sin(radians(before.vfov_deg))
    return replace(
        old, roll_deg=(roll + 180) % 360 - 180, pitch_deg=pitch, vfov_deg=vfov, traces=None
    )


def _family(old: LensFamily, axes: Array) -> LensFamily:
    """What a family of lenses answers, of the turned picture."""
    angles = np.radians([old.roll_deg, old.pitch_deg])
    gravity = axes @ sphere.from_roll_pitch(angles[0], angles[1])
    roll, pitch = np.degrees(np.array(sphere.to_roll_pitch(gravity))).tolist()
    fields = (old.hfov_deg, old.vfov_deg) if axes[0, 1] else (old.vfov_deg, old.hfov_deg)
    return LensFamily(old.camera_model, old.probability, *fields, roll, pitch)


def _prior(old: PriorCheck, turn: int, aspect: float) -> PriorCheck:
    """What a sensor said, of the turned picture."""
    if old.quantity == "distortion":
        return old
    if old.quantity == "gravity":
        (x, y, z), (u, v, w) = old.prior, old.estimate
        return replace(old, prior=upright((x, y, z), turn), estimate=upright((u, v, w), turn))
    scale = aspect if turn > 4 else 1.0
    return replace(
        old,
        prior=tuple(scale * value for value in old.prior),
        prior_sigma=scale * old.prior_sigma,
        estimate=tuple(scale * value for value in old.estimate),
        estimate_sigma=scale * old.estimate_sigma,
    )
