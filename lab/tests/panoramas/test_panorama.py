import math

import cv2
import numpy as np
import pytest
import torch
from scipy.ndimage import map_coordinates
from scipy.spatial.transform import Rotation
from torch import Tensor

from geocalib.cameras import Camera
from geocalib.errors import PanoramaError
from geocalib.geometry.fields import perspective_field, pixel_grid
from geocalib.geometry.gravity import from_roll_pitch, world_from_camera
from geocalib_lab.panoramas.panorama import LEVELS, PanoramaBank, owner_of, render
from lenses import ALL_MODELS
from samples import sample_camera

FINE_DEG = 4.0
"""Period of the stripes that encode an angle."""


def striped(width: int, along_longitude: bool) -> Tensor:
    """A panorama (H, W, 3) whose red and green are the sine and cosine of an angle with a short
    period, and whose blue rises with the angle over the whole sphere."""
    height = width // 2
    if along_longitude:
        angle = 360 * (torch.arange(width) + 0.5).expand(height, -1) / width - 180
        ramp = (angle + 180) / 360
    else:
        angle = 90 - 180 * (torch.arange(height)[:, None] + 0.5).expand(-1, width) / height
        ramp = (angle + 90) / 180
    phase = 2 * math.pi * angle / FINE_DEG
    colour = torch.stack([0.5 + 0.5 * phase.sin(), 0.5 + 0.5 * phase.cos(), ramp], -1)
    return (255 * colour).round().to(torch.uint8)


def decoded_deg(images: Tensor, whole_deg: float) -> Tensor:
    """The angle (B, H, W) that pictures of a striped panorama show, degrees."""
    red, green, ramp = images.double().unbind(1)
    fine = torch.atan2(red - 0.5, green - 0.5) * FINE_DEG / (2 * math.pi)
    coarse = (ramp - 0.5) * whole_deg
    return fine + FINE_DEG * ((coarse - fine) / FINE_DEG).round()


@pytest.fixture(scope="module")
def latitudes() -> PanoramaBank:
    return PanoramaBank.create([striped(2048, along_longitude=False)], ["stripes"])


@pytest.fixture(scope="module")
def longitudes() -> PanoramaBank:
    return PanoramaBank.create([striped(2048, along_longitude=True)], ["stripes"])


@pytest.fixture
def noisy() -> Tensor:
    """A panorama (64, 128, 3) of independent pixels."""
    return torch.randint(0, 256, (64, 128, 3), generator=torch.Generator().manual_seed(5)).byte()


def looking(roll_deg: float, pitch_deg: float, yaw_deg: float) -> tuple[Tensor, Tensor]:
    """Gravity (1, 3) and rotation (1, 3, 3) of a camera, by SciPy's rotations.

    The camera turns right about the world's down axis, then up about its own x, then clockwise
    about its own z.
    """
    turn = Rotation.from_euler("YXZ", [yaw_deg, pitch_deg, roll_deg], degrees=True)
    matrix = torch.tensor(turn.as_matrix(), dtype=torch.float32)
    return matrix[1][None], matrix[None]


POSES = [(0, 0, 0), (0, 30, 10), (25, 0, -70), (-35, -40, 130), (10, -20, 175), (45, 45, -45)]


