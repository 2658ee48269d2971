"""The pictures of one camera: gathered one by one, then fitted together.

What the network saw in a picture is pooled, moved to the camera's plane and written to a file as
soon as it is there, which is mapped to memory when it is needed; what stays in memory of a picture
is its name and a few numbers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from geocalib.arrays import Array, double, to_numpy, unstack
from geocalib.cameras.base import CameraModel
from geocalib.cameras.camera import Window
from geocalib.geometry.fields import LOG_F, Fields
from geocalib.geometry.segments import Segments
from geocalib.lines.refine import refine_outcomes
from geocalib.priors.enabled import File
from geocalib.priors.lens import Choice, chosen, odds_of_lenses, prior_of, usual_distortion
from geocalib.records import dataclass, named_tensors, replace
from geocalib.result.calibration import OUTLIER, Calibration, Failure, Outcome
from geocalib.sets.grouping import names_camera
from geocalib.sets.image_record import ImageRecord
from geocalib.sets.outliers import (
    FALSE_ALARM,
    FEW,
    FEWEST,
    GUESSED_ALARM,
    OutlierVerdict,
    judge,
    silent,
)
from geocalib.solver.families import Fitted, compare
from geocalib.solver.fit import FitOptions, clean_fields
from geocalib.solver.joint import (
    Evidence,
    Plane,
    SingleFits,
    alike,
    fit_each,
    fit_from,
    fit_together,
)
from geocalib.solver.known import Given
from geocalib.solver.known import Mapping as PixelMapping
from geocalib.solver.observations import Observations, observe
from geocalib.solver.result import FitResult
from geocalib.solver.sigma_calibration import FieldErrors

PLANES = 9
"""Numbers per place: x and y of the up-vector and of the latitude, and their five values."""

ROWS_AT_ONCE = 256
"""Images that are copied at once where a file is made wider."""


class Store:
    """A file of observations, one row of N places per image; wider ones make all rows wider."""

    def __init__(self, path: Path, dtype: npt.DTypeLike = np.float32) -> None:
        """dtype: float32 or float64, of the file and of what is computed from it."""
        self.path = path
        self.kind = dtype
        self.images = 0
        self.places = 0
        path.write_bytes(b"")

    def __len__(self) -> int:
        return self.images

    def append(self, observations: Observations) -> None:
        """Add the rows of B images at the end."""
        if observations.count > self.places:
            self._widen(observations.count)
        o = observations.padded(self.places)
        rows = np.concatenate(list(named_tensors(o).values()), 1).astype(self.kind, copy=False)
        with self.path.open("ab") as file:
            rows.tofile(file)
        self.images += len(rows)

    def load(self) -> Observations:
        """All of them. They hold on to the file, but may be changed without changing it."""
        if self.images == 0:
            raise ValueError(f"{self.path} holds no observations")
        rows = self._mapped(self.path, self.places, "c")
        n = self.places
        at_x, at_y = (rows[:, i : i + 2].reshape(len(rows), 2 * n) for i in (0, 2))
        return Observations(at_x, at_y, *unstack(rows[:, 4:], 1))

    def _mapped(self, path: Path, places: int, mode: Any) -> npt.NDArray[Any]:
        shape = (self.images, PLANES, places)
        return np.memmap(path, self.kind, mode, shape=shape)

    def _widen(self, places: int) -> None:
        if self.images:
            narrow = self._mapped(self.path, self.places, "r")
            wider = self.path.with_suffix(".wider")
            wide = self._mapped(wider, places, "w+")
            for start in range(0, self.images, ROWS_AT_ONCE):
                part = slice(start, start + ROWS_AT_ONCE)
                wide[part, :, : self.places] = narrow[part]
            wide.flush()  # type: ignore[attr-defined]
            wider.replace(self.path)
        self.places = places


MANY = 1000
"""Pictures of one camera beyond which their fields are pooled more."""
CELLS, FEWER_CELLS = 48, 24
"""Cells along the shorter side of a field, for few pictures and for many."""
MOST_TO_CHOOSE = 32
"""Pictures of one camera from which its kind of lens is chosen."""
MOST_WITH_LINES = 64
"""Pictures of one camera up to which straight lines sharpen the answer: they are searched for
together, at a cost that many would notice and an accuracy that many do not need."""


class PredictedImage(Protocol):
    """A picture after the network."""

    @property
    def file(self) -> File: ...
    @property
    def view(self) -> Window: ...
    @property
    def fields(self) -> Fields: ...
    @property
    def down(self) -> Array | None: ...
    @property
    def notes(self) -> tuple[str, ...]: ...
    @property
    def lines(self) -> Segments | None: ...


@dataclass(frozen=True)
class FitMethod:
    """How the pictures of a set are fitted."""

    model: CameraModel
    """The camera model, as ``FieldErrors.fitted`` has it."""
    errors: FieldErrors
    """The scales of the network's errors."""
    warnings: tuple[str, ...]
    """Warnings for every answer."""
    keep_fields: bool
    """Whether the answers hold what the network saw. It is then held in memory."""
    unnamed: bool = False
    """Whether the pictures of each camera tell its kind of lens themselves."""
    by_exif: bool = False
    """Whether EXIF data say which pictures are of one camera, or else their size alone."""


