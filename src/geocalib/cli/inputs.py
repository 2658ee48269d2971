"""Which images a command is asked about: files, folders, patterns, and lists of them."""

from __future__ import annotations

import glob
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

IMAGE_SUFFIXES = frozenset(
    (
        *(".avif", ".bmp", ".gif", ".heic", ".heif", ".jfif", ".jp2", ".jpeg", ".jpg"),
        *(".pbm", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"),
    )
)
"""What is taken from folders and patterns; a file that is named is taken as it is."""

DRAWING = ".geocalib.png"
"""The end of the names of our own drawings, which are not taken for photographs."""

STANDARD_INPUT = "-"


@dataclass(frozen=True)
class Found:
    """What the paths of a command stand for."""

    images: tuple[str, ...]
    """Each once, in the order given; folders in natural order. Those that do not exist too."""
    missing: dict[str, str]
    """The images that do not exist, and why there are none, in one line each."""
    problems: tuple[str, ...]
    """Paths that stand for no image at all, in one line each."""


def find_images(paths: Sequence[str], recursive: bool = False) -> Found:
    """The images of files, folders, patterns that the shell left alone, and ``-``: a list of
    all of these on standard input, one per line.

    recursive: look into the folders of folders, too.
    """
    images: dict[str, None] = {}
    missing: dict[str, str] = {}
    problems: list[str] = []
    for given in _expanded(paths):
        path = str(Path(given))
        if os.path.isdir(path):
            try:
                names = list(_folder(path, recursive))
            except OSError as error:
                problems.append(f"{given} cannot be listed ({error.strerror}); check it")
                continue
            if not names:
                hint = "" if recursive else "; --recursive looks into its folders"
                problems.append(f"{given} holds no image{hint}")
        elif not os.path.lexists(path) and glob.has_magic(path):
            matches = glob.iglob(path, recursive=True)
            names = _natural(name for name in matches if _is_image(name) and os.path.isfile(name))
            if not names:
                problems.append(f"{given} matches no image; check the pattern")
        else:
            names = [path]
            if not os.path.exists(path):
                missing[path] = f"{given} does not exist; check the path"
        # One spelling each: without ./ and double slashes.
        images.update(dict.fromkeys(str(Path(name)) for name in names))
    if not images and not problems:
        problems.append("the list on standard input is empty; give it a path per line")
    return Found(tuple(images), missing, tuple(problems))


def chunks(images: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    """The images in runs of at most that many."""
    return (images[i : i + size] for i in range(0, len(images), size))


def _expanded(paths: Sequence[str]) -> Iterator[str]:
    """The paths, with the lines of standard input in the place of ``-``."""
    for path in paths:
        if path == STANDARD_INPUT:
            # File names are bytes: they need not be valid text.
            lines = (os.fsdecode(line).rstrip("\r\n") for line in sys.stdin.buffer)
            yield from (line for line in lines if line.strip())
        else:
            yield path


def _folder(folder: str, recursive: bool) -> Iterator[str]:
    """The images of a folder: its own before those of the folders in it."""
    with os.scandir(folder) as entries:
        visible = [entry for entry in entries if not entry.name.startswith(".")]
    # Links to folders are not followed: they may lead in circles.
    folders = [entry.path for entry in visible if entry.is_dir(follow_symlinks=False)]
    yield from _natural(e.path for e in visible if _is_image(e.name) and e.is_file())
    if recursive:
        for inner in _natural(folders):
            yield from _folder(inner, recursive)


def _is_image(name: str) -> bool:
    return os.path.splitext(name)[1].lower() in IMAGE_SUFFIXES and not name.endswith(DRAWING)


def _natural(names: Iterable[str]) -> list[str]:
    """Sorted as people count: 2 before 10."""
    return sorted(names, key=_natural_key)


def _natural_key(name: str) -> tuple[list[tuple[int, str]], str]:
    parts = re.split(r"([0-9]+)", name.casefold())
    # Odd parts are digits; the name itself tells apart what only differs by case or zeros.
    return [(int(p), "") if i % 2 else (0, p) for i, p in enumerate(parts)], name
