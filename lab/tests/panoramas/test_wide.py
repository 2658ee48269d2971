"""Wide views: through which cameras, what they show, and where they end."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from geocalib.geometry.fields import perspective_field, pixel_grid
from geocalib.geometry.gravity import to_roll_pitch
from geocalib_lab.panoramas.panorama import PanoramaBank
from geocalib_lab.panoramas.views import ViewConfig
from geocalib_lab.panoramas.wide import (
    WideConfig,
    WideViews,
    inside_rim,
    photograph_wide,
    sample_wide_views,
)

MODELS = ("ucm", "kannala_brandt", "division", "pinhole")
SIZE = (64, 48)
FILLED = WideConfig(circular_share=0.0)
OFF_CENTRE = replace(FILLED, off_centre_share=1.0)


def bank() -> PanoramaBank:
    """One panorama that is as bright as the sine of the latitude, and nowhere black."""
    rows = math.pi * (0.5 - (torch.arange(128) + 0.5) / 128)
    grey = (255 * (0.5 + 0.4 * torch.sin(rows))).round().to(torch.uint8)
    return PanoramaBank.create([grey[:, None, None].expand(128, 256, 3).contiguous()], ["o__x"])


def draw(model: str, wide: WideConfig, count: int = 300, seed: int = 1) -> WideViews:
    generator = torch.Generator().manual_seed(seed)
    return sample_wide_views(bank(), model, count, ViewConfig(), wide, *SIZE, generator)


def angle_at(views: WideViews, offset: Tensor) -> Tensor:
    """(B,) degrees from the optical axis, so many pixels (B,) to the right of its point."""
    points = views.camera.c[:, None] + torch.stack([offset, torch.zeros_like(offset)], -1)[:, None]
    rays, valid = views.camera.unproject(points)
    assert bool(valid.all())
    return torch.rad2deg(torch.atan2(rays[:, 0, 0], rays[:, 0, 2]))


def test_counts_add_up_to_the_share() -> None:
    counts = WideConfig(share=0.35).counts(512)
    assert sum(counts.values()) == round(0.35 * 512)
    assert counts["ucm"] == pytest.approx(0.175 * 512, abs=1)
    assert counts["division"] == pytest.approx(0.35 * 64, abs=1)
    assert WideConfig().counts(512) == {}
    assert WideConfig(share=1.0, ucm=0, division=0, pinhole=0).counts(7) == {"kannala_brandt": 7}


@pytest.mark.parametrize("model", MODELS)
class TestViews:
    def test_are_as_wide_as_asked(self, model: str) -> None:
        views = draw(model, FILLED)
        half = angle_at(views, torch.full((300,), 0.5 * SIZE[0] - 1e-3))
        ends = (80.0, FILLED.widest_pinhole_deg if model == "pinhole" else 190.0)
        assert float(half.min()) >= ends[0] / 2 - 0.1
        assert float(half.max()) <= ends[1] / 2 + 0.1
        # They come close to both ends.
        assert float(half.max()) - float(half.min()) > 0.45 * (ends[1] - ends[0])

    @pytest.mark.parametrize("config", [FILLED, OFF_CENTRE])
    def test_show_what_their_labels_say(self, model: str, config: WideConfig) -> None:
        views = draw(model, config, 12)
        images, light, keep = photograph_wide(bank(), views, *SIZE)
        grid = pixel_grid(*SIZE, views.camera.f).reshape(1, -1, 2).expand(12, -1, 2)
        _, latitude, valid = perspective_field(views.camera, views.gravity, grid)
        sine = (images[:, 0].flatten(1) - 0.5) / 0.4
        seen = valid & (light.flatten(1) == 1) & (images[:, 0].flatten(1) > 0)
        assert seen.float().mean() > 0.8
        assert (sine - torch.sin(latitude))[seen].abs().max() < 0.05
        assert keep.all()

    def test_rotation_takes_gravity_down(self, model: str) -> None:
        views = draw(model, FILLED)
        down = (views.panorama_from_camera @ views.gravity[..., None])[..., 0]
        torch.testing.assert_close(
            down, torch.tensor([0.0, 1.0, 0.0]).expand_as(down), atol=1e-6, rtol=0
        )
        roll, pitch = (torch.rad2deg(angle).abs() for angle in to_roll_pitch(views.gravity))
        assert 40 < float(roll.max()) <= 45
        assert 45 < float(pitch.max()) <= 50


def test_some_are_cut_out_beside_the_middle() -> None:
    middle, config = torch.tensor(SIZE) / 2, replace(OFF_CENTRE, off_centre_share=0.3)
    off = (draw("ucm", config).camera.c - middle) / middle
    assert 0.2 < float((off != 0).any(1).float().mean()) < 0.4
    farthest = off.abs().amax(0)
    assert ((farthest > 0.5) & (farthest <= config.off_centre)).all()
    assert (off.mean(0).abs() < 0.05).all()


def test_a_circle_ends_at_its_angle_and_is_black_beyond() -> None:
    config = WideConfig(circular_share=1.0, circle=(0.8, 0.8), circle_deg=(85, 85), softness=(2, 2))
    views = draw("kannala_brandt", replace(config, k2=(0, 0), k3=(0, 0)), 10)
    edge = views.rim * views.camera.f
    torch.testing.assert_close(edge, torch.full_like(edge, 0.8 * 24))
    torch.testing.assert_close(angle_at(views, edge), torch.full_like(edge, 85.0), rtol=0, atol=0.1)
    images, light, keep = photograph_wide(bank(), views, *SIZE)
    grid = pixel_grid(*SIZE, edge)
    off = torch.linalg.vector_norm(grid - torch.tensor(SIZE) / 2, dim=-1).expand(10, -1, -1)
    assert (light[:, 0][off > 0.8 * 24] == 0).all()
    assert (light[:, 0][off < 0.8 * 24 - 2] == 1).all()
    assert keep.all()
    inside = inside_rim(views.camera, views.rim, grid.reshape(1, -1, 2).expand(10, -1, 2))
    assert torch.equal(inside, (light > 0).flatten(1))
    assert (images.amax(1)[off < 0.8 * 24 - 2] > 0).all()


def test_pinholes_have_no_circle() -> None:
    views = draw("pinhole", WideConfig(circular_share=1.0))
    assert (views.softness == WideConfig().softness[0]).all()
    assert float(angle_at(views, torch.full((300,), 31.9)).max()) > 60


def test_a_black_panorama_is_not_kept() -> None:
    black = PanoramaBank.create([torch.zeros(128, 256, 3).byte()], ["o__x"])
    views = draw("ucm", FILLED, 3)
    assert not photograph_wide(black, views, *SIZE)[2].any()
