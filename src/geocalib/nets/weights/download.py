"""Files from the web, fetched once and kept.

A file appears in its place when it is whole, never before, so that any number of processes may
share the folder: at worst two of them fetch the same thing. Beside a file that was found good lies
its SHA-256, in the form of the ``sha256sum`` tool.
"""

from __future__ import annotations

import http.client
import os
import shutil
import sys
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from geocalib.errors import WeightsError
from geocalib.files import replacing, sha256_of

CACHE_VARIABLE = "GEOCALIB_CACHE"
"""Environment variable that names another folder to keep files in."""

TIMEOUT = 30.0
"""Seconds to wait for a server that says nothing."""


def cache_folder() -> Path:
    """Where fetched files are kept; it need not exist yet."""
    from platformdirs import user_cache_dir

    return Path(os.environ.get(CACHE_VARIABLE) or user_cache_dir("geocalib", appauthor=False))


def fetch(url: str, name: str) -> Path:
    """The file of that name in the cache folder, downloaded from ``url`` if it is not there."""
    path = cache_folder() / name
    if path.is_file():
        return path
    try:
        with replacing(path) as file:
            _download(url, file, name)
    except (OSError, http.client.HTTPException) as error:
        raise WeightsError(
            f"{url} cannot be downloaded to {path.parent} ({_reason(error)}); download it by other "
            f"means and put it at {path}, or name another folder in {CACHE_VARIABLE}"
        ) from error
    return path


def check(path: Path) -> str:
    """The SHA-256 of a file; an error if another one was recorded."""
    found, place = sha256_of(path), _record_of(path)
    if place.is_file() and place.read_bytes().split()[:1] != [found.encode()]:
        raise WeightsError(f"{path} is damaged: its SHA-256 is not the one in {place.name}")
    return found


def record(path: Path, sha256: str) -> None:
    """Remember what a file that was found good looked like; a first record stays."""
    place = _record_of(path)
    # A folder that may only be read serves as well, without this protection.
    with suppress(OSError):
        if not place.is_file():
            with replacing(place) as file:
                file.write(f"{sha256}  {path.name}\n".encode())


def _record_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        error.close()
        return f"the server answered {error.code} {error.reason}"
    return str(error.reason if isinstance(error, urllib.error.URLError) else error)


def _download(url: str, file: BinaryIO, name: str) -> None:
    from rich.console import Console
    from rich.progress import wrap_file

    with urllib.request.urlopen(url, timeout=TIMEOUT) as response:
        size = int(response.headers.get("Content-Length") or 0)
        with wrap_file(
            response,
            total=size,
            description=f"downloading {name}",
            console=Console(stderr=True),
            disable=not sys.stderr.isatty(),
        ) as stream:
            shutil.copyfileobj(stream, file)
    # A connection that breaks off looks like the end of the file.
    if file.tell() < size:
        raise ConnectionError(f"it broke off after {file.tell()} of {size} bytes")
