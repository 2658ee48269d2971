"""The application: addresses to what is done there."""

from __future__ import annotations

import asyncio
import zipfile
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Any, Literal, TypeVar

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from geocalib.cameras import get_model
from geocalib.errors import FormatError, GeoCalibError
from geocalib.formats import FORMATS
from geocalib.formats.outputs import calibrated, image_names
from geocalib.pipeline.calibrator import Calibrator
from geocalib.pipeline.options import CameraModelName
from geocalib.result.calibration import Failure, Outcome, read_outcome
from geocalib.result.schema import SCHEMA
from geocalib.server import openapi
from geocalib.server.gate import Gate
from geocalib.server.grids import grid_of, whole_of
from geocalib.server.limits import RefusedError, ServerLimits, too_slow
from geocalib.server.requests import ExportRequest, RefitRequest, RenderRequest
from geocalib.server.service import Answered, Service
from geocalib.server.uploads import RequestBody, read_images

OFFERED = [name for name, kind in FORMATS.items() if kind.together or kind.each]
"""Formats that need no more than the records: others need the photos as well."""


def exported(outcomes: Sequence[Outcome], format: str) -> tuple[str, bytes]:
    """The name and the content of a file; of several, that of an archive."""
    if format not in OFFERED:
        raise FormatError(
            f"{format} needs the photos themselves: write it with geocalib calibrate; here there "
            f"are {', '.join(OFFERED)}"
        )
    kind = FORMATS[format]
    if kind.together is not None:
        return kind.file, _encoded(kind.together(outcomes, kind.frame))
    assert kind.each is not None
    found = calibrated(outcomes, kind.frame)
    texts: dict[str, bytes] = {}
    for number, (calibration, image) in enumerate(zip(found, image_names(found), strict=True), 1):
        name = f"{PurePosixPath(image).name or 'image'}{kind.file}"
        texts[f"{number}_{name}" if name in texts else name] = _encoded(
            kind.each(calibration, kind.frame)
        )
    if len(texts) == 1:
        return f"camera{kind.file}", next(iter(texts.values()))
    archive = BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in texts.items():
            file.writestr(name, text)
    return "cameras.zip", archive.getvalue()


def _encoded(content: str | bytes) -> bytes:
    # Names need not be valid text.
    return content if isinstance(content, bytes) else content.encode("utf-8", "replace")


Result = TypeVar("Result")


PAGE = Path(__file__).parent / "page"
"""The folder of the page at ``/``."""


