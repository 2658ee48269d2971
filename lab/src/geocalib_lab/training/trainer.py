"""One step of training, and the state it changes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from geocalib.errors import ConfigError
from geocalib_lab.training.batches import Batch, PartClock
from geocalib_lab.training.config import OptimiserConfig, TrainingConfig
from geocalib_lab.training.direct import loss_of
from geocalib_lab.training.losses import Losses
from geocalib_lab.training.processes import Process
from geocalib_lab.training.schedule import rate_factor, with_fit

Draw = Callable[[tuple[int, int], torch.Generator, PartClock], Batch]
"""Draws a batch of pictures of a (width, height)."""


@dataclass(frozen=True)
class StepReport:
    """What one step of training did, for the log."""

    parts: dict[str, Tensor]
    """Losses before weighting, each ()."""
    norm: float
    """Length of the gradient before clipping; not finite where the step was skipped."""
    rate: float
    """Learning rate of everything but the encoder."""
    images: int


class Average:
    """The running average of a network's weights and buffers."""

    def __init__(self, network: nn.Module) -> None:
        # These are the network's own tensors, not copies.
        self._live = network.state_dict()
        self.state = {name: value.clone() for name, value in self._live.items()}
        self.updates = 0

    @torch.no_grad()
    def update(self, decay: float) -> None:
        """Move towards the network; fast at first, when there is little to average."""
        decay = min(decay, (1 + self.updates) / (10 + self.updates))
        self.updates += 1
        weights = [name for name, value in self._live.items() if value.is_floating_point()]
        averages, now = ([s[name] for name in weights] for s in (self.state, self._live))
        torch._foreach_lerp_(averages, now, 1 - decay)
        for name in self._live.keys() - weights:
            self.state[name].copy_(self._live[name])


class Trainer:
    """A network in training: its weights, their average, the optimiser, and how far it is."""

    def __init__(
        self, config: TrainingConfig, network: nn.Module, draw: Draw, process: Process
    ) -> None:
        self.config, self.process, self.draw = config, process, draw
        self.network = network.to(process.device).train()
        self.network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.optimiser = make_optimiser(self.network, config.optimiser, process.device)
        self.average = Average(self.network)
        self.generator = torch.Generator(process.device)
        self.clock = PartClock(process.device)
        self.steps = 0
        self.skipped = 0
        plain: nn.Module = self.network
        if process.count > 1:
            # Before the fit takes part, the confidences get no gradient.
            plain = DistributedDataParallel(plain, find_unused_parameters=True)
        self._plain = plain
        self._forward: Callable[[Tensor], Any] = plain
        if config.compile:
            self._forward = torch.compile(plain, dynamic=False)

    def step(self, progress: float) -> StepReport:
        """Take one step; progress is the share of the run that is over.

        The pictures depend on the seed, the step and the process alone, so that a resumed run
        sees what the uninterrupted one would have seen.
        """
        config = self.config
        # The first steps are slower than the rest.
        self.clock.running = self.steps % config.time_every == config.time_every - 1
        self._seed()
        batch = self.draw(config.sizes[self.steps % len(config.sizes)], self.generator, self.clock)
        factor = rate_factor(config.schedule, self.steps, progress)
        for group in self.optimiser.param_groups:
            group["lr"] = factor * group["full_rate"]
        losses = self._backward(batch, with_fit(config.schedule, progress))
        with self.clock.part("optimiser"):
            norm = float(nn.utils.clip_grad_norm_(self.network.parameters(), config.optimiser.clip))
            if math.isfinite(norm):
                self.optimiser.step()
                self.average.update(config.optimiser.average)
            else:
                self.skipped += 1
                self._tell_skipped()
            self.optimiser.zero_grad(set_to_none=True)
        self.steps += 1
        return StepReport(losses.parts, norm, factor * config.optimiser.rate, len(batch.images))

    def _tell_skipped(self) -> None:
        broken = [
            name
            for name, value in self.network.named_parameters()
            if value.grad is not None and not bool(torch.isfinite(value.grad).all())
        ]
        where = f"from {broken[-1]} back" if broken else "but their length overflows"
        print(f"step {self.steps} skipped: {len(broken)} bad gradients, {where}", flush=True)

    def _seed(self) -> None:
        seed = (self.config.seed * 1_000_003 + self.steps) * 1009 + self.process.rank
        self.generator.manual_seed(seed)
        # For layers that drop paths at random.
        torch.manual_seed(seed)

    def _backward(self, batch: Batch, fit: bool) -> Losses:
        try:
            return self._gradients(batch, fit)
        except Exception as error:
            if self._forward is self._plain:
                raise
            message = str(error).partition("\n")[0]
            print(f"the network runs uncompiled, as compiling it failed: {message}", flush=True)
        self._forward = self._plain
        self.optimiser.zero_grad(set_to_none=True)
        return self._gradients(batch, fit)

    def _gradients(self, batch: Batch, fit: bool) -> Losses:
        device = self.process.device
        half = torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda")
        with self.clock.part("forward"), half:
            images = batch.images.contiguous(memory_format=torch.channels_last)
            output = self._forward(images)
        with self.clock.part("loss"):
            losses = loss_of(output, batch, self.config.loss, fit)
        with self.clock.part("backward"):
            losses.total.backward()  # type: ignore[no-untyped-call]
        return losses

    def state(self) -> dict[str, Any]:
        """Everything needed to go on."""
        return {
            "network": self.network.state_dict(),
            "average": self.average.state,
            "updates": self.average.updates,
            "optimiser": self.optimiser.state_dict(),
            "steps": self.steps,
            "skipped": self.skipped,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a ``state``."""
        try:
            self.network.load_state_dict(state["network"])
        except (KeyError, RuntimeError):
            raise ConfigError(
                "the state to resume from is of another network; give the settings that it was "
                "trained with"
            ) from None
        self.average = Average(self.network)
        for name, value in state["average"].items():
            self.average.state[name].copy_(value)
        self.average.updates = state["updates"]
        self.optimiser.load_state_dict(state["optimiser"])
        self.steps, self.skipped = state["steps"], state["skipped"]


def make_optimiser(
    network: nn.Module, config: OptimiserConfig, device: torch.device
) -> torch.optim.AdamW:
    """AdamW with a rate of its own for the encoder; norms and biases do not decay."""
    groups: dict[tuple[bool, bool], list[nn.Parameter]] = {}
    for name, parameter in network.named_parameters():
        key = "encoder." in name, parameter.dim() > 1
        groups.setdefault(key, []).append(parameter)
    return torch.optim.AdamW(
        [
            {
                "params": parameters,
                "full_rate": config.encoder_rate if encoder else config.rate,
                "weight_decay": config.weight_decay if decays else 0.0,
            }
            for (encoder, decays), parameters in groups.items()
        ],
        lr=config.rate,
        fused=device.type == "cuda",
    )
