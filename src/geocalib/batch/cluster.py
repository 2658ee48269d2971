"""The parts of a plan on a cluster, by Ray Data: each stage on the machines that it needs.

Pieces of parts flow from tasks that read and prepare, by actors that hold the network, on a GPU
where the cluster has any, to tasks that fit. What a lost machine was doing is done again by
others. The driver puts the pieces of a part together and writes its table: each photo is in one.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

from geocalib.batch.local import Named
from geocalib.batch.photos import photos_of
from geocalib.batch.plan import PhotoPart
from geocalib.errors import MissingPackageError, how_to_get
from geocalib.pipeline.parallel.stream import FullBatches, Stages
from geocalib.result.calibration import Failure, Outcome

PIECE = 16
"""Photos that are handed on together: a few megabytes."""
MOST_ACTORS = 256
"""Networks on processors: Ray starts as many as have work and a core."""

Row = dict[str, Any]
"""A row of Ray Data: the number of a part, that of a piece of it, and what it holds, pickled."""


def answers(parts: Sequence[PhotoPart], stages: Stages) -> Iterator[tuple[PhotoPart, list[Named]]]:
    """Each part, when all its photos have their outcomes, in no particular order."""
    data = _ray_data()
    rows = [
        {"part": number, "piece": piece, "held": pickle.dumps(entries)}
        for number, part in enumerate(parts)
        for piece, entries in enumerate(_pieces(part))
    ]
    gpus = int(import_module("ray").cluster_resources().get("GPU", 0))
    place = {"num_gpus": 1, "concurrency": gpus} if gpus else {"concurrency": (1, MOST_ACTORS)}
    flow = (
        data.from_items(rows, override_num_blocks=len(rows))
        .map(_prepared, fn_args=(stages,))
        .map_batches(_Network, fn_constructor_args=(stages,), batch_size=4, **place)
        .map(_solved, fn_args=(stages,))
    )
    done: dict[int, dict[int, list[Named]]] = defaultdict(dict)
    for row in flow.iter_rows():
        pieces = done[row["part"]]
        pieces[row["piece"]] = pickle.loads(row["held"])
        part = parts[row["part"]]
        if len(pieces) == len(_pieces(part)):
            del done[row["part"]]
            yield part, [named for _, piece in sorted(pieces.items()) for named in piece]


def _ray_data() -> Any:
    try:
        return import_module("ray.data")
    except ImportError:
        raise MissingPackageError(f"a cluster needs Ray; {how_to_get('ray')}") from None


def _pieces(part: PhotoPart) -> list[PhotoPart]:
    """The part in pieces of so many photos."""
    return [
        replace(part, entries=part.entries[at : at + PIECE]) for at in range(0, len(part), PIECE)
    ]


def _prepared(row: Row, stages: Stages) -> Row:
    names, sources = zip(*photos_of(pickle.loads(row["held"])), strict=True)
    there = [source for source in sources if not isinstance(source, Failure)]
    inputs = iter(stages.prepare(there) if there else ())
    every = [one if isinstance(one, Failure) else next(inputs) for one in sources]
    return {**row, "held": pickle.dumps((names, every))}


class _Network:
    """An actor: the network, loaded once."""

    def __init__(self, stages: Stages) -> None:
        engine = stages.engine_spec.load()
        self._engine = engine if engine.on_processor else FullBatches(engine)
        self._stages = stages

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        held = [pickle.loads(one) for one in batch["held"]]
        inputs = [one for _, every in held for one in every]
        outputs = iter(self._stages.predict(self._engine, inputs))
        seen = [pickle.dumps((names, [next(outputs) for _ in names])) for names, _ in held]
        return {**batch, "held": seen}


def _solved(row: Row, stages: Stages) -> Row:
    names, outputs = pickle.loads(row["held"])
    outcomes: list[Outcome] = stages.fit(outputs)
    return {**row, "held": pickle.dumps(list(zip(names, outcomes, strict=True)))}
