"""Joint fits in the plane of a camera, against ``fit`` and against the truth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from geocalib import fit
from geocalib.arrays import degrees, namespace
from geocalib.cameras import Camera, get_model
from geocalib.geometry.fields import Fields
from geocalib.geometry.gravity import angle_between
from geocalib.sets.camera_group import Store
from geocalib.solver import FitOptions, Prior
from geocalib.solver.joint import Evidence, Plane, alike, fit_each, fit_from, fit_turned
from geocalib.solver.known import Given, Mapping
from geocalib.solver.observations import observe
from libraries import numpy_of
from views import gravity_error_deg, random_gravity, see, with_noise

OPTIONS = FitOptions(confidence_scale=0.01)
UNCONSTRAINED = Given(None, None, None, None)
TRUE_F = {"pinhole": (), "simple_radial": (-0.08,), "eucm": (0.6, 1.1)}


def plane_of(fields: Fields, factor: float = 10.0) -> Plane:
    """Of fields that show originals so many times larger."""
    width, height = fields.size
    count, xp = len(fields), namespace(fields.up)
    mapping = Mapping(
        xp.full((count, 2), 1 / factor, dtype=xp.float64),
        xp.zeros((count, 2), dtype=xp.float64),
    )
    return Plane.create(mapping, [(int(factor * width), int(factor * height))] * count)


def shown(model: str, count: int, size: tuple[int, int], seed: int = 0) -> tuple[Fields, Camera]:
    """Noisy fields of one camera with f = 40, in portrait or landscape."""
    f = torch.full((count,), 40.0, dtype=torch.float64)
    camera = Camera.create(model, f, size, TRUE_F[model])
    gravity = random_gravity(count, seed, 30)
    return with_noise(see(camera, gravity), 2.0, seed), camera


def evidence_of(fields: Fields, plane: Plane, model: str, known: Given = UNCONSTRAINED) -> Evidence:
    placed = plane.place(observe(fields, OPTIONS.cells))
    return Evidence(placed, plane.shape, plane.known(known), get_model(model), OPTIONS)


@pytest.mark.parametrize("model", ["pinhole", "simple_radial", "eucm"])
def test_from_a_file_as_in_memory(model: str, tmp_path: Path) -> None:
    """The same fit by another way: pixels of the fields, all in memory."""
    fields = numpy_of(shown(model, 6, (48, 36))[0])
    wanted = fit(fields, model, groups=[0] * 6, options=OPTIONS)
    plane = plane_of(fields)
    kept = Store(tmp_path / "file", np.float64)
    for row in range(6):
        kept.append(plane[[row]].place(observe(fields[[row]], OPTIONS.cells)))
    known = plane.known(UNCONSTRAINED)
    evidence = Evidence(kept.load(), plane.shape, known, get_model(model), OPTIONS)
    said = fit_each(evidence)
    found = fit_from(evidence, said.gravity, np.median(said.intrinsics, 0))
    found = plane.to_fields(found, [fields.size] * 6)
    np.testing.assert_allclose(found.camera.f, wanted.camera.f, rtol=1e-5)
    np.testing.assert_allclose(found.camera.distortion, wanted.camera.distortion, atol=5e-5)
    np.testing.assert_allclose(found.camera.c, wanted.camera.c)
    np.testing.assert_allclose(found.camera.size, wanted.camera.size)
    assert degrees(angle_between(found.gravity, wanted.gravity)).max() < 1e-4
    np.testing.assert_allclose(found.covariance, wanted.covariance, rtol=1e-3, atol=1e-12)
    np.testing.assert_allclose(found.sigma.focal, wanted.sigma.focal, rtol=1e-3)
    assert found.parameters == wanted.parameters


def test_opinions_are_fits_of_single_images() -> None:
    fields, _ = shown("simple_radial", 5, (48, 36))
    wanted = fit(fields, "simple_radial", options=OPTIONS)
    plane = plane_of(fields)
    said = fit_each(evidence_of(fields, plane, "simple_radial"))
    assert said.parameters == ("log f", "k1")
    torch.testing.assert_close(said.intrinsics[:, 0].exp() * 480 / 10, wanted.camera.f)
    torch.testing.assert_close(said.intrinsics[:, 1:], wanted.camera.distortion)
    torch.testing.assert_close(said.covariance, wanted.covariance[:, 2:, 2:], rtol=1e-3, atol=1e-12)


def test_opinions_do_not_repeat_a_soft_prior_but_the_joint_fit_heeds_it() -> None:
    fields, _ = shown("pinhole", 4, (48, 36))
    plane = plane_of(fields)
    prior = Prior(torch.full((4, 1), 600.0).double(), torch.full((4, 1), 1e-3).double())
    told = evidence_of(fields, plane, "pinhole", Given(prior, None, None, None))
    said = fit_each(told)
    torch.testing.assert_close(
        said.intrinsics, fit_each(evidence_of(fields, plane, "pinhole")).intrinsics
    )
    found = fit_from(told, said.gravity, said.intrinsics[0])
    assert found.camera.f[0].item() * 480 == pytest.approx(600, rel=1e-4)


@pytest.mark.parametrize("model", ["pinhole", "simple_radial", "eucm"])
def test_portrait_and_landscape(model: str) -> None:
    wide, camera = shown(model, 4, (48, 36), 1)
    tall, _ = shown(model, 4, (36, 48), 2)
    fields = [part[[row]] for part in (wide, tall) for row in range(4)]
    plane = Plane.concatenate([plane_of(wide), plane_of(tall)])
    found = fit_turned(fields, plane, UNCONSTRAINED, get_model(model), [3] * 8, OPTIONS)
    assert found.camera.f.unique().numel() == 1
    assert found.camera.f[0].item() == pytest.approx(40, rel=0.03)
    assert (found.camera.f[0] - 40).abs() < 4 * found.sigma.focal[0]
    torch.testing.assert_close(found.camera.size[0].double(), camera.size[0])
    assert found.camera.size[7].tolist() == [36, 48]
    true = torch.cat([random_gravity(4, 1, 30), random_gravity(4, 2, 30)])
    assert gravity_error_deg(found.gravity, true).max() < 1
    alone = [fit(part, model, groups=[0] * 4, options=OPTIONS) for part in (wide, tall)]
    assert found.sigma.focal[0] < min(one.sigma.focal[0] for one in alone)


def test_left_out_images_change_nothing() -> None:
    fields, _ = shown("pinhole", 5, (48, 36))
    stranger = see(
        Camera.create("pinhole", torch.tensor([90.0]).double(), (48, 36)), random_gravity(1, 9, 20)
    )
    both = Fields.concatenate([fields, stranger])
    evidence = evidence_of(both, plane_of(both), "pinhole")
    evidence.leave_out(torch.tensor([False] * 5 + [True]))
    start = torch.tensor([40 / 48]).double().log()
    found = fit_from(evidence, random_gravity(6, 0, 30), start)
    wanted = fit_from(
        evidence_of(fields, plane_of(fields), "pinhole"), random_gravity(5, 0, 30), start
    )
    torch.testing.assert_close(found.camera.f[:5], wanted.camera.f, rtol=1e-6, atol=0)


def test_images_without_a_start_fail_alone() -> None:
    fields, _ = shown("pinhole", 3, (48, 36))
    gravity = random_gravity(3, 0, 30)
    gravity[1] = torch.nan
    evidence = evidence_of(fields, plane_of(fields), "pinhole")
    found = fit_from(evidence, gravity, torch.tensor([40 / 48]).double().log())
    assert [status.failed for status in found.status] == [False, True, False]
    assert found.camera.f[1].isnan()


def test_shapes() -> None:
    assert alike((4000, 3000), (3000, 4000))
    assert alike((4000, 3000), (1000, 750))
    assert alike((640, 479), (1280, 958))
    assert not alike((4000, 3000), (4000, 2250))
