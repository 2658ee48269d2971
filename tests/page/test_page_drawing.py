"""Lines that a person draws on the page: what is drawn is asked, and the answer follows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from page_driving import (
    SMALL_TOWN,
    answered,
    downloaded,
    drop,
    horizon_of,
    numbers,
    only,
    overlay,
    record,
    still,
)
from test_page_access import PHONE, serious

from geocalib import Calibration, Ruler
from geocalib.geometry.gravity import from_roll_pitch

SIZE = (480, 320)
TRUE_ROLL, TRUE_PITCH = 6.0, 8.0
FOCAL = 160 / math.tan(math.radians(30))
"""Of the example town at half its size (examples/town.json)."""
GRAVITY = from_roll_pitch(*torch.tensor([[TRUE_ROLL], [TRUE_PITCH]]).deg2rad())[0].numpy()


@pytest.fixture
def page(open_page: Callable[..., Any]) -> Iterator[Any]:
    """The example town, ready to be drawn on."""
    page = open_page(webgl=False)
    drop(page, {"town.jpg": SMALL_TOWN})
    answered(page)
    page.click("#draw")
    return page


def projected(direction: Any, *, through: tuple[float, float], reach: float) -> list[float]:
    """Ends of an edge of the world along a direction, whose middle lies at a pixel."""
    ray = np.array([(through[0] - 240) / FOCAL, (through[1] - 160) / FOCAL, 1.0])
    ends = [ray + sign * reach * np.asarray(direction) for sign in (-1, 1)]
    return [value for x, y, z in ends for value in (240 + FOCAL * x / z, 160 + FOCAL * y / z)]


def at(page: Any, x: float, y: float) -> tuple[float, float]:
    """Where a pixel of the photo is on the screen."""
    box = page.locator("#drawn").bounding_box()
    return box["x"] + x * box["width"] / SIZE[0], box["y"] + y * box["height"] / SIZE[1]


def press(page: Any, x0: float, y0: float, x1: float, y1: float) -> None:
    """Draw from there to there, and hold on."""
    page.mouse.move(*at(page, x0, y0))
    page.mouse.down()
    page.mouse.move(*at(page, x1, y1), steps=4)


def draw(page: Any, kind: str, *ends: float) -> None:
    page.check(f"input[name=kind][value={kind}]", force=True)
    press(page, *ends)
    page.mouse.up()
    still(page)


def words(page: Any) -> list[str]:
    return [
        text.removesuffix(" delete") for text in page.locator("#drawn-lines li").all_inner_texts()
    ]


def close_to(line: dict[str, Any], *ends: float) -> bool:
    return [line[name] for name in ("x0", "y0", "x1", "y1")] == pytest.approx(ends, abs=1.0)


def test_answer_follows_while_the_hand_moves(page: Any, tmp_path: Path) -> None:
    before = numbers(page)
    # The lamp on the right, and an upright edge of the world, but for a mistake of 20 pixels.
    with page.expect_request("**/v1/refit") as asked:
        press(page, 240, 250, 200, 50)
    (line,) = asked.value.post_data_json["drawn"]
    assert line["kind"] == "up"
    assert asked.value.post_data_json["lines"] == "off"
    page.wait_for_function(
        "was => document.querySelector('#numbers .value').textContent !== was",
        arg=before["Roll"].split(" ")[0],
    )
    assert page.is_visible("#loupe")
    page.mouse.up()
    still(page)
    assert not page.is_visible("#loupe")
    (check,) = record(page, tmp_path)["drawn"]
    assert check["kind"] == "up"
    assert close_to(check, 240, 250, 200, 50)
    page.click("#undo-line")
    still(page)
    assert numbers(page) == before
    assert record(page, tmp_path)["drawn"] == []


def test_true_edges_are_followed_and_keep_the_answer_right(page: Any, tmp_path: Path) -> None:
    down = GRAVITY
    ahead = np.cross(
        [math.cos(math.radians(TRUE_ROLL)), -math.sin(math.radians(TRUE_ROLL)), 0], down
    )
    across = np.cross(down, ahead)
    level = 0.6 * across + 0.8 * ahead
    draw(page, "up", *projected(down, through=(400, 150), reach=0.3))
    draw(page, "level", *projected(level, through=(100, 240), reach=0.2))
    draw(page, "parallel", *projected(level, through=(110, 60), reach=0.2))
    checks = record(page, tmp_path)["drawn"]
    assert [check["kind"] for check in checks] == ["up", "level", "parallel"]
    assert [check["to"] for check in checks] == [None, None, 2]
    assert all(check["used"] and check["off_deg"] < 1 for check in checks)
    found = record(page, tmp_path)
    assert found["roll_deg"] == pytest.approx(TRUE_ROLL, abs=0.3)
    assert found["pitch_deg"] == pytest.approx(TRUE_PITCH, abs=1.0)
    assert [text.split(":")[0] for text in words(page)] == [
        "Line 1, upright",
        "Line 2, level",
        "Line 3, parallel to 2",
    ]


def test_what_was_parallel_to_a_deleted_line_takes_its_place(page: Any) -> None:
    assert page.is_disabled("input[name=kind][value=parallel]")
    draw(page, "level", 40, 200, 120, 200)
    draw(page, "parallel", 40, 240, 120, 230)
    draw(page, "up", 400, 250, 380, 60)
    draw(page, "parallel", 300, 250, 290, 60)
    # The line that is chosen is the one that the next is parallel to.
    page.mouse.click(*at(page, 80, 235))
    draw(page, "parallel", 200, 240, 260, 232)
    with page.expect_request("**/v1/refit") as asked:
        page.click("#drawn-lines li:first-child button")
    lines = asked.value.post_data_json["drawn"]
    assert [(line["kind"], line.get("to")) for line in lines] == [
        ("level", None),
        ("up", None),
        ("parallel", 2),
        ("parallel", 1),
    ]
    assert close_to(lines[0], 40, 240, 120, 230)
    still(page)


def test_ends_are_dragged(page: Any) -> None:
    draw(page, "up", 240, 250, 220, 60)
    with page.expect_request("**/v1/refit") as asked:
        press(page, 221, 61, 231, 61)
    page.mouse.up()
    still(page)
    (line,) = asked.value.post_data_json["drawn"]
    page.click("#undo-line")
    still(page)
    assert len(words(page)) == 1
    page.click("#undo-line")
    still(page)
    assert words(page) == []
    assert line["y1"] == pytest.approx(60, abs=1.5)
    assert 221 < line["x1"] < 232


def test_horizon_is_dragged(page: Any, tmp_path: Path) -> None:
    before = record(page, tmp_path)
    page.check("input[name=kind][value=horizon]", force=True)
    press(page, 100, 60, 100, 90)
    page.mouse.up()
    still(page)
    after = record(page, tmp_path)
    (line,) = after["drawn"]
    assert line["kind"] == "horizon"
    # Higher pitch: the horizon sinks.
    assert after["pitch_deg"] > before["pitch_deg"] + 1
    only(page, "horizon")
    layer = overlay(page)
    scale = layer.shape[1] / SIZE[0]
    drawn = horizon_of(layer)
    # Its name stands at one end.
    for share in (0.1, 0.7):
        x, y = (line[f"{i}0"] + share * (line[f"{i}1"] - line[f"{i}0"]) for i in "xy")
        rows = np.nonzero(drawn[:, round(x * scale)])[0]
        assert rows.mean() / scale == pytest.approx(y, abs=3)
    # There is one horizon: it is dragged again.
    draw(page, "horizon", 100, 60, 100, 50)
    (again,) = record(page, tmp_path)["drawn"]
    assert again["y0"] == pytest.approx(line["y0"] - 10, abs=1)


def test_taps_and_what_is_taken_back_draw_nothing(page: Any) -> None:
    page.mouse.click(*at(page, 100, 100))
    press(page, 100, 100, 150, 150)
    page.keyboard.press("Escape")
    page.mouse.up()
    still(page)
    assert words(page) == []
    page.keyboard.press("Escape")
    assert page.get_attribute("#draw", "aria-pressed") == "false"
    assert not page.is_visible("#pens")


def test_fingers_draw(open_page: Callable[..., Any]) -> None:
    page = open_page(webgl=False, **PHONE)
    drop(page, {"town.jpg": SMALL_TOWN})
    answered(page)
    page.locator("#draw").tap()
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 390
    touch = page.context.new_cdp_session(page)
    points = [at(page, 240 - 4 * i, 250 - 20 * i) for i in range(10)]
    for kind, place in [("touchStart", points[0]), *(("touchMove", each) for each in points)]:
        touch.send(
            "Input.dispatchTouchEvent",
            {"type": kind, "touchPoints": [{"x": place[0], "y": place[1]}]},
        )
    assert page.is_visible("#loupe")
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    still(page)
    assert words(page)[0].startswith("Line 1, upright")
    assert page.evaluate("() => scrollY") == 0


def test_keyboard_draws(page: Any, tmp_path: Path) -> None:
    page.focus("#stage")
    page.keyboard.press("Enter")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    page.keyboard.press("Shift+ArrowDown")
    still(page)
    (line,) = record(page, tmp_path)["drawn"]
    step = 4 * SIZE[0] / page.locator("#drawn").bounding_box()["width"]
    top, bottom = 0.35 * SIZE[1], 0.65 * SIZE[1]
    assert close_to(line, 240, top + step / 4, 240 + 3 * step, bottom)
    page.focus("#stage")
    page.keyboard.press("ControlOrMeta+z")
    still(page)
    (line,) = record(page, tmp_path)["drawn"]
    assert close_to(line, 240, top, 240, bottom)
    page.focus("#stage")
    page.keyboard.press("ControlOrMeta+z")
    still(page)
    assert words(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_drawing_keeps_nobody_out(page: Any, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    draw(page, "up", 240, 250, 220, 60)
    assert serious(page) == []


def test_lines_turn_with_the_photo(page: Any, tmp_path: Path) -> None:
    draw(page, "up", 240, 250, 220, 60)
    page.click("#turn")
    still(page)
    (line,) = record(page, tmp_path)["drawn"]
    assert close_to(line, 320 - 250, 240, 320 - 60, 220)


def test_lines_belong_to_one_photo(open_page: Callable[..., Any]) -> None:
    page = open_page(webgl=False)
    drop(page, {"a.jpg": SMALL_TOWN, "b.jpg": SMALL_TOWN})
    answered(page)
    page.click("#draw")
    draw(page, "up", 240, 250, 220, 60)
    page.click("#filmstrip li:nth-child(2) .thumb")
    assert words(page) == []
    with page.expect_request("**/v1/refit") as asked:
        page.check("#shared")
    still(page)
    assert "drawn" not in asked.value.post_data_json
    assert page.is_disabled("#draw")
    page.uncheck("#shared")
    still(page)
    page.click("#filmstrip li:nth-child(1) .thumb")
    assert len(words(page)) == 1


def test_a_ruler_tells_how_high_the_camera_stood(page: Any, tmp_path: Path) -> None:
    assert not page.is_visible("#ruler-metres")
    draw(page, "ruler", 330, 250, 420, 245)
    page.fill("#ruler-metres", "2.5")
    page.press("#ruler-metres", "Enter")
    draw(page, "level", 40, 190, 120, 190)
    draw(page, "parallel", 40, 100, 120, 90)
    found = record(page, tmp_path)
    # The ruler is none of the lines that others count.
    assert [(check["kind"], check["to"]) for check in found["drawn"]] == [
        ("level", None),
        ("parallel", 1),
    ]
    assert words(page)[0] == "Ruler, 2.5 m on the ground"
    # Nor is it by numbers here, which warnings speak of.
    assert [text.split(":")[0] for text in words(page)[1:]] == [
        "Line 1, level",
        "Line 2, parallel to 1",
    ]
    assert page.locator("#drawn text").all_text_contents() == ["2.5 m", "1", "2 ∥ 1"]
    told = found["ruler"]
    assert close_to(told, 330, 250, 420, 245)
    own = Calibration.from_dict(found).measured(Ruler(330, 250, 420, 245, 2.5)).ruler
    assert own is not None
    assert told["camera_height"] == pytest.approx(own.camera_height, rel=0.03)
    shown = numbers(page)["Camera above the ground"]
    assert float(shown.split(" ")[0]) == pytest.approx(told["camera_height"], rel=0.05)
    script = downloaded(page, "[data-format=blender]", tmp_path).read_text()
    assert f"HEIGHT = {told['camera_height']!r} " in script
    # Another one takes its place.
    page.evaluate("scrollTo({ top: 0, behavior: 'instant' })")
    draw(page, "ruler", 300, 225, 460, 215)
    assert sum(text.startswith("Ruler") for text in words(page)) == 1
    assert close_to(record(page, tmp_path)["ruler"], 300, 225, 460, 215)
    page.locator("#drawn-lines li", has_text="Ruler").locator("button").click()
    still(page)
    found = record(page, tmp_path)
    assert found["ruler"] is None
    assert len(found["drawn"]) == 2


def test_what_stands_upright_is_a_ruler_too(page: Any, tmp_path: Path) -> None:
    page.check("input[name=kind][value=ruler]", force=True)
    page.check("#ruler-up")
    draw(page, "ruler", *projected(GRAVITY, through=(400, 260), reach=0.1))
    told = record(page, tmp_path)["ruler"]
    assert (told["kind"], told["metres"]) == ("up", 1.0)
    assert words(page) == ["Ruler, 1 m upright"]


def test_a_ruler_in_the_sky_says_why_it_tells_nothing(open_page: Callable[..., Any]) -> None:
    page = open_page(refusals=True, webgl=False)
    drop(page, {"town.jpg": SMALL_TOWN})
    answered(page)
    page.click("#draw")
    draw(page, "ruler", 150, 20, 260, 30)
    assert "above the horizon: no ground is there" in page.inner_text("#problem")
    page.click("#undo-line")
    still(page)
    assert page.inner_text("#problem") == ""
