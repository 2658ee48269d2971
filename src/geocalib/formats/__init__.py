"""Files of calibrations, one module per format.

Every module has ``write(outcomes, path)``, which takes the calibrations and failures of any
number of images and returns the files it wrote. A path with a suffix is the file to write; any
other, and that of an existing folder, is the folder to write to, under the format's own names.

``json`` and ``csv`` keep everything, failures included, and ``read`` gives it back exactly. The
others are for other programs: they hold cameras, and what they can of gravity, pass over failures,
and raise a ``FormatError`` where a camera model has no counterpart there.

Every module says in ``FRAME`` whether the readers of its files take pixels upright, as EXIF
orientation turns them, or as they are stored; ``write(outcomes, path, frame)`` writes either. A new
format declares its own, takes its calibrations from ``outputs.calibrated(outcomes, frame)`` (or
hands the frame to ``outputs.write_one_each``), which turns them, and says ``outputs.SAID[frame]``
in the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from geocalib.cameras import Camera
from geocalib.formats import (
    blender,
    colmap,
    colmap_database,
    csv_table,
    exif,
    fspy,
    gltf,
    hugin,
    json_lines,
    lensfun,
    maya,
    nerfstudio,
    nuke,
    opencv,
    realityscan,
    ros,
    scenes,
    usd,
    xmp,
)
from geocalib.formats.outputs import destination, one_each
from geocalib.formats.ptlens import to_ptlens
from geocalib.records import dataclass
from geocalib.result.calibration import Calibration, Outcome
from geocalib.result.record import Frame


@dataclass(frozen=True)
class FileFormat:
    """What the command line, the server and others know of a format. Calling it writes."""

    write: Callable[[Iterable[Outcome], str | Path, Frame], list[Path]]
    file: str
    """What its file is called in a folder; of a format of one file for each image, what the name
    ends in."""
    frame: Frame
    """Whether its readers take pixels upright or as they are stored."""
    together: Callable[[Iterable[Outcome], Frame], str | bytes] | None = None
    """The content of the one file for all images."""
    each: Callable[[Calibration, Frame], str | bytes] | None = None
    """The content of the file of one image, of formats that have one for each."""
    one_each: bool = False
    """Whether there is a file for each image though its content needs the photo as well."""
    lens: Callable[[Camera], Any] | None = None
    """Raises a ``CameraError`` for cameras that the format has no counterpart of."""
    beside: str = ""
    """What the name of a picture ends in that may be written beside the file of an image."""
    shows_gravity: bool = False
    """Whether it holds how a camera is turned, so that it cannot do without gravity."""
    own: Callable[[Path], bool] | None = None
    """Whether a file that exists is one to go on with: of a format whose files are added to."""

    @property
    def is_one_each(self) -> bool:
        """Whether there is a file for each image."""
        return self.one_each or self.each is not None

    def __call__(
        self, outcomes: Iterable[Outcome], path: str | Path, frame: Frame | None = None
    ) -> list[Path]:
        """frame: None: as its readers take pixels."""
        return self.write(outcomes, path, frame or self.frame)


FORMATS: dict[str, FileFormat] = {
    "json": FileFormat(
        json_lines.write,
        json_lines.FILE,
        json_lines.FRAME,
        json_lines.dumps,
        own=json_lines.is_ours,
    ),
    "csv": FileFormat(
        csv_table.write, csv_table.FILE, csv_table.FRAME, csv_table.dumps, own=csv_table.is_ours
    ),
    "colmap": FileFormat(
        colmap.write, colmap.FILE, colmap.FRAME, colmap.dumps, lens=colmap.as_colmap
    ),
    "colmap-database": FileFormat(
        colmap_database.write,
        colmap_database.FILE,
        colmap_database.FRAME,
        colmap_database.dumps,
        lens=colmap.as_colmap,
        own=colmap_database.is_database,
    ),
    "opencv": FileFormat(
        opencv.write, opencv.SUFFIX, opencv.FRAME, each=opencv.dumps, lens=opencv.as_opencv
    ),
    "ros": FileFormat(ros.write, ros.SUFFIX, ros.FRAME, each=ros.dumps, lens=opencv.as_opencv),
    "nerfstudio": FileFormat(
        nerfstudio.write,
        nerfstudio.FILE,
        nerfstudio.FRAME,
        nerfstudio.dumps,
        lens=opencv.as_opencv,
        shows_gravity=True,
    ),
    "blender": FileFormat(
        blender.write,
        blender.SUFFIX,
        scenes.FRAME,
        each=blender.dumps,
        beside=scenes.PICTURE,
        shows_gravity=True,
    ),
    "fspy": FileFormat(fspy.write, fspy.SUFFIX, scenes.FRAME, one_each=True, shows_gravity=True),
    "gltf": FileFormat(
        gltf.write,
        gltf.SUFFIX,
        scenes.FRAME,
        each=gltf.dumps,
        beside=scenes.PICTURE,
        shows_gravity=True,
    ),
    "usd": FileFormat(
        usd.write,
        usd.SUFFIX,
        scenes.FRAME,
        each=usd.dumps,
        beside=scenes.PICTURE,
        shows_gravity=True,
    ),
    "nuke": FileFormat(
        nuke.write,
        nuke.FILE,
        scenes.FRAME,
        nuke.dumps,
        beside=scenes.PICTURE,
        shows_gravity=True,
    ),
    "maya": FileFormat(
        maya.write,
        maya.SUFFIX,
        scenes.FRAME,
        each=maya.dumps,
        beside=scenes.PICTURE,
        shows_gravity=True,
    ),
    "hugin": FileFormat(
        hugin.write,
        hugin.SUFFIX,
        hugin.FRAME,
        each=hugin.dumps,
        lens=to_ptlens,
        shows_gravity=True,
    ),
    "lensfun": FileFormat(
        lensfun.write, lensfun.FILE, lensfun.FRAME, lensfun.dumps, lens=to_ptlens
    ),
    "exif": FileFormat(exif.write, exif.SUFFIX, exif.FRAME, one_each=True, shows_gravity=True),
    "xmp": FileFormat(xmp.write, xmp.SUFFIX, xmp.FRAME, each=xmp.dumps, shows_gravity=True),
    "realityscan": FileFormat(
        realityscan.write,
        realityscan.SUFFIX,
        realityscan.FRAME,
        each=realityscan.dumps,
        lens=realityscan.to_realityscan,
    ),
}
"""The formats by the names that users give them."""


def files_of(format: str, images: Sequence[str], path: str | Path) -> list[Path]:
    """The files that a writer would write for images of these names, were all of them calibrated;
    the first one says where."""
    known = FORMATS[format]
    if known.is_one_each:
        files = one_each(images, path, known.file)
        names = [Path(image).name for image in images] if known.beside else []
        beside = [
            f.with_name(f"{name}{known.beside}") for f, name in zip(files, names, strict=False)
        ]
        return [*files, *beside]
    file = destination(path, known.file)
    pictures = one_each(images, file.parent, known.beside) if known.beside and images else ()
    return [file, *pictures]


__all__ = [
    "FORMATS",
    "FileFormat",
    "colmap",
    "colmap_database",
    "csv_table",
    "files_of",
    "json_lines",
    "nerfstudio",
    "opencv",
    "ros",
]
