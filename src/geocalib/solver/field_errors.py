"""What is known of the errors that a network's fields have, beyond their confidences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from geocalib.cameras.base import CameraModel
from geocalib.cameras.legacy import LegacySimpleRadial, without_legacy
from geocalib.cameras.simple_radial import SimpleRadial
from geocalib.records import dataclass
from geocalib.solver.given import Given
from geocalib.solver.learnt_sigmas import LearntSigmas
from geocalib.solver.result import FitResult


@dataclass(frozen=True)
class FieldErrors:
    """As the card of the network's weights tells them, and the file beside it."""

    confidence_scale: float | None = None
    """s^2, as ``FitOptions`` takes it."""
    sigma_scale: Mapping[str, float] = field(default_factory=dict)
    """Factors on the sigmas, as ``FitResult.with_sigmas_scaled`` takes them."""
    legacy_up_field: bool = False
    """Whether distortion bends up-vectors as ``cameras.legacy`` has it."""
    learnt: LearntSigmas | None = None
    """What is known of single photos beyond these constants."""

    def fitted(self, model: CameraModel) -> CameraModel:
        """The model to fit to the fields where this one is asked for."""
        legacy = self.legacy_up_field and isinstance(model, SimpleRadial)
        return LegacySimpleRadial() if legacy else model

    def foreseen(self, given: Given) -> Given:
        """What is known as a fit has to be told it whose sigmas will be corrected."""
        return given.before_scaling(**self.sigma_scale)

    def corrected(self, result: FitResult) -> FitResult:
        """A fit with calibrated sigmas, of a camera that users know."""
        if isinstance(result.camera.model, LegacySimpleRadial):
            result = replace(result, camera=without_legacy(result.camera))
        return result.with_sigmas_scaled(**self.sigma_scale)

    def alone(self, corrected: FitResult, seen: Sequence[bool]) -> FitResult:
        """A corrected fit of images that stand alone, with nothing known beside them: with the
        sigmas of each. seen: whether there was anything to see in it."""
        return corrected if self.learnt is None else self.learnt.applied(corrected, seen)
