"""What calibrating one image gives: its camera, gravity and how sure they are, or why not.

Both outcomes travel as one record of plain JSON values, laid out in ``geocalib.result.schema``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from geocalib.arrays import Array, to_numpy
from geocalib.cameras import Camera
from geocalib.errors import CameraError, ConfigError, FormatError
from geocalib.geometry import gravity as sphere
from geocalib.geometry.fields import ALONG_PITCH, CX, CY, LOG_F, Fields
from geocalib.geometry.horizon import horizon as horizon_points
from geocalib.geometry.orientation import UNDOES
from geocalib.geometry.ruler import Ruler, checked_ruler
from geocalib.result.evidence import DrawnCheck, Lens, Lines, PriorCheck, agreements
from geocalib.result.record import FRAMES, Frame, Values, parse, to_text
from geocalib.result.ruler import MeasuredRuler, measured
from geocalib.result.schema import RECORD, SCHEMA, write
from geocalib.result.uncertainty import ALL_TRUSTED, Trust, Uncertainty, with_sigma
from geocalib.solver import FitResult, Status

if TYPE_CHECKING:
    from geocalib.imaging.read import ImageSource
    from geocalib.imaging.warp import Warped

DOUBLES = {(np.ndarray, np.dtype(np.float64))}

OUTLIER = "outlier"
"""The status of an image that does not show the camera which the others of its group show."""


@dataclass(frozen=True, eq=False)
class Calibration:
    """The camera and gravity of one image. Two are equal if their records are."""

    ok: ClassVar[Literal[True]] = True
    """Whether there is an answer; ``trusted`` tells whether it is a good one."""
    image: str | None
    """The path as it was given, if there was one."""
    cameras: Camera
    """The camera of the original image, a batch of 1, as functions on many images take it. All
    arrays are NumPy's, in float64."""
    gravity: Array
    """(3,) unit vector in the camera frame, pointing down."""
    sigma: Uncertainty
    covariance: Array
    """(P, P) of the free parameters."""
    parameters: tuple[str, ...]
    """Names of the free parameters, as in ``FitResult``."""
    status: str
    """How the fit ended, in the words of ``geocalib.Status``."""
    warnings: tuple[str, ...] = ()
    """Reasons to doubt the answer."""
    trust: Trust = ALL_TRUSTED
    """The parts of the answer that are trusted."""
    fields: Fields | None = field(default=None, repr=False)
    """What the network saw, at its resolution or at that of the image, where it was wanted; not
    in the record."""
    lines: Lines | None = field(default=None, repr=False)
    """What became of straight lines, where they were looked for."""
    priors: tuple[PriorCheck, ...] = ()
    """What sensors said, against the picture alone, where there were any."""
    drawn: tuple[DrawnCheck, ...] = ()
    """Lines that a person drew, and how well they agree."""
    ruler: MeasuredRuler | None = None
    """A known length, and how high the camera stands by it, where there is one."""
    lens: Lens | None = None
    """The lens families that were compared, where the camera model was not named."""
    frame: Frame = "upright"
    """The frame of all values: the upright picture, or the stored pixels."""
    orientation: int | None = 1
    """By EXIF, 1 to 8: how the stored pixels are turned to be upright; None if it is not known."""

    def __post_init__(self) -> None:
        camera, free = self.cameras, len(self.parameters)
        arrays = (camera.f, camera.c, camera.distortion, self.gravity, self.covariance)
        if {(type(array), array.dtype) for array in arrays} != DOUBLES:
            raise CameraError("a calibration holds arrays of NumPy in float64")
        if len(camera.f) != 1 or self.gravity.shape != (3,):
            raise CameraError(
                f"a calibration holds one camera and a gravity (3,), got {len(camera.f)} cameras "
                f"and {tuple(self.gravity.shape)}"
            )
        if self.covariance.shape != (free, free):
            raise CameraError(
                f"covariance must be ({free}, {free}) to go with the parameters "
                f"({', '.join(self.parameters)}), got {tuple(self.covariance.shape)}"
            )
        # As plain numbers: of so few, NumPy takes four times as long.
        numbers = [x for array in arrays[:4] for x in array.ravel().tolist()]
        if not all(map(math.isfinite, numbers)):
            raise CameraError(f"{self.image}: the camera or gravity is not finite: it is a Failure")

    @classmethod
    def from_fit(
        cls,
        fit: FitResult,
        index: int,
        camera: Camera,
        image: str | None = None,
        warnings: Sequence[str] = (),
        fields: Fields | None = None,
    ) -> Calibration:
        """The calibration of one image of a fit.

        camera: a batch of 1, the fitted camera carried over to the original image (its resizing
        and cropping undone). What the fit says in pixels is scaled along, and the sigmas of the
        fields of view are those of the original image.
        """
        camera = _own_camera(camera)
        covariance = _own(fit.covariance[index])
        if CX in fit.parameters:
            scale = (camera.focal / _own_camera(fit.camera[index]).focal)[0].tolist()
            factors = dict(zip((CX, CY), scale, strict=True))
            units = np.array([factors.get(name, 1.0) for name in fit.parameters])
            covariance = units[:, None] * covariance * units
        gravity = _unit(_own(fit.gravity[index]))
        return cls(
            image=image,
            cameras=camera,
            gravity=gravity,
            sigma=Uncertainty.of(camera, gravity, covariance, fit.parameters),
            covariance=covariance,
            parameters=fit.parameters,
            status=str(fit.status[index]),
            warnings=tuple(warnings),
            fields=fields,
        )

    def moved(
        self, camera: Camera, gravity: Array, covariance: Array, lines: Lines | None = None
    ) -> Calibration:
        """The same image's with a better estimate of the same free parameters.

        camera: a batch of 1; gravity (3,); covariance (P, P). All sigmas follow from it. What is
        not free stays exactly as it was.
        """
        camera, covariance = _own_camera(camera), _own(covariance)
        gravity = _own(gravity)
        names = self.parameters
        if ALONG_PITCH not in names:
            gravity = self.gravity
        if LOG_F not in names:
            camera = replace(camera, f=self.cameras.f)
        if CX not in names:
            camera = replace(camera, c=self.cameras.c)
        gravity = _unit(gravity)
        return replace(
            self,
            cameras=camera,
            gravity=gravity,
            sigma=Uncertainty.of(camera, gravity, covariance, names, self.lens is not None),
            covariance=covariance,
            lines=lines,
        )

    def with_lens(self, lens: Lens, covariance: Array) -> Calibration:
        """With the lens families that were compared, and what they add to the covariance (P, P).

        From here on, fields of view are angles between border rays.
        """
        names = self.parameters
        sigma = Uncertainty.of(self.cameras, self.gravity, covariance, names, between_borders=True)
        return replace(self, lens=lens, covariance=covariance, sigma=sigma)

    def measured(self, ruler: Ruler) -> Calibration:
        """With the height of the camera above the ground, by a known length: files for programs
        that show a ground have its scale. In pixels of this frame."""
        names, checked = self.parameters, checked_ruler(ruler)
        found = measured(checked, self.cameras, self.gravity, self.covariance, names)
        return replace(self, ruler=found)

    def at(self, width: int, height: int) -> Calibration:
        """The calibration of the same image resampled to width x height, pixels.

        Sigmas, covariance and the ``ruler`` go along. What was measured on the image itself
        (``fields``, and ``priors`` and ``drawn`` in its pixels) does not.
        """
        camera = self.cameras.resize(width, height)
        scale = dict(zip((CX, CY), (camera.size / self.cameras.size)[0].tolist(), strict=True))
        units = np.array([scale.get(name, 1.0) for name in self.parameters])
        down, right = scale[CY], scale[CX]
        sigma, ruler = self.sigma, self.ruler
        return replace(
            self,
            cameras=camera,
            covariance=units[:, None] * self.covariance * units,
            sigma=replace(
                sigma,
                focal=sigma.focal * down,
                aspect=sigma.aspect * right / down,
                principal_point=(
                    sigma.principal_point[0] * right,
                    sigma.principal_point[1] * down,
                ),
            ),
            fields=None,
            priors=(),
            drawn=(),
            ruler=None if ruler is None else ruler.mapped(lambda x, y: (right * x, down * y)),
        )

    @property
    def camera(self) -> Camera:
        """The camera of the original image, whose arrays have no batch axis: ``f`` (),
        ``size`` (2,), ``K`` (3, 3)."""
        return self.cameras.single()

    @property
    def width(self) -> int:
        """The width of the photo in pixels."""
        return round(self.cameras.size[0, 0].item())

    @property
    def height(self) -> int:
        """The height of the photo in pixels."""
        return round(self.cameras.size[0, 1].item())

    @property
    def camera_model(self) -> str:
        return self.cameras.model.name

    @property
    def fx(self) -> float:
        """The horizontal focal length in pixels."""
        return self.cameras.focal[0, 0].item()

    @property
    def fy(self) -> float:
        """The vertical focal length in pixels."""
        return self.cameras.f.item()

    @property
    def cx(self) -> float:
        """Pixels; the centre of the first pixel is at 0.5."""
        return self.cameras.c[0, 0].item()

    @property
    def cy(self) -> float:
        """Pixels; the centre of the first pixel is at 0.5."""
        return self.cameras.c[0, 1].item()

    @property
    def K(self) -> Array:
        """The calibration matrix, (3, 3), in pixels."""
        return self.cameras.K[0]

    def K_at(self, width: float, height: float) -> Array:
        """(3, 3) calibration matrix of the image resampled to width x height, pixels.

        ``K_at(1, 1)`` is the normalised one, which knows no pixels: both sides of the image are 1.
        """
        return self.cameras.resize(width, height).K[0]

    @property
    def fov_x(self) -> float:
        """The horizontal field of view in degrees by fx and the width alone, as tools for depth
        take it, whatever the lens: that of a pinhole camera."""
        return math.degrees(2 * math.atan2(0.5 * self.width, self.fx))

    @property
    def f_px(self) -> float:
        """fx under the name that Depth Pro has for it: the focal length in pixels of the width."""
        return self.fx

    @property
    def T_WC(self) -> Array:
        """(4, 4) pose: from the camera frame (x right, y down, z forward) to a level world.

        The world's z points up, gravity along (0, 0, -1); the camera stands at its origin and heads
        along y, as one photo tells neither place nor heading.
        """
        level_to_world = np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])
        pose = np.eye(4)
        pose[:3, :3] = level_to_world @ sphere.world_from_camera(self.gravity)
        return pose

    @property
    def distortion(self) -> tuple[float, ...]:
        """In the order of the camera model."""
        return tuple(self.cameras.distortion[0].tolist())

    @property
    def roll_deg(self) -> float:
        return math.degrees(sphere.to_roll_pitch(self.gravity)[0].item())

    @property
    def pitch_deg(self) -> float:
        return math.degrees(sphere.to_roll_pitch(self.gravity)[1].item())

    @property
    def vfov_deg(self) -> float:
        """Between the rays of the top and bottom middle, where the camera model was not named; else
        as ``Camera.vfov``. NaN where the image of a wide lens reaches beyond what it shows."""
        camera = self.cameras
        return math.degrees((camera.vfov if self.lens is None else camera.border_vfov).item())

    @property
    def hfov_deg(self) -> float:
        """Between the rays of the left and right middle; likewise."""
        camera = self.cameras
        return math.degrees((camera.hfov if self.lens is None else camera.border_hfov).item())

    @property
    def trusted(self) -> bool:
        """Whether the fit converged and nothing speaks against its answer: gravity, field of view
        and lens are all to be believed."""
        return self.trusted_gravity and self.trusted_fov and self.trusted_lens

    @property
    def trusted_gravity(self) -> bool:
        """Whether roll and pitch are to be believed, whatever is known of the lens."""
        return self.status == Status.CONVERGED and self.trust.gravity

    @property
    def trusted_fov(self) -> bool:
        """Whether field of view and focal length are trusted."""
        return self.status == Status.CONVERGED and self.trust.fov

    @property
    def trusted_lens(self) -> bool:
        """Whether the distortion is trusted, and the kind of lens if it was not named.
        Of a model that was named, none were compared."""
        return self.status == Status.CONVERGED and self.trust.lens

    def in_frame(self, frame: Frame) -> Calibration:
        """The same, of the picture as it is seen ("upright", as answers are) or of the pixels as
        they lie in the file ("stored"), as programs see it that do not heed EXIF orientation. What
        the network saw, and the segments of lines, stay behind."""
        if frame not in FRAMES:
            raise ConfigError(f"frame is {frame!r}; known: {', '.join(FRAMES)}")
        if frame == self.frame:
            return self
        if self.orientation is None:
            raise FormatError(
                f"{self.image}: this older record does not say how its file is turned; calibrate "
                f"it again, or write the {self.frame} frame"
            )
        if self.orientation == 1:
            return replace(self, frame=frame)
        from geocalib.result.frame import turned

        undone = UNDOES.get(self.orientation, self.orientation)
        new = turned(self, self.orientation if frame == "upright" else undone)
        return replace(
            self,
            cameras=new.camera,
            gravity=new.gravity,
            sigma=Uncertainty.of(
                new.camera, new.gravity, new.covariance, new.parameters, self.lens is not None
            ),
            covariance=new.covariance,
            parameters=new.parameters,
            fields=None,
            lines=new.lines,
            lens=new.lens,
            priors=new.priors,
            drawn=new.drawn,
            ruler=new.ruler,
            frame=frame,
        )

    def horizon(self, samples: int = 256) -> Array:
        """(N, 2) pixels of the horizon from left to right, N <= samples; none if out of view."""
        pixels, valid = horizon_points(self.cameras, self.gravity[None], samples)
        return pixels[valid]

    def undistort(self, image: ImageSource, border: str = "keep") -> Warped:
        """The image as a pinhole camera takes it (``geocalib.imaging.warp``)."""
        from geocalib.imaging import warp

        return warp.undistort(image, self.cameras, border)

    def upright(self, image: ImageSource, border: str = "keep") -> Warped:
        """The image turned in its plane until its roll is 0 (``geocalib.imaging.warp``)."""
        from geocalib.imaging import warp

        return warp.upright(image, self.cameras, self.gravity, border)

    def rectify(self, image: ImageSource, border: str = "keep") -> Warped:
        """The image as a level pinhole camera takes it (``geocalib.imaging.warp``)."""
        from geocalib.imaging import warp

        return warp.rectify(image, self.cameras, self.gravity, border)

    def to_dict(self) -> dict[str, Any]:
        """The record; what is not known is None."""
        return _record(self)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any], source: str = "record") -> Calibration:
        """The calibration of a record; errors name the source. Exact: ``to_dict`` gives it back."""
        values = Values.of(record, source)
        if values.failed:
            raise FormatError(f"{source}: holds no calibration: {values['error']}")
        return cls(
            image=values["image"],
            cameras=values.camera(),
            gravity=values.gravity(),
            sigma=values.sigma(),
            covariance=values.covariance(),
            parameters=values["parameters"],
            status=values["status"],
            warnings=values["warnings"],
            trust=values.trust(),
            lines=values.lines(),
            lens=values.lens(),
            priors=values.priors(),
            drawn=values.drawn(),
            ruler=values.ruler(),
            frame=values.frame(),
            orientation=values.orientation(),
        )

    def to_json(self) -> str:
        """The record on one line of ASCII."""
        return to_text(self.to_dict())

    @classmethod
    def from_json(cls, text: str, source: str = "record") -> Calibration:
        """Read one line that ``to_json`` wrote; errors name the source."""
        return cls.from_dict(parse(text, source), source)

    @property
    def verdict(self) -> tuple[str, ...]:
        """Whether to believe it, in words: "ok", or what of it is and the doubts, and what agrees
        with it."""
        agreed = agreements(self.priors)
        agreed += [] if self.ruler is None else [str(self.ruler)]
        if self.trusted:
            return ("ok", *self.warnings, *agreed)
        good = [name for name, trusted in self._gates.items() if trusted]
        believed = [f"{' and '.join(good)} ok"] if good else []
        unsaid = not any(self.status in warning for warning in self.warnings)
        status = [str(self.status)] if unsaid and self.status != Status.CONVERGED else []
        return (*believed, *status, *self.warnings, *agreed)

    @property
    def _gates(self) -> dict[str, bool]:
        """What was requested, in words, and whether it is to be believed."""
        gates = {"gravity": self.trusted_gravity, "field of view": self.trusted_fov}
        lens_free = self.lens is not None or bool(self.cameras.model.parameters)
        return {**gates, "lens": self.trusted_lens} if lens_free else gates

    def __str__(self) -> str:
        """The row of it in the table of ``geocalib calibrate``, on one line."""
        sigma, names = self.sigma, self.cameras.model.parameters
        distortion = zip(names, self.distortion, sigma.distortion, strict=True)
        parts = [
            f"roll {with_sigma(self.roll_deg, sigma.roll_deg, '+z.2f', '°')}",
            f"pitch {with_sigma(self.pitch_deg, sigma.pitch_deg, '+z.2f', '°')}",
            f"vFoV {with_sigma(self.vfov_deg, sigma.vfov_deg, '.1f', '°')}",
            f"focal {with_sigma(self.fy, sigma.focal, '.0f', ' px')}",
            *(f"{name} {with_sigma(value, s, '+.4f')}" for name, value, s in distortion),
            "; ".join(self.verdict),
        ]
        return f"{self.image or 'image'}: {', '.join(parts)}"

    def __repr__(self) -> str:
        return f"<Calibration {self}>"

    def _repr_html_(self) -> str:
        """For notebooks: the photo with what was seen, where its file is there, above the row."""
        # Drawing stands on calibrations, and not the other way round: it is found by its name.
        return str(import_module("geocalib.overlay").as_html(self))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Calibration):
            return NotImplemented
        return self.to_dict() == other.to_dict()


