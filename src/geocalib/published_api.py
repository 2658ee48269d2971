"""The interface of the published package, so that code written for it runs unchanged.

A skin over ``Calibrator``, which does more and says it in clearer types: ``docs/migrating.md``.
Here gravity points UP and angles are in radians, as published.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any
from warnings import warn

import numpy as np

from geocalib.arrays import Array, is_tensor, namespace, to_numpy
from geocalib.cameras import Camera
from geocalib.errors import GET_TORCH, ConfigError, ImageError, MissingPackageError
from geocalib.geometry.fields import ALONG_ROLL, LOG_F, Fields, pixel_grid
from geocalib.geometry.gravity import from_roll_pitch, to_roll_pitch
from geocalib.imaging.read import ImageSource, read_photo
from geocalib.pipeline.calibrator import Calibrator
from geocalib.result.calibration import Calibration

WEIGHTS = {"pinhole": "published-pinhole", "distorted": "published-distorted"}
"""Our names of the published weights; any other name is ours already."""

MODELS = {"simple_divisional": "division"}
"""Our names of the published camera models, where they differ."""


@dataclass(frozen=True)
class PublishedCamera:
    """B cameras, read as the published ones are."""

    camera: Camera
    """As everywhere else in this package."""

    def __len__(self) -> int:
        return len(self.camera)

    def __getitem__(self, index: Any) -> PublishedCamera:
        """Some of them; a single one is a batch of 1."""
        return replace(self, camera=self.camera[index])

    def to(self, *args: Any, **kwargs: Any) -> PublishedCamera:
        """As the method of tensors."""
        return replace(self, camera=self.camera.to(*args, **kwargs))

    def cpu(self) -> PublishedCamera:
        """On the processor; arrays of NumPy are there."""
        return self.to("cpu") if is_tensor(self.camera.f) else self

    @property
    def size(self) -> Array:
        """(B, 2) width and height, pixels."""
        return self.camera.size

    @property
    def f(self) -> Array:
        """(B, 2) fx and fy, pixels."""
        return self.camera.focal

    @property
    def c(self) -> Array:
        """(B, 2) principal point, pixels."""
        return self.camera.c

    @property
    def K(self) -> Array:
        """The calibration matrix, (B, 3, 3)."""
        return self.camera.K

    @property
    def vfov(self) -> Array:
        """The vertical field of view, (B,) radians."""
        return self.camera.vfov

    @property
    def hfov(self) -> Array:
        """The horizontal field of view, (B,) radians."""
        return self.camera.hfov

    @property
    def dist(self) -> Array:
        """(B, D) distortion, with zeros up to D = 2."""
        known = self.camera.distortion
        missing = self.camera.c[:, : max(0, 2 - known.shape[1])] * 0
        return namespace(known).concat([known, missing], axis=1)

    @property
    def k1(self) -> Array:
        """(B,) the first of them."""
        return self.dist[:, 0]

    def undistort_image(self, img: Array) -> Array:
        """The image (3, H, W) or (1, 3, H, W) of one camera as the pinhole camera takes it that has
        the same size, focal length and principal point; black where nothing was seen."""
        import cv2

        camera = self.camera.map(lambda value: to_numpy(value).astype(np.float64))
        width, height = camera.size[0].astype(int).tolist()
        straight = Camera.create("pinhole", camera.f, camera.size, None, camera.c, camera.aspect)
        rays, _ = straight.unproject(pixel_grid(width, height, camera.f)[None])
        pixels, seen = camera.project(rays)
        # OpenCV counts from the middle of the first pixel.
        where = np.where(seen[..., None], pixels - 0.5, -1e6)[0].astype(np.float32)
        bands = to_numpy(img).reshape(-1, height, width).astype(np.float32)
        x, y = where[..., 0], where[..., 1]
        made = np.stack([cv2.remap(band, x, y, cv2.INTER_LINEAR) for band in bands])
        if is_tensor(img):
            return img.new_tensor(made).reshape(img.shape)
        return made.reshape(img.shape)


@dataclass(frozen=True)
class PublishedGravity:
    """B gravities, which point UP: (0, -1, 0) for a level camera."""

    vec3d: Array
    """(B, 3) unit vectors in the camera frame."""

    @classmethod
    def from_rp(cls, roll: Array, pitch: Array) -> PublishedGravity:
        """Those of roll and pitch, (B,) or single, in radians."""
        return cls(-from_roll_pitch(roll, pitch).reshape(-1, 3))

    def __len__(self) -> int:
        return len(self.vec3d)

    def __getitem__(self, index: Any) -> PublishedGravity:
        """Some of them; a single one is a batch of 1."""
        return replace(self, vec3d=self.vec3d[index].reshape(-1, 3))

    def to(self, *args: Any, **kwargs: Any) -> PublishedGravity:
        """As the method of tensors."""
        return replace(self, vec3d=self.vec3d.to(*args, **kwargs))

    def cpu(self) -> PublishedGravity:
        """On the processor; arrays of NumPy are there."""
        return self.to("cpu") if is_tensor(self.vec3d) else self

    @property
    def rp(self) -> Array:
        """(B, 2) roll and pitch, radians, with the signs they have everywhere."""
        return namespace(self.vec3d).stack(to_roll_pitch(-self.vec3d), axis=-1)

    @property
    def roll(self) -> Array:
        """The roll of the camera, (B,) radians."""
        return self.rp[:, 0]

    @property
    def pitch(self) -> Array:
        """The pitch of the camera, (B,) radians."""
        return self.rp[:, 1]


class GeoCalib:
    """A calibrator that is called as the published model is."""

    def __init__(self, weights: str | None = None) -> None:
        """weights: "pinhole" and "distorted" are the published ones, which are downloaded at their
        first use; "lean" and "large" ours. None: "lean", which is in this package."""
        if weights is None:
            _say_which()
            weights = "lean"
        self._weights = WEIGHTS.get(weights, weights)
        self._calibrator = Calibrator(self._weights, device="cpu")

    def to(self, device: Any) -> GeoCalib:
        """Move the network, and return this. device: a torch.device, or its name."""
        if str(device) != self._calibrator.device:
            self._calibrator = Calibrator(self._weights, device=str(device))
        return self

    def cpu(self) -> GeoCalib:
        """The same on the processor, as ``to("cpu")``."""
        return self.to("cpu")

    def cuda(self) -> GeoCalib:
        """The same on the GPU, as ``to("cuda")``."""
        return self.to("cuda")

    def eval(self) -> GeoCalib:
        """Nothing changes: it is not trained here."""
        return self

    def parameters(self) -> Iterator[Any]:
        """A tensor on the network's device, for those who ask where that is; without numbers."""
        yield need_torch().empty(0, device=self._calibrator.device)

    def load_image(self, path: ImageSource) -> Array:
        """(3, H, W) RGB in [0, 1], upright."""
        return load_image(path)

    def calibrate(
        self,
        img: Any,
        camera_model: str = "pinhole",
        priors: Mapping[str, Any] | None = None,
        shared_intrinsics: bool = False,
    ) -> dict[str, Any]:
        """The cameras of an image (3, H, W) or of B of one size (B, 3, H, W).

        img: a tensor, which gets tensors for answers; an array of NumPy or anything else that
        ``Calibrator`` reads gets arrays. priors: what is known: "focal" (pixels; a number or (B,))
        and "gravity" (pointing UP; (3,), (B, 3) or a result's). shared_intrinsics: one camera took
        all images.
        """
        focal, gravity = _known(priors or {})
        outcomes = self._calibrator.calibrate(
            _images(img),
            MODELS.get(camera_model, camera_model),
            focal=focal,
            gravity=gravity,
            shared_intrinsics=shared_intrinsics,
            keep_fields="full",
            lines="off",
            prior="none",
        )
        answers = []
        for outcome in outcomes:
            if not outcome.ok:
                raise ImageError(outcome.error)
            answers.append(outcome)
        return _results(answers, self._calibrator.device if is_tensor(img) else None)

    __call__ = calibrate


