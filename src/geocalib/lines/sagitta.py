"""How far long edges are from straight, seen through a camera, and how that changes with it.

The rays N of the places along an edge that is straight in the world lie in one plane, n . N = 0.
With the plane through the first and the last place, n = N_1 x N_K, the number

    e = (n . N) / |d(n . N) / dp|

says how many pixels p a place is off the curve that the plane makes in the picture, to first order.
The comb of the edge (``curves``) sums the deviations up to their sagitta.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from geocalib.arrays import Array, quiet, unstack
from geocalib.cameras.base import DepthJet
from geocalib.cameras.camera import Camera
from geocalib.geometry.fields import Free
from geocalib.geometry.segments import Curves
from geocalib.records import dataclass

SECOND, THIRD = np.array([1, 2, 0]), np.array([2, 0, 1])
"""Of the axes, where each is the first."""


@dataclass(frozen=True)
class Bend:
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
def bend(camera: Camera, curves: Curves) -> Bend:
    """The edges of one picture as seen by B cameras."""
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
    return Bend(sagitta, focal, curves.comb, jet, m, rays, plane, slope, steepness, off)


def _cross(a: Array, b: Array) -> Array:
    """(3, ...) of vectors (3, ...)."""
    return a[SECOND] * b[THIRD] - a[THIRD] * b[SECOND]
