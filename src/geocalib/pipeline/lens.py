"""The kind of lens of a picture without a named camera model.

The families of ``geocalib.solver.families`` are compared on the fields of the pictures, before
anything else is fitted; pictures of one camera or rig decide together. The answer is that of the
most probable family, fitted as if it had been named but with what is usual of its distortion
(``geocalib.priors.lens``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from geocalib.arrays import double, to_numpy
from geocalib.cameras.base import CameraModel
from geocalib.geometry.fields import Fields
from geocalib.pipeline.job import Job
from geocalib.pipeline.predict import NetworkOutput
from geocalib.priors.enabled import with_readings, with_starts
from geocalib.priors.lens import Choice, chosen, odds_of_lenses, prior_of
from geocalib.priors.lens_reading import common_model
from geocalib.solver.coupling import couple
from geocalib.solver.families import CELLS, ERROR, Fitted, compare
from geocalib.solver.fit import FitOptions, fit
from geocalib.solver.known import Given, Mapping
from geocalib.solver.result import FitResult
from geocalib.solver.sigma_calibration import FieldErrors


def choose(job: Job, outputs: Sequence[NetworkOutput], given: Given) -> list[Choice]:
    """The kind of lens of each picture. given: in pixels of the originals, with principal
    points."""
    files = [output.file for output in outputs]
    coupling = couple(len(outputs), job.camera, job.rig)
    lenses = coupling.camera_component[coupling.camera].tolist()
    pairs = list(zip(lenses, job.readings(given, files, None), strict=True))
    # The database of lenses knows those of all their pictures.
    named = {
        lens: model
        for lens in dict.fromkeys(lenses)
        if (model := common_model([reading.lens for own, reading in pairs if own == lens]))
    }
    of_model = {model: job.readings(given, files, model) for model in set(named.values())}
    readings = [
        of_model[named[lens]][row] if lens in named else replace(reading, lens=None)
        for row, (lens, reading) in enumerate(pairs)
    ]
    # The priors of one picture must not change the last bits of another's answer.
    kinds = [
        (
            output.fields.size,
            reading.focal is None,
            reading.gravity is None,
            reading.angle is None,
            named.get(lens),
        )
        for output, reading, lens in zip(outputs, readings, lenses, strict=True)
    ]

    def fit_to(
        rows: Sequence[int], model: CameraModel, usual: Sequence[tuple[float, float]] | None
    ) -> list[Fitted]:
        found: dict[int, Fitted] = {}
        for kind in dict.fromkeys(kinds[row] for row in rows):
            own = [row for row in rows if kinds[row] == kind]
            known = with_readings(
                given[own], [readings[row] for row in own], [files[row] for row in own], own
            )
            if usual is None:
                known = replace(known, distortion=given[own].distortion)
            elif lenses[own[0]] not in named:
                known = replace(known, distortion=prior_of([usual[rows.index(row)] for row in own]))
            result = _fit([outputs[row] for row in own], job.errors, model, known)
            found |= {row: (result, place) for place, row in enumerate(own)}
        return [found[row] for row in rows]

    odds = {
        lens: odds_of_lenses(
            (file.metadata, output.circle)
            for own, file, output in zip(lenses, files, outputs, strict=True)
            if own == lens
        )
        for lens in set(lenses)
    }
    choices = chosen(compare(fit_to, lenses, odds, named), lenses, odds)
    return [
        choice.moved(partial(output.view.to_original, size=output.file.size))
        for choice, output in zip(choices, outputs, strict=True)
    ]


def _fit(
    outputs: Sequence[NetworkOutput], errors: FieldErrors, model: CameraModel, given: Given
) -> FitResult:
    """Coarse fits of fields of one size, each by itself, in pixels of the fields."""
    mapping = Mapping.create(
        [output.view for output in outputs], [output.fields.size for output in outputs]
    )
    known = mapping.to_fields(with_starts(given, [output.down for output in outputs]))
    return fit(
        Fields.concatenate([output.fields.map(to_numpy).map(double) for output in outputs]),
        errors.model_to_fit(model),
        known.focal,
        known.gravity,
        known.distortion,
        known.principal_point,
        aspect=mapping.aspect_of(given),
        options=FitOptions(confidence_scale=errors.confidence_scale, cells=CELLS, error=ERROR),
    ).in_numpy()


def within_circle(output: NetworkOutput) -> NetworkOutput:
    """The output without confidence outside the circle that a circular picture fills."""
    if output.circle is None:
        return output
    fields, view, (cx, cy) = output.fields.map(to_numpy), output.view, output.circle.centre
    width, height = fields.size
    x = view.left + (np.arange(width) + 0.5) * view.width / width
    y = view.top + (np.arange(height) + 0.5) * view.height / height
    inside = np.hypot(x - cx, y[:, None] - cy) <= output.circle.radius
    return replace(
        output,
        fields=replace(
            fields,
            up_confidence=fields.up_confidence * inside,
            latitude_confidence=fields.latitude_confidence * inside,
        ),
    )
