"""The second stage: prepared images through a network, a batch in, fields out."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from geocalib.arrays import Array
from geocalib.cameras.camera import Window
from geocalib.geometry.fields import Fields
from geocalib.geometry.segments import Segments
from geocalib.imaging import ImageSource, InputSpec
from geocalib.imaging.content import Circle
from geocalib.lines.detect import detect
from geocalib.pipeline.options import RotationMode
from geocalib.pipeline.orientation import (
    OrientedFields,
    Pictures,
    predict_all_turns,
    predict_upright,
)
from geocalib.pipeline.parallel.threads import threads
from geocalib.pipeline.prepare import Prepared, prepare, prepared, read
from geocalib.priors.enabled import File
from geocalib.priors.photos import FocalEstimate
from geocalib.records import dataclass
from geocalib.result.calibration import Failure
from geocalib.result.trust import BLANK, SHARP_SIDE

TINY_POWER = 2.5
"""Power of the shorter side in the weight of fields of tiny pictures: gravity is off by 2.1, 2.8
and 3.5 of its sigmas at 64, 48 and 32 pixels, the focal length by 1.3, 1.7 and 1.9 of its own (77
photographs with ground truth, shrunk)."""


class Engine(Protocol):
    """A network, wherever it runs."""

    @property
    def spec(self) -> InputSpec:
        """What it wants to see."""

    @property
    def batch(self) -> int:
        """Images that it takes at once, at most."""

    @property
    def on_processor(self) -> bool:
        """Whether processors run it: then any batch gives the same bits, and processes share no
        device."""

    @property
    def confidence_scale(self) -> float | None:
        """The scale of confidences, as ``FitOptions`` takes it."""

    @property
    def has_orientation(self) -> bool:
        """Whether it can tell how pictures stand."""

    @property
    def has_focal_head(self) -> bool:
        """Whether a second network tells the focal length."""

    def predict(self, images: Pictures) -> Fields:
        """The fields of (B, 3, H, W) images, where the fit runs: in NumPy, or in torch on another
        device."""

    def predict_oriented(self, images: Pictures) -> tuple[Fields, npt.NDArray[np.float32]]:
        """As ``predict`` and ``orientation``, for the price of the first. If it knows upright."""

    def orientation(self, images: Pictures) -> npt.NDArray[np.float32]:
        """(B, 4) log-probabilities that (B, 3, H, W) images stand turned by 0 to 3 quarters
        counter-clockwise; cheaper than fields. If it knows upright."""

    def focal_estimate(self, images: Pictures) -> npt.NDArray[np.float64]:
        """(B, 2) the logarithm of the focal length by the diagonal, and its sigma."""


@dataclass(frozen=True)
class NetworkOutput:
    """One image after the network. Its pixels are gone: there may be many of these."""

    file: File
    view: Window
    """What of the original the fields show."""
    fields: Fields
    down: Array | None
    """(3,) where to look for gravity first, where another side may be up."""
    notes: tuple[str, ...]
    segments: Segments | Future[Segments] | None
    """Straight ones at full resolution, where they were wanted; they may still be segments."""
    focal_estimate: FocalEstimate | None = None
    """By the second network, in pixels of the original."""
    circle: Circle | None = None
    """The circle with black around it that the picture fills, as fisheyes make them."""

    @property
    def lines(self) -> Segments | None:
        """The segments, which are waited for."""
        return self.segments.result() if isinstance(self.segments, Future) else self.segments


def run_network(
    engine: Engine,
    sources: Sequence[ImageSource],
    with_lines: bool,
    rotation: RotationMode,
    with_focal_estimates: bool = False,
) -> Iterator[NetworkOutput | Failure]:
    """Each image through the network, or why not; a few at a time."""
    for start in range(0, len(sources), engine.batch):
        few = sources[start : start + engine.batch]
        if with_lines and threads() > 1:
            yield from _with_lines_meanwhile(engine, few, rotation, with_focal_estimates)
            continue
        yield from predict(
            engine,
            [prepare(source, engine.spec, with_lines) for source in few],
            rotation,
            with_focal_estimates,
        )


def _with_lines_meanwhile(
    engine: Engine,
    sources: Sequence[ImageSource],
    rotation: RotationMode,
    with_focal_estimates: bool,
) -> list[NetworkOutput | Failure]:
    """A few images through the network, while another thread looks for their lines: most of both
    leaves Python alone, and neither keeps all cores busy all the time. It may go on meanwhile with
    what comes after the network."""
    images = list[Prepared | Failure]()
    lines = list[Future[Segments]]()
    pool = ThreadPoolExecutor(1)
    try:
        for source in sources:
            photo = read(source, engine.spec, with_lines=True)
            if isinstance(photo, Failure):
                images.append(photo)
                continue
            lines.append(pool.submit(detect, photo, threads()))
            images.append(prepared(source, photo, engine.spec))
    finally:
        pool.shutdown(wait=False)
    outputs = predict(engine, images, rotation, with_focal_estimates)
    segments = iter(lines)
    return [
        replace(output, segments=next(segments)) if isinstance(output, NetworkOutput) else output
        for output in outputs
    ]


def predict(
    engine: Engine,
    images: Sequence[Prepared | Failure],
    rotation: RotationMode,
    with_focal_estimates: bool = False,
) -> list[NetworkOutput | Failure]:
    """What the network sees in a few images; those that failed are handed on.

    with_focal_estimates: ask the second network as well, if the engine has one.
    """
    outcomes: dict[int, NetworkOutput | Failure] = {}
    same_size: dict[tuple[int, int], dict[int, Prepared]] = defaultdict(dict)
    for index, image in enumerate(images):
        if isinstance(image, Failure):
            outcomes[index] = image
        else:
            same_size[image.size][index] = image
    for batch in same_size.values():
        found = _oriented_fields(engine, list(batch.values()), rotation)
        focal_estimates: list[FocalEstimate | None] = [None] * len(batch)
        if with_focal_estimates and engine.has_focal_head:
            focal_estimates = _focal_estimates(engine, list(batch.values()), found.turns)
        for row, (index, image) in enumerate(batch.items()):
            outcomes[index] = NetworkOutput(
                image.file,
                image.view,
                _as_sure(found.fields[row : row + 1], image.file.size),
                found.down[row],
                (*image.notes, *((BLANK,) if image.blank else found.notes[row])),
                image.segments,
                focal_estimates[row],
                image.circle,
            )
    return [outcomes[index] for index in range(len(images))]


def _as_sure(fields: Fields, size: tuple[int, int]) -> Fields:
    """Fields with the weight that they have in a picture of this size: those of tiny ones are
    enlarged to the network's size, which does not make them any sharper."""
    share = min(size) / SHARP_SIDE
    return fields.weighted(share**TINY_POWER) if share < 1 else fields


