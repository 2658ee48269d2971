"""Folded networks compute what the unfolded ones do."""

from __future__ import annotations

import copy
from collections import OrderedDict

import pytest
import torch
from torch import Tensor, nn

from geocalib.nets.folding import fold_batch_norm
from geocalib.nets.published import Mscan


def scrambled(module: nn.Module) -> nn.Module:
    """In double precision, with random statistics, gains, offsets and scales."""
    generator = torch.Generator().manual_seed(1)
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d) and part.running_mean is not None:
            part.running_mean.normal_(generator=generator)
            part.running_var.uniform_(0.2, 3.0, generator=generator)
        if isinstance(part, nn.BatchNorm2d) and part.affine:
            nn.init.uniform_(part.weight, -2.0, 2.0, generator=generator)
            nn.init.normal_(part.bias, generator=generator)
    for name, parameter in module.named_parameters():
        if "scale" in name:
            nn.init.uniform_(parameter, -1.0, 1.0, generator=generator)
    return module.double().eval()


def norms(module: nn.Module) -> int:
    return sum(isinstance(part, nn.BatchNorm2d) for part in module.modules())


def twin() -> nn.Sequential:
    """The same convolution and norm twice in a row."""
    conv, norm = nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4)
    return nn.Sequential(conv, norm, nn.ReLU(), conv, norm)


FOLDABLE = {
    "conv bn act": nn.Sequential(nn.Conv2d(4, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU6()),
    "no bias": nn.Sequential(nn.Conv2d(4, 6, 3, stride=2, bias=False), nn.BatchNorm2d(6)),
    "depth-wise": nn.Sequential(nn.Conv2d(4, 8, 5, groups=4, padding=2), nn.BatchNorm2d(8)),
    "no affine": nn.Sequential(nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4, affine=False)),
    "reflected border": nn.Sequential(
        nn.Conv2d(4, 4, 3, padding=1, padding_mode="reflect"), nn.BatchNorm2d(4)
    ),
    "named": nn.Sequential(OrderedDict(c=nn.Conv2d(4, 4, 3), bn=nn.BatchNorm2d(4))),
    "norm between": nn.Sequential(
        nn.Conv2d(4, 6, 3), nn.BatchNorm2d(6), nn.Conv2d(6, 5, 1), nn.BatchNorm2d(5)
    ),
    "norm before 1x1": nn.Sequential(nn.BatchNorm2d(4), nn.Conv2d(4, 3, 1)),
    "norm before 1x1 without bias": nn.Sequential(
        nn.BatchNorm2d(4, affine=False), nn.Conv2d(4, 3, 1, stride=2, bias=False)
    ),
    "two norms": nn.Sequential(
        nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4), nn.Sequential(nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4))
    ),
    "twin": twin(),
}

UNFOLDABLE = {
    "norm before padding": nn.Sequential(nn.BatchNorm2d(4), nn.Conv2d(4, 3, 3, padding=1)),
    "norm before padded 1x1": nn.Sequential(nn.BatchNorm2d(4), nn.Conv2d(4, 3, 1, padding=1)),
    "norm before groups": nn.Sequential(nn.BatchNorm2d(4), nn.Conv2d(4, 4, 1, groups=2)),
    "act between": nn.Sequential(nn.Conv2d(4, 4, 3), nn.GELU(), nn.BatchNorm2d(4)),
    "no statistics": nn.Sequential(
        nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4, track_running_stats=False)
    ),
}


@pytest.mark.parametrize("name", [*FOLDABLE, *UNFOLDABLE])
def test_same_output(name: str) -> None:
    network = scrambled(copy.deepcopy({**FOLDABLE, **UNFOLDABLE}[name]))
    folded = fold_batch_norm(copy.deepcopy(network))
    x = torch.randn(2, 4, 9, 11, dtype=torch.float64)
    torch.testing.assert_close(folded(x), network(x), rtol=1e-12, atol=1e-12)
    assert norms(folded) == (0 if name in FOLDABLE else norms(network))


def test_mscan_keeps_its_output_and_no_norm() -> None:
    network = scrambled(Mscan((4, 6, 8, 10), (1, 1, 2, 1), (2, 2, 2, 2)))
    folded = fold_batch_norm(copy.deepcopy(network))
    x = torch.randn(1, 3, 64, 96, dtype=torch.float64)
    for found, expected in zip(folded(x), network(x), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)
    assert norms(network) > 0
    assert norms(folded) == 0


def test_the_module_given_is_the_one_that_is_ready() -> None:
    network = Mscan((4, 6, 8, 10), (1, 1, 1, 1), (2, 2, 2, 2)).train()
    assert fold_batch_norm(network) is network
    assert not any(part.training for part in network.modules())
    assert norms(network) == 0


def test_names_in_a_sequence_stay() -> None:
    folded = fold_batch_norm(copy.deepcopy(FOLDABLE["named"]))
    assert [name for name, _ in folded.named_children()] == ["c", "bn"]


class Halved(nn.Module):
    """Norm, convolution and a factor, wired in its own way, with its own folded form."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 1)
        self.norm = nn.BatchNorm2d(4)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.conv(0.5 * x))

    def folded(self) -> nn.Module:
        return nn.Sequential(nn.AvgPool2d(1), nn.Flatten(0))


def test_a_module_may_fold_itself() -> None:
    nested = fold_batch_norm(nn.ModuleDict({"inner": nn.Sequential(Halved())}))
    assert isinstance(nested["inner"][0][0], nn.AvgPool2d)
    # The module itself keeps its class, and with it what else it offers.
    assert type(fold_batch_norm(Halved())) is Halved
