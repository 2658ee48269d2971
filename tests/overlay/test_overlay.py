"""Calibrations on their photos, judged by the pixels they touch."""

from __future__ import annotations

import io
import math
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.colors import to_rgb
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage

from calibrations import one
from geocalib import Fields, perspective_field
from geocalib.errors import ImageError
from geocalib.geometry.gravity import world_from_camera
from geocalib.overlay import overlay, show
from geocalib.overlay.box import CORNERS, EDGES, Box, place_box
from geocalib.overlay.card import numbers, photo_size, wrapped
from geocalib.overlay.curves import horizon_mark, level_curves
from geocalib.overlay.draw import ARROW, HORIZON
from geocalib.overlay.photo import BOX, LONGEST_SIDE, annotate, load
from geocalib.result.calibration import Calibration
from lenses import ALL_MODELS, PARAMETERS

SIZE = (640, 480)
GREY = 128

Mask = NDArray[np.bool_]


def view(
    roll: float = 0.0, pitch: float = 0.0, model: str = "pinhole", **camera: Any
) -> Calibration:
    return one(model, roll_deg=roll, pitch_deg=pitch, **{"c": None} | camera)


def blank(calibration: Calibration, value: int = GREY) -> Image.Image:
    return Image.new("RGB", (calibration.width, calibration.height), (value,) * 3)


def like(picture: Image.Image, colour: str, tolerance: float = 0.1) -> Mask:
    near: Mask = np.abs(np.asarray(picture) / 255 - to_rgb(colour)).max(-1) < tolerance
    return near


def touched(picture: Image.Image, value: int = GREY) -> Mask:
    changed: Mask = (np.asarray(picture) != value).any(-1)
    return changed


def with_fields(calibration: Calibration, size: tuple[int, int] = (96, 64)) -> Calibration:
    up, latitude, valid = perspective_field(
        calibration.cameras.resize(*size), calibration.gravity[None]
    )
    ramp = np.tile(np.linspace(0, 1, size[0]), (1, size[1], 1))
    return replace(calibration, fields=Fields(up, latitude, ramp * valid, (1 - ramp) * valid))


@pytest.mark.parametrize("pitch", [-12, 0, 15])
@pytest.mark.parametrize("brightness", [0, 255])
def test_the_horizon_of_a_camera_without_roll_is_one_row(pitch: float, brightness: int) -> None:
    calibration = view(pitch=pitch)
    painted = like(overlay(blank(calibration, brightness), calibration), HORIZON)
    row = 240 + 500 * math.tan(math.radians(pitch))
    # At the right there is its label; arrows may cross it elsewhere.
    assert painted[round(row - 0.5), :540].mean() > 0.8
    rows = np.nonzero(painted[:, :540])[0] + 0.5
    assert np.abs(rows - row).max() < 3


@pytest.mark.parametrize(
    ("model", "f", "distortion"),
    [
        ("pinhole", 500.0, None),
        ("simple_radial", 600.0, [-0.2]),
        ("kannala_brandt", 160.0, [0.02, 0, 0, 0]),
    ],
)
def test_the_horizon_follows_latitude_zero(model: str, f: float, distortion: Any) -> None:
    calibration = view(25, 8, model, f=f, distortion=distortion)
    painted = like(overlay(blank(calibration), calibration), HORIZON)
    _, latitude, valid = perspective_field(calibration.cameras, calibration.gravity[None])
    away = np.where(valid[0], np.abs(latitude[0, 0]), np.pi)
    # The label is at the right.
    painted, away = painted[:, :500], away[:, :500]
    assert away[painted].max() < 4 / f
    assert painted[away < 0.4 / f].mean() > 0.75


def test_latitudes_lie_where_they_should() -> None:
    """The ray (u, v, 1) of a level camera has the latitude atan(-v / sqrt(1 + u^2))."""
    calibration = view(f=300.0)
    picture = np.asarray(overlay(blank(calibration), calibration)).astype(int)
    for column in (75, 225, 373):
        u = (column + 0.5 - 320) / 300
        strip = picture[:, column]
        for degrees in (-30, -15, 15, 30):
            row = 240 - 300 * math.hypot(1, u) * math.tan(math.radians(degrees))
            red, _, blue = strip[round(row - 0.5)]
            assert (blue - red) * degrees > 30 * abs(degrees), (column, degrees)
    # Half way between two of them there is none.
    row = 240 - 300 * math.tan(math.radians(7.5))
    assert not touched(Image.fromarray(picture.astype(np.uint8)))[round(row), 318:322].any()


