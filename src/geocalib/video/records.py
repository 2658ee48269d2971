"""The file of a video's answers: a line of JSON per frame, to which a resumed run appends."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from geocalib.errors import FormatError, OutputError
from geocalib.files import is_special, naming, replacing
from geocalib.files.guard import MEND
from geocalib.files.snapshot import file_stat, unchanged
from geocalib.pipeline.runs.journal import Request, check_record, photo_of, to_text
from geocalib.result.calibration import Calibration, Outcome, read_outcome
from geocalib.result.schema import ORIGIN, RECORD, Field, Null, Scalar, Struct
from geocalib.video.track import Tracked

SCHEMA = "geocalib-video/3"
OLDER = ("geocalib-video/1", "geocalib-video/2")
"""Their lines hold records of earlier versions."""

FRAME = Struct(
    (
        Field("schema", Scalar.TEXT, Null.NEVER, f"`{SCHEMA}`"),
        Field("frame", Scalar.COUNT, Null.NEVER, "its place in the file, from 0"),
        Field("time", Scalar.NUMBER, Null.NEVER, "from the first frame", "seconds"),
        Field(
            "status",
            Scalar.TEXT,
            Null.NEVER,
            "`ok`; `outlier`: contradicts its neighbours; `failed`: no answer",
        ),
        Field(
            "segment",
            Scalar.COUNT,
            Null.NEVER,
            "number of lens changes (zooms, cuts) so far",
        ),
        Field(
            "smoothed",
            RECORD,
            Null.POSSIBLE,
            "the answer by all frames: a record as of a photo",
        ),
        Field("raw", RECORD, Null.NEVER, "the answer by this frame alone"),
        *ORIGIN,
    )
)
"""The layout of a line. The request and the file are keys of the line, not of its two records."""


Origin = Mapping[str, Any]
"""The request and the file that it was about, the same for all frames of a file."""


def origin_of(request: Request, video: str | None) -> Origin:
    """The origin of the frames of a video, or of a camera."""
    files = () if video is None else (video,)
    photo = photo_of(files, file_stat(files)) if files else None
    return {"request": to_text(request), "photo": photo}


def to_line(tracked: Tracked, origin: Origin) -> bytes:
    """The record of a frame; ``raw`` and ``smoothed`` are laid out as those of photos."""
    record = {
        "schema": SCHEMA,
        "frame": tracked.index,
        "time": tracked.time,
        "status": tracked.status,
        "segment": tracked.segment,
        "smoothed": None if tracked.smoothed is None else tracked.smoothed.to_dict(),
        "raw": tracked.raw.to_dict(),
        **origin,
    }
    return json.dumps(record, allow_nan=False).encode("ascii") + b"\n"


def write(tracked: Iterable[Tracked], path: Path, origin: Origin) -> None:
    """A new file, whole or not at all."""
    with replacing(path) as file:
        for frame in tracked:
            file.write(to_line(frame, origin))


@contextmanager
def appending(path: Path, origin: Origin) -> Iterator[Callable[[Tracked], None]]:
    """A function that adds a frame to a file, each handed to the system before the next begins.

    What an interrupted run has left of its last line is removed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with naming(path), path.open("ab+") as file:
        if not is_special(path):
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)

        def append(tracked: Tracked) -> None:
            file.write(to_line(tracked, origin))
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


def answers(path: Path, request: Request, video: str) -> dict[int, Outcome]:
    """What a file has already of the frames of a video, by their index; failures are left out.

    An error if it answers another question, or is of another video.
    """
    if not path.exists() or is_special(path):
        return {}
    frames = read(path)
    origins = {line for line in map(_origin, path.read_bytes().splitlines(keepends=True)) if line}
    for origin in map(json.loads, origins):
        check_record(origin, request, path, SCHEMA)
        if not unchanged(origin["photo"], (video,)):
            raise OutputError(f"{path} is of another video than {video} is now; {MEND}")
    return {frame.index: frame.raw for frame in frames if isinstance(frame.raw, Calibration)}


def is_ours(path: Path) -> bool:
    """Whether a file begins as those of ``write`` do."""
    starts = tuple(f'{{"schema": "{schema}"'.encode() for schema in (SCHEMA, *OLDER))
    with path.open("rb") as file:
        return file.read(len(starts[0])).startswith(starts)


def _origin(line: bytes) -> str | None:
    """The origin of a whole line and its schema, as JSON: equal for equal ones."""
    if not line.endswith(b"\n"):
        return None
    record = json.loads(line)
    return json.dumps({key: record.get(key) for key in ("schema", "request", "photo")})


def _tracked(line: bytes, source: str) -> Tracked:
    try:
        record: dict[str, Any] = json.loads(line)
        if record["schema"] not in (SCHEMA, *OLDER):
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
