"""An engine whose batches are all of one size.

Which kernels an accelerator chooses, and so the last bits of what it computes, depends on the size
of a batch. With one size they depend on the photo alone, and not on how many others came with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from geocalib.arrays import Array, namespace, to_numpy
from geocalib.geometry.fields import Fields
from geocalib.imaging import InputSpec
from geocalib.pipeline.predict import Engine


class FullBatches:
    """See ``geocalib.pipeline.predict.Engine``."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def spec(self) -> InputSpec:
        """What it wants to see."""
        return self._engine.spec

    @property
    def batch(self) -> int:
        """Images that it takes at once, always."""
        return self._engine.batch

    @property
    def on_processor(self) -> bool:
        """As of the engine."""
        return self._engine.on_processor

    @property
    def confidence_scale(self) -> float | None:
        """As ``FitOptions`` takes it."""
        return self._engine.confidence_scale

    @property
    def knows_upright(self) -> bool:
        """Whether it can glance."""
        return self._engine.knows_upright

    @property
    def has_opinion(self) -> bool:
        """Whether a second network tells the focal length."""
        return self._engine.has_opinion

    def predict(self, images: Array) -> Fields:
        """The fields of (B, 3, H, W) images, in the memory of this process: moved there at once,
        which is much quicker than image by image."""
        return self._filled_up(self._engine.predict, images).map(to_numpy)

    def glance(self, images: Array) -> Array:
        """(B, 4) log probability of each side to be up."""
        return self._filled_up(self._engine.glance, images)

    def opinion(self, images: Array) -> Array:
        """(B, 2) the logarithm of the focal length by the diagonal, and its sigma."""
        return self._filled_up(self._engine.opinion, images)

    def _filled_up(self, see: Callable[[Any], Any], images: Array) -> Any:
        count = len(images)
        if count < self.batch:
            again = [images[-1:]] * (self.batch - count)
            images = namespace(images).concat([images, *again])
        return see(images)[:count]
