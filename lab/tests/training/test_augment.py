import math
from dataclasses import fields, replace

import pytest
import torch
from torch import Tensor

from geocalib.cameras import MODELS, Camera
from geocalib.geometry.fields import perspective_field
from geocalib.geometry.gravity import world_from_camera
from geocalib_lab.panoramas.holes import black_share
from geocalib_lab.panoramas.panorama import PanoramaBank, render
from geocalib_lab.training.augment import (
    AugmentConfig,
    Change,
    augment,
    flip,
    hide_nadir,
)
from views import random_cameras, random_gravity

CHANGES = [f.name for f in fields(AugmentConfig) if f.type == "Change"]
NEVER = replace(
    AugmentConfig(),
    changed_share=1.0,
    grey=0.0,
    **{name: replace(getattr(AugmentConfig(), name), probability=0.0) for name in CHANGES},
)


def pictures(count: int = 8, height: int = 48, width: int = 64) -> Tensor:
    """Smooth colourful pictures."""
    generator = torch.Generator().manual_seed(3)
    small = torch.rand(count, 3, 6, 8, generator=generator)
    return torch.nn.functional.interpolate(small, (height, width), mode="bilinear")


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def always(name: str) -> AugmentConfig:
    return replace(NEVER, **{name: replace(getattr(NEVER, name), probability=1.0)})


def changed(before: Tensor, after: Tensor) -> Tensor:
    return (before != after).flatten(1).any(1)


class TestChain:
    def test_nothing_happens_without_probability(self) -> None:
        images = pictures()
        assert torch.equal(augment(images, NEVER, generator()), images)

    @pytest.mark.parametrize("name", CHANGES)
    def test_each_change_alone(self, name: str) -> None:
        images = pictures()
        before = images.clone()
        after = augment(images, always(name), generator())
        assert torch.equal(images, before)
        assert after.shape == images.shape
        assert after.dtype == images.dtype
        assert torch.isfinite(after).all()
        assert after.min() >= 0
        assert after.max() <= 1
        # Erasing may leave a picture alone; the others never do.
        assert changed(images, after).float().mean() > (0.5 if name == "erase" else 0.99)

    @pytest.mark.parametrize("name", CHANGES)
    def test_strengths_differ_between_pictures(self, name: str) -> None:
        images = pictures(1).expand(6, -1, -1, -1)
        after = augment(images, always(name), generator())
        assert len(torch.unique(after.flatten(1), dim=0)) > 3

    def test_whole_chain_is_reproducible_and_keeps_the_picture(self) -> None:
        images = pictures(32)
        after = augment(images, AugmentConfig(), generator())
        assert torch.equal(after, augment(images, AugmentConfig(), generator()))
        assert not torch.equal(after, augment(images, AugmentConfig(), generator(1)))
        for before, now in zip(images.flatten(1), after.flatten(1), strict=True):
            assert torch.corrcoef(torch.stack([before, now]))[0, 1] > 0.3

    @pytest.mark.parametrize("count", [1, 3, 40])
    def test_happens_as_often_as_told(self, count: int) -> None:
        config = replace(NEVER, gamma=Change(0.3, 2.0, 3.0))
        images = pictures(count, 8, 8)
        source = generator()
        rounds = 1200 // count
        hits = sum(
            int(changed(images, augment(images, config, source)).sum()) for _ in range(rounds)
        )
        assert hits / (count * rounds) == pytest.approx(0.3, abs=0.05)

    def test_some_pictures_stay_as_they_are(self) -> None:
        config = replace(always("gamma"), changed_share=0.5)
        images = pictures(40, 8, 8)
        assert int(changed(images, augment(images, config, generator())).sum()) == 20

    def test_grey_has_one_channel(self) -> None:
        after = augment(pictures(), replace(NEVER, grey=1.0), generator())
        torch.testing.assert_close(after[:, 0], after[:, 1])
        torch.testing.assert_close(after[:, 0], after[:, 2])

    def test_erasing_leaves_most_of_a_picture(self) -> None:
        images = pictures(40)
        after = augment(images, always("erase"), generator())
        touched = (images != after).any(1).float().mean((1, 2))
        assert touched.max() < 3 * 0.35**2
        assert touched.mean() > 0.01


