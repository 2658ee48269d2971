"""The learning rate over a run."""

from __future__ import annotations

import pytest

from geocalib_lab.training.schedule import ScheduleConfig, decays, rate_factor, with_fit


def test_rate_warms_up_stays_and_decays() -> None:
    config = ScheduleConfig(warmup_steps=10, decay=0.25)
    assert rate_factor(config, 0, 0.0) == pytest.approx(0.1)
    assert rate_factor(config, 4, 0.01) == pytest.approx(0.5)
    assert rate_factor(config, 9, 0.02) == 1
    assert rate_factor(config, 500, 0.75) == 1
    assert rate_factor(config, 600, 0.875) == pytest.approx(0.5)
    assert rate_factor(config, 700, 1.0) == 0


def test_rate_stays_up_without_decay_and_starts_full_without_warm_up() -> None:
    config = ScheduleConfig(warmup_steps=0)
    assert rate_factor(config, 0, 0.0) == 1
    assert rate_factor(config, 10_000, 1.0) == 1


def test_decay_starts_with_the_last_share() -> None:
    assert not decays(ScheduleConfig(decay=0.25), 0.74)
    assert decays(ScheduleConfig(decay=0.25), 0.76)
    assert not decays(ScheduleConfig(decay=0.0), 1.0)


def test_fit_joins_after_its_share() -> None:
    config = ScheduleConfig(fields_only=0.3)
    assert not with_fit(config, 0.29)
    assert with_fit(config, 0.3)
    assert with_fit(ScheduleConfig(fields_only=0.0), 0.0)
