"""What the caller knows of the photographs, carried over to what the network sees of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from geocalib.arrays import Array, as_array, as_doubles
from geocalib.cameras.base import CameraModel
from geocalib.cameras.camera import Camera
from geocalib.errors import PriorError
from geocalib.geometry.view import View
from geocalib.records import dataclass
from geocalib.solver.angles import focal_of_view, known_gravity, known_view
from geocalib.solver.coupling import Coupling
from geocalib.solver.priors import Known, Prior, gather_priors, gravity_sigma_width, rows
from geocalib.solver.state import focal_range

ROUNDING = 1e-9

Rows = Array | Prior | None
"""Nothing, hard values, or a soft prior; arrays of a row per image."""


@dataclass(frozen=True)
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
        """From arguments that hold one for all images or one per image, checked as ``fit`` does."""
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
        """What is known of some of the images."""

        def chosen(known: Rows) -> Rows:
            if isinstance(known, Prior):
                return Prior(known.value[list(index)], known.sigma[list(index)])
            return None if known is None else known[list(index)]

        return Given(
            chosen(self.focal),
            chosen(self.gravity),
            chosen(self.distortion),
            chosen(self.principal_point),
            chosen(self.aspect),
            chosen(self.view),
        )

    def sized(self, sizes: Sequence[tuple[int, int]]) -> Given:
        """With the focal lengths that the fields of view give images of these (width, height)."""
        if self.view is None:
            return self
        view = self.view.value if isinstance(self.view, Prior) else self.view
        heights = as_array(sizes, view)[:, 1:]
        return replace(self, focal=focal_of_view(self.view, heights), view=None)

    @property
    def told_log_f(self) -> list[float] | None:
        """The inverse variance of log f of each image by its prior; None without one."""
        known = self.focal
        if not isinstance(known, Prior):
            return None
        told: list[float] = ((known.value / known.sigma) ** 2)[:, 0].tolist()
        return told

    def before_scaling(
        self, gravity: float = 1.0, focal: float = 1.0, distortion: float = 1.0
    ) -> Given:
        """As a fit has to be told whose sigmas are multiplied by these factors in the end
        (``FitResult.with_sigmas_scaled``): what is known must not become surer by that."""
        return replace(
            self,
            focal=_vaguer(self.focal, focal),
            gravity=_vaguer(self.gravity, gravity),
            distortion=_vaguer(self.distortion, distortion),
        )

    def misfit(self, row: int, model: CameraModel, size: tuple[int, int]) -> str | None:
        """Why the focal length of an image of (width, height) cannot be, in words; None if it can:
        it is in pixels, so that its image has to be seen first."""
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
        """The camera of one original without what rounding did to its aspect, focal length and
        principal point where they are fixed."""
        if not isinstance(self.aspect, Prior):
            fixed = [1.0] if self.aspect is None else self.aspect[row]
            camera = replace(camera, aspect=as_array(fixed, camera.aspect))
        focal, point = self.focal, self.principal_point
        if focal is not None and not isinstance(focal, Prior):
            camera = replace(camera, f=as_array(focal[row], camera.f))
        if point is not None and not isinstance(point, Prior):
            camera = replace(camera, c=as_array(point[row, None], camera.c))
        return camera


def _rows(known: Known, images: Array, width: int, sigma_width: int | None = None) -> Rows:
    if known is None:
        return None
    if isinstance(known, Prior):
        sigma = rows("sigma", known.sigma, images, sigma_width or width, spread=True)
        return Prior(rows("value", known.value, images, width), sigma)
    return rows("value", known, images, width)


@dataclass(frozen=True)
class Mapping:
    """How the pixels of B originals map to those of their fields: scale * (pixel - corner)."""

    scale: Array
    """(B, 2)."""
    corner: Array
    """(B, 2) pixels of the original."""

    @classmethod
    def create(
        cls, views: Sequence[View], sizes: Sequence[tuple[int, int]], like: Array | None = None
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


def _vaguer(known: Rows, factor: float) -> Rows:
    return Prior(known.value, known.sigma / factor) if isinstance(known, Prior) else known


def _moved(known: Rows, scale: Array, shift: Array | float = 0.0) -> Rows:
    if isinstance(known, Prior):
        return Prior(known.value * scale + shift, known.sigma * scale)
    return None if known is None else known * scale + shift


def centres(sizes: Sequence[tuple[int, int]], like: Array | None = None) -> Array:
    """(B, 2) middles of images of these sizes (width, height); in the library of ``like``."""
    return 0.5 * as_doubles(sizes, like)
