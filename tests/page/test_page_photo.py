"""One photo on the page: what is drawn is where it belongs, and follows what is known."""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from page_driving import (
    TOWN,
    Pixels,
    answered,
    drop,
    horizon_of,
    numbers,
    only,
    overlay,
    seen,
    still,
)
from PIL import Image
from scipy.ndimage import binary_dilation

from geocalib import Calibration
from geocalib.overlay.photo import annotate
from maker_notes import by_phone

Mask = npt.NDArray[np.bool_]


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
    ours = overlay(page)
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
    layer = overlay(page).astype(float)
    alpha = layer[..., 3:] / 255
    ours = layer[..., :3] * alpha + 255 * (1 - alpha)
    theirs = drawn_by_python(record, (ours.shape[1], ours.shape[0]))[..., :3].astype(float)

    def blurred(image: Any) -> Any:
        small = Image.fromarray(image.clip(0, 255).astype(np.uint8))
        return np.asarray(small.resize((ours.shape[1] // 8, ours.shape[0] // 8), 4), float)

    apart = np.abs(blurred(ours) - blurred(theirs)).mean()
    shifted = np.abs(blurred(ours) - blurred(np.roll(theirs, 30, (0, 1)))).mean()
    # Heads of arrows and letters differ; places do not.
    assert apart < 0.4 * shifted


def test_slider_moves_the_horizon_before_the_answer_comes(
    town: tuple[Any, dict[str, Any]],
) -> None:
    page, record = town
    only(page, "horizon")
    before = horizon_of(overlay(page))
    held: list[Any] = []
    page.route("**/v1/refit", lambda route: held.append(route), times=1)
    knob = page.locator("#pitch")
    knob.scroll_into_view_if_needed()
    place = knob.bounding_box()
    share = (record["pitch_deg"] + 60) / 120
    height = place["y"] + place["height"] / 2
    page.mouse.move(place["x"] + share * place["width"], height)
    page.mouse.down()
    page.mouse.move(place["x"] + (share + 0.06) * place["width"], height, steps=5)
    page.wait_for_function("() => document.querySelector('#pitch-free').hidden === false")
    after = horizon_of(overlay(page))
    # Higher pitch: the horizon sinks.
    assert np.nonzero(after)[0].mean() > np.nonzero(before)[0].mean() + 20
    # One request at a time, however far the hand goes.
    asked: list[Any] = []
    page.on("request", lambda request: asked.append(request))
    page.mouse.move(place["x"] + (share + 0.08) * place["width"], height, steps=5)
    assert (len(held), len(asked)) == (1, 0)
    held[0].continue_()
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
    assert one.value.post_data_json["roll_deg"] == {"value": 4, "sigma": 0.001}
    still(page)
    assert numbers(page)["Roll"] == "+4.00° given"
    with page.expect_request("**/v1/refit") as both:
        page.fill("#pitch-number", "5")
        page.press("#pitch-number", "Enter")
    told = both.value.post_data_json
    assert (told["roll_deg"], told["pitch_deg"]) == (4, 5)
    still(page)
    assert numbers(page)["Roll"] == "+4.00° given"


@pytest.mark.parametrize(
    ("knob", "typed"), [("focal", "0"), ("focal", "-5"), ("roll", "999"), ("pitch", "")]
)
def test_what_cannot_be_is_refused_in_words(
    town: tuple[Any, dict[str, Any]], knob: str, typed: str
) -> None:
    page, _ = town
    before = page.input_value(f"#{knob}-number")
    page.fill(f"#{knob}-number", typed)
    page.press(f"#{knob}-number", "Enter")
    page.evaluate("() => document.activeElement.blur()")
    assert "must lie between" in page.inner_text("#problem")
    assert f"{typed or 'that'} is not used" in page.inner_text("#problem")
    assert page.input_value(f"#{knob}-number") == before
    assert not page.is_visible(f"#{knob}-free")


def test_what_is_given_is_held_against_the_picture(town: tuple[Any, dict[str, Any]]) -> None:
    """What contradicts it is said among the doubts, and once; what agrees is said to agree."""
    page, _ = town
    page.fill("#focal-number", "98")
    page.press("#focal-number", "Enter")
    page.wait_for_function("() => document.querySelector('#doubts').innerText.includes('given')")
    still(page)
    assert "contradicts the picture" in page.inner_text("#doubts")
    assert "focal length" not in page.inner_text("#remarks").lower()
    page.fill("#focal-number", "20.8")  # 60 degrees, the truth
    page.press("#focal-number", "Enter")
    page.wait_for_function("() => document.querySelector('#remarks').innerText.includes('agrees')")
    still(page)
    assert "The given focal length agrees with the picture" in page.inner_text("#remarks")
    assert "contradicts" not in page.inner_text("#doubts")


def test_what_is_given_is_held_against_the_file(open_page: Callable[..., Any]) -> None:
    page = open_page()
    drop(page, {"phone.jpg": by_phone(Image.open(TOWN), 6, 8, 21)})
    answered(page)
    page.fill("#focal-number", "98")
    page.press("#focal-number", "Enter")
    page.wait_for_function("() => document.querySelector('#doubts').innerText.includes('EXIF')")
    assert re.search(r"contradicts EXIF 21 mm \(\d+ px, vFoV", page.inner_text("#doubts"))
    page.fill("#focal-number", "21")
    page.press("#focal-number", "Enter")
    said = "() => document.querySelector('#remarks').innerText.includes('agrees with EXIF 21 mm')"
    page.wait_for_function(said)
    assert "contradicts EXIF" not in page.inner_text("#doubts")
    # Once turned, the file tells nothing, but the page knows what it told.
    page.click("#turn")
    answered(page)
    page.click("#focal-free")
    still(page)
    focal = float(page.input_value("#focal-number"))
    assert focal == pytest.approx(21, rel=0.15)


def test_another_lens_has_its_parameters_among_the_numbers(
    town: tuple[Any, dict[str, Any]],
) -> None:
    page, _ = town
    assert "Distortion k₁" not in numbers(page)
    page.select_option("#lens", "simple_radial")
    page.wait_for_function("() => document.querySelector('#numbers').innerText.includes('k₁')")
    assert "±" in numbers(page)["Distortion k₁"]


def test_lens_that_fits_best_is_found_and_named(town: tuple[Any, dict[str, Any]]) -> None:
    page, _ = town
    with page.expect_response("**/v1/refit"):
        page.select_option("#lens", "auto")
    still(page)
    assert page.input_value("#lens") == "auto"
    remarks = page.locator("#remarks").text_content()
    # The town was rendered through a pinhole.
    assert re.search(r"Lens: pinhole fits best, with \d+%", remarks), remarks
    assert not any(name.startswith("Distortion") for name in numbers(page))


def test_box_follows_the_hand_over_the_ground(town: tuple[Any, dict[str, Any]]) -> None:
    page, _ = town
    only(page, "box")
    before = amber(seen(page))
    y, x = middle(before)
    drag(page, (x, y), (x - 150, y + 20))
    moved = amber(seen(page))
    assert middle(moved)[1] == pytest.approx(x - 150, abs=40)
    page.wait_for_function("() => document.querySelector('#box-words').textContent.length > 0")
    assert "camera heights ahead" in page.inner_text("#box-words")


def test_box_is_turned_by_its_ring(town: tuple[Any, dict[str, Any]]) -> None:
    page, _ = town
    only(page, "box")
    with_box = seen(page)
    only(page)
    drawn = np.abs(with_box.astype(int) - seen(page)).max(-1) > 12
    only(page, "box")
    before = amber(with_box)
    y, x = float(np.nonzero(drawn)[0].max()) - 4, middle(before)[1]
    drag(page, (x, y), (x + 70, y - 8))
    after = amber(seen(page))
    assert middle(after) == pytest.approx(middle(before), abs=15)
    assert (after != before).sum() > 0.3 * before.sum()


def amber(pixels: Pixels) -> Mask:
    """(H, W): where the edges of the box are."""
    mask: Mask = np.abs(pixels[..., :3].astype(int) - (255, 196, 0)).max(-1) < 30
    assert mask.sum() > 200
    return mask


def middle(mask: Mask) -> tuple[float, float]:
    """Mean row and column."""
    rows, columns = np.nonzero(mask)
    return float(rows.mean()), float(columns.mean())


def drag(page: Any, start: tuple[float, float], end: tuple[float, float]) -> None:
    """From place to place on the stage, (x, y)."""
    frame = page.locator("#stage").bounding_box()
    page.mouse.move(frame["x"] + start[0], frame["y"] + start[1])
    page.mouse.down()
    page.mouse.move(frame["x"] + end[0], frame["y"] + end[1], steps=4)
    page.mouse.up()
    page.mouse.move(0, 0)
    still(page)


def test_rectified_stands_beside_the_photo_as_it_was(town: tuple[Any, dict[str, Any]]) -> None:
    page, _ = town
    page.check("input[value=rectified]", force=True)
    still(page)
    half = seen(page).astype(int)
    page.locator("#wipe").fill("100")
    still(page)
    photo = seen(page)
    cut = half.shape[1] // 2
    # Apart from the handle and the words above both.
    left, right = slice(120, cut - 40), slice(cut + 40, -140)
    assert np.abs(half[:, left] - photo[:, left]).mean() < 1
    assert np.abs(half[:, right] - photo[:, right]).mean() > 5


def test_straight_lens_says_why_there_is_nothing_to_undistort(
    town: tuple[Any, dict[str, Any]],
) -> None:
    page, _ = town
    page.check("input[value=undistorted]", force=True)
    still(page)
    assert "choose another lens" in page.inner_text("#obstacle")
    page.click("text=Try Fisheye")
    page.wait_for_selector("#obstacle", state="hidden")
    assert page.input_value("#lens") == "kannala_brandt"


def test_lines_and_confidences_are_drawn_from_what_the_network_saw(
    town: tuple[Any, dict[str, Any]],
) -> None:
    page, _ = town
    only(page)
    assert overlay(page)[..., 3].max() == 0
    only(page, "lines")
    lines = overlay(page)
    assert (np.abs(lines[..., :3].astype(int) - (0, 165, 255)).max(-1) < 30).sum() > 100
    only(page, "confidence")
    veil = overlay(page)[..., 3]
    assert veil.min() < 60
    assert veil.max() > 100


def test_pasted_picture_is_calibrated(open_page: Callable[..., Any]) -> None:
    page = open_page(webgl=False)
    small = io.BytesIO()
    Image.open(TOWN).resize((480, 320)).save(small, "png")
    page.evaluate(
        """text => {
            const transfer = new DataTransfer();
            const bytes = Uint8Array.from(atob(text), c => c.charCodeAt(0));
            transfer.items.add(new File([bytes], "image.png", {type: "image/png"}));
            document.dispatchEvent(new ClipboardEvent("paste", {clipboardData: transfer}));
        }""",
        base64.b64encode(small.getvalue()).decode(),
    )
    answered(page)
    assert float(page.input_value("#roll-number")) == pytest.approx(6, abs=1.5)
