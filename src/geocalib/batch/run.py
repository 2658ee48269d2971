"""A batch from its plan to its tables."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from geocalib.batch import cluster, local
from geocalib.batch.columns import parquet
from geocalib.batch.inputs import find_parts
from geocalib.batch.plan import PhotoPart, Plan, read_plan
from geocalib.batch.store import StorePath
from geocalib.errors import ConfigError
from geocalib.files import locked
from geocalib.formats.schemas import arrow_schema
from geocalib.pipeline.calibrator import Calibrator
from geocalib.pipeline.engines.load import EngineSpec
from geocalib.pipeline.options import Options
from geocalib.pipeline.runs.answers import question
from geocalib.pipeline.runs.journal import to_text
from geocalib.result.calibration import Failure, Outcome

NAMELESS = "image"
"""What messages call a photo that came as bytes."""


Engine = Literal["local", "ray"]


@dataclass(frozen=True)
class BatchRun:
    """What to calibrate, where the answers go, and who works."""

    source: str
    output: str
    options: Options
    network: EngineSpec
    engine: Engine = "local"
    workers: int | None = None
    """Processes of the engine local."""

    def __post_init__(self) -> None:
        if self.options.shared_intrinsics:
            raise ConfigError("photos of a batch share nothing; calibrate --shared takes sets")
        if self.engine == "ray" and self.options.lines == "only":
            raise ConfigError("lines alone need no cluster: use the engine local")

    @property
    def place(self) -> StorePath:
        """The folder of the tables."""
        return StorePath(self.output)

    def plan(self) -> Plan:
        """What was planned when it was first run, or what there is now."""
        key, output = question(self.options, self.network), self.place
        output.sweep()
        plan = read_plan(output, key)
        if plan is None:
            plan = Plan(key, find_parts(self.source))
            plan.write(output)
        return plan

    def alone(self) -> AbstractContextManager[object]:
        """Keeps other processes of this machine from the same output."""
        place = self.place
        return locked(Path(place.path)) if place.local else nullcontext()

    def run(self, plan: Plan, load: Callable[[], Calibrator]) -> Iterator[tuple[PhotoPart, int]]:
        """Work on the parts that are not done; each as its table is there, with how many of its
        photos failed."""
        output, request = self.place, to_text(plan.question)
        parts = plan.left(output)
        if not parts:
            return
        calibrator = load()
        if self.engine == "ray":
            answers = cluster.answers(parts, calibrator.stages(options=self.options))
        else:
            answers = local.answers(parts, calibrator, self.options, self.workers)
        for part, named in answers:
            rows = [record_of(outcome, name, request) for name, outcome in named]
            (output / part.file).write(table_of(rows))
            yield part, sum(isinstance(outcome, Failure) for _, outcome in named)


def record_of(outcome: Outcome, name: str, request: str) -> dict[str, Any]:
    """The row of a photo, with the photo's name."""
    # Arrow's texts are Unicode, which names of files need not be.
    legible = os.fsencode(name).decode("utf-8", "backslashreplace")
    record = replace(outcome, image=legible).to_dict()
    if isinstance(outcome, Failure):
        words = outcome.error.removeprefix(f"{NAMELESS}: ").removeprefix(f"{NAMELESS} ")
        message = (
            words if name in outcome.error or words == outcome.error else f"{legible}: {words}"
        )
        record["error"] = os.fsencode(message).decode("utf-8", "backslashreplace")
    return {**record, "request": request, "photo": None}


def table_of(records: Sequence[dict[str, Any]]) -> bytes:
    """A file with these rows."""
    table = import_module("pyarrow").Table.from_pylist(list(records), schema=arrow_schema())
    file = io.BytesIO()
    parquet().write_table(table, file, compression="zstd")
    return file.getvalue()
