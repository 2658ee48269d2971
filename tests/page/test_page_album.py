"""Several photos on the page, broken ones among them, and what can be taken away."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from page_driving import TOWN, answered, downloaded, drop, numbers, overlay, still
from PIL import Image

from geocalib import Camera
from geocalib.formats import colmap, csv_table, json_lines, opencv
from geocalib.geometry.gravity import from_roll_pitch
from geocalib.pipeline.orientation import MAY_LIE
from geocalib.synthetic import render_scene
from page.conftest import listening
from quick_network import write_quick_network

SIZE = (300, 200)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that answers at once: here it does not matter how well."""
    network = write_quick_network(tmp_path_factory.mktemp("network") / "quick.onnx")
    with listening(network) as address:
        yield address


@cache
def photo(roll: float, pitch: float, f: float = 230.0) -> bytes:
    """Of the rendered town, as a PNG file."""
    camera = Camera.create("pinhole", f, SIZE)
    angles = torch.tensor([[roll], [pitch]]).deg2rad()
    picture = render_scene(camera, from_roll_pitch(*angles), subpixels=1)[0]
    content = io.BytesIO()
    pixels = (255 * picture.numpy()).round().astype(np.uint8)
    Image.fromarray(pixels).save(content, "png")
    return content.getvalue()


def focal_lengths(page: Any) -> list[str]:
    """Of all photos, as their cards have them."""
    words = page.locator("#side-by-side .card-words").all_inner_texts()
    found = [re.search(r", ([^,]*\bmm\b[^,\n]*)", text) for text in words]
    return [match[1] if match else "" for match in found]


def test_two_photos_of_one_camera_get_one_focal_length(open_page: Callable[..., Any]) -> None:
    page = open_page(webgl=False)
    drop(page, {"left.png": photo(4, 3), "right.png": photo(-3, -2)})
    answered(page)
    page.check("input[value=together]", force=True)
    apart = focal_lengths(page)
    assert len(apart) == 2
    assert apart[0] != apart[1]
    with page.expect_request("**/v1/refit") as asked:
        page.check("#shared")
    told = asked.value.post_data_json
    assert told["shared"] is True
    assert len(told["ids"]) == 2
    still(page)
    together = focal_lengths(page)
    assert together[0] == together[1]
    # What is known of the camera is known of both; angles are each photo's own.
    assert page.is_disabled("#roll")
    page.fill("#focal-number", "35")
    page.press("#focal-number", "Enter")
    still(page)
    assert focal_lengths(page) == ["35.0\u00a0mm\u00a0given"] * 2
    page.uncheck("#shared")
    still(page)
    assert page.is_enabled("#roll")


def test_side_by_side_draws_at_once_and_marks_doubts(open_page: Callable[..., Any]) -> None:
    page = open_page(webgl=False)
    lying = np.rot90(np.asarray(Image.open(io.BytesIO(photo(4, 3)))))
    content = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(lying)).save(content, "png")

    def doubt(route: Any) -> None:
        """The server doubts what lies on its side."""
        response = route.fetch()
        answer = response.json()
        (found,) = answer["results"]
        found["warnings"] = [MAY_LIE] if found["height"] > found["width"] else []
        route.fulfill(response=response, body=json.dumps(answer))

    page.route("**/v1/calibrate", doubt)
    drop(page, {"left.png": photo(4, 3), "lying.png": content.getvalue()})
    answered(page)
    page.check("input[value=together]", force=True)
    page.wait_for_function(
        """() => [...document.querySelectorAll(".card-overlay")].every(canvas => {
            if (!canvas.width) return false;
            const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
            return data.some(value => value > 0);
        })"""
    )
    cards = page.locator("#side-by-side li")
    classes = [cards.nth(i).get_attribute("class") for i in range(2)]
    assert ["doubtful" in words for words in classes] == [False, True]
    assert "±" in cards.nth(0).locator(".card-words").inner_text()
    assert "in doubt" in cards.nth(1).locator(".card-words").text_content()
    # With the button it stands, and is certain.
    page.check("input[value=photo]", force=True)
    page.click("#filmstrip >> text=lying.png")
    assert "turn it with the button" in page.inner_text("#doubts")
    with page.expect_response("**/v1/calibrate") as answer:
        page.click("#turn")
    still(page)
    found = answer.value.json()["results"][0]
    assert found["width"] > found["height"]
    assert "doubtful" not in page.locator("#filmstrip li").nth(1).get_attribute("class")


