"""The priors in use: EXIF, sensors, known crops, and usual focal lengths."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from geocalib.arrays import Array
from geocalib.cameras.base import CameraModel
from geocalib.geometry.fields import ALONG_PITCH, ALONG_ROLL
from geocalib.geometry.gravity import from_roll_pitch, to_roll_pitch
from geocalib.imaging.metadata import Metadata
from geocalib.priors.crop import Crop, CropLike, crops_of
from geocalib.priors.exif import focal_prior, focal_reading
from geocalib.priors.gravity_reading import AngleReading
from geocalib.priors.lens_reading import LensReading, find_lens
from geocalib.priors.photos import (
    FocalEstimate,
    as_people_take_them,
    as_sure_as_photographs,
)
from geocalib.priors.readings import Readings, read_gravity
from geocalib.records import dataclass
from geocalib.result.calibration import Outcome
from geocalib.solver.known import VAGUE_DEG, Given, Prior, Rows

VAGUE_RADIANS = 1e3
"""Sigma of a gravity of which nothing is known but where to start."""
VAGUE_DISTORTION = 1e3
"""Sigma of a distortion of which nothing is known."""
LEVEL = (0.0, 1.0, 0.0)


@dataclass(frozen=True)
class File:
    """An image as far as it matters here."""

    path: str | None
    name: str
    size: tuple[int, int]
    """(width, height), upright."""
    metadata: Metadata


@dataclass(frozen=True)
class EnabledPriors:
    """Priors enabled for B images."""

    exif: bool
    """About focal lengths and lenses."""
    sensors: bool
    """Whether sensors' gravity is used."""
    crops: tuple[Crop | None, ...]
    point_share: float | None
    """One sigma of the principal point, in units of the longer side of the full picture."""
    photos: bool = False
    """Whether unknown focal lengths follow the prior of photographs (``priors.photos``)."""

    @classmethod
    def create(
        cls,
        count: int,
        exif: bool,
        sensors: bool,
        crop: CropLike,
        point_share: float | None,
        photos: bool = False,
    ) -> EnabledPriors:
        """From the arguments of a calibration of so many images."""
        crops = (None,) * count if crop is None else crops_of(crop, count)
        return cls(exif, sensors, crops, point_share, photos)

    def __getitem__(self, index: Sequence[int]) -> EnabledPriors:
        """Those about some of the images."""
        return replace(self, crops=tuple(self.crops[row] for row in index))

    def placed(self, given: Given, files: Sequence[File]) -> Given:
        """With the principal points, where none are given: the middles of the full pictures, fixed
        or free; and with the focal lengths, where the fields of view are given."""
        given = given.sized([file.size for file in files])
        if given.principal_point is not None:
            return given
        if self.point_share is None and not any(self.crops):
            return replace(given, principal_point=np.array([file.size for file in files]) / 2)
        points, sigmas = [], []
        for file, crop in zip(files, self.crops, strict=True):
            full = Crop(0, 0, *file.size, *file.size) if crop is None else crop
            full.check(file.size, file.name)
            points.append(full.principal_point(file.size))
            longest = max(
                full.full_width * file.size[0] / full.width,
                full.full_height * file.size[1] / full.height,
            )
            sigmas.append([longest * (self.point_share or 0.0)] * 2)
        point = np.array(points)
        if self.point_share is None:
            return replace(given, principal_point=point)
        return replace(given, principal_point=Prior(point, np.array(sigmas)))

    @property
    def expects_photos(self) -> bool:
        """Whether focal lengths are pulled to those that people use: of whole photographs."""
        return self.photos and all(crop is None for crop in self.crops)

    def expected(
        self,
        outcomes: list[Outcome],
        cameras: Sequence[int],
        focal_information: Sequence[float] | None,
        focal_estimates: Sequence[FocalEstimate | None],
    ) -> list[Outcome]:
        """The network's answers with what is usual of photographs, where that is expected."""
        if not self.expects_photos:
            return outcomes
        return as_people_take_them(outcomes, cameras, focal_information, focal_estimates)

    def as_sure(self, outcomes: list[Outcome], given: Given, learnt: bool) -> list[Outcome]:
        """The answers after lines, with the sigmas of gravity on photographs, if these are
        expected, for the angles without a prior. learnt: whether sigmas are those learnt for single
        photos."""
        if not self.expects_photos:
            return outcomes
        return [
            as_sure_as_photographs(outcome, _untold(given, row), learnt)
            for row, outcome in enumerate(outcomes)
        ]

    def readings(
        self, given: Given, files: Sequence[File], model: CameraModel | None
    ) -> list[Readings]:
        """What files say of each image that nothing is given for. model: of the cameras, in whose
        parameters distortion is; None for that of each lens."""
        return [
            self._reading(given, file, crop, model)
            for file, crop in zip(files, self.crops, strict=True)
        ]

    def _reading(
        self, given: Given, file: File, crop: Crop | None, model: CameraModel | None
    ) -> Readings:
        readings, tags = Readings(), file.metadata.tags
        size = crop.full_size if crop else file.size
        if self.sensors and given.gravity is None:
            readings = read_gravity(file.path, file.metadata, size)
        if not tags:
            return readings
        hint, notes = focal_reading(tags, size)
        if self.exif and hint is not None and given.distortion is None:
            lens, _ = find_lens(tags, size, hint.focal_px, model)
            readings = replace(readings, lens=lens)
            hint = hint if lens is None else hint.stretched(lens.stretch)
        if self.exif and given.focal is None:
            if hint is not None and crop is not None:
                hint = crop.focal(hint, file.size)
            readings = replace(readings, focal=hint)
        return replace(readings, notes=(*notes, *readings.notes))


