"""What is asked for beyond a limit is refused with a status and a sentence."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, cast

import httpx2
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from geocalib import Calibrator
from geocalib.pipeline.parallel.workers import WorkerLostError
from geocalib.server import uploads
from geocalib.server.app import create_app
from geocalib.server.limits import ServerLimits
from server.conftest import SIZE
from server.stubs import Held

NO_LINES = {"request": '{"lines": "off"}'}
"""For those who are in a hurry."""

LIMITS = ServerLimits(megabytes=0.05, megapixels=0.03, images=2, seconds=60)


@pytest.fixture(scope="module")
def strict(packaged: Calibrator) -> Iterator[TestClient]:
    with TestClient(create_app(packaged, LIMITS)) as client:
        yield client


@pytest.fixture
def held(packaged: Calibrator) -> Held:
    return Held(packaged)


@asynccontextmanager
async def served(app: FastAPI) -> AsyncIterator[httpx2.AsyncClient]:
    """A client that can do several things at once."""
    transport = httpx2.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=transport, base_url="http://here") as client,
    ):
        yield client


def run(work: Coroutine[Any, Any, None]) -> None:
    """To its end, in a thread: the one of the tests may have a loop running, that of a browser."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, work).result()


def app_of(held: Held, limits: ServerLimits, key: str | None = None) -> FastAPI:
    return create_app(cast(Calibrator, held), limits, key)


def sentence(answer: Any, status: int) -> str:
    assert answer.status_code == status, answer.text
    words: str = answer.json()["error"]
    return words


class TestSize:
    def test_bytes(self, strict: TestClient) -> None:
        answer = strict.post("/v1/calibrate", files={"image": bytes(60_000)})
        assert "more than 0.05 MB" in sentence(answer, 413)

    def test_bytes_that_nobody_announced(self, strict: TestClient) -> None:
        def body() -> Iterator[bytes]:
            yield from [bytes(10_000)] * 9

        answer = strict.post(
            "/v1/refit", content=body(), headers={"content-type": "application/json"}
        )
        assert "more than 0.05 MB" in sentence(answer, 413)

    def test_pixels(self, packaged: Calibrator, photo: bytes, taller: bytes) -> None:
        limits = replace(LIMITS, megapixels=0.022)
        with TestClient(create_app(packaged, limits)) as client:
            answer = client.post("/v1/calibrate", files={"image": photo})
            assert "192x128 pixels, more than 0.022 megapixels" in sentence(answer, 422)
            answer = client.post(
                "/v1/calibrate", files=[("image", photo), ("image", taller)], data=NO_LINES
            )
            first, second = answer.json()["results"]
            assert "megapixels" in first["error"]
            assert second["error"] is None

    def test_images(self, strict: TestClient, photo: bytes) -> None:
        answer = strict.post("/v1/calibrate", files=[("image", photo)] * 3)
        assert "more than 2 images" in sentence(answer, 422)
        answer = strict.post("/v1/calibrate", files=[("image", b"x")] * 9)
        assert "Too many files" in sentence(answer, 422)
        answer = strict.post("/v1/refit", json={"ids": ["a"] * 3})
        assert "more than 2 ids" in sentence(answer, 422)


def test_all_uploads_together(packaged: Calibrator, photo: bytes) -> None:
    limits = replace(LIMITS, upload_megabytes=0.001)
    with TestClient(create_app(packaged, limits)) as client:
        for _ in range(2):
            answer = client.post("/v1/calibrate", files={"image": photo})
            assert "busy" in sentence(answer, 429)
            assert answer.headers["retry-after"] == "1"
        # What was refused takes no room.
        assert sentence(client.post("/v1/refit", json={"id": "a"}), 404)


async def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not true():
        assert time.monotonic() < end
        await asyncio.sleep(0.01)


