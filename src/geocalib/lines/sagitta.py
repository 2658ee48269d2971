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
from geocalib.lines.unknowns import cross
from geocalib.records import dataclass


@dataclass(frozen=True)
class Bend:
    """J edges with K places each as seen by B cameras that have distortion."""

    sagitta: Array
    """(B, J) pixels."""
    camera: Camera
    comb: Array
    """(J, K)."""
    jet: DepthJet
    """(B, J, K)."""
    m: Array
    """(B, J, K, 2)."""
    rays: Array
    """(B, J, K, 3)."""
    plane: Array
    """(B, J, 1, 3)."""
    slope: Array
    """(B, J, K, 2) how n . N changes from pixel to pixel."""
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
            yield still, *(np.broadcast_to(d[i], m.shape[:-1]) for d in (jet.d_k, jet.d_ks)), 0.0
        if free.principal_point:
            for axis in (0, 1):
                moved = still.copy()
                moved[..., axis] = -1 / self.camera.focal[:, axis, None, None]
                yield (moved, *self._along(moved), 0.0)

    def _along(self, dm: Array) -> tuple[Array, Array]:
        """How the depth and its slope change as m moves by dm."""
        assert self.jet.d_s is not None
        ds = 2 * (self.m * dm).sum(-1)
        curvature = np.zeros_like(ds) if self.jet.d_ss is None else self.jet.d_ss
        return self.jet.d_s * ds, curvature * ds

    def _change(self, dm: Array, dz: Array, dz_s: Array, d_log_f: float) -> Array:
        """(B, J) derivatives of the sagittas."""
        rays, plane = self.rays, self.plane
        moved = np.concatenate([dm, dz[..., None]], -1)
        turned = cross(moved[..., :1, :], rays[..., -1:, :])
        turned = turned + cross(rays[..., :1, :], moved[..., -1:, :])
        d_value = (turned * rays + plane * moved).sum(-1)
        jet, m, focal = self.jet, self.m, self.camera.focal[:, None, None]
        assert jet.d_s is not None
        z_s, up = jet.d_s[..., None], plane[..., 2:]
        d_slope = turned[..., :2] + 2 * (turned[..., 2:] * z_s + up * dz_s[..., None]) * m
        d_slope = (d_slope + 2 * up * z_s * dm) / focal - d_log_f * self.slope
        d_steepness = (self.slope * d_slope).sum(-1) / self.steepness
        d_off = (d_value - self.off * d_steepness) / self.steepness
        return (self.comb * d_off).sum(-1)


@quiet
def bend(camera: Camera, curves: Curves) -> Bend:
    """The edges of one picture as seen by B cameras."""
    m = camera.normalise(curves.points[None])
    s = (m * m).sum(-1)
    jet = camera.model.jet(s, tuple(k[:, None, None] for k in unstack(camera.distortion)))
    assert jet.d_s is not None, f"{camera.model.name} keeps straight lines straight"
    rays = np.concatenate([m, np.broadcast_to(jet.depth, s.shape)[..., None]], -1)
    plane = cross(rays[..., :1, :], rays[..., -1:, :])
    slope = plane[..., :2] + 2 * plane[..., 2:] * jet.d_s[..., None] * m
    slope = slope / camera.focal[:, None, None]
    steepness = np.linalg.norm(slope, axis=-1)
    off = (plane * rays).sum(-1) / steepness
    sagitta = (curves.comb * off).sum(-1)
    return Bend(sagitta, camera, curves.comb, jet, m, rays, plane, slope, steepness, off)