class TestDirections:
    @pytest.mark.parametrize("pose", POSES)
    @pytest.mark.parametrize("k1", [0.0, -0.1, 0.15])
    @pytest.mark.parametrize("supersample", [None, 2])
    def test_latitude_is_that_of_the_perspective_field(
        self,
        latitudes: PanoramaBank,
        pose: tuple[float, float, float],
        k1: float,
        supersample: int | None,
    ) -> None:
        roll, pitch, yaw = (torch.deg2rad(torch.tensor([float(angle)])) for angle in pose)
        gravity = from_roll_pitch(roll, pitch)
        camera = Camera.create(
            "simple_radial", f=150.0, size=(160, 120), distortion=[k1], dtype=torch.float32
        )
        rotation = world_from_camera(gravity, yaw)
        index = torch.zeros(1, dtype=torch.long)
        images = render(latitudes, index, camera, rotation, 160, 120, supersample)
        _, latitude, valid = perspective_field(camera, gravity)
        assert valid.all()
        away_from_poles = latitude[:, 0].abs() < math.radians(85)
        error = decoded_deg(images, 180) - torch.rad2deg(latitude[:, 0])
        assert error[away_from_poles].abs().max() < 0.01

    @pytest.mark.parametrize("pose", POSES)
    def test_longitude_grows_to_the_right_of_ahead(
        self, longitudes: PanoramaBank, pose: tuple[float, float, float]
    ) -> None:
        _, rotation = looking(*pose)
        camera = Camera.create("pinhole", f=200.0, size=(160, 120), dtype=torch.float32)
        index = torch.zeros(1, dtype=torch.long)
        images = render(longitudes, index, camera, rotation, 160, 120)
        x, y = pixel_grid(160, 120, camera.f).double().unbind(-1)
        ray = torch.stack([(x - 80) / 200, (y - 60) / 200, torch.ones_like(x)], -1)
        world = ray @ rotation[0].double().T
        longitude = torch.rad2deg(torch.atan2(world[..., 0], world[..., 2]))
        level = torch.hypot(world[..., 0], world[..., 2]) / world.norm(dim=-1)
        # The ramp starts anew straight behind, and degrees of longitude shrink to the poles.
        clear = (longitude.abs() < 177) & (level > 0.3)
        error = (decoded_deg(images, 360)[0] - longitude) * level
        assert clear.float().mean() > 0.5
        assert error[clear].abs().max() < 0.01

    @pytest.mark.parametrize("model", ["kannala_brandt", "eucm", "double_sphere"])
    def test_fisheyes_see_behind_themselves_and_black_beyond(
        self, latitudes: PanoramaBank, model: str
    ) -> None:
        camera = sample_camera(model, torch.float32)[0].resize(320, 240)
        gravity, rotation = looking(20, 10, 40)
        index = torch.zeros(1, dtype=torch.long)
        images = render(latitudes, index, camera, rotation, 320, 240)
        _, latitude, valid = perspective_field(camera, gravity)
        # At the very end of the domain a pixel covers many degrees.
        m = camera.normalise(pixel_grid(320, 240, camera.f)[None])
        rays, _ = camera.unproject(pixel_grid(320, 240, camera.f)[None])
        well_inside = m.norm(dim=-1) < 0.9 * camera.limits.radius[:, None, None]
        clear = well_inside & (latitude[:, 0].abs() < math.radians(80))
        assert (rays[clear][:, 2] < 0).any()
        error = decoded_deg(images, 180) - torch.rad2deg(latitude[:, 0])
        assert error[clear].abs().max() < 0.02
        assert (images.amax(1)[~valid] == 0).all()

    @pytest.mark.parametrize("model", ALL_MODELS)
    def test_every_model_renders(self, noisy: Tensor, model: str) -> None:
        camera = sample_camera(model, torch.float32)
        _, rotation = looking(0, 0, 0)
        bank = PanoramaBank.create([noisy], ["noise"])
        index = torch.zeros(len(camera), dtype=torch.long)
        images = render(bank, index, camera, rotation.expand(len(camera), 3, 3), 64, 48)
        assert images.shape == (len(camera), 3, 48, 64)
        assert images.dtype == torch.float32
        assert images.min() >= 0
        assert images.max() <= 1


