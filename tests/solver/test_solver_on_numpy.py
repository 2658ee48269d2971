"""A fit of NumPy arrays is the fit of the same tensors."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from geocalib.cameras import Camera
from geocalib.cameras.camera import Window
from geocalib.errors import FieldError
from geocalib.geometry import gravity as sphere
from geocalib.geometry.fields import Fields
from geocalib.solver import FitOptions, FitResult, Prior, Rig, Status, fit
from geocalib.solver.coupling import couple
from geocalib.solver.joint import Evidence, Plane, fit_each, fit_from, fit_turned
from geocalib.solver.known import Given, Mapping
from geocalib.solver.observations import observe
from geocalib.solver.result import border_slopes, view_slopes
from lenses import ALL_MODELS
from libraries import assert_same, numpy_of
from samples import sample_camera
from views import random_cameras, random_gravity, see, with_noise, with_outliers

MILLIONTH_DEG = math.radians(1e-6)

WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None  # as if it were not installed
import numpy as np
from geocalib import Camera, Fields, fit, horizon, perspective_field
camera = Camera.create("simple_radial", 30, (32, 24), [-0.1])
gravity = np.array([[0.1, 0.9, 0.2]])
gravity /= np.linalg.norm(gravity)
up, latitude, valid = perspective_field(camera, gravity)
result = fit(Fields(up, latitude, *[valid.astype(float)] * 2), "simple_radial")
horizon(result.camera, result.gravity)
print(result.status[0], abs(result.gravity - gravity).max() < 1e-9, result.sigma.focal.dtype)
"""


def seen(model: str, count: int = 3, size: tuple[int, int] = (24, 20), **camera: Any) -> Fields:
    """Noisy fields of random cameras."""
    cameras = random_cameras(model, count, seed=4, size=size, **camera)
    return with_noise(see(cameras, random_gravity(count, seed=5, most_deg=30)), 2.0, seed=6)


def assert_same_fit(result: FitResult, same: FitResult) -> None:
    """The same answers to a millionth of a degree, with the same words and sigmas."""
    assert isinstance(same.gravity, np.ndarray)
    assert same.status == result.status
    assert same.parameters == result.parameters
    good = np.array([not status.failed for status in result.status])
    assert_same(result.gravity, same.gravity, MILLIONTH_DEG)
    assert_same(result.camera.vfov, same.camera.vfov, MILLIONTH_DEG)
    assert_same(result.camera.distortion, same.camera.distortion, 1e-6)
    assert_same(result.camera.c, same.camera.c, 1e-5)
    assert_same(result.cost, same.cost, 1e-8)
    assert_same(result.sigma, same.sigma, 1e-5)
    assert np.isfinite(same.gravity[good]).all()


def test_without_torch() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH], capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["converged", "True", "float64"], done.stderr


@pytest.mark.parametrize("model", ALL_MODELS)
def test_every_model(model: str) -> None:
    fields = seen(model)
    assert_same_fit(fit(fields, model), fit(numpy_of(fields), model))


@pytest.mark.parametrize("cells", [None, 7])
@pytest.mark.parametrize("initial", ["trivial", "heuristic", "ransac"])
def test_every_start(cells: int | None, initial: Any) -> None:
    fields = with_outliers(seen("pinhole"), 0.2, 0.5, seed=7)
    options = FitOptions(cells=cells, initial=initial)
    assert_same_fit(fit(fields, options=options), fit(numpy_of(fields), options=options))


def test_observations_in_cells_that_do_not_fit() -> None:
    fields = with_outliers(seen("pinhole", size=(23, 19)), 0.2, 0.5, seed=7)
    assert_same(observe(fields, 7), observe(numpy_of(fields), 7))


