"""Files of calibrations, one module per format.

Every module has ``write(outcomes, path)``, which takes the calibrations and failures of any
number of images and returns the files it wrote. A path with a suffix is the file to write; any
other, and that of an existing folder, is the folder to write to, under the format's own names.

``json`` and ``csv`` keep everything, failures included, and ``read`` gives it back exactly. The
others are for other programs: they hold cameras (``nerfstudio`` also how they are turned), pass
over failures, and raise a ``FormatError`` where a camera model has no counterpart there. ``opencv``
and ``ros`` hold one camera per file, so that several images need a folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from geocalib.formats import colmap, csv_table, json_lines, nerfstudio, opencv, ros
from geocalib.formats.outputs import destination, one_each
from geocalib.result.calibration import Outcome

FORMATS: dict[str, Callable[[Iterable[Outcome], str | Path], list[Path]]] = {
    "json": json_lines.write,
    "csv": csv_table.write,
    "colmap": colmap.write,
    "opencv": opencv.write,
    "ros": ros.write,
    "nerfstudio": nerfstudio.write,
}
"""The writers by the names that users give them."""


def files_of(format: str, images: Sequence[str], path: str | Path) -> list[Path]:
    """The files that a writer would write for images of these names, were all of them calibrated;
    the first one says where."""
    if format in ONE_EACH:
        return one_each(images, path, ONE_EACH[format])
    return [destination(path, NAMES[format])]


NAMES = {
    "json": json_lines.FILE,
    "csv": csv_table.FILE,
    "colmap": colmap.FILE,
    "nerfstudio": nerfstudio.FILE,
}
"""What the file of a format is called in a folder."""

ONE_EACH = {"opencv": opencv.SUFFIX, "ros": ros.SUFFIX}
"""Formats of a file per image, and what its name ends in."""

__all__ = [
    "FORMATS",
    "colmap",
    "csv_table",
    "files_of",
    "json_lines",
    "nerfstudio",
    "opencv",
    "ros",
]
