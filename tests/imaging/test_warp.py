"""Warped pictures against OpenCV, against the synthetic town, and against their own cameras."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt
import pytest
import torch
from PIL import Image
from torch import Tensor

from geocalib.cameras import Camera
from geocalib.cameras.exchange import to_opencv
from geocalib.errors import CameraError, ImageError
from geocalib.geometry.gravity import from_roll_pitch
from geocalib.imaging.warp import Warped, rectify, undistort, upright
from geocalib.synthetic import render_scene

SIZE = (200, 150)
CAMERAS = {
    "pinhole": Camera.create("pinhole", f=170.0, size=SIZE, dtype=torch.float32),
    "off-centre": Camera.create(
        "pinhole", f=170.0, size=SIZE, c=(91.0, 82.0), aspect=1.15, dtype=torch.float32
    ),
    "barrel": Camera.create(
        "simple_radial", f=170.0, size=SIZE, distortion=[-0.2], dtype=torch.float32
    ),
    "pincushion": Camera.create(
        "radial", f=170.0, size=SIZE, distortion=[0.15, 0.02], dtype=torch.float32
    ),
    "division": Camera.create(
        "division", f=170.0, size=SIZE, distortion=[-0.2], dtype=torch.float32
    ),
    "fisheye": Camera.create(
        "kannala_brandt", f=60.0, size=SIZE, distortion=[0.02, 0, 0, 0], dtype=torch.float32
    ),
    "eucm": Camera.create("eucm", f=90.0, size=SIZE, distortion=[0.6, 1.1], dtype=torch.float32),
    "double sphere": Camera.create(
        "double_sphere", f=70.0, size=SIZE, distortion=[-0.2, 0.55], dtype=torch.float32
    ),
    "ends inside": Camera.create(
        "simple_radial", f=90.0, size=SIZE, distortion=[-0.25], dtype=torch.float32
    ),
}
BORDERS = ("keep", "crop")


def gravity(roll: float, pitch: float) -> Tensor:
    """(3,) gravity of angles in degrees."""
    return from_roll_pitch(*torch.deg2rad(torch.tensor([roll, pitch])))


def coordinates(width: int, height: int) -> npt.NDArray[np.uint8]:
    """(H, W, 3): each pixel's column in red and row in green."""
    picture = np.zeros((height, width, 3), np.uint8)
    picture[..., 0] = np.arange(width)
    picture[..., 1] = np.arange(height)[:, None]
    return picture


def old_pixels(warped: Warped, old: Camera, new_from_old: npt.NDArray[np.float64]) -> Tensor:
    """(H, W, 2) where the cameras say that the new picture's pixels were."""
    height, width = warped.valid.shape
    x, y = np.meshgrid(np.arange(width) + 0.5, np.arange(height) + 0.5)
    grid = torch.from_numpy(np.stack([x, y], -1)).reshape(1, -1, 2)
    rays, _ = warped.camera.to(torch.float64).unproject(grid)
    pixels, _ = old.to(torch.float64).project(rays @ torch.from_numpy(new_from_old))
    return pixels.reshape(height, width, 2)


def turned_about_the_axis(g: Tensor) -> npt.NDArray[np.float64]:
    """(3, 3): takes the roll of gravity off."""
    roll = math.atan2(float(g[0]), float(g[1]))
    rotation, _ = cv2.Rodrigues(np.array([0.0, 0.0, roll]))
    return np.asarray(rotation, np.float64)


def made_level(g: Tensor) -> npt.NDArray[np.float64]:
    """(3, 3): rows are the level frame's axes, the last one as close to ahead as it can be."""
    down = g.double().numpy()
    ahead = np.array([0, 0, 1.0]) - down[2] * down
    ahead /= np.linalg.norm(ahead)
    return np.stack([np.cross(down, ahead), down, ahead])


def assert_pixels_come_from(warped: Warped, expected: Tensor) -> None:
    """The picture of coordinates agrees with the cameras wherever it is valid."""
    seen = np.asarray(warped.image)[..., :2] + 0.5
    # The interpolation bends the ramp at the border of the old picture.
    inner = (expected > 3) & (expected < torch.tensor(SIZE) - 3)
    inner = torch.from_numpy(warped.valid) & inner.all(-1)
    assert inner.float().mean() > 0.3
    error = torch.from_numpy(seen)[inner] - expected[inner]
    assert error.abs().max() < 0.6
    assert error.mean(0).abs().max() < 0.02