@pytest.mark.parametrize(
    "known",
    [
        {"focal": 25.0},
        {"focal": Prior(30.0, 0.5), "distortion": Prior([0.0], [0.01])},
        {"gravity": [0.0, 1.0, 0.1]},
        {"gravity": Prior([0.0, 1.0, 0.1], 0.05)},
        {"principal_point": Prior([12.0, 10.0], 0.3), "aspect": Prior(1.1, 0.05)},
        {"principal_point": [11.0, 10.5], "distortion": [0.02]},
    ],
)
def test_what_is_known(known: dict[str, Any]) -> None:
    fields = seen("simple_radial")
    same = fit(numpy_of(fields), "simple_radial", **known)
    assert_same_fit(fit(fields, "simple_radial", **known), same)


def test_angles_known_apart() -> None:
    fields = seen("pinhole")
    target = sphere.from_roll_pitch(torch.zeros(3).double(), torch.zeros(3).double())
    prior = Prior(target, torch.tensor([[0.01, 10.0]] * 3).double())
    same = Prior(*numpy_of([prior.value, prior.sigma]))
    assert_same_fit(fit(fields, gravity=prior), fit(numpy_of(fields), gravity=same))


@pytest.mark.parametrize("model", ["pinhole", "radial", "eucm"])
def test_shared_intrinsics(model: str) -> None:
    camera = random_cameras(model, 2, seed=8, size=(20, 16))[[0, 1, 0, 0, 1]]
    fields = with_noise(see(camera, random_gravity(5, seed=9, most_deg=25)), 1.0, seed=10)
    groups = [7, 3, 7, 7, 3]
    same = fit(numpy_of(fields), model, groups=np.array(groups))
    assert_same_fit(fit(fields, model, groups=groups), same)


@pytest.mark.parametrize("groups", [None, [0, 0, 0, 0]])
def test_rigs(groups: list[int] | None) -> None:
    turns = sphere.world_from_camera(random_gravity(2, seed=11))
    camera, time = [0, 1, 0, 1], [5, 5, 2, 2]
    gravity = random_gravity(2, seed=12, most_deg=20)[[0, 0, 1, 1]]
    own = (turns[camera] @ gravity[..., None])[..., 0]
    cameras = random_cameras("pinhole", 2, seed=13, size=(20, 16))
    cameras = cameras[[0, 0, 0, 0] if groups else camera]
    fields = with_noise(see(cameras, own), 1.0, seed=14)
    result = fit(fields, rig=Rig(turns, camera, time), groups=groups)
    same = fit(numpy_of(fields), rig=Rig(turns.numpy(), np.array(camera), time), groups=groups)
    assert_same_fit(result, same)


def test_a_bad_image_fails_alone() -> None:
    fields = numpy_of(seen("pinhole", 4))
    fields.latitude[1, 0, 3, 4] = np.nan
    fields.up_confidence[2] = -1
    fields.up_confidence[3] = fields.latitude_confidence[3] = 0
    result = fit(fields)
    assert result.status[1:] == [
        Status.NOT_FINITE,
        Status.NEGATIVE_CONFIDENCE,
        Status.NO_CONFIDENCE,
    ]
    assert np.isnan(result.gravity).all(1).tolist() == [False, True, True, True]
    assert np.isnan(result.sigma.roll_deg).tolist() == [False, True, True, True]


def test_flat_directions() -> None:
    """Up-vectors alone say nothing of what the data cannot see; the covariance says so."""
    fields = see(random_cameras("pinhole", 1, seed=0), sphere.from_roll_pitch(*torch.zeros(2, 1)))
    blind = Fields(fields.up, fields.latitude, fields.up_confidence, 0 * fields.up_confidence)
    options = FitOptions(max_iterations=3)
    result, same = (fit(each, options=options) for each in (blind, numpy_of(blind)))
    assert same.status == result.status
    assert_same(result.sigma.focal, same.sigma.focal, 1e-3)


def test_single_precision_stays_single() -> None:
    fields = numpy_of(seen("simple_radial")).map(lambda value: value.astype(np.float32))
    result = fit(fields, "simple_radial")
    found = (result.gravity, result.camera.f, result.covariance, result.sigma.vfov_deg)
    assert {value.dtype for value in found} == {np.dtype(np.float32)}
    assert all(status is Status.CONVERGED for status in result.status)


