"""Ways to an answer, behind one interface.

Each is a ``Calibrates``, made of the calibrator that is evaluated: some ask its network, some its
lines, some neither. Baselines have weights of their own, in files that a user trains.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from geocalib.evaluation.methods.baselines import BASELINES, Baselines
from geocalib.evaluation.methods.manhattan import Manhattan
from geocalib.evaluation.methods.vanishing import Vanishing
from geocalib.evaluation.run import Calibrates
from geocalib.pipeline.arguments import LinesMode

FIELDS = "fields, fitted by our solver"
FIELDS_AND_LINES = "fields and lines"
"""Ours, as tables call it."""


@dataclass(frozen=True)
class Method:
    """One row of a table."""

    label: str
    of: Callable[[Calibrates], Calibrates]
    """A ``WeightsError`` if it has no weights."""
    lines: LinesMode = "off"
    """What straight lines are used for."""


def _by_adam(calibrator: Calibrates) -> Calibrates:
    # Not at the top: torch may not be installed.
    from geocalib.evaluation.methods.first_order import FirstOrder

    return FirstOrder(calibrator)


def _itself(calibrator: Calibrates) -> Calibrates:
    return calibrator


def _trained(name: str, baselines: Baselines, _: Calibrates) -> Calibrates:
    return baselines.load(name)


def methods_with(baselines: Baselines) -> dict[str, Method]:
    """By the names that users give them; in every table the constant answer comes before them."""
    return {
        "manhattan": Method("vanishing points at right angles", Manhattan),
        "vanishing": Method("vanishing points, free", Vanishing),
        "lines": Method("lines alone", _itself, "only"),
        **{
            name: Method(label, partial(_trained, name, baselines))
            for name, label in BASELINES.items()
        },
        "adam": Method("fields, fitted by Adam", _by_adam),
        "network": Method(FIELDS, _itself),
        "ours": Method(FIELDS_AND_LINES, _itself, "auto"),
    }
