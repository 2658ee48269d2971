"""OpenCV, told once to leave the cores to others.

Its pictures are small, and a pool of threads beside torch's and ours makes each wait for the other:
on a busy machine lines then took several times as long.
"""

from __future__ import annotations

from functools import cache
from typing import Any


@cache
def opencv() -> Any:
    """The module ``cv2``, which is slow to import."""
    import cv2

    cv2.setNumThreads(1)
    return cv2
