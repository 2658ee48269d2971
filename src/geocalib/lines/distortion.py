"""Distortion from long edges: whatever their direction, edges of the world are straight.

The rays N of the places along a straight edge lie in one plane, n . N = 0. With the plane through
the first and the last place, n = N_1 x N_K, the number

    e = (n . N) / |d(n . N) / dp|

says how many pixels p a place is off the curve that the plane makes in the picture, to first order.
The comb of an edge (``detect``) sums these deviations up to its sagitta.

Edges tell distortion in units of the picture, for a given focal length and centre: those keep what
was believed of them, and distortion follows where they go. (The network's error of the distortion
says too little about its focal length: even the true distortion would not mend it.)

Of several distortion parameters, the combinations are looked at one after the other along which
sagittas change most, in units of the prior. Along each, all sagittas are functions of one number,
so that its posterior is summed up rather than climbed: many edges are really curved, and a
likelihood that tolerates them has many maxima.

No lens is quite free of distortion, and lines feel it: while they are weighed, a pinhole has a bend
with a prior around 0, which is left out of the answer again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np
import numpy.typing as npt

from geocalib.arrays import Array, quiet, tiny, unstack
from geocalib.cameras import get_model
from geocalib.cameras.base import DepthJet
from geocalib.cameras.camera import Camera
from geocalib.geometry.fields import CX, Free
from geocalib.geometry.segments import Curves
from geocalib.lines.prior import FREEDOM, free_parameters
from geocalib.records import dataclass, replace
from geocalib.result.calibration import Calibration
from geocalib.solver.coupling import Coupling

DISTORTION = 0.05
"""One sigma of the distortion in units of the image's height: k = that times (f / H)^2."""
MODEL = get_model("division")
"""Its k equals the k1 of a polynomial where it is small, and its rays need no iterations."""


def with_free_distortion(calibration: Calibration) -> Calibration:
    """Return a pinhole's calibration as that of a camera whose distortion is near 0, and free.

    The calibration of another camera stays as it is.
    """
    camera, names = calibration.cameras, calibration.parameters
    if camera.model.parameters:
        return calibration
    sigma = DISTORTION * (camera.f / camera.size[:, 1]).item() ** 2
    camera = replace(camera, model=MODEL, distortion=np.zeros_like(camera.c[:, :1]))
    place = len(names) - 2 * int(CX in names)
    kept = [i for i in range(len(names) + 1) if i != place]
    covariance = np.zeros((len(names) + 1, len(names) + 1))
    covariance[np.ix_(kept, kept)] = calibration.covariance
    covariance[place, place] = sigma**2
    parameters = (*names[:place], *MODEL.parameters, *names[place:])
    return replace(calibration, cameras=camera, parameters=parameters, covariance=covariance)


def as_pinhole(pinhole: Calibration, bent: Calibration) -> Calibration:
    """Return the pinhole's calibration, moved as the one moved that may bend."""
    kept = [i for i, name in enumerate(bent.parameters) if name in pinhole.parameters]
    camera = replace(
        bent.cameras, model=pinhole.cameras.model, distortion=pinhole.cameras.distortion
    )
    return pinhole.moved(camera, bent.gravity, bent.covariance[np.ix_(kept, kept)], bent.lines)


SECOND, THIRD = np.array([1, 2, 0]), np.array([2, 0, 1])
"""The second and the third axis for each first one."""


