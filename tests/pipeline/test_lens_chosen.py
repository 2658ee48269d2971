"""Which kind of lens took a picture, where nobody says it: ``camera_model="auto"``."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import cv2
import numpy as np
import pytest
import torch

from geocalib import Calibration, Calibrator, Camera, Prior
from geocalib.errors import ConfigError
from geocalib.geometry.gravity import from_roll_pitch
from geocalib.imaging.content import Circle
from geocalib.pipeline.lens import within_circle
from geocalib.pipeline.predict import NetworkOutput
from geocalib.priors.lens import Choice
from geocalib.result.evidence import Lines, Verdict
from geocalib.result.uncertainty import Trust
from geocalib.solver.families import BENT, RECTILINEAR, WIDE, Candidate
from geocalib.synthetic import render_scene
from oracle_network import check, knowing, picture, truth

SIZE = (480, 360)
PINHOLE = truth(SIZE)
BARREL = truth(SIZE, vfov_deg=70.0, model="simple_radial", hat=[-0.12])
FISHEYE = truth(SIZE, model="kannala_brandt", f=190.0, distortion=4 * [0.0])


def asked(known: Any, camera_model: str = "auto", **more: Any) -> Calibration:
    return knowing(known).calibrate(picture(known.size, 0), camera_model, lines="off", **more)


def test_a_pinhole_is_told_unasked_and_as_if_it_had_been_named() -> None:
    unnamed, named = asked(PINHOLE), asked(PINHOLE, "pinhole")
    check(unnamed, PINHOLE)
    assert unnamed.camera_model == "pinhole"
    assert unnamed.fy == named.fy
    assert (unnamed.gravity == named.gravity).all()
    assert named.lens is None
    assert unnamed.lens is not None
    assert unnamed.lens.camera_model == "pinhole"


def test_a_bent_lens_is_told_unasked() -> None:
    found = asked(BARREL)
    assert found.camera_model == "simple_radial"
    check(found, BARREL)
    assert found.lens is not None
    assert {each.camera_model for each in found.lens.rivals} == {"pinhole", "ucm"}
    assert sum(each.probability for each in found.lens) == pytest.approx(1)


def bent_by(
    sigmas: float, shares: tuple[float, ...]
) -> tuple[Calibration, tuple[float, float], Choice]:
    """An answer whose bend is so many times its sigma, what is usual of bends, and the choice of
    its family; shares: of bent, rectilinear and wide lenses."""
    known = truth(SIZE, model="simple_radial", hat=[-0.02])
    answer = asked(known, "simple_radial")
    bend = abs(answer.distortion[0])
    answer = replace(answer, sigma=replace(answer.sigma, distortion=(bend / sigmas,)))
    usual = BENT.prior(answer.fy, SIZE)
    candidates = [
        Candidate(family, answer.cameras, answer.gravity, prior, 0.0, 1.0)
        for family, prior in ((BENT, usual), (RECTILINEAR, None), (WIDE, None))
    ]
    odds = BENT.odds, RECTILINEAR.odds, WIDE.odds
    return answer, usual, Choice(tuple(candidates), shares, odds)


@pytest.mark.parametrize(("sigmas", "model"), [(1.0, "pinhole"), (6.0, "simple_radial")])
def test_a_bend_within_its_sigma_is_none(sigmas: float, model: str) -> None:
    """What fields alone looked like may not hold once lines are there."""
    answer, usual, choice = bent_by(sigmas, (0.7, 0.2, 0.1))
    judged = choice.judged_by(answer)
    assert judged.model.name == model
    assert sum(judged.probabilities) == pytest.approx(1)
    assert list(judged.probabilities) == sorted(judged.probabilities, reverse=True)
    # By hand: the density of no bend, after and before, times the odds.
    after = math.exp(-0.5 * sigmas**2) / answer.sigma.distortion[0]
    odds = after * usual[1] * RECTILINEAR.odds / BENT.odds
    found = {each.camera_model: each.probability for each in judged.lens}
    assert found["pinhole"] / found["simple_radial"] == pytest.approx(odds)


def test_rounding_makes_nothing_more_than_certain() -> None:
    answer, _, choice = bent_by(100.0, (1.0, 2.0**-52, 0.0))
    assert choice.judged_by(answer).probabilities[0] == 1.0


def test_a_fisheye_is_told_unasked_with_its_true_view() -> None:
    found = asked(FISHEYE)
    assert found.camera_model == "ucm"
    true = math.degrees(FISHEYE.camera.border_vfov.item())
    assert found.vfov_deg == pytest.approx(true, abs=1.5)
    assert found.hfov_deg == pytest.approx(145, abs=3)
    assert found.gravity == pytest.approx(FISHEYE.gravity[0], abs=0.01)
    # A pinhole is far off.
    assert abs(asked(FISHEYE, "pinhole").vfov_deg - true) > 5


@pytest.mark.parametrize("told", [{"vfov_deg": 40.0}, {"vfov_deg": 100.0}])
def test_a_field_of_view_told_of_a_fisheye_is_doubted(told: dict[str, float]) -> None:
    found = asked(FISHEYE, **told)
    assert found.camera_model == "pinhole"
    assert any("wide lens" in warning for warning in found.warnings)
    assert not found.trust.fov
    for known, named in ((PINHOLE, "auto"), (BARREL, "simple_radial")):
        true = math.degrees(known.camera.border_vfov.item())
        unsuspected = asked(known, named, vfov_deg=true)
        assert not any("wide lens" in warning for warning in unsuspected.warnings)


def test_rivals_add_to_the_sigma_as_far_as_they_are_probable() -> None:
    found = asked(BARREL)
    assert found.lens is not None
    best, *rivals = found.lens
    named = asked(BARREL, "simple_radial").cameras
    assert found.cameras.f.item() == pytest.approx(named.f.item(), rel=1e-3)
    apart = sum(each.probability * (each.vfov_deg - best.vfov_deg) ** 2 for each in rivals)
    assert found.sigma.vfov_deg**2 >= 0.9 * apart


def test_pictures_of_one_camera_decide_together() -> None:
    views = [
        truth(SIZE, roll_deg=10 * i, model="kannala_brandt", f=190.0, distortion=4 * [0.0])
        for i in range(2)
    ]
    calibrator = knowing(*views)
    sources = [picture(SIZE, i) for i in range(2)]
    found = calibrator.calibrate(sources, "auto", shared_intrinsics=True, lines="off")
    assert [each.camera_model for each in found] == ["ucm", "ucm"]
    assert found[0].distortion == found[1].distortion
    assert found[0].lens is not None
    assert found[1].lens is not None
    assert found[0].lens.probability == found[1].lens.probability


def test_a_list_holds_lenses_of_all_kinds() -> None:
    known = (PINHOLE, FISHEYE, BARREL)
    calibrator = knowing(*known)
    found = calibrator.calibrate([picture(SIZE, i) for i in range(3)], "auto", lines="off")
    assert [each.camera_model for each in found] == ["pinhole", "ucm", "simple_radial"]
    alone = [calibrator.calibrate(picture(SIZE, i), "auto", lines="off") for i in range(3)]
    for one, other in zip(found, alone, strict=True):
        assert one.vfov_deg == pytest.approx(other.vfov_deg, rel=1e-9)


def test_a_set_decides_for_each_camera() -> None:
    views = [
        truth(SIZE, roll_deg=5 * i, model="kannala_brandt", f=190.0, distortion=4 * [0.0])
        for i in range(3)
    ]
    views += [truth(SIZE, roll_deg=-5 * i) for i in range(3)]
    sources = [picture(SIZE, i) for i in range(6)]
    found = list(
        knowing(*views).calibrate_set(sources, "auto", cameras=[0, 0, 0, 1, 1, 1], lines="off")
    )
    assert [each.camera_model for each in found] == ["ucm"] * 3 + ["pinhole"] * 3
    for one, known in zip(found, views, strict=True):
        assert one.vfov_deg == pytest.approx(math.degrees(known.camera.border_vfov.item()), abs=1.5)
        assert one.lens is not None
        assert math.isnan(one.lens.families[0].roll_deg)
        assert Calibration.from_json(one.to_json()).camera_model == one.camera_model


@pytest.mark.parametrize(
    ("known", "model"),
    [
        ({"distortion": [-0.07]}, "simple_radial"),
        ({"distortion": Prior([-0.07, 0.0], [0.01, 0.01])}, "radial"),
        ({"vfov_deg": 50.0}, "pinhole"),
    ],
)
def test_what_is_known_of_a_lens_names_it(known: dict[str, Any], model: str) -> None:
    found = asked(PINHOLE, **known)
    assert found.camera_model == model
    assert found.lens is None


def test_a_distortion_that_may_be_of_several_lenses_needs_a_name() -> None:
    with pytest.raises(ConfigError, match=r"4 numbers, .* name the camera_model"):
        asked(PINHOLE, distortion=[0.0, 0.0, 0.0, 0.0])


def test_a_known_focal_length_holds_for_the_family_that_is_chosen() -> None:
    found = asked(FISHEYE, focal=190.0)
    assert found.camera_model == "ucm"
    assert found.fy == 190.0


def test_only_the_circle_of_a_circular_picture_is_heeded() -> None:
    calibrator = knowing(FISHEYE)
    (output,) = calibrator.predict([calibrator.prepare(picture(SIZE, 0), lines=False)])
    assert isinstance(output, NetworkOutput)
    inside = within_circle(replace(output, circle=Circle((240.0, 180.0), 170.0)))
    confidence = inside.fields.up_confidence[0]
    assert confidence[0, 0] == 0
    height, width = confidence.shape
    assert confidence[height // 2, width // 2] > 0
    assert np.mean(confidence > 0) == pytest.approx(math.pi * 170**2 / (480 * 360), abs=0.03)
    (found,) = calibrator.fit([inside], "auto", lines="off")
    assert isinstance(found, Calibration)
    assert found.camera_model == "ucm"


TOWNS = {
    "pinhole": Camera.create("pinhole", f=330.0, size=SIZE),
    "simple_radial": Camera.create("simple_radial", f=260.0, size=SIZE, distortion=[-0.078]),
    "ucm": Camera.create("ucm", f=230.0, size=SIZE, distortion=[0.6]),
    "kannala_brandt": Camera.create("kannala_brandt", f=190.0, size=SIZE, distortion=[0.0] * 4),
}
"""Lenses of each family, of a fisheye two."""


@pytest.fixture(scope="module")
def calibrator() -> Calibrator:
    """With the packaged weights."""
    return Calibrator("lean", device="cpu")


@pytest.mark.parametrize("name", TOWNS)
def test_rendered_towns_tell_lens_and_view(calibrator: Calibrator, name: str) -> None:
    camera = TOWNS[name]
    gravity = from_roll_pitch(torch.tensor([0.05]), torch.tensor([-0.07]))
    town = (255 * render_scene(camera, gravity, seed=21, subpixels=1)[0]).byte().numpy()
    found = calibrator.calibrate(town)
    assert found.camera_model == ("ucm" if name == "kannala_brandt" else name)
    assert found.lens is not None
    assert found.lens.camera_model == found.camera_model
    assert found.vfov_deg == pytest.approx(math.degrees(camera.border_vfov.item()), abs=4)
    assert found.gravity == pytest.approx(gravity[0].numpy(), abs=0.02)
    if name == "pinhole":
        named = calibrator.calibrate(town, "pinhole")
        assert (named.fy, named.roll_deg, named.pitch_deg) == (
            found.fy,
            found.roll_deg,
            found.pitch_deg,
        )


@pytest.mark.parametrize(
    ("bend", "verdict", "model"),
    [
        ((-0.08, 0.02), Verdict.CROSSED, "simple_radial"),
        ((-0.02, 0.02), Verdict.CROSSED, "pinhole"),
        ((-0.08, 0.02), Verdict.UNLIKELY, "pinhole"),
    ],
)
def test_long_edges_hint_at_a_bend(bend: tuple[float, float], verdict: Verdict, model: str) -> None:
    answer = replace(asked(PINHOLE, "pinhole"), lines=Lines(verdict, bend=bend))
    straight = Candidate(RECTILINEAR, answer.cameras, answer.gravity, None, 0.0, 1.0)
    choice = Choice((straight,), (1.0,), (RECTILINEAR.odds,)).tried_bent(answer)
    assert choice.model.name == model


def test_edges_of_any_picture_of_a_camera_hint_at_its_lens() -> None:
    seen = asked(PINHOLE, "pinhole")
    straight = Candidate(RECTILINEAR, seen.cameras, seen.gravity, None, 0.0, 1.0)
    choice = Choice((straight,), (1.0,), (RECTILINEAR.odds,))
    bent = replace(seen, lines=Lines(Verdict.CROSSED, bend=(-0.08, 0.02)))
    assert choice.second([seen, bent]).model.name == "simple_radial"
    assert choice.second([seen, seen]) == choice


def test_a_set_tells_a_bend_that_edges_show(calibrator: Calibrator) -> None:
    """Too slight for its fields; the same as where they are calibrated as a list."""
    bend = -0.068
    camera = Camera.create("simple_radial", f=560.0, size=(640, 480), distortion=[bend])
    towns = []
    for seed, (roll, pitch) in enumerate(((0.05, -0.07), (-0.03, 0.08), (0.02, 0.03)), 21):
        gravity = from_roll_pitch(torch.tensor([roll]), torch.tensor([pitch]))
        scene = render_scene(camera, gravity, seed=seed, subpixels=1)[0]
        towns.append((255 * scene).byte().numpy())
    answers = [
        *calibrator.calibrate(towns, shared_intrinsics=True),
        *calibrator.calibrate_set(towns),
    ]
    for answer in answers:
        assert isinstance(answer, Calibration)
        assert answer.camera_model == "simple_radial"
        assert answer.distortion[0] == pytest.approx(bend, abs=0.03)


def nothing(name: str, seed: int) -> np.ndarray:
    """A picture that tells nothing, (360, 480, 3) grey levels."""
    noise = np.random.default_rng(seed).normal(0.0, 1.0, (SIZE[1], SIZE[0]))
    coarse = cv2.GaussianBlur(noise, (0, 0), 8.0)
    grey = {
        "black": 0.0 * noise,
        "noise": 128 + 40 * noise,
        "clouds": 128 + 40 * coarse / coarse.std(),
        "wall": 200 + 2 * noise + 3 * coarse / coarse.std(),
    }[name]
    return np.repeat(grey.clip(0, 255).astype(np.uint8)[..., None], 3, 2)


@pytest.mark.parametrize("name", ["black", "noise", "clouds", "wall"])
@pytest.mark.parametrize("seed", range(2))
def test_a_picture_that_tells_nothing_gets_no_lens_by_chance(
    calibrator: Calibrator, name: str, seed: int
) -> None:
    found = calibrator.calibrate(nothing(name, seed))
    assert found.camera_model == "pinhole"
    assert found.trust == Trust(False, False, False)
    assert found.warnings
    assert found.sigma.gravity_deg > 5
    assert found.sigma.vfov_deg > 4
