"""The calibrator of a command."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from geocalib import console
from geocalib.pipeline.engines.load import EngineFuture, EngineSpec

if TYPE_CHECKING:
    from geocalib.pipeline.calibrator import Calibrator

PLACEHOLDER = "these are placeholder weights that were never trained: the numbers mean nothing"


def load(spec: EngineSpec) -> Calibrator:
    """The calibrator, with a warning if its weights are not trained."""
    return begin(spec)()


def begin(spec: EngineSpec) -> Callable[[], Calibrator]:
    """Begin to load the network, which takes as long as to import what is around it. What is
    returned waits for it, and gives the calibrator."""
    return partial(_finish, EngineFuture(spec))


def _finish(loading: EngineFuture) -> Calibrator:
    from geocalib.pipeline.calibrator import Calibrator

    calibrator = Calibrator.of(loading)
    if not calibrator.card.trained:
        console.warn(PLACEHOLDER)
    return calibrator