class TestFlip:
    @pytest.mark.parametrize("model", sorted(MODELS))
    def test_is_the_view_of_a_mirrored_world(self, model: str) -> None:
        noise = torch.rand(1, 3, 8, 16, generator=generator())
        panorama = torch.nn.functional.interpolate(noise, (256, 512), mode="bicubic").clamp(0, 1)
        panorama = (255 * panorama[0]).byte().permute(1, 2, 0)
        bank = PanoramaBank.create([panorama, panorama.flip(1)], ["world", "mirror"])
        camera = random_cameras(model, 4, seed=2, size=(48, 32), vfov_deg=(40, 80)).to(
            torch.float32
        )
        camera = replace(camera, c=camera.c + torch.tensor([5.0, -3.0]))
        gravity = random_gravity(4, seed=5).float()
        yaw = torch.tensor([0.3, -2.0, 1.0, 3.1])
        ones = torch.ones(4, dtype=torch.long)
        images = render(bank, 0 * ones, camera, world_from_camera(gravity, yaw), 48, 32)
        flipped, new_gravity, new_camera = flip(images, gravity, camera)
        mirrored = world_from_camera(new_gravity, -yaw)
        expected = render(bank, ones, new_camera, mirrored, 48, 32)
        # Where two sizes of the panorama serve equally well, either may be taken.
        error = (flipped - expected).abs()
        assert (error < 1e-3).float().mean() > 0.999
        assert error.max() < 0.05

    def test_mirrors_the_perspective_field(self) -> None:
        camera = random_cameras("simple_radial", 3, seed=1, size=(40, 30))
        camera = replace(camera, c=camera.c + 2.5)
        gravity = random_gravity(3, seed=1)
        images = torch.zeros(3, 3, 30, 40)
        _, new_gravity, new_camera = flip(images, gravity, camera)
        up, latitude, _ = perspective_field(camera, gravity)
        new_up, new_latitude, _ = perspective_field(new_camera, new_gravity)
        torch.testing.assert_close(new_latitude, latitude.flip(-1))
        sign = torch.tensor([-1.0, 1.0], dtype=torch.float64)[:, None, None]
        torch.testing.assert_close(new_up, sign * up.flip(-1))

    def test_only_the_chosen(self) -> None:
        images = pictures(2)
        camera = Camera.create(
            "pinhole", f=[50.0, 60.0], size=(64, 48), c=(30.0, 20.0), dtype=torch.float32
        )
        gravity = random_gravity(2, seed=1).float()
        flipped, turned, mirrored = flip(images, gravity, camera, torch.tensor([True, False]))
        assert torch.equal(flipped[0], images[0].flip(-1))
        assert torch.equal(flipped[1], images[1])
        assert torch.equal(turned[:, 0], gravity[:, 0] * torch.tensor([-1.0, 1.0]))
        assert mirrored.c.tolist() == [[34.0, 20.0], [30.0, 20.0]]


def test_black_share() -> None:
    images = torch.full((3, 3, 10, 10), 0.5)
    images[1, :, :2] = 0
    images[1, 2, 5] = 0
    images[2] = 1 / 255
    assert black_share(images).tolist() == pytest.approx([0, 0.2, 1])


def test_hide_nadir() -> None:
    images = pictures(2000, 4, 3)
    latitude = torch.deg2rad(torch.tensor([10.0, -60, -77, -79])[None, None, :, None])
    hidden = hide_nadir(images, latitude.expand(len(images), 1, 4, 3), 0.25, generator())
    assert torch.equal(hidden[:, :, :3], images[:, :, :3])
    last = changed(images, hidden)
    assert float(last.float().mean()) == pytest.approx(0.25, abs=0.04)
    filled = hidden[last][:, :, 3]
    assert torch.equal(filled, filled[..., :1].expand_as(filled))
    assert math.isclose(float(filled.mean()), 0.5, abs_tol=0.05)
