"""The file beside weights that tells how wrong their answers are, photo by photo."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources.abc import Traversable
from pathlib import Path

from geocalib.errors import WeightsError
from geocalib.files import write_text
from geocalib.nets.weights.catalogue import PACKAGES, SIGMAS, is_here, packaged
from geocalib.solver.sigma_calibration import LearntSigmas

WEIGHTS_KEY = "weights"
"""In the file: the SHA-256 of the weights that it was fitted to."""


@cache
def find_sigmas(sha256: str | None) -> LearntSigmas | None:
    """What was learnt of the sigmas of the weights with this checksum; None if nothing was."""
    for resource in (packaged(name, SIGMAS) for name in filter(is_here, PACKAGES)):
        if resource.is_file():
            weights, learnt = read_sigmas(resource)
            if weights == sha256:
                return learnt
    return None


def read_sigmas(file: Traversable) -> tuple[str, LearntSigmas]:
    """The SHA-256 of the weights, and what was learnt of them."""
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
        return values[WEIGHTS_KEY], LearntSigmas.from_dict(values)
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise WeightsError(f"{file} is damaged ({error}); install geocalib again") from error


def save_sigmas(path: Path, sha256: str, learnt: LearntSigmas) -> None:
    """Write what was learnt of the weights with this checksum."""
    values = {WEIGHTS_KEY: sha256, **learnt.to_dict()}
    write_text(path, json.dumps(values, indent=1) + "\n")
