"""Drawings, judged by the pixels they touch."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import dataclass, replace

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy import ndimage

from geocalib import Camera, Fields, perspective_field
from geocalib.arrays import Array
from geocalib.errors import FieldError
from geocalib.geometry.gravity import from_roll_pitch
from geocalib.overlay import draw

SIZE = (240, 160)
SCALE = 2
"""Drawn pixels per image pixel."""

Picture = NDArray[np.float64]


def canvas(scale: int = SCALE) -> tuple[Figure, Axes]:
    """A figure that is nothing but the image, at that scale."""
    figure = Figure(figsize=(SIZE[0] / 100, SIZE[1] / 100), dpi=100 * scale)
    axes = figure.add_axes((0, 0, 1, 1))
    for spine in axes.spines.values():
        spine.set_visible(False)
    return figure, axes


def pixels(figure: Figure) -> Picture:
    """(H, W, 3) RGB in [0, 1]."""
    renderer = FigureCanvasAgg(figure)
    renderer.draw()
    return np.asarray(renderer.buffer_rgba())[..., :3] / 255


def like(picture: Picture, colour: str, tolerance: float = 0.1) -> NDArray[np.bool_]:
    near: NDArray[np.bool_] = np.abs(picture - to_rgb(colour)).max(-1) < tolerance
    return near


def view(
    roll: float = 0, pitch: float = 0, camera: Camera | None = None
) -> tuple[Camera, Array, Array, Array]:
    """A camera of 67 degrees, its gravity (1, 3), up (2, H, W) and latitude (H, W)."""
    camera = camera or Camera.create("pinhole", f=120.0, size=SIZE)
    gravity = from_roll_pitch(*np.deg2rad(np.array([[roll], [pitch]])))
    up, latitude, _ = perspective_field(camera, gravity)
    return camera, gravity, up[0], latitude[0, 0]


@dataclass(frozen=True)
class Numbers:
    roll_deg: Array
    pitch_deg: Array
    vfov_deg: Array


@dataclass(frozen=True)
class Guess:
    """The least that can be drawn."""

    camera: Camera
    gravity: Array
    roll_deg: Array
    pitch_deg: Array
    vfov_deg: Array
    sigma: Numbers


def scene(*angles: tuple[float, float]) -> tuple[Fields, Guess]:
    """Fields of cameras with these rolls and pitches, degrees, and the perfect guess."""
    roll, pitch = np.array(angles).T
    camera = Camera.create("pinhole", f=np.full_like(roll, 120.0), size=SIZE)
    gravity = from_roll_pitch(np.deg2rad(roll), np.deg2rad(pitch))
    up, latitude, valid = perspective_field(camera, gravity)
    sigma = np.full_like(roll, 0.1)
    numbers = Numbers(sigma, 2 * sigma, 3 * sigma)
    guess = Guess(camera, gravity, roll, pitch, np.rad2deg(camera.vfov), numbers)
    return Fields(up, latitude, valid.astype(float), valid.astype(float)), guess


@pytest.mark.parametrize("pitch", [-15, 0, 10])
def test_horizon_of_a_camera_without_roll_is_one_row(pitch: float) -> None:
    figure, axes = canvas()
    camera, gravity, _, _ = view(pitch=pitch)
    draw.draw_horizon(axes, camera, gravity)
    row = SCALE * (80 + 120 * math.tan(math.radians(pitch)))
    painted = like(pixels(figure), draw.HORIZON)
    rows = np.nonzero(painted.any(1))[0] + 0.5
    assert painted[int(row)].all()
    assert np.abs(rows - row).max() < 5


@pytest.mark.parametrize("model", ["pinhole", "simple_radial"])
def test_horizon_follows_latitude_zero(model: str) -> None:
    figure, axes = canvas()
    distortion = [-0.15] if model == "simple_radial" else None
    camera = Camera.create(model, f=200.0, size=SIZE, distortion=distortion)
    camera, gravity, _, latitude = view(20, 5, camera)
    draw.draw_horizon(axes, camera, gravity)
    painted = like(pixels(figure), draw.HORIZON)
    fine = np.kron(np.abs(latitude), np.ones((SCALE, SCALE)))
    assert fine[painted].max() < 5 / SCALE / 200
    assert painted[fine < 0.5 / 200].all()


def test_horizon_out_of_view_draws_nothing() -> None:
    figure, axes = canvas()
    camera, gravity, _, _ = view(pitch=60)
    draw.draw_horizon(axes, camera, gravity)
    assert pixels(figure).min() == 1


def test_latitude_has_one_line_per_ten_degrees() -> None:
    figure, axes = canvas()
    *_, latitude = view()
    draw.draw_latitude(axes, latitude, fill=0)
    # At the border, where no labels are, the latitude reaches 25 degrees.
    column = pixels(figure)[:, 2 * SCALE]
    blue = column[:, 2] > column[:, 0] + 0.1
    red = column[:, 0] > column[:, 2] + 0.1
    horizon = like(column, draw.HORIZON)
    assert ndimage.label(blue[: 80 * SCALE])[1] == 2
    assert ndimage.label(red[80 * SCALE + 5 :])[1] == 2
    assert ndimage.label(horizon)[1] == 1
    assert np.abs(np.nonzero(horizon)[0] + 0.5 - 80 * SCALE).max() < 5
    # Its rays are (-1, y, 1), so that the lines lie at |y| = tan(latitude) sqrt(2).
    for found, sign in ((blue[: 80 * SCALE], -1), (red, 1)):
        rows = np.nonzero(found)[0] / SCALE + 0.25
        expected = 80 + sign * 120 * math.sqrt(2) * math.tan(math.radians(20))
        assert np.abs(rows - expected).min() < 1


def test_latitude_bands_are_blue_above_the_horizon_and_red_below() -> None:
    figure, axes = canvas()
    *_, latitude = view(pitch=60)
    draw.draw_latitude(axes, latitude, fill=1)
    sky = pixels(figure)
    assert (sky[..., 2] > sky[..., 0]).mean() > 0.95
    figure, axes = canvas()
    draw.draw_latitude(axes, -latitude, fill=1)
    ground = pixels(figure)
    assert (ground[..., 0] > ground[..., 2]).mean() > 0.95


def test_latitude_lines_are_steady_under_noise() -> None:
    """Noise of 1 degree, 2 pixels of the field, moves the horizon by less than half of that."""
    figure, axes = canvas()
    *_, latitude = view(pitch=10)
    generator = np.random.default_rng(0)
    noise = math.radians(1) * generator.standard_normal(latitude.shape)
    draw.draw_latitude(axes, latitude + noise, fill=0)
    painted = like(pixels(figure), draw.HORIZON)
    row = SCALE * (80 + 120 * math.tan(math.radians(10)))
    off = np.abs(np.nonzero(painted.any(1))[0] + 0.5 - row)
    assert off.max() < 2.5 + 4.5


def test_smoothing_keeps_a_ramp_up_to_the_border_and_skips_what_has_no_weight() -> None:
    x, y = np.meshgrid(np.arange(12.0), np.arange(9.0))
    ramp, weight = 3 * x - 2 * y, np.ones_like(x)
    np.testing.assert_allclose(draw._smooth(ramp, weight, 2), ramp, atol=1e-12)
    weight[:, :4] = 0
    spoilt = np.where(weight > 0, 5.0, 1e6)
    np.testing.assert_allclose(draw._smooth(spoilt, weight, 2)[:, 4:], 5)


def test_latitude_fades_where_the_confidence_is_low() -> None:
    figure, axes = canvas()
    *_, latitude = view()
    confidence = np.full_like(latitude, 7.0)
    confidence[:, : SIZE[0] // 2] = 0
    draw.draw_latitude(axes, latitude, confidence)
    left, right = np.split(pixels(figure), 2, axis=1)
    assert left[:, :-10].min() == 1
    assert (right.min(-1) < 0.95).mean() > 0.95


def test_latitude_leaves_undefined_pixels_empty() -> None:
    figure, axes = canvas()
    *_, latitude = view()
    latitude[:, : SIZE[0] // 2] = np.nan
    draw.draw_latitude(axes, latitude)
    assert pixels(figure)[:, : SIZE[0] - 10].min() == 1
    draw.draw_latitude(axes, np.full_like(latitude, np.nan))


def test_latitude_between_two_lines_has_none() -> None:
    figure, axes = canvas()
    draw.draw_latitude(axes, np.full((160, 240), math.radians(5)), fill=0)
    assert pixels(figure).min() == 1


@pytest.mark.parametrize("roll", [0, 90, 180, -45])
def test_arrows_point_up(roll: float) -> None:
    """Each arrow is longer than wide along the up-vector, and its wide end is ahead."""
    figure, axes = canvas(scale=6)
    _, _, up, _ = view(roll)
    draw.draw_up(axes, up)
    labels, count = ndimage.label(like(pixels(figure), draw.ARROW, 0.3), np.ones((3, 3)))
    assert count == 15 * 10
    x, y = -math.sin(math.radians(roll)), -math.cos(math.radians(roll))
    for box in ndimage.find_objects(labels):
        rows, columns = np.nonzero(labels[box])
        along, across = x * columns + y * rows, x * rows - y * columns
        ahead = along > 0.5 * (along.min() + along.max())
        assert np.ptp(along) > 1.4 * np.ptp(across)
        assert np.ptp(across[ahead]) > 1.4 * np.ptp(across[~ahead])


def test_arrows_fade_where_the_confidence_is_low() -> None:
    figure, axes = canvas()
    _, _, up, latitude = view()
    confidence = np.ones_like(latitude)
    confidence[: SIZE[1] // 2] = 0
    draw.draw_up(axes, up, confidence)
    top, bottom = np.split(pixels(figure), 2)
    assert top.min() == 1
    assert like(bottom, draw.ARROW).any()


def test_undefined_arrows_are_left_out() -> None:
    figure, axes = canvas()
    _, _, up, _ = view()
    draw.draw_up(axes, np.full_like(up, np.nan))
    assert pixels(figure).min() == 1


def test_confidence_grows_brighter() -> None:
    figure, axes = canvas()
    confidence = np.tile(np.linspace(0, 5, SIZE[0]), (SIZE[1], 1))
    image = draw.draw_confidence(axes, confidence)
    assert image.get_clim() == (0, 5)
    grey = pixels(figure).mean(-1)
    assert (np.diff(grey.mean(0)) > -0.01).all()
    assert grey[0, -1] - grey[0, 0] > 0.3
    draw.draw_confidence(axes, np.zeros((4, 4)))


def test_image_is_drawn_as_it_is_and_stretched_to_the_field() -> None:
    photo = np.zeros((20, 30, 3))
    photo[:10, :, 0] = 1
    photo[:, 15:, 2] = 1
    figure, axes = canvas()
    draw.draw_image(axes, photo, SIZE)
    assert axes.get_xlim() == (0, 240)
    assert axes.get_ylim() == (160, 0)
    picture = pixels(figure)
    for (y, x), colour in {
        (20, 20): "red",
        (20, 400): "magenta",
        (300, 20): "black",
        (300, 400): "blue",
    }.items():
        assert like(picture[y : y + 1, x : x + 1], colour).all()


@pytest.mark.parametrize(
    ("value", "sigma", "text"),
    [
        (12.345, 0.1, "12.3° ± 0.1°"),
        (12.345, 0.09999, "12.3° ± 0.1°"),
        (-12.345, 0.034, "-12.35° ± 0.03°"),
        (65.0, 3.21, "65.0° ± 3.2°"),
        (1.0, 1e-9, "1.00000° ± 0.00000°"),
        (65.0, 0.0, "65° (fixed)"),
        (65.0, math.inf, "65.0° ± ?"),
        (65.0, math.nan, "65.0° ± ?"),
    ],
)
def test_numbers_have_the_digits_their_sigma_deserves(
    value: float, sigma: float, text: str
) -> None:
    assert draw.with_sigma(value, sigma, "°") == text


def test_title_names_the_numbers() -> None:
    _, axes = canvas()
    draw.draw_title(axes, scene((12.34, -5.0))[1])
    assert axes.get_title() == "roll 12.3° ± 0.1°, pitch -5.0° ± 0.2°, vFoV 67.4° ± 0.3°"


@pytest.mark.parametrize("photo", [None, np.full((320, 480, 3), 0.5)])
def test_fit_figure_shows_two_views_and_a_caption(photo: Array | None) -> None:
    figure = draw.fit_figure(*scene((12.34, -5.0)), image=photo)
    picture = pixels(figure)
    left, right = figure.axes
    assert left.get_xlim() == right.get_xlim() == (0, 240)
    assert figure.get_supxlabel() == "roll 12.3° ± 0.1°, pitch −5.0° ± 0.2°, vFoV 67.4° ± 0.3°"
    # Both views show the same horizon, at the same place.
    painted = like(picture, draw.HORIZON)
    found = []
    for axes in (left, right):
        x0, y0, x1, y1 = np.round(axes.get_window_extent().extents).astype(int)
        height = picture.shape[0]
        found.append(ndimage.center_of_mass(painted[height - y1 : height - y0, x0:x1]))
    assert found[0] == pytest.approx(found[1], abs=3)


def test_fit_figure_draws_the_image_asked_for() -> None:
    fields, guess = scene((12.34, -5.0), (-30.0, 10.0))
    second = draw.fit_figure(fields, guess, index=1)
    alone = draw.fit_figure(*scene((-30.0, 10.0)))
    assert "roll −30.0°" in second.get_supxlabel()
    np.testing.assert_array_equal(pixels(second), pixels(alone))


def test_fit_figure_of_a_failed_fit_shows_what_was_observed() -> None:
    fields, guess = scene((12.34, -5.0))
    nothing = np.full((1,), np.nan)
    failed = Guess(
        replace(guess.camera, f=nothing),
        np.broadcast_to(nothing, (1, 3)),
        nothing,
        nothing,
        nothing,
        Numbers(nothing, nothing, nothing),
    )
    figure = draw.fit_figure(fields, failed)
    left, right = np.split(like(pixels(figure), draw.HORIZON), 2, axis=1)
    assert left.any()
    assert not right.any()


def test_bad_input_is_named() -> None:
    _, axes = canvas()
    camera, gravity, up, latitude = view()
    with pytest.raises(FieldError, match=r"latitude must be .* got \(1, 160, 240\)"):
        draw.draw_latitude(axes, latitude[None])
    with pytest.raises(FieldError, match=r"confidence must be \(160, 240\)"):
        draw.draw_latitude(axes, latitude, np.ones((3, 4)))
    with pytest.raises(FieldError, match=r"up must be \(2, H, W\)"):
        draw.draw_up(axes, up[None])
    with pytest.raises(FieldError, match=r"confidence must be \(H, W\)"):
        draw.draw_confidence(axes, up)
    with pytest.raises(FieldError, match=r"image must be \(H, W, 3\)"):
        draw.draw_image(axes, up)
    with pytest.raises(FieldError, match="uint8"):
        draw.draw_image(axes, np.zeros((4, 4, 3), np.uint8))
    with pytest.raises(FieldError, match="2 cameras"):
        draw.draw_horizon(axes, camera[[0, 0]], np.broadcast_to(gravity, (2, 3)))


def test_the_package_itself_needs_no_matplotlib() -> None:
    code = "import sys, geocalib; sys.exit('matplotlib' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
