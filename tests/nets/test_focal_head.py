"""The second network: from bins to a focal length, and pictures as its network wants them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from geocalib.nets.focal_head import BINS, HIGH, LOW, PARAMETERS, focal_of, network_input
from geocalib.nets.weights.card import WeightCard

VFOV = PARAMETERS.index("vfov")


def card(**changes: object) -> WeightCard:
    values = {"short_side": 64, "detail": 48, **changes}
    return WeightCard(
        name="opinion",
        architecture="deepcalib",
        trained=True,
        licence="",
        source="",
        description="",
        **values,  # type: ignore[arg-type]
    )


def logits_of(vfov: list[float]) -> np.ndarray:
    """Sure of some views alone, each as likely."""
    logits = np.full((1, len(PARAMETERS), BINS), -50.0, np.float32)
    for view in vfov:
        share = (view - LOW[VFOV]) / (HIGH[VFOV] - LOW[VFOV])
        logits[0, VFOV, int(share * BINS)] = 0.0
    return logits


@pytest.mark.parametrize(("height", "width"), [(64, 96), (96, 64)])
def test_a_view_is_a_focal_length(height: int, width: int) -> None:
    view = math.radians(40)
    ((log_f, sigma),) = focal_of(logits_of([view]), (1, 3, height, width), card())
    expected = math.log(0.5 * height / math.tan(view / 2) / math.hypot(width, height))
    assert log_f == pytest.approx(expected, abs=0.01)
    assert sigma == pytest.approx(0, abs=1e-6)


def test_two_views_are_uncertain_by_half_of_what_is_between() -> None:
    shape = (1, 3, 64, 64)
    views = math.radians(30), math.radians(60)
    (one,), (two,) = (focal_of(logits_of([view]), shape, card()) for view in views)
    scaled = card(sigma_scale={"focal": 1.5})
    ((log_f, sigma),) = focal_of(logits_of(list(views)), shape, scaled)
    assert log_f == pytest.approx((one[0] + two[0]) / 2)
    assert sigma == pytest.approx(1.5 * abs(one[0] - two[0]) / 2)


def test_pictures_are_shrunk_to_what_it_can_see() -> None:
    columns = np.arange(120) % 2
    stripes = np.broadcast_to(columns, (2, 3, 80, 120)).astype(np.float32)
    seen = network_input(stripes, card())
    assert seen.shape == (2, 3, 64, 96)
    # Stripes of one pixel are finer than it may see, and their mean is left.
    inner = seen[..., 8:-8]
    assert abs(inner.mean() - 0.5) < 0.01
    assert inner.std() < 0.25
    plain = network_input(np.full((1, 3, 80, 80), 0.3, np.float32), card())
    np.testing.assert_allclose(plain, 0.3, atol=1e-5)
