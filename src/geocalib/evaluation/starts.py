"""Where a fit starts, and whether it matters: the errors of a guess, and of the fit from there.

The network looks at each photograph once; guesses and fits are made from what it saw.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from geocalib.arrays import Array
from geocalib.cameras import Camera, get_model
from geocalib.cameras.simple_radial import SimpleRadial
from geocalib.errors import ConfigError
from geocalib.evaluation.datasets import Sample
from geocalib.evaluation.report import Report
from geocalib.evaluation.run import CHUNK, Calibrates, default_model
from geocalib.evaluation.seen import Seen
from geocalib.evaluation.studies import Study
from geocalib.geometry.fields import Fields
from geocalib.nets.card import WeightCard
from geocalib.result.calibration import Calibration, Outcome
from geocalib.solver import FitOptions, fit
from geocalib.solver.initial import heuristic, trivial
from geocalib.solver.minimal import Guess, ransac
from geocalib.solver.observations import observe
from geocalib.solver.options import Initial


def starts_study(
    calibrator: Calibrates,
    samples: Sequence[Sample],
    kinds: Sequence[Initial],
    camera_model: str | None = None,
    *,
    name: str = "photographs",
    done: Callable[[], None] = lambda: None,
) -> Study:
    """For each kind of start, the errors of the start itself and those of the fit."""
    model = camera_model or default_model(samples)
    if calibrator.card.legacy_up_field and model == SimpleRadial.name:
        raise ConfigError(f"{calibrator.card.name} cannot start elsewhere; fit a pinhole camera")
    labels = [f"{kind}{end}" for end in (" alone", " + fit") for kind in kinds]
    found: dict[str, list[Outcome]] = {label: [] for label in labels}
    steps: dict[str, list[int]] = {f"{kind} + fit": [] for kind in kinds}
    for first in range(0, len(samples), CHUNK):
        paths = [sample.image for sample in samples[first : first + CHUNK]]
        for outcome in calibrator.calibrate(paths, model, exif=False, keep_fields=True):
            answers = dict.fromkeys(labels, outcome)
            if isinstance(outcome, Calibration):
                answers, taken = _answers(outcome, kinds, calibrator.card)
                for label, count in taken.items():
                    steps[label].append(count)
            for label, answer in answers.items():
                found[label].append(answer)
            done()
    reports = (Report.create(name, calibrator.card, model, samples, found[k]) for k in labels)
    rows = tuple(zip(labels, reports, strict=True))
    middle = {label: f"{np.median(counts):.0f}" for label, counts in steps.items() if counts}
    return Study(f"{name}: where the fit starts", "start", rows, beside={"median steps": middle})


def _answers(
    answer: Calibration, kinds: Sequence[Initial], card: WeightCard
) -> tuple[dict[str, Outcome], dict[str, int]]:
    """By label, what each kind of start makes of what the network saw, and in how many steps."""
    seen = Seen.by(answer, card)
    fields, centre, aspect = seen.fields, seen.centre, seen.aspect
    outcomes, steps = dict[str, Outcome](), dict[str, int]()
    for kind in kinds:
        options = FitOptions(initial=kind, confidence_scale=card.confidence_scale)
        guess = _guess(kind, fields, centre, aspect, options.cells)
        camera = Camera.create(answer.camera_model, guess.f, fields.size, c=centre, aspect=aspect)
        outcomes[f"{kind} alone"] = seen.answer(camera, guess.gravity[0])
        result = fit(
            fields,
            get_model(answer.camera_model),
            principal_point=centre,
            aspect=aspect,
            options=options,
        )
        outcomes[f"{kind} + fit"] = seen.answer(result.camera, result.gravity[0])
        steps[f"{kind} + fit"] = int(result.iterations[0])
    return outcomes, steps


def _guess(kind: Initial, fields: Fields, centre: Array, aspect: Array, cells: int | None) -> Guess:
    if kind == "trivial":
        return trivial(np.array([fields.size]))
    if kind == "heuristic":
        return heuristic(fields, centre)
    return ransac(observe(fields, cells), centre, aspect)