@pytest.mark.parametrize(("f", "expected"), [(500.0, {-20, -10, 10, 20}), (3000.0, {-4, -2, 2, 4})])
def test_lines_are_dense_enough_for_the_view(f: float, expected: set[int]) -> None:
    calibration = view(f=f)
    assert set(level_curves(calibration.cameras, calibration.gravity)) == expected


@pytest.mark.parametrize("roll", [0, 90, -90, 180])
def test_arrows_point_up(roll: float) -> None:
    """Each has its wide end, the head, ahead of its middle in the direction of up."""
    calibration = view(roll, size=(1000, 1000), f=1000.0)
    labels, count = ndimage.label(like(overlay(blank(calibration), calibration), ARROW, 0.2))
    assert count > 100
    x, y = -math.sin(math.radians(roll)), -math.cos(math.radians(roll))
    whole = 0
    for box in ndimage.find_objects(labels):
        rows, columns = np.nonzero(labels[box])
        if rows.size < 150:
            continue
        whole += 1
        along, across = x * columns + y * rows, x * rows - y * columns
        ahead = along > 0.5 * (along.min() + along.max())
        assert np.ptp(along) > 1.4 * np.ptp(across)
        assert np.ptp(across[ahead]) > 1.4 * np.ptp(across[~ahead])
    assert whole > 100


def test_lines_follow_the_photo_when_it_is_resampled() -> None:
    calibration = view(pitch=10, size=(3200, 2400), f=2500.0)
    share = (1200 + 2500 * math.tan(math.radians(10))) / 2400
    photo = blank(calibration)
    width, height = photo_size(calibration)
    shown = show(photo, calibration).crop((0, 0, width, height))
    for picture in (overlay(photo, calibration), shown):
        assert picture.width < 3200
        painted = like(picture, HORIZON)[:, : int(0.8 * picture.width)]
        rows = np.nonzero(painted)[0] + 0.5
        assert rows.size > 0.5 * painted.shape[1]
        assert np.abs(rows - share * picture.height).max() < 5


def test_most_of_the_photo_stays_as_it_is() -> None:
    calibration = view(10, 5)
    assert 0.03 < touched(overlay(blank(calibration), calibration)).mean() < 0.2


@pytest.mark.parametrize(
    ("roll", "pitch", "side"),
    [(0, 60, "bottom"), (0, -60, "top"), (90, 60, "right"), (90, -60, "left"), (180, 60, "top")],
)
def test_a_horizon_out_of_view_is_pointed_at(roll: float, pitch: float, side: str) -> None:
    calibration = view(roll, pitch)
    painted = like(overlay(blank(calibration), calibration), HORIZON)
    rows, columns = np.nonzero(painted)
    distance = {
        "top": rows,
        "bottom": 479 - rows,
        "left": columns,
        "right": 639 - columns,
    }[side]
    assert rows.size > 50
    assert distance.min() < 8
    # The words take more room along a row than across.
    assert distance.max() < (200 if side in ("left", "right") else 50)
    mark = horizon_mark(calibration.cameras, calibration.gravity)
    half = 320 if side in ("left", "right") else 240
    assert mark.angle_deg == pytest.approx(60 - math.degrees(math.atan(half / 500)))


@pytest.mark.parametrize("pitch", [-90, 90])
def test_straight_up_and_down_have_a_horizon_somewhere(pitch: float) -> None:
    calibration = view(pitch=pitch)
    assert like(overlay(blank(calibration), calibration), HORIZON).sum() > 50


def boxed(calibration: Calibration) -> Box:
    box = place_box(calibration.cameras, calibration.gravity)
    assert box is not None
    return box


BOXED = [
    view(),
    view(20, -15),
    view(-40, 10, "simple_radial", distortion=[-0.2], f=600.0),
    view(5, -10, "kannala_brandt", f=160.0, distortion=[0.02, 0, 0, 0]),
    view(0, -70),
    view(f=4000.0),
]


@pytest.mark.parametrize("calibration", BOXED)
def test_the_box_is_a_cube_that_stands_on_the_ground(calibration: Calibration) -> None:
    """The picture of its corners gives it back: on the ground square, and as high as wide."""
    camera, box = calibration.cameras, boxed(calibration)
    rays, valid = camera.unproject(box.corners[None])
    assert valid.all()
    rays = rays[0] @ world_from_camera(calibration.gravity).T
    grounded = CORNERS[:, 1] == 1
    floor = rays[grounded] / rays[grounded, 1:2]
    a, b, c, d = floor
    side = np.linalg.norm(b - a)
    np.testing.assert_allclose(d - c, b - a, atol=1e-9)
    np.testing.assert_allclose(np.linalg.norm(c - a), side)
    assert abs(np.dot(b - a, c - a).item()) < 1e-9 * side.item() ** 2
    # Above each corner of the floor, one side up along gravity.
    lid = floor - side * np.array([0.0, 1.0, 0.0], np.float64)
    lid = lid / np.linalg.norm(lid, axis=-1, keepdims=True)
    np.testing.assert_allclose(lid, rays[~grounded], atol=1e-9)


