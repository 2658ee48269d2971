"""The batch of cameras: making it, projecting with it, changing its image, its field of view."""

from __future__ import annotations

import math
from dataclasses import replace

import cv2
import numpy as np
import pytest
import torch
from torch import Tensor

from geocalib.cameras import MODELS, Camera
from geocalib.errors import CameraError
from geocalib.geometry import gravity
from lenses import ALL_MODELS
from samples import pixels_at, pixels_in_domain, radii_in_domain, rays_at, sample_camera

# Making cameras ---------------------------------------------------------------------------------


def test_create_with_defaults() -> None:
    camera = Camera.create("kannala_brandt", f=300, size=(640, 480), dtype=torch.float32)
    assert len(camera) == 1
    assert camera.f.dtype == torch.get_default_dtype()
    assert camera.c.tolist() == [[320.0, 240.0]]
    assert camera.distortion.tolist() == [[0.0] * 4]
    assert camera.aspect.tolist() == [1.0]


def test_create_expands_what_is_single() -> None:
    f = torch.tensor([300.0, 400.0, 500.0], dtype=torch.float64)
    camera = Camera.create("radial", f=f, size=(640, 480), distortion=[[0.1, 0.0]], aspect=2.0)
    assert len(camera) == 3
    assert camera.f.dtype == camera.size.dtype == torch.float64
    assert camera.distortion.tolist() == [[0.1, 0.0]] * 3
    assert camera.focal.tolist() == [[600.0, 300.0], [800.0, 400.0], [1000.0, 500.0]]
    expected = [[800.0, 0.0, 320.0], [0.0, 400.0, 240.0], [0.0, 0.0, 1.0]]
    assert camera.K[1].tolist() == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": "fisheye"}, "unknown camera model 'fisheye'"),
        ({"distortion": [0.1]}, r"radial takes 2 distortion parameters \(k1, k2\), got 1"),
        ({"model": "pinhole", "distortion": [0.1]}, r"pinhole takes 0 .*\(none\), got 1"),
        ({"size": (640,)}, r"size must be \(2,\) or \(B, 2\), got \(1, 1\)"),
        ({"f": [[500.0]]}, r"f must be \(\) or \(B, \), got \(1, 1\)"),
        ({"c": (1.0, 2.0, 3.0)}, r"c must be \(2,\) or \(B, 2\), got \(1, 3\)"),
        ({"aspect": [[1.0]]}, "aspect must be"),
        ({"f": [1.0, 2.0, 3.0], "aspect": [1.0, 1.0]}, "aspect is given for 2 cameras of 3"),
    ],
)
def test_bad_input(arguments: dict[str, object], message: str) -> None:
    given: dict[str, object] = {"model": "radial", "f": 500.0, "size": (640, 480)} | arguments
    with pytest.raises(CameraError, match=message):
        Camera.create(**given)  # type: ignore[arg-type]


def test_sub_batches() -> None:
    camera = Camera.create("pinhole", f=[1.0, 2.0, 3.0], size=(4, 3), dtype=torch.float32)
    assert camera[1].f.tolist() == [2.0]
    assert camera[-1].f.tolist() == [3.0]
    assert camera[-2].f.tolist() == [2.0]
    assert camera[1:].f.tolist() == [2.0, 3.0]
    assert camera[torch.tensor([True, False, True])].f.tolist() == [1.0, 3.0]
    assert [one.f.item() for one in camera] == [1.0, 2.0, 3.0]
    with pytest.raises(IndexError):
        camera[3]


def test_to_moves_everything() -> None:
    camera = sample_camera("radial").to(torch.float32)
    parts = (camera.f, camera.c, camera.distortion, camera.size, camera.aspect)
    assert {part.dtype for part in parts} == {torch.float32}


# Projecting -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL_MODELS)
def test_optical_axis(name: str) -> None:
    camera = sample_camera(name)
    ahead = torch.tensor([[0.0, 0.0, 2.0]], dtype=torch.float64).expand(len(camera), 1, 3)
    pixels, valid = camera.project(ahead)
    assert bool(valid.all())
    torch.testing.assert_close(pixels[:, 0], camera.c, rtol=0, atol=0)
    rays, valid = camera.unproject(camera.c[:, None])
    assert bool(valid.all())
    torch.testing.assert_close(rays, ahead / 2, rtol=0, atol=0)


@pytest.mark.parametrize("name", ALL_MODELS)
def test_what_has_no_pixel(name: str) -> None:
    camera = sample_camera(name)
    nowhere = torch.tensor([[0.0, 0.0, -1.0], [0.0, 0.0, 0.0]], dtype=torch.float64)
    pixels, valid = camera.project(nowhere.expand(len(camera), 2, 3))
    assert not bool(valid.any())
    assert bool(torch.isfinite(pixels).all())