@dataclass(frozen=True)
class Sagittas:
    """J edges with K places each as seen by B cameras that have distortion. Coordinates come first:
    loops over two or three numbers at a time are slow."""

    sagitta: Array
    """(B, J) pixels."""
    focal: Array
    """(2, B, 1, 1) of the cameras."""
    comb: Array
    """(J, K)."""
    jet: DepthJet
    """(B, J, K)."""
    m: Array
    """(2, B, J, K)."""
    rays: Array
    """(3, B, J, K)."""
    plane: Array
    """(3, B, J, 1)."""
    slope: Array
    """(2, B, J, K) how n . N changes from pixel to pixel."""
    steepness: Array
    """(B, J, K) its length."""
    off: Array
    """(B, J, K) pixels."""

    def jacobian(self, free: Free) -> Array:
        """(B, J, Q) derivatives of the sagittas in the free ones of log f, distortion and principal
        point."""
        columns = [self._change(*move) for move in self._moves(free)]
        return np.stack(columns, -1) if columns else self.sagitta[..., None][..., :0]

    def _moves(self, free: Free) -> Iterator[tuple[Array, Array, Array, float]]:
        """For each parameter how m, the depth and its slope move, and log f."""
        jet, m = self.jet, self.m
        still = np.zeros_like(m)
        if free.focal:
            yield (-m, *self._along(-m), 1.0)
        for i in free.distortion:
            yield still, *(np.broadcast_to(d[i], m.shape[1:]) for d in (jet.d_k, jet.d_ks)), 0.0
        if free.principal_point:
            for axis in (0, 1):
                moved = still.copy()
                moved[axis] = -1 / self.focal[axis]
                yield (moved, *self._along(moved), 0.0)

    def _along(self, dm: Array) -> tuple[Array, Array]:
        """How the depth and its slope change as m moves by dm."""
        assert self.jet.d_s is not None
        ds = 2 * (self.m * dm).sum(0)
        curvature = np.zeros_like(ds) if self.jet.d_ss is None else self.jet.d_ss
        return self.jet.d_s * ds, curvature * ds

    def _change(self, dm: Array, dz: Array, dz_s: Array, d_log_f: float) -> Array:
        """(B, J) derivatives of the sagittas."""
        rays, plane = self.rays, self.plane
        moved = np.concatenate([dm, dz[None]])
        turned = _cross(moved[..., :1], rays[..., -1:]) + _cross(rays[..., :1], moved[..., -1:])
        d_value = (turned * rays + plane * moved).sum(0)
        z_s, up = self.jet.d_s, plane[2]
        assert z_s is not None
        d_slope = turned[:2] + 2 * (turned[2] * z_s + up * dz_s) * self.m
        d_slope = (d_slope + 2 * up * z_s * dm) / self.focal - d_log_f * self.slope
        d_steepness = (self.slope * d_slope).sum(0) / self.steepness
        d_off = (d_value - self.off * d_steepness) / self.steepness
        return (self.comb * d_off).sum(-1)


@quiet
def measure_sagittas(camera: Camera, curves: Curves) -> Sagittas:
    """Measure the edges of one picture as seen by B cameras."""
    points = np.moveaxis(curves.points, -1, 0)[:, None].copy()
    centre, focal = (value.T[..., None, None] for value in (camera.c, camera.focal))
    m = (points - centre) / focal
    s = (m * m).sum(0)
    jet = camera.model.jet(s, tuple(k[:, None, None] for k in unstack(camera.distortion)))
    assert jet.d_s is not None, f"{camera.model.name} keeps straight lines straight"
    rays = np.concatenate([m, np.broadcast_to(jet.depth, s.shape)[None]])
    plane = _cross(rays[..., :1], rays[..., -1:])
    slope = (plane[:2] + 2 * plane[2] * jet.d_s * m) / focal
    steepness = np.sqrt((slope * slope).sum(0))
    off = (plane * rays).sum(0) / steepness
    sagitta = (curves.comb * off).sum(-1)
    return Sagittas(sagitta, focal, curves.comb, jet, m, rays, plane, slope, steepness, off)


def _cross(a: Array, b: Array) -> Array:
    """Return cross products (3, ...) of vectors (3, ...)."""
    return a[SECOND] * b[THIRD] - a[THIRD] * b[SECOND]


