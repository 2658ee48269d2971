"""An engine whose batches are all of one size.

Which kernels an accelerator chooses, and so the last bits of what it computes, depends on the size
of a batch. With one size they depend on the photo alone, and not on how many others came with it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from geocalib.arrays import to_numpy
from geocalib.geometry.fields import Fields
from geocalib.imaging import InputSpec
from geocalib.pipeline.predict import Engine
from geocalib.pipeline.rotation import Pictures

FEW = 8
"""Images of which is asked at once how they stand: a look at all tells it of most."""


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
        """Whether it can tell how pictures stand."""
        return self._engine.knows_upright

    @property
    def has_opinion(self) -> bool:
        """Whether a second network tells the focal length."""
        return self._engine.has_opinion

    def predict(self, images: Pictures) -> Fields:
        """The fields of (B, 3, H, W) images, in the memory of this process: moved there at once,
        which is much quicker than image by image."""
        fields = self._engine.predict(_filled_up(images, self.batch))
        return fields[: len(images)].map(to_numpy)

    def look(self, images: Pictures) -> tuple[Fields, Pictures]:
        """The fields likewise, and how the images stand."""
        fields, stands = self._engine.look(_filled_up(images, self.batch))
        return fields[: len(images)].map(to_numpy), stands[: len(images)]

    def standing(self, images: Pictures) -> Pictures:
        """(B, 4) log-probabilities that the images stand turned by 0 to 3 quarters, a few at a
        time."""
        pieces = [images[at : at + FEW] for at in range(0, len(images), FEW)]
        return np.concatenate(
            [self._engine.standing(_filled_up(piece, FEW))[: len(piece)] for piece in pieces]
        )

    def opinion(self, images: Pictures) -> npt.NDArray[np.float64]:
        """(B, 2) the logarithm of the focal length by the diagonal, and its sigma."""
        return self._engine.opinion(_filled_up(images, self.batch))[: len(images)]


def _filled_up(images: Pictures, count: int) -> Pictures:
    """With the last one as often as makes them so many."""
    return np.concatenate([images, *[images[-1:]] * (count - len(images))])