class TestAgainstSciPy:
    def reference(self, panorama: Tensor, rays: np.ndarray) -> np.ndarray:
        """Colours (N, 3) in [0, 1] at world rays (N, 3), interpolated by SciPy."""
        x, y, z = rays.T / np.linalg.norm(rays, axis=1)
        height, width, _ = panorama.shape
        column = (np.arctan2(x, z) / (2 * np.pi) + 0.5) * width - 0.5
        row = np.clip((0.5 - np.arcsin(-y) / np.pi) * height - 0.5, 0, height - 1)
        values = panorama.numpy().astype(np.float64) / 255
        # The columns go round: SciPy interpolates in a copy that repeats three of them.
        values = np.pad(values, ((0, 0), (3, 3), (0, 0)), mode="wrap")
        where = np.stack([row, column + 3])
        return np.stack([map_coordinates(values[..., c], where, order=1) for c in range(3)], -1)

    @pytest.mark.parametrize("pose", [*POSES, (0, 90, 0), (0, -88, 180), (3, 2, 180)])
    def test_one_point_per_pixel(self, noisy: Tensor, pose: tuple[float, float, float]) -> None:
        _, rotation = looking(*pose)
        bank = PanoramaBank.create([noisy], ["noise"])
        # Magnified, so that the largest size serves; OpenCV takes the distortion off.
        camera = Camera.create(
            "simple_radial", f=90.0, size=(64, 48), distortion=[-0.3], dtype=torch.float32
        )
        index = torch.zeros(1, dtype=torch.long)
        images = render(bank, index, camera, rotation, 64, 48, supersample=None)
        K = np.array([[90.0, 0, 31.5], [0, 90.0, 23.5], [0, 0, 1]])
        pixels = np.stack(np.meshgrid(np.arange(64.0), np.arange(48.0)), -1).reshape(-1, 1, 2)
        m = cv2.undistortPoints(
            pixels,
            K,
            np.array([-0.3, 0, 0, 0]),
            criteria=(cv2.TERM_CRITERIA_COUNT + cv2.TERM_CRITERIA_EPS, 100, 1e-12),
        )
        rays = np.concatenate([m[:, 0], np.ones((len(m), 1))], 1) @ rotation[0].double().numpy().T
        expected = self.reference(noisy, rays).reshape(48, 64, 3)
        # Neighbouring pixels of the panorama differ by a third on average, so that this is a
        # hundredth of a pixel.
        error = np.abs(images[0].permute(1, 2, 0).numpy() - expected)
        assert error.mean() < 0.001
        assert error.max() < 0.02

    def test_points_within_a_pixel_are_averaged(self, noisy: Tensor) -> None:
        _, rotation = looking(12, -7, 100)
        bank = PanoramaBank.create([noisy], ["noise"])
        camera = Camera.create("pinhole", f=50.0, size=(32, 32), dtype=torch.float32)
        index = torch.zeros(1, dtype=torch.long)
        images = render(bank, index, camera, rotation, 32, 32, supersample=2)
        fine = render(bank, index, camera.resize(64, 64), rotation, 64, 64, supersample=None)
        averaged = torch.nn.functional.avg_pool2d(fine, 2)
        assert (images - averaged).abs().max() < 0.01


