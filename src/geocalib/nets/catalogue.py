"""The weights that have names, and which ones a name or a path means, without loading them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.resources import as_file, files
from pathlib import Path

from geocalib.errors import WeightsError
from geocalib.files import sha256_of
from geocalib.nets.card import WeightCard

_RELEASE = "https://github.com/cvg/GeoCalib/releases/download/v1.0/"

_PINHOLE = WeightCard(
    name="published-pinhole",
    architecture="published",
    largest_aspect=math.inf,
    camera_models="trained on pinhole cameras alone",
    trained=True,
    licence="CC-BY-4.0",
    source="Veicht, Sarlin, Lindenberger, Pollefeys: GeoCalib, ECCV 2024",
    description="the published network for images without distortion",
    url=_RELEASE + "geocalib-pinhole.tar",
)

PUBLISHED = {
    "published-pinhole": _PINHOLE,
    "published-distorted": replace(
        _PINHOLE,
        name="published-distorted",
        legacy_up_field=True,
        camera_models="trained on simple_radial cameras",
        description="the published network for images with radial distortion",
        url=_RELEASE + "geocalib-distorted.tar",
    ),
}
"""The published weights by name."""

WEIGHT_NAMES = ("lean", *PUBLISHED)

LEAN = "weights/lean.safetensors"
"""The packaged weights, in the package."""


def identify(weights: str | Path) -> str:
    """Words that are equal for equal weights of ``load_network``, without loading or fetching."""
    if isinstance(weights, str) and weights in PUBLISHED:
        return weights
    if weights == "lean" and not (files("geocalib") / LEAN).is_file():
        return "lean, never trained"
    with weights_file(weights) as path:
        short = sha256_of(path)[:16]
    return f"lean {short}" if weights == "lean" else short


@contextmanager
def weights_file(weights: str | Path) -> Iterator[Path]:
    """The file of weights that need not be fetched."""
    if weights == "lean":
        with as_file(files("geocalib") / LEAN) as path:
            yield path
    else:
        yield existing_file(weights)


def existing_file(weights: str | Path) -> Path:
    """The file of weights that have no name."""
    path = Path(weights)
    if not path.is_file():
        raise WeightsError(
            f"no weights are named {str(weights)!r}, and no file is; there are "
            f"{', '.join(WEIGHT_NAMES)}"
        )
    return path