@dataclass(frozen=True)
class GroupMember:
    """What stays in memory of a picture."""

    index: int
    """Among all pictures of the set."""
    file: File
    down: Array | None
    """(3,) where to look for gravity first, where any side may be up."""
    notes: tuple[str, ...]
    segments: Segments | None
    fields: Fields | None
    confidence: float
    """The network's confidence, summed over the picture."""


class CameraGroup:
    """The pictures of one camera, which are fitted together."""

    def __init__(self, file: Path, expected: int, method: FitMethod) -> None:
        """expected: how many pictures will be added."""
        self.method = method
        self._cells = CELLS if expected <= MANY else FEWER_CELLS
        # Wide models need double precision, as their parameters can nearly replace each other.
        self._store = Store(file, np.float64 if method.unnamed or method.model.wide else np.float32)
        self.members: list[GroupMember] = []
        self._planes: list[Plane] = []

    def add(self, index: int, image: PredictedImage, centre: Array) -> ImageRecord | Failure:
        """Add a picture with its principal point (1, 2); why not, if its fields are unusable."""
        file = image.file
        (fields,), (fault,) = clean_fields([image.fields.map(to_numpy)])
        if fault is not None:
            return Failure(file.path, *file.size, f"{file.name}: {fault}")
        mapping = PixelMapping.create([image.view], [image.fields.size])
        plane = Plane.create(mapping, [file.size], centre)
        seen = plane.place(observe(fields.map(double), self._cells))
        record = ImageRecord(file, plane, seen, image.down, image.notes, image.lines)
        self.bind(index, record, fields if self.method.keep_fields else None)
        return record

    def bind(self, index: int, record: ImageRecord, fields: Fields | None = None) -> None:
        """Add a picture that was seen before."""
        self._store.append(record.observations)
        self._planes.append(record.plane)
        seen = record.observations
        confidence = float(seen.up_weight.sum() + seen.latitude_weight.sum())
        self.members.append(
            GroupMember(
                index, record.file, record.down, record.notes, record.segments, fields, confidence
            )
        )

    def choose(self, known: Given, named: CameraModel | None = None) -> list[Choice]:
        """The kind of lens, the same for each picture and in its pixels. Of many pictures some
        decide for all: the one with the median focal length represents them.

        named: the model of a lens with known slight distortion, as (B, D) in ``known``.
        """
        step = -(-len(self.members) // MOST_TO_CHOOSE)
        evidence = self._evidence(known, self.method.model, None)[::step]

        def fit_to(
            rows: Sequence[int], model: CameraModel, usual: Sequence[tuple[float, float]] | None
        ) -> list[Fitted]:
            distortion = None
            if usual is not None:
                distortion = evidence.known.distortion if named else prior_of(usual)
            observed = replace(
                evidence,
                model=self.method.errors.model_to_fit(model),
                known=replace(evidence.known, distortion=distortion),
            )
            result = fit_together(observed, rows)
            return [(result, row) for row in rows]

        one = [0] * len(evidence)
        odds = {0: odds_of_lenses((member.file.metadata, None) for member in self.members)}
        found = compare(fit_to, one, odds, {0: named} if named else None)
        choices = sorted(chosen(found, one, odds), key=Choice.focal)
        typical = choices[len(choices) // 2]
        return [typical.moved(plane.originals, gravity=False) for plane in self._planes]

    def outcomes(
        self,
        known: Given,
        silent_ones: Collection[int] = (),
        lines: bool = True,
        lens: Choice | None = None,
    ) -> list[Outcome]:
        """The outcome of each picture, given what is known of them in their pixels.

        silent_ones: indices of those that are silent among the pictures of all cameras. lines:
        whether straight lines are used as well, where they were looked for. lens: what the
        pictures chose.
        """
        plane = Plane.concatenate(self._planes)
        model = self.method.model
        if lens is not None:
            model = self.method.errors.model_to_fit(lens.model)
        evidence = self._evidence(known, model, lens)
        misshapen, usual = _misshapen([member.file.size for member in self.members])
        evidence.leave_out(misshapen)
        singles = fit_each(evidence)
        opinion, covariance = _scaled(singles, self.method.errors.sigma_scale, misshapen)
        if lines:
            opinion, covariance = self._with_lines(singles, opinion, covariance, known, plane)
        alarm = GUESSED_ALARM if self.guessed else FALSE_ALARM
        verdict = judge(opinion, covariance, alarm)
        mute = self._mute(silent_ones) & ~misshapen
        odd = verdict.outlier | misshapen | mute
        evidence.leave_out(odd)
        result = self._joint(evidence, singles, verdict)
        camera = plane.originals(result.camera)
        others = len(self.members) - int(odd.sum())
        answers: list[Outcome] = []
        for row, member in enumerate(self.members):
            file = member.file
            if misshapen[row]:
                why = f"is {_by(file.size)} pixels, but its camera takes pictures of {_by(usual)}"
                answers.append(_outlier(file, why))
            elif mute[row]:
                those = f"the {others} others" if others else "other photos"
                answers.append(_outlier(file, f"shows no camera, as {those} do"))
            elif odd[row]:
                answers.append(_outlier(file, _disagreement(row, singles, verdict, plane, others)))
            elif result.status[row].failed:
                error = f"{file.name}: {result.status[row]}"
                answers.append(Failure(file.path, *file.size, error))
            else:
                own = known.restored(camera[row], row)
                answers.append(
                    Calibration.from_fit(result, row, own, file.path, fields=member.fields)
                )
        return self._sharpened(answers, known) if lines else answers

    @property
    def guessed(self) -> bool:
        """Whether nothing but their size says that the pictures are of one camera."""
        named = any(names_camera(member.file.metadata.tags) for member in self.members)
        return self.method.by_exif and len(self.members) > 1 and not named

    def _with_lines(
        self, singles: SingleFits, opinion: Array, covariance: Array, known: Given, plane: Plane
    ) -> tuple[Array, Array]:
        """What the pictures say of log f by themselves, (B, 1) and (B, 1, 1), once straight lines
        are used as well: of few pictures, whose focal length is all that is unknown."""
        if singles.parameters != (LOG_F,) or not FEWEST <= len(self.members) <= FEW:
            return opinion, covariance
        fits = self.method.errors.corrected(singles.fits)
        cameras = plane.originals(fits.camera)
        alone: list[Outcome] = [
            Calibration.from_fit(fits, row, known.restored(cameras[row], row), member.file.path)
            for row, member in enumerate(self.members)
            if np.isfinite(opinion[row]).all()
        ]
        rows = np.flatnonzero(np.isfinite(opinion).all(1)).tolist()
        segments = [self.members[row].segments for row in rows]
        opinion, covariance = opinion.copy(), covariance.copy()
        measured = known.gravity_information
        refined = refine_outcomes(
            alone,
            segments,
            rows,
            gravity_information=None if measured is None else measured[rows],
        )
        for row, answer in zip(rows, refined, strict=True):
            if isinstance(answer, Calibration) and answer.lines and answer.lines.verdict.used:
                at = answer.parameters.index(LOG_F)
                opinion[row] = math.log(answer.fy / plane.unit[row].item())
                covariance[row] = answer.covariance[at, at]
        return opinion, covariance

    def _evidence(self, known: Given, model: CameraModel, lens: Choice | None) -> Evidence:
        """What is seen and known of all pictures."""
        plane, errors = Plane.concatenate(self._planes), self.method.errors
        if lens is not None and known.distortion is None:
            known = replace(known, distortion=usual_distortion([lens] * len(self.members)))
        return Evidence(
            self._store.load(),
            plane.shape,
            plane.known(errors.before_correction(known)),
            model,
            FitOptions(cells=self._cells, confidence_scale=errors.confidence_scale),
        )

    def _mute(self, silent_ones: Collection[int]) -> Array:
        """(B,) who is silent beside the others of this camera, or of all where these are few."""
        if len(self.members) < FEWEST:
            return np.array([member.index in silent_ones for member in self.members])
        return silent(np.array([member.confidence for member in self.members]))

    def _joint(self, evidence: Evidence, singles: SingleFits, verdict: OutlierVerdict) -> FitResult:
        result = fit_from(evidence, singles.gravity, verdict.consensus)
        result = self.method.errors.corrected(result)
        # Pictures that disagree more than their sigmas allow are less sure of what they share.
        wider = max(1.0, verdict.spread)
        return result.with_sigmas_scaled(focal=wider, distortion=wider)

    def _sharpened(self, answers: list[Outcome], known: Given) -> list[Outcome]:
        """With what straight lines say, where segments were wanted and the pictures are few
        and not resized."""
        calibrated = [
            member.file.size
            for member, answer in zip(self.members, answers, strict=True)
            if isinstance(answer, Calibration) and member.segments is not None
        ]
        one_size = len({max(size, size[::-1]) for size in calibrated}) == 1
        if not one_size or len(calibrated) > MOST_WITH_LINES:
            return answers
        segments = [member.segments for member in self.members]
        return refine_outcomes(
            answers,
            segments,
            [0] * len(answers),
            log_f_information=known.focal_information,
            gravity_information=known.gravity_information,
        )


def _misshapen(sizes: Sequence[tuple[int, int]]) -> tuple[Array, tuple[int, int]]:
    """Whether each picture (B,) has another shape than most, and the most frequent size."""
    counts = Counter(max(size, size[::-1]) for size in sizes)
    usual = counts.most_common(1)[0][0]
    return np.array([not alike(size, usual) for size in sizes]), usual


def _scaled(
    singles: SingleFits, scale: Mapping[str, float], unusable: Array
) -> tuple[Array, Array]:
    """SingleFits (B, P) and their covariances (B, P, P) with calibrated sigmas; NaN if unusable."""
    kinds = ["focal" if name == LOG_F else "distortion" for name in singles.parameters]
    factor = np.array([scale.get(kind, 1.0) for kind in kinds])
    opinion = np.where(unusable[:, None], np.nan, singles.intrinsics)
    return opinion, factor[:, None] * singles.covariance * factor


def _outlier(file: File, why: str) -> Failure:
    return Failure(file.path, *file.size, f"{file.name} {why}", OUTLIER)


def _disagreement(
    row: int, singles: SingleFits, verdict: OutlierVerdict, plane: Plane, others: int
) -> str:
    """Why a picture is an outlier, in words."""
    off = f"{verdict.distance[row].item():.1f} sigmas off"
    own, usual = singles.intrinsics[row].tolist(), verdict.consensus.tolist()
    if singles.parameters[0] != LOG_F:
        return f"looks as if the lens bent it otherwise than the {others} others ({off})"
    pixels = [plane.unit[row].item() * math.exp(log_f[0]) for log_f in (own, usual)]
    return (
        f"looks as if taken at a focal length of {pixels[0]:.0f} pixels, and the {others} others "
        f"of its camera at {pixels[1]:.0f} ({off})"
    )


def _by(size: tuple[int, int]) -> str:
    return "x".join(map(str, size))
