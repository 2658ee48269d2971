"""``geocalib info``: what is installed, and what there is to choose from."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from importlib.util import find_spec

from rich.table import Table
from rich.text import Text

from geocalib import console
from geocalib.cameras import MODELS
from geocalib.formats import FORMATS
from geocalib.nets.weights.card import WeightCard
from geocalib.nets.weights.catalogue import PACKAGES, PUBLISHED, how_to_get, is_here
from geocalib.nets.weights.download import cache_folder
from geocalib.pipeline.engines.onnx import PROVIDERS, OnnxEngine, available
from geocalib.pipeline.parallel.threads import threads


def run() -> None:
    """Print versions, devices, weights, models and formats."""
    show(_facts())


def show(facts: Iterable[tuple[str, str]]) -> None:
    """Names and what they are, one below the other."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts:
        table.add_row(Text(name), Text(console.legible(value, sys.stdout)))
    console.standard_output().print(table, markup=False)


def _facts() -> Iterator[tuple[str, str]]:
    yield "geocalib", version("geocalib")
    yield "python", platform.python_version()
    yield "onnxruntime", version("onnxruntime")
    yield "torch", version("torch") if find_spec("torch") else "not installed"
    yield "devices", ", ".join(_devices())
    for name in PACKAGES:
        here = is_here(name)
        yield (
            f"weights {name}",
            _weights(OnnxEngine(name, "cpu").card) if here else how_to_get(name),
        )
    for card in PUBLISHED.values():
        yield f"weights {card.name}", _weights(card)
    yield "camera models", ", ".join(MODELS)
    yield "formats", ", ".join(FORMATS)
    yield "cache folder", str(cache_folder())


def _devices() -> Iterator[str]:
    yield f"cpu ({console.count(threads(), 'thread')})"
    yield from (kind for kind, name in PROVIDERS.items() if kind != "cpu" and name in available())
    if find_spec("torch") is None:
        return
    import torch

    for i in range(torch.cuda.device_count()):
        yield f"cuda:{i} ({torch.cuda.get_device_name(i)})"
    if torch.backends.mps.is_available():
        yield "mps"


def _weights(card: WeightCard) -> str:
    trained = "trained" if card.trained else "PLACEHOLDER, never trained"
    place = "included"
    if card.url is not None:
        held = (cache_folder() / card.url.rpartition("/")[2]).is_file()
        place = "in the cache folder" if held else "downloaded at first use"
    return f"{trained}, {card.licence}, {place}"
