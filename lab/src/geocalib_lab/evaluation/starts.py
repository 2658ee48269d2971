"""How a fit gets to its answer, and whether it matters: where it starts, how many steps it takes,
and how much the first is damped.

The network looks at each photograph once; guesses and fits are made from what it saw.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from geocalib.arrays import Array
from geocalib.cameras import Camera, get_model
from geocalib.cameras.radial import SimpleRadial
from geocalib.errors import ConfigError
from geocalib.geometry.fields import Fields
from geocalib.nets.weights.card import WeightCard
from geocalib.result.calibration import Calibration, Outcome
from geocalib.solver import FitOptions, FitResult, fit
from geocalib.solver.initial import Initial, StartGuess, heuristic, ransac, trivial
from geocalib.solver.observations import observe
from geocalib_lab.evaluation.datasets import Sample
from geocalib_lab.evaluation.report import Report
from geocalib_lab.evaluation.run import CHUNK, Calibrates, default_model
from geocalib_lab.evaluation.seen import Seen
from geocalib_lab.evaluation.studies import Study

STEPS = (1, 2, 3, 5, 10)
DAMPINGS = (1e-3, 10.0)

Again = Callable[[Calibration], tuple[Mapping[str, Outcome], Mapping[str, int]]]
"""Other answers from what was seen, and the steps of the fits among them, by label."""


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
    labels = [f"{kind}{end}" for end in (" alone", " + fit") for kind in kinds]

    def again(answer: Calibration) -> tuple[dict[str, Outcome], dict[str, int]]:
        return _from(kinds, answer, calibrator.card)

    table = f"{name}: where the fit starts", "start"
    return _study(calibrator, samples, camera_model, name, table, labels, again, done)


def descent_study(
    calibrator: Calibrates,
    samples: Sequence[Sample],
    camera_model: str | None = None,
    *,
    name: str = "photographs",
    done: Callable[[], None] = lambda: None,
) -> Study:
    """The errors of fits that may take so many steps and no more, and of fits whose first step is
    damped otherwise; all start at the trivial guess."""
    scale = calibrator.card.confidence_scale
    usual = FitOptions(confidence_scale=scale)
    ways = {
        **{f"at most {n} step{'s'[: n > 1]}": replace(usual, max_iterations=n) for n in STEPS},
        f"at most {usual.max_iterations} steps, damping {usual.damping:g}": usual,
        **{f"damping {damping:g} first": replace(usual, damping=damping) for damping in DAMPINGS},
    }

    def again(answer: Calibration) -> tuple[dict[str, Outcome], dict[str, int]]:
        seen = Seen.by(answer, calibrator.card)
        fits = {label: _fit(answer, seen, options) for label, options in ways.items()}
        outcomes = {
            label: seen.answer(result.camera, result.gravity[0]) for label, result in fits.items()
        }
        return outcomes, {label: int(result.iterations[0]) for label, result in fits.items()}

    table = f"{name}: how the fit descends", "fit"
    return _study(calibrator, samples, camera_model, name, table, list(ways), again, done)


def _study(
    calibrator: Calibrates,
    samples: Sequence[Sample],
    camera_model: str | None,
    name: str,
    table: tuple[str, str],
    labels: Sequence[str],
    again: Again,
    done: Callable[[], None],
) -> Study:
    """A row for each label. table: its title, and what tells the rows apart."""
    model = camera_model or default_model(samples)
    if calibrator.card.legacy_up_field and model == SimpleRadial.name:
        raise ConfigError(f"{calibrator.card.name} cannot start elsewhere; fit a pinhole camera")
    found: dict[str, list[Outcome]] = {label: [] for label in labels}
    steps: dict[str, list[int]] = {label: [] for label in labels}
    for first in range(0, len(samples), CHUNK):
        paths = [sample.image for sample in samples[first : first + CHUNK]]
        for outcome in calibrator.calibrate(
            paths, model, exif=False, sensors=False, prior="none", keep_fields=True
        ):
            answers: Mapping[str, Outcome] = dict.fromkeys(labels, outcome)
            if isinstance(outcome, Calibration):
                answers, taken = again(outcome)
                for label, count in taken.items():
                    steps[label].append(count)
            for label, answer in answers.items():
                found[label].append(answer)
            done()
    reports = (Report.create(name, calibrator.card, model, samples, found[k]) for k in labels)
    rows = tuple(zip(labels, reports, strict=True))
    middle = {label: f"{np.median(counts):.0f}" for label, counts in steps.items() if counts}
    return Study(*table, rows, beside={"median steps": middle})


def _from(
    kinds: Sequence[Initial], answer: Calibration, card: WeightCard
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
        result = _fit(answer, seen, options)
        outcomes[f"{kind} + fit"] = seen.answer(result.camera, result.gravity[0])
        steps[f"{kind} + fit"] = int(result.iterations[0])
    return outcomes, steps


def _fit(answer: Calibration, seen: Seen, options: FitOptions) -> FitResult:
    return fit(
        seen.fields,
        get_model(answer.camera_model),
        principal_point=seen.centre,
        aspect=seen.aspect,
        options=options,
    )


def _guess(
    kind: Initial, fields: Fields, centre: Array, aspect: Array, cells: int | None
) -> StartGuess:
    if kind == "trivial":
        return trivial(np.array([fields.size]))
    if kind == "heuristic":
        return heuristic(fields, centre)
    return ransac(observe(fields, cells), centre, aspect)
