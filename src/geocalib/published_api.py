"""The interface of the published package, so that code written for it runs unchanged.

A skin over ``Calibrator``, which does more and says it in clearer types: ``docs/migrating.md``.
Here gravity points UP and angles are in radians, as published.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from geocalib.arrays import Array
from geocalib.cameras import Camera
from geocalib.errors import GET_TORCH, ConfigError, ImageError, MissingPackageError
from geocalib.geometry.fields import ALONG_ROLL, LOG_F, Fields
from geocalib.geometry.gravity import to_roll_pitch
from geocalib.imaging import read_photo
from geocalib.pipeline.calibrator import Calibrator
from geocalib.result.calibration import Calibration

try:
    import torch
    from torch import Tensor
except ModuleNotFoundError as missing:
    raise MissingPackageError(f"GeoCalib needs torch: {GET_TORCH}") from missing

WEIGHTS = {"pinhole": "published-pinhole", "distorted": "published-distorted"}
"""Our names of the published weights; any other name is ours already."""

MODELS = {"simple_divisional": "division"}
"""Our names of the published camera models, where they differ."""


@dataclass(frozen=True)
class PublishedCamera:
    """B cameras, read as the published ones are."""

    camera: Camera
    """As everywhere else in this package."""

    @property
    def size(self) -> Tensor:
        """(B, 2) width and height, pixels."""
        return self.camera.size

    @property
    def f(self) -> Tensor:
        """(B, 2) fx and fy, pixels."""
        return self.camera.focal

    @property
    def c(self) -> Tensor:
        """(B, 2) principal point, pixels."""
        return self.camera.c

    @property
    def K(self) -> Tensor:
        """(B, 3, 3)."""
        return self.camera.K

    @property
    def vfov(self) -> Tensor:
        """(B,) radians."""
        return self.camera.vfov

    @property
    def hfov(self) -> Tensor:
        """(B,) radians."""
        return self.camera.hfov

    @property
    def dist(self) -> Tensor:
        """(B, D) distortion, with zeros up to D = 2."""
        missing = max(0, 2 - self.camera.distortion.shape[1])
        return torch.nn.functional.pad(self.camera.distortion, (0, missing))

    @property
    def k1(self) -> Tensor:
        """(B,) the first of them."""
        return self.dist[:, 0]


@dataclass(frozen=True)
class PublishedGravity:
    """B gravities, which point UP: (0, -1, 0) for a level camera."""

    vec3d: Tensor
    """(B, 3) unit vectors in the camera frame."""

    @property
    def rp(self) -> Tensor:
        """(B, 2) roll and pitch, radians, with the signs they have everywhere."""
        return torch.stack(to_roll_pitch(-self.vec3d), -1)

    @property
    def roll(self) -> Tensor:
        """(B,) radians."""
        return self.rp[:, 0]

    @property
    def pitch(self) -> Tensor:
        """(B,) radians."""
        return self.rp[:, 1]


class GeoCalib:
    """A calibrator that is called as the published model is."""

    def __init__(self, weights: str = "pinhole") -> None:
        """weights: "pinhole" and "distorted" are the published ones; "lean" and "large" ours."""
        self._weights = WEIGHTS.get(weights, weights)
        self._calibrator = Calibrator(self._weights, device="cpu")

    def to(self, device: str | torch.device) -> GeoCalib:
        """Move the network, and return this."""
        self._calibrator = Calibrator(self._weights, device=str(device))
        return self

    def load_image(self, path: str | PathLike[str]) -> Tensor:
        """(3, H, W) RGB in [0, 1], upright."""
        pixels = torch.tensor(read_photo(path, short_side=None).pixels)
        return pixels.permute(2, 0, 1) / 255

    def calibrate(
        self,
        img: Tensor,
        camera_model: str = "pinhole",
        priors: Mapping[str, Any] | None = None,
        shared_intrinsics: bool = False,
    ) -> dict[str, Any]:
        """The cameras of an image (3, H, W) or of B of one size (B, 3, H, W).

        priors: what is known: "focal" (pixels; a number or (B,)) and "gravity" (pointing UP; (3,),
        (B, 3) or a result's). shared_intrinsics: one camera took all images.
        """
        focal, gravity = _known(priors or {})
        outcomes = self._calibrator.calibrate(
            list(img) if img.dim() == 4 else [img],
            MODELS.get(camera_model, camera_model),
            focal=focal,
            gravity=gravity,
            shared_intrinsics=shared_intrinsics,
            keep_fields="full",
            lines="off",
        )
        answers = []
        for outcome in outcomes:
            if not outcome.ok:
                raise ImageError(outcome.error)
            answers.append(outcome)
        return _results(answers, torch.device(self._calibrator.device))


def _known(priors: Mapping[str, Any]) -> tuple[Any, Tensor | None]:
    """The focal length and the gravity, pointing down."""
    unknown = priors.keys() - {"focal", "gravity"}
    if unknown:
        raise ConfigError(f"priors hold {', '.join(sorted(unknown))}; known: focal, gravity")
    gravity = priors.get("gravity")
    if gravity is None:
        return priors.get("focal"), None
    up = gravity.vec3d if isinstance(gravity, PublishedGravity) else gravity
    return priors.get("focal"), -torch.as_tensor(up, dtype=torch.float64)


def _results(answers: Sequence[Calibration], device: torch.device) -> dict[str, Any]:
    """The published names of what was found, in single precision."""

    def tensor(values: Any) -> Tensor:
        return torch.as_tensor(values, dtype=torch.float32, device=device)

    def stacked(values: Sequence[Any]) -> Tensor:
        return tensor(np.stack(values))

    cameras = [answer.camera for answer in answers]
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