class TestQueue:
    def test_one_more_than_can_wait(self, held: Held, photo: bytes) -> None:
        async def main() -> None:
            limits = replace(LIMITS, queue=2, megabytes=1)
            async with served(app_of(held, limits)) as client:
                files = [("image", ("a.jpg", photo))]
                waiting = [
                    asyncio.create_task(client.post("/v1/calibrate", files=files, data=NO_LINES))
                    for _ in "ab"
                ]
                await until(held.looking.is_set)
                await asyncio.sleep(0.05)
                refused = await client.post("/v1/calibrate", files=files, data=NO_LINES)
                assert "busy" in sentence(refused, 429)
                assert int(refused.headers["retry-after"]) >= 1
                assert "geocalib_waiting_images 2.0" in (await client.get("/metrics")).text
                held.free.set()
                for answer in await asyncio.gather(*waiting):
                    assert answer.status_code == 200
                assert (
                    await client.post("/v1/calibrate", files=files, data=NO_LINES)
                ).status_code == 200

        run(main())

    def test_clients_share_batches(self, held: Held, photo: bytes, taller: bytes) -> None:
        """And get their own answers."""

        async def main() -> None:
            async with served(app_of(held, replace(LIMITS, megabytes=1))) as client:
                photos = [photo, taller, b"none", photo, taller, photo]
                asked = [
                    asyncio.create_task(
                        client.post(
                            "/v1/calibrate", files=[("image", (f"{i}.jpg", data))], data=NO_LINES
                        )
                    )
                    for i, data in enumerate(photos)
                ]
                await until(held.looking.is_set)
                await asyncio.sleep(0.3)
                held.free.set()
                answers = await asyncio.gather(*asked)
            for i, (data, answer) in enumerate(zip(photos, answers, strict=True)):
                (record,) = answer.json()["results"]
                assert record["name"] == f"{i}.jpg"
                width = {photo: SIZE[0], taller: 128}.get(data)
                assert record["width"] == width
            assert sum(held.batches) == len(photos)
            assert len(held.batches) < len(photos)

        run(main())

    @pytest.mark.parametrize("error", [RuntimeError, WorkerLostError])
    def test_one_does_not_spoil_the_others(
        self, held: Held, photo: bytes, taller: bytes, error: type[Exception]
    ) -> None:
        held.hated[128, 160] = error

        async def main() -> None:
            async with served(app_of(held, replace(LIMITS, megabytes=1))) as client:
                asked = [
                    asyncio.create_task(
                        client.post("/v1/calibrate", files=[("image", data)], data=NO_LINES)
                    )
                    for data in (photo, taller, photo)
                ]
                await asyncio.sleep(0.3)
                held.free.set()
                first, bad, last = await asyncio.gather(*asked)
            assert first.status_code == last.status_code == 200
            assert "in the server's log" in sentence(bad, 422)

        run(main())

    def test_too_slow(self, held: Held, photo: bytes) -> None:
        async def main() -> None:
            limits = replace(LIMITS, seconds=0.2, queue=1)
            async with served(app_of(held, limits)) as client:
                answer = await client.post("/v1/calibrate", files=[("image", photo)])
                assert "no answer within 0.2 s" in sentence(answer, 504)
                assert "geocalib_waiting_images 0.0" in (await client.get("/metrics")).text
                held.free.set()

        run(main())

    def test_a_stop_finishes_what_was_accepted(self, held: Held, photo: bytes) -> None:
        async def main() -> None:
            app = app_of(held, replace(LIMITS, megabytes=1))
            async with served(app) as client:
                files = [("image", photo)] * 2
                asked = asyncio.create_task(
                    client.post("/v1/calibrate", files=files, data=NO_LINES)
                )
                await until(held.looking.is_set)
                held.free.set()
                answer = await asked
            assert [record["error"] for record in answer.json()["results"]] == [None, None]

        run(main())


