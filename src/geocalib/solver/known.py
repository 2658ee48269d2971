"""What is known beside the fields: hard values and soft priors, from arguments to constraints.

``Given`` holds what a caller says of photographs, one row per image, and ``Mapping`` carries it
from the pixels of the photographs to those of their fields. ``gather_priors`` checks what ``fit``
is given and brings it to times (gravity) and cameras (intrinsics).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from geocalib import records
from geocalib.arrays import (
    Array,
    as_array,
    as_doubles,
    double,
    is_array,
    mean_rows,
    namespace,
    to_numpy,
    unstack,
    zeros,
)
from geocalib.cameras.base import CameraModel
from geocalib.cameras.camera import Camera, Window
from geocalib.errors import PriorError
from geocalib.geometry.gravity import LEAST_COSINE, from_roll_pitch
from geocalib.solver.coupling import Coupling
from geocalib.solver.state import focal_range

AGREEMENT = 1e-4
"""Relative difference up to which hard constraints on one shared unknown agree."""

ROUNDING = 1e-9
"""Relative error of a focal length that is computed of a field of view."""

VAGUE_DEG = 6e4
"""Sigma of an angle of which nothing is known beside another that is."""


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

Rows = Array | Prior | None
"""Nothing, hard values, or a soft prior; arrays of a row per image."""


@records.dataclass(frozen=True)
class Constraint:
    """The constraint on one kind of unknown, per time or camera (n rows), in double precision."""

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

    def select(self, index: Array) -> Constraint:
        return Constraint(
            None if self.value is None else self.value[index],
            None if self.information is None else self.information[index],
        )


UNCONSTRAINED = Constraint()
"""The constraint on an unknown that is free of any, or that does not vary."""


@records.dataclass(frozen=True)
class Priors:
    """Everything known beforehand. The focal length is held as log f."""

    gravity: Constraint
    log_f: Constraint
    distortion: Constraint
    principal_point: Constraint
    log_stretch: Constraint = UNCONSTRAINED
    """Constraint of the aspect relative to the frame's: soft if it is free, with the value 0."""

    @property
    def soft(self) -> bool:
        """Whether any soft prior weighs against the data."""
        each = (self.gravity, self.log_f, self.distortion, self.principal_point, self.log_stretch)
        return any(known.soft for known in each)

    @property
    def angles(self) -> bool:
        """Whether roll and pitch have a sigma each, rather than gravity one in all directions."""
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


def _known_focal(focal: Known, coupling: Coupling) -> Constraint:
    value, sigma = _parse("focal", focal, coupling, 1)
    if value is None:
        return Constraint()
    if bool((value <= 0).any()):
        raise PriorError(f"focal must be positive, in pixels; got {float(value.min())}")
    log_f = namespace(value).log(value)
    return _shared("focal", (log_f, None if sigma is None else sigma / value), coupling)


def _known_stretch(aspect: Known, coupling: Coupling) -> Constraint:
    """An aspect that is fixed is part of the frame; one that is not starts from its prior."""
    value, sigma = _parse("aspect", aspect, coupling, 1)
    if value is not None and bool((value <= 0).any()):
        raise PriorError(f"aspect, fx / fy, must be positive; got {float(value.min())}")
    if value is None or sigma is None:
        return UNCONSTRAINED
    none = namespace(value).zeros_like(value)
    return _shared("aspect", (none, sigma / value), coupling)


def _known_distortion(distortion: Known, model: CameraModel, coupling: Coupling) -> Constraint:
    value, sigma = _parse("distortion", distortion, coupling, len(model.parameters))
    if value is not None:
        for name, column, (low, high) in zip(
            model.parameters, unstack(value), model.bounds, strict=True
        ):
            if bool(((column < low) | (column > high)).any()):
                raise PriorError(f"{model.name}: {name} must lie in [{low}, {high}]")
    return _shared("distortion", (value, sigma), coupling)


