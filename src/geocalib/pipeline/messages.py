"""Objects between processes, over pipes. Arrays are sent as they lie in memory, without a copy."""

from __future__ import annotations

import pickle
from typing import IO, Any


def packed(thing: object) -> list[Any]:
    """What to write, in order: the sizes of what follows, the thing, and its arrays."""
    buffers: list[pickle.PickleBuffer] = []
    head = pickle.dumps(thing, 5, buffer_callback=buffers.append)
    arrays = [buffer.raw() for buffer in buffers]
    sizes = pickle.dumps([len(head), *(array.nbytes for array in arrays)])
    return [sizes, head, *arrays]


def send(file: IO[bytes], parts: list[Any]) -> None:
    """Write what was packed."""
    for part in parts:
        file.write(part)
    file.flush()


def receive(file: IO[bytes]) -> Any:
    """The next thing; ``EOFError`` where there is none."""
    length, *sizes = pickle.load(file)
    head, *arrays = (_filled(file, size) for size in (length, *sizes))
    return pickle.loads(head, buffers=arrays)


def _filled(file: IO[bytes], size: int) -> bytearray:
    content = bytearray(size)
    view, at = memoryview(content), 0
    while at < size:
        count = file.readinto(view[at:])  # type: ignore[attr-defined]
        if not count:
            raise EOFError
        at += count
    return content
