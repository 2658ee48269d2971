"""Records as the files of other programs, in memory."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterable, Sequence
from io import BytesIO
from pathlib import PurePosixPath

from geocalib.formats import (
    NAMES,
    ONE_EACH,
    colmap,
    csv_table,
    json_lines,
    nerfstudio,
    opencv,
    ros,
)
from geocalib.formats.outputs import calibrated, image_names
from geocalib.result.calibration import Calibration, Outcome

TOGETHER: dict[str, Callable[[Iterable[Outcome]], str]] = {
    "json": json_lines.dumps,
    "csv": csv_table.dumps,
    "colmap": colmap.dumps,
    "nerfstudio": nerfstudio.dumps,
}
"""Formats of one file for all images."""

EACH: dict[str, Callable[[Calibration], str]] = {"opencv": opencv.dumps, "ros": ros.dumps}
"""Formats of one file per image."""


def exported(outcomes: Sequence[Outcome], format: str) -> tuple[str, bytes]:
    """The name and the content of a file; of several, that of an archive."""
    if format in TOGETHER:
        return NAMES[format], _encoded(TOGETHER[format](outcomes))
    found = calibrated(outcomes)
    texts: dict[str, bytes] = {}
    for number, (calibration, image) in enumerate(zip(found, image_names(found), strict=True), 1):
        name = f"{PurePosixPath(image).name or 'image'}{ONE_EACH[format]}"
        texts[f"{number}_{name}" if name in texts else name] = _encoded(EACH[format](calibration))
    if len(texts) == 1:
        return f"camera{ONE_EACH[format]}", next(iter(texts.values()))
    archive = BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in texts.items():
            file.writestr(name, text)
    return "cameras.zip", archive.getvalue()


def _encoded(text: str) -> bytes:
    # Names need not be valid text.
    return text.encode("utf-8", "replace")
