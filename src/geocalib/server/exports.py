"""Records as the files of other programs, in memory."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from io import BytesIO
from pathlib import PurePosixPath

from geocalib.errors import FormatError
from geocalib.formats import FORMATS
from geocalib.formats.outputs import calibrated, image_names
from geocalib.result.calibration import Outcome

OFFERED = [name for name, kind in FORMATS.items() if kind.together or kind.each]
"""Formats that need no more than the records: others need the photos as well."""


def exported(outcomes: Sequence[Outcome], format: str) -> tuple[str, bytes]:
    """The name and the content of a file; of several, that of an archive."""
    if format not in OFFERED:
        raise FormatError(
            f"{format} needs the photos themselves: write it with geocalib calibrate; here there "
            f"are {', '.join(OFFERED)}"
        )
    kind = FORMATS[format]
    if kind.together is not None:
        return kind.file, _encoded(kind.together(outcomes, kind.frame))
    assert kind.each is not None
    found = calibrated(outcomes, kind.frame)
    texts: dict[str, bytes] = {}
    for number, (calibration, image) in enumerate(zip(found, image_names(found), strict=True), 1):
        name = f"{PurePosixPath(image).name or 'image'}{kind.file}"
        texts[f"{number}_{name}" if name in texts else name] = _encoded(
            kind.each(calibration, kind.frame)
        )
    if len(texts) == 1:
        return f"camera{kind.file}", next(iter(texts.values()))
    archive = BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in texts.items():
            file.writestr(name, text)
    return "cameras.zip", archive.getvalue()


def _encoded(content: str | bytes) -> bytes:
    # Names need not be valid text.
    return content if isinstance(content, bytes) else content.encode("utf-8", "replace")
