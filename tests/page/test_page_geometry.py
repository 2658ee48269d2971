"""The page's cameras against those of the package: the same pixels, rays and fields."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from geocalib import Camera, perspective_field
from geocalib.geometry.gravity import from_roll_pitch
from geocalib.overlay import curves
from geocalib.overlay.box import place_box
from lenses import ALL_MODELS, PARAMETERS

SIZE = (640, 480)
CASES = [(name, list(values)) for name in ALL_MODELS for values in PARAMETERS[name]]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
ROLL, PITCH = 10.0, -8.0

ASK = """async ({record, gravity, rays, pixels, withBox}) => {
    const {Camera} = await import("/sources/camera.js");
    const curves = await import("/sources/curves.js");
    const {placeBox, pictureOf} = await import("/sources/box.js");
    const camera = new Camera(record);
    const box = withBox && placeBox(camera, gravity);
    return {
        projected: rays.map(ray => camera.project(ray)),
        unprojected: pixels.map(pixel => camera.unproject(pixel)),
        up: pixels.map(pixel => curves.up(camera, gravity, pixel)),
        latitude: pixels.map(pixel => curves.latitude(camera, gravity, pixel)),
        levels: curves.levels(camera, gravity),
        box: box && pictureOf(box, camera, gravity),
        ...camera.fieldsOfView(),
        between: camera.fieldsOfView(true),
    };
}"""


@pytest.fixture
def ask(sources: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Asks the page's cameras."""
    return lambda question: sources.evaluate(ASK, question)


@pytest.mark.parametrize(("name", "distortion"), CASES)
def test_same_as_the_package(ask: Any, name: str, distortion: list[float]) -> None:
    random = np.random.default_rng(0)
    # To place it takes long: once per model.
    with_box = distortion == list(PARAMETERS[name][0])
    camera = Camera.create(
        name, 380.0, SIZE, distortion, c=(330.0, 235.0), aspect=1.1, dtype=np.float64
    )
    gravity = from_roll_pitch(*np.radians([ROLL, PITCH]))
    rays = random.standard_normal((1, 200, 3))
    rays[..., 2] += 0.8
    rays[0, 0] = (0.0, 0.0, 2.0)
    corner = np.array(SIZE, float)
    points = random.random((1, 200, 2)) * 1.6 * corner - 0.3 * corner
    points[0, 0] = camera.c[0]
    found = ask(
        {
            "record": {
                "camera_model": name,
                "fx": 380.0 * 1.1,
                "fy": 380.0,
                "cx": 330.0,
                "cy": 235.0,
                "distortion": distortion,
                "width": SIZE[0],
                "height": SIZE[1],
            },
            "gravity": gravity.tolist(),
            "rays": rays[0].tolist(),
            "pixels": points[0].tolist(),
            "withBox": with_box,
        }
    )

    pixels, seen = camera.project(rays)
    directions, known = camera.unproject(points)
    up, latitude, _ = perspective_field(camera, gravity[None], points)
    inside = known[0] & ((points[0] > 0) & (points[0] < corner)).all(-1)
    compare(found["projected"], pixels[0], seen[0], 1e-6)
    compare(found["unprojected"], directions[0], known[0], 1e-8)
    compare(select(found["up"], inside), up[0][inside], inside[inside], 1e-5)
    compare(found["latitude"], latitude[0], known[0], 1e-7)
    assert found["levels"] == list(curves.level_curves(camera, gravity))
    for key, angle in (("vfov_deg", camera.vfov), ("hfov_deg", camera.hfov)):
        assert found[key] == pytest.approx(np.degrees(angle).item(), abs=1e-8)
    for key, angle in (("vfov_deg", camera.border_vfov), ("hfov_deg", camera.border_hfov)):
        seen_angle = np.nan if found["between"][key] is None else found["between"][key]
        assert seen_angle == pytest.approx(np.degrees(angle).item(), abs=1e-8, nan_ok=True)
    box = place_box(camera, gravity) if with_box else None
    assert (box is None) == (not found["box"])
    if box is not None:
        theirs = np.concatenate([face["outline"] for face in found["box"]["faces"]])
        ours = np.concatenate([face.outline for face in box.faces])
        # Other places are tried here and there: about as large, about there.
        assert np.abs(theirs.mean(0) - ours.mean(0)).max() < 40
        assert np.ptp(theirs, 0) == pytest.approx(np.ptp(ours, 0), rel=0.5)


def select(values: list[Any], mask: Mask) -> list[Any]:
    return [value for value, wanted in zip(values, mask.tolist(), strict=True) if wanted]


def compare(found: list[Any], truth: Floats, valid: Mask, tolerance: float) -> None:
    assert [value is not None for value in found] == valid.tolist()
    assert bool(valid.any())
    ours = np.array([value for value in found if value is not None])
    theirs = truth[valid]
    assert np.abs(ours - theirs).max() < tolerance * (1 + np.abs(theirs).max())
