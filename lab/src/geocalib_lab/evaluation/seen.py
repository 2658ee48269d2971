"""What a network saw in a photograph, for other ways than our fit to make an answer of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geocalib.arrays import Array, double
from geocalib.cameras import Camera
from geocalib.cameras.camera import Window
from geocalib.geometry.fields import Fields
from geocalib.imaging import InputSpec, prepare, read_photo
from geocalib.nets.weights.card import WeightCard
from geocalib.result.calibration import Calibration, Failure, Outcome
from geocalib.solver.known import Mapping, centres
from geocalib_lab.evaluation.answers import without_sigmas


@dataclass(frozen=True)
class Seen:
    """The fields of one photograph, and how their pixels are those of the photograph."""

    fields: Fields
    """A batch of 1 in float64."""
    centre: Array
    """(1, 2) the middle of the photograph, in pixels of the fields."""
    aspect: Array
    """(1,) fx / fy there."""
    _answer: Calibration
    _view: Window

    @classmethod
    def by(cls, answer: Calibration, card: WeightCard) -> Seen:
        """What a calibration with its fields (``keep_fields``) rests on."""
        assert answer.fields is not None
        assert answer.image is not None
        fields = answer.fields.map(double)
        spec = InputSpec(card.short_side, largest_aspect=card.largest_aspect)
        view = prepare(read_photo(answer.image, card.short_side), spec).view
        mapping = Mapping.create([view], [fields.size])
        centre = (centres([(answer.width, answer.height)]) - mapping.corner) * mapping.scale
        return cls(fields, centre, mapping.aspect, answer, view)

    def answer(self, camera: Camera, gravity: Array) -> Outcome:
        """Of the photograph, given the camera (a batch of 1) and gravity (3,) of its fields."""
        size = (self._answer.width, self._answer.height)
        image = self._answer.image
        if not (np.isfinite(camera.f).all() and np.isfinite(gravity).all()):
            return Failure(image, *size, "there is no such camera")
        return without_sigmas(image, self._view.to_original(camera, size), gravity)
