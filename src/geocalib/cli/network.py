"""The calibrator of a command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from geocalib import console
from geocalib.pipeline.request import Network

if TYPE_CHECKING:
    from geocalib.pipeline.calibrator import Calibrator

PLACEHOLDER = "these are placeholder weights that were never trained: the numbers mean nothing"


def load(network: Network) -> Calibrator:
    """The calibrator; says so if its answers are worthless."""
    from geocalib.pipeline.calibrator import Calibrator

    calibrator = Calibrator(network.weights, device=network.device, engine=network.engine.value)
    if not calibrator.card.trained:
        console.warn(PLACEHOLDER)
    return calibrator
