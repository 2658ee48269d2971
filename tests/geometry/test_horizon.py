"""The horizon as a curve and as a line."""

from __future__ import annotations

import math
from itertools import product

import pytest
import torch
from torch import Tensor

from geocalib.cameras import MODELS, Camera
from geocalib.errors import CameraError
from geocalib.geometry import gravity as sphere
from geocalib.geometry.fields import perspective_field
from geocalib.geometry.horizon import horizon, horizon_line
from lenses import ALL_MODELS
from samples import sample_camera


def gravity_deg(roll: float, pitch: float, count: int = 1) -> Tensor:
    angles = torch.deg2rad(torch.tensor([roll, pitch], dtype=torch.float64))
    return sphere.from_roll_pitch(angles[0], angles[1]).expand(count, 3)


def pinhole(f: float = 500.0) -> Camera:
    return Camera.create("pinhole", f=f, size=(640, 480), dtype=torch.float64)


@pytest.mark.parametrize(
    ("name", "roll_pitch"),
    [
        *((name, (15, -8)) for name in ALL_MODELS),
        *product(("pinhole", "kannala_brandt"), ((0, 0), (-60, 10), (180, 5))),
    ],
)
def test_points_lie_on_the_horizon(name: str, roll_pitch: tuple[float, float]) -> None:
    camera = sample_camera(name)
    g = gravity_deg(*roll_pitch, count=len(camera))
    points, valid = horizon(camera, g, samples=100)
    assert points.shape == (len(camera), 100, 2)
    assert valid.shape == (len(camera), 100)
    _, latitude, has_ray = perspective_field(camera, g, points)
    # The outermost points may lie on the end of the domain, within rounding of it.
    assert bool((valid & ~has_ray)[:, 1:-1].logical_not().all())
    on_curve = latitude[valid & has_ray]
    torch.testing.assert_close(on_curve, torch.zeros_like(on_curve), rtol=0, atol=1e-6)
    inside = ((points >= 0) & (points <= camera.size[:, None])).all(-1)
    assert bool(inside[valid].all())
    assert bool((valid.sum(1) > 50).all())


@pytest.mark.parametrize("name", ALL_MODELS)
def test_reaches_the_border_or_the_end_of_the_domain(name: str) -> None:
    camera = sample_camera(name)
    points, valid = horizon(camera, gravity_deg(7, 5, len(camera)))
    assert bool(valid[:, [0, -1]].all())
    radii = torch.linalg.vector_norm(camera.normalise(points), dim=-1)
    for end in (0, -1):
        border = torch.minimum(points[:, end], camera.size - points[:, end]).amin(-1)
        at_domain_end = radii[:, end] > camera.limits.radius * (1 - 1e-6)
        assert bool(((border < 1e-6) | at_domain_end).all())


@pytest.mark.parametrize("f", [120.0, 500.0, 5e4])
def test_level_camera_has_it_in_the_middle_row(f: float) -> None:
    points, valid = horizon(pinhole(f), gravity_deg(0, 0), samples=33)
    assert bool(valid.all())
    x, y = points[0].unbind(-1)
    torch.testing.assert_close(y, torch.full_like(y, 240.0))
    assert x[0].item() == pytest.approx(0, abs=1e-6)
    assert x[-1].item() == pytest.approx(640, abs=1e-6)
    assert bool((x.diff() > 0).all())


def test_single_precision() -> None:
    points, valid = horizon(pinhole(2e4).to(torch.float32), gravity_deg(0, 0).float())
    assert points.dtype == torch.float32
    x, y = points[valid].unbind(-1)
    assert len(x) > 250
    assert x[0].item() == pytest.approx(0, abs=1e-2)
    assert x[-1].item() == pytest.approx(640, abs=1e-2)
    torch.testing.assert_close(y, torch.full_like(y, 240.0), rtol=0, atol=1e-2)


@pytest.mark.parametrize("roll_pitch", [(0, 10), (25, -12), (-100, 3), (180, 0), (44, 31)])
def test_pinhole_points_lie_on_the_line(roll_pitch: tuple[float, float]) -> None:
    camera = sample_camera("pinhole")
    g = gravity_deg(*roll_pitch)
    line = horizon_line(camera, g)
    assert line.shape == (1, 3)
    points, valid = horizon(camera, g)
    assert bool(valid.any())
    distance = points[0] @ line[0, :2] + line[0, 2]
    torch.testing.assert_close(distance[valid[0]], torch.zeros(int(valid.sum())).double())
    assert torch.linalg.vector_norm(line[0, :2]).item() == pytest.approx(1)
    # The normal points below the horizon.
    grid = torch.rand(1, 50, 2, dtype=torch.float64, generator=torch.manual_seed(3)) * 480
    _, latitude, _ = perspective_field(camera, g, grid)
    below = grid @ line[0, :2] + line[0, 2] > 0
    assert below.equal(latitude < 0)


def test_line_by_hand() -> None:
    # Looking up by atan(1/5): the horizon is f / 5 below the centre.
    g = torch.tensor([[0.0, 5.0, -1.0]], dtype=torch.float64) / math.sqrt(26)
    line = horizon_line(pinhole(), g)
    torch.testing.assert_close(line, torch.tensor([[0.0, 1.0, -340.0]], dtype=torch.float64))
    down = torch.tensor([[0.0, 0.0, 1.0]], dtype=torch.float64)
    assert horizon_line(pinhole(), down).tolist() == [[0.0, 0.0, 1.0]]


def test_line_is_for_pinhole_cameras() -> None:
    with pytest.raises(CameraError, match="horizon of radial is a curve"):
        horizon_line(sample_camera("radial"), gravity_deg(0, 0, 4))


@pytest.mark.parametrize("name", [name for name in ALL_MODELS if not MODELS[name].wide])
@pytest.mark.parametrize("pitch", [-90, -60, 90])
def test_out_of_view(name: str, pitch: float) -> None:
    camera = sample_camera(name)
    points, valid = horizon(camera, gravity_deg(0, pitch, len(camera)))
    assert not bool(valid.any())
    assert bool(torch.isfinite(points).all())


def test_fisheye_looking_straight_down_sees_it_all_around() -> None:
    camera = Camera.create("kannala_brandt", f=100.0, size=(400, 400), dtype=torch.float64)
    down = torch.tensor([[0.0, 0.0, 1.0]], dtype=torch.float64)
    points, valid = horizon(camera, down)
    assert bool(valid.all())
    radius = torch.linalg.vector_norm(points - 200, dim=-1)
    torch.testing.assert_close(radius, torch.full_like(radius, 50 * math.pi))
    torch.testing.assert_close(points[:, 0], points[:, -1])


def test_curved_horizon_may_leave_the_image_in_between() -> None:
    # The circle of the horizon is higher than the image: left and right arcs remain.
    camera = Camera.create("kannala_brandt", f=100.0, size=(400, 250), dtype=torch.float64)
    down = torch.tensor([[0.0, 0.0, 1.0]], dtype=torch.float64)
    points, valid = horizon(camera, down)
    x = points[0, valid[0], 0]
    assert 0 < int(valid.sum()) < len(valid[0])
    assert bool((x < 110).any())
    assert bool((x > 290).any())


def test_batch_mates_do_not_matter() -> None:
    camera = sample_camera("radial")
    g = torch.cat([gravity_deg(5, p) for p in (0, 10, -89, 4)])
    together, together_valid = horizon(camera, g)
    for i in range(len(camera)):
        alone, valid = horizon(camera[i], g[i : i + 1])
        torch.testing.assert_close(alone[0], together[i])
        assert valid[0].equal(together_valid[i])
