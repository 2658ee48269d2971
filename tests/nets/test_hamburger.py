"""The factorisation against a float64 computation in NumPy, and what it must satisfy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from geocalib.nets.published import Hamburger, factorise, fixed_bases


def features(dim: int, count: int, batch: int = 1, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(batch, dim, count, generator=generator, dtype=torch.float64)


def slow_factorise(X: np.ndarray, B: np.ndarray, rounds: int) -> np.ndarray:
    """Multiplicative updates written entry by entry from their definition."""
    scores = X.T @ B
    C = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)

    def improved(factor: np.ndarray, data: np.ndarray, other: np.ndarray) -> np.ndarray:
        out = np.empty_like(factor)
        for i in range(factor.shape[0]):
            model = other @ factor[i]
            for r in range(factor.shape[1]):
                out[i, r] = factor[i, r] * (data[i] @ other[:, r])
                out[i, r] /= model @ other[:, r] + 1e-6
        return out

    for _ in range(rounds):
        C = improved(C, X.T, B)
        B = improved(B, X, C)
    return B @ improved(C, X.T, B).T


@pytest.mark.parametrize("rounds", [0, 1, 7])
def test_factorise_against_numpy(rounds: int) -> None:
    X, bases = features(10, 15), fixed_bases(10, 3).double()
    found = factorise(X, bases, rounds)[0].numpy()
    np.testing.assert_allclose(
        found, slow_factorise(X[0].numpy(), bases.numpy(), rounds), rtol=1e-9
    )


def test_rounds_bring_it_closer() -> None:
    X, bases = features(20, 60), fixed_bases(20, 4).double()
    errors = [float((factorise(X, bases, n) - X).norm()) for n in range(8)]
    assert errors == sorted(errors, reverse=True)


def test_low_rank_and_not_negative() -> None:
    product = factorise(features(20, 60), fixed_bases(20, 4).double(), 7)[0]
    assert bool((product >= 0).all())
    assert int(torch.linalg.matrix_rank(product, rtol=1e-9)) == 4


def test_pixels_have_no_order() -> None:
    X, bases = features(12, 30), fixed_bases(12, 4).double()
    order = torch.randperm(30, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(
        factorise(X[..., order], bases, 7), factorise(X, bases, 7)[..., order]
    )


def test_images_do_not_mix() -> None:
    X, bases = features(12, 30, batch=3), fixed_bases(12, 4).double()
    together = factorise(X, bases, 7)
    for image, expected in zip(X, together, strict=True):
        torch.testing.assert_close(factorise(image[None], bases, 7)[0], expected)


def test_features_of_zeros_stay_zero() -> None:
    assert not factorise(torch.zeros(1, 12, 30), fixed_bases(12, 4), 7).any()


def test_bases_are_the_same_everywhere() -> None:
    bases = fixed_bases(512, 64)
    assert bases.shape == (512, 64)
    assert bool((bases >= 0).all())
    torch.testing.assert_close(torch.linalg.vector_norm(bases, dim=0), torch.ones(64))
    torch.manual_seed(5)
    assert torch.equal(fixed_bases(512, 64), bases)
    # Answers depend on these numbers, so a torch that draws others must not go unnoticed.
    expected = torch.tensor([0.0382229, 0.0581734, 0.0065845, 0.0103950])
    torch.testing.assert_close(bases[0, :4], expected, rtol=1e-5, atol=0.0)


def test_the_layer_adds_the_context_to_its_input() -> None:
    layer = Hamburger(width=8, rank=3).double().eval()
    x = torch.randn(2, 8, 4, 5, dtype=torch.float64)
    with torch.no_grad():
        entered = torch.einsum("oi,bihw->bohw", layer.enter.weight[:, :, 0, 0], x)
        entered = (entered + layer.enter.bias[:, None, None]).clamp(min=0).flatten(2)
        context = factorise(entered, layer.bases, 7).reshape(2, 8, 4, 5)
        left = torch.einsum("oi,bihw->bohw", layer.leave.weight[:, :, 0, 0], context)
        expected = (x + (left + layer.leave.bias[:, None, None]).clamp(min=0)).clamp(min=0)
        torch.testing.assert_close(layer(x), expected)


def test_fewer_rounds_in_training() -> None:
    layer = Hamburger(width=8, rank=3).double()
    x = torch.rand(1, 8, 4, 5, dtype=torch.float64)
    with torch.no_grad():
        columns = layer.enter(x).relu().flatten(2)
        answers = {}
        for rounds in (6, 7):
            context = factorise(columns, layer.bases, rounds).reshape(x.shape)
            answers[rounds] = (x + layer.leave(context).relu()).relu()
        torch.testing.assert_close(layer.train()(x), answers[6], rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(layer.eval()(x), answers[7], rtol=1e-12, atol=1e-12)
    assert float((answers[6] - answers[7]).abs().max()) > 1e-9


def test_bases_are_no_weights_but_can_be_replaced() -> None:
    layer = Hamburger(width=8, rank=3).eval()
    assert set(layer.state_dict()) == {
        f"{part}.{value}" for part in ("enter", "leave") for value in ("weight", "bias")
    }
    x = torch.rand(1, 8, 4, 5)
    before = layer(x)
    layer.bases = layer.bases.flip(0)
    assert not torch.allclose(layer(x), before, atol=1e-6)


def test_gradients_are_finite() -> None:
    layer = Hamburger(width=8, rank=3).train()
    layer(torch.randn(1, 8, 6, 6)).square().sum().backward()
    assert all(p.grad is not None and bool(p.grad.isfinite().all()) for p in layer.parameters())
