"""Plumb lines: whatever their direction, edges that are straight in the world tell distortion.

They tell it in units of the picture, for a given focal length and centre: those keep what was
believed of them, and distortion follows where they go. (What a network errs in distortion says too
little about its focal length: even the true distortion would not mend it.)

Of several distortion parameters, the combinations are looked at one after the other along which
sagittas change most, in units of the prior. Along each all sagittas are functions of one number, so
its posterior is summed up rather than climbed: many edges are really curved, and a likelihood that
bears with them has many tops.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
import numpy.typing as npt

from geocalib.arrays import Array, clip, quiet, tiny, unstack
from geocalib.cameras.camera import Camera
from geocalib.geometry.fields import Free
from geocalib.geometry.segments import Curves
from geocalib.lines.prior import FREEDOM, free_of
from geocalib.lines.sagitta import bend
from geocalib.lines.straightness import MODEL
from geocalib.records import replace
from geocalib.result.calibration import Calibration
from geocalib.solver.coupling import Coupling

Places = npt.NDArray[np.intp]

REPEATS = 3.0
"""Edges that say what one independent edge would: most things have two sides."""
TAIL = 2.0
"""Degrees of freedom of Student's distribution of sagittas: many edges are really curved."""
CROOKED = (0.8e-4, 1.6e-4, 3.2e-4, 6.4e-4)
"""Of the picture's height: sigmas of the sagittas of edges that pass for straight. Rooms and
panoramas differ in it, so that each picture tells its own."""
BULGE = 0.025
"""One sigma of how much more or less a lens magnifies, half the picture's height off its centre.
In units of the height that is a k1 of 0.1; wide lenses may do anything."""
WILDEST = 0.1
"""The most that is tried."""
FIRM = 4.0
"""Times as sure of the distortion."""
LOOSE = 30.0
"""Times the sigma of a distortion that may be anything."""
REACH = 4.0
"""Sigmas of the prior on either side where the posterior is looked for."""
CLOSER = 5.0
"""Sigmas of what was found on either side where it is looked for again."""
NODES, FEW_NODES = 9, 5
"""Places there where sagittas are calculated; in between they are interpolated. Of pinholes that
may bend a little few are enough; answers with strong lenses depend on how many there are."""
COARSE, FINE = 33, 121
"""Places where distortion is looked at for being wild, and where the posterior is."""


@quiet
def straightened(
    calibrations: Sequence[Calibration], curves: Sequence[Curves], coupling: Coupling
) -> list[Calibration]:
    """Calibrations of images that form one component, given the long edges of each.

    Where the distortion is not free, or a camera shows no edges, they stay as they are. What they
    say of sigmas does so in any case.
    """
    answers = list(calibrations)
    free = free_of(calibrations[0])
    if not free.distortion:
        return answers
    cameras = coupling.camera.tolist()
    for number in set(cameras):
        own = [i for i, camera in enumerate(cameras) if camera == number]
        seen = Curves.joined([curves[i] for i in own])
        if len(seen):
            for i in own:
                answers[i] = _straightened(calibrations[i], seen, free)
    return answers


def firm(calibration: Calibration) -> Calibration:
    """One that edges have told, surer of its distortion, for given other parameters, than it is.

    The directions of segments tell distortion as well, but worse, and surer of themselves: so that
    they leave it alone.
    """
    own, rest = _places(calibration)
    if not len(own):
        return calibration
    covariance = calibration.covariance.copy()
    place = own[:, None], own
    among, side = covariance[rest[:, None], rest], covariance[rest[:, None], own]
    given = covariance[place]
    if len(rest):
        given = given - side.T @ _least_squares(among, side)
    covariance[place] -= (1 - 1 / FIRM) * given
    return replace(calibration, covariance=covariance)


