"""What a network said of pictures, kept in a file, which a command goes on from that was
interrupted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from geocalib.errors import ConfigError
from geocalib.pipeline.engines.sigmas import WEIGHTS_KEY

Record = dict[str, Any]
"""What was found of the picture that it names as ``image``."""


def read_kept(path: Path, weights: str | None) -> dict[str, Record]:
    """The records of a file by image; one that is not there begins with the weights, by their
    SHA-256."""
    if not path.exists():
        path.write_text(json.dumps({WEIGHTS_KEY: weights}) + "\n")
    first, *lines = path.read_text().splitlines()
    if json.loads(first) != {WEIGHTS_KEY: weights}:
        raise ConfigError(f"{path} holds answers of other weights; name another file")
    # The last line of a run that was interrupted may be half a line.
    whole = [line for line in lines if line.endswith("}")]
    if whole != lines:
        path.write_text("\n".join([first, *whole]) + "\n")
    return {record["image"]: record for record in map(json.loads, whole)}
