"""The body of a request: read in memory up to a limit, and taken apart. An image is bytes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass

from python_multipart.multipart import parse_options_header
from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request

from geocalib.server.limits import MEGA, RefusedError, ServerLimits, busy
from geocalib.server.requests import CalibrateRequest, Model, OptionsBody, checked

LONGEST_NAME = 255
MOST_FIELDS = 8
PATIENCE_SECONDS = 2.0
"""How long a client that was refused is heard out: one that still writes may not read why."""

JSON, MULTIPART = "application/json", "multipart/form-data"


@dataclass(frozen=True)
class Upload:
    """One file of a request."""

    name: str
    """The client's name of the image, which only that client gets back."""
    data: bytes


class InMemory(MultiPartParser):
    """Never writes what users send to a disk."""

    spool_max_size = 0


class UploadBudget:
    """Bytes of all bodies that are in memory at a time."""

    def __init__(self, most: int) -> None:
        self._left = most

    def take(self, count: int) -> None:
        if count > self._left:
            raise busy()
        self._left -= count

    def give_back(self, count: int) -> None:
        self._left += count


class RequestBody:
    """The body of one request, counted as it comes in and until it is left."""

    def __init__(self, request: Request, limits: ServerLimits, budget: UploadBudget) -> None:
        self._request, self._limits, self._budget = request, limits, budget
        self._taken = 0
        self._done = False
        """Whether nothing more is to be heard."""

    async def __aenter__(self) -> RequestBody:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._budget.give_back(self._taken)
        with suppress(TimeoutError, ClientDisconnect):
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not self._done:
                    await self._next()

    @property
    def kind(self) -> str:
        """The content type without its parameters."""
        return parse_options_header(self._request.headers.get("content-type"))[0].decode("latin-1")

    async def json(self, model: type[Model]) -> Model:
        """The request that it holds."""
        if self.kind != JSON:
            raise RefusedError(415, f"the content type must be {JSON}")
        async with self._chunks() as chunks:
            text = b"".join([chunk async for chunk in chunks])
        return checked(model, text)

    async def form(self, model: type[Model]) -> tuple[list[Upload], Model]:
        """Its images, and the request beside them."""
        if self.kind != MULTIPART:
            raise RefusedError(415, f"the content type must be {MULTIPART}")
        try:
            async with self._chunks() as chunks:
                most = self._limits.images + 1
                headers = self._request.headers
                parser = InMemory(headers, chunks, max_files=most, max_fields=MOST_FIELDS)
                form = await parser.parse()
        except MultiPartException as error:
            sentence = f"the form cannot be read: {error.message.rstrip('.')}"
            raise RefusedError(422, sentence) from None
        try:
            images, text = await _sorted(form)
        finally:
            await form.close()
        return images, checked(model, text)

    @asynccontextmanager
    async def _chunks(self) -> AsyncIterator[AsyncGenerator[bytes, None]]:
        """The bytes as they come in, within the limits."""
        seconds = self._limits.seconds
        try:
            async with asyncio.timeout(seconds), aclosing(self._counted()) as chunks:
                yield chunks
        except TimeoutError:
            self._done = True
            raise RefusedError(408, f"the upload took longer than {seconds:g} s") from None

    async def _counted(self) -> AsyncGenerator[bytes, None]:
        limits = self._limits
        stated = self._request.headers.get("content-length", "")
        if stated.isdecimal() and int(stated) > limits.bytes:
            raise _too_large(limits)
        while not self._done:
            chunk = await self._next()
            self._budget.take(len(chunk))
            self._taken += len(chunk)
            if self._taken > limits.bytes:
                raise _too_large(limits)
            yield chunk

    async def _next(self) -> bytes:
        """The next part that comes in."""
        message = await self._request.receive()
        if message["type"] == "http.disconnect":
            self._done = True
            raise ClientDisconnect
        self._done = not message.get("more_body", False)
        chunk: bytes = message.get("body", b"")
        return chunk


async def read_images(body: RequestBody, limits: ServerLimits) -> tuple[list[Upload], OptionsBody]:
    """The images of a request to calibrate them, and what is requested."""
    if body.kind == JSON:
        wanted = await body.json(CalibrateRequest)
        images = [Upload(_clean(image.name), image.data) for image in wanted.images]
        options = wanted.body
    elif body.kind == MULTIPART:
        images, options = await body.form(OptionsBody)
    else:
        raise RefusedError(415, f"the content type must be {MULTIPART} or {JSON}")
    if not images:
        raise RefusedError(422, "there is no image; send at least one, as 'image'")
    if len(images) > limits.images:
        raise RefusedError(422, f"more than {limits.images} images; send fewer at a time")
    return images, options


async def _sorted(form: FormData) -> tuple[list[Upload], str]:
    """Images, and the text of the request."""
    images, text = [], "{}"
    for key, value in form.multi_items():
        if isinstance(value, UploadFile) and key == "image":
            images.append(Upload(_clean(value.filename or ""), await value.read()))
        elif isinstance(value, str) and key == "request":
            text = value
        else:
            known = "'image', a file, and 'request', a text"
            raise RefusedError(422, f"unknown part {key[:40]!r} of the form; known: {known}")
    return images, text


def _clean(name: str) -> str:
    """A name that breaks no line, of a length that a file's may have."""
    return "".join(letter for letter in name if letter.isprintable())[:LONGEST_NAME]


def _too_large(limits: ServerLimits) -> RefusedError:
    return RefusedError(
        413, f"more than {limits.bytes / MEGA:g} MB; send fewer or smaller images at a time"
    )
