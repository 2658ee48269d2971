"""``Calibrator``: photographs in, calibrations out.

Image -> network -> fields -> fit -> calibration. Everything before and after is a thin skin on it.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Literal, TypedDict, Unpack, overload

import torch
from torch import Tensor
from torch.nn.utils import convert_conv2d_weight_memory_format

from geocalib.calibration import Calibration, Failure, Outcome
from geocalib.cameras import get_model
from geocalib.cameras.base import CameraModel
from geocalib.cameras.legacy import LegacySimpleRadial, without_legacy
from geocalib.cameras.simple_radial import SimpleRadial
from geocalib.errors import ConfigError, CouplingError, ImageError
from geocalib.fields import Fields
from geocalib.imaging import (
    FocalHint,
    ImageSource,
    InputSpec,
    NetworkInput,
    Photo,
    View,
    is_blank,
    prepare,
    read_photo,
)
from geocalib.known import Given, Mapping, centres, focal_prior
from geocalib.nets.weights import WeightCard, load_network
from geocalib.solver import FitOptions, FitResult, Rig, fit
from geocalib.solver.coupling import couple
from geocalib.solver.priors import Known
from geocalib.trust import BLANK, UNTRAINED, doubts

Precision = Literal["float32", "bfloat16"]

BATCH = {"cpu": 4}
"""Images through the network at once, by device: a processor gains nothing from more."""
LARGEST_BATCH = 32
"""Images at once on other devices, and in a fit of images that share nothing."""


class Options(TypedDict, total=False):
    """The keywords of ``Calibrator.calibrate``."""

    focal: Known
    gravity: Known
    distortion: Known
    principal_point: Known
    shared_intrinsics: bool | Sequence[int]
    rig: Rig | None
    exif: bool
    keep_fields: bool


@dataclass(frozen=True)
class _Task:
    """Images to fit together, and what is known of them."""

    sources: Sequence[ImageSource]
    model: CameraModel
    given: Given
    camera: Tensor
    """(B,) integers, equal for images of one camera."""
    rig: Rig | None

    def __getitem__(self, index: Sequence[int]) -> _Task:
        """A part of it."""
        rows = list(index)
        rig = self.rig
        if rig is not None:
            camera, time = torch.as_tensor(rig.camera), torch.as_tensor(rig.time)
            rig = replace(rig, camera=camera[rows], time=time[rows])
        sources = [self.sources[i] for i in rows]
        return _Task(sources, self.model, self.given[rows], self.camera[rows], rig)


@dataclass(frozen=True)
class _Seen:
    """One image after the network. Its pixels are gone: there may be many of these."""

    path: str | None
    name: str
    """What messages call it."""
    size: tuple[int, int]
    """(width, height) of the original."""
    view: View
    """What of the original the fields show."""
    fields: Fields
    hint: FocalHint | None
    notes: tuple[str, ...]


class Calibrator:
    """Calibrates photographs with one set of weights.

    It has no state that a call changes: threads may share one, and several live side by side.
    """

    def __init__(
        self,
        weights: str | Path = "lean",
        *,
        device: str = "auto",
        precision: Precision = "float32",
        compile: bool = False,
    ) -> None:
        """weights: a name ("lean", "published-pinhole", "published-distorted") or a file.

        device: "auto" takes the first of cuda, mps and cpu that there is. precision: of the
        network; the fit is always as precise as it needs to be. compile: with torch.compile,
        which takes minutes at first and pays for many images of one size.
        """
        if precision not in ("float32", "bfloat16"):
            raise ConfigError(f"precision is {precision!r}; known: float32, bfloat16")
        self.device = _device(device)
        loaded = load_network(weights)
        self.card: WeightCard = loaded.card
        network = loaded.network.to(self.device)
        convert_conv2d_weight_memory_format(network, torch.channels_last)
        self._spec = InputSpec(
            self.card.short_side, network.multiple, self.card.largest_aspect, self.card.detail
        )
        self._network = torch.compile(network) if compile else network
        self._precision = precision

    # A path, too, is a sequence of paths to a type checker; the first of the two is meant.
    @overload
    def calibrate(  # type: ignore[overload-overlap]
        self, images: ImageSource, camera_model: str = ..., **options: Unpack[Options]
    ) -> Calibration: ...

    @overload
    def calibrate(
        self, images: Sequence[ImageSource], camera_model: str = ..., **options: Unpack[Options]
    ) -> list[Outcome]: ...

    def calibrate(
        self,
        images: ImageSource | Sequence[ImageSource],
        camera_model: str = "pinhole",
        *,
        focal: Known = None,
        gravity: Known = None,
        distortion: Known = None,
        principal_point: Known = None,
        shared_intrinsics: bool | Sequence[int] = False,
        rig: Rig | None = None,
        exif: bool = False,
        keep_fields: bool = False,
    ) -> Calibration | list[Outcome]:
        """The camera and gravity of a photograph, or of each of a list of any sizes.

        An image is a path, the bytes of a file, a PIL image, an array (H, W[, 3]) or a tensor
        (3, H, W); everything is in pixels of the original. One image that cannot be read or
        fitted raises an ``ImageError``; in a list it becomes a ``Failure`` and the others get
        their answers. What is wrong with the call itself raises another ``GeoCalibError``.

        focal (fy), gravity (pointing down, in the camera frame), distortion, principal_point:
        None leaves it free (the principal point: at the centre), a value fixes it,
        ``Prior(value, sigma)`` pulls it; one for all, or one per image. exif: takes the focal
        length that a file tells of as a soft prior where none is given.
        shared_intrinsics: True if one camera took all images, or an integer per image, equal
        where the camera is; its images must have one size. rig: known rotations between the
        cameras of the images. keep_fields: the calibrations hold what the network saw.
        """
        # A path and the bytes of a file, too, are sequences.
        if isinstance(images, Sequence) and not isinstance(images, str | bytes):
            sources, alone = images, False
        else:
            sources, alone = [images], True
        model, count = get_model(camera_model), len(sources)
        if count == 0:
            return []
        # What is wrong with the call is said before the network has seen the images.
        coupling = couple(count, _groups(shared_intrinsics, count), rig, torch.device("cpu"))
        given = Given.create(model, coupling, focal, gravity, distortion, principal_point)
        task = _Task(sources, model, given, coupling.camera, rig)
        together = LARGEST_BATCH if coupling.separate else count
        outcomes: list[Outcome] = []
        for start in range(0, count, together):
            part = task[range(start, min(start + together, count))]
            outcomes.extend(self._solve(part, exif, keep_fields))
        if not alone:
            return outcomes
        if isinstance(outcomes[0], Failure):
            raise ImageError(outcomes[0].error)
        return outcomes[0]

    def _solve(self, task: _Task, exif: bool, keep_fields: bool) -> list[Outcome]:
        """The outcome of each image of a task."""
        outcomes: dict[int, Outcome] = {}
        seen: dict[int, _Seen] = {}
        for index, sight in enumerate(self._see(task.sources)):
            if isinstance(sight, _Seen):
                seen[index] = sight
            else:
                outcomes[index] = sight
        # Fields of one size are fitted as one batch.
        order = sorted(seen, key=lambda index: seen[index].fields.size)
        if order:
            answers = self._fit(task[order], [seen[index] for index in order], exif, keep_fields)
            outcomes.update(zip(order, answers, strict=True))
        return [outcomes[index] for index in range(len(task.sources))]

    def _see(self, sources: Sequence[ImageSource]) -> Iterator[_Seen | Failure]:
        """Each image through the network, or why not; a few at a time."""
        count = BATCH.get(self.device.type, LARGEST_BATCH)
        for start in range(0, len(sources), count):
            yield from self._see_few(sources[start : start + count])

    def _see_few(self, sources: Sequence[ImageSource]) -> list[_Seen | Failure]:
        sights: dict[int, _Seen | Failure] = {}
        inputs: dict[int, tuple[Photo, NetworkInput]] = {}
        same_size: dict[tuple[int, int], list[int]] = defaultdict(list)
        for index, source in enumerate(sources):
            try:
                photo = read_photo(source, self._spec.short_side)
            except ImageError as error:
                sights[index] = Failure(_path(source), None, None, str(error))
                continue
            given = prepare(photo, self._spec)
            inputs[index] = photo, given
            same_size[given.size].append(index)
        for indices in same_size.values():
            fields = self._predict(torch.stack([inputs[index][1].image for index in indices]))
            for row, index in enumerate(indices):
                photo, given = inputs[index]
                blank = (BLANK,) if is_blank(photo.pixels) else ()
                sights[index] = _Seen(
                    _path(sources[index]),
                    photo.name,
                    photo.size,
                    given.view,
                    fields[row : row + 1],
                    photo.focal_hint,
                    (*photo.notes, *given.notes, *blank),
                )
        return [sights[index] for index in range(len(sources))]

    def _predict(self, images: Tensor) -> Fields:
        """The fields of (B, 3, H, W) images, where the fit runs."""
        half = self._precision == "bfloat16"
        with (
            torch.inference_mode(),
            torch.autocast(self.device.type, torch.bfloat16, enabled=half),
        ):
            images = images.to(self.device, memory_format=torch.channels_last)
            prediction = self._network(images)
        # The fit needs double precision, which mps does not have.
        place = "cpu" if self.device.type == "mps" else self.device
        return Fields(*(value.float().to(place).clone() for value in prediction))

    def _fit(
        self, task: _Task, sights: Sequence[_Seen], exif: bool, keep_fields: bool
    ) -> Iterator[Outcome]:
        """The outcomes of images that the network has seen, sorted by the size of their fields."""
        sizes = [sight.size for sight in sights]
        cameras: list[int] = task.camera.tolist()
        _check_sizes(sights, cameras)
        given = task.given
        if given.focal is None and exif:
            hints = [sight.hint for sight in sights]
            given = replace(given, focal=focal_prior(hints, sizes, cameras))
        if given.principal_point is None:
            given = replace(given, principal_point=centres(sizes))
        mapping = Mapping.create([s.view for s in sights], [s.fields.size for s in sights])
        result = self._fit_fields([s.fields for s in sights], task, mapping, given)
        for row, sight in enumerate(sights):
            if result.status[row].failed:
                error = f"{sight.name}: {result.status[row]}"
                yield Failure(sight.path, *sight.size, error)
                continue
            camera = sight.view.to_original(result.camera[row], sight.size)
            camera = given.restored(camera, row)
            kept = sight.fields.to("cpu") if keep_fields else None
            answer = Calibration.from_fit(result, row, camera, sight.path, fields=kept)
            untrained = () if self.card.trained else (UNTRAINED,)
            yield replace(answer, warnings=(*untrained, *sight.notes, *doubts(answer)))

    def _fit_fields(
        self, fields: Sequence[Fields], task: _Task, mapping: Mapping, given: Given
    ) -> FitResult:
        model = task.model
        if self.card.legacy_up_field and isinstance(model, SimpleRadial):
            model = LegacySimpleRadial()
        known = mapping.to_fields(given)
        # In double precision the fit takes fewer steps and no longer.
        batches = [
            Fields.concatenate(list(batch)).to(torch.float64)
            for _, batch in groupby(fields, lambda part: part.size)
        ]
        result = fit(
            batches,
            model,
            known.focal,
            known.gravity,
            known.distortion,
            known.principal_point,
            task.camera,
            task.rig,
            aspect=mapping.aspect,
            options=FitOptions(confidence_scale=self.card.confidence_scale),
        )
        if isinstance(model, LegacySimpleRadial):
            result = replace(result, camera=without_legacy(result.camera))
        return result.with_sigmas_scaled(**self.card.sigma_scale)


def _path(source: ImageSource) -> str | None:
    return os.fspath(source) if isinstance(source, str | os.PathLike) else None


def _groups(shared: bool | Sequence[int], count: int) -> Sequence[int] | None:
    """Which of the images share a camera, as ``fit`` wants it."""
    if isinstance(shared, bool):
        return [0] * count if shared else None
    if len(shared) != count:
        raise CouplingError(
            f"shared_intrinsics holds {len(shared)} integers for {count} images; give one each"
        )
    return shared


def _check_sizes(sights: Sequence[_Seen], cameras: Sequence[int]) -> None:
    """One camera takes pictures of one size."""
    first: dict[int, _Seen] = {}
    for sight, camera in zip(sights, cameras, strict=True):
        other = first.setdefault(camera, sight)
        if sight.size != other.size:
            sizes = ["x".join(map(str, seen.size)) for seen in (sight, other)]
            raise CouplingError(
                f"{sight.name} is {sizes[0]} pixels, but {other.name}, of the same camera, "
                f"{sizes[1]}; resize them alike, or give them cameras of their own"
            )


def _device(name: str) -> torch.device:
    """The device of a name; "auto" is the fastest kind there is."""
    counts = {
        "cuda": torch.cuda.device_count() if torch.cuda.is_available() else 0,
        "mps": int(torch.backends.mps.is_available()),
        "cpu": 1,
    }
    there = [kind for kind, count in counts.items() if count]
    if name == "auto":
        return torch.device(there[0])
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or (device.index or 0) >= counts.get(device.type, 0):
        raise ConfigError(
            f"there is no device {name!r} here; use auto or one of: {', '.join(there)}"
        )
    return device
