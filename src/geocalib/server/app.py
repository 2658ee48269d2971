"""The application: addresses to what is done there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from fastapi.staticfiles import StaticFiles

from geocalib.cameras import get_model
from geocalib.errors import GeoCalibError
from geocalib.formats import FORMATS
from geocalib.pipeline.calibrator import Calibrator
from geocalib.pipeline.request import CameraModel
from geocalib.result.calibration import Failure
from geocalib.result.schema import SCHEMA
from geocalib.server.limits import Limits, RefusedError
from geocalib.server.requests import RefitRequest, checked
from geocalib.server.service import Answered, Service
from geocalib.server.uploads import JSON, Body, read_images

PAGE = Path(__file__).parent / "page"
"""What ``/`` shows."""


def create_app(calibrator: Calibrator, limits: Limits | None = None) -> FastAPI:
    """A server with one calibrator."""
    limits = limits or Limits()
    service = Service(calibrator, limits)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        service.stop()

    app = FastAPI(title="GeoCalib", lifespan=lifespan)
    app.state.service = service

    @app.exception_handler(RefusedError)
    async def refuse(_: Request, error: RefusedError) -> Response:
        return JSONResponse({"error": error.sentence}, error.status, error.headers)

    @app.exception_handler(GeoCalibError)
    async def explain(_: Request, error: GeoCalibError) -> Response:
        return JSONResponse({"error": str(error)}, 422)

    @app.post("/v1/calibrate")
    async def calibrate(request: Request) -> Response:
        async with Body(request, limits, service.budget) as body:
            images, options = await read_images(body, limits)
            return _answer(await service.calibrate(images, options))

    @app.post("/v1/refit")
    async def refit(request: Request) -> Response:
        async with Body(request, limits, service.budget) as body:
            if body.kind != JSON:
                raise RefusedError(415, f"send {JSON}")
            asked = checked(RefitRequest, await body.read())
        ids = asked.ids or (() if asked.id is None else (asked.id,))
        sights = [service.sights.find(name) for name in ids]
        outcomes = await service.fit(sights, asked.options)
        return _answer(
            [
                Answered(sight.file.path or "", outcome, name)
                for sight, outcome, name in zip(sights, outcomes, ids, strict=True)
            ]
        )

    @app.get("/v1/health")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/v1/models")
    async def models() -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "weights": calibrator.card.name,
            "trained": calibrator.card.trained,
            "camera_models": [
                {
                    "name": name.value,
                    "parameters": list(get_model(name.value).parameters),
                    "wide": name.wide,
                }
                for name in CameraModel
            ],
            "formats": list(FORMATS),
        }

    if (PAGE / "index.html").exists():
        app.mount("/", StaticFiles(directory=PAGE, html=True), name="page")
    return app


def _answer(answers: Sequence[Answered]) -> Response:
    content: dict[str, Any] = {"results": [answer.record for answer in answers]}
    failed = [a.outcome for a in answers if isinstance(a.outcome, Failure)]
    if len(failed) < len(answers):
        return JSONResponse(content)
    return JSONResponse({"error": failed[0].error, **content}, 422)
