"""Perspective fields by the names of the published package: of a result's camera and gravity."""

from __future__ import annotations

from geocalib.arrays import Array
from geocalib.geometry.fields import perspective_field
from geocalib.published_api import PublishedCamera, PublishedGravity


def get_perspective_field(
    camera: PublishedCamera, gravity: PublishedGravity
) -> tuple[Array, Array]:
    """The up-vectors (B, 2, H, W) and the latitudes (B, 1, H, W), radians, of B images."""
    up, latitude, _ = perspective_field(camera.camera, -gravity.vec3d)
    return up, latitude


def get_up_field(camera: PublishedCamera, gravity: PublishedGravity) -> Array:
    """(B, H, W, 2) unit vectors, x right and y down."""
    return _channels_last(get_perspective_field(camera, gravity)[0])


def get_latitude_field(camera: PublishedCamera, gravity: PublishedGravity) -> Array:
    """(B, H, W, 1) radians."""
    return _channels_last(get_perspective_field(camera, gravity)[1])


def _channels_last(field: Array) -> Array:
    return field.swapaxes(1, 2).swapaxes(2, 3)
