"""A thinned network answers nearly as the whole one, and exactly so where nothing is lost."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from geocalib.nets.lean import AttentionBlock, LeanConfig, LeanNetwork
from geocalib_lab.training.thin import thinned

WHOLE = LeanConfig("efficientnet_lite2", (16, 24, 32), 1)


def _whole() -> LeanNetwork:
    """One whose batch norms have something to say."""
    torch.manual_seed(0)
    network = LeanNetwork(WHOLE)
    for part in network.modules():
        if isinstance(part, nn.BatchNorm2d):
            nn.init.uniform_(part.weight, 0.5, 1.5)
            nn.init.normal_(part.bias, std=0.1)
    return network.eval()


def _thinned(network: LeanNetwork, config: LeanConfig) -> LeanNetwork:
    thin = LeanNetwork(config)
    thin.load_state_dict(thinned(network.state_dict(), thin.state_dict()))
    return thin.eval()


def test_full_ranks_lose_nothing() -> None:
    network = _whole()
    image = torch.rand(2, 3, 64, 96)
    with torch.no_grad():
        thin = _thinned(network, replace(WHOLE, ranks=(16, 24)))(image)
        for before, after in zip(network(image), thin, strict=True):
            torch.testing.assert_close(after, before, atol=1e-4, rtol=1e-4)


def test_the_largest_parts_of_a_convolution_stay() -> None:
    network = _whole()
    left, right = torch.randn(16, 4), torch.randn(4, 16 * 9)
    convolution = network.fuse4.refine[0]
    assert isinstance(convolution, nn.Conv2d)
    with torch.no_grad():
        convolution.weight.copy_((left @ right).reshape(16, 16, 3, 3))
        x = torch.rand(1, 16, 8, 8)
        thin = _thinned(network, replace(WHOLE, ranks=(4, 24)))
        before, after = network.fuse4.refine[:2](x), thin.fuse4.refine[:3](x)
        torch.testing.assert_close(after, before, atol=1e-3, rtol=1e-3)


def _mlp_of(network: LeanNetwork, tokens: Tensor) -> Tensor:
    block = network.context.blocks[0]
    assert isinstance(block, AttentionBlock)
    seen: Tensor = block.mlp(tokens)
    return seen


def test_units_that_say_nothing_are_not_missed() -> None:
    network = _whole()
    block = network.context.blocks[0]
    assert isinstance(block, AttentionBlock)
    into, out = block.mlp[1], block.mlp[3]
    assert isinstance(into, nn.Linear)
    assert isinstance(out, nn.Linear)
    with torch.no_grad():
        nn.init.normal_(out.weight)
        # Of every two units one is constant: what it says goes into the bias.
        into.weight[::2] = 0
        into.bias[::2] = 1.5
        thin = _thinned(network, replace(WHOLE, expansion=2))
        tokens = torch.randn(3, 5, 32)
        torch.testing.assert_close(
            _mlp_of(thin, tokens), _mlp_of(network, tokens), atol=1e-4, rtol=1e-4
        )


def test_what_is_thin_already_stays() -> None:
    state = _whole().state_dict()
    assert all(torch.equal(value, state[name]) for name, value in thinned(state, state).items())
