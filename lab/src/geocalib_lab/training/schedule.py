"""How the learning rate runs: warm-up, stable, decay."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ScheduleConfig:
    """Shape of the learning rate and of the stages over a run."""

    warmup_steps: int = 200
    """Steps over which the rate grows linearly to its full value."""
    decay: float = 0.0
    """Last share of the run over which the rate falls linearly to zero; 0 keeps it up."""
    fields_only: float = 0.33
    """First share of the run that learns from the fields alone, without the fit."""


def rate_factor(config: ScheduleConfig, step: int, progress: float) -> float:
    """What to multiply the learning rates with.

    step: steps taken since the run (re)started; progress: the share of the run that is over.
    """
    factor = min(1.0, (step + 1) / max(1, config.warmup_steps))
    if config.decay > 0:
        factor *= min(1.0, max(0.0, (1 - progress) / config.decay))
    return factor


def decays(config: ScheduleConfig, progress: float) -> bool:
    """Whether the rate is falling by now."""
    return progress > 1 - config.decay


def with_fit(config: ScheduleConfig, progress: float) -> bool:
    """Whether the fit takes part in the loss by now."""
    return progress >= config.fields_only
