"""Global context by non-negative matrix factorisation (the Hamburger of Geng et al.).

The features X (D x N, one column per pixel) are replaced by a product B C' of low rank, found
from fixed bases B by multiplicative updates, which keep everything non-negative.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

EVALUATION_ROUNDS = 7
TRAINING_ROUNDS = 6

FLOOR = 1e-6
"""Added to the denominators of the updates."""


def fixed_bases(dim: int, rank: int) -> Tensor:
    """(dim, rank) uniform random numbers, the same on every call, with columns of unit norm."""
    uniform = torch.rand(dim, rank, generator=torch.Generator().manual_seed(0))
    return functional.normalize(uniform, dim=0)


def factorise(X: Tensor, bases: Tensor, rounds: int) -> Tensor:
    """The approximation B C' of X (B, D, N) >= 0 after some rounds from bases (D, R) >= 0."""
    bases = bases.expand(len(X), -1, -1)
    match = X.mT @ bases
    coefficients = match.softmax(-1)
    for _ in range(rounds):
        coefficients = _update(coefficients, match, bases)
        bases = _update(bases, X @ coefficients, coefficients)
        match = X.mT @ bases
    return bases @ _update(coefficients, match, bases).mT


def _update(factor: Tensor, match: Tensor, other: Tensor) -> Tensor:
    """One multiplicative step of a factor, given the data times the other factor."""
    return factor * match / (factor @ (other.mT @ other) + FLOOR)


class Hamburger(nn.Module):
    """1x1 and ReLU, factorisation, 1x1 and ReLU; added to the input, and ReLU."""

    bases: Tensor
    """(width, rank) where the factorisation starts. Not trained and not part of the weights;
    assign to it to start elsewhere."""

    def __init__(self, width: int, rank: int) -> None:
        super().__init__()
        self.enter = nn.Conv2d(width, width, kernel_size=1)
        self.leave = nn.Conv2d(width, width, kernel_size=1)
        self.register_buffer("bases", fixed_bases(width, rank), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """(B, width, H, W) to the same shape."""
        columns = functional.relu(self.enter(x)).flatten(2)
        rounds = TRAINING_ROUNDS if self.training else EVALUATION_ROUNDS
        context = factorise(columns, self.bases, rounds).reshape(x.shape)
        return functional.relu(x + functional.relu(self.leave(context)))
