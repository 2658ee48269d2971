"""The synthetic pictures obey the conventions, judged by their pixels."""

from __future__ import annotations

import math
from functools import cache

import pytest
import torch
from scipy import ndimage
from torch import Tensor

from geocalib import Camera, perspective_field
from geocalib.errors import CameraError
from geocalib.geometry.gravity import from_roll_pitch
from geocalib.synthetic import BALL, POST, Scene, render_scene

SIZE = (240, 160)
CAMERAS = {
    "pinhole": Camera.create("pinhole", f=120.0, size=SIZE, dtype=torch.float32),
    "off-centre": Camera.create(
        "pinhole", f=120.0, size=SIZE, c=(100.0, 90.0), aspect=1.2, dtype=torch.float32
    ),
    "barrel": Camera.create(
        "simple_radial", f=190.0, size=SIZE, distortion=[-0.25], dtype=torch.float32
    ),
    "fisheye": Camera.create("kannala_brandt", f=80.0, size=SIZE, dtype=torch.float32),
}
PIXEL = 1 / 80
"""Upper bound of what one pixel of these cameras spans, radians."""


def gravity(roll: float, pitch: float) -> Tensor:
    """(1, 3) gravity of angles in degrees."""
    return from_roll_pitch(*torch.deg2rad(torch.tensor([[roll], [pitch]])))


@cache
def town(name: str, roll: float, pitch: float) -> Tensor:
    """(H, W, 3) of the camera of this name, turned by angles in degrees."""
    return render_scene(CAMERAS[name], gravity(roll, pitch), seed=3, subpixels=1)[0]


def sky(picture: Tensor) -> Tensor:
    """Only the sky is bright and blue."""
    red, _, blue = picture.unbind(-1)
    return (blue > red + 0.1) & (blue > 0.7)


def posts(picture: Tensor) -> list[Tensor]:
    """(N, 2) pixels x, y of each lamp post of some length: only they are red."""
    red, green, _ = picture.unbind(-1)
    labels, count = ndimage.label((red > 0.35) & (green < 0.35 * red))
    found = (torch.from_numpy(labels) == label + 1 for label in range(count))
    pieces = [piece.nonzero().flip(-1) + 0.5 for piece in found]
    return [p for p in pieces if (p.amax(0) - p.amin(0)).norm() > 25]


def lean(post: Tensor) -> Tensor:
    """Unit direction (2,) of a post's pixels, upwards in the picture."""
    axis: Tensor = torch.linalg.svd(post - post.mean(0), full_matrices=False).Vh[0]
    return axis * -axis[1].sign()


@pytest.mark.parametrize(("roll", "pitch"), [(0, 0), (15, 0), (0, 15), (-20, -10)])
@pytest.mark.parametrize("name", CAMERAS)
def test_sky_and_ground_meet_at_latitude_zero(name: str, roll: float, pitch: float) -> None:
    g = gravity(roll, pitch)
    blue = sky(town(name, roll, pitch))
    latitude = perspective_field(CAMERAS[name], g)[1][0, 0]
    assert not blue[latitude < -1e-4].any()
    just_above = (latitude > 1e-4) & (latitude < 2 * PIXEL)
    # Elsewhere houses and posts stand in front.
    assert blue[just_above].float().mean() > 0.2


@pytest.mark.parametrize(("roll", "pitch"), [(0, 0), (15, 0), (0, 15), (-20, -10)])
@pytest.mark.parametrize("name", CAMERAS)
def test_posts_rise_along_the_up_vectors(name: str, roll: float, pitch: float) -> None:
    g = gravity(roll, pitch)
    up = perspective_field(CAMERAS[name], g)[0][0]
    found = posts(town(name, roll, pitch))
    assert found
    for post in found:
        x, y = post.long().unbind(-1)
        mean_up = torch.nn.functional.normalize(up[:, y, x].mean(1), dim=0)
        assert torch.rad2deg(torch.acos((lean(post) * mean_up).sum().clamp(max=1))) < 2.5


