"""An application on a port, until it is stopped."""

from __future__ import annotations

import logging
import socket
import sys
import webbrowser
from ipaddress import ip_address

import uvicorn
from fastapi import FastAPI

from geocalib import console
from geocalib.errors import ConfigError
from geocalib.server.limits import ServerLimits
from geocalib.server.log import log

CONNECTIONS = 1024
"""At a time; further ones get 503."""


class Server(uvicorn.Server):
    """Says where it is once it is there."""

    def __init__(self, config: uvicorn.Config, open_page: bool) -> None:
        super().__init__(config)
        self._open_page = open_page

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.should_exit or not sockets:
            return
        host, port = sockets[0].getsockname()[:2]
        here, others = addresses(host, port)
        console.note(f"serving at {here}; end with Ctrl-C")
        if others is not None:
            console.note(f"for phones and others in this network: {others}; their photos come here")
            if sys.stderr.isatty() and not console.ascii_only(sys.stderr):
                print(qr_code(others), file=sys.stderr, flush=True)
        if self._open_page:
            webbrowser.open(here)


def run(app: FastAPI, host: str, port: int, limits: ServerLimits, open_page: bool) -> None:
    """Serve until SIGINT or SIGTERM; what was accepted by then is finished."""
    lines = logging.StreamHandler(sys.stderr)
    lines.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log.addHandler(lines)
    log.setLevel(logging.INFO)
    config = uvicorn.Config(
        app,
        log_config=None,
        # Its lines would hold addresses and ids; ours do not.
        access_log=False,
        server_header=False,
        limit_concurrency=CONNECTIONS,
        timeout_graceful_shutdown=round(2 * limits.seconds),
    )
    with _bound(host, port) as listening:
        Server(config, open_page).run([listening])


def _bound(host: str, port: int) -> socket.socket:
    try:
        family, kind, proto, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, proto)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
    except OSError as error:
        raise ConfigError(
            f"cannot listen at {host}:{port} ({error.strerror}); choose another --port or --host"
        ) from None
    return listening


ELSEWHERE = ("10.255.255.255", 9)
"""An address in a private network. Nothing is sent there: the system only says which of its own
addresses it would send from."""


def url(host: str, port: int) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def addresses(host: str, port: int) -> tuple[str, str | None]:
    """For this machine, and for others in its network, where they are let in and the system knows.

    host: that the server listens at; 0.0.0.0 and :: mean all there are.
    """
    address = ip_address(host.partition("%")[0])
    if address.is_unspecified:
        found = _in_the_network()
        return url("127.0.0.1", port), None if found is None else url(found, port)
    return url(host, port), None if address.is_loopback else url(host, port)


def _in_the_network() -> str | None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(ELSEWHERE)
        except OSError:
            return None
        found = str(probe.getsockname()[0])
    return None if ip_address(found).is_loopback else found


def qr_code(text: str) -> str:
    """A QR code for terminals: black on white whatever their colours are, two rows of modules in a
    line of characters."""
    import cv2

    dark = cv2.QRCodeEncoder.create().encode(text) == 0
    rows = [*dark, dark[0]] if len(dark) % 2 else list(dark)
    lines = []
    for upper, lower in zip(rows[::2], rows[1::2], strict=True):
        signs = (" ▄▀█"[2 * up + down] for up, down in zip(upper, lower, strict=True))
        lines.append(f"\x1b[30;107m{''.join(signs)}\x1b[0m")
    return "\n".join(lines)
