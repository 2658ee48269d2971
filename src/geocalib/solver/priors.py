"""What is known beforehand: hard constraints and soft priors, per time or per camera."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from geocalib import records
from geocalib.arrays import (
    Array,
    as_array,
    double,
    is_array,
    mean_rows,
    namespace,
    unstack,
    zeros,
)
from geocalib.cameras.base import CameraModel
from geocalib.errors import PriorError
from geocalib.solver.coupling import Coupling

AGREEMENT = 1e-4
"""Relative difference up to which hard constraints on one shared unknown agree."""


@dataclass(frozen=True)
class Prior:
    """A soft prior: the value, and how far the truth may lie from it (one sigma).

    The sigma of the focal length is in pixels, that of gravity in radians (any way from it; or
    (B, 2), of the roll and of the pitch of B images), others in the parameter's unit. Either may
    be one for all images or one per image.
    """

    value: Any
    sigma: Any


Known = Prior | float | Sequence[float] | Array | None
"""A prior argument of ``fit``: nothing, a hard value, or a soft prior."""


@records.dataclass(frozen=True)
class Knowledge:
    """What is known of one kind of unknown, per time or camera (n rows), in double precision."""

    value: Array | None = None
    """(n, d) hard value or centre of the soft prior."""
    information: Array | None = None
    """(n, d) inverse squared sigma of a soft prior (gravity: (n, 1), or (n, 2) of the angles roll
    and pitch)."""

    @property
    def hard(self) -> bool:
        return self.value is not None and self.information is None

    @property
    def soft(self) -> bool:
        return self.information is not None

    def select(self, index: Array) -> Knowledge:
        return Knowledge(
            None if self.value is None else self.value[index],
            None if self.information is None else self.information[index],
        )


NOTHING = Knowledge()
"""Of an unknown of which nothing is known, or which does not vary."""


@records.dataclass(frozen=True)
class Priors:
    """Everything known beforehand. The focal length is held as log f."""

    gravity: Knowledge
    log_f: Knowledge
    distortion: Knowledge
    principal_point: Knowledge
    log_stretch: Knowledge = NOTHING
    """Of the aspect over that of the frame: soft where it is free, its value 0."""

    @property
    def soft(self) -> bool:
        """Whether any soft prior weighs against the data."""
        each = (self.gravity, self.log_f, self.distortion, self.principal_point, self.log_stretch)
        return any(known.soft for known in each)

    @property
    def angles(self) -> bool:
        """Whether roll and pitch are known apart, rather than gravity any way."""
        information = self.gravity.information
        return information is not None and information.shape[1] == 2

    def select(self, times: Array, cameras: Array) -> Priors:
        return Priors(
            gravity=self.gravity.select(times),
            log_f=self.log_f.select(cameras),
            distortion=self.distortion.select(cameras),
            principal_point=self.principal_point.select(cameras),
            log_stretch=self.log_stretch.select(cameras),
        )


def gather_priors(
    model: CameraModel,
    coupling: Coupling,
    focal: Known,
    gravity: Known,
    distortion: Known,
    principal_point: Known,
    aspect: Known = None,
) -> Priors:
    """Check the prior arguments of ``fit`` and bring them to times and cameras."""
    count = len(model.parameters)
    if distortion is not None and count == 0:
        raise PriorError(f"{model.name} has no distortion to constrain; drop the argument")
    point = _parse("principal_point", principal_point, coupling, 2)
    return Priors(
        gravity=_known_gravity(gravity, coupling),
        log_f=_known_focal(focal, coupling),
        distortion=_known_distortion(distortion, model, coupling),
        principal_point=_shared("principal_point", point, coupling),
        log_stretch=_known_stretch(aspect, coupling),
    )


def _known_focal(focal: Known, coupling: Coupling) -> Knowledge:
    value, sigma = _parse("focal", focal, coupling, 1)
    if value is None:
        return Knowledge()
    if bool((value <= 0).any()):
        raise PriorError(f"focal must be positive, in pixels; got {float(value.min())}")
    log_f = namespace(value).log(value)
    return _shared("focal", (log_f, None if sigma is None else sigma / value), coupling)


def _known_stretch(aspect: Known, coupling: Coupling) -> Knowledge:
    """An aspect that is fixed is part of the frame; one that is not starts from its prior."""
    value, sigma = _parse("aspect", aspect, coupling, 1)
    if value is not None and bool((value <= 0).any()):
        raise PriorError(f"aspect, fx / fy, must be positive; got {float(value.min())}")
    if value is None or sigma is None:
        return NOTHING
    none = namespace(value).zeros_like(value)
    return _shared("aspect", (none, sigma / value), coupling)


def _known_distortion(distortion: Known, model: CameraModel, coupling: Coupling) -> Knowledge:
    value, sigma = _parse("distortion", distortion, coupling, len(model.parameters))
    if value is not None:
        for name, column, (low, high) in zip(
            model.parameters, unstack(value), model.bounds, strict=True
        ):
            if bool(((column < low) | (column > high)).any()):
                raise PriorError(f"{model.name}: {name} must lie in [{low}, {high}]")
    return _shared("distortion", (value, sigma), coupling)


def _known_gravity(gravity: Known, coupling: Coupling) -> Knowledge:
    width = gravity_sigma_width(gravity)
    value, sigma = _parse("gravity", gravity, coupling, 3, sigma_width=width)
    if value is None:
        return Knowledge()
    xp = namespace(value)
    norm = xp.linalg.vector_norm(value, axis=-1, keepdims=True)
    if bool((norm < 1e-6).any()):
        raise PriorError("gravity must be a direction; got a vector of length 0")
    value = value / norm
    if sigma is not None and width == 2:
        if coupling.rotation is not None:
            raise PriorError("on a rig gravity has one sigma for all directions, not two")
        return Knowledge(value, sigma**-2)
    if coupling.rotation is not None:
        value = (double(coupling.rotation).mT @ value[..., None])[..., 0]
    times = len(coupling.time_component)
    if sigma is None:
        return Knowledge(_agreed("gravity", value, coupling.time, times))
    weight = sigma**-2
    centre = mean_rows(value * weight, coupling.time, times)
    centre = centre / xp.linalg.vector_norm(centre, axis=-1, keepdims=True)
    return Knowledge(centre, mean_rows(weight, coupling.time, times))


def gravity_sigma_width(gravity: Known) -> int:
    """How many sigmas gravity has: 1, or 2 where those of roll and pitch are told apart."""
    if not isinstance(gravity, Prior) or not is_array(gravity.sigma):
        return 1
    return 2 if gravity.sigma.ndim == 2 and gravity.sigma.shape[1] == 2 else 1


def _parse(
    name: str, known: Known, coupling: Coupling, width: int, sigma_width: int | None = None
) -> tuple[Array | None, Array | None]:
    """Value (B, width) and sigma (B, sigma_width), or None for what is not given."""
    if known is None:
        return None, None
    images = coupling.time
    if not isinstance(known, Prior):
        return rows(name, known, images, width), None
    value = rows(f"{name} prior", known.value, images, width)
    sigma = rows(f"{name} sigma", known.sigma, images, sigma_width or width, spread=True)
    if bool((sigma <= 0).any()):
        raise PriorError(f"{name} sigma must be positive; got {float(sigma.min())}")
    return value, sigma


def rows(name: str, given: Any, images: Array, width: int, spread: bool = False) -> Array:
    """A number, (width,), (B,) where width is 1, or (B, width) as (B, width); ``spread`` lets a
    single number stand for all columns."""
    xp = namespace(images)
    try:
        array = as_array(given, images, xp.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        raise PriorError(f"{name} must hold numbers, got {type(given).__name__}") from error
    if not bool(xp.isfinite(array).all()):
        raise PriorError(f"{name} must be finite")
    batch = len(images)
    if array.ndim == 0 and (width == 1 or spread):
        return xp.broadcast_to(array, (batch, width))
    if array.shape == (width,):
        return xp.broadcast_to(array, (batch, width))
    if array.shape == (batch,) and (width == 1 or spread):
        return xp.broadcast_to(array[:, None], (batch, width))
    if array.shape == (batch, width):
        return array
    single = "a number" if width == 1 else f"{width} numbers"
    raise PriorError(
        f"{name} must be {single}, or one row for each of {batch} images; "
        f"got shape {tuple(array.shape)}"
    )


def _shared(name: str, known: tuple[Array | None, Array | None], coupling: Coupling) -> Knowledge:
    """From images to cameras: what several images say of one camera is said once."""
    value, sigma = known
    cameras = len(coupling.camera_component)
    if value is None:
        return Knowledge()
    if sigma is None:
        return Knowledge(_agreed(name, value, coupling.camera, cameras))
    weight = sigma**-2
    mean_weight = mean_rows(weight, coupling.camera, cameras)
    return Knowledge(mean_rows(value * weight, coupling.camera, cameras) / mean_weight, mean_weight)


def _agreed(name: str, value: Array, index: Array, count: int) -> Array:
    """The common value of rows that share an unknown; an error if they contradict each other."""
    common = zeros((count, value.shape[1]), value)
    common[index] = value
    off = abs(value - common[index])
    wrong = (off > AGREEMENT * (1 + abs(value))).any(1)
    if bool(wrong.any()):
        image = int(namespace(wrong).nonzero(wrong)[0][0])
        raise PriorError(
            f"contradictory hard constraints: {name} of image {image} differs from that of "
            "another image that shares it"
        )
    return common