def test_slow_uploads(packaged: Calibrator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "PATIENCE_SECONDS", 0.1)

    async def slowly() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b"{"
            await asyncio.sleep(0.05)

    async def main() -> None:
        async with served(create_app(packaged, replace(LIMITS, seconds=0.2))) as client:
            began = time.monotonic()
            kind = {"content-type": "application/json"}
            answer = await client.post("/v1/refit", content=slowly(), headers=kind)
            assert "the upload took longer than 0.2 s" in sentence(answer, 408)
            assert time.monotonic() - began < 3

    run(main())


class TestGate:
    def test_the_key(self, packaged: Calibrator) -> None:
        with TestClient(create_app(packaged, LIMITS, "secret")) as client:
            for path in ("/v1/models", "/metrics", "/openapi.json"):
                assert "X-API-Key" in sentence(client.get(path), 401)
                assert sentence(client.get(path, headers={"x-api-key": "secreT"}), 401)
                assert client.get(path, headers={"x-api-key": "secret"}).status_code == 200
                bearer = {"authorization": "Bearer secret"}
                assert client.get(path, headers=bearer).status_code == 200
            assert client.get("/v1/health").json() == {"status": "ok"}
            assert client.get("/v1/ready").json() == {"status": "ready"}
            assert client.get("/").status_code == 200

    def test_headers(self, client: TestClient) -> None:
        answer = client.get("/", headers={"origin": "http://elsewhere"})
        assert "default-src '" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in answer.headers

    @pytest.fixture
    def records(self) -> Iterator[list[logging.LogRecord]]:
        """All that is logged, however unimportant."""
        records: list[logging.LogRecord] = []
        root, listener = logging.getLogger(), logging.Handler()
        listener.emit = records.append  # type: ignore[method-assign]
        level = root.level
        root.addHandler(listener)
        root.setLevel(logging.DEBUG)
        yield records
        root.setLevel(level)
        root.removeHandler(listener)

    def test_logs_hold_nothing_of_a_user(
        self, client: TestClient, photo: bytes, records: list[logging.LogRecord]
    ) -> None:
        for data in (photo, b"no image"):
            files = {"image": ("holiday-in-rome.jpg", data)}
            answer = client.post("/v1/calibrate", files=files, data=NO_LINES)
        name = send_id(client, photo)
        client.get(f"/v1/fields/{name}")
        logged = "\n".join(r.getMessage() for r in records if r.name != "httpx2")
        assert answer.json()["results"][0]["name"] == "holiday-in-rome.jpg"
        assert "POST /v1/calibrate 200" in logged
        assert "GET /v1/fields/{id} 200" in logged
        assert "rome" not in logged
        assert name not in logged

    def test_metrics(self, client: TestClient) -> None:
        client.get("/v1/health")
        client.get("/v1/nothing")
        text = client.get("/metrics").text
        assert 'geocalib_requests_total{route="/v1/health",status="200"}' in text
        assert 'geocalib_requests_total{route="page",status="404"}' in text
        assert "/v1/nothing" not in text


def send_id(client: TestClient, photo: bytes) -> str:
    answer = client.post("/v1/calibrate", files={"image": photo}, data=NO_LINES)
    name: str = answer.json()["results"][0]["id"]
    return name


def test_what_there_is(client: TestClient) -> None:
    told = client.get("/v1/models").json()
    assert {"name": "pinhole", "parameters": [], "wide": False} in told["camera_models"]
    assert "colmap" in told["formats"]
    assert told["limits"]["images"] == 64
    assert told["trained"] is True


def test_the_interface_is_described_with_examples(client: TestClient) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    for path in ("/v1/calibrate", "/v1/refit", "/v1/render", "/v1/export"):
        body = paths[path]["post"]["requestBody"]["content"]
        assert "example" in str(body)
        assert "429" in paths[path]["post"]["responses"]
    assert {"/v1/health", "/v1/ready", "/v1/models", "/v1/fields/{id}"} <= paths.keys()


def test_no_address_fetches_scripts_from_elsewhere(client: TestClient) -> None:
    assert client.get("/docs").status_code == 404
    assert client.get("/redoc").status_code == 404
