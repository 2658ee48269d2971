"""The up field that the published `distorted` weights were trained with.

With D the distortion, the up-vector at a pixel m should be D's derivative at the undistorted
point, applied to what a pinhole camera shows there. The published training took both at m itself:

    up ~ D'(m) (g_z m - g_xy),    D'(m) = (1 + k s) I + 2 k m m'.

Divided by 1 + 3 k s this has the form of ``geocalib.geometry.fields`` with depth 1 and, in
place of the depth's slope, a = k / (1 + 3 k s):

    h = g_z - 2 a A,    q = (1 + k s) / (1 + 3 k s) = 1 - 2 s a.

To be fitted to those weights' fields and for nothing else; it is in no list of models.
"""

from __future__ import annotations

from dataclasses import replace

from geocalib.arrays import Array, namespace
from geocalib.cameras.base import DepthJet, Parameters
from geocalib.cameras.camera import Camera
from geocalib.cameras.radial import SimpleRadial


class LegacySimpleRadial(SimpleRadial):
    """simple_radial in all but its up-vectors; latitudes and rays are exact."""

    def jet(self, s: Array, k: Parameters) -> DepthJet:
        xp = namespace(s)
        jet = super().jet(s, k)
        assert jet.valid is not None
        (k1,) = k
        # Inside the domain 1 + 3 k s > 5/9; outside, the up-vectors are those of a pinhole.
        e = 1 + 3 * k1 * xp.where(jet.valid, s, 0.0)
        a = k1 / e
        up = DepthJet(
            depth=xp.ones_like(s),
            d_s=a,
            d_ss=-3 * a * a,
            d_k=(xp.zeros_like(s),),
            d_ks=(1 / (e * e),),
            valid=jet.valid,
            excess=a,
        )
        return replace(jet, up=up.frozen_outside())


def without_legacy(camera: Camera) -> Camera:
    """The same cameras as plain simple_radial ones, for everything after the fit."""
    return replace(camera, model=SimpleRadial())
