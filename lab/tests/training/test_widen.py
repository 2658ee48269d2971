"""A widened network answers as the narrow one, and its copies learn apart."""

from __future__ import annotations

import pytest
import torch

from geocalib.errors import ConfigError
from geocalib.nets.lean import LeanConfig, LeanNetwork
from geocalib_lab.training.widen import widened

NARROW = LeanConfig("efficientnet_lite2", (16, 24, 32), 1)


def _widened(config: LeanConfig) -> tuple[LeanNetwork, LeanNetwork]:
    torch.manual_seed(0)
    narrow, wide = LeanNetwork(NARROW), LeanNetwork(config)
    generator = torch.Generator().manual_seed(1)
    wide.load_state_dict(widened(narrow.state_dict(), wide.state_dict(), generator))
    return narrow, wide


def test_answers_as_before() -> None:
    narrow, wide = _widened(LeanConfig("efficientnet_lite2", (28, 48, 64), 1))
    image = torch.rand(2, 3, 64, 96)
    with torch.no_grad():
        for before, after in zip(narrow.eval()(image), wide.eval()(image), strict=True):
            torch.testing.assert_close(after, before, atol=1e-5, rtol=1e-5)


def test_copies_learn_apart() -> None:
    _, wide = _widened(LeanConfig("efficientnet_lite2", (32, 48, 64), 1))
    prediction = wide(torch.rand(2, 3, 64, 64))
    (prediction.latitude.sum() + prediction.up[:, 0].sum()).backward()  # type: ignore[no-untyped-call]
    for name in ("fuse4.refine.0", "fuse8.narrow", "context.blocks.0.qkv", "context.enter.0.0"):
        pull = wide.get_submodule(name).weight.grad
        assert isinstance(pull, torch.Tensor)
        first, second = pull.unflatten(
            0, (-1, 2, pull.shape[0] // (6 if "qkv" in name else 2))
        ).unbind(1)
        apart = (first - second).abs().amax(-1) > 1e-3 * first.abs().amax()
        assert apart.any()


@pytest.mark.parametrize(
    "config",
    [
        LeanConfig("efficientnet_lite2", (16, 24, 96 - 32), 2),
        LeanConfig("efficientnet_lite2", (8, 24, 32), 1),
        LeanConfig("mscan_tiny", (16, 24, 32), 1),
    ],
)
def test_what_cannot_be_widened(config: LeanConfig) -> None:
    with pytest.raises(ConfigError):
        _widened(config)


def test_the_coarsest_width_must_be_a_multiple() -> None:
    torch.manual_seed(0)
    narrow = LeanNetwork(LeanConfig("efficientnet_lite2", (16, 24, 64), 1)).state_dict()
    wide = LeanNetwork(LeanConfig("efficientnet_lite2", (16, 24, 96), 1)).state_dict()
    with pytest.raises(ConfigError, match=r"context\.norm\.weight"):
        widened(narrow, wide, torch.Generator())
