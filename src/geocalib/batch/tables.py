"""The answers of a part as a table of Parquet, with the schema of records."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

from geocalib.batch.columns import parquet
from geocalib.formats.schemas import arrow_schema
from geocalib.result.calibration import Failure, Outcome

NAMELESS = "image"
"""What messages call a photo that came as bytes."""


def record_of(outcome: Outcome, name: str, request: str) -> dict[str, Any]:
    """The row of a photo, which goes by its name."""
    # Arrow's texts are Unicode, which names of files need not be.
    legible = os.fsencode(name).decode("utf-8", "backslashreplace")
    record = replace(outcome, image=legible).to_dict()
    if isinstance(outcome, Failure):
        words = outcome.error.removeprefix(f"{NAMELESS}: ").removeprefix(f"{NAMELESS} ")
        told = words if name in outcome.error or words == outcome.error else f"{legible}: {words}"
        record["error"] = os.fsencode(told).decode("utf-8", "backslashreplace")
    return {**record, "request": request, "photo": None}


def table_of(records: Sequence[dict[str, Any]]) -> bytes:
    """A file with these rows."""
    table = import_module("pyarrow").Table.from_pylist(list(records), schema=arrow_schema())
    file = io.BytesIO()
    parquet().write_table(table, file, compression="zstd")
    return file.getvalue()
