"""Where a server says that it is."""

from __future__ import annotations

import re

import cv2
import numpy as np
import pytest

from geocalib.server import run as module
from geocalib.server.run import addresses, qr_code


@pytest.mark.parametrize(
    ("host", "here", "others"),
    [
        ("127.0.0.1", "http://127.0.0.1:8000", None),
        ("::1", "http://[::1]:8000", None),
        ("192.168.1.5", "http://192.168.1.5:8000", "http://192.168.1.5:8000"),
        ("0.0.0.0", "http://127.0.0.1:8000", "http://192.168.1.7:8000"),
        ("::", "http://127.0.0.1:8000", "http://192.168.1.7:8000"),
    ],
)
def test_phones_are_told_an_address_that_they_can_reach(
    monkeypatch: pytest.MonkeyPatch, host: str, here: str, others: str | None
) -> None:
    monkeypatch.setattr(module, "_in_the_network", lambda: "192.168.1.7")
    assert addresses(host, 8000) == (here, others)


def test_a_machine_without_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_in_the_network", lambda: None)
    assert addresses("0.0.0.0", 80) == ("http://127.0.0.1:80", None)


def test_a_camera_reads_the_code() -> None:
    text = "http://192.168.178.123:8000"
    lines = re.sub(r"\x1b\[[\d;]*m", "", qr_code(text)).splitlines()
    pixels = [
        [255 * (sign not in signs) for sign in line] for line in lines for signs in ("▀█", "▄█")
    ]
    picture = np.kron(np.array(pixels, np.uint8), np.ones((8, 8), np.uint8))
    picture = np.pad(picture, 32, constant_values=255)
    assert cv2.QRCodeDetector().detectAndDecode(picture)[0] == text