def test_libraries_do_not_mix() -> None:
    fields = seen("pinhole", 1)
    with pytest.raises(FieldError, match="the same dtype and device"):
        fit([fields, numpy_of(fields)])


class TestPlanes:
    """Fits of pictures that are turned against each other."""

    SIZES = ((24, 20), (20, 24), (24, 20))
    MODEL = sample_camera("simple_radial").model

    def arguments(self, on_numpy: bool) -> tuple[list[Fields], Plane, Given]:
        camera = random_cameras("simple_radial", 1, seed=20, size=(24, 20))
        gravity = random_gravity(3, seed=21, most_deg=20)
        cameras = [camera, camera.rotate90(1), camera]
        pairs = zip(cameras, gravity.split(1), strict=True)
        fields = [with_noise(see(each, g), 1.0, seed=22) for each, g in pairs]
        if on_numpy:
            fields = numpy_of(fields)
        like = fields[0].up
        views = [Window(0, 0, 2 * width, 2 * height) for width, height in self.SIZES]
        mapping = Mapping.create(views, self.SIZES, like)
        plane = Plane.create(mapping, [(2 * w, 2 * h) for w, h in self.SIZES])
        coupling = couple(3, [0, 0, 0], None, like.device)
        return fields, plane, Given.create(self.MODEL, coupling, focal=Prior(50.0, 20.0))

    def test_together(self) -> None:
        result, same = (
            fit_turned(*self.arguments(on_numpy), self.MODEL, [0, 0, 0], FitOptions())
            for on_numpy in (False, True)
        )
        assert_same_fit(result, same)

    def test_by_themselves_and_from_a_start(self) -> None:
        found = []
        for on_numpy in (False, True):
            fields, plane, given = self.arguments(on_numpy)
            seen = [plane[[i]].place(observe(part, 12)) for i, part in enumerate(fields)]
            known = plane.known(given)[[0]]
            evidence = Evidence(seen[0], plane.shape[:1], known, self.MODEL, FitOptions())
            said = fit_each(evidence)
            found.append((said, fit_from(evidence, said.gravity, said.intrinsics[0])))
        (said, result), (same_said, same) = found
        assert_same(said, same_said, 1e-6)
        assert_same_fit(result, same)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("border", [False, True])
@pytest.mark.parametrize("model", ALL_MODELS)
def test_slopes_of_the_view_are_those_of_autograd(model: str, border: bool, axis: int) -> None:
    """Also of views beyond 180 degrees, and of the angle between border rays of any model."""
    camera = sample_camera(model)
    camera = replace(camera, f=camera.f * torch.linspace(0.9, 1.6, len(camera)).double())
    camera = camera[torch.isfinite(camera.border_hfov) & torch.isfinite(camera.border_vfov)]
    assert len(camera) > 0
    names = ("log f", *camera.model.parameters, "cx", "cy", "log aspect")
    parts = [camera.f.log()[:, None], camera.distortion, camera.c, camera.aspect.log()[:, None]]
    values = torch.cat(parts, 1).requires_grad_()
    moved = Camera(
        camera.model,
        f=values[:, 0].exp(),
        c=values[:, -3:-1],
        distortion=values[:, 1:-3],
        size=camera.size,
        aspect=values[:, -1].exp(),
    )
    kind = f"{'border_' if border else ''}{'vfov' if axis else 'hfov'}"
    view = getattr(moved, kind)
    (slopes,) = torch.autograd.grad(view.sum(), values)
    slopes_of = border_slopes if border else view_slopes
    found = slopes_of(camera, axis, view.detach())
    same = slopes_of(numpy_of(camera), axis, view.detach().numpy())
    for name, slope in zip(names, slopes.unbind(1), strict=True):
        torch.testing.assert_close(found.get(name, torch.zeros_like(slope)), slope)
    assert_same(found, same)
