"""The weights that have names, and which ones a name or a path means, without loading them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.resources import as_file, files
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path

from geocalib.errors import MissingPackageError, WeightsError
from geocalib.files import sha256_of
from geocalib.nets.weights.card import WeightCard

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

PACKAGES = {"lean": "geocalib", "large": "geocalib_large"}
"""The weights that come in a package, and in which one: in its folder "weights"."""

FOCAL_HEAD = "opinion"
"""Names the files, beside packaged weights, of a second network (``nets.focal_head``)."""

SIGMAS = "sigmas.json"
"""The file, beside packaged weights, of what was learnt of their errors (``pipeline.sigmas``)."""

WEIGHT_NAMES = (*PACKAGES, *PUBLISHED)


def is_here(name: str) -> bool:
    """Whether the package of weights is installed."""
    return find_spec(PACKAGES[name]) is not None


def how_to_get(name: str) -> str:
    """What to do about weights whose package is missing."""
    wheel = PACKAGES[name].replace("_", "-")
    return f"in a package of their own: pip install ./{name} in a checkout, or the wheel {wheel}"


def packaged(name: str, file: str = "") -> Traversable:
    """The weights that come in a package, or another file of that name beside them; it may be
    missing there."""
    if not is_here(name):
        raise MissingPackageError(f"the weights {name} are {how_to_get(name)}")
    return files(PACKAGES[name]) / "weights" / (file or f"{name}.safetensors")


def identify(weights: str | Path) -> str:
    """Words that are equal for equal weights of ``load_network``, without loading or fetching."""
    if isinstance(weights, str) and weights in PUBLISHED:
        return weights
    named = isinstance(weights, str) and weights in PACKAGES
    if weights == "lean" and not packaged("lean").is_file():
        return "lean, never trained"
    with weights_file(weights) as path:
        short = sha256_of(path)[:16]
    if not named:
        return short
    for beside in (f"{FOCAL_HEAD}.safetensors", SIGMAS):
        resource = packaged(str(weights), beside)
        if resource.is_file():
            with as_file(resource) as path:
                short += f" {sha256_of(path)[:16]}"
    return f"{weights} {short}"


def check_known(weights: str | Path) -> None:
    """An error that lists the names there are, where weights are neither a name nor a file."""
    if not (isinstance(weights, str) and weights in WEIGHT_NAMES):
        existing_file(weights)


@contextmanager
def weights_file(weights: str | Path) -> Iterator[Path]:
    """The file of weights that need not be fetched."""
    if isinstance(weights, str) and weights in PACKAGES:
        with as_file(packaged(weights)) as path:
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
