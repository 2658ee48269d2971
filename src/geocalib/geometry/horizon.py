"""Where the horizon runs in the image: a curve in general, a line for the pinhole camera."""

from __future__ import annotations

from geocalib.arrays import Array, cast, namespace, no_gradients, unstack
from geocalib.cameras import Camera
from geocalib.errors import CameraError
from geocalib.geometry.gravity import world_from_camera

SCAN = 1024
"""Azimuths tried in order to find where the horizon enters and leaves the image. A piece of it
shorter than about a thousandth of the view may go unseen."""

FINER, ROUNDS = 33, 8
"""Azimuths tried between the two around an end, and how often: it lies on the image border."""

INWARDS = 100
"""Roundings, relative to the horizon's length, by which its ends keep off the border: or rounding
would decide whether the image shows them."""


def horizon(camera: Camera, gravity: Array, samples: int = 256) -> tuple[Array, Array]:
    """The horizon of B cameras under gravity (B, 3): pixels (B, S, 2) and validity (B, S).

    The points are evenly spaced in azimuth, from the scene's left to its right, and begin and
    end where the horizon enters and leaves the image. A point is valid where it has a pixel
    inside the image: between the ends, too, a curved horizon may leave the image for a while.
    None is valid where the horizon is out of view.
    """
    xp = namespace(gravity)
    level = world_from_camera(gravity)
    with no_gradients():
        first, last = _azimuths_in_view(camera, gravity, level)
    hair = INWARDS * xp.finfo(gravity.dtype).eps
    steps = xp.linspace(hair, 1 - hair, samples, dtype=gravity.dtype, device=gravity.device)
    return _at_azimuths(camera, level, first + (last - first) * steps)


def horizon_line(camera: Camera, gravity: Array) -> Array:
    """(B, 3) line a x + b y + c = 0 of the horizon of B pinhole cameras under gravity (B, 3).

    The normal (a, b) has unit length and points below the horizon, so that a x + b y + c is a
    pixel's distance below it. Straight down or up the line lies at infinity: (0, 0, 1) or
    (0, 0, -1).
    """
    xp = namespace(gravity)
    if camera.model.name != "pinhole":
        raise CameraError(
            f"the horizon of {camera.model.name} is a curve; horizon_line takes pinhole cameras, "
            "horizon takes all"
        )
    # The ray ((x - cx) / fx, (y - cy) / fy, 1) is horizontal: its product with gravity is 0.
    normal = gravity[:, :2] / camera.focal
    offset = gravity[:, 2] - (normal * camera.c).sum(-1)
    line = xp.concat([normal, offset[:, None]], axis=-1)
    length = xp.linalg.vector_norm(normal, axis=-1, keepdims=True)
    return line / xp.where(length > 0, length, 1.0)


def _at_azimuths(camera: Camera, level: Array, azimuths: Array) -> tuple[Array, Array]:
    """Pixels (B, S, 2) of horizontal rays at azimuths (B, S), and whether the image shows them.

    level (B, 3, 3): rows right, down and ahead of the level frame.
    """
    xp = namespace(level)
    right, _, ahead = (axis[:, None] for axis in unstack(level, 1))
    rays = xp.sin(azimuths)[..., None] * right + xp.cos(azimuths)[..., None] * ahead
    pixels, valid = camera.project(rays)
    inside = ((pixels >= 0) & (pixels <= camera.size[:, None])).all(-1)
    return pixels, valid & inside


def _azimuths_in_view(camera: Camera, gravity: Array, level: Array) -> tuple[Array, Array]:
    """First and last azimuth, each (B, 1) radians, at which the image shows the horizon."""
    xp = namespace(gravity)
    span = _azimuth_bound(camera, gravity)[:, None]
    steps = xp.linspace(-1, 1, SCAN, dtype=gravity.dtype, device=gravity.device)
    azimuths = span * steps
    _, shown = _at_azimuths(camera, level, azimuths)
    # Nothing shown leaves the whole scan.
    first = _first(shown)
    last = SCAN - 1 - _first(xp.flip(shown, axis=1))
    inner = xp.concat([first, last], axis=1)
    outer = xp.concat([first - 1, last + 1], axis=1).clip(0, SCAN - 1)
    ends, beyond = (xp.take_along_axis(azimuths, at, axis=1) for at in (inner, outer))
    parts = xp.linspace(0, 1, FINER, dtype=gravity.dtype, device=gravity.device)
    for _ in range(ROUNDS):
        # From outside inwards; the last one is known to be shown, if any is.
        tried = beyond[..., None] + (ends - beyond)[..., None] * parts
        _, shown = _at_azimuths(camera, level, tried.reshape(-1, 2 * FINER))
        shown = shown.reshape(tried.shape)
        at = xp.where(shown.any(-1), _first(shown)[..., 0], FINER - 1)
        ends, beyond = (beyond + (ends - beyond) * parts[each] for each in (at, (at - 1).clip(0)))
    return ends[:, :1], ends[:, 1:]


def _first(true: Array) -> Array:
    """(..., 1) place of the first of (..., N) that is true, 0 if none is."""
    xp = namespace(true)
    # Of equal values argmax finds the first.
    return xp.argmax(cast(true, xp.uint8), axis=-1, keepdims=True)


def _azimuth_bound(camera: Camera, gravity: Array) -> Array:
    """(B,) azimuth from straight ahead, radians, beyond which the image shows no horizon.

    The image lies in the cone of its farthest corner around the optical axis, so that a narrow
    view is scanned as densely as a wide one.
    """
    xp = namespace(gravity)
    width, height = unstack(camera.size)
    zero = xp.zeros_like(width)
    corners = xp.stack([zero, zero, width, zero, zero, height, width, height], axis=-1)
    rays, valid = camera.unproject(corners.reshape(-1, 4, 2))
    angles = xp.atan2(xp.linalg.vector_norm(rays[..., :2], axis=-1), rays[..., 2])
    angle = xp.max(xp.where(valid, angles, camera.limits.angle[:, None]), axis=1)
    # A horizontal ray at azimuth a under pitch p has cos(angle) = cos(a) cos(p). Solved for a in
    # the form that is exact for small angles: 0 where no azimuth lies in the cone, pi where all.
    sine = xp.sqrt((xp.sin(angle) ** 2 - gravity[:, 2] ** 2).clip(0))
    return xp.atan2(sine, xp.cos(angle))
