"""What people see of the page at first: on one screen, whole, and in words that are right."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from page_driving import PHONE, SMALL_TOWN, answered, drop, only, overlay, still

LAPTOP = {"width": 1440, "height": 900}


@pytest.mark.parametrize(
    ("host", "words"),
    [
        ("localhost", "Nothing leaves this machine"),
        ("127.0.0.1", "Nothing leaves this machine"),
        ("[::1]", "Nothing leaves this machine"),
        ("192.168.1.7", "Photos go to 192.168.1.7, which keeps none, and nowhere else"),
        ("127.0.0.1.example", "Photos go to 127.0.0.1.example, which keeps none, and nowhere else"),
    ],
)
def test_it_says_where_photos_go(sources: Any, host: str, words: str) -> None:
    ask = "async host => (await import('/sources/words.js')).whereTo(host)"
    assert sources.evaluate(ask, host) == words


def test_it_says_so_on_the_page(open_page: Callable[..., Any]) -> None:
    assert open_page(webgl=False).inner_text("#local") == "Nothing leaves this machine"


@pytest.mark.parametrize(
    ("mm", "words"),
    [
        (8.2, "an 8.2 mm lens"),
        (11.3, "an 11.3 mm lens"),
        (18, "an 18.0 mm lens"),
        (80, "an 80 mm lens"),
        (850, "an 850 mm lens"),
        (10.5, "a 10.5 mm lens"),
        (29, "a 29 mm lens"),
        (110, "a 110 mm lens"),
        (180, "a 180 mm lens"),
    ],
)
def test_lenses_have_the_article_that_is_spoken(sources: Any, mm: float, words: str) -> None:
    ask = "async record => (await import('/sources/words.js')).sentence(record)"
    size = {"width": 600, "height": 400}
    focal = mm * np.hypot(600, 400) / np.hypot(36, 24)
    camera = {"camera_model": "pinhole", "fx": focal, "fy": focal, "distortion": []}
    record = {"roll_deg": 3, "pitch_deg": -2, "cx": 300, "cy": 200, **size, **camera}
    said = sources.evaluate(ask, record)
    assert said == f"Turned 3.0° clockwise, looking 2.0° down, through {words}."


def ends(page: Any, selector: str) -> float:
    """Where its lower edge is on the screen, in pixels."""
    box = page.locator(selector).last.bounding_box()
    return float(box["y"] + box["height"])


@pytest.mark.parametrize("names", [["a.jpg"], ["a.jpg", "b.jpg"]])
def test_lens_and_files_are_on_a_laptops_screen(
    open_page: Callable[..., Any], names: list[str]
) -> None:
    page = open_page(webgl=False, viewport=LAPTOP)
    drop(page, dict.fromkeys(names, SMALL_TOWN))
    answered(page)
    assert page.is_visible("#lens")
    assert ends(page, "#lens") < ends(page, "[data-format]") < ends(page, "[data-picture]") < 900
    # So is all of the photo that lines are drawn on.
    page.click("#draw")
    page.check("input[name=kind][value=ruler]", force=True)
    still(page)
    assert ends(page, "#stage") < 900


def test_three_doubts_leave_lens_and_files_on_a_laptops_screen(
    open_page: Callable[..., Any],
) -> None:
    page = open_page(webgl=False, viewport=LAPTOP)
    long = (
        "focal length: given (2613 px, vFoV 14.0°) contradicts the picture (561 px, vFoV 59.4°) "
        "by 46.5 sigma and was kept"
    )

    def doubt(route: Any) -> None:
        response = route.fetch()
        answer = response.json()
        answer["results"][0]["warnings"] = [f"{long} {number}" for number in range(3)]
        route.fulfill(response=response, body=json.dumps(answer))

    page.route("**/v1/calibrate", doubt)
    drop(page, {"a.jpg": SMALL_TOWN})
    answered(page)
    assert page.locator("#doubts li").count() == 3
    assert ends(page, "#lens") < ends(page, "[data-format]") < ends(page, "[data-picture]") < 900
    # What straight lines had to say is below.
    assert ends(page, "#remarks") > ends(page, "[data-picture]")


def test_what_a_phone_cannot_do_is_not_offered_and_nothing_is_cut(
    open_page: Callable[..., Any],
) -> None:
    page = open_page(webgl=False, **PHONE)
    assert not page.is_visible("text=drop photos anywhere")
    drop(page, dict.fromkeys(["c.jpg", "a.jpg", "b.jpg"], SMALL_TOWN))
    answered(page)
    controls = page.locator(".tools label:visible, .tools button:visible")
    assert controls.count() == 14  # views, turn and draw, switches
    for box in (controls.nth(i).bounding_box() for i in range(controls.count())):
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= PHONE["viewport"]["width"]
    # The strip shows the photo that is looked at, wherever it was chosen.
    page.check("input[value=together]", force=True)
    page.click("#side-by-side >> text=b.jpg")
    box = page.locator("#filmstrip .thumb").last.bounding_box()
    assert box["x"] + box["width"] <= PHONE["viewport"]["width"]


def test_the_veil_covers_the_photo_to_its_edges(open_page: Callable[..., Any]) -> None:
    """The grid of what the network saw ends within the photo; the veil does not."""
    page = open_page(webgl=False)

    def doubt_edges(route: Any) -> None:
        """Of what the server says, but that nothing is sure at the edges."""
        response = route.fetch()
        fields = response.json()
        for name in ("up_confidence", "latitude_confidence"):
            values = np.array(fields[name])
            values[[0, -1], :] = values[:, [0, -1]] = 0
            fields[name] = values.tolist()
        route.fulfill(response=response, body=json.dumps(fields))

    page.route(re.compile("v1/fields/"), doubt_edges)
    drop(page, {"town.jpg": SMALL_TOWN})
    answered(page)
    only(page, "confidence")
    veil = overlay(page)[..., 3]
    for edge in (veil[0], veil[-1], veil[:, 0], veil[:, -1]):
        assert edge.min() > 150