def _known_gravity(gravity: Known, coupling: Coupling) -> Constraint:
    width = gravity_sigma_width(gravity)
    value, sigma = _parse("gravity", gravity, coupling, 3, sigma_width=width)
    if value is None:
        return Constraint()
    xp = namespace(value)
    norm = xp.linalg.vector_norm(value, axis=-1, keepdims=True)
    if bool((norm < 1e-6).any()):
        raise PriorError("gravity must be a direction; got a vector of length 0")
    value = value / norm
    if sigma is not None and width == 2:
        if coupling.rotation is not None:
            raise PriorError("on a rig gravity has one sigma for all directions, not two")
        return Constraint(value, sigma**-2)
    if coupling.rotation is not None:
        value = (double(coupling.rotation).mT @ value[..., None])[..., 0]
    times = len(coupling.time_component)
    if sigma is None:
        return Constraint(_agreed("gravity", value, coupling.time, times))
    weight = sigma**-2
    centre = mean_rows(value * weight, coupling.time, times)
    centre = centre / xp.linalg.vector_norm(centre, axis=-1, keepdims=True)
    return Constraint(centre, mean_rows(weight, coupling.time, times))


def gravity_sigma_width(gravity: Known) -> int:
    """Return how many sigmas gravity has: 1, or 2 where roll and pitch have one each."""
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
    """Return a number, (width,), (B,) where width is 1, or (B, width) as (B, width) doubles.

    ``spread`` lets a single number stand for all columns.
    """
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


def _shared(name: str, known: tuple[Array | None, Array | None], coupling: Coupling) -> Constraint:
    """Bring a constraint from images to cameras, whose images' priors are averaged."""
    value, sigma = known
    cameras = len(coupling.camera_component)
    if value is None:
        return Constraint()
    if sigma is None:
        return Constraint(_agreed(name, value, coupling.camera, cameras))
    weight = sigma**-2
    mean_weight = mean_rows(weight, coupling.camera, cameras)
    return Constraint(
        mean_rows(value * weight, coupling.camera, cameras) / mean_weight, mean_weight
    )


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


def known_gravity(roll_deg: Known, pitch_deg: Known, images: Array) -> Known:
    """The gravity of B images (B,) by their roll and pitch, degrees, one for all or one per image.

    Two values fix it. A ``Prior``, with its sigma in degrees, may also stand alone: a camera that
    is known to be level from left to right has a roll, and any pitch.
    """
    known = {"roll_deg": roll_deg, "pitch_deg": pitch_deg}
    given = [name for name, value in known.items() if value is not None]
    if not given:
        return None
    soft = [name for name in given if isinstance(known[name], Prior)]
    if not soft and len(given) == 2:
        roll, pitch = (_degrees(name, value, images) for name, value in known.items())
        return from_roll_pitch(roll, pitch)
    if soft != given:
        raise PriorError(
            "roll_deg and pitch_deg together say where down is; give both as numbers, or what "
            "you know of them as Prior(degrees, sigma)"
        )
    vague = Prior(0.0, VAGUE_DEG)
    priors = {name: value if isinstance(value, Prior) else vague for name, value in known.items()}
    roll, pitch = (_degrees(name, prior.value, images) for name, prior in priors.items())
    sigmas = [_degrees(f"{name} sigma", prior.sigma, images) for name, prior in priors.items()]
    return Prior(from_roll_pitch(roll, pitch), namespace(images).stack(sigmas, axis=-1))


def known_view(vfov_deg: Known, model: CameraModel, images: Array) -> Array | Prior | None:
    """The vertical field of view of B images (B,), (B, 1) radians; a prior has sigmas likewise."""
    if vfov_deg is None:
        return None
    if model.wide:
        raise PriorError(
            f"vfov_deg does not give the focal length of {model.name}, whose field of view also "
            "depends on its distortion; give focal"
        )
    prior = vfov_deg if isinstance(vfov_deg, Prior) else None
    value = _degrees("vfov_deg", vfov_deg if prior is None else prior.value, images)[:, None]
    if bool(((value <= 0) | (value >= math.pi)).any()):
        raise PriorError("vfov_deg must lie between 0 and 180 degrees")
    if prior is None:
        return value
    sigma = _degrees("vfov_deg sigma", prior.sigma, images)[:, None]
    if bool((sigma <= 0).any()):
        raise PriorError("vfov_deg sigma must be positive")
    return Prior(value, sigma)


def focal_of_view(view: Array | Prior, heights: Array) -> Array | Prior:
    """The focal lengths (B, 1) of views (B, 1) of images so many pixels high (B, 1)."""
    xp = namespace(heights)
    if not isinstance(view, Prior):
        return 0.5 * heights / xp.tan(0.5 * view)
    focal = 0.5 * heights / xp.tan(0.5 * view.value)
    # d log f / d view = -1 / sin(view).
    return replace(view, value=focal, sigma=focal * view.sigma / xp.sin(view.value))


