"""Upright, rectified and undistorted: what the browser shows is what ``imaging.warp`` gives."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import pytest
from page_driving import SMALL_TOWN, Pixels, answered, drop, seen, still
from PIL import Image
from scipy.ndimage import binary_erosion
from scipy.optimize import least_squares

from geocalib import Camera
from geocalib.geometry.gravity import from_roll_pitch, world_from_camera
from geocalib.imaging import warp
from geocalib.imaging.warp import Warped

Floats = npt.NDArray[np.float64]

GRAVITY = from_roll_pitch(*np.radians([10.0, -12.0]))
ASPECT = 1.1
SHIFT = 4
"""Pixels by which a picture must not be off."""


def test_browser_shows_what_the_package_gives(open_page: Callable[..., Any]) -> None:
    page = open_page(viewport={"width": 700, "height": 520})
    with page.expect_response("**/v1/calibrate") as answer:
        drop(page, {"town.jpg": SMALL_TOWN})
    answered(page)
    record = answer.value.json()["results"][0]
    bare(page)
    for kind, model, distortion in (
        ("upright", "simple_radial", (-0.12,)),
        ("rectified", "division", (-0.25,)),
        ("undistorted", "double_sphere", (0.3, 0.4)),
    ):
        c = (record["cx"] + 10, record["cy"] - 15)
        find(page, record, model, distortion, c)
        page.check(f"input[value={kind}]", force=True)
        before, after = wiped(page, 100), wiped(page, 0).astype(float)
        size = (record["width"], record["height"])
        camera = Camera.create(
            model, record["fy"], size, distortion, c=c, aspect=ASPECT, dtype=np.float64
        )
        expected, known = laid_over(before, camera, kind)
        assert known.mean() > 0.3
        apart = np.abs(after - expected)[known].mean()
        shifted = np.abs(after - np.roll(expected, SHIFT, 1))[known].mean()
        # Browsers resample in another way; places are the same.
        assert apart < min(6, 0.4 * shifted), kind


def test_undistorted_fisheye_ends_in_a_smooth_curve(open_page: Callable[..., Any]) -> None:
    """Where it is too far off the axis, an ellipse: triangles would leave teeth there."""
    page = open_page(viewport={"width": 700, "height": 520})
    red, content = (220, 40, 40), io.BytesIO()
    Image.new("RGB", (400, 400), red).save(content, "png")
    with page.expect_response("**/v1/calibrate") as answer:
        drop(page, {"red.png": content.getvalue()})
    answered(page)
    bare(page)
    # It sees more than 75 degrees off its axis on all sides of the photo.
    record = answer.value.json()["results"][0] | {"fy": 80.0}
    find(page, record, "kannala_brandt", (0.0, 0.0, 0.0, 0.0), (200.0, 200.0))
    page.check("input[value=undistorted]", force=True)
    shown = np.abs(wiped(page, 0).astype(int) - red).max(-1) < 60
    y, x = np.nonzero(shown & ~binary_erosion(shown))
    edge = np.column_stack([x / ASPECT, y])  # of a circle
    off = least_squares(lambda p: np.hypot(*(edge - p[:2]).T) - p[2], [*edge.mean(0), 100])
    radius = off.x[2]
    assert radius > 100
    assert np.abs(off.fun).max() < 1.5
    # All of it is covered, too.
    assert shown.sum() == pytest.approx(np.pi * ASPECT * radius**2, rel=0.03)


def bare(page: Any) -> None:
    """Nothing may lie above the picture."""
    page.evaluate(
        """() => document.querySelectorAll(".wipe-line, .wipe-word, #wipe")
            .forEach(node => node.style.visibility = "hidden")"""
    )


def find(
    page: Any,
    record: dict[str, Any],
    model: str,
    distortion: tuple[float, ...],
    c: tuple[float, float],
) -> None:
    """Choose a lens, for which the server is made to find a strongly bent one."""
    found = record | {
        "camera_model": model,
        "distortion": distortion,
        "sigma": record["sigma"] | {"distortion": [0.0] * len(distortion)},
        "fx": ASPECT * record["fy"],
        "cx": c[0],
        "cy": c[1],
        "gravity": GRAVITY.tolist(),
    }
    page.unroute("**/v1/refit")
    body = json.dumps({"results": [found]})
    page.route("**/v1/refit", lambda route: route.fulfill(body=body, status=200))
    page.select_option("#lens", model)
    still(page)


def wiped(page: Any, share: int) -> Pixels:
    """The stage with so many percent of it as the photo was."""
    page.locator("#wipe").evaluate(
        "(wipe, share) => { wipe.value = share; wipe.dispatchEvent(new Event('input')); }", share
    )
    still(page)
    return seen(page)


def warped(camera: Camera, kind: str) -> tuple[Warped, Floats]:
    """The new picture, and the ray (3,) of its camera that was the old one's axis."""
    axis = np.array([0.0, 0.0, 1.0])
    if kind == "undistorted":
        return warp.undistort(SMALL_TOWN, camera), axis
    if kind == "upright":
        return warp.upright(SMALL_TOWN, camera, GRAVITY), axis
    return warp.rectify(SMALL_TOWN, camera, GRAVITY), world_from_camera(GRAVITY) @ axis


def laid_over(before: Pixels, camera: Camera, kind: str) -> tuple[Any, Any]:
    """The new picture (H, W, 3) where the page should show it, and where that is known (H, W): what
    was on the optical axis is where it was in the photo, and pixels there are as large."""
    new, axis = warped(camera, kind)
    photo = np.abs(before.astype(int) - before[2, 2]).max(-1) > 8
    top, bottom = np.flatnonzero(photo.mean(1) > 0.3)[[0, -1]]
    left, right = np.flatnonzero(photo.mean(0) > 0.3)[[0, -1]]
    shown = np.array([right + 1 - left, bottom + 1 - top]) / camera.size[0]
    scale = shown * magnification(camera) / magnification(new.camera)
    there, _ = new.camera.project(axis[None, None])
    # OpenCV counts from the middles of pixels.
    move = np.array([left, top]) + shown * camera.c[0] - scale * there[0, 0] + 0.5 * scale - 0.5
    matrix, size = np.column_stack([np.diag(scale), move]), before.shape[1::-1]
    smooth = cv2.GaussianBlur(np.array(new.image, np.float32), (0, 0), 0.5 / scale.min())
    inside = cv2.warpAffine(new.valid.astype(np.uint8), matrix, size, flags=cv2.INTER_NEAREST)
    known = cv2.erode(inside, np.ones((9, 9), np.uint8), borderValue=0) > 0
    return cv2.warpAffine(smooth, matrix, size), known


def magnification(camera: Camera) -> Floats:
    """(2,) pixels by which a small tangent moves a point off the axis."""
    small = 1e-6
    pixels, _ = camera.project(np.array([[[small, 0.0, 1.0], [0.0, small, 1.0]]]))
    return np.diagonal(pixels[0] - camera.c[0]) / small