@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("name", CAMERAS)
def test_undistorted_pixels_lie_where_the_cameras_say(name: str, border: str) -> None:
    warped = undistort(coordinates(*SIZE), CAMERAS[name], border)
    assert warped.camera.model.name == "pinhole"
    assert warped.gravity is None
    assert warped.valid.all() or border == "keep"
    assert_pixels_come_from(warped, old_pixels(warped, CAMERAS[name], np.eye(3)))


@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("name", ["off-centre", "barrel", "fisheye"])
def test_upright_pixels_lie_where_the_cameras_say(name: str, border: str) -> None:
    camera, g = CAMERAS[name], gravity(17, -12)
    warped = upright(coordinates(*SIZE), camera, g, border)
    assert warped.camera.model == camera.model
    assert torch.equal(warped.camera.distortion, camera.distortion)
    torch.testing.assert_close(warped.gravity, gravity(0, -12), atol=1e-6, rtol=0)
    assert warped.valid.all() or border == "keep"
    assert_pixels_come_from(warped, old_pixels(warped, camera, turned_about_the_axis(g)))


@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("name", ["off-centre", "barrel", "fisheye", "double sphere"])
def test_rectified_pixels_lie_where_the_cameras_say(name: str, border: str) -> None:
    camera, g = CAMERAS[name], gravity(-14, 16)
    warped = rectify(coordinates(*SIZE), camera, g, border)
    assert warped.camera.model.name == "pinhole"
    torch.testing.assert_close(warped.gravity, gravity(0, 0), atol=1e-6, rtol=0)
    assert warped.valid.all() or border == "keep"
    assert_pixels_come_from(warped, old_pixels(warped, camera, made_level(g)))


@pytest.mark.parametrize("name", ["barrel", "pincushion"])
def test_undistort_agrees_with_opencv(name: str) -> None:
    camera = CAMERAS[name]
    picture = np.random.default_rng(0).integers(0, 256, (SIZE[1], SIZE[0], 3), np.uint8)
    warped = undistort(picture, camera)
    new = to_opencv(warped.camera)[0].K
    _, old, distortion = to_opencv(camera)[0]
    maps = cv2.initUndistortRectifyMap(
        old, distortion, np.eye(3), new, warped.image.size, cv2.CV_32FC1
    )
    ours = old_pixels(warped, camera, np.eye(3)).numpy() - 0.5
    inside = warped.valid
    np.testing.assert_allclose(np.stack(maps, -1)[inside], ours[inside], atol=0.01)
    expected = cv2.remap(picture, *maps, cv2.INTER_LANCZOS4, borderMode=cv2.BORDER_REPLICATE)
    # On noise, a thousandth of a pixel shows; what falls on a boundary of rounding may differ.
    same = (np.asarray(warped.image) == expected).all(-1)[inside]
    assert same.mean() > 0.97
    difference = np.asarray(warped.image, int)[inside] - expected[inside]
    assert np.abs(difference).mean() < 0.2


@cache
def town(name: str, roll: float, pitch: float) -> npt.NDArray[np.float32]:
    picture: npt.NDArray[np.float32] = render_scene(CAMERAS[name], gravity(roll, pitch)[None])[
        0
    ].numpy()
    return picture


@pytest.mark.parametrize(
    ("kind", "name"),
    [("undistort", "barrel"), ("upright", "barrel"), ("rectify", "barrel"), ("rectify", "fisheye")],
)
def test_a_warped_town_is_the_town_that_the_new_camera_photographs(kind: str, name: str) -> None:
    g = gravity(8, 10)
    picture = town(name, 8, 10)
    if kind == "undistort":
        warped = undistort(picture, CAMERAS[name], "crop")
    else:
        warped = {"upright": upright, "rectify": rectify}[kind](picture, CAMERAS[name], g, "crop")
    down = g if warped.gravity is None else warped.gravity
    # Nothing but the middle, which is enough and takes less time.
    width, height = warped.image.size
    left, top = width // 2 - 40, height // 2 - 30
    expected = render_scene(warped.camera.crop(left, top, 80, 60), down[None])[0].numpy()
    shown = np.asarray(warped.image)[top : top + 60, left : left + 80] / 255
    assert np.abs(shown - expected).mean() < 0.03
    # A pixel off would show.
    shifted = np.asarray(warped.image)[top : top + 60, left + 1 : left + 81] / 255
    assert np.abs(shifted - expected).mean() > 1.5 * np.abs(shown - expected).mean()