@pytest.mark.parametrize("calibration", BOXED)
def test_the_box_is_well_inside_the_picture(calibration: Calibration) -> None:
    box = boxed(calibration)
    assert (box.corners > 0).all()
    assert (box.corners < SIZE).all()
    assert 0.1 * 480 < np.ptp(box.corners, axis=0).max() < 0.7 * 480
    assert len(box.seen) + len(box.hidden) == len(EDGES) == 12
    assert len(box.faces) in (2, 3)
    assert len(box.hidden) == (3 if len(box.faces) == 3 else 5)


def test_the_edges_of_the_box_are_drawn_where_the_lens_bends_them_to() -> None:
    calibration = view(10, -10, "simple_radial", distortion=[-0.3], f=600.0)
    box = boxed(calibration)
    painted = like(annotate(blank(calibration), calibration, box), BOX, 0.25)
    spread = ndimage.binary_dilation(painted, np.ones((3, 3)))
    for edge in box.seen:
        for x, y in edge:
            assert spread[int(y), int(x)]
    nothing = like(annotate(blank(calibration), calibration), BOX, 0.25)
    assert not nothing.any()


def test_without_ground_in_view_there_is_no_box() -> None:
    calibration = view(pitch=60)
    assert place_box(calibration.cameras, calibration.gravity) is None
    assert not like(show(blank(calibration), calibration), BOX).any()


def test_the_numbers_are_told_with_their_sigmas() -> None:
    told = numbers(view(-5, -10, "simple_radial", distortion=[-0.12], f=500.0))
    assert told == [
        ("roll", "−5.0°", "± 0.3°"),
        ("pitch", "−10.0°", "± 0.4°"),
        ("vFoV", "51.3°", "± 1.2°"),
        ("hFoV", "65.2°", "± 1.5°"),
        ("focal, px", "500.0", "± 12.5"),
        ("k1", "−0.12", "± 0.01"),
    ]


def test_what_is_fixed_freed_or_unknown_is_told() -> None:
    calibration = view()
    sigma = replace(
        calibration.sigma, focal=0.0, vfov_deg=math.nan, principal_point=(2.0, 3.0), roll_deg=0.0
    )
    free = ("cx", "cy")
    changed = replace(
        calibration,
        sigma=sigma,
        parameters=free,
        covariance=np.eye(2),
    )
    told = {name: (value, error) for name, value, error in numbers(changed)}
    assert told["roll"] == ("0°", "(fixed)")
    assert told["focal, px"] == ("500", "(fixed)")
    assert told["vFoV"] == ("51.3°", "± ?")
    assert told["cx, px"] == ("320.0", "± 2.0")
    assert told["cy, px"] == ("240.0", "± 3.0")
    # The lens ends within the picture: it has no field of view.
    beyond = view(model="kannala_brandt", f=60.0, distortion=[-0.03, 0.004, -0.001, 0.0])
    assert math.isnan(beyond.vfov_deg)
    assert numbers(beyond)[2] == ("vFoV", "undefined", "")


def card_of(calibration: Calibration) -> NDArray[np.uint8]:
    """What is beside or below the photo."""
    picture = np.asarray(show(blank(calibration), calibration))
    width, height = photo_size(calibration)
    return picture[:, width:] if picture.shape[1] > width else picture[height:]


def test_the_card_says_what_the_calibration_says() -> None:
    calibration = view()
    card = card_of(calibration)
    assert (card.mean(-1) < 100).mean() > 0.005
    other = card_of(view(roll=1))
    assert card.shape == other.shape
    assert (card != other).any()
    doubtful = card_of(replace(calibration, warnings=("the horizon is out of view",)))
    assert doubtful.shape != card.shape or (doubtful != card).any()


def test_odd_names_and_endless_warnings_do_no_harm() -> None:
    calibration = replace(
        view(),
        image="ordner/照片 $x_1$ \udcff \n" + "long" * 30 + ".jpg",
        warnings=tuple(
            "something is wrong, in many words, and more so than usual" for _ in "x" * 30
        ),
        status="failed: a confidence is negative",
    )
    assert max(show(blank(calibration), calibration).size) <= LONGEST_SIDE