def create_app(
    calibrator: Calibrator,
    limits: ServerLimits | None = None,
    key: str | None = None,
    workers: int = 0,
) -> FastAPI:
    """A server with one calibrator. key: what clients must send to be answered, if anything.
    workers: processes that look at photos, each with a core of its own; 0: this one does."""
    limits = limits or ServerLimits()
    service = Service(calibrator, limits, workers)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        service.stop()

    # The usual pages about an interface fetch their scripts from elsewhere.
    app = FastAPI(title="GeoCalib", lifespan=lifespan, docs_url=None, redoc_url=None)
    app.add_middleware(Gate, metrics=service.metrics, key=key)
    _explain_errors(app)

    @app.post("/v1/calibrate", openapi_extra=openapi.calibrate())
    async def calibrate(request: Request) -> Response:
        """Find the camera of each image. In order; one that fails has an error in its record."""
        async with RequestBody(request, limits, service.budget) as body:
            images, options = await read_images(body, limits)
            work = service.calibrate(images, options)
            return _answer(await cancel_on_disconnect(request, work, limits.seconds))

    @app.post("/v1/refit", openapi_extra=openapi.refit())
    async def refit(request: Request) -> Response:
        """The same photos with other things known: the fit alone, without the network."""
        async with RequestBody(request, limits, service.budget) as body:
            wanted = await body.json(RefitRequest)
            return _answer(
                await cancel_on_disconnect(request, service.refit(wanted), limits.seconds)
            )

    @app.post("/v1/render", openapi_extra=openapi.render())
    async def render(request: Request) -> Response:
        """A photo with its answer drawn on it, or level, rectified, undistorted."""
        async with RequestBody(request, limits, service.budget) as body:
            images, wanted = await body.form(RenderRequest)
            if len(images) != 1:
                raise RefusedError(422, f"one image is rendered at a time, got {len(images)}")
            picture = await cancel_on_disconnect(
                request, service.render(images[0], wanted), limits.seconds
            )
        return Response(picture, media_type=f"image/{wanted.format}")

    @app.post("/v1/export", openapi_extra=openapi.export())
    async def export(request: Request) -> Response:
        """Records as a file of another program; several files come as an archive."""
        async with RequestBody(request, limits, service.budget) as body:
            wanted = await body.json(ExportRequest)
        if len(wanted.records) > limits.images:
            raise RefusedError(422, f"more than {limits.images} records; send fewer at a time")
        outcomes = [
            read_outcome(record, f"records[{index}]") for index, record in enumerate(wanted.records)
        ]
        name, content = exported(outcomes, wanted.format)
        disposition = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(content, media_type="application/octet-stream", headers=disposition)

    @app.get("/v1/fields/{id}")
    async def fields(id: str, form: Literal["grid", "whole"] = "grid") -> dict[str, Any]:
        """What the network saw in a photo: a coarse grid with the lines, to draw; or all of it, as
        a refit takes it."""
        kept = service.outputs.find(id)
        return whole_of(kept.output) if form == "whole" else grid_of(kept.output, kept.traces)

    @app.get("/v1/health")
    async def health() -> dict[str, str]:
        """Say whether the server is alive."""
        return {"status": "ok"}

    @app.get("/v1/ready")
    async def ready() -> dict[str, str]:
        """Say whether the server takes requests."""
        if not service.ready:
            raise RefusedError(503, "the server is about to stop; ask another one")
        return {"status": "ready"}

    @app.get("/v1/models")
    async def models() -> dict[str, Any]:
        """Return what this server offers: camera models, formats and limits."""
        return {
            "schema": SCHEMA,
            "weights": calibrator.card.name,
            "trained": calibrator.card.trained,
            "camera_models": [
                {
                    "name": name.value,
                    "parameters": list(get_model(name.value).parameters) if name.named else [],
                    "wide": name.wide,
                }
                for name in CameraModelName
            ],
            "formats": OFFERED,
            "limits": asdict(limits),
        }

    @app.get("/metrics", include_in_schema=False)
    async def metrics() -> Response:
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4")

    app.mount("/", StaticFiles(directory=PAGE, html=True), name="page")
    return app


def _answer(answers: Sequence[Answered]) -> Response:
    """The response for some images: an error if none has an answer."""
    content: dict[str, Any] = {"results": [answer.record for answer in answers]}
    failed = [a.outcome for a in answers if isinstance(a.outcome, Failure)]
    if len(failed) < len(answers):
        return JSONResponse(content)
    return JSONResponse({"error": failed[0].error, **content}, 422)


def _explain_errors(app: FastAPI) -> None:
    """Everything that is refused is refused with one sentence."""

    @app.exception_handler(RefusedError)
    async def refused(_: Request, error: RefusedError) -> Response:
        return JSONResponse({"error": error.sentence}, error.status, error.headers)

    @app.exception_handler(GeoCalibError)
    async def unusable(_: Request, error: GeoCalibError) -> Response:
        return JSONResponse({"error": str(error)}, 422)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        return JSONResponse({"error": f"{first['loc'][-1]}: {first['msg']}"}, 422)

    @app.exception_handler(HTTPException)
    async def other(_: Request, error: HTTPException) -> Response:
        return JSONResponse({"error": error.detail}, error.status_code, error.headers)


async def cancel_on_disconnect(
    request: Request, work: Coroutine[Any, Any, Result], seconds: float
) -> Result:
    """The result of the work, which is cancelled if the client disconnects.

    request: its body was read.
    """
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait({task, gone}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        if gone.done():
            raise ClientDisconnect
        raise too_slow(seconds)
    finally:
        task.cancel()
        gone.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _gone(request: Request) -> None:
    """Returns when the client has gone away."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