def loose(calibration: Calibration) -> Calibration:
    """One that is hardly sure of its distortion, and of all else as before.

    Whether lines and edges agree about the distortion says nothing about whether lines are upright.
    """
    own, _ = _places(calibration)
    covariance = calibration.covariance.copy()
    covariance[own, own] += LOOSE**2 * covariance[own, own]
    return replace(calibration, covariance=covariance)


def _places(calibration: Calibration) -> tuple[Places, Places]:
    """Where the distortion, and where everything else is among the free parameters."""
    own = [name in calibration.camera.model.parameters for name in calibration.parameters]
    mine = np.array(own, np.bool_)
    return np.flatnonzero(mine), np.flatnonzero(~mine)


def _straightened(calibration: Calibration, curves: Curves, free: Free) -> Calibration:
    """One image, given the edges that its camera sees."""
    covariance = calibration.covariance.copy()
    own, rest = _places(calibration)
    place = own[:, None], own
    prior = covariance[place]
    camera, left = _posterior(calibration.camera, prior, curves, free)
    # How distortion makes up for what else moves, so that straight edges stay straight: as far as
    # edges tell it.
    told = np.eye(len(own)) - _least_squares(prior, left).T
    seen = bend(camera, curves)
    slope = seen.jacobian(Free(False, free.focal, free.distortion, free.principal_point))[0]
    slope = slope * np.sqrt(_weight(seen.sagitta[0], curves, camera.size[0, 1]))[:, None]
    first, end = int(free.focal), int(free.focal) + len(own)
    others = np.concatenate([slope[:, :first], slope[:, end:]], 1)
    follow = np.zeros((len(own), len(rest)))
    if others.shape[1]:
        moves = _least_squares(slope[:, first:end], others)
        follow[:, -others.shape[1] :] = -told @ moves
    among = covariance[rest[:, None], rest]
    covariance[place] = left + follow @ among @ follow.T
    covariance[own[:, None], rest] = follow @ among
    covariance[rest[:, None], own] = (follow @ among).T
    return replace(calibration, camera=camera, covariance=covariance)


def _posterior(camera: Camera, prior: Array, curves: Curves, free: Free) -> tuple[Camera, Array]:
    """The camera with the distortion that edges tell, and the covariance (D, D) of that."""
    root = _root(prior)
    left = np.eye(len(prior))
    for direction in _directions(camera, root, curves, free):
        step = root @ direction
        mean, variance = _along(camera, step, curves, free)
        camera = _moved(camera, mean * step[None], free)
        left = left - (1 - variance) * direction[:, None] * direction
    return camera, root @ left @ root.T


def _directions(camera: Camera, root: Array, curves: Curves, free: Free) -> Array:
    """(D, D) unit vectors at right angles, in sigmas of the prior: that along which sagittas change
    most is the first."""
    if len(root) == 1:
        return np.ones_like(root)
    seen = bend(camera, curves)
    slope = seen.jacobian(Free(False, False, free.distortion))[0] @ root
    weight = _weight(seen.sagitta[0], curves, camera.size[0, 1])
    return np.linalg.eigh((slope * weight[:, None]).T @ slope)[1].T[::-1]


def _weight(sagitta: Array, curves: Curves, height: float) -> Array:
    """(J,) information of each edge: what seems curved tells nothing."""
    variance = curves.sigma**2 + (CROOKED[-2] * height) ** 2
    return (TAIL + 1) / (TAIL * variance + sagitta**2)