@pytest.mark.parametrize("name", ALL_MODELS)
def test_project_ignores_the_length_of_rays(name: str) -> None:
    camera = sample_camera(name)
    rays, _ = camera.unproject(pixels_in_domain(camera))
    expected, _ = camera.project(rays)
    for length in (1e-6, 1e6):
        pixels, valid = camera.project(rays * length)
        assert bool(valid.all())
        torch.testing.assert_close(pixels, expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("name", ALL_MODELS)
def test_any_number_of_dimensions(name: str) -> None:
    camera = sample_camera(name)
    pixels = pixels_in_domain(camera, count=12)
    flat_rays, flat_valid = camera.unproject(pixels)
    rays, valid = camera.unproject(pixels.reshape(len(camera), 2, 3, 2, 2))
    assert rays.shape == (len(camera), 2, 3, 2, 3)
    torch.testing.assert_close(rays.reshape(flat_rays.shape), flat_rays)
    assert valid.reshape(flat_valid.shape).equal(flat_valid)
    back, valid = camera.project(rays)
    assert back.shape == (len(camera), 2, 3, 2, 2)
    assert valid.shape == (len(camera), 2, 3, 2)
    one, _ = camera.unproject(pixels[:, 3])
    torch.testing.assert_close(one, flat_rays[:, 3])


@pytest.mark.parametrize("name", [name for name in ALL_MODELS if MODELS[name].wide])
def test_wide_models_see_behind_themselves(name: str) -> None:
    camera = sample_camera(name)
    corner = torch.zeros(len(camera), 1, 2, dtype=torch.float64)
    rays, valid = camera.unproject(corner)
    seen = rays[valid]
    assert len(seen) > 0
    assert bool((seen[:, 2] < 0).all())


@pytest.mark.parametrize("name", ALL_MODELS)
def test_a_camera_that_is_not_known_spoils_no_other(name: str) -> None:
    distortion = [[math.nan] * len(MODELS[name].parameters), MODELS[name].start]
    for array in (np.array, torch.tensor):
        both = Camera.create(name, array([100.0, 100.0]), (64, 48), array(distortion))
        alone = Camera.create(name, array([100.0]), (64, 48), array([MODELS[name].start]))
        assert both.limits.radius[1] == alone.limits.radius[0]
        assert both.vfov[1] == alone.vfov[0]


# Gradients --------------------------------------------------------------------------------------


def small(name: str) -> Camera:
    """The sample cameras with units near 1, as numerical derivatives like it."""
    camera = sample_camera(name)
    return replace(camera, f=torch.full_like(camera.f, 1.3), c=camera.c / 200)


@pytest.mark.parametrize("name", ALL_MODELS)
def test_gradients_of_project(name: str) -> None:
    camera = small(name)
    parts = torch.linspace(0, 0.9, 4, dtype=torch.float64)
    angles = torch.minimum(camera.limits.angle, torch.tensor(2.6))[:, None] * parts
    angles = torch.where(
        torch.isfinite(camera.limits.radius)[:, None], angles, angles.clamp(max=1.2)
    )
    rays = 1.7 * rays_at(angles)

    def project(rays: Tensor, f: Tensor, c: Tensor, distortion: Tensor, aspect: Tensor) -> Tensor:
        changed = replace(camera, f=f, c=c, distortion=distortion, aspect=aspect)
        pixels, valid = changed.project(rays)
        assert bool(valid.all())
        return pixels

    inputs = (rays, camera.f, camera.c, camera.distortion, camera.aspect)
    assert bool((rays[:, 0, :2] == 0).all())
    leaves = tuple(value.detach().clone().requires_grad_() for value in inputs)
    assert torch.autograd.gradcheck(project, leaves, atol=1e-7, rtol=1e-6, fast_mode=True)


@pytest.mark.parametrize("name", ALL_MODELS)
def test_gradients_of_unproject(name: str) -> None:
    camera = small(name)
    pixels = pixels_in_domain(camera, count=4, part=0.6)

    def unproject(
        pixels: Tensor, f: Tensor, c: Tensor, distortion: Tensor, aspect: Tensor
    ) -> Tensor:
        changed = replace(camera, f=f, c=c, distortion=distortion, aspect=aspect)
        rays, valid = changed.unproject(pixels)
        assert bool(valid.all())
        return rays

    inputs = (pixels, camera.f, camera.c, camera.distortion, camera.aspect)
    assert pixels[:, 0].equal(camera.c)
    leaves = tuple(value.detach().clone().requires_grad_() for value in inputs)
    assert torch.autograd.gradcheck(unproject, leaves, atol=1e-7, rtol=1e-6, fast_mode=True)


@pytest.mark.parametrize("name", ALL_MODELS)
def test_gradients_are_finite_everywhere(name: str) -> None:
    """Also where there is no pixel or no ray: a masked loss must not turn into NaN."""
    camera = sample_camera(name)
    f, c, distortion = (
        value.clone().requires_grad_() for value in (camera.f, camera.c, camera.distortion)
    )
    camera = replace(camera, f=f, c=c, distortion=distortion)
    parts = torch.tensor([0.0, 0.5, 1.0, 1.5, 10.0], dtype=torch.float64)
    pixels = pixels_at(camera, radii_in_domain(camera, parts).detach()).detach()
    sphere = rays_at(torch.linspace(0, math.pi, 13, dtype=torch.float64)[None])
    special = torch.tensor([[[0.0, 0, 1], [0, 0, -1], [0, 0, 0], [1, 0, 0]]], dtype=torch.float64)
    rays = torch.cat([sphere, special], 1).expand(len(camera), -1, -1).clone()
    loss = camera.unproject(pixels.requires_grad_())[0].sum()
    loss = loss + camera.project(rays.requires_grad_())[0].sum()
    loss.backward()
    for leaf in (f, c, pixels, rays, *([distortion] if distortion.numel() else [])):
        assert leaf.grad is not None
        assert bool(torch.isfinite(leaf.grad).all())


# Changing the image -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL_MODELS)
def test_resize_and_crop(name: str) -> None:
    camera = sample_camera(name)
    pixels = pixels_in_domain(camera)
    rays, _ = camera.unproject(pixels)

    resized = camera.resize(320, 720)
    found, valid = resized.project(rays)
    assert bool(valid.all())
    assert resized.size.tolist() == [[320.0, 720.0]] * len(camera)
    scale = torch.tensor([0.5, 1.5], dtype=torch.float64)
    torch.testing.assert_close(found, pixels * scale, rtol=0, atol=1e-9)

    window = camera.crop(left=100, top=-20, width=200, height=300)
    found, valid = window.project(rays)
    assert bool(valid.all())
    assert window.size.tolist() == [[200.0, 300.0]] * len(camera)
    corner = torch.tensor([100.0, -20.0], dtype=torch.float64)
    torch.testing.assert_close(found, pixels - corner, rtol=0, atol=1e-9)


@pytest.mark.parametrize("turns", [-1, 0, 1, 2, 3, 5])
def test_rotate90_is_that_of_numpy(turns: int) -> None:
    camera = Camera.create(
        "simple_radial",
        f=4.0,
        size=(5, 3),
        distortion=[-0.05],
        c=(2.2, 1.9),
        aspect=1.2,
        dtype=torch.float64,
    )
    image = np.arange(15).reshape(3, 5)
    expected = np.rot90(image, turns)
    y, x = (torch.as_tensor(index).reshape(1, -1) + 0.5 for index in np.indices(image.shape))
    rays, _ = camera.unproject(torch.stack([x, y], -1))
    # The camera turns with the image, and so do vectors in its frame.
    turned = camera.rotate90(turns)
    pixels, valid = turned.project(gravity.rotate90(rays, turns))
    assert bool(valid.all())
    assert turned.size.tolist() == [[float(expected.shape[1]), float(expected.shape[0])]]
    column, row = (pixels[0] - 0.5).round().long().unbind(-1)
    torch.testing.assert_close(pixels[0], torch.stack([column, row], -1) + 0.5, check_dtype=False)
    assert expected[row.numpy(), column.numpy()].tolist() == image.ravel().tolist()


# Field of view ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in ALL_MODELS if not MODELS[name].wide])
def test_field_of_view_of_the_perspective_models(name: str) -> None:
    camera = sample_camera(name)
    torch.testing.assert_close(camera.vfov, 2 * torch.atan(240 / camera.f))
    torch.testing.assert_close(camera.hfov, 2 * torch.atan(320 / (1.1 * camera.f)))


def test_field_of_view_beyond_180_degrees() -> None:
    # An equidistant fisheye: an angle of one radian per f pixels, whatever the direction.
    camera = Camera.create(
        "kannala_brandt", f=120.0, size=(600, 480), aspect=1.25, dtype=torch.float64
    )
    assert camera.vfov.item() == pytest.approx(480 / 120, rel=1e-12)
    assert camera.hfov.item() == pytest.approx(600 / 150, rel=1e-12)
    # Off-centre, the two halves differ but their sum does not.
    off = replace(camera, c=torch.tensor([[300.0, 200.0]], dtype=torch.float64))
    assert off.vfov.item() == pytest.approx(480 / 120, rel=1e-12)


@pytest.mark.parametrize("name", [name for name in ALL_MODELS if MODELS[name].wide])
def test_field_of_view_of_the_wide_models(name: str) -> None:
    camera = sample_camera(name)
    camera = replace(camera, f=torch.full_like(camera.f, 300.0))
    # Less than 180 degrees: plainly the angle between two rays.
    ends = torch.tensor([[[320.0, 0.0], [320.0, 480.0]], [[0.0, 240.0], [640.0, 240.0]]])
    for pair, angle in zip(ends.double(), (camera.vfov, camera.hfov), strict=True):
        rays, valid = camera.unproject(pair.expand(len(camera), 2, 2))
        assert bool(valid.all())
        torch.testing.assert_close(torch.cos(angle), (rays[:, 0] * rays[:, 1]).sum(-1))
        assert bool((angle < math.pi).all())


def test_field_of_view_beyond_the_domain_is_unknown() -> None:
    camera = Camera.create(
        "eucm", f=100.0, size=(640, 480), distortion=(0.75, 1.0), dtype=torch.float32
    )
    assert camera.limits.radius.item() * 100 < 240
    assert math.isnan(camera.vfov.item())


@pytest.mark.parametrize("name", ALL_MODELS)
def test_border_views_are_the_angles_between_border_rays(name: str) -> None:
    camera = sample_camera(name)
    # The principal point is off the middle, and the view below 180 degrees.
    camera = replace(camera, f=torch.full_like(camera.f, 400.0))
    ends = torch.tensor([[[320.0, 0.0], [320.0, 480.0]], [[0.0, 240.0], [640.0, 240.0]]])
    for pair, angle in zip(ends.double(), (camera.border_vfov, camera.border_hfov), strict=True):
        rays, valid = camera.unproject(pair.expand(len(camera), 2, 2))
        cosine = (rays[:, 0] * rays[:, 1]).sum(-1)
        torch.testing.assert_close(torch.cos(angle[valid.all(1)]), cosine[valid.all(1)])
        assert bool((angle.isnan() == ~valid.all(1)).all())
        assert bool(valid.any())


def test_border_views_are_the_named_ones_of_a_centred_pinhole_and_of_wide_models() -> None:
    pinhole = Camera.create("pinhole", f=300.0, size=(640, 480), dtype=torch.float64)
    torch.testing.assert_close(pinhole.border_vfov, pinhole.vfov)
    torch.testing.assert_close(pinhole.border_hfov, pinhole.hfov)
    fisheye = Camera.create("kannala_brandt", f=120.0, size=(600, 480), dtype=torch.float64)
    torch.testing.assert_close(fisheye.border_vfov, fisheye.vfov)
    torch.testing.assert_close(fisheye.border_hfov, fisheye.hfov)


def test_border_views_against_opencv() -> None:
    size, f, c, k = (640, 480), 350.0, (350.0, 220.0), (-0.12, 0.02)
    ends = np.array([[[320.0, 0.0]], [[320.0, 480.0]], [[0.0, 240.0]], [[640.0, 240.0]]])
    # OpenCV counts pixels from the centre of the first one.
    K = np.array([[f, 0, c[0] - 0.5], [0, f, c[1] - 0.5], [0, 0, 1]])
    exact = (cv2.TERM_CRITERIA_COUNT | cv2.TERM_CRITERIA_EPS, 100, 1e-12)
    bent = cv2.undistortPoints(ends - 0.5, K, np.array([*k, 0.0, 0.0]), criteria=exact)
    fisheye = cv2.fisheye.undistortPoints(ends - 0.5, K, np.array([0.05, -0.01, 0.0, 0.0]))
    for name, distortion, points in (
        ("radial", k, bent),
        ("kannala_brandt", (0.05, -0.01, 0.0, 0.0), fisheye),
    ):
        rays = np.concatenate([points[:, 0], np.ones((4, 1))], axis=1)
        rays /= np.linalg.norm(rays, axis=1, keepdims=True)
        camera = Camera.create(name, f=f, size=size, distortion=distortion, c=c, dtype=np.float64)
        assert camera.border_vfov.item() == pytest.approx(np.arccos(rays[0] @ rays[1]), abs=1e-7)
        assert camera.border_hfov.item() == pytest.approx(np.arccos(rays[2] @ rays[3]), abs=1e-7)