def test_a_level_camera_sees_upright_posts_and_the_horizon_at_the_centre() -> None:
    picture = town("pinhole", 0, 0)
    assert all(lean(post)[0].abs() < 0.03 for post in posts(picture))
    rows = sky(picture).any(1)
    assert rows[: SIZE[1] // 2].all()
    assert not rows[SIZE[1] // 2 :].any()


def test_positive_roll_leans_posts_to_the_left() -> None:
    picture = town("pinhole", 15, 0)
    angles = [math.degrees(math.asin(float(lean(post)[0]))) for post in posts(picture)]
    assert angles == pytest.approx([-15] * len(angles), abs=2.5)


def test_positive_pitch_sinks_the_horizon() -> None:
    picture = town("pinhole", 0, 15)
    lowest = sky(picture).any(1).nonzero().max() + 1
    assert float(lowest) == pytest.approx(80 + 120 * math.tan(math.radians(15)), abs=1)


@pytest.mark.parametrize("name", CAMERAS)
def test_posts_stand_where_the_camera_projects_them(name: str) -> None:
    camera = CAMERAS[name]
    picture = town(name, 0, 0)
    foot, top = Scene.create(3, camera.f).posts.unbind(1)
    for height, colour in ((0.03, POST), (0.5, POST), (0.9, POST), (1.0, BALL)):
        at, valid = camera.project(torch.lerp(foot, top, height)[None])
        inside = valid & ((at > 0) & (at < camera.size[:, None])).all(-1)
        x, y = at[inside].long().unbind(-1)
        assert len(x) > 0
        # Light and shade change the brightness, not the hue.
        hue = picture[y, x] / picture[y, x].amax(-1, keepdim=True)
        torch.testing.assert_close(hue, (torch.tensor(colour) / max(colour)).expand_as(hue))


def test_the_same_seed_is_the_same_town() -> None:
    camera, g = Camera.create("pinhole", f=30.0, size=(60, 40), dtype=torch.float32), gravity(5, 5)
    first, again, other = (render_scene(camera, g, seed) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_a_batch_is_its_cameras_one_by_one() -> None:
    camera = Camera.create(
        "simple_radial", f=[40.0, 30.0], size=(60, 40), distortion=[-0.05], dtype=torch.float32
    )
    g = torch.cat([gravity(0, 0), gravity(20, -10)])
    both = render_scene(camera, g)
    for i in range(2):
        torch.testing.assert_close(both[i : i + 1], render_scene(camera[i], g[i : i + 1]))


def test_colours_lie_within_zero_and_one_and_follow_the_dtype() -> None:
    camera = Camera.create("pinhole", f=30.0, size=(60, 40), dtype=torch.float64)
    picture = render_scene(camera, gravity(0, 0).double())
    assert picture.dtype == torch.float64
    assert picture.shape == (1, 40, 60, 3)
    assert 0 < picture.min() < picture.max() <= 1


def test_pixels_outside_the_domain_are_black() -> None:
    camera = Camera.create(
        "simple_radial", f=50.0, size=SIZE, distortion=[-0.25], dtype=torch.float32
    )
    _, _, valid = perspective_field(camera, gravity(0, 0))
    picture = render_scene(camera, gravity(0, 0), subpixels=1)
    assert not valid.all()
    assert torch.equal((picture > 0).all(-1), valid)


@pytest.mark.parametrize("pitch", [-90, 90])
def test_straight_up_is_sky_and_straight_down_is_ground(pitch: float) -> None:
    camera = Camera.create("pinhole", f=100.0, size=(30, 20), dtype=torch.float32)
    blue = sky(render_scene(camera, gravity(0, pitch), subpixels=1))
    assert blue.all() if pitch > 0 else not blue.any()


def test_images_of_different_sizes_are_refused() -> None:
    camera = Camera.create("pinhole", f=30.0, size=[[60, 40], [40, 60]], dtype=torch.float32)
    with pytest.raises(CameraError, match="one by one"):
        render_scene(camera, gravity(0, 0).expand(2, 3))
