"""Every model on NumPy gives the numbers that it gives on torch."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import torch

from geocalib.cameras import Camera, DepthJet, from_colmap, from_opencv, to_colmap, to_opencv
from geocalib.cameras.legacy import LegacySimpleRadial
from lenses import ALL_MODELS
from libraries import assert_same, numpy_of
from samples import pixels_at, radii_in_domain, rays_at, sample_camera

PARTS = torch.tensor([0.0, 1e-9, 0.2, 0.5, 0.9, 0.999, 1.0, 1.2])
"""Of the domain; beyond 1 there are no rays."""


def parts_of(jet: DepthJet) -> dict[str, Any]:
    named = {field.name: getattr(jet, field.name) for field in fields(jet)}
    up = named.pop("up")
    return named | ({} if up is None else {"up": parts_of(up)})


@pytest.fixture(params=[*ALL_MODELS, "legacy"])
def camera(request: pytest.FixtureRequest) -> Camera:
    if request.param == "legacy":
        plain = sample_camera("simple_radial")
        return Camera.create(
            LegacySimpleRadial(), plain.f, plain.size, plain.distortion, plain.c, plain.aspect
        )
    return sample_camera(request.param)


def test_depth_and_its_derivatives(camera: Camera) -> None:
    s = radii_in_domain(camera, PARTS) ** 2
    k = [column[:, None] for column in camera.distortion.unbind(-1)]
    jet = camera.model.jet(s, k)
    with np.errstate(all="ignore"):
        same = camera.model.jet(s.numpy(), [column.numpy() for column in k])
        assert_same(camera.model.depth(s, k), camera.model.depth(*map(numpy_of, (s, k))))
    assert_same(parts_of(jet), parts_of(same))


def test_pixels_to_rays_and_back(camera: Camera) -> None:
    pixels = pixels_at(camera, radii_in_domain(camera, PARTS))
    assert_same(camera.unproject(pixels), numpy_of(camera).unproject(pixels.numpy()))
    angles = camera.limits.angle[:, None] * torch.tensor([0.0, 1e-9, 0.3, 0.8, 0.99, 1.01, 1.3])
    rays = rays_at(angles.double()) * torch.tensor([1.0, 3.0])[:, None, None, None]
    for each in rays.double():
        assert_same(camera.project(each), numpy_of(camera).project(each.numpy()))


def test_what_a_camera_says_of_itself(camera: Camera) -> None:
    same = numpy_of(camera)
    for name in ("K", "focal", "vfov", "hfov"):
        assert_same(getattr(camera, name), getattr(same, name))
    assert_same(camera.limits.radius, same.limits.radius)
    assert_same(camera.limits.angle, same.limits.angle)
    assert_same(camera.resize(320, 200), same.resize(320, 200))
    assert_same(camera.crop(3.5, -2, 100, 90), same.crop(3.5, -2, 100, 90))
    assert_same(camera.rotate90(3), same.rotate90(3))
    assert_same(camera[1:], same[1:])


def test_single_precision_stays_single(camera: Camera) -> None:
    single = numpy_of(camera).cast(np.float32)
    pixels = pixels_at(camera, radii_in_domain(camera, PARTS)).numpy().astype(np.float32)
    rays, _ = single.unproject(pixels)
    back, _ = single.project(rays)
    arrays = (rays, back, single.K, single.vfov, single.limits.radius, single.resize(9, 9).f)
    assert {array.dtype for array in arrays} == {np.dtype(np.float32)}


class TestCreate:
    """Numbers become arrays of the library that something else is in."""

    def test_arrays_tell(self) -> None:
        assert isinstance(Camera.create("pinhole", np.array([500.0]), (640, 480)).c, np.ndarray)
        mixed = Camera.create("pinhole", np.array([500.0]), torch.tensor([640.0, 480.0]))
        assert isinstance(mixed.f, torch.Tensor)

    @pytest.mark.parametrize("dtype", [np.float32, np.dtype("float64")])
    def test_a_dtype_tells(self, dtype: Any) -> None:
        camera = Camera.create("radial", 500, (640, 480), dtype=dtype)
        assert {type(value) for value in (camera.f, camera.distortion)} == {np.ndarray}
        assert camera.aspect.dtype == dtype

    def test_numbers_alone_become_tensors(self) -> None:
        assert isinstance(
            Camera.create("pinhole", 500, (640, 480), dtype=torch.float32).f, torch.Tensor
        )


def test_formats_of_others() -> None:
    names = ("SIMPLE_RADIAL", [500.0, 320.0, 240.0, -0.25], (640, 480))
    assert_same(from_colmap(*names, dtype=torch.float64), from_colmap(*names, dtype=np.float64))
    camera = sample_camera("radial")
    same = numpy_of(camera)
    assert to_colmap(same) == to_colmap(camera)
    module, K, distortion = to_opencv(same)[0]
    assert_same(camera[0], from_opencv(K, distortion, (640, 480), module, dtype=np.float64))