@pytest.mark.parametrize("border", BORDERS)
def test_nothing_to_do_changes_nothing(border: str) -> None:
    picture = np.random.default_rng(0).integers(0, 256, (SIZE[1], SIZE[0], 3), np.uint8)
    for name in ("pinhole", "off-centre"):
        camera = CAMERAS[name]
        for warped in (
            undistort(picture, camera, border),
            upright(picture, camera, gravity(0, 20), border),
            rectify(picture, camera, gravity(0, 0), border),
        ):
            np.testing.assert_array_equal(np.asarray(warped.image), picture)
            assert warped.valid.all()
            for part in ("f", "c", "aspect", "size"):
                torch.testing.assert_close(getattr(warped.camera, part), getattr(camera, part))


@pytest.mark.parametrize("roll", [90, -90, 180])
def test_quarter_turns_move_whole_pixels(roll: int) -> None:
    picture = np.random.default_rng(0).integers(0, 256, (SIZE[1], SIZE[0], 3), np.uint8)
    warped = upright(picture, CAMERAS["pinhole"], gravity(roll, 0))
    # Roll > 0 has the content turned counter-clockwise, so it is turned back clockwise.
    expected = np.rot90(picture, -roll // 90)
    assert warped.image.size == (expected.shape[1], expected.shape[0])
    np.testing.assert_array_equal(np.asarray(warped.image), expected)


def largest_in_turned(width: float, height: float, angle: float) -> tuple[float, float]:
    """Width and height of the largest upright rectangle in a width x height one that is turned.

    Either two of its corners touch the longer sides, or all four touch one side each.
    """
    sine, cosine = abs(math.sin(angle)), abs(math.cos(angle))
    if min(width, height) <= 2 * sine * cosine * max(width, height):
        half = 0.5 * min(width, height)
        return (half / sine, half / cosine) if width > height else (half / cosine, half / sine)
    double = cosine * cosine - sine * sine
    return (width * cosine - height * sine) / double, (height * cosine - width * sine) / double


@pytest.mark.parametrize("roll", [3, -10, 30, 45, 80])
def test_crop_is_the_largest_rectangle(roll: float) -> None:
    warped = upright(coordinates(*SIZE), CAMERAS["pinhole"], gravity(roll, 5), "crop")
    width, height = largest_in_turned(*SIZE, math.radians(roll))
    got = warped.image.size
    # Among rectangles that touch the long sides only, many are almost as large.
    assert got[0] * got[1] == pytest.approx(width * height, abs=width + height)


@pytest.mark.parametrize("name", ["pinhole", "off-centre", "barrel", "pincushion", "division"])
def test_keep_holds_the_whole_picture_tightly(name: str) -> None:
    camera, g = CAMERAS[name].to(torch.float64), gravity(9, -13)
    along = torch.linspace(0, 1, 101, dtype=torch.float64)
    sides = [torch.stack(s, -1) for s in ((along, 0 * along), (along, 0 * along + 1))]
    border = torch.cat([*sides, *(side.flip(-1) for side in sides)]) * camera.size
    rays, _ = camera.unproject(border[None])
    for warped, rotation in (
        (undistort(coordinates(*SIZE), camera), np.eye(3)),
        (rectify(coordinates(*SIZE), camera, g), made_level(g)),
        (upright(coordinates(*SIZE), camera, g), turned_about_the_axis(g)),
    ):
        pixels, _ = warped.camera.project(rays @ torch.from_numpy(rotation).T)
        low, high = pixels[0].amin(0), pixels[0].amax(0)
        end = torch.tensor(warped.image.size)
        assert (low > -0.02).all()
        assert (high < end + 0.02).all()
        assert (low < 1).all()
        assert (high > end - 1).all()


@pytest.mark.parametrize("name", ["barrel", "eucm", "double sphere"])
def test_the_scale_on_the_axis_is_kept(name: str) -> None:
    warped = undistort(coordinates(*SIZE), CAMERAS[name], "crop")
    axis = torch.tensor([[[0.0, 0.0, 1.0], [1e-3, 0.0, 1.0], [0.0, 1e-3, 1.0]]]).double()
    old, new = (c.to(torch.float64).project(axis)[0] for c in (CAMERAS[name], warped.camera))
    torch.testing.assert_close(new - new[:, :1], old - old[:, :1], rtol=1e-4, atol=1e-6)


def test_very_wide_pictures_are_bounded() -> None:
    camera = Camera.create("kannala_brandt", f=60.0, size=(240, 200), dtype=torch.float32)
    warped = undistort(coordinates(240, 200), camera)
    width, height = warped.image.size
    assert 4 * 240 * 200 - width - height <= width * height <= 4 * 240 * 200 + width + height
    assert warped.camera.f < 60
    # 75 degrees to the left and to the right are the whole width.
    assert math.degrees(warped.camera.hfov) == pytest.approx(150, abs=0.3)
    y, x = np.nonzero(warped.valid)
    pixels = torch.from_numpy(np.stack([x, y], -1) + 0.5)[None]
    rays, _ = warped.camera.to(torch.float64).unproject(pixels)
    assert math.degrees(torch.acos(rays[..., 2].min())) <= 75


def test_a_domain_that_ends_inside_shows_its_disc() -> None:
    camera = CAMERAS["ends inside"]
    warped = undistort(coordinates(*SIZE), camera)
    # It ends at 1 / sqrt(3 * 0.25) = 1.1547 focal lengths in the pinhole picture.
    assert warped.image.size[0] == pytest.approx(2 * 1.1547 * 90, abs=1.1)
    black = np.asarray(warped.image)[~warped.valid]
    assert black.size > 0
    assert not black.any()


def test_images_of_any_kind(tmp_path: Path) -> None:
    pixels = coordinates(*SIZE)
    path = tmp_path / "picture.png"
    Image.fromarray(pixels).save(path)
    expected = np.asarray(undistort(pixels, CAMERAS["barrel"]).image)
    for image in (path, Image.fromarray(pixels), pixels / 255):
        np.testing.assert_array_equal(
            np.asarray(undistort(image, CAMERAS["barrel"]).image), expected
        )


def test_strips_leave_no_seam(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = rectify(coordinates(*SIZE), CAMERAS["barrel"], gravity(5, 5))
    monkeypatch.setattr("geocalib.imaging.warp.PIXELS_AT_ONCE", 1000)
    strips = rectify(coordinates(*SIZE), CAMERAS["barrel"], gravity(5, 5))
    np.testing.assert_array_equal(np.asarray(whole.image), np.asarray(strips.image))
    np.testing.assert_array_equal(whole.valid, strips.valid)


def test_dtypes_follow_the_camera() -> None:
    for dtype in (torch.float32, torch.float64):
        warped = rectify(coordinates(*SIZE), CAMERAS["barrel"].to(dtype), gravity(5, 5)[None])
        assert warped.camera.f.dtype == warped.camera.c.dtype == dtype
        assert warped.gravity is not None
        assert warped.gravity.dtype == dtype
        assert warped.gravity.shape == (3,)


def test_bad_calls() -> None:
    picture, camera, g = coordinates(*SIZE), CAMERAS["barrel"], gravity(5, 5)
    with pytest.raises(ImageError, match="image is 100x75 pixels, but its camera is of 200x150"):
        undistort(coordinates(100, 75), camera)
    with pytest.raises(ImageError, match="border must be 'keep' or 'crop', got 'all'"):
        undistort(picture, camera, "all")
    with pytest.raises(ImageError, match=r"pitch of 70 degrees is too steep.*at most 60.*upright"):
        rectify(picture, camera, gravity(0, 70))
    with pytest.raises(CameraError, match="one camera, got 2"):
        undistort(picture, Camera.create("pinhole", f=[1.0, 2.0], size=SIZE, dtype=torch.float32))
    with pytest.raises(CameraError, match=r"one gravity \(3,\), got \(2, 3\)"):
        upright(picture, camera, torch.stack([g, g]))
    assert upright(picture, camera, gravity(10, 70)).valid.any()
