"""Ways to an answer, behind one interface.

Each is a ``Calibrates``, made of the calibrator that is evaluated: some ask its network, some its
lines, some neither. Baselines have weights of their own, in files that a user trains.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from geocalib_lab.evaluation.methods.baselines import BASELINES, Baselines
from geocalib_lab.evaluation.methods.manhattan import Manhattan
from geocalib_lab.evaluation.methods.vanishing import Vanishing
from geocalib_lab.evaluation.run import PLAIN, Calibrates, Setting

OURS = ("network", "ours", "prior", "large", "large-prior")
"""The names of those that are this package's own."""
LARGE = "large"
"""The weights that are compared with the evaluated ones."""


@dataclass(frozen=True)
class Method:
    """One row of a table."""

    label: str
    of: Callable[[Calibrates], Calibrates]
    """A ``WeightsError`` or ``MissingPackageError`` if it has no weights."""
    setting: Setting = PLAIN
    """The setting in which it is evaluated."""


def _by_adam(calibrator: Calibrates) -> Calibrates:
    # Not at the top: torch may not be installed.
    from geocalib_lab.evaluation.methods.first_order import FirstOrder

    return FirstOrder(calibrator)


def _itself(calibrator: Calibrates) -> Calibrates:
    return calibrator


def _trained(name: str, baselines: Baselines, _: Calibrates) -> Calibrates:
    return baselines.load(name)


def _large(device: str, _: Calibrates) -> Calibrates:
    from geocalib.pipeline.calibrator import Calibrator

    return Calibrator(LARGE, device=device)


def methods_with(baselines: Baselines) -> dict[str, Method]:
    """By the names that users give them; in every table the constant answer comes before them."""
    lines, usual = Setting(lines="auto"), Setting(lines="auto", prior="photos")
    large = partial(_large, baselines.device)
    return {
        "manhattan": Method("vanishing points at right angles", Manhattan),
        "vanishing": Method("vanishing points, free", Vanishing),
        "lines": Method("lines alone", _itself, Setting(lines="only")),
        **{
            name: Method(label, partial(_trained, name, baselines))
            for name, label in BASELINES.items()
        },
        "adam": Method("fields, fitted by Adam", _by_adam),
        "network": Method("fields, fitted by our solver", _itself),
        "ours": Method("fields and lines", _itself, lines),
        "prior": Method("fields, lines, prior of photographs", _itself, usual),
        "large": Method("large: fields and lines", large, lines),
        "large-prior": Method("large: fields, lines, prior of photographs", large, usual),
    }
