"""How sure an answer is: one sigma of each quantity by one covariance, and what to believe."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from geocalib.arrays import Array
from geocalib.cameras import Camera
from geocalib.solver.result import double_sigmas

Quantity = Literal["gravity", "fov", "lens"]
EVERYTHING: tuple[Quantity, ...] = get_args(Quantity)


@dataclass(frozen=True)
class Trust:
    """The parts of an answer that are trusted (by ``geocalib.result.trust``)."""

    gravity: bool = True
    fov: bool = True
    lens: bool = True


ALL_TRUSTED = Trust()


@dataclass(frozen=True)
class Uncertainty:
    """One sigma of each quantity: 0 for what was held fixed, NaN for what is not known."""

    roll_deg: float
    pitch_deg: float
    gravity_deg: float
    """Along the most uncertain direction."""
    vfov_deg: float
    hfov_deg: float
    focal: float
    """One sigma of fy, pixels."""
    aspect: float
    """One sigma of fx / fy."""
    distortion: tuple[float, ...]
    """In the unit of each parameter."""
    principal_point: tuple[float, float]
    """One sigma of cx and of cy, pixels."""

    @classmethod
    def of(
        cls,
        camera: Camera,
        gravity: Array,
        covariance: Array,
        parameters: Sequence[str],
        between_borders: bool = False,
    ) -> Uncertainty:
        """That of one camera (a batch of 1) and gravity (3,), given the covariance (P, P) of their
        free parameters, named as in ``FitResult``; all float64 on the CPU. between_borders: as in
        ``sigmas_of``."""
        sigma = double_sigmas(camera, gravity[None], covariance[None], parameters, between_borders)
        cx, cy = sigma.principal_point[0].tolist()
        return cls(
            roll_deg=sigma.roll_deg.item(),
            pitch_deg=sigma.pitch_deg.item(),
            gravity_deg=sigma.gravity_deg.item(),
            vfov_deg=sigma.vfov_deg.item(),
            hfov_deg=sigma.hfov_deg.item(),
            focal=sigma.focal.item(),
            aspect=sigma.aspect.item(),
            distortion=tuple(sigma.distortion[0].tolist()),
            principal_point=(cx, cy),
        )

    @classmethod
    def unknown(cls, camera: Camera) -> Uncertainty:
        """The sigmas of an answer whose sigmas are unknown: NaN."""
        each = (math.nan,) * len(camera.model.parameters)
        return cls(*(math.nan,) * 7, each, (math.nan, math.nan))


def with_sigma(value: float, sigma: float, form: str, unit: str = "") -> str:
    """A number with its sigma, in a width that does not depend on them: columns line up.

    form: of the number, as format strings have it.
    """
    if not math.isfinite(value):
        return "-"
    unsigned = form.lstrip("+")
    if sigma == 0:
        return f"{value:{form}}{unit} fixed"
    shown = f"{sigma:{unsigned}}" if math.isfinite(sigma) else "?"
    return f"{value:{form}} ± {shown}{unit}"
