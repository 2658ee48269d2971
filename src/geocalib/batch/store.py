"""Files wherever they lie: on this machine, or in an object store that fsspec knows."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import BinaryIO

from geocalib.errors import ConfigError, MissingPackageError, how_to_get
from geocalib.files.whole import PARTIAL, write_bytes


class StorePath:
    """A path, local or with a scheme as s3://bucket/folder."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.local = "://" not in url
        if self.local:
            self.path = os.fspath(Path(url))
            return
        try:
            self._files, self.path = import_module("fsspec").core.url_to_fs(url)
        except ModuleNotFoundError as error:
            raise MissingPackageError(
                f"{url} needs {error.name}; {how_to_get('batch')}, and what fsspec wants"
            ) from None
        except ValueError as error:  # As it answers to schemes that it does not know.
            raise ConfigError(f"{url} cannot be reached: {error}") from None

    def __truediv__(self, name: str) -> StorePath:
        return StorePath(f"{self.url.rstrip('/')}/{name}")

    def open(self) -> BinaryIO:
        """Open the file to read its bytes."""
        if self.local:
            return Path(self.path).open("rb")
        opened: BinaryIO = self._files.open(self.path, "rb")
        return opened

    def read(self) -> bytes:
        """Read all bytes of the file."""
        with self.open() as file:
            return file.read()

    def write(self, content: bytes) -> None:
        """Whole or not at all: object stores know no half files, and here one is renamed."""
        if self.local:
            write_bytes(Path(self.path), content)
        else:
            self._files.pipe_file(self.path, content)

    def sweep(self) -> None:
        """Remove from a folder what was being written when a process was killed."""
        if self.local:
            for name in Path(self.path).glob(f"*{PARTIAL}"):
                name.unlink()

    @property
    def exists(self) -> bool:
        return os.path.exists(self.path) if self.local else bool(self._files.exists(self.path))

    @property
    def is_folder(self) -> bool:
        return os.path.isdir(self.path) if self.local else bool(self._files.isdir(self.path))

    def files(self) -> list[str]:
        """Everything in a folder and in its folders, by paths as ``StorePath`` takes them."""
        if not self.local:
            return list(map(self._named, self._files.find(self.path)))
        every = os.walk(self.path)
        return [os.path.join(folder, name) for folder, _, names in every for name in names]

    def matches(self) -> list[str]:
        """The files of a pattern, likewise."""
        if not self.local:
            return list(map(self._named, self._files.glob(self.path)))
        path = Path(self.path)
        found = Path(path.anchor or ".").glob(str(path.relative_to(path.anchor)))
        return [str(file) for file in found if file.is_file()]

    def _named(self, path: str) -> str:
        return str(self._files.unstrip_protocol(path))
