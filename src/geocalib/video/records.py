"""A line of JSON for each frame. An unfinished file of them is what a run is resumed from."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from geocalib.calibration import Calibration, Outcome
from geocalib.errors import FormatError
from geocalib.formats.record import read_outcome
from geocalib.nets.download import replacing
from geocalib.video.track import Tracked

SCHEMA = "geocalib-video/1"


def to_line(tracked: Tracked) -> bytes:
    """The record of a frame; ``raw`` and ``smoothed`` are laid out as those of photos."""
    record = {
        "schema": SCHEMA,
        "frame": tracked.index,
        "time": tracked.time,
        "status": tracked.status,
        "segment": tracked.segment,
        "smoothed": None if tracked.smoothed is None else tracked.smoothed.to_dict(),
        "raw": tracked.raw.to_dict(),
    }
    return json.dumps(record, allow_nan=False).encode("ascii") + b"\n"


def write(tracked: Iterable[Tracked], path: Path) -> None:
    """A new file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        for frame in tracked:
            file.write(to_line(frame))


@contextmanager
def appending(path: Path) -> Iterator[Callable[[Tracked], None]]:
    """A function that adds a frame to a file, each handed to the system before the next begins.

    What an interrupted run has left of its last line is removed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+") as file:
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)

        def append(tracked: Tracked) -> None:
            file.write(to_line(tracked))
            file.flush()

        yield append


def read(path: str | Path) -> list[Tracked]:
    """The frames of a file; a last line that was cut short is left out."""
    lines = Path(path).read_bytes().splitlines(keepends=True)
    return [
        _tracked(line, f"{path}, line {number}")
        for number, line in enumerate(lines, 1)
        if line.endswith(b"\n")
    ]


def answers(path: Path, camera_model: str) -> dict[int, Outcome]:
    """What a file has already of the frames of a video, by their index; failures are left out."""
    if not path.exists():
        return {}
    found: dict[int, Outcome] = {}
    for frame in read(path):
        if not isinstance(frame.raw, Calibration):
            continue
        if frame.raw.camera_model != camera_model:
            raise FormatError(
                f"{path} holds answers for {frame.raw.camera_model}, not {camera_model}; delete "
                "it, or choose another output"
            )
        found[frame.index] = frame.raw
    return found


def _tracked(line: bytes, source: str) -> Tracked:
    try:
        record: dict[str, Any] = json.loads(line)
        if record["schema"] != SCHEMA:
            raise FormatError(f"{source}: unknown schema {record['schema']!r}; want {SCHEMA!r}")
        smoothed = record["smoothed"]
        return Tracked(
            int(record["frame"]),
            float(record["time"]),
            read_outcome(record["raw"], source),
            None if smoothed is None else Calibration.from_dict(smoothed, source),
            record["status"],
            int(record["segment"]),
        )
    except FormatError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError):
        raise FormatError(f"{source}: this is no frame of a video; delete the file") from None