Places = npt.NDArray[np.intp]
REPEATS = 3.0
"""Edges that say what one independent edge would: most things have two sides."""
TAIL = 2.0
"""Degrees of freedom of Student's distribution of sagittas: many edges are really curved."""
CROOKED = (0.8e-4, 1.6e-4, 3.2e-4, 6.4e-4)
"""Sigmas of the sagittas of straight edges, as shares of the height. Rooms and
panoramas differ in it, so that each picture tells its own."""
BULGE = 0.025
"""One sigma of how much more or less a lens magnifies, half the picture's height off its centre.
In units of the height that is a k1 of 0.1; wide lenses may do anything."""
WILDEST = 0.1
"""The most that is tried."""
TIGHTENING = 4.0
"""Times as sure of the distortion."""
LOOSENING = 30.0
"""Times the sigma of a distortion that may be anything."""
PRIOR_REACH = 4.0
"""Sigmas of the prior on either side where the posterior is looked for."""
CLOSER = 5.0
"""Sigmas of what was found on either side where it is looked for again."""
NODES, FEW_NODES = 9, 5
"""Places there where sagittas are calculated; in between they are interpolated. Of pinholes that
may bend a little few are enough; answers with strong lenses depend on how many there are."""
COARSE, FINE = 33, 121
"""Places where distortion is looked at for being wild, and where the posterior is."""


@quiet
def fit_distortion(
    calibrations: Sequence[Calibration], curves: Sequence[Curves], coupling: Coupling
) -> list[Calibration]:
    """Return the calibrations of images that form one component, with the distortion that edges
    tell.

    curves: the long edges of each image. Where the distortion is not free, or a camera shows no
    edges, calibrations stay as they are; what they say of sigmas stays in any case.
    """
    answers = list(calibrations)
    free = free_parameters(calibrations[0])
    if not free.distortion:
        return answers
    cameras = coupling.camera.tolist()
    for number in set(cameras):
        own = [i for i, camera in enumerate(cameras) if camera == number]
        seen = Curves.joined([curves[i] for i in own])
        if len(seen):
            for i in own:
                answers[i] = _fit_distortion_of_image(calibrations[i], seen, free)
    return answers


