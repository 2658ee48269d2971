"""Every model through its protocol: derivatives, round trips, where the domain ends."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from geocalib.cameras import MODELS, Camera, CameraModel, get_model
from geocalib.errors import CameraError
from lenses import ALL_MODELS
from samples import angle_to_axis, distortions, pixels_at, radii_in_domain, rays_at, sample_camera

EPS = torch.finfo(torch.float64).eps
RIGHT = math.pi / 2
HALF_DEG = math.degrees(math.atan(0.5**0.5))
INSIDE = torch.tensor(
    [i / 20 for i in range(20)] + [1 - 10.0**-n for n in range(2, 10)], dtype=torch.float64
)
"""Parts of the domain, up to 1e-9 of its end."""


def camera_of(model: str, distortion: tuple[float, ...]) -> Camera:
    return Camera.create(
        model, f=500.0, size=(640, 480), distortion=distortion, dtype=torch.float64
    )


def cameras_of(model: str, data: st.DataObject) -> Camera:
    """Eight at once, with any distortion: they do not take longer than one."""
    drawn = data.draw(st.lists(distortions(model), min_size=8, max_size=8))
    distortion = torch.tensor(drawn, dtype=torch.float64)
    return Camera.create(model, torch.full((8,), 500.0).double(), (640, 480), distortion)


def slope_in_angle(camera: Camera, radii: Tensor) -> Tensor:
    """(B, N) d|m| / d(angle to the axis): how much a pixel feels the rounding of its ray."""
    s = radii * radii
    jet = camera.model.jet(s, [k[:, None] for k in camera.distortion.unbind(-1)])
    q = jet.depth if jet.d_s is None else jet.depth - 2 * s * jet.d_s
    return (s + jet.depth**2) / q


@pytest.mark.parametrize("name", ALL_MODELS)
def test_follows_the_protocol(name: str) -> None:
    model = MODELS[name]
    assert isinstance(model, CameraModel)
    assert model.name == name
    assert len(model.parameters) == len(model.start) == len(model.bounds)
    for start, (low, high) in zip(model.start, model.bounds, strict=True):
        assert low <= start <= high


def test_get_model() -> None:
    assert get_model("eucm") is MODELS["eucm"]
    assert get_model(MODELS["eucm"]) is MODELS["eucm"]
    with pytest.raises(CameraError, match=r"unknown camera model 'fov'; known: pinhole, .*eucm"):
        get_model("fov")


# Derivatives ------------------------------------------------------------------------------------


def jet_inputs(name: str) -> tuple[Tensor, list[Tensor]]:
    """Squared radii (B, N) from 0 towards the domain's end, and parameters of the same shape."""
    camera = sample_camera(name)
    radii = radii_in_domain(camera, torch.linspace(0, 0.95, 12))
    parameters = [k[:, None].expand_as(radii).clone() for k in camera.distortion.unbind(-1)]
    return radii**2, parameters


def assert_same(analytic: Tensor | None, expected: Tensor, what: str) -> None:
    analytic = torch.zeros_like(expected) if analytic is None else analytic
    torch.testing.assert_close(analytic, expected, rtol=1e-7, atol=1e-8, msg=lambda m: what + m)


@pytest.mark.parametrize("name", ALL_MODELS)
def test_jet_against_autograd(name: str) -> None:
    model = MODELS[name]
    s, k = jet_inputs(name)
    leaves = [s.requires_grad_(), *(p.requires_grad_() for p in k)]

    def gradients(value: Tensor | None) -> list[Tensor]:
        if value is None or not value.requires_grad:
            return [torch.zeros_like(s) for _ in leaves]
        found = torch.autograd.grad(value.sum(), leaves, retain_graph=True, allow_unused=True)
        return [torch.zeros_like(s) if g is None else g for g in found]

    depth, valid = model.depth(s, k)
    jet = model.jet(s, k)
    torch.testing.assert_close(jet.depth, depth, rtol=1e-14, atol=1e-14)
    assert (jet.valid is None) == (valid is None)
    assert valid is None or bool(valid.all())
    d_s, *d_k = gradients(depth)
    d_ss, *d_ks = gradients(jet.d_s)
    # Of s, autograd knows no derivative at 0 (pixels do not need one: ds = 2 m dm).
    assert_same(off_axis(jet.d_s), d_s[:, 1:], "d_s ")
    assert_same(off_axis(jet.d_ss), d_ss[:, 1:], "d_ss ")
    assert len(jet.d_k) == len(jet.d_ks) == len(k)
    for i, parameter in enumerate(model.parameters):
        assert_same(jet.d_k[i], d_k[i], f"d_{parameter} ")
        assert_same(jet.d_ks[i], d_ks[i], f"d_{parameter} d_s ")


