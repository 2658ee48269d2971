"""What other programs make of our files, measured: tests note it, and it is shown by
``docs/make_peers_table.py``."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from importlib.metadata import version

Note = Callable[[str, object], None]
"""Pytest's fixture ``record_property``."""

PEER, PIXELS = "peer", "pixels"
"""Names of the properties."""

VERSIONS: dict[str, tuple[str, ...]] = {
    "Blender": ("blender", "--version"),
    "Hugin": ("pto_var", "-h"),
    "COLMAP": ("colmap", "-h"),
    "ExifTool": ("exiftool", "-ver"),
    "gltf-validator": ("node", "-p", "require('gltf-validator').version()"),
}
"""How programs say their version; all others are packages of Python's."""


def note(record: Note, formats: str, peer: str, pixels: float) -> None:
    """Note by how many pixels, at most, a peer sees a camera otherwise than we do. formats: names,
    with commas between."""
    record(PEER, f"{formats}|{peer} {version_of(peer)}")
    record(PIXELS, repr(float(pixels)))


def version_of(peer: str) -> str:
    """Numbers with dots between."""
    if peer not in VERSIONS:
        return version(peer)
    done = subprocess.run(VERSIONS[peer], capture_output=True, text=True)
    found = re.search(r"\d+\.\d+(\.\d+)?(-dev\.\d+\.\d+)?", done.stdout + done.stderr)
    return found[0] if found else ""
