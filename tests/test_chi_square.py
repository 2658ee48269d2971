"""Probabilities against SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import chdtrc

from geocalib.chi_square import chi2_sf


@pytest.mark.parametrize("freedom", range(1, 9))
def test_as_scipy_has_it(freedom: int) -> None:
    squared = np.array([0.0, 1e-6, 0.3, 1.0, 4.0, 30.0, 200.0, 1e4])
    assert np.allclose(chi2_sf(squared, freedom), chdtrc(freedom, squared), rtol=1e-10, atol=0)


def test_a_number_has_no_axes() -> None:
    assert chi2_sf(2.0, 2).shape == ()
