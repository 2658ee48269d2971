"""Segments of streets that do not exist, as any camera would see them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from calibrations import one
from geocalib.arrays import Array
from geocalib.cameras import MODELS, Camera
from geocalib.geometry import gravity as sphere
from geocalib.geometry.segments import STRETCHES, Curves, Segments
from geocalib.result.calibration import Calibration

SIZE = (1000, 750)
FOCAL = {"wide": 330.0, "perspective": 800.0}
PARAMETERS = {
    "pinhole": (),
    "simple_radial": (-0.12,),
    "radial": (-0.12, 0.02),
    "division": (-0.1,),
    "kannala_brandt": (0.02, -0.01, 0.0, 0.0),
    "eucm": (0.6, 1.1),
    "double_sphere": (-0.2, 0.55),
    "ucm": (0.6,),
    "radial3": (-0.1, 0.02, -0.003),
    "radial4": (-0.1, 0.02, -0.003, 0.0005),
    "ptlens": (0.02, -0.12, 0.01),
    "division2": (-0.1, 0.01),
}


def camera_of(model: str) -> Camera:
    kind = "wide" if MODELS[model].wide else "perspective"
    f = np.array(FOCAL[kind], np.float64)
    return Camera.create(model, f, SIZE, PARAMETERS[model])


def gravity_of(roll_deg: float, pitch_deg: float) -> Array:
    angles = np.array([roll_deg, pitch_deg], np.float64)
    return sphere.from_roll_pitch(*np.deg2rad(angles))


def headings_of(gravity: Array, degrees: Sequence[float]) -> Array:
    """(Y, 3) level directions in the camera frame; 0 is to the right, 90 ahead."""
    angles = np.deg2rad(np.array(degrees, np.float64))
    level = np.stack([np.cos(angles), np.zeros_like(angles), np.sin(angles)], -1)
    return level @ sphere.world_from_camera(gravity)


def segments_along(
    camera: Camera,
    directions: Array,
    each: int = 60,
    clutter: int = 0,
    noise: float = 0.0,
    length: float = 30.0,
    seed: int = 3,
) -> Segments:
    """Of lines of the world along each direction (K, 3), and some that point anywhere."""
    generator = np.random.default_rng(seed)

    def uniform(*shape: int) -> Array:
        return generator.random((*shape,))

    parts = []
    for d in directions:
        middle = (0.05 + 0.9 * uniform(each, 2)) * camera.size[0]
        rays, valid = camera.unproject(middle[None])
        rays = rays[0][valid[0]]
        # A step that is seen as half a segment's length.
        small = 1e-4
        moved, _ = camera.project((rays + small * d)[None])
        start, _ = camera.project(rays[None])
        speed = np.linalg.norm(moved - start, axis=-1)[0, :, None] / small
        pieces = length * (0.5 + uniform(len(rays), 1)) / speed
        keep = pieces[:, 0] < 0.3  # Next to a vanishing point there is nothing to see.
        ends = [rays[keep] + side * pieces[keep] * d for side in (-0.5, 0.5)]
        seen = [camera.project(end[None]) for end in ends]
        both = np.stack([pixels[0] for pixels, _ in seen], 1)
        parts.append(both[seen[0][1][0] & seen[1][1][0]])
    middle = uniform(clutter, 1, 2) * camera.size[0]
    angle = math.pi * uniform(clutter, 1)
    half = 0.5 * length * np.stack([np.cos(angle), np.sin(angle)], -1)
    parts.append(np.concatenate([middle - half, middle + half], 1))
    ends = np.concatenate(parts)
    ends = ends + noise * generator.standard_normal(ends.shape)
    order = generator.permutation(len(ends))
    return Segments(ends[order], max(noise, 0.05)).longest(len(ends))


def curves_of(
    camera: Camera, count: int = 40, curved: int = 0, noise: float = 0.0, seed: int = 3
) -> Curves:
    """Edges of a world of straight lines that point anywhere, the last few of them really curved,
    with as much noise (pixels) in every place."""
    generator = np.random.default_rng(seed)

    def uniform(*shape: int) -> Array:
        return generator.random((*shape,))

    size = camera.size[0]
    middle, angle = (0.3 + 0.4 * uniform(count, 2)) * size, 2 * math.pi * uniform(count)
    along = np.stack([np.cos(angle), np.sin(angle)], -1)
    reach = 0.15 * size[1] * (1 + uniform(count, 1))
    ends = np.stack([middle - reach * along, middle + reach * along], 1)
    rays, _ = camera.unproject(ends[None])
    share = np.linspace(0, 1, STRETCHES)[:, None]
    between = rays[0, :, :1] * (1 - share) + rays[0, :, 1:] * share
    points = camera.project(between[None])[0][0]
    along = points[:, -1] - points[:, 0]
    length = np.linalg.norm(along, axis=-1)
    normal = np.stack([-along[:, 1], along[:, 0]], -1) / length[:, None]
    place = 2 * ((points - points[:, :1]) * along[:, None]).sum(-1) / length[:, None] ** 2 - 1
    off = noise * generator.standard_normal((count, STRETCHES))
    if curved:
        sag = 0.05 * length[-curved:] * generator.standard_normal(curved)
        off[-curved:] += sag[:, None] * (1 - place[-curved:] ** 2)
    terms = np.stack([np.ones_like(place), place, 1 - place**2], -1)
    comb = np.linalg.pinv(terms)[:, 2]
    sigma = max(noise, 1e-3) * np.linalg.norm(comb, axis=-1)
    return Curves(points + off[..., None] * normal[:, None], comb, sigma)


def prior_of(
    camera: Camera,
    gravity: Array,
    gravity_off_deg: tuple[float, float] = (1.0, -1.5),
    log_f_off: float = 0.0,
    sigma_deg: float = 2.0,
    sigma_log_f: float = 0.3,
    sigma_distortion: float = 0.05,
) -> Calibration:
    """What a network might say of a camera and gravity: off by that much, and that unsure."""
    off = np.deg2rad(np.array(gravity_off_deg, np.float64))
    names = camera.model.parameters
    f = camera.f.item() * math.exp(log_f_off)
    start = one(
        camera.model.name,
        f=f,
        size=SIZE,
        c=(SIZE[0] / 2, SIZE[1] / 2),
        distortion=camera.distortion,
    )
    sigmas = [math.radians(sigma_deg)] * 2 + [sigma_log_f] + [sigma_distortion] * len(names)
    covariance = np.diag(np.array(sigmas, np.float64) ** 2)
    return start.moved(start.cameras, sphere.move(gravity, off), covariance)


def errors_of(answer: Calibration, camera: Camera, gravity: Array) -> tuple[float, float]:
    """Degrees of gravity, and relative error of the focal length."""
    angle = sphere.angle_between(answer.gravity, gravity)
    return math.degrees(angle.item()), abs(answer.fy / camera.f.item() - 1)