def _degrees(name: str, given: Known, images: Array) -> Array:
    """What is given in degrees, as (B,) radians."""
    return math.radians(1) * rows(name, given, images, 1)[:, 0]


@records.dataclass(frozen=True)
class Given:
    """What is known beforehand of B images."""

    focal: Rows
    """(B, 1) pixels."""
    gravity: Rows
    """(B, 3) with sigmas (B, 1), or (B, 2) of roll and pitch."""
    distortion: Rows
    """(B, D)."""
    principal_point: Rows
    """(B, 2) pixels."""
    aspect: Rows = None
    """(B, 1) fx / fy; None: pixels are square."""
    view: Rows = None
    """(B, 1) vertical field of view, radians, until the sizes of the images are known."""

    @classmethod
    def create(
        cls,
        model: CameraModel,
        coupling: Coupling,
        focal: Known = None,
        gravity: Known = None,
        distortion: Known = None,
        principal_point: Known = None,
        aspect: Known = None,
        vfov_deg: Known = None,
        roll_deg: Known = None,
        pitch_deg: Known = None,
    ) -> Given:
        """Check arguments that hold one value for all images or one per image, as ``fit`` does."""
        images = coupling.time
        if focal is not None and vfov_deg is not None:
            raise PriorError("focal and vfov_deg each say how long the lens is; give one of them")
        angles = known_gravity(roll_deg, pitch_deg, images)
        if gravity is not None and angles is not None:
            raise PriorError("gravity already says where down is; drop roll_deg and pitch_deg")
        gravity = angles if gravity is None else gravity
        gather_priors(model, coupling, focal, gravity, distortion, principal_point, aspect)
        return cls(
            _rows(focal, images, 1),
            _rows(gravity, images, 3, sigma_width=gravity_sigma_width(gravity)),
            _rows(distortion, images, len(model.parameters)),
            _rows(principal_point, images, 2),
            _rows(aspect, images, 1),
            known_view(vfov_deg, model, images),
        )

    def __getitem__(self, index: Sequence[int]) -> Given:
        """Return what is known of some of the images."""
        known = self.focal, self.gravity, self.distortion, self.principal_point, self.aspect
        return Given(*(select_rows(each, index) for each in (*known, self.view)))

    def sized(self, sizes: Sequence[tuple[int, int]]) -> Given:
        """With the focal lengths that the fields of view give images of these (width, height)."""
        if self.view is None:
            return self
        view = self.view.value if isinstance(self.view, Prior) else self.view
        heights = as_array(sizes, view)[:, 1:]
        return replace(self, focal=focal_of_view(self.view, heights), view=None)

    @property
    def focal_information(self) -> list[float] | None:
        """The inverse variance that the prior gives log f of each image; None without a prior."""
        known = self.focal
        if not isinstance(known, Prior):
            return None
        information: list[float] = ((known.value / known.sigma) ** 2)[:, 0].tolist()
        return information

    @property
    def gravity_information(self) -> Array | None:
        """(B, 2) the inverse variance that the prior gives the gravity of each image along growing
        roll and along growing pitch; None without a prior."""
        known = self.gravity
        if not isinstance(known, Prior):
            return None
        value, sigma = double(to_numpy(known.value)), double(to_numpy(known.sigma))
        if sigma.shape[1] == 1:
            return np.broadcast_to(sigma**-2.0, (len(sigma), 2))
        # Circles of equal pitch are shorter, the steeper a camera looks.
        length = np.maximum(np.hypot(value[:, 0], value[:, 1]), LEAST_COSINE)
        return np.stack([sigma[:, 0] * length, sigma[:, 1]], 1) ** -2.0

    def before_scaling(
        self, gravity: float = 1.0, focal: float = 1.0, distortion: float = 1.0
    ) -> Given:
        """Return what a fit has to be given whose sigmas will be multiplied by these factors
        (``FitResult.with_sigmas_scaled``), so that priors keep the sigmas they have."""
        return replace(
            self,
            focal=_divide_sigma(self.focal, focal),
            gravity=_divide_sigma(self.gravity, gravity),
            distortion=_divide_sigma(self.distortion, distortion),
        )

    def impossible_focal(self, row: int, model: CameraModel, size: tuple[int, int]) -> str | None:
        """Say why no lens has the focal length given for an image of (width, height); None if one
        may. The focal length is in pixels, so that the image has to be read before."""
        if self.focal is None:
            return None
        value = self.focal.value if isinstance(self.focal, Prior) else self.focal
        focal = value[row].item()
        shortest, longest = (heights * size[1] for heights in focal_range(model))
        # A field of view at the end of its range may round to just beyond it.
        if shortest * (1 - ROUNDING) <= focal <= longest * (1 + ROUNDING):
            return None
        return (
            f"a focal length of {focal:g} pixels is no lens's for {size[0]}x{size[1]} pixels; "
            f"give {shortest:.0f} to {longest:.0f}"
        )

    def restored(self, camera: Camera, row: int) -> Camera:
        """Return the camera of one photograph with its aspect, focal length and principal point
        exactly as given where they are fixed, undoing what rounding did to them."""
        if not isinstance(self.aspect, Prior):
            fixed = [1.0] if self.aspect is None else self.aspect[row]
            camera = replace(camera, aspect=as_array(fixed, camera.aspect))
        focal, point = self.focal, self.principal_point
        if focal is not None and not isinstance(focal, Prior):
            camera = replace(camera, f=as_array(focal[row], camera.f))
        if point is not None and not isinstance(point, Prior):
            camera = replace(camera, c=as_array(point[row, None], camera.c))
        return camera


