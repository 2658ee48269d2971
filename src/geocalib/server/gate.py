"""What every request passes: the key, the counts, the log, and the last resort."""

from __future__ import annotations

import hmac
import time

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from geocalib.server.log import log, unexpected
from geocalib.server.metrics import Metrics

OPEN = ("/v1/health", "/v1/ready")
"""Routes that need no key: for those who watch whether the server lives."""

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; "
        "img-src 'self' blob: data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""Headers of every response: the page can only reach its server."""

GONE = 499
"""How a request is counted whose client went away."""


class Gate:
    """Around an application. Nothing that a client sent is logged: neither names nor addresses nor
    the ids of photos."""

    def __init__(self, app: ASGIApp, metrics: Metrics, key: str | None) -> None:
        self._app, self._metrics = app, metrics
        self._key = None if key is None else key.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            if self._admits(scope):
                await self._app(scope, receive, noted)
            else:
                await _WRONG_KEY(scope, receive, noted)
        except ClientDisconnect:
            status = GONE
        except Exception as error:
            unexpected(error)
            if status:  # Half an answer is none: the connection is dropped.
                raise
            await _BROKEN(scope, receive, noted)
        finally:
            seconds, route = time.perf_counter() - began, _route(scope)
            self._metrics.requests.labels(route, str(status)).inc()
            self._metrics.seconds.labels(route).observe(seconds)
            log.info("%s %s %d %.3f s", scope["method"], route, status, seconds)

    def _admits(self, scope: Scope) -> bool:
        path = scope["path"]
        guarded = path.startswith("/v1/") or path in ("/metrics", "/openapi.json")
        if self._key is None or not guarded or path in OPEN:
            return True
        headers = Headers(scope=scope)
        key = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
        return hmac.compare_digest(key.encode(), self._key)


def _route(scope: Scope) -> str:
    """The address without what is particular to a request."""
    path = getattr(scope.get("route"), "path", None)
    return str(path) if path and path.startswith(("/v1/", "/metrics")) else "page"


_WRONG_KEY = JSONResponse(
    {"error": "this needs the server's key: send it as X-API-Key, or Authorization: Bearer"},
    401,
    {"WWW-Authenticate": "Bearer"},
)
_BROKEN = JSONResponse({"error": "something went wrong here; it is in the server's log"}, 500)