def tighten_distortion(calibration: Calibration) -> Calibration:
    """Return a calibration surer of its distortion, for given other parameters, than edges make it.

    The directions of segments tell distortion as well, but worse, and too confidently: with this
    prior they leave it alone.
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
    covariance[place] -= (1 - 1 / TIGHTENING) * given
    return replace(calibration, covariance=covariance)


def loosen_distortion(calibration: Calibration) -> Calibration:
    """Return a calibration that hardly knows its distortion, and all else as before.

    Whether lines and edges agree about the distortion says nothing about whether lines are upright.
    """
    own, _ = _places(calibration)
    covariance = calibration.covariance.copy()
    covariance[own, own] += LOOSENING**2 * covariance[own, own]
    return replace(calibration, covariance=covariance)


def _places(calibration: Calibration) -> tuple[Places, Places]:
    """Return the indices of the distortion, and of everything else, among the free parameters."""
    own = [name in calibration.cameras.model.parameters for name in calibration.parameters]
    mine = np.array(own, np.bool_)
    return np.flatnonzero(mine), np.flatnonzero(~mine)


def _fit_distortion_of_image(calibration: Calibration, curves: Curves, free: Free) -> Calibration:
    """Return the calibration of one image, given the edges that its camera sees."""
    covariance = calibration.covariance.copy()
    own, rest = _places(calibration)
    place = own[:, None], own
    prior = covariance[place]
    camera, left = _posterior(calibration.cameras, prior, curves, free)
    # How distortion makes up for what else moves, so that straight edges stay straight: as far as
    # edges tell it.
    explained = np.eye(len(own)) - _least_squares(prior, left).T
    seen = measure_sagittas(camera, curves)
    slope = seen.jacobian(Free(False, free.focal, free.distortion, free.principal_point))[0]
    slope = slope * np.sqrt(_weight(seen.sagitta[0], curves, camera.size[0, 1]))[:, None]
    first, end = int(free.focal), int(free.focal) + len(own)
    others = np.concatenate([slope[:, :first], slope[:, end:]], 1)
    follow = np.zeros((len(own), len(rest)))
    if others.shape[1]:
        moves = _least_squares(slope[:, first:end], others)
        follow[:, -others.shape[1] :] = -explained @ moves
    among = covariance[rest[:, None], rest]
    covariance[place] = left + follow @ among @ follow.T
    covariance[own[:, None], rest] = follow @ among
    covariance[rest[:, None], own] = (follow @ among).T
    return replace(calibration, cameras=camera, covariance=covariance)


def _posterior(camera: Camera, prior: Array, curves: Curves, free: Free) -> tuple[Camera, Array]:
    """Return the camera with the distortion that edges tell, and the covariance (D, D) of that."""
    root = _root(prior)
    left = np.eye(len(prior))
    for direction in _directions(camera, root, curves, free):
        step = root @ direction
        mean, variance = _along(camera, step, curves, free)
        camera = _moved(camera, mean * step[None], free)
        left = left - (1 - variance) * direction[:, None] * direction
    return camera, root @ left @ root.T


def _directions(camera: Camera, root: Array, curves: Curves, free: Free) -> Array:
    """Return orthogonal unit vectors (D, D), in sigmas of the prior; along the first, sagittas
    change most."""
    if len(root) == 1:
        return np.ones_like(root)
    seen = measure_sagittas(camera, curves)
    slope = seen.jacobian(Free(False, False, free.distortion))[0] @ root
    weight = _weight(seen.sagitta[0], curves, camera.size[0, 1])
    return np.linalg.eigh((slope * weight[:, None]).T @ slope)[1].T[::-1]


def _weight(sagitta: Array, curves: Curves, height: float) -> Array:
    """Return the information (J,) of each edge: what seems curved tells nothing."""
    variance = curves.sigma**2 + (CROOKED[-2] * height) ** 2
    return (TAIL + 1) / (TAIL * variance + sagitta**2)


def _along(camera: Camera, step: Array, curves: Curves, free: Free) -> tuple[float, float]:
    """Return mean and variance of how many steps (D,), one sigma of the prior each, to go."""
    nodes, unit, between = _interpolation(FEW_NODES if camera.model is MODEL else NODES)
    crooked = camera.size[0, 1] * np.array(CROOKED)
    scale = np.sqrt(curves.sigma**2 + crooked[:, None] ** 2)
    single = (math.sqrt(TAIL) * scale).astype(np.float32)
    flat = np.log(scale).sum(-1)
    sane = np.linspace(-PRIOR_REACH, PRIOR_REACH, COARSE)
    sane = sane[np.abs(_bulge(_moved(camera, sane[:, None] * step, free))) < WILDEST]
    low, high = (float(sane[0]), float(sane[-1])) if len(sane) > 1 else (-PRIOR_REACH, PRIOR_REACH)
    mean, variance = 0.0, 1.0
    for _ in range(2):
        middle, half = 0.5 * (low + high), 0.5 * (high - low)
        tried = _moved(camera, (middle + half * nodes)[:, None] * step, free)
        sagittas = between @ measure_sagittas(tried, curves).sagitta
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
    """Return the log likelihood of deviations by so many sigmas."""
    return -0.5 * (FREEDOM + 1) * np.log1p(sigmas**2 / FREEDOM)


def _bulge(camera: Camera) -> Array:
    """Return how much cameras (B,) magnify, half the height off the centre, beyond 1; 0 for wide
    ones."""
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
    """Return B cameras: one after steps (B, D) of its free distortion parameters, within bounds."""
    several = camera[np.zeros(len(steps), np.intp)]
    distortion = several.distortion.copy()
    for i, step in zip(free.distortion, steps.T, strict=True):
        distortion[:, i] = (distortion[:, i] + step).clip(*camera.model.bounds[i])
    return replace(several, distortion=distortion)


def _root(covariance: Array) -> Array:
    """Return R (D, D) with R R^T the covariance, which may be nearly singular."""
    scale = np.sqrt(np.maximum(np.diagonal(covariance), tiny(covariance)))
    values, vectors = np.linalg.eigh(covariance / scale / scale[:, None])
    return scale[:, None] * (vectors * np.sqrt(np.maximum(values, 0)))


def _least_squares(a: Array, b: Array) -> Array:
    """Return the x whose a x comes closest to b, the smallest where several do."""
    return np.linalg.lstsq(a, b)[0]