def _untold(given: Given, row: int) -> tuple[str, ...]:
    """The angles of one image's gravity of which nothing but the picture tells."""
    if given.gravity is None:
        return ALONG_ROLL, ALONG_PITCH
    if not isinstance(given.gravity, Prior):
        return ()
    vague = np.broadcast_to(given.gravity.sigma[row] >= VAGUE_RADIANS, 2)
    return tuple(np.array([ALONG_ROLL, ALONG_PITCH])[vague].tolist())


def with_readings(
    given: Given,
    readings: Sequence[Readings],
    files: Sequence[File],
    cameras: Sequence[int],
    usual_distortion: Rows = None,
) -> Given:
    """Add soft priors for the sensors' readings, if there are any.

    Single angles of gravity are used if none of the images has both. cameras: equal integers
    for images of one camera. usual_distortion: (B, D) of unknown
    lenses.
    """
    hints = [reading.gravity for reading in readings]
    if any(hints):
        down = [None if hint is None else np.array(hint.gravity) for hint in hints]
        sigmas = [VAGUE_RADIANS if hint is None else math.radians(hint.sigma_deg) for hint in hints]
        given = replace(given, gravity=_gravity(down, sigmas))
    elif any(reading.angle for reading in readings):
        given = replace(given, gravity=_angles([reading.angle for reading in readings]))
    focals = [reading.focal for reading in readings]
    if any(focals):
        prior = focal_prior(focals, [file.size for file in files], cameras)
        given = replace(given, focal=prior)
    lenses = [reading.lens for reading in readings]
    if any(lenses):
        given = replace(given, distortion=_distortion(lenses, usual_distortion))
    return given


def _distortion(lenses: Sequence[LensReading | None], usual: Rows) -> Prior:
    """The prior (B, D) with sigmas (B, D)."""
    count = next(len(lens.distortion) for lens in lenses if lens is not None)
    if not isinstance(usual, Prior):
        usual = Prior(*(np.full((len(lenses), count), value) for value in (0.0, VAGUE_DISTORTION)))
    rows = [
        (usual.value[row], usual.sigma[row]) if lens is None else (lens.distortion, lens.sigma)
        for row, lens in enumerate(lenses)
    ]
    return Prior(np.array([value for value, _ in rows]), np.array([sigma for _, sigma in rows]))


def with_starts(given: Given, down: Sequence[Array | None]) -> Given:
    """With the search for gravity with_starts at down (3,), where that is known and gravity is not:
    a fit starts at its priors, and these weigh nothing."""
    if not any(start is not None for start in down):
        return given
    known = given.gravity
    if isinstance(known, Prior):  # Sensors tell of some images, and of the others nothing.
        vague = known.sigma >= VAGUE_RADIANS
        starts = [
            value if start is None else _moved(value, unknown, start)
            for start, unknown, value in zip(down, vague, known.value, strict=True)
        ]
        return replace(given, gravity=Prior(np.stack(starts), known.sigma))
    if known is not None:
        return given
    return replace(given, gravity=_gravity(down, [VAGUE_RADIANS] * len(down)))


def _moved(value: Array, unknown: Array, start: Array) -> Array:
    """A known gravity (3,) with those of its angles from a start (3,) that are unknown (1,) or
    (2,), roll and pitch."""
    if len(set(unknown.tolist())) == 1:
        return start if unknown.all() else value
    roll, pitch = np.where(unknown, to_roll_pitch(start), to_roll_pitch(value))
    return np.asarray(from_roll_pitch(roll, pitch))


def _angles(hints: Sequence[AngleReading | None]) -> Prior:
    """The prior (B, 3) with sigmas (B, 2) of roll and pitch."""
    values = [LEVEL if hint is None else hint.gravity for hint in hints]
    vague = (VAGUE_DEG, VAGUE_DEG)
    sigmas = [vague if hint is None else hint.sigmas_deg for hint in hints]
    return Prior(np.array(values), np.deg2rad(sigmas))


def _gravity(down: Sequence[Array | None], sigmas: Sequence[float]) -> Prior:
    """The prior (B, 3) with sigmas (B, 1)."""
    values = [LEVEL if value is None else value for value in down]
    return Prior(np.array(values), np.array(sigmas)[:, None])