def _along(camera: Camera, step: Array, curves: Curves, free: Free) -> tuple[float, float]:
    """Mean and variance of how many steps (D,), one sigma of the prior each, to go."""
    nodes, unit, between = _interpolation(FEW_NODES if camera.model is MODEL else NODES)
    crooked = camera.size[0, 1] * np.array(CROOKED)
    scale = np.sqrt(curves.sigma**2 + crooked[:, None] ** 2)
    single = (math.sqrt(TAIL) * scale).astype(np.float32)
    flat = np.log(scale).sum(-1)
    sane = np.linspace(-REACH, REACH, COARSE)
    sane = sane[np.abs(_bulge(_moved(camera, sane[:, None] * step, free))) < WILDEST]
    low, high = (float(sane[0]), float(sane[-1])) if len(sane) > 1 else (-REACH, REACH)
    mean, variance = 0.0, 1.0
    for _ in range(2):
        middle, half = 0.5 * (low + high), 0.5 * (high - low)
        tried = _moved(camera, (middle + half * nodes)[:, None] * step, free)
        sagittas = between @ bend(tried, curves).sagitta
        # In single precision, and not by log1p, which takes ten times as long: of a sum of many,
        # the last digits do not count.
        ratio = sagittas.astype(np.float32)[:, None] / single
        ratio *= ratio
        ratio += 1
        tails = np.log(ratio, out=ratio).sum(-1)
        gain = -(0.5 * (TAIL + 1) * tails.astype(np.float64) + flat) / REPEATS
        places = middle + half * unit
        bulge = between @ _bulge(tried)
        gain = np.logaddexp.reduce(gain, axis=1) + _student(places) + _student(bulge / BULGE)
        share = np.exp(gain - gain.max())
        share /= share.sum()
        mean = float((share * places).sum())
        variance = float((share * (places - mean) ** 2).sum())
        near = CLOSER * math.sqrt(variance)
        if near > 0.5 * half:
            break
        low, high = max(low, mean - near), min(high, mean + near)
    return mean, variance


def _student(sigmas: Array) -> Array:
    """Log likelihood of what is so many sigmas off."""
    return -0.5 * (FREEDOM + 1) * np.log1p(sigmas**2 / FREEDOM)


def _bulge(camera: Camera) -> Array:
    """(B,) how much cameras magnify, half the height off the centre, beyond 1; 0 for wide ones."""
    if camera.model.wide:
        return np.zeros_like(camera.f)
    s = (0.5 * camera.size[:, 1] / camera.f) ** 2
    depth, _ = camera.model.depth(s, unstack(camera.distortion))
    return depth - 1


@cache
def _interpolation(count: int) -> tuple[Array, Array, Array]:
    """(N,) Chebyshev's nodes, (P,) finer places, and (P, N) what values there are made of."""
    nodes = np.cos(math.pi * (np.arange(count) + 0.5) / count)
    places = np.linspace(-1, 1, FINE)
    found = nodes, places, _chebyshev(nodes, places)
    for each in found:
        each.flags.writeable = False
    return found


def _chebyshev(nodes: Array, places: Array) -> Array:
    """(P, N) what the values of a smooth function at Chebyshev's nodes (N,) are multiplied by to
    give those at places (P,) within [-1, 1]."""
    degree = np.arange(len(nodes))
    at_nodes, at_places = (
        np.cos(degree * np.arccos(np.clip(x, -1, 1))[:, None]) for x in (nodes, places)
    )
    return at_places @ np.linalg.inv(at_nodes)


def _moved(camera: Camera, steps: Array, free: Free) -> Camera:
    """B cameras: one after steps (B, D) of its free distortion parameters, within bounds."""
    several = camera[np.zeros(len(steps), np.intp)]
    distortion = several.distortion.copy()
    for i, step in zip(free.distortion, steps.T, strict=True):
        distortion[:, i] = clip(distortion[:, i] + step, *camera.model.bounds[i])
    return replace(several, distortion=distortion)


def _root(covariance: Array) -> Array:
    """(D, D) whose square, with its transpose, is a covariance that may be nearly singular."""
    scale = np.sqrt(np.maximum(np.diagonal(covariance), tiny(covariance)))
    values, vectors = np.linalg.eigh(covariance / scale / scale[:, None])
    return scale[:, None] * (vectors * np.sqrt(np.maximum(values, 0)))


def _least_squares(a: Array, b: Array) -> Array:
    """x whose a x comes closest to b, the smallest where several do."""
    return np.linalg.lstsq(a, b)[0]
