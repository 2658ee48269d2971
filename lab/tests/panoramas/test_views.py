import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation
from torch import Tensor

from geocalib.errors import PanoramaError
from geocalib.geometry.gravity import from_roll_pitch, to_roll_pitch
from geocalib_lab.panoramas.panorama import PanoramaBank
from geocalib_lab.panoramas.views import ViewConfig, Views, sample_views

PUBLISHED = ViewConfig(published_share=1.0, largest_magnification=100.0)
PEOPLE = ViewConfig(published_share=0.0, largest_magnification=100.0)


def bank_of(names: list[str], scenes: list[str] | None = None, width: int = 32) -> PanoramaBank:
    return PanoramaBank.create(
        [torch.zeros(width // 2, width, 3).byte()] * len(names), names, scenes
    )


def draw(
    config: ViewConfig,
    count: int = 4000,
    width: int = 320,
    height: int = 320,
    seed: int = 1,
    bank: PanoramaBank | None = None,
) -> Views:
    generator = torch.Generator().manual_seed(seed)
    return sample_views(bank or bank_of(["a__x__1"]), count, config, width, height, generator)


def hats(views: Views) -> Tensor:
    """k1 (H / f)^2."""
    camera = views.camera
    return camera.distortion[:, 0] * (camera.size[:, 1] / camera.f) ** 2


def uniform_p(values: Tensor, low: float, high: float) -> float:
    """How likely a uniform sample would look less uniform."""
    from scipy import stats  # here, as every process that collects tests would take a second

    return float(stats.kstest(values.numpy(), stats.uniform(low, high - low).cdf).pvalue)


def test_shapes_and_types() -> None:
    views = draw(ViewConfig(), count=7, width=416, height=320)
    assert len(views) == len(views.camera) == 7
    assert views.camera.model.name == "simple_radial"
    assert views.camera.size.tolist() == [[416.0, 320.0]] * 7
    assert views.camera.c.tolist() == [[208.0, 160.0]] * 7
    assert views.index.dtype == torch.long
    assert views.distorted.dtype == torch.bool
    for value in (views.camera.f, views.gravity, views.panorama_from_camera):
        assert value.dtype == torch.float32


def test_same_generator_same_views() -> None:
    first, second, other = draw(ViewConfig()), draw(ViewConfig()), draw(ViewConfig(), seed=2)
    assert torch.equal(first.panorama_from_camera, second.panorama_from_camera)
    assert torch.equal(first.camera.distortion, second.camera.distortion)
    assert not torch.equal(first.panorama_from_camera, other.panorama_from_camera)


class TestRotation:
    def test_is_a_rotation_that_takes_gravity_down(self) -> None:
        views = draw(ViewConfig())
        R = views.panorama_from_camera
        torch.testing.assert_close(R @ R.mT, torch.eye(3).expand_as(R), atol=1e-6, rtol=0)
        assert (torch.linalg.det(R) > 0).all()
        down = (R @ views.gravity[..., None])[..., 0]
        torch.testing.assert_close(
            down, torch.tensor([0.0, 1.0, 0.0]).expand_as(down), atol=1e-6, rtol=0
        )

    def test_is_yaw_then_pitch_then_roll(self) -> None:
        views = draw(ViewConfig(), count=200)
        roll, pitch = to_roll_pitch(views.gravity)
        forward = views.panorama_from_camera[:, :, 2]
        yaw = torch.atan2(forward[:, 0], forward[:, 2])
        angles = torch.stack([yaw, pitch, roll], -1).double().numpy()
        expected = Rotation.from_euler("YXZ", angles).as_matrix()
        np.testing.assert_allclose(views.panorama_from_camera.numpy(), expected, atol=1e-5)
        torch.testing.assert_close(from_roll_pitch(roll, pitch), views.gravity)

    def test_yaw_goes_all_round(self) -> None:
        forward = draw(PEOPLE).panorama_from_camera[:, :, 2]
        yaw = torch.atan2(forward[:, 0], forward[:, 2])
        assert uniform_p(yaw, -math.pi, math.pi) > 0.01


class TestDistributions:
    def test_published_views_are_uniform(self) -> None:
        views = draw(PUBLISHED, bank=bank_of(["a__x__1"], width=256))
        roll, pitch = (torch.rad2deg(angle) for angle in to_roll_pitch(views.gravity))
        assert uniform_p(roll, -45, 45) > 0.01
        assert uniform_p(pitch, -45, 45) > 0.01
        assert uniform_p(torch.rad2deg(views.camera.vfov), 20, 105) > 0.01

    def test_people_hold_their_cameras_nearly_level(self) -> None:
        views = draw(PEOPLE, bank=bank_of(["a__x__1"], width=256))
        roll, pitch = (torch.rad2deg(angle) for angle in to_roll_pitch(views.gravity))
        for found, knots in ((roll, PEOPLE.people_roll_deg), (pitch, PEOPLE.people_pitch_deg)):
            shares = np.interp(found.numpy(), knots, np.linspace(0, 1, len(knots)))
            assert uniform_p(torch.tensor(shares), 0, 1) > 0.01

    @pytest.mark.parametrize(("width", "height"), [(320, 256), (256, 320)])
    def test_people_have_their_lenses(self, width: int, height: int) -> None:
        views = draw(PEOPLE, width=width, height=height, bank=bank_of(["a__x__1"], width=512))
        lengths = PEOPLE.people_focal_mm if width > height else PEOPLE.people_upright_focal_mm
        millimetres = views.camera.f * math.hypot(36, 24) / math.hypot(width, height)
        shares = np.interp(
            millimetres.log().numpy(), np.log(lengths), np.linspace(0, 1, len(lengths))
        )
        assert uniform_p(torch.tensor(shares), 0, 1) > 0.01

    def test_both_kinds_in_their_shares(self) -> None:
        views = draw(replace(PUBLISHED, published_share=0.3))
        roll = torch.rad2deg(to_roll_pitch(views.gravity)[0]).abs()
        # Five ninths of the published views roll by more than 20 degrees, hardly any others.
        share = float((roll > 20).float().mean())
        assert share == pytest.approx(0.3 * 25 / 45, abs=0.03)

    @pytest.mark.parametrize(("width", "height"), [(320, 320), (480, 320), (320, 448)])
    def test_distortion_is_a_truncated_normal(self, width: int, height: int) -> None:
        from scipy import stats

        config = replace(PUBLISHED, distorted_share=1.0)
        views = draw(config, width=width, height=height)
        assert views.distorted.all()
        found = hats(views).numpy()
        low, high = found.min(), found.max()
        assert low >= -0.3
        assert high <= 0.3
        # Beyond the fold at the corner there is nothing.
        fold = max(-0.3, -0.98 * 16 / 27 * height**2 / (width**2 + height**2))
        law = stats.truncnorm(fold / 0.07, 0.3 / 0.07, loc=0, scale=0.07)
        assert stats.kstest(found, law.cdf).pvalue > 0.01

    @pytest.mark.parametrize(("width", "height"), [(320, 320), (512, 288), (288, 512)])
    def test_every_pixel_has_a_ray(self, width: int, height: int) -> None:
        config = replace(PUBLISHED, distorted_share=1.0, distortion_sigma=0.5)
        views = draw(config, width=width, height=height)
        corner = torch.zeros(len(views), 1, 2)
        _, valid = views.camera.unproject(corner)
        assert valid.all()
        assert (hats(views) < -0.1).any()

    def test_others_have_no_distortion(self) -> None:
        views = draw(replace(PUBLISHED, distorted_share=0.25))
        assert float(views.distorted.float().mean()) == pytest.approx(0.25, abs=0.03)
        assert (views.camera.distortion[~views.distorted] == 0).all()
        assert (views.camera.distortion[views.distorted] != 0).all()


class TestMagnification:
    def test_views_show_panoramas_that_are_sharp_enough(self) -> None:
        pictures = [torch.zeros(w // 2, w, 3).byte() for w in (128, 512, 1024)]
        bank = PanoramaBank.create(pictures, ["a__x__1", "b__x__1", "c__x__1"])
        config = ViewConfig(largest_magnification=1.5, published_share=1.0)
        views = draw(config, width=96, height=96, bank=bank)
        magnification = views.camera.f * 2 * math.pi / bank.width[views.index]
        assert float(magnification.max()) <= 1.5 * 1.002
        # Which panorama is left does not show in how the views are spread.
        assert uniform_p(torch.rad2deg(views.camera.vfov), 22.2, 105) > 0.01
        assert (views.index.bincount(minlength=3) > 0).tolist() == [False, True, True]

    def test_sharper_sizes_show_less_narrow_views(self) -> None:
        bank = bank_of(["a__x__1"], width=1024)
        config = ViewConfig(largest_magnification=2.8, coarser=(1, 2), published_share=1.0)
        views = draw(config, width=192, height=192, bank=bank)
        magnification = views.camera.f * 2 * math.pi / 1024
        assert float(magnification[views.coarser == 1].max()) == pytest.approx(1.4, rel=0.02)
        assert float(magnification[views.coarser == 2].max()) > 2

    def test_a_coarse_panorama_allows_only_one_view(self) -> None:
        views = draw(ViewConfig(largest_magnification=1.5), bank=bank_of(["a__x__1"], width=32))
        only = 2 * math.atan(160 / (1.5 * 32 / (2 * math.pi)))
        torch.testing.assert_close(views.camera.vfov, torch.full((4000,), only))

    def test_narrow_views_are_drawn_again_not_piled_up(self) -> None:
        bank = bank_of(["a__x__1"], width=512)
        views = draw(
            replace(PUBLISHED, largest_magnification=2.0), width=160, height=160, bank=bank
        )
        narrowest = math.degrees(2 * math.atan(80 / (2 * 512 / (2 * math.pi))))
        assert uniform_p(torch.rad2deg(views.camera.vfov), narrowest, 105) > 0.01


class TestChoice:
    NAMES = ("a__x__1", "a__x__2", "a__x__3", "b__y__1", "c__z__1", "c__z__2")
    SCENES = ("indoor", "indoor", "indoor", "indoor", "forest", "indoor")

    def shares(self, config: ViewConfig, scenes: bool) -> list[float]:
        bank = bank_of(list(self.NAMES), list(self.SCENES) if scenes else None)
        views = draw(config, count=40000, width=8, height=8, bank=bank)
        return (views.index.bincount(minlength=6) / len(views)).tolist()

    def test_owners_weigh_the_same(self) -> None:
        found = self.shares(ViewConfig(), scenes=False)
        assert found == pytest.approx([1 / 9, 1 / 9, 1 / 9, 1 / 3, 1 / 6, 1 / 6], abs=0.01)

    def test_scenes_weigh_as_told(self) -> None:
        config = ViewConfig(scene_weights=(("indoor", 3.0), ("forest", 1.0), ("moon", 5.0)))
        found = self.shares(config, scenes=True)
        assert found == pytest.approx([1 / 12, 1 / 12, 1 / 12, 1 / 4, 1 / 4, 1 / 4], abs=0.01)

    def test_a_scene_of_no_weight_is_left_out(self) -> None:
        config = ViewConfig(scene_weights=(("indoor", 0.0), ("forest", 1.0)))
        assert self.shares(config, scenes=True) == [0, 0, 0, 0, 1, 0]

    def test_a_scene_without_a_weight_is_an_error(self) -> None:
        config = ViewConfig(scene_weights=(("indoor", 3.0),))
        with pytest.raises(PanoramaError, match="nothing of forest"):
            self.shares(config, scenes=True)

    @pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
    def test_rendered_panoramas_have_their_share(self, share: float) -> None:
        bank = bank_of(list(self.NAMES)).join(
            bank_of(["world__0", "world__1"], ["synthetic_room", "synthetic_street"])
        )
        config = ViewConfig(synthetic_share=share)
        views = draw(config, count=20000, width=8, height=8, bank=bank)
        found = (views.index.bincount(minlength=8) / len(views)).tolist()
        photographed = [(1 - share) * part for part in (1 / 9, 1 / 9, 1 / 9, 1 / 3, 1 / 6, 1 / 6)]
        assert found == pytest.approx([*photographed, share / 2, share / 2], abs=0.012)

    def test_rendered_panoramas_alone(self) -> None:
        bank = bank_of(["world__0", "world__1"], ["synthetic_room", "synthetic_street"])
        views = draw(ViewConfig(synthetic_share=0.3), count=2000, bank=bank)
        assert views.index.bincount(minlength=2).min() > 900


def test_photographs_are_looked_up_coarser_and_rendered_ones_are_not() -> None:
    bank = bank_of(["a__x__1"]).join(bank_of(["world__0"], ["synthetic_room"]))
    views = draw(ViewConfig(coarser=(1, 2)), bank=bank)
    real = views.coarser[views.index == 0]
    assert sorted(set(real.tolist())) == [1, 2]
    assert float(real.mean()) == pytest.approx(1.5, abs=0.05)
    assert (views.coarser[views.index == 1] == 0).all()
    assert (draw(ViewConfig()).coarser == 0).all()


def test_some_views_look_far_up_or_down() -> None:
    config = ViewConfig(tilted_share=0.4, tilted_pitch_deg=(50.0, 80.0), published_tilt_deg=30.0)
    views = draw(replace(config, people_pitch_deg=(-20.0, 20.0)), count=2000)
    roll, pitch = (angle.rad2deg() for angle in to_roll_pitch(views.gravity))
    far = pitch.abs() > 49.9
    assert far.float().mean() == pytest.approx(0.4, abs=0.04)
    assert pitch.abs().max() <= 80.1
    assert (pitch[far] < 0).float().mean() == pytest.approx(0.75, abs=0.06)
    assert roll[far].abs().max() <= 30.1


def test_a_tilted_panorama_is_looked_up_where_the_world_is() -> None:
    bank = bank_of(["a__x__1", "b__x__1"])
    tilt = torch.tensor(Rotation.from_euler("ZX", [3, -2], degrees=True).as_matrix())
    level = draw(ViewConfig(), bank=bank)
    tilted = draw(ViewConfig(), bank=bank.levelled({"b__x__1": tilt}))
    expected = torch.where(
        (level.index == 1)[:, None, None],
        tilt.float() @ level.panorama_from_camera,
        level.panorama_from_camera,
    )
    torch.testing.assert_close(tilted.panorama_from_camera, expected)
    # What is down in the picture is what the truth says, not what the panorama shows.
    assert torch.equal(tilted.gravity, level.gravity)


def test_from_above_cameras_look_down() -> None:
    bank = bank_of(["world__0", "world__1"], ["synthetic_desk", "synthetic_room"])
    for config in (PUBLISHED, PEOPLE):
        views = draw(replace(config, steep_pitch_deg=(-60.0, 0.0)), bank=bank)
        pitch = torch.rad2deg(to_roll_pitch(views.gravity)[1])
        above = views.index == 0
        assert uniform_p(pitch[above], -60, 0) > 0.01
        assert pitch[~above].mean().abs() < 6
