"""One photo on the page: what is drawn is where it belongs, and follows what is known."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from page_driving import (
    TOWN,
    Pixels,
    answered,
    canvas,
    drop,
    horizon_of,
    numbers,
    only,
    shows,
    still,
)
from PIL import Image
from scipy.ndimage import binary_dilation

from geocalib import Calibration
from geocalib.overlay.photo import annotate

Mask = npt.NDArray[np.bool_]


@pytest.fixture
def town(open_page: Callable[..., Any]) -> tuple[Any, dict[str, Any]]:
    """A page that shows the example, and the record that it got."""
    page = open_page()
    with page.expect_response("**/v1/calibrate") as answer:
        drop(page, {"town.jpg": TOWN.read_bytes()})
    answered(page)
    return page, answer.value.json()["results"][0]


def calibration_of(record: dict[str, Any]) -> Calibration:
    own = {key: value for key, value in record.items() if key not in ("id", "name")}
    return Calibration.from_json(json.dumps(own))


def drawn_by_python(record: dict[str, Any], size: tuple[int, int]) -> Pixels:
    """(H, W, 4): as ``geocalib.overlay`` draws it, on white."""
    white = Image.new("RGB", size, "white")
    return np.array(annotate(white, calibration_of(record)).convert("RGBA"))


def covered(small: Mask, large: Mask, reach: int) -> float:
    """The share of the small one that lies within so many pixels of the large one."""
    return float(binary_dilation(large, iterations=reach)[small].mean())


def test_horizon_lies_where_the_package_draws_it(town: tuple[Any, dict[str, Any]]) -> None:
    page, record = town
    only(page, "horizon")
    ours = canvas(page, "#overlay")
    theirs = drawn_by_python(record, (ours.shape[1], ours.shape[0]))
    here, there = horizon_of(ours), horizon_of(theirs)
    assert here.sum() > 1000
    assert covered(there, here, 1) > 0.97
    # The package draws arrows above the line.
    assert covered(here, there, 2) > 0.85
    # A pixel off would show.
    assert covered(np.roll(there, 4, 0), here, 1) < 0.7


def test_all_lines_look_as_the_package_draws_them(town: tuple[Any, dict[str, Any]]) -> None:
    page, record = town
    only(page, "horizon", "latitudes", "up")
    layer = canvas(page, "#overlay").astype(float)
    alpha = layer[..., 3:] / 255
    ours = layer[..., :3] * alpha + 255 * (1 - alpha)
    theirs = drawn_by_python(record, (ours.shape[1], ours.shape[0]))[..., :3].astype(float)

    def blurred(image: Any) -> Any:
        small = Image.fromarray(image.clip(0, 255).astype(np.uint8))
        return np.asarray(small.resize((ours.shape[1] // 8, ours.shape[0] // 8), 4), float)

    assert np.abs(blurred(ours) - blurred(theirs)).mean() < 4
    moved = np.roll(theirs, 30, (0, 1))
    assert np.abs(blurred(ours) - blurred(moved)).mean() > 8


def test_slider_moves_the_horizon_before_the_answer_comes(
    town: tuple[Any, dict[str, Any]],
) -> None:
    page, record = town
    only(page, "horizon")
    before = horizon_of(canvas(page, "#overlay"))
    held = []
    page.route("**/v1/refit", lambda route: held.append(route))
    knob = page.locator("#pitch")
    place = knob.bounding_box()
    share = (record["pitch_deg"] + 60) / 120
    middle = place["y"] + place["height"] / 2
    page.mouse.move(place["x"] + share * place["width"], middle)
    page.mouse.down()
    page.mouse.move(place["x"] + (share + 0.06) * place["width"], middle, steps=5)
    page.wait_for_function("() => document.querySelector('#pitch-free').hidden === false")
    after = horizon_of(canvas(page, "#overlay"))
    # Higher pitch: the horizon sinks.
    assert np.nonzero(after)[0].mean() > np.nonzero(before)[0].mean() + 20
    # One request at a time, however far the hand goes.
    assert len(held) == 1
    page.unroute("**/v1/refit")
    for route in held:
        route.continue_()
    page.mouse.up()
    still(page)
    pitch = float(page.input_value("#pitch-number"))
    assert numbers(page)["Pitch"].startswith(f"+{pitch:.1f}")


def test_held_focal_length_in_millimetres_is_what_the_fit_gives(
    town: tuple[Any, dict[str, Any]],
) -> None:
    page, record = town
    page.fill("#focal-number", "28")
    with page.expect_response("**/v1/refit") as answer:
        page.press("#focal-number", "Enter")
    diagonal = np.hypot(record["width"], record["height"])
    assert answer.value.json()["results"][0]["fy"] == pytest.approx(28 * diagonal / 43.2666, 1e-4)
    still(page)
    assert numbers(page)["as on full frame"] == "28.0 mm given"
    page.click("#focal-free")
    still(page)
    assert "given" not in numbers(page)["Focal length"]


def test_known_angles_are_given_together_or_softly(town: tuple[Any, dict[str, Any]]) -> None:
    page, _ = town
    with page.expect_request("**/v1/refit") as one:
        page.fill("#roll-number", "4")
        page.press("#roll-number", "Enter")
    assert one.value.post_data_json["roll_deg"] == {"value": 4, "sigma": 0.02}
    still(page)
    with page.expect_request("**/v1/refit") as both:
        page.fill("#pitch-number", "5")
        page.press("#pitch-number", "Enter")
    told = both.value.post_data_json
    assert (told["roll_deg"], told["pitch_deg"]) == (4, 5)
    still(page)
    assert numbers(page)["Roll"] == "+4.00° given"


def test_another_lens_has_its_parameters_among_the_numbers(
    town: tuple[Any, dict[str, Any]],
) -> None:
    page, _ = town
    assert "Distortion k₁" not in numbers(page)
    page.select_option("#lens", "simple_radial")
    page.wait_for_function("() => document.querySelector('#numbers').innerText.includes('k₁')")
    assert "±" in numbers(page)["Distortion k₁"]


def test_box_follows_the_hand_over_the_ground(town: tuple[Any, dict[str, Any]]) -> None:
    page, _ = town
    only(page, "box")
    before = amber(canvas(page, "#solid"))
    assert before.sum() > 500
    y, x = (values.mean() for values in np.nonzero(before))
    frame = page.locator("#solid").bounding_box()
    page.mouse.move(frame["x"] + x, frame["y"] + y)
    page.mouse.down()
    page.mouse.move(frame["x"] + x - 150, frame["y"] + y + 20, steps=4)
    page.mouse.up()
    still(page)
    moved = np.nonzero(amber(canvas(page, "#solid")))
    assert moved[1].mean() == pytest.approx(x - 150, abs=30)
    page.wait_for_function("() => document.querySelector('#box-words').textContent.length > 0")
    assert "camera heights ahead" in page.inner_text("#box-words")


def amber(pixels: Pixels) -> Mask:
    """(H, W): where the edges of the box are."""
    return (np.abs(pixels[..., :3].astype(int) - (255, 196, 0)).max(-1) < 30) & (
        pixels[..., 3] > 220
    )


def test_box_is_turned_by_its_ring(town: tuple[Any, dict[str, Any]]) -> None:
    page, _ = town
    only(page, "box")
    before = canvas(page, "#solid")
    rows, columns = np.nonzero(amber(before))
    frame = page.locator("#solid").bounding_box()
    # The ring passes in front of the box's lowest corner.
    ring = np.nonzero((before[..., 3] > 60) & (np.arange(before.shape[0]) > rows.max())[:, None])
    low = ring[0].max() - 4
    page.mouse.move(frame["x"] + float(columns.mean()), frame["y"] + float(low))
    page.mouse.down()
    page.mouse.move(frame["x"] + float(columns.mean()) + 60, frame["y"] + float(low) - 8, steps=4)
    page.mouse.up()
    still(page)
    after = np.nonzero(amber(canvas(page, "#solid")))
    assert after[1].mean() == pytest.approx(columns.mean(), abs=12)
    assert not np.array_equal(canvas(page, "#solid"), before)


def test_rectified_stands_beside_the_photo_as_it_was(town: tuple[Any, dict[str, Any]]) -> None:
    page, _ = town
    page.check("input[value=rectified]", force=True)
    still(page)
    half = canvas(page, "#comparison")
    page.locator("#wipe").fill("100")
    still(page)
    photo = canvas(page, "#comparison")
    width = half.shape[1]
    assert np.abs(half[:, : width // 2 - 2].astype(int) - photo[:, : width // 2 - 2]).mean() < 1
    assert np.abs(half[:, width // 2 + 2 :].astype(int) - photo[:, width // 2 + 2 :]).mean() > 5


def test_straight_lens_says_why_there_is_nothing_to_undistort(
    town: tuple[Any, dict[str, Any]],
) -> None:
    page, _ = town
    page.check("input[value=undistorted]", force=True)
    still(page)
    assert "choose another lens" in page.inner_text("#obstacle")
    page.select_option("#lens", "simple_radial")
    page.wait_for_selector("#obstacle", state="hidden")


def test_lines_and_confidences_are_drawn_from_what_the_network_saw(
    town: tuple[Any, dict[str, Any]],
) -> None:
    page, _ = town
    only(page)
    assert canvas(page, "#overlay")[..., 3].max() == 0
    shows(page, lines=True)
    still(page)
    lines = canvas(page, "#overlay")
    vertical = np.abs(lines[..., :3].astype(int) - (0, 165, 255)).max(-1) < 30
    assert vertical.sum() > 100
    shows(page, lines=False, confidence=True)
    still(page)
    veil = canvas(page, "#overlay")[..., 3]
    assert veil.max() > 100
    assert veil.min() < 60


def test_pasted_picture_is_calibrated(open_page: Callable[..., Any]) -> None:
    page = open_page()
    small = io.BytesIO()
    Image.open(TOWN).resize((480, 320)).save(small, "png")
    page.evaluate(
        """bytes => {
            const transfer = new DataTransfer();
            const file = new File([Uint8Array.from(bytes)], "image.png", {type: "image/png"});
            transfer.items.add(file);
            document.dispatchEvent(new ClipboardEvent("paste", {clipboardData: transfer}));
        }""",
        list(small.getvalue()),
    )
    answered(page)
    assert float(page.input_value("#roll-number")) == pytest.approx(6, abs=1.5)
