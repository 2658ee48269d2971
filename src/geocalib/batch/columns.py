"""Tables of photos: Parquet with their paths, or with the bytes of their files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

from geocalib.batch.store import StorePath
from geocalib.errors import ConfigError, MissingPackageError, how_to_get

PATHS = ("path", "image", "file", "url", "image_path")
"""Columns that paths are looked for in."""
NAMES = (*PATHS, "__key__", "key", "name", "id")
"""Columns whose texts name photos whose bytes are in the table."""


def parquet() -> Any:
    """The module ``pyarrow.parquet``, imported when it is needed."""
    try:
        return import_module("pyarrow.parquet")
    except ImportError:
        raise MissingPackageError(f"tables need pyarrow; {how_to_get('batch')}") from None


def count_rows(table: str) -> int:
    """The number of rows of a file; an error if it holds no photos."""
    with StorePath(table).open() as file:
        opened = _opened(file, table)
        _columns(opened.schema_arrow, table)
        return int(opened.metadata.num_rows)


def read_rows(table: str, rows: Sequence[int]) -> Iterator[tuple[str, str | bytes]]:
    """Name and source of the photos in some rows, in ascending order."""
    with StorePath(table).open() as file:
        opened = _opened(file, table)
        source, name = _columns(opened.schema_arrow, table)
        columns = list(dict.fromkeys([source, *([] if name is None else [name])]))
        first = 0
        for group in range(opened.num_row_groups):
            count = opened.metadata.row_group(group).num_rows
            wanted = [row - first for row in rows if first <= row < first + count]
            if wanted:
                found = opened.read_row_group(group, columns=columns).take(wanted)
                for row, record in zip(wanted, found.to_pylist(), strict=True):
                    value = record[source]
                    value = value.get("bytes") if isinstance(value, dict) else value
                    said = None if name is None else record[name]
                    spare = value if isinstance(value, str) else f"{table}#{first + row}"
                    yield str(spare if said is None else said), b"" if value is None else value
            first += count


def _opened(file: Any, table: str) -> Any:
    try:
        return parquet().ParquetFile(file)
    except (OSError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise ConfigError(f"{table} cannot be read as Parquet ({reason}); write it again") from None


def _columns(schema: Any, table: str) -> tuple[str, str | None]:
    """The column of the sources, and that of the names, if there is one."""
    types = import_module("pyarrow").types
    kinds = dict(zip(schema.names, schema.types, strict=True))
    texts = [n for n, kind in kinds.items() if types.is_string(kind) or types.is_large_string(kind)]
    name = next((column for column in NAMES if column in texts), None)
    for column, kind in kinds.items():
        nested = types.is_struct(kind) and any(field.name == "bytes" for field in kind)
        if types.is_binary(kind) or types.is_large_binary(kind) or nested:
            return column, name
    path = next((column for column in PATHS if column in texts), None)
    if path is None:
        raise ConfigError(
            f"{table} has columns {', '.join(kinds)}; photos are looked for in one of bytes, or in "
            f"one of paths called {', '.join(PATHS)}"
        )
    return path, path
