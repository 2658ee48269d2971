"""Ways to an answer that need no training of their own, behind one interface.

Each is a ``Calibrates``, made of the calibrator that is evaluated: some ask its network, some its
lines, some neither.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from geocalib.evaluation.methods.manhattan import Manhattan
from geocalib.evaluation.run import Calibrates
from geocalib.pipeline.arguments import LinesMode


@dataclass(frozen=True)
class Method:
    """One row of a table."""

    label: str
    of: Callable[[Calibrates], Calibrates]
    lines: LinesMode = "off"
    """What straight lines are used for."""


def _by_adam(calibrator: Calibrates) -> Calibrates:
    # Not at the top: torch may not be installed.
    from geocalib.evaluation.methods.first_order import FirstOrder

    return FirstOrder(calibrator)


def _itself(calibrator: Calibrates) -> Calibrates:
    return calibrator


METHODS = {
    "manhattan": Method("vanishing points by RANSAC", Manhattan),
    "lines": Method("lines alone", _itself, "only"),
    "adam": Method("fields, fitted by Adam", _by_adam),
    "network": Method("fields, fitted by our solver", _itself),
    "ours": Method("fields and lines", _itself, "auto"),
}
"""By the names that users give them; in every table the constant answer comes before them."""
