"""Image files by their names and kinds, before anything is opened.

Light on purpose: commands look for their images before they load all else.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from typing import TypeVar

from geocalib.errors import ImageError

Source = TypeVar("Source")

IMAGE_SUFFIXES = frozenset(
    (
        *(".avif", ".bmp", ".gif", ".heic", ".heif", ".jfif", ".jp2", ".jpeg", ".jpg"),
        *(".pbm", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"),
    )
)
"""What is taken from folders and patterns; a file that is named is taken as it is."""

RAW_SUFFIXES = frozenset(
    (
        *(".3fr", ".arw", ".cr2", ".cr3", ".crw", ".dcr", ".dng", ".erf", ".iiq", ".kdc", ".mef"),
        *(".mrw", ".nef", ".nrw", ".orf", ".pef", ".raf", ".raw", ".rw2", ".rwl", ".sr2", ".srf"),
        *(".srw", ".x3f"),
    )
)
"""What cameras call the readings of their sensors. Many are TIFF files whose first picture is a
thumbnail, which must not pass for the photo."""

EXPORT = "RAW is not read: export it as JPEG or TIFF"


def is_raw(name: str) -> bool:
    """Whether a file is called like one of RAW data."""
    return os.path.splitext(name)[1].lower() in RAW_SUFFIXES


def is_url(name: str) -> bool:
    """Whether a name says where on the web something is: not only that of a file on a drive."""
    return re.match(r"[a-z][a-z0-9+.-]+:/", name, re.IGNORECASE) is not None


def not_fetched(name: str) -> str:
    """What is said of a file on the web."""
    return f"{name} is on the web, and nothing is downloaded: fetch it first"


def why_not_a_file(path: str) -> str | None:
    """Why there is no file to open at a path, in one line; None if there is one.

    Opening a pipe would wait for somebody to write into it, and a device may never end.
    """
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        if is_url(path):
            return not_fetched(path)
        if os.path.islink(path):
            return f"{path} is a link to {os.readlink(path)}, which does not exist; mend the link"
        return f"{path} does not exist; check the path"
    except (OSError, ValueError) as cause:
        if isinstance(cause, OSError) and cause.errno == errno.ELOOP:
            return f"{path} is a link that leads in a circle; remove it"
        reason = cause.strerror if isinstance(cause, OSError) else cause
        return f"{path} cannot be opened ({reason}); check the path"
    if stat.S_ISDIR(mode):
        return f"{path} is a folder; name the images in it"
    if not stat.S_ISREG(mode):
        return f"{path} is a pipe, a socket or a device; save the photo in a file"
    return None


def content_of(source: Source) -> Source | bytes:
    """The bytes of a file that is open, from where it stands; any other source as it is."""
    if isinstance(source, bytearray | memoryview):
        return bytes(source)
    read = getattr(source, "read", None)
    if read is None:
        return source
    content = read()
    if not isinstance(content, bytes):
        raise ImageError("a file of an image must be open for bytes: open(path, 'rb')")
    return content
