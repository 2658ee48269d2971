"""Training from start to end: steps, a log, validation and checkpoints, within a budget."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from geocalib.errors import ConfigError
from geocalib.nets.lean import LeanNetwork
from geocalib_lab.training import checkpoint
from geocalib_lab.training.batches import PartClock
from geocalib_lab.training.journal import TRAIN_COLUMNS, GpuMeter, Means, Table
from geocalib_lab.training.schedule import decays
from geocalib_lab.training.symmetry import remove_lean
from geocalib_lab.training.trainer import Trainer
from geocalib_lab.training.validate import Pictures, evaluate, one_line, refresh_batch_norms

TABLES = ("training.csv", "validation.csv")
"""What a run writes down as it goes on."""

LIGHT = (*TABLES, "ema-*.pt", "raw-*.pt", "curves.png")
"""Names of all that is light."""

NORMALISING_SEED = 7
"""Seed of the pictures on which batch norms are recomputed."""


@dataclass(frozen=True)
class Budget:
    """How long to train: to a number of steps, for a time, or whichever is over first."""

    steps: int | None = None
    """Counted from the very first step, also by a run that is resumed."""
    seconds: float | None = None
    """Counted from the start of this run."""

    def __post_init__(self) -> None:
        if self.steps is None and self.seconds is None:
            raise ConfigError("a run needs an end: give steps or minutes")

    def progress(self, steps: int, seconds: float) -> float:
        """The share of the run that is over; 1 or more at its end."""
        shares = [0.0]
        if self.steps is not None:
            shares.append(steps / max(1, self.steps))
        if self.seconds is not None:
            shares.append(seconds / max(1e-9, self.seconds))
        return max(shares)


@dataclass(frozen=True)
class Places:
    """Where a run leaves its files."""

    whole: Path
    """The file to resume from: weights, their average, the state of the optimiser."""
    travel: Path
    """The folder of what is light enough to carry elsewhere: in half precision ema-*.pt, the
    averaged weights to use, and raw-*.pt, the weights before the rate decays, to train on from;
    training.csv and validation.csv."""


def train(
    trainer: Trainer, validation: Sequence[Pictures], budget: Budget, places: Places
) -> dict[str, float]:
    """Train until the budget is spent; the last validation's numbers.

    The average of the weights, with batch norms recomputed, is what is validated and exported.
    Only the leading process validates, logs and saves.
    """
    config, process = trainer.config, trainer.process
    watch = _Watch(trainer, validation, places) if process.leads else None
    start = time.perf_counter()
    while True:
        seconds = time.perf_counter() - start
        progress = process.agree(budget.progress(trainer.steps, seconds))
        if progress >= 1:
            break
        if watch is not None and decays(config.schedule, progress):
            watch.keep_raw()
        report = trainer.step(progress)
        if watch is None:
            continue
        watch.means.add(report.parts)
        watch.images += report.images
        if trainer.steps % config.log_every == 0:
            watch.log(report.rate, report.norm)
        watch.look_after()
    return {} if watch is None else watch.finish()


class _Watch:
    """What the leading process does besides training."""

    def __init__(self, trainer: Trainer, validation: Sequence[Pictures], places: Places) -> None:
        self.trainer, self.validation, self.places = trainer, validation, places
        self.means, self.images = Means(), 0
        self._gpu = GpuMeter()
        self._training = Table(places.travel / TABLES[0], TRAIN_COLUMNS)
        self._start = self._logged = self._saved = self._validated = time.perf_counter()
        self._released = copy.deepcopy(trainer.network)
        self._raw_is_kept = False

    def log(self, rate: float, norm: float) -> None:
        """A line on the steps since the last one."""
        now = time.perf_counter()
        trainer, means = self.trainer, self.means.take()
        speed = self.images / (now - self._logged)
        row = {
            "step": trainer.steps,
            "seconds": now - self._start,
            "rate": rate,
            "images_per_second": speed,
            "gradient_norm": norm,
            "skipped": trainer.skipped,
            **means,
        }
        parts = trainer.clock.seconds
        row |= {f"{name}_ms": 1000 * value for name, value in parts.items()}
        if (busy := self._gpu.percent()) is not None:
            row["gpu_busy_percent"] = busy
        self._training.add(row)
        losses = " ".join(f"{name} {value:.4f}" for name, value in means.items())
        shares = " ".join(
            f"{name} {value / sum(parts.values()):.0%}" for name, value in parts.items()
        )
        print(
            f"step {trainer.steps} {now - self._start:.0f} s {speed:.0f} images/s rate {rate:.2e} "
            f"norm {norm:.2f} skipped {trainer.skipped} | {losses} | {shares}",
            flush=True,
        )
        trainer.clock.seconds = {}
        self._logged, self.images = now, 0

    def look_after(self) -> None:
        """Save and validate when it is time to."""
        config = self.trainer.config
        now = time.perf_counter()
        if now - self._validated >= config.validation.every_seconds:
            self.release()
            self.validate()
        elif now - self._saved >= config.checkpoint_seconds:
            self.release()
        else:
            return
        # The time away from the steps does not count against their speed.
        self._logged += time.perf_counter() - now

    def keep_raw(self) -> None:
        """Export the weights once more, and leave the export alone from now on."""
        if not self._raw_is_kept:
            self._export_raw()
            self._raw_is_kept = True

    def _export_raw(self) -> None:
        if not self._raw_is_kept:
            state = self.trainer.network.state_dict()
            checkpoint.export_shards(state, self.places.travel / "raw")

    def release(self) -> None:
        """Save everything, and export the average with fresh batch norms."""
        trainer, travel = self.trainer, self.places.travel
        checkpoint.save(trainer.state(), self.places.whole)
        self._released.load_state_dict(trainer.average.state)
        self._released.eval()
        refresh_batch_norms(self._released, normalising_pictures(trainer))
        if isinstance(self._released, LeanNetwork):
            remove_lean(self._released, normalising_pictures(trainer))
        checkpoint.export_shards(self._released.state_dict(), travel / "ema")
        self._export_raw()
        self._saved = time.perf_counter()

    def validate(self) -> dict[str, float]:
        """Measure the released weights; a line and a row of numbers."""
        trainer = self.trainer
        numbers = evaluate(self._released, self.validation, trainer.config.validation.batch)
        self._validated = time.perf_counter()
        row = {"step": trainer.steps, "seconds": self._validated - self._start, **numbers}
        table = Table(self.places.travel / TABLES[1], tuple(row))
        table.add(row)
        table.close()
        print(f"step {trainer.steps} validation | {one_line(numbers)}", flush=True)
        return numbers

    def finish(self) -> dict[str, float]:
        """The last checkpoint and validation."""
        self.release()
        self._training.close()
        return self.validate()


def normalising_pictures(trainer: Trainer) -> Iterator[Tensor]:
    """Training pictures (B, 3, H, W), the same ones at every call."""
    config, device = trainer.config, trainer.process.device
    generator = torch.Generator(device)
    clock = PartClock(device)
    for i in range(math.ceil(config.validation.normalise / config.batch)):
        generator.manual_seed(NORMALISING_SEED + i)
        yield trainer.draw(config.sizes[i % len(config.sizes)], generator, clock).images
