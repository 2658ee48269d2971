"""Focal lengths as people use them: closed forms, and who outvotes them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from calibrations import one
from geocalib import Crop, Prior, Rig
from geocalib.errors import ConfigError
from geocalib.geometry.conventions import FULL_FRAME_DIAGONAL
from geocalib.geometry.fields import ALONG_PITCH, LOG_F
from geocalib.priors import photos
from geocalib.priors.photos import (
    ANY_SHAPE,
    BY_SHAPE,
    FACTOR,
    POWER,
    TOO_LONG,
    UNLEARNT_WIDER,
    WIDER,
    FocalComponent,
    FocalEstimate,
    as_people_take_them,
    combined,
    usual,
)
from geocalib.result.calibration import Calibration
from oracle_network import knowing, picture, truth

SIZE = (480, 360)
VAGUE = {"confidence_scale": 1e12}
"""A network whose answers weigh nothing."""
MIXTURES = [parts for h in (ANY_SHAPE, *BY_SHAPE.values()) for parts in (h.lying, h.upright)]


def only(part: FocalComponent, monkeypatch: pytest.MonkeyPatch) -> None:
    """This is how all photographs are taken."""
    monkeypatch.setattr(photos, "usual", lambda width, height: (part,))


@pytest.mark.parametrize("parts", MIXTURES)
@pytest.mark.parametrize(("millimetres", "sigma"), [(20.0, 0.3), (45.0, 0.2), (200.0, 0.5)])
def test_the_combination_is_that_of_all_focal_lengths(
    parts: tuple[FocalComponent, ...], millimetres: float, sigma: float
) -> None:
    grid, mean = np.linspace(-2, 10, 20001), math.log(millimetres)
    density = sum(
        p.share / p.sigma * np.exp(-0.5 * ((grid - math.log(p.millimetres)) / p.sigma) ** 2)
        for p in parts
    ) * np.exp(-0.5 * ((grid - mean) / sigma) ** 2)
    density = density / density.sum()
    middle = float(density @ grid)
    spread = math.sqrt(density @ (grid - middle) ** 2)
    assert combined(mean, sigma, parts) == (pytest.approx(middle), pytest.approx(spread))


@pytest.mark.parametrize("parts", MIXTURES)
def test_shares_are_of_a_whole(parts: tuple[FocalComponent, ...]) -> None:
    assert sum(part.share for part in parts) == pytest.approx(1)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ((4032, 3024), BY_SHAPE[4 / 3].lying),
        ((3024, 4032), BY_SHAPE[4 / 3].upright),
        ((320, 427), BY_SHAPE[4 / 3].upright),
        ((4080, 3072), BY_SHAPE[4 / 3].lying),
        ((6000, 4000), BY_SHAPE[3 / 2].lying),
        ((2592, 3872), BY_SHAPE[3 / 2].upright),
        ((1920, 1080), ANY_SHAPE.lying),
        ((1080, 1920), ANY_SHAPE.upright),
        ((500, 500), ANY_SHAPE.lying),
        ((1400, 1000), ANY_SHAPE.lying),
    ],
)
def test_the_shape_of_a_photo_tells_what_took_it(
    size: tuple[int, int], expected: tuple[FocalComponent, ...]
) -> None:
    assert usual(*size) is expected


def test_of_two_photos_alike_that_of_a_reflex_camera_is_narrower() -> None:
    answers = []
    for size in ((400, 300), (400, 267)):
        before = unsure(0.4)
        camera = replace(before.cameras, size=np.array([size], float), f=np.array([350.0]))
        (after,) = as_people_take_them([replace(before, cameras=camera)], [0], None)
        assert isinstance(after, Calibration)
        answers.append(after.fy / math.hypot(*size))
    assert answers[1] > 1.1 * answers[0]


def test_what_depends_on_the_focal_length_moves_along() -> None:
    calibration = one("pinhole")
    at, pitch = calibration.parameters.index(LOG_F), calibration.parameters.index(ALONG_PITCH)
    covariance = np.diag(np.array([1e-4, 1e-4, 0.09]))
    covariance[at, pitch] = covariance[pitch, at] = 0.8 * math.sqrt(1e-4 * 0.09)
    before = replace(calibration, covariance=covariance)
    (after,) = as_people_take_them([before], [0], None)
    assert isinstance(after, Calibration)
    slope = covariance[pitch, at] / covariance[at, at]
    step = slope.item() * math.log(after.fy / before.fy)
    turned = math.radians(after.pitch_deg - before.pitch_deg)
    assert abs(turned) == pytest.approx(abs(step), rel=1e-3)
    assert after.sigma.focal < 0.3 * before.fy
    # All that varies on its own stays as uncertain.
    left = covariance - covariance[:, at, None] * covariance[at] / covariance[at, at]
    now = after.covariance
    again = now - now[:, at, None] * now[at] / now[at, at]
    assert np.allclose(left, again, atol=1e-12)


def by_focal_estimate(before: Calibration, focal_estimate: FocalEstimate) -> Calibration:
    (after,) = as_people_take_them([before], [0], None, [focal_estimate])
    assert isinstance(after, Calibration)
    return after


def unsure(sigma: float) -> Calibration:
    """Of log f."""
    return replace(one("pinhole"), covariance=np.diag([1e-4, 1e-4, sigma**2]))


def test_a_fit_and_an_opinion_are_weighed(monkeypatch: pytest.MonkeyPatch) -> None:
    # All focal lengths are alike.
    only(FocalComponent(1.0, 30.0, 1e3), monkeypatch)
    before, sigma = unsure(0.2), 0.15
    own = FACTOR * 0.2**POWER
    assert own > 0.2
    after = by_focal_estimate(before, FocalEstimate(math.log(2 * before.fy) + TOO_LONG, sigma))
    share = sigma**-2 / (sigma**-2 + own**-2)
    assert math.log(after.fy / before.fy) == pytest.approx(share * math.log(2))
    both = WIDER * (sigma**-2 + own**-2) ** -0.5
    assert after.sigma.focal / after.fy == pytest.approx(both)
    # Who is sure is not made less so.
    sure = unsure(0.01)
    assert by_focal_estimate(
        sure, FocalEstimate(math.log(sure.fy), 1e3)
    ).sigma.focal / sure.fy == pytest.approx(0.01, rel=1e-3)


@pytest.mark.parametrize("part", [FocalComponent(1.0, 28.0, 0.2), FocalComponent(1.0, 60.0, 0.4)])
def test_an_opinion_and_what_is_usual_are_weighed(
    part: FocalComponent, monkeypatch: pytest.MonkeyPatch
) -> None:
    only(part, monkeypatch)
    before, sigma = unsure(10.0), 0.1
    focal_estimate = FocalEstimate(math.log(2000.0), sigma)
    diagonal = math.hypot(before.width, before.height)
    usual = math.log(part.millimetres / FULL_FRAME_DIAGONAL * diagonal)
    shares = sigma**-2, part.sigma**-2
    expected = np.average([focal_estimate.log_f - TOO_LONG, usual], weights=shares)
    assert math.log(by_focal_estimate(before, focal_estimate).fy) == pytest.approx(
        expected, abs=2e-3
    )


def test_pictures_of_one_camera_keep_one_focal_length() -> None:
    before = unsure(0.5)
    focal_estimates = [FocalEstimate(math.log(400), 0.1), FocalEstimate(math.log(900), 0.1)]
    shared = as_people_take_them([before, before], [0, 0], None, focal_estimates)
    assert shared == as_people_take_them([before, before], [0, 0], None)


def test_a_network_that_knows_nothing_answers_as_people_take_photos() -> None:
    calibrator = knowing(truth(SIZE), **VAGUE)
    found = calibrator.calibrate(picture(SIZE, 0), prior="photos")
    equivalent = found.fy * math.hypot(36, 24) / 600
    assert 27 < equivalent < 45
    assert 0.2 < found.sigma.focal / found.fy < 0.65


def test_it_is_expected_of_single_photographs() -> None:
    calibrator = knowing(truth(SIZE), **VAGUE)
    photo = picture(SIZE, 0)
    asked = calibrator.calibrate(photo, prior="photos")
    assert calibrator.calibrate(photo).fy == asked.fy
    assert calibrator.calibrate(photo, prior="none").fy != pytest.approx(asked.fy, rel=0.01)


def test_gravity_is_as_sure_as_on_photographs() -> None:
    calibrator, photo = knowing(truth(SIZE)), picture(SIZE, 0)
    bare = calibrator.calibrate(photo, prior="none", lines="off").sigma
    usual = calibrator.calibrate(photo, lines="off").sigma
    assert usual.gravity_deg == pytest.approx(UNLEARNT_WIDER * bare.gravity_deg, rel=0.05)
    # Not where anything else tells of it.
    told = Prior((0.0, 1.0, 0.0), 0.01)
    answers = [
        calibrator.calibrate(photo, prior=prior, lines="off", gravity=told).sigma.gravity_deg
        for prior in ("auto", "none")
    ]
    assert answers[0] == pytest.approx(answers[1], rel=0.05)


def test_it_is_not_expected_of_crops_sets_and_rigs() -> None:
    calibrator, photo = knowing(truth(SIZE), **VAGUE), picture(SIZE, 0)
    crop = Crop(10, 10, *SIZE, 600, 500)
    assert (
        calibrator.calibrate(photo, crop=crop).fy
        == calibrator.calibrate(photo, crop=crop, prior="none").fy
    )
    pair = [photo, photo]
    shared, bare = (
        calibrator.calibrate(pair, shared_intrinsics=True, prior=prior)
        for prior in ("auto", "none")
    )
    assert [each.fy for each in shared if each.ok] == [each.fy for each in bare if each.ok]
    rig = Rig(np.eye(3)[None], [0], [0])
    (auto,), (none,) = (calibrator.calibrate([photo], rig=rig, prior=p) for p in ("auto", "none"))
    assert isinstance(auto, Calibration)
    assert isinstance(none, Calibration)
    assert auto.fy == none.fy
    with pytest.raises(ConfigError, match="drop prior"):
        calibrator.calibrate([photo], rig=rig, prior="photos")


def test_who_is_sure_outvotes_it() -> None:
    known = truth(SIZE, vfov_deg=20)
    sure = knowing(known).calibrate(picture(SIZE, 0), prior="photos")
    assert sure.fy == pytest.approx(known.camera.f.item(), rel=1e-3)
    vague = knowing(known, **VAGUE)
    for focal in (1000.0, Prior(1000.0, 30.0)):
        told = vague.calibrate(picture(SIZE, 0), prior="photos", focal=focal)
        assert told.fy == pytest.approx(1000, rel=1e-3)


def test_photos_of_one_camera_keep_one_focal_length() -> None:
    truths = truth(SIZE), truth(SIZE[::-1], vfov_deg=60)
    found = knowing(*truths, **VAGUE).calibrate(
        [picture(SIZE, 0), picture(SIZE[::-1], 1)], prior="photos", shared_intrinsics=True
    )
    focals = [each.fy for each in found if isinstance(each, Calibration)]
    assert focals[0] == pytest.approx(focals[1], rel=1e-6)


def test_an_unknown_prior() -> None:
    with pytest.raises(ConfigError, match="prior is 'cats'; known: auto, photos, none"):
        knowing(truth(SIZE)).calibrate(picture(SIZE, 0), prior="cats")  # type: ignore[call-overload]