def load_image(path: ImageSource) -> Array:
    """(3, H, W) RGB in [0, 1], upright: a tensor where torch is installed, else an array."""
    pixels = read_photo(path, short_side=None).pixels.transpose(2, 0, 1)
    image = np.ascontiguousarray(pixels, np.float32) / 255
    try:
        return need_torch().from_numpy(image)
    except MissingPackageError:
        return image


@cache
def _say_which() -> None:
    """Warn of the weights, once in a process."""
    warn(
        "GeoCalib() takes the weights of this package, lean; weights='pinhole' downloads those of "
        "the paper",
        stacklevel=3,
    )


def need_torch() -> Any:
    """torch, or an error that says how to get it."""
    try:
        import torch
    except ModuleNotFoundError as missing:
        raise MissingPackageError(f"tensors need torch: {GET_TORCH}") from missing
    return torch


def _images(img: Any) -> list[Any]:
    """The images of a batch, or the single one."""
    if not isinstance(img, np.ndarray) and not is_tensor(img):
        return [img]
    images = list(img) if img.ndim == 4 else [img]
    if is_tensor(img):
        return images
    # Arrays of pictures have their channels in the end here, those of networks at the start.
    first = img.shape[-3] in (1, 3) and img.shape[-1] not in (1, 3, 4)
    return [np.moveaxis(image, 0, -1) for image in images] if first else images


