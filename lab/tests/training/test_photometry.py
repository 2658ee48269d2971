import math

import numpy as np
import pytest
import torch
from scipy.ndimage import gaussian_filter
from scipy.spatial.transform import Rotation
from torch import Tensor

from geocalib_lab.training import photometry


def pictures(count: int = 4, height: int = 40, width: int = 56) -> Tensor:
    return torch.rand(count, 3, height, width, generator=torch.Generator().manual_seed(1))


def strengths(*values: float) -> Tensor:
    return torch.tensor(values)


class TestTone:
    def test_gamma(self) -> None:
        images = pictures(2).clamp(min=0.01)
        found = photometry.gamma(images, strengths(2.0, 0.5))
        torch.testing.assert_close(found[0], images[0] ** 2)
        torch.testing.assert_close(found[1], images[1].sqrt())

    def test_tone_curve_rises_from_black_to_white(self) -> None:
        ramp = torch.linspace(0, 1, 101).expand(5, 3, 1, -1)
        shadows, lights = strengths(0, 0.3, -0.3, 0.3, -0.3), strengths(0, 0.3, -0.3, -0.3, 0.3)
        curve = photometry.tone_curve(ramp, shadows, lights)
        torch.testing.assert_close(curve[0], ramp[0])
        assert (curve.diff(dim=-1) > 0).all()
        torch.testing.assert_close(curve[..., 0], ramp[..., 0])
        torch.testing.assert_close(curve[..., -1], ramp[..., -1])
        assert (curve[1, ..., 1:-1] > ramp[1, ..., 1:-1]).all()
        assert (curve[2, ..., 1:-1] < ramp[2, ..., 1:-1]).all()

    def test_contrast_keeps_the_mean_and_brightness_moves_it(self) -> None:
        images = pictures(2)
        found = photometry.contrast(images, strengths(1.5, 0.5), strengths(0.0, 0.1))
        assert float(found[0].mean()) == pytest.approx(float(images[0].mean()), abs=1e-5)
        assert float(found[1].mean()) == pytest.approx(float(images[1].mean()) + 0.1, abs=1e-5)
        assert float(found[0].std() / images[0].std()) == pytest.approx(1.5, rel=1e-4)


class TestColour:
    def test_saturation_keeps_luma(self) -> None:
        images = pictures(3)
        found = photometry.saturation(images, strengths(0.0, 1.0, 2.0))
        torch.testing.assert_close(photometry.luma(found), photometry.luma(images))
        torch.testing.assert_close(found[0, 0], found[0, 2])
        torch.testing.assert_close(found[1], images[1])

    def test_hue_turns_about_the_grey_axis(self) -> None:
        images = pictures(2, 8, 8)
        angles = [0.4, -1.1]
        found = photometry.hue(images, strengths(*angles))
        for picture, image, angle in zip(found, images, angles, strict=True):
            turn = Rotation.from_rotvec(np.full(3, angle / math.sqrt(3)))
            expected = turn.apply(image.reshape(3, -1).T.double().numpy())
            np.testing.assert_allclose(picture.reshape(3, -1).T, expected, atol=1e-6)

    def test_white_balance_scales_channels(self) -> None:
        images = pictures(1)
        found = photometry.white_balance(images, strengths(0.2), strengths(-0.1))
        gains = (found / images)[0, :, 3, 3]
        assert gains.tolist() == pytest.approx([math.exp(0.2), math.exp(-0.1), math.exp(-0.2)])

    def test_sepia_is_warm_and_of_one_hue(self) -> None:
        red, green, blue = photometry.sepia(pictures(1), strengths(1.0))[0]
        assert (red > green).all()
        assert (green > blue).all()
        torch.testing.assert_close(red / blue, torch.full_like(red, 1.10 / 0.75))


class TestLight:
    def test_vignette_darkens_the_corners_alone(self) -> None:
        images = torch.ones(1, 3, 41, 81)
        found = photometry.vignette(images, strengths(0.4))[0, 0]
        assert float(found[20, 40]) == pytest.approx(1)
        for corner in (found[0, 0], found[-1, 0], found[0, -1], found[-1, -1]):
            assert float(corner) == pytest.approx(0.6)

    def test_gaussian_noise_has_its_sigma(self) -> None:
        images = torch.full((2, 3, 64, 64), 0.5)
        generator = torch.Generator().manual_seed(2)
        found = photometry.gaussian_noise(images, strengths(0.01, 0.1), generator)
        assert found.flatten(1).std(1).tolist() == pytest.approx([0.01, 0.1], rel=0.05)

    def test_sensor_noise_grows_with_the_light(self) -> None:
        images = torch.full((1, 3, 64, 64), 0.3)
        images[..., 32:] = 0.9
        generator = torch.Generator().manual_seed(2)
        found = photometry.sensor_noise(images, strengths(0.02), generator)
        light = found**2.2
        dark, bright = light[..., :32].std(), light[..., 32:].std()
        expected = math.sqrt((0.9**2.2 + 0.01) / (0.3**2.2 + 0.01))
        assert float(bright / dark) == pytest.approx(expected, rel=0.15)
        # Its colours are coarser than its grain.
        colour = found[:, 0] - found[:, 2]
        near = torch.corrcoef(torch.stack([colour[..., 1:].flatten(), colour[..., :-1].flatten()]))
        assert near[0, 1] > 0.4

    def test_low_light_keeps_that_part_of_the_light(self) -> None:
        images = torch.full((1, 3, 64, 64), 0.8)
        generator = torch.Generator().manual_seed(2)
        found = photometry.low_light(images, strengths(0.25), generator)
        assert float((found**2.2).mean()) == pytest.approx(0.25 * 0.8**2.2, rel=0.05)
        assert found.std() > 0.005


