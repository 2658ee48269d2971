"""``POST /v1/calibrate`` answers as ``Calibrator`` does."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from fastapi.testclient import TestClient

from geocalib import Calibrator, Prior


def send(client: TestClient, *photos: bytes, **options: Any) -> Any:
    files = [("image", (f"{i}.jpg", photo)) for i, photo in enumerate(photos)]
    return client.post("/v1/calibrate", files=files, data={"request": json.dumps(options)})


def plain(record: dict[str, Any]) -> dict[str, Any]:
    """Without what the server adds."""
    ours = ("id", "name", "image")
    return {key: value for key, value in record.items() if key not in ours}


def test_answers_are_those_of_the_calibrator(
    client: TestClient, packaged: Calibrator, photo: bytes
) -> None:
    told = {"value": 60, "sigma": 2}
    answer = send(client, photo, camera_model="simple_radial", vfov_deg=told, prior="none")
    assert answer.status_code == 200
    (record,) = answer.json()["results"]
    mine = packaged.calibrate(photo, "simple_radial", vfov_deg=Prior(60.0, 2.0))
    assert plain(record) == plain(mine.to_dict())
    assert record["name"] == record["image"] == "0.jpg"
    assert len(record["id"]) > 20


def test_json_is_as_good_as_a_form(client: TestClient, photo: bytes) -> None:
    data = base64.b64encode(photo).decode()
    body = {"images": [{"name": "a.jpg", "data": data}], "lines": "off", "roll_deg": 0}
    answer = client.post("/v1/calibrate", json={**body, "pitch_deg": 3})
    (record,) = answer.json()["results"]
    (other,) = send(client, photo, lines="off", roll_deg=0, pitch_deg=3).json()["results"]
    assert plain(record) == plain(other)
    assert record["pitch_deg"] == pytest.approx(3)
    assert record["lines"] is None


def test_lines_alone(client: TestClient, packaged: Calibrator, photo: bytes) -> None:
    (record,) = send(client, photo, lines="only").json()["results"]
    (mine,) = packaged.calibrate([photo], lines="only")
    assert plain(record) == plain(mine.to_dict())


def test_a_broken_image_leaves_the_others_alone(client: TestClient, photo: bytes) -> None:
    answer = send(client, photo, b"no image", photo[:400], photo, lines="off")
    assert answer.status_code == 200
    records = answer.json()["results"]
    assert [record["error"] is None for record in records] == [True, False, False, True]
    assert "convert it" in records[1]["error"]
    assert "cut short" in records[2]["error"]
    assert [record["name"] for record in records] == ["0.jpg", "1.jpg", "2.jpg", "3.jpg"]
    assert records[1]["id"] is None
    assert plain(records[0]) == plain(records[3])


def test_a_broken_image_alone_is_an_error(client: TestClient) -> None:
    answer = send(client, b"no image")
    assert answer.status_code == 422
    assert answer.json()["error"] == answer.json()["results"][0]["error"]


def test_one_camera_took_them(client: TestClient, photo: bytes, taller: bytes) -> None:
    answer = send(client, photo, photo, shared=True, lines="off")
    first, second = answer.json()["results"]
    assert first["fy"] == second["fy"]
    (alone,) = send(client, photo, lines="off").json()["results"]
    assert first["sigma"]["focal"] < alone["sigma"]["focal"]
    refused = send(client, photo, taller, shared=True)
    assert refused.status_code == 422
    assert "of the same camera" in refused.json()["error"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"camera_model": "shoebox"}, "camera_model"),
        ({"focal": -3}, "focal"),
        ({"focal": 300, "vfov_deg": 50}, "give one of them"),
        ({"roll_deg": 3}, "pitch"),
        ({"vfov_deg": {"value": 50}}, "sigma"),
        ({"vfov_deg": {"value": 50, "sigma": 0}}, "sigma"),
        ({"gravity": [0, 1]}, "gravity"),
        ({"camera_model": "pinhole", "distortion": [0.1]}, "distortion"),
        ({"distorsion": [0.1]}, "distorsion"),
        ({"lines": "only", "focal": 300}, "asks lines alone"),
        ({"path": "/etc/passwd"}, "path"),
    ],
)
def test_what_cannot_be_asked(
    client: TestClient, photo: bytes, options: dict[str, Any], words: str
) -> None:
    answer = send(client, photo, **options)
    assert answer.status_code == 422
    assert words in answer.json()["error"]


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"focal": NaN}', '{"focal": 1e999}'])
def test_malformed_requests(client: TestClient, photo: bytes, text: str) -> None:
    answer = client.post("/v1/calibrate", files={"image": photo}, data={"request": text})
    assert answer.status_code == 422
    assert answer.json()["error"]


def test_content_types_are_strict(client: TestClient, photo: bytes) -> None:
    for kind in ("image/jpeg", "text/plain", "application/x-www-form-urlencoded", "json", ""):
        answer = client.post("/v1/calibrate", content=photo, headers={"content-type": kind})
        assert answer.status_code == 415
    form = {"content-type": "multipart/form-data"}
    answer = client.post("/v1/calibrate", content=photo, headers=form)
    assert answer.status_code == 422
    assert "boundary" in answer.json()["error"]


def test_parts_have_names(client: TestClient, photo: bytes) -> None:
    assert "photo" in client.post("/v1/calibrate", files={"photo": photo}).json()["error"]
    answer = client.post("/v1/calibrate", files={"image": photo}, data={"url": "http://x/y.jpg"})
    assert answer.status_code == 422
    assert "url" in answer.json()["error"]
    assert "no image" in client.post("/v1/calibrate", json={"images": []}).json()["error"]