def test_broken_file_gets_a_sentence_and_the_others_go_on(
    open_page: Callable[..., Any], tmp_path: Path
) -> None:
    page = open_page(refusals=True, webgl=False)
    broken = {"notes.txt": b"no photo at all", "cut.jpg": TOWN.read_bytes()[:9000]}
    drop(page, {**broken, "good.png": photo(4, 3)})
    answered(page)
    items = dict(
        zip(
            page.locator(".thumb-name").all_inner_texts(),
            page.locator(".thumb-state").all_inner_texts(),
            strict=True,
        )
    )
    assert "This file is no image that can be read" in items["notes.txt"]
    assert "cut short" in items["cut.jpg"]
    assert re.fullmatch(r"\d+(\.\d)?° ± \d+(\.\d)?(\n?,? ?in doubt)?", items["good.png"])
    assert page.inner_text("#photo-name") == "good.png"
    assert page.inner_text("#progress") == "2 of 3 files gave no answer."
    page.click("text=cut.jpg")
    assert "cut short" in page.inner_text("#failure-words")
    # Nothing of the photo that was looked at before, and files of those that have answers.
    assert overlay(page)[..., 3].max() == 0
    assert page.is_disabled("#download-one")
    (kept,) = json_lines.read(downloaded(page, "[data-format=json]", tmp_path))
    assert kept.width == SIZE[0]
    # Half a picture is not looked at anew when it is turned.
    assert page.is_disabled("#turn")
    page.click("[aria-label='Remove cut.jpg']")
    assert page.locator(".thumb").count() == 2


def test_broken_file_wears_nothing_of_another_photo(open_page: Callable[..., Any]) -> None:
    page = open_page(refusals=True, viewport={"width": 700, "height": 520})
    drop(page, {"good.png": photo(4, 3), "cut.jpg": TOWN.read_bytes()[:9000]})
    answered(page)
    with_box = page.locator(".solid")
    assert with_box.is_visible()
    page.click("text=cut.jpg")
    still(page)
    assert not with_box.is_visible()
    assert overlay(page)[..., 3].max() == 0
    page.click("#filmstrip >> text=good.png")
    still(page)
    assert with_box.is_visible()


def plain(width: int) -> bytes:
    """A sky of that many pixels across: quickly looked at, as there are no lines."""
    content = io.BytesIO()
    Image.linear_gradient("L").resize((width, 64)).convert("RGB").save(content, "png")
    return content.getvalue()


def test_forty_photos_at_once_each_get_their_own_answer(open_page: Callable[..., Any]) -> None:
    page = open_page(webgl=False)
    answers: dict[str, dict[str, Any]] = {}

    def note(response: Any) -> None:
        if response.url.endswith("/v1/calibrate"):
            answers.update({record["name"]: record for record in response.json()["results"]})

    page.on("response", note)
    widths = {f"{number:02d}.png": 80 + number for number in range(40)}
    drop(page, {name: plain(width) for name, width in widths.items()})
    done = "() => document.querySelectorAll('#filmstrip .ready').length === 40"
    page.wait_for_function(done, timeout=120_000)
    still(page)
    page.remove_listener("response", note)
    assert {name: record["width"] for name, record in answers.items()} == widths
    # The page shows with each name what came for it.
    page.check("input[value=together]", force=True)
    names = page.locator(".card-name").all_inner_texts()
    words = page.locator(".card-words").all_inner_texts()
    assert names == list(widths)
    for name, text in zip(names, words, strict=True):
        shown = float(text.split("°")[0].removeprefix("Roll\u00a0").replace("−", "-"))
        assert shown == pytest.approx(answers[name]["roll_deg"], abs=0.6)


