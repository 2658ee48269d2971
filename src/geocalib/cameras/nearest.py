"""The nearest camera of another model, for programs that know a lens by that one only."""

from __future__ import annotations

import numpy as np

from geocalib.arrays import Array, as_array, namespace, to_numpy
from geocalib.cameras.camera import Camera
from geocalib.cameras.registry import get_model
from geocalib.errors import CameraError

TOLERANCE = 1e-3
"""Largest error of the nearest camera, as a share of the shorter side."""

SAMPLES = 400


def profile(camera: Camera) -> tuple[Array, Array]:
    """Angles to the optical axis (N,), radians, and radii (N,), focal lengths, out to the farthest
    corner of the picture of one camera, or as far as its model goes."""
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]) * camera.size[0]
    reach = float(np.linalg.norm(camera.normalise(corners[None]), axis=-1).max())
    radii = np.linspace(0, reach, SAMPLES + 1)[1:]
    along = camera.c[0] + radii[:, None] * camera.focal[0] * [1.0, 0.0]
    rays, valid = camera.unproject(along[None])
    x, y, z = rays[0][valid[0]].T
    return np.arctan2(np.hypot(x, y), z), radii[valid[0]]


def odd_terms(u: Array, radii: Array, terms: int) -> tuple[Array, float]:
    """Weights of u, u^3, ... that come nearest to radii, and by how much they miss them at most.
    terms: how many there are behind the first."""
    powers = np.stack([u ** (2 * k + 1) for k in range(terms + 1)], -1)
    weights, *_ = np.linalg.lstsq(powers, radii, rcond=None)
    return weights, float(np.abs(powers @ weights - radii).max())


def nearest(camera: Camera, name: str) -> Camera:
    """The cameras of kannala_brandt or one of the radial models whose pictures are the nearest to
    those of a batch, by least squares over the radius; a ``CameraError`` where one misses by more
    than ``TOLERANCE``."""
    model, like = get_model(name), camera.f
    camera = camera.map(lambda value: to_numpy(value).astype(np.float64))
    scales, distortions = [], []
    for one in (camera[row] for row in range(len(camera))):
        theta, radii = profile(one)
        u = theta if model.wide else np.tan(theta)
        weights, error = odd_terms(u, radii, len(model.parameters))
        off = error * float(one.focal.max())
        if off > TOLERANCE * float(one.size.min()):
            raise CameraError(f"the nearest {model.name} misses this lens by {off:.1f} pixels")
        scales.append(weights[0])
        distortions.append(weights[1:] / weights[0])
    return Camera(
        model,
        f=camera.f * np.array(scales),
        c=camera.c,
        distortion=np.array(distortions),
        size=camera.size,
        aspect=camera.aspect,
    ).map(lambda value: as_array(value, like, namespace(like).float64))
