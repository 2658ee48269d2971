"""YAML of other programs, read in Python alone: what a damaged file does to OpenCV's own parser
ends the process."""

from __future__ import annotations

import math
from itertools import accumulate
from pathlib import Path
from typing import Any

from geocalib.errors import FormatError

DEEPEST = 100
"""Most levels of brackets within brackets."""
STEPS = {"[": 1, "{": 1, "]": -1, "}": -1}

MOST_VALUES = 100_000
"""Most values in a file."""

UNREADABLE = "numbers of thousands of digits, or lists in lists without end"
"""What parsers give up on."""

OPENCV_MATRIX = "tag:yaml.org,2002:opencv-matrix"


def load_yaml(content: str, file: str | Path) -> Any:
    """The values of a file, those of OpenCV's matrices as mappings of rows, cols, dt and data."""
    import yaml

    class Loader(yaml.SafeLoader):  # type: ignore[misc]  # PyYAML is not typed
        pass

    Loader.add_constructor(OPENCV_MATRIX, lambda loader, node: loader.construct_mapping(node, True))
    # OpenCV's directive, which other programs want in kalibr's files too, is none that YAML knows.
    lines = ["" if line.startswith("%YAML:") else line for line in content.split("\n")]
    try:
        if max(accumulate(STEPS.get(sign, 0) for sign in content), default=0) > DEEPEST:
            raise ValueError  # The parser would take minutes to say so.
        values = yaml.load("\n".join(lines), Loader)
        if _expanded(values, {}) > MOST_VALUES:
            raise ValueError
        return values
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f", line {mark.line + 1}" if mark else ""
        why = getattr(error, "problem", None) or "it cannot be parsed"
        raise FormatError(f"{file}{place}: is no YAML: {why}") from None
    except (ValueError, RecursionError):
        raise FormatError(f"{file}: cannot be read: it holds {UNREADABLE}") from None


def _expanded(value: Any, known: dict[int, float]) -> float:
    """The number of values, counting those that YAML repeats by an alias each time. A few lines
    may expand to billions, which must not be visited; a value that holds itself is infinite."""
    if not isinstance(value, list | dict):
        return 1
    if id(value) not in known:
        known[id(value)] = math.inf
        inner = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_expanded(part, known) for part in inner)
    return known[id(value)]
