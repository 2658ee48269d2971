"""Fits again without the network; fields, pictures and files of what was seen."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from PIL import Image

from geocalib import Calibration, Calibrator, DrawnLine, Ruler
from geocalib.formats import FORMATS, colmap, csv_table, json_lines
from geocalib.pipeline.predict import NetworkOutput
from geocalib.server.app import OFFERED
from geocalib.server.cache import PhotoCache
from geocalib.server.limits import RefusedError
from maker_notes import by_phone
from server.conftest import SIZE, TOWN
from server.test_calibrate import plain, send


@pytest.fixture(scope="module")
def record(client: TestClient, photo: bytes) -> dict[str, Any]:
    answer: dict[str, Any] = send(client, photo).json()["results"][0]
    return answer


class TestRefit:
    def test_the_answer_is_that_of_a_calibration(
        self, client: TestClient, photo: bytes, record: dict[str, Any]
    ) -> None:
        known = {"camera_model": "division", "roll_deg": 4, "pitch_deg": 2}
        answer = client.post("/v1/refit", json={"id": record["id"], **known})
        (again,) = answer.json()["results"]
        (fresh,) = send(client, photo, **known).json()["results"]
        assert plain(again) == plain(fresh)
        assert (again["id"], again["name"]) == (record["id"], record["name"])

    def test_the_network_does_not_run(
        self,
        client: TestClient,
        packaged: Calibrator,
        record: dict[str, Any],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(Calibrator, "predict", None)
        answer = client.post("/v1/refit", json={"id": record["id"]})
        assert plain(answer.json()["results"][0]) == plain(record)

    def test_what_is_given_is_held_against_the_file(self, client: TestClient) -> None:
        """At first sight, and later, when the server has but what it saw of the photo."""
        phone = by_phone(Image.open(TOWN).resize((320, 240)), 6, 8, 21)
        level = {"roll_deg": 0, "pitch_deg": 0, "vfov_deg": 20, "lines": "off"}
        (fresh,) = send(client, phone, **level).json()["results"]
        answer = client.post("/v1/refit", json={"id": fresh["id"], **level})
        (again,) = answer.json()["results"]
        assert plain(again) == plain(fresh)
        beside = [prior["against"] for prior in again["priors"] if prior["against"]]
        assert beside == ["EXIF 21 mm", "accelerometer in EXIF"]
        for against in beside:
            assert any(f"contradicts {against} (" in warning for warning in again["warnings"])
        assert not again["trusted_gravity"]

    def test_several_of_one_camera(
        self, client: TestClient, photo: bytes, record: dict[str, Any]
    ) -> None:
        ids = [record["id"], send(client, photo, lines="off").json()["results"][0]["id"]]
        answer = client.post("/v1/refit", json={"ids": ids, "shared": True, "lines": "off"})
        first, second = answer.json()["results"]
        assert [first["id"], second["id"]] == ids
        assert first["fy"] == second["fy"]

    def test_drawn_lines_are_followed_without_the_network(
        self,
        client: TestClient,
        packaged: Calibrator,
        photo: bytes,
        record: dict[str, Any],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        ends = {"x0": 40.0, "y0": 110.0, "x1": 44.0, "y1": 30.0}
        drawn = [{**ends, "kind": "up"}, {**ends, "kind": "parallel", "to": 1, "sigma_deg": 2.0}]
        fresh = send(client, photo, drawn=drawn).json()["results"][0]
        assert [check["kind"] for check in fresh["drawn"]] == ["up", "parallel"]
        assert fresh["roll_deg"] != record["roll_deg"]
        (own,) = packaged.fit(
            [packaged.predict([packaged.prepare(photo)])[0]],
            drawn=[DrawnLine(**drawn[0]), DrawnLine(**drawn[1])],
        )
        assert fresh["roll_deg"] == pytest.approx(own.to_dict()["roll_deg"], abs=1e-6)
        monkeypatch.setattr(Calibrator, "predict", None)
        answer = client.post("/v1/refit", json={"id": record["id"], "drawn": drawn})
        assert plain(answer.json()["results"][0]) == plain(fresh)

    @pytest.mark.parametrize(
        ("change", "sentence"),
        [
            ({"kind": "sideways"}, "drawn.0.kind: Input should be 'up', 'level', 'parallel'"),
            ({"kind": "parallel"}, "line 1 must be parallel to a line before it"),
            ({"x1": 40.0, "y1": 110.0}, "line 1 is shorter than a pixel"),
            ({"x1": 4000.0}, "outside the upright picture of 192x128 pixels"),
            ({"sigma_deg": 0}, "drawn.0.sigma_deg: Input should be greater than 0"),
            ({"sigma_deg": 60}, "line 1 must have a sigma above 0 and up to 45 degrees"),
            ({"length": 2}, "drawn.0.length: Extra inputs are not permitted"),
        ],
    )
    def test_lines_that_cannot_be(
        self, client: TestClient, record: dict[str, Any], change: dict[str, Any], sentence: str
    ) -> None:
        line = {"x0": 40.0, "y0": 110.0, "x1": 44.0, "y1": 30.0, "kind": "up"}
        body = {"id": record["id"], "drawn": [line | change]}
        answer = client.post("/v1/refit", json=body)
        assert answer.status_code == 422
        assert sentence in answer.json()["error"]

    def test_a_known_length_gives_files_their_scale(
        self, client: TestClient, photo: bytes, record: dict[str, Any]
    ) -> None:
        ruler = {"x0": 40.0, "y0": 120.0, "x1": 90.0, "y1": 122.0, "metres": 2.0}
        fresh = send(client, photo, ruler=ruler).json()["results"][0]
        height = fresh["ruler"]["camera_height"]
        assert height == Calibration.from_dict(record).measured(Ruler(**ruler)).ruler.camera_height
        body = {"id": record["id"], "ruler": ruler}
        (again,) = client.post("/v1/refit", json=body).json()["results"]
        assert plain(again) == plain(fresh)
        file = client.post("/v1/export", json={"records": [again], "format": "blender"})
        assert f"HEIGHT = {height!r}  # metres above the ground: by the ruler" in file.text

    @pytest.mark.parametrize(
        ("change", "sentence"),
        [
            ({"y0": 1.0}, "ruler ends at (40, 1), above the horizon: no ground is there"),
            ({"x1": 40.0, "y1": 120.0}, "ruler is shorter than a pixel"),
            ({"metres": 0}, "ruler.metres: Input should be greater than 0"),
        ],
    )
    def test_rulers_that_cannot_be(
        self, client: TestClient, record: dict[str, Any], change: dict[str, Any], sentence: str
    ) -> None:
        ruler = {"x0": 40.0, "y0": 120.0, "x1": 90.0, "y1": 122.0, "metres": 2.0}
        answer = client.post("/v1/refit", json={"id": record["id"], "ruler": ruler | change})
        assert answer.status_code == 422
        assert sentence in answer.json()["error"]

    def test_lines_are_drawn_on_one_photo(
        self, client: TestClient, photo: bytes, record: dict[str, Any]
    ) -> None:
        line = {"x0": 40.0, "y0": 110.0, "x1": 44.0, "y1": 30.0, "kind": "up"}
        ids = [record["id"], send(client, photo, lines="off").json()["results"][0]["id"]]
        answer = client.post("/v1/refit", json={"ids": ids, "drawn": [line]})
        assert answer.status_code == 422
        assert "lines are drawn on one photograph" in answer.json()["error"]

    def test_fields_that_the_client_holds(self, client: TestClient, record: dict[str, Any]) -> None:
        whole = client.get(f"/v1/fields/{record['id']}?form=whole").json()
        sent = client.post("/v1/refit", json={"fields": whole, "lines": "off"})
        kept = client.post("/v1/refit", json={"id": record["id"], "lines": "off"})
        (mine,), (theirs,) = sent.json()["results"], kept.json()["results"]
        assert mine["id"] is None
        for key in ("fy", "roll_deg", "pitch_deg"):
            assert mine[key] == pytest.approx(theirs[key], rel=2e-3)

    @pytest.mark.parametrize(
        "change",
        [{"up": "AAAA"}, {"rows": 1}, {"dtype": "int8"}, {"view": [0, 0, 0, 1]}, {"width": 0}],
    )
    def test_fields_that_cannot_be(
        self, client: TestClient, record: dict[str, Any], change: dict[str, Any]
    ) -> None:
        whole = client.get(f"/v1/fields/{record['id']}?form=whole").json()
        answer = client.post("/v1/refit", json={"fields": whole | change})
        assert answer.status_code == 422
        assert next(iter(change)) in answer.json()["error"]

    @pytest.mark.parametrize("body", [{}, {"ids": []}, {"id": "a", "ids": ["b"]}])
    def test_of_what(self, client: TestClient, body: dict[str, Any]) -> None:
        answer = client.post("/v1/refit", json=body)
        assert answer.status_code == 422
        assert "give one of" in answer.json()["error"]

    def test_what_is_gone(self, client: TestClient) -> None:
        for answer in (
            client.post("/v1/refit", json={"id": "unknown"}),
            client.get("/v1/fields/unknown"),
        ):
            assert answer.status_code == 404
            assert "calibrate it again" in answer.json()["error"]


class TestSights:
    def test_bounded_in_number_and_in_time(self, packaged: Calibrator, photo: bytes) -> None:
        now = 0.0
        sights = PhotoCache(2, 60, clock=lambda: now)
        (sight,) = packaged.predict([packaged.prepare(photo)])
        assert isinstance(sight, NetworkOutput)
        (outcome,) = packaged.fit([sight], lines="off")
        first, second = (sights.keep(sight, outcome) for _ in range(2))
        sights.find(first)
        third = sights.keep(sight, outcome)
        assert len(sights) == 2
        with pytest.raises(RefusedError, match="calibrate it again"):
            sights.find(second)
        now = 59.0
        sights.find(third)
        now = 61.0
        assert len(sights) == 1
        now = 200.0
        assert len(sights) == 0


def test_fields_to_draw(client: TestClient, record: dict[str, Any]) -> None:
    client.post("/v1/refit", json={"id": record["id"]})
    client.post("/v1/refit", json={"id": record["id"], "lines": "off"})
    grid = client.get(f"/v1/fields/{record['id']}").json()
    shape = (grid["rows"], grid["columns"])
    assert (grid["width"], grid["height"]) == SIZE
    for name in ("up_x", "up_y", "latitude_deg", "up_confidence", "latitude_confidence"):
        assert np.shape(grid[name]) == shape
    assert np.hypot(grid["up_x"], grid["up_y"]) == pytest.approx(np.ones(shape), abs=1e-3)
    # Above the horizon latitudes are positive, and the camera stands upright.
    assert np.mean(grid["latitude_deg"][0]) > np.mean(grid["latitude_deg"][-1])
    assert np.mean(grid["up_y"]) < -0.8
    # Square cells from the top; at both sides a little is cut off for an input of whole cells.
    step = grid["y"][1] - grid["y"][0]
    assert grid["y"][0] == pytest.approx(step / 2, abs=0.01)
    np.testing.assert_allclose(np.diff(grid["x"]), step, atol=0.01)
    assert 0 <= grid["x"][0] - step / 2 < 0.05 * grid["width"]
    used = record["lines"]
    kinds = [segment["kind"] for segment in grid["segments"]]
    assert kinds.count("vertical") == used["vertical"]
    headings = [segment["heading"] for segment in grid["segments"] if segment["kind"] == "level"]
    assert [headings.count(1 + i) for i in range(len(used["level"]))] == used["level"]
    assert kinds.count("level") == len(headings)
    assert kinds.count("unused") == used["unused"]


class TestRender:
    @pytest.mark.parametrize("kind", ["overlay", "upright", "rectified", "undistorted"])
    def test_pictures(
        self, client: TestClient, photo: bytes, record: dict[str, Any], kind: str
    ) -> None:
        asked = {"record": record, "kind": kind, "format": "png"}
        answer = client.post(
            "/v1/render", files={"image": photo}, data={"request": json.dumps(asked)}
        )
        assert answer.headers["content-type"] == "image/png"
        picture = Image.open(io.BytesIO(answer.content))
        assert picture.format == "PNG"
        assert picture.size[0] >= SIZE[0]

    def test_by_id_with_what_is_known(
        self, client: TestClient, photo: bytes, record: dict[str, Any]
    ) -> None:
        level = {"roll_deg": 0, "pitch_deg": 0, "lines": "off", "kind": "upright"}
        request = json.dumps({"id": record["id"], **level})
        answer = client.post("/v1/render", files={"image": photo}, data={"request": request})
        assert Image.open(io.BytesIO(answer.content)).size == SIZE

    def test_the_wrong_photo(
        self, client: TestClient, taller: bytes, record: dict[str, Any]
    ) -> None:
        for data, request in (
            (taller, {"record": record, "kind": "upright"}),
            (b"none", {"record": record}),
            (taller, {"record": {"schema": "geocalib/4"}}),
            (taller, {"record": record, "kind": "sideways"}),
            (taller, {}),
        ):
            answer = client.post(
                "/v1/render", files={"image": data}, data={"request": json.dumps(request)}
            )
            assert answer.status_code == 422
            assert answer.json()["error"]


class TestExport:
    @pytest.mark.parametrize("format", OFFERED)
    def test_files(self, client: TestClient, record: dict[str, Any], format: str) -> None:
        body = {"records": [record, {**record, "image": "../b.jpg"}], "format": format}
        answer = client.post("/v1/export", json=body)
        assert answer.status_code == 200
        assert "attachment" in answer.headers["content-disposition"]
        if FORMATS[format].each is not None:
            with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
                suffix = FORMATS[format].file
                assert archive.namelist() == [f"0.jpg{suffix}", f"b.jpg{suffix}"]

    def test_they_are_read_back(
        self, client: TestClient, record: dict[str, Any], tmp_path: Path
    ) -> None:
        for format, read in (("json", json_lines.read), ("csv", csv_table.read)):
            body = {"records": [record], "format": format}
            file = tmp_path / format
            file.write_bytes(client.post("/v1/export", json=body).content)
            assert plain(read(file)[0].to_dict()) == plain(record)
        (tmp_path / "cameras.txt").write_bytes(
            client.post("/v1/export", json={"records": [record], "format": "colmap"}).content
        )
        assert colmap.read(tmp_path)[1].f.item() == record["fy"]

    def test_no_path_of_the_server_is_told(
        self, client: TestClient, record: dict[str, Any]
    ) -> None:
        body = {"records": [record], "format": "nerfstudio"}
        frames = client.post("/v1/export", json=body).json()["frames"]
        assert frames[0]["file_path"] == "0.jpg"

    def test_what_cannot_be_written(self, client: TestClient, record: dict[str, Any]) -> None:
        broken = {**record, "fy": "long"}
        for body in (
            {"records": [broken], "format": "csv"},
            {"records": [record], "format": "pdf"},
            {"records": [], "format": "csv"},
        ):
            answer = client.post("/v1/export", json=body)
            assert answer.status_code == 422
            assert answer.json()["error"]