def test_files_are_read_back_as_they_were(open_page: Callable[..., Any], tmp_path: Path) -> None:
    page = open_page(webgl=False)
    with page.expect_response("**/v1/calibrate") as answer:
        drop(page, {"town.png": photo(4, 3)})
    record = answer.value.json()["results"][0]
    answered(page)

    (one,) = json_lines.read(downloaded(page, "[data-format=json]", tmp_path))
    assert one.to_dict()["gravity"] == record["gravity"]
    (same,) = csv_table.read(downloaded(page, "[data-format=csv]", tmp_path))
    assert same.to_dict()["covariance"] == record["covariance"]
    (camera,) = colmap.read(downloaded(page, "[data-format=colmap]", tmp_path)).values()
    assert camera.f.item() == pytest.approx(record["fy"])
    assert opencv.read(downloaded(page, "[data-format=opencv]", tmp_path)).f.item() == (
        pytest.approx(record["fy"])
    )
    assert "camera_matrix" in downloaded(page, "[data-format=ros]", tmp_path).read_text()
    scene = json.loads(downloaded(page, "[data-format=nerfstudio]", tmp_path).read_text())
    assert scene["w"] == SIZE[0]
    for kind in ("overlay", "upright", "rectified", "undistorted"):
        with Image.open(downloaded(page, f"[data-picture={kind}]", tmp_path)) as picture:
            assert min(picture.size) > 100


def test_files_of_all_photos_come_as_one(open_page: Callable[..., Any], tmp_path: Path) -> None:
    page = open_page(webgl=False)
    drop(page, {"left.png": photo(4, 3), "right.png": photo(-3, -2)})
    answered(page)
    page.check("#download-all")
    found = json_lines.read(downloaded(page, "[data-format=json]", tmp_path))
    assert [outcome.image for outcome in found] == ["left.png", "right.png"]
    with zipfile.ZipFile(downloaded(page, "[data-format=opencv]", tmp_path)) as archive:
        assert len(archive.namelist()) == 2


def test_photo_that_browsers_cannot_show_is_shown(open_page: Callable[..., Any]) -> None:
    page = open_page(webgl=False)
    content = io.BytesIO()
    Image.open(io.BytesIO(photo(4, 3))).save(content, "tiff")
    drop(page, {"scan.tiff": content.getvalue()})
    answered(page)
    page.wait_for_function("() => document.querySelector('#picture').naturalWidth === 300")
    assert "Roll" in numbers(page)


def test_forgotten_photo_is_looked_at_again(open_page: Callable[..., Any]) -> None:
    page = open_page(refusals=True, webgl=False)
    drop(page, {"town.png": photo(4, 3)})
    answered(page)
    refits = count()

    def forget_once(route: Any) -> None:
        # Not by times=1: the next request may come while Playwright takes the route back.
        if next(refits) == 0:
            route.fulfill(status=404, json={"error": "no photo of this id is kept"})
        else:
            route.continue_()

    page.route("**/v1/refit", forget_once)
    with page.expect_request("**/v1/calibrate"):
        page.fill("#focal-number", "30")
        page.press("#focal-number", "Enter")
    still(page)
    assert numbers(page)["as on full frame"] == "30.0 mm given"


def test_server_with_a_key_is_given_it(open_page: Callable[..., Any]) -> None:
    page = open_page(refusals=True, webgl=False)
    sent: list[str | None] = []

    def guard(route: Any) -> None:
        sent.append(route.request.headers.get("x-api-key"))
        if sent[-1] == "open sesame":
            route.continue_()
        else:
            route.fulfill(status=401, json={"error": "this needs the server's key"})

    page.route("**/v1/**", guard)
    drop(page, {"town.png": photo(4, 3)})
    page.fill("#key-text", "open sesame")
    page.press("#key-text", "Enter")
    answered(page)
    assert sent[0] is None
    assert set(sent[1:]) == {"open sesame"}