class TestSharpness:
    def test_soften_is_a_gaussian(self) -> None:
        images = pictures(2)
        found = photometry.soften(images, strengths(0.7, 1.8))
        for picture, image, sigma in zip(found, images, (0.7, 1.8), strict=True):
            expected = gaussian_filter(image.numpy(), (0, sigma, sigma), mode="mirror", radius=7)
            np.testing.assert_allclose(picture, expected, atol=1e-5)

    def test_round_blur_is_soften(self) -> None:
        images, sigma = pictures(3), strengths(0.0, 0.8, 2.0)
        found = photometry.blur(images, sigma, torch.ones(3), strengths(0.3, 1.0, 2.0))
        torch.testing.assert_close(found, photometry.soften(images, sigma), atol=1e-5, rtol=0)
        torch.testing.assert_close(found[0], images[0])

    def test_blur_runs_along_its_direction(self) -> None:
        point = torch.zeros(2, 3, 31, 31)
        point[..., 15, 15] = 1
        found = photometry.blur(point, strengths(2.0, 2.0), strengths(0.4, 0.4), strengths(0, 0.6))
        y, x = torch.meshgrid(torch.arange(31.0) - 15, torch.arange(31.0) - 15, indexing="ij")
        spread = found[:, 0]
        xx, yy, xy = ((spread * v).sum((1, 2)) for v in (x * x, y * y, x * y))
        assert float(xx[0]) == pytest.approx(4.0, rel=0.03)
        assert float(yy[0]) == pytest.approx(0.64, rel=0.03)
        assert float(0.5 * torch.atan2(2 * xy[1], xx[1] - yy[1])) == pytest.approx(0.6, abs=0.01)

    def test_sharpen_undoes_some_blur(self) -> None:
        images = photometry.soften(pictures(1), strengths(1.0))
        found = photometry.sharpen(images, strengths(1.0))
        assert found.std() > 1.1 * images.std()
        assert float(found.mean()) == pytest.approx(float(images.mean()), abs=1e-3)


class TestResample:
    def test_by_one_changes_nothing_but_the_smoothing(self) -> None:
        images = pictures(1)
        expected = photometry.soften(images, strengths(0.4))
        torch.testing.assert_close(
            photometry.resample(images, strengths(1.0)), expected, atol=1e-4, rtol=0
        )

    @pytest.mark.parametrize("factor", [1.3, 2.0, 3.7])
    def test_nothing_moves(self, factor: float) -> None:
        x = (torch.arange(96) + 0.5) / 96
        ramp = (x[:, None] + 2 * x).expand(1, 3, -1, -1) / 3
        found = photometry.resample(ramp, strengths(factor))
        inner = (slice(None), slice(None), slice(12, -12), slice(12, -12))
        # The ramp rises by 0.007 from pixel to pixel: this is a seventieth of a pixel.
        torch.testing.assert_close(found[inner], ramp[inner], atol=1e-4, rtol=0)

    def test_fine_detail_is_lost_and_coarse_is_kept(self) -> None:
        x = torch.arange(96.0)
        waves = torch.stack([torch.cos(2 * math.pi * x / period) for period in (3.0, 32.0)])
        images = (0.5 + 0.4 * waves)[:, None, None, :].expand(2, 3, 96, 96)
        found = photometry.resample(images, strengths(3.0, 3.0))
        kept = found.std((1, 2, 3)) / images.std((1, 2, 3))
        assert kept[0] < 0.1
        assert kept[1] > 0.9


def test_crispen_makes_a_blurred_edge_a_step() -> None:
    ramp = torch.tensor([0.0, 0.0, 0.0, 0.1, 0.3, 0.7, 0.9, 1.0, 1.0, 1.0])
    images = ramp.expand(1, 3, 8, -1)
    crisp = photometry.crispen(images, torch.ones(1))
    assert crisp[0, 0, 4].tolist() == [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]
    assert torch.equal(photometry.crispen(images, torch.zeros(1)), images)
