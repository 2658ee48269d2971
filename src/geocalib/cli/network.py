"""The calibrator of a command."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from geocalib import console
from geocalib.pipeline.engines import Loading, Recipe
from geocalib.pipeline.request import Network

if TYPE_CHECKING:
    from geocalib.pipeline.calibrator import Calibrator

PLACEHOLDER = "these are placeholder weights that were never trained: the numbers mean nothing"


def load(network: Network) -> Calibrator:
    """The calibrator; says so if its answers are worthless."""
    return begin(network)()


def begin(network: Network) -> Callable[[], Calibrator]:
    """Begin to load the network, which takes as long as to import what is around it. What is
    returned waits for it, and gives the calibrator."""
    return partial(_finish, Loading(Recipe(network.weights, network.engine.value, network.device)))


def _finish(loading: Loading) -> Calibrator:
    from geocalib.pipeline.calibrator import Calibrator

    calibrator = Calibrator.of(loading)
    if not calibrator.card.trained:
        console.warn(PLACEHOLDER)
    return calibrator