def select_rows(known: Rows, index: Sequence[int]) -> Rows:
    """What is known of some of the images."""
    if isinstance(known, Prior):
        return Prior(known.value[list(index)], known.sigma[list(index)])
    return None if known is None else known[list(index)]


def _rows(known: Known, images: Array, width: int, sigma_width: int | None = None) -> Rows:
    if known is None:
        return None
    if isinstance(known, Prior):
        sigma = rows("sigma", known.sigma, images, sigma_width or width, spread=True)
        return Prior(rows("value", known.value, images, width), sigma)
    return rows("value", known, images, width)


@records.dataclass(frozen=True)
class Mapping:
    """How the pixels of B originals map to those of their fields: scale * (pixel - corner)."""

    scale: Array
    """(B, 2)."""
    corner: Array
    """(B, 2) pixels of the original."""

    @classmethod
    def create(
        cls, views: Sequence[Window], sizes: Sequence[tuple[int, int]], like: Array | None = None
    ) -> Mapping:
        """From the views that fields of these sizes (width, height) show of their originals; in
        the library of ``like`` (``as_doubles``)."""
        window = as_doubles([(v.width, v.height) for v in views], like)
        corner = as_doubles([(v.left, v.top) for v in views], like)
        return cls(as_doubles(sizes, like) / window, corner)

    @property
    def aspect(self) -> Array:
        """(B,) fx / fy of the fields of square pixels."""
        return self.scale[:, 0] / self.scale[:, 1]

    def aspect_of(self, given: Given) -> Array | Prior:
        """fx / fy of the fields, (B,) each."""
        known, stretch = given.aspect, self.aspect
        if isinstance(known, Prior):
            return Prior(known.value[:, 0] * stretch, known.sigma[:, 0] * stretch)
        return stretch if known is None else known[:, 0] * stretch

    def to_fields(self, given: Given) -> Given:
        """What is known in pixels of the originals, in pixels of the fields."""
        shift = -self.corner * self.scale
        return replace(
            given,
            focal=_moved(given.focal, self.scale[:, 1:]),
            principal_point=_moved(given.principal_point, self.scale, shift),
        )


def _divide_sigma(known: Rows, factor: float) -> Rows:
    return Prior(known.value, known.sigma / factor) if isinstance(known, Prior) else known


def _moved(known: Rows, scale: Array, shift: Array | float = 0.0) -> Rows:
    if isinstance(known, Prior):
        return Prior(known.value * scale + shift, known.sigma * scale)
    return None if known is None else known * scale + shift


def centres(sizes: Sequence[tuple[int, int]], like: Array | None = None) -> Array:
    """(B, 2) middles of images of these sizes (width, height); in the library of ``like``."""
    return 0.5 * as_doubles(sizes, like)
