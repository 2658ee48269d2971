"""Runs a calibrator over photographs with ground truth."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from time import process_time
from typing import Literal, Protocol, TypeVar, Unpack

import numpy as np
from PIL import Image
from PIL.ExifTags import Base

from geocalib.cameras import get_model
from geocalib.errors import ConfigError, GeoCalibError
from geocalib.geometry.conventions import FULL_FRAME_DIAGONAL
from geocalib.imaging import ImageSource, read_photo
from geocalib.nets.weights.card import WeightCard
from geocalib.pipeline.options import Keywords, LinesMode, UsualPrior
from geocalib.pipeline.runs.journal import Journal
from geocalib.priors.exif import VAGUE, focal_reading
from geocalib.result.calibration import Calibration, Outcome
from geocalib.solver.known import Prior
from geocalib_lab.evaluation.datasets import Sample, picture_size
from geocalib_lab.evaluation.report import Report

T = TypeVar("T")

CHUNK = 16
"""Photographs handed to the calibrator at once."""

Known = Literal["nothing", "gravity", "focal", "both", "exif"]
"""What of the truth a calibrator may know; exif: the focal length as EXIF data would have it."""


class Calibrates(Protocol):
    """What is evaluated: a ``Calibrator``, or anything that answers as one does."""

    @property
    def card(self) -> WeightCard: ...

    def calibrate(
        self, images: Sequence[ImageSource], camera_model: str = ..., **options: Unpack[Keywords]
    ) -> list[Outcome]: ...


@dataclass(frozen=True)
class Setting:
    """The way in which a calibrator is evaluated."""

    known: Known = "nothing"
    images_per_fit: int = 1
    """So many photographs in a row are of one camera, and fitted together."""
    blur: int | None = None
    """First shrink each photograph until its shorter side has so many pixels, and enlarge it."""
    lines: LinesMode = "off"
    """What straight lines are used for; sigmas of weights are measured without any."""
    prior: UsualPrior = "none"
    """What is assumed of photographs."""

    def __post_init__(self) -> None:
        if self.images_per_fit < 1:
            raise ConfigError(f"there is no fit of {self.images_per_fit} images; give 1 or more")
        if self.blur is not None and self.blur < 1:
            raise ConfigError(f"blur is {self.blur}; give the pixels to keep across the short side")

    def __str__(self) -> str:
        """What tells it from others, for the names of files."""
        parts = [f"known-{self.known}"] if self.known != "nothing" else []
        parts += [f"fits-of-{self.images_per_fit}"] if self.images_per_fit > 1 else []
        parts += [f"blur-{self.blur}"] if self.blur is not None else []
        parts += [f"lines-{self.lines}"] if self.lines != "off" else []
        parts += [f"prior-{self.prior}"] if self.prior != "none" else []
        return "-".join(parts) or "plain"


PLAIN = Setting()
"""One photograph at a time, of which nothing is known."""


def default_model(samples: Sequence[Sample]) -> str:
    """What to fit: simple_radial if the truth of any of the photographs has distortion."""
    return "simple_radial" if any(sample.k1 for sample in samples) else "pinhole"


def evaluate(
    calibrator: Calibrates,
    samples: Sequence[Sample],
    camera_model: str | None = None,
    setting: Setting = PLAIN,
    *,
    name: str = "photographs",
    journal: Journal | None = None,
    done: Callable[[], None] = lambda: None,
) -> Report:
    """Calibrate photographs and compare the answers with the truth.

    camera_model: by default ``default_model``. journal: keeps the answers of a run that is
    interrupted; those that it holds already are not looked for again, failures are. done:
    called after each photograph.
    """
    if not samples:
        raise ConfigError("there is nothing to evaluate; give at least one photograph")
    if len(samples) % setting.images_per_fit:
        raise ConfigError(
            f"{len(samples)} photographs are not made of fits of {setting.images_per_fit}"
        )
    camera_model = camera_model or default_model(samples)
    found = {} if journal is None else _kept(journal, samples)
    todo: list[Sample] = []
    for fit in _parts(samples, setting.images_per_fit):
        # Photographs that are fitted together are done all or none.
        if not all(str(sample.image) in found for sample in fit):
            todo.extend(fit)
    for _ in range(len(samples) - len(todo)):
        done()
    size = max(1, CHUNK // setting.images_per_fit) * setting.images_per_fit
    names = [str(sample.image) for sample in todo]
    spent = 0.0
    if journal is not None:
        journal.forget(names)
    with nullcontext() if journal is None else journal.appending(names) as keep:
        for chunk in _parts(todo, size):
            started = process_time()
            answers = _ask(calibrator, chunk, camera_model, setting)
            spent += process_time() - started
            for sample, outcome in zip(chunk, answers, strict=True):
                found[str(sample.image)] = outcome
                if keep is not None and isinstance(outcome, Calibration):
                    keep(outcome)
                done()
    outcomes = [found[str(sample.image)] for sample in samples]
    report = Report.create(name, calibrator.card, camera_model, samples, outcomes)
    return replace(report, seconds=spent / len(todo) if todo else None)


def _kept(journal: Journal, samples: Sequence[Sample]) -> dict[str, Outcome]:
    """The answers of a journal that still hold, by the path of the photograph."""
    done = journal.done([str(sample.image) for sample in samples])
    found = {str(outcome.image): outcome for outcome in journal.outcomes()}
    return {image: found[image] for image in done}


def _parts(samples: Sequence[Sample], size: int) -> Iterator[Sequence[Sample]]:
    return (samples[i : i + size] for i in range(0, len(samples), size))


def _ask(
    calibrator: Calibrates, samples: Sequence[Sample], camera_model: str, setting: Setting
) -> list[Outcome]:
    images: list[ImageSource] = [sample.image for sample in samples]
    if setting.blur is not None:
        images = [_blurred_or_broken(sample.image, setting.blur) for sample in samples]
    options = Keywords(lines=setting.lines, exif=False, sensors=False, prior=setting.prior)
    if setting.known in ("gravity", "both"):
        options["gravity"] = np.stack([_known(sample, sample.gravity) for sample in samples])
    if setting.known in ("focal", "both", "exif"):
        if get_model(camera_model).wide:
            raise ConfigError(f"the true field of view is not a focal length of {camera_model}")
        exif = setting.known == "exif"
        options["focal"] = _as_in_exif(samples) if exif else [_focal(s) for s in samples]
    if setting.images_per_fit > 1:
        options["shared_intrinsics"] = [i // setting.images_per_fit for i in range(len(samples))]
    outcomes = calibrator.calibrate(images, camera_model, **options)
    # A blurred photograph has lost its path.
    return [replace(o, image=str(s.image)) for s, o in zip(samples, outcomes, strict=True)]


def _known(sample: Sample, value: T | None) -> T:
    if value is None:
        raise ConfigError(f"the truth of {sample.image} is not known, so it cannot be given")
    return value


def _focal(sample: Sample) -> float:
    """Pixels of the picture, which may have another size than its table says."""
    height = (picture_size(sample.image) or (0, sample.height))[1]
    vfov_deg = _known(sample, sample.vfov_deg)
    return 0.5 * height / math.tan(0.5 * math.radians(vfov_deg))


def _as_in_exif(samples: Sequence[Sample]) -> Prior:
    """The true focal lengths as 35 mm equivalents in whole millimetres, believed as EXIF is."""
    read = []
    for sample in samples:
        size = picture_size(sample.image) or (sample.width, sample.height)
        equivalent = round(_focal(sample) * FULL_FRAME_DIAGONAL / math.hypot(*size))
        reading, _ = focal_reading({Base.FocalLengthIn35mmFilm: equivalent}, size)
        focal = max(size) if reading is None else reading.focal_px
        read.append((focal, VAGUE * focal if reading is None else reading.sigma_px))
    return Prior(*np.array(read, np.float64).T)


def blurred(source: ImageSource, short_side: int) -> Image.Image:
    """A photograph with the detail of one that has so many pixels across its shorter side.

    One that has no more is as it was. The size does not change.
    """
    picture = Image.fromarray(read_photo(source, short_side=None).pixels)
    scale = short_side / min(picture.size)
    if scale >= 1:
        return picture
    small = tuple(max(1, round(scale * side)) for side in picture.size)
    shrunk = picture.resize((small[0], small[1]), Image.Resampling.LANCZOS)
    return shrunk.resize(picture.size, Image.Resampling.BICUBIC)


def _blurred_or_broken(source: ImageSource, short_side: int) -> ImageSource:
    """What cannot be read stays as it is: the calibrator says why."""
    try:
        return blurred(source, short_side)
    except GeoCalibError:
        return source
