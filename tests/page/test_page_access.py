"""The page for everybody: on a phone, with the keyboard alone, in light and dark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.request import urlopen

import pytest
from page_driving import PHONE, SMALL_TOWN, answered, drop, numbers, still


def serious(page: Any) -> list[str]:
    """What axe-core finds that keeps people out."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    found = axe.Axe().run(page).response["violations"]
    return [
        f"{each['id']}: {node['html'][:120]}"
        for each in found
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_keeps_people_out(open_page: Callable[..., Any], scheme: str) -> None:
    page = open_page(refusals=True, webgl=False)
    page.emulate_media(color_scheme=scheme)
    if scheme == "light":
        assert serious(page) == []
    drop(page, {"town.jpg": SMALL_TOWN, "cut.jpg": SMALL_TOWN[:9000]})
    answered(page)
    page.fill("#roll-number", "4")
    page.press("#roll-number", "Enter")
    still(page)
    assert serious(page) == []
    for view in ("rectified", "together") if scheme == "light" else ("together",):
        page.check(f"input[value={view}]", force=True)
        still(page)
        assert serious(page) == []


def test_phone_shows_everything_without_scrolling_sideways(
    open_page: Callable[..., Any],
) -> None:
    page = open_page(webgl=False, **PHONE)
    assert page.is_visible("text=Take a photo")
    assert page.get_attribute("#take", "capture") == "environment"
    drop(page, {"town.jpg": SMALL_TOWN})
    answered(page)
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 390
    stage = page.locator("#stage").bounding_box()
    assert stage["width"] > 380
    # The photo is there before the numbers, and the numbers begin on the same screen.
    panel = page.locator(".panel").bounding_box()
    assert stage["y"] + stage["height"] <= panel["y"] < 700
    page.locator("#pitch").tap()
    still(page)
    assert "given" in page.get_attribute("#pitch", "aria-valuetext")


def focus(page: Any, wanted: str, key: str = "Tab", most: int = 40) -> None:
    """Walk with the keyboard until the focus is there, and can be seen."""
    for _ in range(most):
        page.keyboard.press(key)
        if page.evaluate("wanted => document.activeElement.matches(wanted)", wanted):
            return
    raise AssertionError(f"{wanted} is not reached by {key}")


def test_keyboard_alone_does_it_all(open_page: Callable[..., Any]) -> None:
    page = open_page(webgl=False)
    focus(page, "[data-example]")
    page.keyboard.press("Enter")
    answered(page)
    page.evaluate("() => document.activeElement.blur()")
    focus(page, "input[name=view]:checked")
    focus(page, "[data-show=latitudes]")
    page.keyboard.press("Space")
    assert not page.is_checked("[data-show=latitudes]")
    focus(page, "#stage")
    for key in ("ArrowLeft", "ArrowUp", "]", "+"):
        page.keyboard.press(key)
    page.wait_for_function("() => document.querySelector('#box-words').textContent.length > 0")
    focus(page, "#focal-number")
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("28")
    page.keyboard.press("Enter")
    still(page)
    assert numbers(page)["as on full frame"] == "28.0 mm given"
    focus(page, "#roll")
    before = float(page.input_value("#roll-number"))
    page.keyboard.press("ArrowRight")
    still(page)
    assert float(page.input_value("#roll-number")) == pytest.approx(before + 0.1, abs=0.06)
    focus(page, "#lens")
    for _ in range(2):  # past the pinhole
        page.keyboard.press("ArrowDown")
        still(page)
    assert "Distortion k₁" in numbers(page)
    focus(page, "[data-format=json]")
    with page.expect_download():
        page.keyboard.press("Enter")
    focus(page, "input[name=view]:checked", "Shift+Tab")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    still(page)
    assert page.is_visible("#comparison")
    focus(page, "#wipe")
    page.keyboard.press("ArrowLeft")
    assert page.input_value("#wipe") == "49.5"


def test_screen_readers_hear_the_answer_and_its_doubts(open_page: Callable[..., Any]) -> None:
    page = open_page(webgl=False)
    page.click("[data-example]")
    answered(page)
    page.wait_for_function("() => document.querySelector('#spoken').textContent.length > 0")
    said = page.text_content("#spoken")
    assert "Turned 6.0° clockwise" in said
    assert "Nothing speaks against this answer." in said
    assert page.get_attribute("#spoken", "role") == "status"
    assert "estimated" in page.get_attribute("#focal", "aria-valuetext")


def test_page_may_reach_nobody_but_its_server(address: str) -> None:
    with urlopen(address) as answer:
        policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http:" not in policy