class TestSizes:
    def test_smaller_sizes_are_means_of_boxes(self, noisy: Tensor) -> None:
        bank = PanoramaBank.create([noisy, noisy[:32, :64]], ["a", "b"])
        channels = bank.pixels.view(torch.uint8).reshape(-1, 4).numpy()
        for number, picture in enumerate([noisy, noisy[:32, :64]]):
            height, width, _ = picture.shape
            for level in range(LEVELS):
                start = int(bank.offset[number, level])
                rows, columns, box = height >> level, width >> level, 1 << level
                found = channels[start : start + rows * columns, :3].reshape(rows, columns, 3)
                boxes = picture.numpy().astype(float).reshape(rows, box, columns, box, 3)
                np.testing.assert_allclose(found, boxes.mean((1, 3)), atol=0.5)

    def test_fine_patterns_are_averaged_not_sampled(self) -> None:
        board = (torch.arange(512)[:, None] + torch.arange(1024)) % 2 * 255
        bank = PanoramaBank.create([board.byte()[..., None].expand(-1, -1, 3)], ["board"])
        _, rotation = looking(5, 8, 20)
        # Each pixel covers about five by five of the panorama.
        camera = Camera.create("pinhole", f=32.0, size=(24, 24), dtype=torch.float32)
        images = render(bank, torch.zeros(1, dtype=torch.long), camera, rotation, 24, 24)
        assert (images - 0.5).abs().max() < 0.01

    def test_each_view_sees_its_own_panorama(self) -> None:
        colours = [10, 90, 200]
        sizes = [(64, 32), (102, 51), (32, 16)]
        pictures = [
            torch.full((h, w, 3), colour).byte()
            for colour, (w, h) in zip(colours, sizes, strict=True)
        ]
        bank = PanoramaBank.create(pictures, ["a", "b", "c"])
        index = torch.tensor([2, 0, 1, 2])
        camera = Camera.create(
            "pinhole", f=[4.0, 10.0, 20.0, 200.0], size=(16, 16), dtype=torch.float32
        )
        _, rotation = looking(0, 60, 180)
        images = render(bank, index, camera, rotation.expand(4, 3, 3), 16, 16)
        expected = torch.tensor(colours)[index][:, None, None, None] / 255
        torch.testing.assert_close(images, expected.expand_as(images))

    def test_a_size_that_does_not_halve_keeps_its_geometry(self) -> None:
        picture = striped(1644, along_longitude=False)[:, :, 2:].expand(-1, -1, 3)
        bank = PanoramaBank.create([picture], ["odd"])
        gravity, rotation = looking(0, 20, 0)
        # One pixel per 4 of the panorama, where level 2 has 205.5 rows.
        camera = Camera.create(
            "pinhole", f=1644 / (2 * math.pi * 8), size=(32, 32), dtype=torch.float32
        )
        images = render(bank, torch.zeros(1, dtype=torch.long), camera, rotation, 32, 32)
        _, latitude, _ = perspective_field(camera, gravity)
        found = (images[:, :1] - 0.5) * 180
        assert (found - torch.rad2deg(latitude)).abs().mean() < 0.3


class TestBank:
    def test_too_small_is_refused(self) -> None:
        with pytest.raises(PanoramaError, match="tiny is only 4x2 pixels"):
            PanoramaBank.create([torch.zeros(2, 4, 3).byte()], ["tiny"])

    def test_empty_is_refused(self) -> None:
        with pytest.raises(PanoramaError, match="at least one"):
            PanoramaBank.create([], [])

    def test_owners(self) -> None:
        assert owner_of("train/ann__tour__room__1.webp") == "ann__tour"
        names = ["b__x__1.webp", "a__y__1.webp", "b__x__2.webp", "b__z__2.webp"]
        bank = PanoramaBank.create([torch.zeros(16, 32, 3).byte()] * 4, names)
        assert len(bank) == 4
        assert bank.names == tuple(names)
        same = bank.owner[:, None] == bank.owner
        expected = torch.eye(4, dtype=torch.bool)
        expected[0, 2] = expected[2, 0] = True
        assert torch.equal(same, expected)


def test_joined_banks_show_the_same_pictures() -> None:
    pictures = [striped(256, along_longitude=True), striped(128, along_longitude=False)]
    first = PanoramaBank.create(pictures[:1], ["a__x__1"], ["room"])
    second = PanoramaBank.create(pictures[1:], ["a__x__1"], ["forest"])
    both = first.join(second)
    assert [both.scene_names[i] for i in both.scene] == ["room", "forest"]
    assert both.owner[0] != both.owner[1]
    camera = Camera.create("pinhole", f=60.0, size=(64, 48), dtype=torch.float32)
    for number, bank in enumerate((first, second)):
        apart, joined = (
            render(b, torch.tensor([i]), camera, torch.eye(3)[None], 64, 48)
            for b, i in ((bank, 0), (both, number))
        )
        assert torch.equal(apart, joined)


def test_a_coarser_size_is_blurred() -> None:
    bank = PanoramaBank.create([striped(1024, along_longitude=True)], ["stripes"])
    camera = Camera.create("pinhole", f=160.0, size=(64, 48), dtype=torch.float32)
    contrast = [
        float(
            render(
                bank,
                torch.tensor([0]),
                camera,
                torch.eye(3)[None],
                64,
                48,
                coarser=torch.tensor([float(halvings)]),
            )[0, 0].std()
        )
        for halvings in (1, 2, 5, 9)
    ]
    assert contrast[0] > contrast[1] > contrast[2]
    # There is nothing smaller than the smallest.
    assert contrast[2] == contrast[3]
