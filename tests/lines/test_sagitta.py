"""How far edges are from straight, and how that changes with the camera."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from streets import camera_of, curves_of

from geocalib.cameras import Camera
from geocalib.geometry.fields import Free
from geocalib.lines.sagitta import bend
from samples import ALL_MODELS

BENT = [model for model in ALL_MODELS if camera_of(model).model.parameters]


@pytest.mark.parametrize("model", BENT)
def test_straight_edges_have_no_sagitta(model: str) -> None:
    camera = camera_of(model)
    assert bend(camera, curves_of(camera)).sagitta.abs().max() < 1e-6


def test_the_sagitta_is_in_pixels() -> None:
    """Of an arc that leaves its chord by so many pixels, seen without distortion."""
    camera = replace(camera_of("division"), distortion=torch.zeros(1, 1).double())
    curves = curves_of(camera, count=5)
    first, last = curves.points[:, :1], curves.points[:, -1:]
    along = last - first
    length = torch.linalg.vector_norm(along, dim=-1, keepdim=True)
    place = ((curves.points - first) * along).sum(-1, keepdim=True) / length**2
    normal = torch.stack([-along[..., 1], along[..., 0]], -1) / length
    arcs = replace(curves, points=curves.points + 3.0 * 4 * place * (1 - place) * normal)
    assert bend(camera, arcs).sagitta.abs() == pytest.approx(torch.full((1, 5), 3.0), abs=1e-6)


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
        assert torch.allclose(analytic[:, i], central, rtol=1e-4, atol=1e-5), i


def _moved(camera: Camera, parameter: int, step: float) -> Camera:
    count = len(camera.model.parameters)
    if parameter == 0:
        return replace(camera, f=camera.f * torch.exp(torch.tensor(step).double()))
    if parameter <= count:
        distortion = camera.distortion.clone()
        distortion[0, parameter - 1] += step
        return replace(camera, distortion=distortion)
    centre = camera.c.clone()
    centre[0, parameter - 1 - count] += step
    return replace(camera, c=centre)