def test_fields_are_shown_if_there_are_any() -> None:
    calibration = view(size=(320, 240), f=250.0)
    plain, full = (show(blank(c), c) for c in (calibration, with_fields(calibration)))
    brightest, darkest = "#fee838", "#00224e"
    for colour in (brightest, darkest):
        assert like(full, colour, 0.02).sum() > like(plain, colour, 0.02).sum() + 200


@pytest.mark.parametrize(
    ("size", "fields"),
    [
        ((64, 64), True),
        ((48, 640), True),
        ((640, 48), True),
        ((480, 640), False),
        ((640, 360), False),
        ((32, 33), False),
        ((3200, 2400), True),
    ],
)
def test_any_size_becomes_a_picture_of_ordinary_size(size: tuple[int, int], fields: bool) -> None:
    calibration = view(3, 4, size=size, f=0.8 * max(size))
    calibration = with_fields(calibration) if fields else calibration
    photo = blank(calibration)
    whole, plain = show(photo, calibration), overlay(photo, calibration)
    assert whole.mode == plain.mode == "RGB"
    assert 700 < max(whole.size) <= LONGEST_SIDE
    assert max(plain.size) == min(LONGEST_SIDE, max(size))
    assert plain.width / plain.height == pytest.approx(size[0] / size[1], rel=0.02)
    assert like(plain, HORIZON, 0.3).any()


def test_every_way_to_give_a_photo_gives_the_same_picture(tmp_path: Path) -> None:
    calibration = view(7, -3, size=(160, 120), f=130.0)
    pixels = np.random.default_rng(0).integers(0, 256, (120, 160, 3), np.uint8)
    path = tmp_path / "photo.png"
    Image.fromarray(pixels).save(path)
    sources = [path, str(path), path.read_bytes(), Image.open(path), pixels]
    sources.append(torch.from_numpy(pixels.transpose(2, 0, 1)))
    pictures = {overlay(source, calibration).tobytes() for source in sources}
    assert len(pictures) == 1
    np.testing.assert_array_equal(load(pixels, calibration, (160, 120)), pixels)


def test_a_large_jpeg_keeps_its_place() -> None:
    """Decoded at a fraction of its size, edges stay where they were."""
    pixels = np.zeros((2003, 3001, 3), np.uint8)
    pixels[:, 1500:] = 255
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", quality=95)
    calibration = view(size=(3001, 2003), f=2500.0)
    image = np.asarray(load(file.getvalue(), calibration, (300, 200)))
    assert image[:, :149].max() < 20
    assert image[:, 151:].min() > 235


def test_a_photo_of_another_size_is_refused() -> None:
    with pytest.raises(ImageError, match="image is 64x64 pixels, but its calibration is of 640x"):
        show(np.zeros((64, 64, 3), np.uint8), view())


def test_the_same_input_gives_the_same_pixels_in_threads_too() -> None:
    cases = [with_fields(view(roll, 5, size=(200, 150), f=170.0)) for roll in (0, 10)]
    alone = [show(blank(case), case).tobytes() for case in cases]
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(lambda case: show(blank(case), case).tobytes(), cases))
    assert together == alone


@settings(max_examples=15)
@given(
    model=st.sampled_from([(m, k) for m in ALL_MODELS for k in PARAMETERS[m]]),
    f=st.floats(5, 5000),
    angles=st.tuples(st.floats(-180, 180), st.floats(-90, 90)),
    c=st.tuples(st.floats(-200, 400), st.floats(-200, 400)),
    aspect=st.floats(0.5, 2),
)
def test_no_camera_is_too_odd(
    model: tuple[str, tuple[float, ...]],
    f: float,
    angles: tuple[float, float],
    c: tuple[float, float],
    aspect: float,
) -> None:
    name, distortion = model
    calibration = view(*angles, name, f=f, c=c, aspect=aspect, size=(96, 64), distortion=distortion)
    picture = overlay(blank(calibration), calibration)
    assert picture.size == (96, 64)
    box = place_box(calibration.cameras, calibration.gravity)
    assert box is None or bool(np.isfinite(box.corners).all())


@pytest.mark.parametrize("model", ALL_MODELS)
def test_every_model_is_drawn(model: str) -> None:
    calibration = view(5, -5, model)
    picture = annotate(blank(calibration), calibration, boxed(calibration))
    for colour in (HORIZON, ARROW, BOX):
        assert like(picture, colour).any()


def test_importing_it_is_cheap() -> None:
    code = "import sys, geocalib.overlay; sys.exit('matplotlib' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_sigma_stays_with_its_sign() -> None:
    text = "⚠ the direction of gravity is uncertain (± 10°)"
    for size in np.arange(10.0, 20.0, 0.5):
        assert any("±\N{NO-BREAK SPACE}10°" in line for line in wrapped(text, size))