@dataclass(frozen=True)
class Failure:
    """An image without an answer."""

    ok: ClassVar[Literal[False]] = False
    """Whether there is an answer."""
    image: str | None
    """The path as it was given, if there was one."""
    width: int | None
    """Pixels, if the image could be read."""
    height: int | None
    """Pixels, if the image could be read."""
    error: str
    """Why there is no answer, in one line."""
    status: str | None = None
    """``OUTLIER`` if the image was left out, as it does not show the camera of its group."""

    def __post_init__(self) -> None:
        if not self.error:
            raise FormatError(f"{self.image}: a failure needs an error, got an empty one")

    def to_dict(self) -> dict[str, Any]:
        """The record; what is not known is None, and lists are empty."""
        return _record(self)

    def to_json(self) -> str:
        """The record on one line of ASCII."""
        return to_text(self.to_dict())

    def __str__(self) -> str:
        """Why there is no answer."""
        return self.error

    @classmethod
    def from_dict(cls, record: Mapping[str, Any], source: str = "record") -> Failure:
        """The failure of a record; errors name the source."""
        values = Values.of(record, source)
        if not values.failed:
            raise FormatError(f"{source}: holds a calibration, not a failure")
        width, height = values.pixels("width"), values.pixels("height")
        return cls(values["image"], width, height, values["error"], values["status"])


Outcome = Calibration | Failure
"""What there is for each image."""


def read_outcome(record: Mapping[str, Any], source: str) -> Outcome:
    """The calibration or failure of a record; errors name the source."""
    kind = Calibration if record.get("error") is None else Failure
    return kind.from_dict(record, source)


def _own(value: Array) -> Array:
    """A copy in float64 of an array of any library."""
    plain = value if isinstance(value, np.ndarray) else to_numpy(value)
    return np.array(plain, np.float64)


def _unit(vector: Array) -> Array:
    """A unit vector in single precision is not quite one in double precision."""
    return vector / np.linalg.norm(vector)


def _own_camera(camera: Camera) -> Camera:
    return camera.map(_own)


def _record(outcome: Outcome) -> dict[str, Any]:
    return {**write(outcome, RECORD), "schema": SCHEMA}
