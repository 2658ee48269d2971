"""What ``/openapi.json`` says of bodies and answers, with examples."""

from __future__ import annotations

from typing import Any

from geocalib.server.requests import (
    CalibrateRequest,
    ExportRequest,
    OptionsBody,
    RefitRequest,
    RenderRequest,
    Strict,
)
from geocalib.server.uploads import JSON, MULTIPART

REFUSALS = {
    401: "the server's key is missing or wrong",
    404: "no photo of this id is kept (any longer)",
    408: "the upload took too long",
    413: "the body is too large",
    415: "the content type is another one",
    422: "what was sent cannot be used, or no image has an answer",
    429: "the server is busy; Retry-After says for how many seconds",
    504: "there was no answer in time",
}

RECORD = {
    "schema": "geocalib/4",
    "image": "photo.jpg",
    "width": 960,
    "height": 640,
    "camera_model": "pinhole",
    "fx": 559.7,
    "fy": 559.7,
    "cx": 480.0,
    "cy": 320.0,
    "roll_deg": 6.03,
    "pitch_deg": 8.1,
    "vfov_deg": 59.5,
    "status": "converged",
    "trusted_gravity": True,
    "trusted_fov": True,
    "trusted_lens": True,
    "id": "Qm3v0bqTz1yYd4Wg8h2K5nXe",
    "name": "photo.jpg",
}
"""An answer, shortened: ``docs/formats.md`` has all keys."""

UPRIGHT = {"x0": 143.0, "y0": 420.0, "x1": 136.5, "y1": 205.0, "kind": "up"}
"""An example of a drawn line."""

KNOWN = {"camera_model": "simple_radial", "vfov_deg": {"value": 60, "sigma": 3}}


def answer() -> dict[str, Any]:
    """Of a route that answers with records."""
    results = {JSON: {"example": {"results": [RECORD]}}}
    responses = {"200": {"description": "a record for each image", "content": results}}
    return {"responses": {**responses, **_refusals()}}


def calibrate() -> dict[str, Any]:
    """The description of ``POST /v1/calibrate``."""
    example = {"images": [{"name": "photo.jpg", "data": "/9j/4AAQSkZJRg..."}], **KNOWN}
    content = {**_form(OptionsBody, KNOWN), **_json(CalibrateRequest, example)}
    return {"requestBody": {"required": True, "content": content}, **answer()}


def refit() -> dict[str, Any]:
    """The description of ``POST /v1/refit``."""
    content = _json(RefitRequest, {"id": RECORD["id"], "focal": 560, "drawn": [UPRIGHT]})
    return {"requestBody": {"required": True, "content": content}, **answer()}


def render() -> dict[str, Any]:
    """The description of ``POST /v1/render``."""
    content = _form(RenderRequest, {"id": RECORD["id"], "kind": "upright", "format": "png"})
    picture: dict[str, Any] = {"image/jpeg": {}, "image/png": {}}
    responses = {"200": {"description": "the picture", "content": picture}, **_refusals()}
    return {"requestBody": {"required": True, "content": content}, "responses": responses}


def export() -> dict[str, Any]:
    """The description of ``POST /v1/export``."""
    content = _json(ExportRequest, {"records": [RECORD], "format": "colmap"})
    file: dict[str, Any] = {"application/octet-stream": {}}
    responses = {"200": {"description": "the file", "content": file}, **_refusals()}
    return {"requestBody": {"required": True, "content": content}, "responses": responses}


def _json(model: type[Strict], example: Any) -> dict[str, Any]:
    return {JSON: {"schema": model.model_json_schema(), "example": example}}


def _form(model: type[Strict], example: Any) -> dict[str, Any]:
    image = {"type": "string", "format": "binary"}
    properties = {
        "image": {"type": "array", "items": image},
        "request": {**model.model_json_schema(), "example": example},
    }
    schema = {"type": "object", "required": ["image"], "properties": properties}
    return {MULTIPART: {"schema": schema, "encoding": {"request": {"contentType": JSON}}}}


def _refusals() -> dict[str, Any]:
    return {
        str(status): {
            "description": words,
            "content": {JSON: {"example": {"error": f"{words}, in one sentence"}}},
        }
        for status, words in REFUSALS.items()
    }