def off_axis(value: Tensor | None) -> Tensor | None:
    return None if value is None else value[:, 1:]


@pytest.mark.parametrize("name", ALL_MODELS)
def test_jet_is_continuous_at_the_axis(name: str) -> None:
    model = MODELS[name]
    k = [p[:, None] for p in sample_camera(name).distortion.unbind(-1)]
    s = torch.tensor([[0.0, 1e-24]], dtype=torch.float64).expand(len(sample_camera(name)), 2)
    jet = model.jet(s, k)
    assert bool((jet.depth[:, 0] > 0).all())
    for value in (jet.depth, jet.d_s, jet.d_ss, *jet.d_k, *jet.d_ks):
        if value is not None:
            torch.testing.assert_close(value[:, 0], value[:, 1], rtol=0, atol=1e-9)


def central(f: Callable[[Tensor], Tensor], h: Tensor) -> Tensor:
    """Derivative of f at 0, exact to the fourth order in the step h."""
    return (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h)


@pytest.mark.parametrize("name", ALL_MODELS)
def test_jet_against_central_differences(name: str) -> None:
    model = MODELS[name]
    s, k = jet_inputs(name)
    s, k = s[:, 1:-1], [p[:, 1:-1] for p in k]
    jet = model.jet(s, k)

    def slope(s: Tensor, k: list[Tensor]) -> Tensor:
        d_s = model.jet(s, k).d_s
        return torch.zeros_like(s) if d_s is None else d_s

    h = 2e-4 * s
    assert_same(jet.d_s, central(lambda e: model.depth(s + e, k)[0], h), "d_s ")
    assert_same(jet.d_ss, central(lambda e: slope(s + e, k), h), "d_ss ")
    for i, parameter in enumerate(model.parameters):

        def moved(e: Tensor, i: int = i) -> list[Tensor]:
            return [p + e if j == i else p for j, p in enumerate(k)]

        h = 2e-4 / (1 + jet.d_k[i].abs())
        assert_same(jet.d_k[i], central(lambda e: model.depth(s, moved(e))[0], h), parameter)
        assert_same(jet.d_ks[i], central(lambda e: slope(s, moved(e)), h), parameter)


# Round trips ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL_MODELS)
@settings(max_examples=5)
@given(data=st.data())
def test_pixel_to_ray_to_pixel(name: str, data: st.DataObject) -> None:
    camera = cameras_of(name, data)
    radii = radii_in_domain(camera, INSIDE)
    pixels = pixels_at(camera, radii)
    rays, has_ray = camera.unproject(pixels)
    assert bool(has_ray.all())
    torch.testing.assert_close(torch.linalg.vector_norm(rays, dim=-1), torch.ones_like(radii))
    back, has_pixel = camera.project(rays)
    assert bool(has_pixel.all())
    # 1e-9 pixels; more only where the pixel's own coordinates, or the rounding of its ray, do not
    # tell so much (towards the end of a division camera with k > 0 the ray stops turning).
    rounding = 16 * EPS * (radii + slope_in_angle(camera, radii))
    tolerance = 1e-9 + 500 * torch.minimum(rounding, 8 * math.sqrt(EPS) * radii)
    error = torch.linalg.vector_norm(back - pixels, dim=-1)
    assert bool((error <= tolerance).all()), (error / tolerance).max()


@pytest.mark.parametrize("name", ALL_MODELS)
@settings(max_examples=5)
@given(data=st.data())
def test_ray_to_pixel_to_ray(name: str, data: st.DataObject) -> None:
    camera = cameras_of(name, data)
    # Closer to the end the radius may not change by a rounding: it has its largest value there.
    rays = rays_at(camera.limits.angle[:, None] * INSIDE[INSIDE <= 1 - 1e-6])
    pixels, has_pixel = camera.project(rays)
    radii = torch.linalg.vector_norm(camera.normalise(pixels), dim=-1)
    # Where the radius is unbounded the last rays project beyond all images.
    within = radii < 1e4
    assert bool(has_pixel[within].all())
    back, has_ray = camera.unproject(pixels)
    assert bool(has_ray[within].all())
    # The principal point, of about a focal length, rounds pixels as their radius does.
    rounding = 16 * EPS * (1 + (1 + radii) / slope_in_angle(camera, radii))
    # At the domain's end the radius stops growing and the angle is known to its root only.
    tolerance = 1e-13 + rounding.clamp(max=1e-4)
    error = torch.linalg.vector_norm(torch.linalg.cross(back, rays), dim=-1)
    assert bool((error <= tolerance)[within].all()), (error / tolerance)[within].max()
    assert bool(((back * rays).sum(-1) > 0)[within].all())


