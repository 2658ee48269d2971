"""The table of --prior-report: what was given or read, what it is held against, how far apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from geocalib import console
from geocalib.cli import report
from geocalib.geometry.gravity import to_roll_pitch
from geocalib.result.calibration import Calibration, Outcome
from geocalib.result.evidence import CONTRADICTION

if TYPE_CHECKING:
    from geocalib.result.evidence import PriorCheck

Row = tuple[str, "PriorCheck"]

HEADERS = ("image", "source", "prior", "held against", "tension")


def rows(outcome: Outcome) -> list[Row]:
    """The lines of an image."""
    if not isinstance(outcome, Calibration):
        return []
    return [(console.printable(outcome.image or ""), prior) for prior in outcome.priors]


def print_table(every: Sequence[Row], beside_data: bool) -> None:
    """The table: on standard output, or on standard error where data go to the other."""
    from rich.text import Text

    if not every:
        console.note("no sensor says anything about these photos")
        return
    caption = f"tension is in sigmas; beyond {CONTRADICTION:g} the prior or the answer is wrong"
    rows = [
        (
            Text(image),
            Text(prior.source),
            Text(_value(prior.quantity, prior.prior, prior.prior_sigma)),
            Text(f"{prior.rival}: " + _value(prior.quantity, prior.estimate, prior.estimate_sigma)),
            Text(f"{prior.tension:.1f}", "red" if prior.contradicts else "green"),
        )
        for image, prior in every
    ]
    report.draw_table(HEADERS, rows, HEADERS[:-1], caption, beside_data)


def _value(quantity: str, value: Sequence[float], sigma: float) -> str:
    """For people, with one sigma."""
    if quantity == "distortion":
        return f"{', '.join(f'{one:+.3f}' for one in value)} ± {_number(sigma, '.2g')}"
    if quantity == "focal":
        return f"f {value[0]:.0f} ± {_number(sigma, '.0f')} px"
    angles = np.rad2deg(to_roll_pitch(np.array(value)))
    # Adding 0 takes the sign off a rounded -0.
    roll, pitch = (angles.round(1) + 0.0).tolist()
    return f"roll {roll:+.1f}, pitch {pitch:+.1f} ± {_number(sigma, '.1f')} °"


def _number(value: float, form: str) -> str:
    return f"{value:{form}}" if math.isfinite(value) else "?"