def _oriented_fields(
    engine: Engine, inputs: Sequence[Prepared], rotation: RotationMode
) -> OrientedFields:
    """What is seen in inputs of one size."""
    images = np.stack([given.image for given in inputs])
    if rotation != "off" and engine.has_orientation:
        return predict_upright(
            images, engine.predict_oriented, engine.orientation, rotation == "auto"
        )
    if rotation == "on":
        aspect = [given.aspect for given in inputs]
        return predict_all_turns(images, aspect, engine.predict, engine.confidence_scale)
    count = len(inputs)
    return OrientedFields(engine.predict(images), [0] * count, [None] * count, [()] * count)


def _focal_estimates(
    engine: Engine, inputs: Sequence[Prepared], turns: Sequence[int]
) -> list[FocalEstimate | None]:
    """On the focal length of inputs of one size, each seen as it stands."""
    found: list[FocalEstimate | None] = [None] * len(inputs)
    for turn in set(turns):
        rows = [row for row, stands in enumerate(turns) if stands == turn]
        images = np.stack([inputs[row].image for row in rows])
        estimates = engine.focal_estimate(np.rot90(images, -turn, (-2, -1)))
        for row, (log_f, sigma) in zip(rows, estimates.tolist(), strict=True):
            view = inputs[row].view
            found[row] = FocalEstimate(log_f + math.log(math.hypot(view.width, view.height)), sigma)
    return found
