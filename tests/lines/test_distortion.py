"""What long edges tell about distortion."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from streets import camera_of, curves_of, gravity_of, prior_of

from geocalib.arrays import Array
from geocalib.cameras import Camera
from geocalib.geometry.fields import Free
from geocalib.geometry.segments import STRETCHES, Curves, Segments
from geocalib.lines import distortion
from geocalib.lines.distortion import (
    DISTORTION,
    as_pinhole,
    fit_distortion,
    measure_sagittas,
    tighten_distortion,
    with_free_distortion,
)
from geocalib.lines.refine import refine
from geocalib.result.evidence import Verdict
from geocalib.solver.coupling import couple
from lenses import ALL_MODELS

PRIOR = prior_of(camera_of("pinhole"), gravity_of(2.0, 5.0))


def test_a_pinhole_gets_a_distortion_near_zero() -> None:
    bent = with_free_distortion(PRIOR)
    assert bent.parameters == (*PRIOR.parameters, "k")
    assert bent.distortion == (0.0,)
    sigma = np.sqrt(bent.covariance[-1, -1]).item() * (bent.height / bent.fy) ** 2
    assert abs(sigma - DISTORTION) < 1e-9
    assert np.array_equal(bent.covariance[:-1, :-1], PRIOR.covariance)


def test_it_is_a_pinhole_again() -> None:
    assert as_pinhole(PRIOR, with_free_distortion(PRIOR)) == PRIOR


def test_the_principal_point_stays_behind_the_distortion() -> None:
    free = replace(
        PRIOR,
        parameters=(*PRIOR.parameters, "cx", "cy"),
        covariance=np.diag(np.arange(1.0, 6.0, dtype=np.float64)),
    )
    bent = with_free_distortion(free)
    assert bent.parameters[-3:] == ("k", "cx", "cy")
    assert np.diagonal(bent.covariance)[-2:].tolist() == [4.0, 5.0]
    assert np.array_equal(as_pinhole(free, bent).covariance, free.covariance)


def test_a_lens_with_distortion_stays_as_it_is() -> None:
    radial = prior_of(camera_of("radial"), gravity_of(2.0, 5.0))
    assert with_free_distortion(radial) is radial


BENT = [model for model in ALL_MODELS if camera_of(model).model.parameters]


@pytest.mark.parametrize("model", BENT)
def test_straight_edges_have_no_sagitta(model: str) -> None:
    camera = camera_of(model)
    assert np.abs(measure_sagittas(camera, curves_of(camera)).sagitta).max() < 1e-6


def test_the_sagitta_is_in_pixels() -> None:
    """Of an arc that leaves its chord by so many pixels, seen without distortion."""
    camera = replace(camera_of("division"), distortion=np.zeros((1, 1)))
    curves = curves_of(camera, count=5)
    first, last = curves.points[:, :1], curves.points[:, -1:]
    along = last - first
    length = np.linalg.norm(along, axis=-1, keepdims=True)
    place = ((curves.points - first) * along).sum(-1, keepdims=True) / length**2
    normal = np.stack([-along[..., 1], along[..., 0]], -1) / length
    arcs = replace(curves, points=curves.points + 3.0 * 4 * place * (1 - place) * normal)
    assert np.abs(measure_sagittas(camera, arcs).sagitta) == pytest.approx(
        np.full((1, 5), 3.0), abs=1e-6
    )


@pytest.mark.parametrize("model", BENT)
def test_jacobian(model: str) -> None:
    """Against central differences, of edges some of which are really curved."""
    camera = camera_of(model)
    curves = curves_of(camera, count=8, curved=3, noise=0.3)
    free = Free(False, True, tuple(range(len(camera.model.parameters))), True)
    analytic = measure_sagittas(camera, curves).jacobian(free)[0]
    steps = [1e-5] * (1 + len(camera.model.parameters)) + [1e-2] * 2
    assert analytic.shape == (8, len(steps))
    for i, step in enumerate(steps):
        after, before = (
            measure_sagittas(_moved(camera, i, side * step), curves).sagitta[0] for side in (1, -1)
        )
        central = (after - before) / (2 * step)
        assert np.allclose(analytic[:, i], central, rtol=1e-4, atol=1e-5), i


def _moved(camera: Camera, parameter: int, step: float) -> Camera:
    count = len(camera.model.parameters)
    if parameter == 0:
        return replace(camera, f=camera.f * np.exp(np.array(step)))
    if parameter <= count:
        distortion = camera.distortion.copy()
        distortion[0, parameter - 1] += step
        return replace(camera, distortion=distortion)
    centre = camera.c.copy()
    centre[0, parameter - 1 - count] += step
    return replace(camera, c=centre)


DISTORTING = [model for model in ALL_MODELS if model != "pinhole"]
GRAVITY = gravity_of(4.0, 12.0)
ALONE = couple(1, None, None)


@pytest.mark.parametrize("model", DISTORTING)
def test_straight_edges_have_no_sagitta_along_the_posterior(model: str) -> None:
    camera = camera_of(model)
    sagitta = measure_sagittas(camera, curves_of(camera)).sagitta
    assert np.abs(sagitta).max() < 1e-6


def test_a_sagitta_is_in_pixels() -> None:
    """Without distortion a place off the line is as far off it as it is in the picture."""
    camera = Camera.create("simple_radial", np.array(500.0), (640, 480), [0.0])
    x = np.linspace(100, 400, STRETCHES)
    bump = 1 - ((x - 250) / 150) ** 2
    points = np.stack([x, 120 + 3.5 * bump], -1)[None]
    terms = np.stack([np.ones_like(x), x, bump], -1)
    curves = Curves(points, np.linalg.pinv(terms)[2][None], np.ones(1))
    assert np.abs(measure_sagittas(camera, curves).sagitta).item() == pytest.approx(3.5, rel=1e-3)


@pytest.mark.parametrize("model", DISTORTING)
def test_jacobian_along_the_posterior(model: str) -> None:
    """Against central differences, far from where edges are straight."""
    camera = camera_of(model)
    curves = curves_of(camera, 12, curved=12, noise=0.5)
    count = len(camera.model.parameters)
    free = Free(False, True, tuple(range(count)), True)
    found = measure_sagittas(camera, curves).jacobian(free)[0]

    def sagittas(step: Array) -> Array:
        moved = replace(
            camera,
            f=camera.f * np.exp(step[0]),
            distortion=camera.distortion + step[1 : 1 + count],
            c=camera.c + step[1 + count :],
        )
        return measure_sagittas(moved, curves).sagitta[0]

    small = 1e-5
    for column, step in enumerate(np.eye(3 + count)):
        expected = (sagittas(small * step) - sagittas(-small * step)) / (2 * small)
        scale = np.abs(expected).max().clip(min=1e-3)
        assert np.allclose(found[:, column] / scale, expected / scale, atol=1e-6)


@pytest.mark.parametrize("model", DISTORTING)
def test_distortion_is_found_among_curved_edges(model: str) -> None:
    camera = camera_of(model)
    curves = curves_of(camera, 90, curved=30, noise=0.05)
    prior = prior_of(camera, GRAVITY, sigma_distortion=0.03)
    off = np.full_like(camera.distortion, 0.03)
    prior = replace(prior, cameras=replace(prior.cameras, distortion=camera.distortion + off))
    (answer,) = fit_distortion([prior], [curves], ALONE)
    truth = measure_sagittas(camera, curves).sagitta
    before, after = (
        measure_sagittas(one.cameras, curves).sagitta - truth for one in (prior, answer)
    )
    assert np.median(np.abs(after)) < 0.25 * np.median(np.abs(before))
    assert np.array_equal(answer.gravity, prior.gravity)
    assert answer.fy == prior.fy
    assert np.linalg.eigvalsh(answer.covariance)[0] > -1e-12


def test_one_parameter_is_as_sure_as_it_is_right() -> None:
    camera = camera_of("simple_radial")
    errors = []
    for seed in range(40):
        curves = curves_of(camera, 30, curved=8, noise=0.2, seed=seed)
        prior = prior_of(camera, GRAVITY, sigma_log_f=1e-6, sigma_distortion=0.05)
        prior = replace(prior, cameras=replace(prior.cameras, distortion=camera.distortion + 0.03))
        (answer,) = fit_distortion([prior], [curves], ALONE)
        sigma = math.sqrt(answer.covariance[-1, -1])
        assert sigma < 0.8 * prior.sigma.distortion[0]
        errors.append((answer.distortion[0] + 0.12) / sigma)
    # Edges are taken for repetitive, which these are not.
    assert 0.3 < math.sqrt(sum(e * e for e in errors) / len(errors)) < 1.2


def test_distortion_follows_the_focal_length() -> None:
    """Edges tell k1 / f^2: where f is that unsure, k1 is twice as much, relatively."""
    camera = camera_of("simple_radial")
    prior = prior_of(camera, GRAVITY, sigma_log_f=0.2)
    (answer,) = fit_distortion([prior], [curves_of(camera, 60)], ALONE)
    (k1,) = answer.distortion
    assert k1 == pytest.approx(-0.12, abs=2e-3)
    covariance = answer.covariance[2:, 2:]
    assert covariance[0, 1].item() == pytest.approx(2 * k1 * 0.04, rel=0.02)
    assert math.sqrt(covariance[1, 1]) == pytest.approx(abs(2 * k1 * 0.2), rel=0.05)


def test_a_prior_that_is_vague_beyond_reason_does_no_harm() -> None:
    camera = camera_of("simple_radial")
    prior = prior_of(camera, GRAVITY, sigma_distortion=10.0)
    (answer,) = fit_distortion([prior], [curves_of(camera, 60, curved=20, noise=0.05)], ALONE)
    assert answer.distortion[0] == pytest.approx(-0.12, abs=0.015)


def test_nothing_changes_without_edges_or_without_distortion_to_find() -> None:
    camera = camera_of("simple_radial")
    prior = prior_of(camera, GRAVITY)
    assert fit_distortion([prior], [Curves.none()], ALONE)[0] is prior
    kept = [i for i, name in enumerate(prior.parameters) if name != "k1"]
    fixed = replace(
        prior,
        parameters=tuple(prior.parameters[i] for i in kept),
        covariance=prior.covariance[kept][:, kept],
    )
    assert fit_distortion([fixed], [curves_of(camera)], ALONE)[0] is fixed
    pinhole = prior_of(camera_of("pinhole"), GRAVITY)
    assert fit_distortion([pinhole], [curves_of(camera)], ALONE)[0] is pinhole


def test_images_of_one_camera_tell_together() -> None:
    camera = camera_of("simple_radial")
    prior = prior_of(camera, GRAVITY)
    prior = replace(prior, cameras=replace(prior.cameras, distortion=camera.distortion + 0.03))
    both = couple(2, [0, 0], None)
    first, second = fit_distortion([prior, prior], [curves_of(camera), Curves.none()], both)
    assert first.distortion == second.distortion
    assert first.distortion[0] == pytest.approx(-0.12, abs=2e-3)


def test_edges_tell_where_no_direction_is_supported() -> None:
    camera = camera_of("simple_radial")
    prior = prior_of(camera, GRAVITY)
    prior = replace(prior, cameras=replace(prior.cameras, distortion=camera.distortion + 0.03))
    few = Segments(np.zeros((0, 2, 2)), 0.3, curves_of(camera))
    (answer,) = refine([prior], [few])
    assert answer.distortion[0] == pytest.approx(-0.12, abs=2e-3)
    assert answer.lines is not None
    assert answer.lines.verdict is Verdict.TOO_FEW


@pytest.mark.parametrize("k_hat", [-0.1, -0.03, 0.03, 0.1])
def test_edges_tell_how_a_supposed_pinhole_bends(k_hat: float) -> None:
    pinhole = camera_of("pinhole")
    k1 = k_hat * (pinhole.f / pinhole.size[:, 1]).item() ** 2
    lens = Camera.create("simple_radial", pinhole.f, pinhole.size, [k1])
    wide = with_free_distortion(prior_of(pinhole, GRAVITY))
    (told,) = fit_distortion([wide], [curves_of(lens, 60, noise=0.1)], ALONE)
    assert told.distortion[0] == pytest.approx(k1, rel=0.25)


@pytest.mark.parametrize("k_hat", [-0.08, 0.0, 0.08])
def test_few_nodes_tell_of_a_supposed_pinhole_what_many_tell(
    k_hat: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    pinhole = camera_of("pinhole")
    k = k_hat * (pinhole.f / pinhole.size[:, 1]).item() ** 2
    camera = Camera.create("division", pinhole.f, (640, 480), [k])
    curves = curves_of(camera, 60, curved=20, noise=0.05)
    prior = with_free_distortion(prior_of(pinhole, GRAVITY))
    (few,) = fit_distortion([prior], [curves], ALONE)
    monkeypatch.setattr(distortion, "FEW_NODES", 33)
    (many,) = fit_distortion([prior], [curves], ALONE)
    sigma = math.sqrt(many.covariance[-1, -1])
    assert abs(few.cameras.distortion.item() - many.cameras.distortion.item()) < 1e-3 * sigma
    assert np.allclose(few.covariance, many.covariance, rtol=1e-3)


def test_firm_is_surer_of_distortion_alone() -> None:
    camera = camera_of("simple_radial")
    (told,) = fit_distortion([prior_of(camera, GRAVITY)], [curves_of(camera, 20, noise=1.0)], ALONE)
    firmer = tighten_distortion(told)
    assert np.array_equal(firmer.covariance[:3], told.covariance[:3])
    one, other = (np.linalg.inv(c.covariance)[3, 3] for c in (told, firmer))
    assert (other / one).item() == pytest.approx(4, rel=1e-6)