def _known(priors: Mapping[str, Any]) -> tuple[Any, Array | None]:
    """The focal length and the gravity, pointing down."""
    unknown = priors.keys() - {"focal", "gravity"}
    if unknown:
        raise ConfigError(f"priors hold {', '.join(sorted(unknown))}; known: focal, gravity")
    gravity = priors.get("gravity")
    if gravity is None:
        return priors.get("focal"), None
    up = gravity.vec3d if isinstance(gravity, PublishedGravity) else gravity
    return priors.get("focal"), -np.asarray(to_numpy(up), np.float64)


def _results(answers: Sequence[Calibration], device: str | None) -> dict[str, Any]:
    """The published names of what was found, in single precision: tensors on a device, or arrays
    of NumPy."""

    def tensor(values: Any) -> Array:
        array = np.asarray(to_numpy(values), np.float32)
        return array if device is None else need_torch().as_tensor(array, device=device)

    def stacked(values: Sequence[Any]) -> Array:
        return tensor(np.stack(values))

    cameras = [answer.cameras for answer in answers]
    camera = Camera(
        model=cameras[0].model,
        f=stacked([one.f[0] for one in cameras]),
        c=stacked([one.c[0] for one in cameras]),
        distortion=stacked([one.distortion[0] for one in cameras]),
        size=stacked([one.size[0] for one in cameras]),
        aspect=stacked([one.aspect[0] for one in cameras]),
    )
    fields = Fields.concatenate([answer.fields for answer in answers if answer.fields is not None])
    sigmas = [answer.sigma for answer in answers]
    return {
        "camera": PublishedCamera(camera),
        "gravity": PublishedGravity(stacked([-answer.gravity for answer in answers])),
        "covariance": stacked([_covariance(answer) for answer in answers]),
        "up_field": tensor(fields.up),
        "latitude_field": tensor(fields.latitude),
        "up_confidence": tensor(fields.up_confidence),
        "latitude_confidence": tensor(fields.latitude_confidence),
        "roll_uncertainty": stacked([math.radians(one.roll_deg) for one in sigmas]),
        "pitch_uncertainty": stacked([math.radians(one.pitch_deg) for one in sigmas]),
        "gravity_uncertainty": stacked([math.radians(one.gravity_deg) for one in sigmas]),
        "vfov_uncertainty": stacked([math.radians(one.vfov_deg) for one in sigmas]),
        "focal_uncertainty": stacked([one.focal for one in sigmas]),
    }


def _covariance(answer: Calibration) -> Array:
    """(P, P) of roll and pitch, radians, the focal length, pixels, and the distortion, as far as
    they are free."""
    cos_pitch = math.cos(math.radians(answer.pitch_deg))
    units = {ALONG_ROLL: 1 / max(cos_pitch, 1e-9), LOG_F: answer.fy}
    factor = np.array([units.get(name, 1.0) for name in answer.parameters])
    return factor[:, None] * answer.covariance * factor
