"""Pinholes that may bend while lines are weighed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from streets import camera_of, gravity_of, prior_of

from geocalib.lines.straightness import DISTORTION, bendable, pinhole_again

PRIOR = prior_of(camera_of("pinhole"), gravity_of(2.0, 5.0))


def test_a_pinhole_gets_a_distortion_near_zero() -> None:
    bent = bendable(PRIOR)
    assert bent.parameters == (*PRIOR.parameters, "k")
    assert bent.distortion == (0.0,)
    sigma = np.sqrt(bent.covariance[-1, -1]).item() * (bent.height / bent.fy) ** 2
    assert abs(sigma - DISTORTION) < 1e-9
    assert np.array_equal(bent.covariance[:-1, :-1], PRIOR.covariance)


def test_it_is_a_pinhole_again() -> None:
    assert pinhole_again(PRIOR, bendable(PRIOR)) == PRIOR


def test_the_principal_point_stays_behind_the_distortion() -> None:
    free = replace(
        PRIOR,
        parameters=(*PRIOR.parameters, "cx", "cy"),
        covariance=np.diag(np.arange(1.0, 6.0, dtype=np.float64)),
    )
    bent = bendable(free)
    assert bent.parameters[-3:] == ("k", "cx", "cy")
    assert np.diagonal(bent.covariance)[-2:].tolist() == [4.0, 5.0]
    assert np.array_equal(pinhole_again(free, bent).covariance, free.covariance)


def test_a_lens_with_distortion_stays_as_it_is() -> None:
    radial = prior_of(camera_of("radial"), gravity_of(2.0, 5.0))
    assert bendable(radial) is radial
