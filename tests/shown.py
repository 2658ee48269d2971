"""For the tests of pages: what was printed against what a page shows."""

from __future__ import annotations

import re

import pytest

NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")
RELATIVE, ABSOLUTE = 0.03, 0.15
"""How far a number may be from the page's: what other processors may do, and no more."""


def assert_alike(printed: str, page: str, what: str) -> None:
    """Equal words, and numbers that differ by little.

    Where new weights change them, print them again, and make the pictures again with
    docs/make_pictures.py.
    """
    words, numbers = _parts(printed)
    page_words, page_numbers = _parts(page)
    assert words == page_words, what
    assert numbers == pytest.approx(page_numbers, rel=RELATIVE, abs=ABSOLUTE), what


def _parts(text: str) -> tuple[list[str], list[float]]:
    text = text.replace("─", "")
    return NUMBER.sub("#", text).split(), [float(number) for number in NUMBER.findall(text)]
