"""The photos of a part, as a calibrator takes them."""

from __future__ import annotations

from collections.abc import Iterator

from geocalib.batch.columns import read_rows
from geocalib.batch.plan import PhotoPart
from geocalib.batch.store import StorePath
from geocalib.errors import GeoCalibError
from geocalib.result.calibration import Failure

Photo = tuple[str, str | bytes | Failure]
"""Its name, and a path on this machine, the bytes of its file, or why there are none."""


def photos_of(part: PhotoPart) -> Iterator[Photo]:
    """As many as the part has, whatever became of its files meanwhile."""
    count = 0
    try:
        for name, source in _READERS[part.kind](part):
            yield name, _fetched(name, source)
            count += 1
    except (OSError, GeoCalibError) as error:
        for entry in part.entries[count:]:
            name = _name(part, entry)
            yield name, Failure(name, None, None, f"{name}: {error}")


def _name(part: PhotoPart, entry: object) -> str:
    match entry:
        case str():
            return entry
        case int():
            return f"{part.source}#{entry}"
        case [member, *_]:
            return f"{part.source}/{member}"
    raise AssertionError(entry)


def _fetched(name: str, source: str | bytes) -> str | bytes | Failure:
    """Files elsewhere are brought here."""
    if isinstance(source, bytes) or (place := StorePath(source)).local:
        return source
    try:
        return place.read()
    except OSError as error:
        return Failure(name, None, None, f"{name} cannot be opened ({error}); check the path")


def _files(part: PhotoPart) -> Iterator[tuple[str, str | bytes]]:
    return ((path, path) for path in part.entries)


def _members(part: PhotoPart) -> Iterator[tuple[str, str | bytes]]:
    with StorePath(part.source).open() as file:
        for entry in part.entries:
            _, start, length = entry
            file.seek(start)
            yield _name(part, entry), file.read(length)


def _rows(part: PhotoPart) -> Iterator[tuple[str, str | bytes]]:
    return read_rows(part.source, part.entries)


_READERS = {"files": _files, "tar": _members, "parquet": _rows}
