"""How far edges are from straight, and how that changes with the camera."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from streets import camera_of, curves_of

from geocalib.cameras import Camera
from geocalib.geometry.fields import Free
from geocalib.lines.sagitta import bend
from lenses import ALL_MODELS

BENT = [model for model in ALL_MODELS if camera_of(model).model.parameters]


@pytest.mark.parametrize("model", BENT)
def test_straight_edges_have_no_sagitta(model: str) -> None:
    camera = camera_of(model)
    assert np.abs(bend(camera, curves_of(camera)).sagitta).max() < 1e-6


def test_the_sagitta_is_in_pixels() -> None:
    """Of an arc that leaves its chord by so many pixels, seen without distortion."""
    camera = replace(camera_of("division"), distortion=np.zeros((1, 1)))
    curves = curves_of(camera, count=5)
    first, last = curves.points[:, :1], curves.points[:, -1:]
    along = last - first
    length = np.linalg.norm(along, axis=-1, keepdims=True)
    place = ((curves.points - first) * along).sum(-1, keepdims=True) / length**2
    normal = np.stack([-along[..., 1], along[..., 0]], -1) / length
    arcs = replace(curves, points=curves.points + 3.0 * 4 * place * (1 - place) * normal)
    assert np.abs(bend(camera, arcs).sagitta) == pytest.approx(np.full((1, 5), 3.0), abs=1e-6)


@pytest.mark.parametrize("model", BENT)
def test_jacobian(model: str) -> None:
    """Against central differences, of edges some of which are really curved."""
    camera = camera_of(model)
    curves = curves_of(camera, count=8, curved=3, noise=0.3)
    free = Free(False, True, tuple(range(len(camera.model.parameters))), True)
    analytic = bend(camera, curves).jacobian(free)[0]
    steps = [1e-5] * (1 + len(camera.model.parameters)) + [1e-2] * 2
    assert analytic.shape == (8, len(steps))
    for i, step in enumerate(steps):
        after, before = (
            bend(_moved(camera, i, side * step), curves).sagitta[0] for side in (1, -1)
        )
        central = (after - before) / (2 * step)
        assert np.allclose(analytic[:, i], central, rtol=1e-4, atol=1e-5), i


def _moved(camera: Camera, parameter: int, step: float) -> Camera:
    count = len(camera.model.parameters)
    if parameter == 0:
        return replace(camera, f=camera.f * np.exp(np.array(step)))
    if parameter <= count:
        distortion = camera.distortion.copy()
        distortion[0, parameter - 1] += step
        return replace(camera, distortion=distortion)
    centre = camera.c.copy()
    centre[0, parameter - 1 - count] += step
    return replace(camera, c=centre)
