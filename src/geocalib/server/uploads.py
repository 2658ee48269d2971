"""The body of a request: read in memory up to a limit, and taken apart. An image is bytes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from python_multipart.multipart import parse_options_header
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from geocalib.server.limits import MEGA, Limits, RefusedError, busy
from geocalib.server.requests import CalibrateRequest, Options, checked

LONGEST_NAME = 255
JSON, MULTIPART = "application/json", "multipart/form-data"


@dataclass(frozen=True)
class Upload:
    """One file of a request."""

    name: str
    """As the client calls it: to be said back to it, and to nobody else."""
    data: bytes


class InMemory(MultiPartParser):
    """Never writes what users send to a disk."""

    spool_max_size = 0


class Budget:
    """Bytes of all bodies that are in memory at a time."""

    def __init__(self, most: int) -> None:
        self._left = most

    def take(self, count: int) -> None:
        if count > self._left:
            raise busy()
        self._left -= count

    def give_back(self, count: int) -> None:
        self._left += count


class Body:
    """The body of one request, counted as it comes in."""

    def __init__(self, request: Request, limits: Limits, budget: Budget) -> None:
        self._request, self._limits, self._budget = request, limits, budget
        self._taken = 0

    async def __aenter__(self) -> Body:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._budget.give_back(self._taken)

    @property
    def kind(self) -> str:
        """The content type without its parameters."""
        return parse_options_header(self._request.headers.get("content-type"))[0].decode("latin-1")

    async def read(self) -> bytes:
        """All of it."""
        async with self._in_time(), aclosing(self._chunks()) as chunks:
            return b"".join([chunk async for chunk in chunks])

    async def parts(self) -> tuple[list[Upload], dict[str, str]]:
        """Its images, and its fields by name."""
        limits = self._limits
        try:
            async with self._in_time(), aclosing(self._chunks()) as chunks:
                parser = InMemory(
                    self._request.headers, chunks, max_files=limits.images + 1, max_fields=8
                )
                form = await parser.parse()
        except MultiPartException as error:
            raise RefusedError(
                422, f"the form cannot be read: {error.message.rstrip('.')}"
            ) from None
        images, fields = [], {}
        for key, value in form.multi_items():
            if isinstance(value, UploadFile):
                if key != "image":
                    raise RefusedError(422, f"unknown file {key[:40]!r}; images are called 'image'")
                data = await value.read()
                await value.close()
                images.append(Upload(_clean(value.filename or ""), data))
            else:
                fields[key] = value
        return images, fields

    async def _chunks(self) -> AsyncGenerator[bytes, None]:
        limits, headers = self._limits, self._request.headers
        told = headers.get("content-length", "")
        if told.isdecimal() and int(told) > limits.bytes:
            raise _too_large(limits)
        async with aclosing(self._request.stream()) as stream:
            async for chunk in stream:
                self._budget.take(len(chunk))
                self._taken += len(chunk)
                if self._taken > limits.bytes:
                    raise _too_large(limits)
                yield chunk

    def _in_time(self) -> asyncio.Timeout:
        return asyncio.timeout(self._limits.seconds)


async def read_images(body: Body, limits: Limits) -> tuple[list[Upload], Options]:
    """The images of a request to calibrate them, and what is asked."""
    try:
        if body.kind == MULTIPART:
            images, fields = await body.parts()
            text = fields.pop("request", "{}")
            if fields:
                raise RefusedError(
                    422, f"unknown field {next(iter(fields))[:40]!r}; known: request"
                )
            options = checked(Options, text)
        elif body.kind == JSON:
            asked = checked(CalibrateRequest, await body.read())
            images = [Upload(_clean(image.name), image.data) for image in asked.images]
            options = asked.options
        else:
            raise RefusedError(415, f"send {MULTIPART} or {JSON}")
    except TimeoutError:
        raise RefusedError(408, f"the upload took longer than {limits.seconds:g} s") from None
    if not images:
        raise RefusedError(422, "there is no image; send at least one, called 'image'")
    if len(images) > limits.images:
        raise RefusedError(422, f"more than {limits.images} images; send fewer at a time")
    return images, options


def _clean(name: str) -> str:
    """A name that breaks no line, of a length that a file's may have."""
    return "".join(letter for letter in name if letter.isprintable())[:LONGEST_NAME]


def _too_large(limits: Limits) -> RefusedError:
    return RefusedError(
        413, f"more than {limits.bytes / MEGA:g} MB; send fewer or smaller images at a time"
    )
