"""Where a server is to be found: by a browser on this machine, and by a phone in its network."""

from __future__ import annotations

import socket
from ipaddress import ip_address

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