@pytest.mark.parametrize(
    ("name", "distortion"),
    [
        ("division", (-0.25,)),
        ("division2", (-0.25, -0.01)),
        ("kannala_brandt", (0.1, 0.01, 0.001, 0.0)),
        ("eucm", (0.5, 1.0)),
        ("eucm", (0.5 + 1e-14, 2.0)),
        ("double_sphere", (-0.2, 0.5)),
        ("double_sphere", (0.6, 0.5 + 1e-14)),
    ],
)
def test_rays_almost_straight_behind(name: str, distortion: tuple[float, ...]) -> None:
    """Their pixels are far out; x and y of the ray tell them, though z is -1 to rounding."""
    camera = camera_of(name, distortion)
    rays = rays_at(math.pi - torch.tensor([[1e-2, 1e-4, 1e-6]], dtype=torch.float64))
    pixels, valid = camera.project(rays)
    assert bool(valid.all())
    back, valid = camera.unproject(pixels)
    assert bool(valid.all())
    torch.testing.assert_close(back, rays, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("name", ALL_MODELS)
def test_single_precision(name: str) -> None:
    exact, camera = sample_camera(name), sample_camera(name, torch.float32)
    pixels = pixels_at(exact, radii_in_domain(exact, torch.linspace(0, 0.9, 20)))
    rays, valid = camera.unproject(pixels.float())
    assert rays.dtype == torch.float32
    assert bool(valid.all())
    torch.testing.assert_close(rays.double(), exact.unproject(pixels)[0], rtol=0, atol=3e-6)
    back, valid = camera.project(rays)
    assert back.dtype == torch.float32
    assert bool(valid.all())
    torch.testing.assert_close(back, pixels.float(), rtol=1e-5, atol=2e-3)


# The end of the domain --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL_MODELS)
@settings(max_examples=5)
@given(data=st.data())
def test_domain_ends_where_limits_says(name: str, data: st.DataObject) -> None:
    camera = cameras_of(name, data)
    limits = camera.limits
    assert limits.radius.shape == limits.angle.shape == (8,)
    assert bool(((limits.angle > 0) & (limits.angle <= math.pi)).all())
    around = torch.tensor([1 - 1e-9, 1 + 1e-9], dtype=torch.float64)
    bounded = torch.isfinite(limits.radius)

    if bool(bounded.any()):
        some, radius = camera[bounded], limits.radius[bounded, None]
        _, valid = some.unproject(pixels_at(some, radius * around))
        assert valid.tolist() == [[True, False]] * len(some)
        # The last ray is at the last angle. Where the radius stops growing there, a part of
        # 1e-12 in radius is the square root of that in angle, or worse.
        rays, _ = some.unproject(pixels_at(some, radius * (1 - 1e-12)))
        angle = angle_to_axis(rays)[:, 0]
        torch.testing.assert_close(angle, limits.angle[bounded], rtol=0, atol=1e-4)
    if not bool(bounded.all()):
        some = camera[~bounded]
        far = torch.tensor([[1e3, 1e6]], dtype=torch.float64).expand(len(some), 2)
        rays, valid = some.unproject(pixels_at(some, far))
        assert bool(valid.all())
        assert bool((angle_to_axis(rays) < limits.angle[~bounded, None] + 1e-12).all())

    _, valid = camera.project(rays_at(limits.angle[:, None] * around))
    assert bool(valid[:, 0].all())
    # Nothing is beyond straight behind.
    assert not bool(valid[limits.angle < math.pi * (1 - 1e-6), 1].any())


@pytest.mark.parametrize("name", ALL_MODELS)
def test_profile_is_held_beyond_the_domain(name: str) -> None:
    """No step at its end and a constant beyond it: a solver may stray there."""
    camera = sample_camera(name)
    k = [p[:, None] for p in camera.distortion.unbind(-1)]
    radii = radii_in_domain(camera, torch.tensor([1 - 1e-6, 1 + 1e-6, 2.0, 100.0]).double())
    jet = camera.model.jet(radii**2, k)
    torch.testing.assert_close(jet.depth, camera.model.depth(radii**2, k)[0])
    angle = torch.atan2(radii, jet.depth)
    torch.testing.assert_close(angle[:, 0], angle[:, 1], rtol=0, atol=0.02)
    assert bool(torch.isfinite(jet.depth).all())
    ends = torch.isfinite(camera.limits.radius)
    beyond = jet.depth[ends, 1:]
    torch.testing.assert_close(beyond, beyond[:, :1].expand_as(beyond))
    for value in (jet.d_s, jet.d_ss, *jet.d_k, *jet.d_ks):
        assert value is None or bool((value[ends, 1:] == 0).all())


@pytest.mark.parametrize("name", ALL_MODELS)
def test_angle_grows_with_the_radius(name: str) -> None:
    camera = sample_camera(name)
    radii = radii_in_domain(camera, torch.linspace(0, 0.999, 200))
    rays, _ = camera.unproject(
        camera.c[:, None]
        + camera.focal[:, None] * torch.stack([radii, torch.zeros_like(radii)], -1)
    )
    assert bool((angle_to_axis(rays).diff(dim=1) > 0).all())


@pytest.mark.parametrize(
    ("name", "distortion", "radius", "angle_deg"),
    [
        ("pinhole", (), math.inf, 90.0),
        ("simple_radial", (0.1,), math.inf, 90.0),
        # x (1 - x^2 / 3) turns at x = 1.
        ("simple_radial", (-1 / 3,), 2 / 3, 45.0),
        ("radial", (-1 / 3, 0.0), 2 / 3, 45.0),
        # 1 - X^2 has its root at 1.
        ("radial", (0.0, -0.2), 0.8, 45.0),
        ("radial", (0.0, 0.2), math.inf, 90.0),
        ("radial3", (-1 / 3, 0.0, 0.0), 2 / 3, 45.0),
        # 1 - X^3 and 1 - X^4.
        ("radial3", (0.0, 0.0, -1 / 7), 6 / 7, 45.0),
        ("radial4", (0.0, 0.0, 0.0, -1 / 9), 8 / 9, 45.0),
        ("radial4", (0.1, 0.1, 0.1, 0.1), math.inf, 90.0),
        # (1 - X) (1 - 2 X) (1 + X^2): the first root counts.
        (
            "radial4",
            (-1.0, 0.6, -3 / 7, 2 / 9),
            0.5**0.5 * (1 - 0.5 + 0.15 - 3 / 56 + 1 / 72),
            HALF_DEG,
        ),
        ("division2", (0.0, 0.0), math.inf, 90.0),
        ("division2", (0.25, 0.0), 2.0, 45.0),
        ("division2", (0.0, 1 / 3), 1.0, math.degrees(math.atan(0.75))),
        # 1 + 2 s - 3 s^2 has its root at 1, where the depth is 0.
        ("division2", (-2.0, 1.0), 1.0, 90.0),
        ("division2", (-2.0, 0.0), math.inf, 180.0),
        ("division2", (1.0, -1.0), math.inf, 180.0),
        ("ucm", (0.625,), 2.0, math.degrees(math.acos(-0.6))),
        ("division", (0.25,), 2.0, math.degrees(math.atan(1.0))),
        ("division", (0.0,), math.inf, 90.0),
        ("division", (-0.25,), math.inf, 180.0),
        ("kannala_brandt", (0.0,) * 4, math.pi, 180.0),
        # theta (1 - theta^2 / 3) turns at 1 radian.
        ("kannala_brandt", (-1 / 3, 0.0, 0.0, 0.0), 2 / 3, math.degrees(1.0)),
        ("eucm", (0.0, 1.0), math.inf, 90.0),
        ("eucm", (0.5, 1.0), math.inf, 180.0),
        ("eucm", (1.0, 4.0), 0.5, 90.0),
        # (2 alpha - 1) s = 1, cos = -(1 - alpha) / alpha.
        ("eucm", (0.625, 1.0), 2.0, math.degrees(math.acos(-0.6))),
        # A unified camera where xi = 0; where alpha = 0 the end is Z = -xi d.
        ("double_sphere", (0.0, 0.625), 2.0, math.degrees(math.acos(-0.6))),
        ("double_sphere", (0.5, 0.0), math.inf, 120.0),
        ("double_sphere", (-0.5, 0.0), math.inf, 60.0),
    ],
)
def test_limits_by_hand(
    name: str, distortion: tuple[float, ...], radius: float, angle_deg: float
) -> None:
    limits = camera_of(name, distortion).limits
    assert limits.radius.item() == pytest.approx(radius, rel=1e-12)
    assert math.degrees(limits.angle.item()) == pytest.approx(angle_deg, rel=1e-7)


# Known answers ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "distortion", "ray", "m"),
    [
        ("pinhole", (), (0.5, 0.25, 0.5), (1.0, 0.5)),
        ("simple_radial", (-0.1,), (0.5, 0.0, 1.0), (0.5 * (1 - 0.025), 0.0)),
        ("radial", (-0.2, 0.05), (0.0, 2.0, 2.0), (0.0, 0.85)),
        ("radial3", (-0.2, 0.05, 0.1), (0.0, 2.0, 2.0), (0.0, 0.95)),
        ("radial4", (-0.2, 0.05, 0.1, -0.01), (-2.0, 0.0, 2.0), (-0.94, 0.0)),
        ("division2", (-0.25, 0.05), (1.0, 0.0, 0.8), (1.0, 0.0)),
        ("division2", (-0.25, -0.05), (0.0, 2.0, -0.8), (0.0, 2.0)),
        ("ucm", (0.5,), (4.0, 0.0, -3.0), (4.0, 0.0)),
        ("division", (-0.25,), (1.0, 0.0, 0.75), (1.0, 0.0)),
        ("division", (-0.25,), (0.0, -1.0, 0.0), (0.0, -2.0)),
        ("division", (-0.25,), (3.0, 0.0, -1.25), (3.0, 0.0)),
        ("kannala_brandt", (0.1, 0, 0, 0), (-2.0, 0.0, 0.0), (-RIGHT - 0.1 * RIGHT**3, 0.0)),
        ("kannala_brandt", (0, 0, 0, 0.1), (0.0, 9.0, 0.0), (0.0, RIGHT + 0.1 * RIGHT**9)),
        ("eucm", (0.5, 1.0), (1.0, 0.0, 0.0), (2.0, 0.0)),
        ("eucm", (0.5, 1.0), (0.0, 3.0, 4.0), (0.0, 2 / 3)),
        ("eucm", (0.25, 4.0), (2.0, 0.0, 3.0), (2 / 3.5, 0.0)),
        ("eucm", (0.5, 1.0), (4.0, 0.0, -3.0), (4.0, 0.0)),
        ("double_sphere", (-0.2, 0.5), (3.0, 0.0, 4.0), (2 * (math.sqrt(2) - 1), 0.0)),
        ("double_sphere", (0.6, 0.25), (4.0, 0.0, -3.0), (4.0, 0.0)),
    ],
)
def test_known_answers(
    name: str,
    distortion: tuple[float, ...],
    ray: tuple[float, float, float],
    m: tuple[float, float],
) -> None:
    camera = camera_of(name, distortion)
    rays = torch.tensor([[ray]], dtype=torch.float64)
    pixels = torch.tensor([[(320 + 500 * m[0], 240 + 500 * m[1])]], dtype=torch.float64)
    found, valid = camera.project(rays)
    assert bool(valid.all())
    torch.testing.assert_close(found, pixels, rtol=0, atol=1e-10)
    back, valid = camera.unproject(pixels)
    assert bool(valid.all())
    torch.testing.assert_close(back, rays / torch.linalg.vector_norm(rays), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "distortion", "other", "same"),
    [
        ("simple_radial", (0.0,), "pinhole", ()),
        ("radial", (-0.15, 0.0), "simple_radial", (-0.15,)),
        ("radial3", (-0.3, 0.1, 0.0), "radial", (-0.3, 0.1)),
        ("radial4", (-0.3, 0.1, 0.02, 0.0), "radial3", (-0.3, 0.1, 0.02)),
        ("division", (0.0,), "pinhole", ()),
        ("division2", (-0.3, 0.0), "division", (-0.3,)),
        ("division2", (0.2, 0.0), "division", (0.2,)),
        ("ucm", (0.6,), "eucm", (0.6, 1.0)),
        ("eucm", (0.0, 3.0), "pinhole", ()),
        ("double_sphere", (0.0, 0.6), "eucm", (0.6, 1.0)),
        ("double_sphere", (0.0, 0.3), "eucm", (0.3, 1.0)),
    ],
)
def test_special_cases_are_simpler_models(
    name: str, distortion: tuple[float, ...], other: str, same: tuple[float, ...]
) -> None:
    camera, simpler = camera_of(name, distortion), camera_of(other, same)
    pixels = pixels_at(camera, radii_in_domain(camera, INSIDE))
    torch.testing.assert_close(camera.unproject(pixels), simpler.unproject(pixels))
    rays = rays_at(torch.linspace(0, 3.1, 40, dtype=torch.float64)[None])
    torch.testing.assert_close(camera.project(rays), simpler.project(rays))
