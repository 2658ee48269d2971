"""What is known as angles, in degrees, turned into what a fit takes."""

from __future__ import annotations

import math
from dataclasses import replace

from geocalib.arrays import Array, namespace
from geocalib.cameras.base import CameraModel
from geocalib.errors import PriorError
from geocalib.geometry.gravity import from_roll_pitch
from geocalib.solver.priors import Known, Prior, rows

VAGUE_DEG = 6e4
"""Sigma of an angle of which nothing is known beside another that is."""


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
    """(B,) radians."""
    return math.radians(1) * rows(name, given, images, 1)[:, 0]
