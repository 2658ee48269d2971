"""The model that docs/cameras.md walks through is real: it passes what every model must."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from types import ModuleType

import pytest
import torch

import lenses
import samples
from geocalib import FitOptions, fit
from geocalib.cameras import MODELS, Camera, CameraModel, exchange, from_colmap, to_colmap
from oracle_network import check as check_answer
from oracle_network import knowing, picture, truth
from views import random_gravity, ray_error_deg, see

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "cameras.md"

CHECKS = {
    "test_models": [
        "test_follows_the_protocol",
        "test_jet_against_autograd",
        "test_jet_is_continuous_at_the_axis",
        "test_jet_against_central_differences",
        "test_pixel_to_ray_to_pixel",
        "test_ray_to_pixel_to_ray",
        "test_domain_ends_where_limits_says",
        "test_profile_is_held_beyond_the_domain",
        "test_angle_grows_with_the_radius",
        "test_single_precision",
    ],
    "test_camera": [
        "test_optical_axis",
        "test_what_has_no_pixel",
        "test_gradients_of_project",
        "test_gradients_of_unproject",
        "test_gradients_are_finite_everywhere",
        "test_resize_and_crop",
        "test_field_of_view_of_the_wide_models",
    ],
    "test_fields": [
        "test_field_beyond_90_degrees",
        "test_level_camera",
        "test_jacobians_against_autograd",
        "test_jacobians_against_central_differences",
    ],
    "test_horizon": ["test_reaches_the_border_or_the_end_of_the_domain"],
}


def _walk_through_model() -> CameraModel:
    (source,) = re.findall(r"```python\n(\"\"\"FOV model.*?)```", PAGE.read_text(), re.DOTALL)
    module = ModuleType("fov")
    exec(compile(source, str(PAGE), "exec"), module.__dict__)
    model: CameraModel = module.Fov()
    return model


@pytest.fixture
def fov(monkeypatch: pytest.MonkeyPatch) -> str:
    """The walk-through's steps, undone afterwards."""
    page = PAGE.read_text()
    monkeypatch.setitem(MODELS, "fov", _walk_through_model())
    for table, entries in (
        (lenses.PARAMETERS, r'`("fov": \[.*?\])`'),
        (exchange.COLMAP_LAYOUTS, r'`("FOV": _layout.*?)`'),
        (exchange.COLMAP_NAMES, r'`("fov": \("FOV".*?)`'),
    ):
        (entry,) = re.findall(entries, page)
        ((name, value),) = eval(f"{{{entry}}}", vars(exchange)).items()
        monkeypatch.setitem(table, name, value)
    for folder in ("cameras", "geometry"):
        monkeypatch.syspath_prepend(TESTS / folder)
    return "fov"


@pytest.mark.parametrize(
    ("module", "check"), [(module, check) for module in CHECKS for check in CHECKS[module]]
)
def test_walk_through_model(fov: str, module: str, check: str) -> None:
    getattr(importlib.import_module(module), check)(name=fov)


def test_walk_through_model_without_its_name() -> None:
    """A model of a user's own file needs no entry anywhere."""
    assert "fov" not in MODELS
    model = _walk_through_model()
    camera = Camera.create(model, torch.tensor([130.0, 170.0]).double(), (64, 48), [1.1])
    gravity = random_gravity(2, seed=1, most_deg=20)
    result = fit(see(camera, gravity), model, options=FitOptions(cells=None))
    assert ray_error_deg(result.camera, camera).max() < 1e-3
    known = truth(model=model, distortion=[1.1])
    found = knowing(known).calibrate(picture(known.size, 0), model)
    check_answer(found, known)
    assert found.camera_model == "fov"


def test_walk_through_model_in_colmap(fov: str) -> None:
    camera = samples.sample_camera(fov)[:1]
    name, parameters = to_colmap(camera)[0]
    assert (name, len(parameters)) == ("FOV", 5)
    assert from_colmap(name, parameters, (640, 480)).distortion.item() == pytest.approx(0.9)
