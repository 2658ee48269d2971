"""The photos of an input: a folder, a pattern, archives in the layout of WebDataset, or tables."""

from __future__ import annotations

import glob
import os
import re
import tarfile
from collections.abc import Iterator, Sequence
from typing import Any

from geocalib.batch.columns import count_rows
from geocalib.batch.plan import Kind, PhotoPart
from geocalib.batch.store import StorePath
from geocalib.errors import ConfigError
from geocalib.files.image_files import IMAGE_SUFFIXES

PART = 500
"""Photos of a table, at most: what is lost when a run is killed."""

SUFFIXES: dict[str, Kind] = {".tar": "tar", ".parquet": "parquet"}


def find_parts(source: str) -> list[PhotoPart]:
    """All photos of an input, in natural order of their names, a part never of two archives."""
    place = StorePath(source)
    if place.is_folder:
        found = place.files()
    elif not place.exists and glob.has_magic(source):
        found = place.matches()
    elif place.exists:
        found = [source]
    else:
        raise ConfigError(f"{source} does not exist; name a folder, a pattern, .tar or .parquet")
    found = sorted(filter(_shown, found), key=_natural)
    photos = [name for name in found if _suffix(name) in IMAGE_SUFFIXES]
    pieces: list[tuple[Kind, str, Sequence[Any]]] = [("files", source, photos)]
    for name in found:
        kind = SUFFIXES.get(_suffix(name))
        if kind == "tar":
            pieces.append((kind, name, list(_members(name))))
        elif kind == "parquet":
            pieces.append((kind, name, range(count_rows(name))))
    cut = [
        (kind, name, list(entries[at : at + PART]))
        for kind, name, entries in pieces
        for at in range(0, len(entries), PART)
    ]
    if not cut:
        raise ConfigError(f"{source} holds no photo; name a folder, a pattern, .tar or .parquet")
    return [PhotoPart(f"part-{number:06d}", *each) for number, each in enumerate(cut)]


def _members(archive: str) -> Iterator[tuple[str, int, int]]:
    """Name, first byte and length of each photo in an archive."""
    try:
        with StorePath(archive).open() as file, tarfile.open(fileobj=file, mode="r:") as members:
            for member in members:
                if member.isfile() and _suffix(member.name) in IMAGE_SUFFIXES:
                    yield member.name, member.offset_data, member.size
    except (tarfile.TarError, OSError) as error:
        raise ConfigError(
            f"{archive} cannot be read as an uncompressed tar archive ({error})"
        ) from None


def _suffix(name: str) -> str:
    return os.path.splitext(name)[1].lower()


def _shown(name: str) -> bool:
    return not name.rpartition("/")[2].startswith(".")


def _natural(name: str) -> list[Any]:
    """A key by which 10 comes after 9."""
    parts = re.split(r"(\d+)", name)
    return [int(part) if row % 2 else part for row, part in enumerate(parts)]
