"""The published benchmark sets: where they are, and how to get one."""

from __future__ import annotations

import http.client
import os
import shutil
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from pathlib import Path

from geocalib.errors import ConfigError, DownloadError

ADDRESS = "https://cvg-data.inf.ethz.ch/GeoCalib_ECCV2024"

NAMES = ("openpano", "stanford2d3d", "tartanair", "megadepth2k", "megadepth2k-radial", "lamar2k")

NEEDS_CONSENT = "stanford2d3d"
"""The set that its owners give only to those who have accepted their terms."""

TIMEOUT = 30.0
"""Seconds to wait for a server that says nothing."""

PIECE = 1 << 20
"""Number of bytes read at once."""

Progress = Callable[[int, int | None], None]
"""A function of the bytes downloaded, and of their total, if that is known."""


def get_benchmark(
    name: str,
    folder: Path,
    accept_terms: bool = False,
    progress: Progress = lambda there, total: None,
    address: str = ADDRESS,
) -> Path:
    """Download and unpack a published set; returns its folder, ``folder/name``.

    A set that is there already stays as it is; a download that broke off goes on where it ended.
    """
    if name not in NAMES:
        raise ConfigError(f"there is no set {name!r}; known: {', '.join(NAMES)}")
    if name == NEEDS_CONSENT and not accept_terms:
        raise ConfigError(
            f"{name} is for those who have accepted the terms of its owners: look for the 2D-3D-S "
            "dataset of Stanford, accept its terms, and add --accept-terms"
        )
    place = folder / name
    if place.exists():
        return place
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / f"{name}.zip"
    if not archive.exists():
        _download(f"{address}/{name}.zip", archive, progress)
    _unpack(archive, place)
    archive.unlink()
    return place


def _download(url: str, archive: Path, progress: Progress) -> None:
    partial = archive.with_name(f"{archive.name}.partial")
    there = partial.stat().st_size if partial.exists() else 0
    headers = {"Range": f"bytes={there}-"} if there else {}
    try:
        request = urllib.request.Request(url, headers=headers)
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
            # A server that does not know ranges sends everything again.
            goes_on = answer.status == http.HTTPStatus.PARTIAL_CONTENT
            there = there if goes_on else 0
            length = answer.headers.get("Content-Length")
            total = None if length is None else there + int(length)
            with partial.open("ab" if goes_on else "wb") as file:
                while piece := answer.read(PIECE):
                    file.write(piece)
                    there += len(piece)
                    progress(there, total)
        # A connection that breaks off looks like the end of the file.
        if total is not None and there < total:
            raise ConnectionError(f"it broke off after {there} of {total} bytes")
    except (OSError, http.client.HTTPException) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        why = getattr(error, "reason", error)
        raise DownloadError(
            f"{url} cannot be downloaded ({why}); try again to go on, or download it by other "
            f"means and put it at {archive}"
        ) from error
    os.replace(partial, archive)


def _unpack(archive: Path, place: Path) -> None:
    """The content of an archive as a folder, whole or not at all."""
    unpacked = place.with_name(f"{place.name}.unpacking")
    shutil.rmtree(unpacked, ignore_errors=True)
    try:
        with zipfile.ZipFile(archive) as content:
            content.extractall(unpacked)
    except (zipfile.BadZipFile, EOFError) as error:
        shutil.rmtree(unpacked, ignore_errors=True)
        raise DownloadError(f"{archive} is damaged ({error}); delete it and try again") from error
    # The archive may hold the folder, or what is in it.
    inner = unpacked / place.name
    os.replace(inner if inner.is_dir() else unpacked, place)
    shutil.rmtree(unpacked, ignore_errors=True)
