"""Doubts come where an answer is doubtful, and only there; each closes the gates of what it is
about, and no others."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from calibrations import one
from geocalib.geometry.gravity import from_roll_pitch
from geocalib.result.calibration import Calibration
from geocalib.result.evidence import Lines, PriorCheck, Verdict
from geocalib.result.trust import (
    DOUBTFUL_CHANCE,
    DOUBTFUL_GRAVITY_DEG,
    LOST_CHANCE,
    Doubt,
    chance_far_off,
    doubts,
    judged,
)
from geocalib.result.uncertainty import Uncertainty
from geocalib.solver import Status


def words(calibration: Calibration) -> list[str]:
    return [doubt.text for doubt in doubts(calibration)]


def gates(calibration: Calibration) -> tuple[bool, bool, bool]:
    return calibration.trusted_gravity, calibration.trusted_fov, calibration.trusted_lens


def test_an_ordinary_answer_is_not_doubted() -> None:
    assert doubts(one()) == ()
    assert gates(one()) == (True, True, True)


def test_a_fit_that_did_not_settle() -> None:
    stalled = replace(one(), status=str(Status.STALLED))
    assert words(stalled) == [f"the fit did not settle: {Status.STALLED}"]
    assert gates(stalled) == gates(judged(one(), doubts(stalled))) == (False, False, False)


@pytest.mark.parametrize(
    ("sigma_deg", "shown"),
    [(7.4, "± 7°"), (1e5, "± 180°"), (math.inf, "± 180°"), (math.nan, "± 180°")],
)
def test_uncertain_gravity_leaves_the_field_of_view(sigma_deg: float, shown: str) -> None:
    answer = one()
    uncertain = replace(answer, sigma=replace(answer.sigma, gravity_deg=sigma_deg))
    assert words(uncertain) == [f"the direction of gravity is uncertain ({shown})"]
    assert gates(judged(uncertain, doubts(uncertain))) == (False, True, True)


@pytest.mark.parametrize("f", [200.0, 500.0, 2000.0, 8000.0])
def test_the_field_of_view_is_doubted_by_its_share_at_any_angle(f: float) -> None:
    """Views of 100 to 3.4 degrees, in a fit of the focal length alone."""
    answer = one("pinhole", f=f)
    for share, doubted in ((0.13, False), (0.15, True)):
        half = math.atan(answer.height / 2 / f)
        vfov_deg = math.degrees(share * math.sin(2 * half))
        sigma = replace(answer.sigma, focal=share * f, vfov_deg=vfov_deg)
        told = replace(answer, sigma=sigma)
        assert bool(doubts(told)) is doubted
        assert gates(judged(told, doubts(told))) == (True, not doubted, not doubted)


def test_a_narrow_view_that_may_be_a_wide_one_is_doubted() -> None:
    """21.1 ± 6.7 degrees where 53.1 are true was once not."""
    answer = one("pinhole", f=2060.0, size=(1200, 768), c=(600, 384))
    unsure = replace(answer, sigma=replace(answer.sigma, focal=673.0, vfov_deg=6.7))
    assert answer.vfov_deg == pytest.approx(21.1, abs=0.05)
    assert "the field of view is uncertain (± 7°)" in words(unsure)


def test_wide_views_are_doubted_by_the_angle() -> None:
    answer = one("ucm")
    unsure = replace(answer, sigma=replace(answer.sigma, focal=1.0, vfov_deg=12.0))
    assert words(unsure) == ["the field of view is uncertain (± 12°)"]


def test_a_lens_that_does_not_fill_the_image_is_not_doubted() -> None:
    answer = one("eucm", f=20.0, distortion=(0.6, 1.1))
    assert math.isnan(answer.vfov_deg)
    sigma = replace(answer.sigma, vfov_deg=math.nan, focal=1.0)
    assert doubts(replace(answer, sigma=sigma)) == ()


@pytest.mark.parametrize(
    ("size", "told", "trusted"),
    [((240, 160), False, True), ((140, 96), True, True), ((64, 48), True, False)],
)
def test_tiny_pictures_are_said_to_be(size: tuple[int, int], told: bool, trusted: bool) -> None:
    answer = one("pinhole", f=float(size[1]), size=size, c=(size[0] / 2, size[1] / 2))
    answer = replace(answer, sigma=replace(answer.sigma, focal=0.01 * size[1]))
    assert any("the picture is tiny" in said for said in words(answer)) is told
    assert judged(answer, doubts(answer)).trusted is trusted


@pytest.mark.parametrize(
    ("pitch_deg", "said"),
    [
        (89.5, ["the camera looks straight up, where roll means nothing"]),
        (-89.5, ["the camera looks straight down, where roll means nothing"]),
        (70.0, []),
    ],
)
def test_roll_means_nothing_near_the_vertical(pitch_deg: float, said: list[str]) -> None:
    """Gravity itself is as good as ever; a sensor told it, so that nobody guesses at it."""
    gravity = from_roll_pitch(np.array(0.3), np.radians(pitch_deg))
    names = ("roll direction", "pitch direction")
    cameras, covariance = one().cameras, math.radians(1) ** 2 * np.eye(2)
    sigma = Uncertainty.of(cameras, gravity, covariance, names)
    check = PriorCheck("gravity", "phone", (0.0, 0.0, 1.0), 1.0, (0.0, 0.0, 1.0), 1.0, 0.1)
    answer = replace(one(), gravity=gravity, sigma=sigma, priors=(check,))
    assert words(answer) == said
    assert gates(judged(answer, doubts(answer))) == (True, True, True)
    assert sigma.roll_deg < 105
    assert f"± {sigma.roll_deg:.2f}°" in str(answer)


def test_what_is_held_fixed_is_not_doubted() -> None:
    answer = one("pinhole")
    held = replace(answer.sigma, gravity_deg=0.0, vfov_deg=0.0, focal=0.0)
    assert doubts(replace(answer, sigma=held)) == ()


def test_every_reason_is_told() -> None:
    answer = one()
    bad = replace(
        answer,
        status=str(Status.MAX_ITERATIONS),
        sigma=replace(answer.sigma, gravity_deg=2 * DOUBTFUL_GRAVITY_DEG, vfov_deg=60.0),
    )
    assert len(doubts(bad)) == 3
    assert judged(bad, doubts(bad)).warnings == tuple(words(bad))


def test_what_is_said_of_a_picture_is_about_all_of_it() -> None:
    drawing = judged(one(), (Doubt("the image is a drawing"),))
    assert gates(drawing) == (False, False, False)
    assert not drawing.trusted
    assert drawing.verdict == ("the image is a drawing",)


def test_the_verdict_tells_what_holds_all_the_same() -> None:
    fov = Doubt("the field of view is uncertain (± 12°)", ("fov", "lens"))
    assert judged(one("pinhole"), (fov,)).verdict == ("gravity ok", fov.text)
    gravity = Doubt("the direction of gravity is uncertain (± 9°)", ("gravity",))
    assert judged(one("pinhole"), (gravity,)).verdict == ("field of view ok", gravity.text)
    shown = judged(one("radial"), (gravity,)).verdict
    assert shown == ("field of view and lens ok", gravity.text)
    assert one().verdict == ("ok",)


def changed(gravity_deg: float = 3.0, focal: float = 60.0, **camera: float) -> Calibration:
    """An answer that is somewhat sure."""
    answer = one("pinhole", **camera)
    sigma = replace(answer.sigma, gravity_deg=gravity_deg, focal=focal)
    return replace(answer, sigma=sigma)


def test_the_chance_that_gravity_is_far_off_grows_with_what_speaks_for_it() -> None:
    usual = chance_far_off(changed())
    assert chance_far_off(changed(gravity_deg=4.5)) > usual
    assert chance_far_off(changed(focal=150.0)) > usual
    assert chance_far_off(changed(pitch_deg=40.0)) > chance_far_off(changed(pitch_deg=0.0))
    assert chance_far_off(changed(roll_deg=25.0)) > usual
    with_lines = replace(changed(), lines=Lines(Verdict.CROSSED, 40, (30, 20)))
    assert chance_far_off(with_lines) < 0.5 * usual


def test_gravity_that_may_be_far_off_is_doubted_though_its_sigma_is_small() -> None:
    unsure = changed(gravity_deg=4.0, focal=60.0, pitch_deg=10.0)
    (doubt,) = doubts(unsure)
    chance = chance_far_off(unsure)
    assert DOUBTFUL_CHANCE < chance < LOST_CHANCE
    assert doubt == Doubt(f"gravity may be off by more than 5° ({chance:.0%} likely)", ("gravity",))


def test_gravity_that_others_tell_is_not_guessed_at() -> None:
    down = (0.0, 1.0, 0.0)
    said = PriorCheck("gravity", "accelerometer", down, 1.0, down, 9.0, 0.5)
    unsure = changed(gravity_deg=4.0, focal=65.0, pitch_deg=30.0)
    assert doubts(replace(unsure, priors=(said,))) == ()
    assert doubts(replace(unsure, priors=(replace(said, used=False),))) != ()
    held = replace(unsure, parameters=("log f",), covariance=unsure.covariance[2:3, 2:3])
    assert doubts(held) == ()


def test_a_focal_length_that_is_told_says_nothing_of_gravity() -> None:
    """However exact it is; the picture's own speaks for it."""
    seen = changed(gravity_deg=4.0, focal=10.0, pitch_deg=20.0)
    check = PriorCheck("focal", "EXIF", (500.0,), 10.0, (480.0,), 80.0, 0.2)
    told, more = (
        replace(seen, priors=(check,), sigma=replace(seen.sigma, focal=focal))
        for focal in (10.0, 1.0)
    )
    assert chance_far_off(seen) < DOUBTFUL_CHANCE < chance_far_off(told)
    assert chance_far_off(more) == chance_far_off(told)
    (doubt,) = doubts(told)
    assert doubt.about == ("gravity",)
    unused = replace(told, priors=(replace(check, used=False),))
    assert chance_far_off(unused) == chance_far_off(seen)


def test_lines_that_move_the_answer_far_raise_a_doubt() -> None:
    lines = Lines(Verdict.CROSSED, 40, (30, 20), focal_sigmas=1.4)
    near = replace(one("pinhole"), lines=lines)
    far = replace(near, lines=replace(lines, focal_sigmas=2.2))
    assert doubts(near) == ()
    (doubt,) = doubts(far)
    assert doubt.text == "straight lines moved the focal length by 2.2 of the network's sigmas"
    assert gates(judged(far, (doubt,))) == (True, False, True)


def test_a_view_that_may_be_a_steep_one_has_no_trusted_field_of_view() -> None:
    """Unless something else tells the focal length well."""
    lost = changed(gravity_deg=4.9, focal=60.0, roll_deg=30.0, pitch_deg=40.0)
    assert chance_far_off(lost) > LOST_CHANCE
    assert gates(judged(lost, doubts(lost))) == (False, False, False)
    told = replace(lost, sigma=replace(lost.sigma, focal=10.0))
    assert gates(judged(told, doubts(told))) == (False, True, True)
