"""The images that a command is given: files, folders, patterns, and lists of them."""

from __future__ import annotations

import atexit
import glob
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from geocalib.files.image_files import EXPORT, IMAGE_SUFFIXES, is_raw, is_url, why_not_a_file
from geocalib.records import dataclass

if TYPE_CHECKING:
    from geocalib.result.calibration import Outcome

DRAWING = ".geocalib.png"
"""The end of the names of our own drawings, which are not taken for photographs."""

STANDARD_INPUT = "-"

KEPT = "geocalib-standard-input"
"""What the file is called that an image on standard input is kept in."""

HEAD = 4096
"""Bytes at the start of a file: any image has a zero among them, and no path does."""


@dataclass(frozen=True)
class FoundImages:
    """The images that the paths of a command name."""

    images: tuple[str, ...]
    """Each once, in the order given; folders in natural order. Those that are missing too."""
    missing: dict[str, str]
    """The images that there is nothing to open for, and why, in one line each."""
    problems: tuple[str, ...]
    """Paths without an image, or that cannot be read, in one line each."""
    notes: tuple[str, ...]
    """What was passed over, in one line for each path."""


def find_images(paths: Sequence[str], recursive: bool = False) -> FoundImages:
    """The images of files, folders, patterns that the shell left alone, and ``-``: an image on
    standard input, or a list of all of these there, one per line.

    recursive: look into the folders of folders, too.
    """
    search = _PathSearch(recursive)
    for path in paths:
        if path == STANDARD_INPUT:
            search.add_standard_input()
        else:
            search.add(path)
    return FoundImages(
        tuple(search.images), search.missing, tuple(search.problems), tuple(search.notes)
    )


class _PathSearch:
    """What was found so far."""

    def __init__(self, recursive: bool) -> None:
        self.recursive = recursive
        self.images: dict[str, None] = {}
        self.missing: dict[str, str] = {}
        self.problems: list[str] = []
        self.notes: list[str] = []

    def add_standard_input(self) -> None:
        """The image on standard input, or the paths there, one per line."""
        if sys.stdin is None:
            self.problems.append("standard input is closed; give it a list of paths")
            return
        content = sys.stdin.buffer.read()
        if b"\0" in content[:HEAD]:
            self._add_file(_kept(content))
            return
        # File names are bytes: they need not be valid text.
        lines = [os.fsdecode(line).rstrip("\r") for line in content.split(b"\n")]
        given = [line for line in lines if line.strip()]
        if not given:
            self.problems.append("the list on standard input is empty; give it a path per line")
        for path in given:
            self.add(path)

    def add(self, given: str) -> None:
        """A file, a folder or a pattern."""
        path = str(Path(given))
        if not given:
            self.problems.append("a path is empty; name a photo, or . for this folder")
        elif is_url(given) and (reason := why_not_a_file(given)) is not None:
            self.images[given] = None
            self.missing[given] = reason
        elif os.path.isdir(path):
            before, failed = len(self.images), len(self.problems)
            raw = self._add_folder(path)
            if len(self.images) == before and len(self.problems) == failed:
                hint = "" if self.recursive else "; --recursive looks into its folders"
                self._add_nothing(given, "holds no image", hint, raw)
            elif raw:
                self._pass_over(given, raw)
        elif not os.path.lexists(path) and glob.has_magic(path):
            matches = list(_matches(path))
            raw = sum(map(is_raw, matches))
            images = [name for name in matches if _is_image(name)]
            if not images:
                self._add_nothing(given, "matches no image", "; check the pattern", raw)
            elif raw:
                self._pass_over(given, raw)
            for name in _natural(images):
                self._add_file(name)
        else:
            self._add_file(path)

    def _add_folder(self, folder: str) -> int:
        """The images of a folder, its own before those of the folders in it; how many RAW files
        there are. A folder that cannot be listed is a problem of its own."""
        try:
            with os.scandir(folder) as entries:
                visible = [entry for entry in entries if not _is_hidden(entry.name)]
        except OSError as error:
            self.problems.append(f"{folder} cannot be listed ({error.strerror}); check it")
            return 0
        # Links to folders are not followed: they may lead in circles.
        folders = [entry.path for entry in visible if entry.is_dir(follow_symlinks=False)]
        for name in _natural(entry.path for entry in visible if _is_image(entry.name)):
            if not os.path.isdir(name):
                self._add_file(name)
        raw = sum(is_raw(entry.name) and not os.path.isdir(entry.path) for entry in visible)
        if self.recursive:
            raw += sum(map(self._add_folder, _natural(folders)))
        return raw

    def _add_file(self, name: str) -> None:
        # One spelling each: without ./ and double slashes.
        path = str(Path(name))
        self.images[path] = None
        if (reason := why_not_a_file(path)) is not None:
            self.missing[path] = reason

    def _add_nothing(self, given: str, what: str, hint: str, raw: int) -> None:
        """A path without an image, or with some that cannot be read."""
        reason = f" but {_raw_files(raw)}; {EXPORT}" if raw else hint
        self.problems.append(f"{given} {what}{reason}")

    def _pass_over(self, given: str, raw: int) -> None:
        self.notes.append(f"{given}: {_raw_files(raw)} passed over; {EXPORT}")


def name_of(image: str) -> str:
    """The name of an image as the command line had it."""
    return STANDARD_INPUT if os.path.basename(image) == KEPT else image


def as_given(outcome: Outcome) -> Outcome:
    """An outcome that names its image as the command line did: ``-`` for standard input."""
    image = outcome.image
    if image is None or name_of(image) == image:
        return outcome
    if outcome.ok:
        return replace(outcome, image=STANDARD_INPUT)
    return replace(outcome, image=STANDARD_INPUT, error=outcome.error.replace(image, "this image"))


def _kept(content: bytes) -> str:
    """The path of a file of that content, which goes when the program ends."""
    folder = TemporaryDirectory(prefix="geocalib-")
    atexit.register(folder.cleanup)
    path = Path(folder.name) / KEPT
    path.write_bytes(content)
    return str(path)


def _raw_files(count: int) -> str:
    return f"{count} RAW file{'' if count == 1 else 's'}"


def _matches(pattern: str) -> Iterator[str]:
    """The files that match a pattern, without folders. ** follows no links, which may lead in
    circles; hidden names are left out where the pattern has none."""
    path = Path(pattern)
    wanted = str(path.relative_to(path.anchor)) + ("/*" if path.name == "**" else "")
    hidden_too = any(map(_is_hidden, path.parts))
    for match in Path(path.anchor).glob(wanted):
        if (hidden_too or not any(map(_is_hidden, match.parts))) and not match.is_dir():
            yield str(match)


def _is_hidden(part: str) -> bool:
    return part.startswith(".") and part != ".."


def _is_image(name: str) -> bool:
    return os.path.splitext(name)[1].lower() in IMAGE_SUFFIXES and not name.endswith(DRAWING)


def _natural(names: Iterable[str]) -> list[str]:
    """Sorted as people count: 2 before 10."""
    return sorted(names, key=_natural_key)


def _natural_key(name: str) -> tuple[list[tuple[int, str]], str]:
    parts = re.split(r"([0-9]+)", name.casefold())
    # Odd parts are digits; the name itself tells apart what only differs by case or zeros.
    return [(int(p), "") if i % 2 else (0, p) for i, p in enumerate(parts)], name
