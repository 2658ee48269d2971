"""Files as they were: to tell later whether they have changed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

FileStat = tuple[int, int]
"""Bytes, and the time of the last change in nanoseconds: what one sees without reading."""


def sha256_of(*paths: str | Path) -> str:
    """The SHA-256 of a file, or of several one after the other, in hexadecimal."""
    digest = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as file:
            hashlib.file_digest(file, lambda: digest)
    return digest.hexdigest()


def file_stat(paths: Sequence[str]) -> FileStat | None:
    """The sizes and times of files that belong together; None if the first does not exist."""
    states = []
    for path in paths:
        try:
            states.append(os.stat(path))
        except OSError:
            if not states:
                return None
    return sum(state.st_size for state in states), max(state.st_mtime_ns for state in states)


def snapshot(paths: Sequence[str], before: FileStat | None) -> dict[str, Any]:
    """What ``unchanged`` needs, as plain values; nothing for a missing file.

    before: their ``file_stat`` before they were used. If they have changed since,
    the result matches nothing, as the used state is unknown.
    """
    now = file_stat(paths)
    if now is None:
        return {}
    checksum = _checksum(paths) if now == before else None
    return {"bytes": now[0], "modified_ns": now[1], "sha256": checksum}


def unchanged(noted: object, paths: Sequence[str]) -> bool:
    """Whether files are those of a snapshot: by size and time, or else by what they hold.

    Files that are gone count as unchanged: nothing new is to be learnt from them.
    """
    now = file_stat(paths)
    if now is None:
        return True
    if not isinstance(noted, Mapping) or noted.get("sha256") is None:
        return False
    if (noted.get("bytes"), noted.get("modified_ns")) == now:
        return True
    return bool(noted["sha256"] == _checksum(paths))


def _checksum(paths: Sequence[str]) -> str | None:
    try:
        return sha256_of(*(path for path in paths if os.path.exists(path)))
    except OSError:
        return None
