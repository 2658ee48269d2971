"""What is known beforehand is kept, or weighed against the data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from geocalib.arrays import is_array, namespace, to_numpy
from geocalib.cameras import Camera, get_model
from geocalib.errors import PriorError
from geocalib.geometry import gravity as sphere
from geocalib.geometry.fields import Fields
from geocalib.imaging import InputSpec, prepare, read_photo
from geocalib.priors.exif import FocalReading, focal_prior
from geocalib.solver import FitOptions, Prior, Rig, fit
from geocalib.solver.coupling import couple
from geocalib.solver.known import Given, Mapping, Rows, centres
from views import gravity_error_deg, random_cameras, random_gravity, see, with_noise

PLAIN = FitOptions(cells=None, huber=None, confidence_scale=1e-3)
"""Plain squares with known noise: the posterior of a nearly linear problem is Gaussian."""


def views(model: str = "simple_radial", count: int = 3) -> tuple[Camera, Tensor, Fields]:
    camera = random_cameras(model, count, seed=1, size=(40, 40), vfov_deg=(50, 90))
    gravity = random_gravity(count, seed=2, most_deg=30)
    return camera, gravity, see(camera, gravity)


# Hard constraints -------------------------------------------------------------------------------


def test_hard_focal() -> None:
    camera, gravity, fields = views()
    result = fit(fields, "simple_radial", focal=camera.f)
    assert torch.equal(result.camera.f, camera.f.log().exp())
    assert gravity_error_deg(result.gravity, gravity).max() < 1e-4
    torch.testing.assert_close(result.camera.distortion, camera.distortion, rtol=0, atol=1e-5)
    assert result.parameters == ("roll direction", "pitch direction", "k1")
    assert result.sigma.focal.tolist() == result.sigma.vfov_deg.tolist() == [0, 0, 0]


def test_hard_gravity() -> None:
    camera, gravity, fields = views()
    result = fit(fields, "simple_radial", gravity=3.5 * gravity)
    torch.testing.assert_close(result.gravity, gravity, rtol=0, atol=1e-12)
    torch.testing.assert_close(result.camera.f, camera.f, rtol=1e-5, atol=0)
    torch.testing.assert_close(result.camera.distortion, camera.distortion, rtol=0, atol=1e-5)
    assert result.parameters == ("log f", "k1")
    assert result.sigma.gravity_deg.tolist() == result.sigma.roll_deg.tolist() == [0, 0, 0]


def test_hard_distortion() -> None:
    camera, gravity, fields = views()
    result = fit(fields, "simple_radial", distortion=camera.distortion)
    assert torch.equal(result.camera.distortion, camera.distortion)
    torch.testing.assert_close(result.camera.f, camera.f, rtol=1e-5, atol=0)
    assert gravity_error_deg(result.gravity, gravity).max() < 1e-4
    assert result.sigma.distortion.tolist() == [[0], [0], [0]]


@pytest.mark.parametrize("model", ["double_sphere", "kannala_brandt"])
def test_hard_distortion_of_wide_models(model: str) -> None:
    camera = random_cameras(model, 3, seed=1, size=(40, 40))
    gravity = random_gravity(3, seed=2, most_deg=30)
    result = fit(see(camera, gravity), model, distortion=camera.distortion)
    assert torch.equal(result.camera.distortion, camera.distortion)
    torch.testing.assert_close(result.camera.f, camera.f, rtol=1e-5, atol=0)
    assert gravity_error_deg(result.gravity, gravity).max() < 1e-4


def test_hard_principal_point() -> None:
    f = torch.tensor([50.0, 35.0], dtype=torch.float64)
    camera = Camera.create("pinhole", f, (40, 30), c=[[16.0, 17.5], [25.0, 11.0]])
    gravity = random_gravity(2, seed=2, most_deg=30)
    result = fit(see(camera, gravity), principal_point=camera.c)
    assert torch.equal(result.camera.c, camera.c)
    torch.testing.assert_close(result.camera.f, f, rtol=1e-5, atol=0)
    assert gravity_error_deg(result.gravity, gravity).max() < 1e-4
    assert result.sigma.principal_point.tolist() == [[0, 0], [0, 0]]


def test_everything_known() -> None:
    camera, gravity, fields = views("pinhole")
    result = fit(fields, focal=camera.f, gravity=gravity)
    assert not any(status.failed for status in result.status)
    torch.testing.assert_close(result.camera.f, camera.f)
    assert result.covariance.shape == (3, 0, 0)
    assert result.parameters == ()


def test_one_for_all_and_one_per_image() -> None:
    camera, _, fields = views("pinhole")
    f = 45.0
    result = fit(fields, focal=f)
    assert result.camera.f.tolist() == pytest.approx([f] * 3)
    for each in ([40.0, 50.0, 60.0], torch.tensor([[40.0], [50.0], [60.0]])):
        result = fit(fields, focal=each)
        assert result.camera.f.tolist() == pytest.approx([40, 50, 60])
    result = fit(fields, gravity=[0.0, 1.0, 0.0])
    assert result.gravity.tolist() == [[0, 1, 0]] * 3
    result = fit(fields, focal=Prior([40.0, 50.0, 60.0], 1e-6))
    assert result.camera.f.tolist() == pytest.approx([40, 50, 60], rel=1e-6)
    result = fit(fields, focal=Prior(camera.f, [1e-6, 1e6, 1e-6]))
    torch.testing.assert_close(result.camera.f, camera.f, rtol=1e-5, atol=0)
    assert result.sigma.focal[0] < 1e-5


# Soft priors ------------------------------------------------------------------------------------


def test_tiny_sigma_keeps_the_prior_and_huge_sigma_the_data() -> None:
    camera, gravity, clean = views()
    fields = with_noise(clean, 0.5, seed=3)
    free = fit(fields, "simple_radial")
    tilted = sphere.move(gravity, torch.full((3, 2), 0.02, dtype=torch.float64))
    priors: dict[str, tuple[Any, float, float]] = {
        "focal": (1.05 * camera.f, 1e-6, 1e7),
        "gravity": (tilted, 1e-8, 1e5),
        "distortion": (camera.distortion + 0.05, 1e-8, 1e5),
    }
    for name, (value, tiny, huge) in priors.items():
        pulled = fit(fields, "simple_radial", **{name: Prior(value, tiny)})
        found = {
            "focal": pulled.camera.f,
            "gravity": pulled.gravity,
            "distortion": pulled.camera.distortion,
        }[name]
        torch.testing.assert_close(found, value, rtol=1e-5, atol=1e-5)
        loose = fit(fields, "simple_radial", **{name: Prior(value, huge)})
        torch.testing.assert_close(loose.camera.f, free.camera.f, rtol=1e-5, atol=0)
        torch.testing.assert_close(loose.gravity, free.gravity, rtol=0, atol=1e-5)
        torch.testing.assert_close(
            loose.camera.distortion, free.camera.distortion, rtol=0, atol=1e-5
        )


def test_the_focal_prior_and_the_data_meet_by_their_precision() -> None:
    _, _, clean = views("pinhole")
    fields = with_noise(clean, 0.5, seed=3)
    alone = fit(fields, options=PLAIN)
    # A prior one sigma of the data away and as sure as the data: both meet half way.
    sigma = alone.sigma.focal
    result = fit(fields, focal=Prior(alone.camera.f + sigma, sigma), options=PLAIN)
    moved = (result.camera.f - alone.camera.f) / sigma
    torch.testing.assert_close(moved, torch.full_like(moved, 0.5), rtol=0.02, atol=0)
    shrunk = result.sigma.focal / sigma
    torch.testing.assert_close(shrunk, torch.full_like(shrunk, math.sqrt(0.5)), rtol=0.02, atol=0)
    # Four times as precise, it takes four fifths of the way.
    result = fit(fields, focal=Prior(alone.camera.f + sigma, 0.5 * sigma), options=PLAIN)
    moved = (result.camera.f - alone.camera.f) / sigma
    torch.testing.assert_close(moved, torch.full_like(moved, 0.8), rtol=0.02, atol=0)


def test_posterior_by_hand() -> None:
    _, _, clean = views()
    fields = with_noise(clean, 0.5, seed=3)
    alone = fit(fields, "simple_radial", options=PLAIN)
    # Pull every unknown by about a sigma and combine the two Gaussians on paper.
    sigma = alone.covariance.diagonal(dim1=1, dim2=2).sqrt()
    pull = sigma * torch.tensor([0.7, -0.5, 0.6, -0.8])
    spread = sigma * torch.tensor([1.0, 1.0, 0.8, 1.5])
    gravity_sigma = spread[:, :2].amax(1)
    spread[:, :2] = gravity_sigma[:, None]
    precision = torch.linalg.inv(alone.covariance)
    total = precision + torch.diag_embed(spread**-2)
    expected = torch.linalg.solve(total, pull * spread**-2)

    result = fit(
        fields,
        "simple_radial",
        gravity=Prior(sphere.move(alone.gravity, pull[:, :2]), gravity_sigma),
        focal=Prior(alone.camera.f * torch.exp(pull[:, 2]), alone.camera.f * spread[:, 2]),
        distortion=Prior(alone.camera.distortion + pull[:, 3:], spread[:, 3:]),
        options=PLAIN,
    )
    basis = sphere.tangent_basis(alone.gravity)
    moved = torch.cat(
        [
            sphere.difference(alone.gravity, result.gravity, basis),
            (result.camera.f / alone.camera.f).log()[:, None],
            result.camera.distortion - alone.camera.distortion,
        ],
        1,
    )
    torch.testing.assert_close(moved / sigma, expected / sigma, rtol=0, atol=0.02)
    torch.testing.assert_close(
        result.covariance / (sigma[:, :, None] * sigma[:, None]),
        torch.linalg.inv(total) / (sigma[:, :, None] * sigma[:, None]),
        rtol=0,
        atol=0.02,
    )


def test_sigma_of_the_gravity_is_an_angle() -> None:
    _, gravity, clean = views("pinhole")
    # Hardly any data: what is left is the prior.
    weak = Fields(
        clean.up,
        clean.latitude,
        1e-9 * clean.up_confidence,
        1e-9 * clean.latitude_confidence,
    )
    result = fit(weak, gravity=Prior(gravity, math.radians(2.0)), focal=50.0, options=PLAIN)
    torch.testing.assert_close(
        result.sigma.gravity_deg, torch.full((3,), 2.0, dtype=torch.float64), rtol=1e-2, atol=0
    )
    result = fit(weak, gravity=gravity, focal=Prior(50.0, 3.0), options=PLAIN)
    torch.testing.assert_close(
        result.sigma.focal, torch.full((3,), 3.0, dtype=torch.float64), rtol=1e-2, atol=0
    )


def test_the_principal_point_is_freed_by_its_prior() -> None:
    f = torch.tensor([50.0, 35.0], dtype=torch.float64)
    camera = Camera.create("pinhole", f, (40, 30), c=[[18.0, 16.0], [22.0, 13.0]])
    gravity = random_gravity(2, seed=2, most_deg=30)
    fields = see(camera, gravity)
    result = fit(fields, principal_point=Prior((20.0, 15.0), 5.0), options=FitOptions(cells=None))
    torch.testing.assert_close(result.camera.c, camera.c, rtol=0, atol=0.02)
    assert result.parameters[-2:] == ("cx", "cy")
    kept = fit(fields, principal_point=Prior((20.0, 15.0), 1e-9))
    torch.testing.assert_close(
        kept.camera.c, camera.c.new_tensor([20.0, 15.0]).expand(2, 2), rtol=0, atol=1e-6
    )


def test_a_prior_weighs_the_same_on_any_grid() -> None:
    # s^2 is estimated from the residuals, whatever number of them there is.
    camera = random_cameras("pinhole", 3, seed=1, size=(120, 120), vfov_deg=(50, 90))
    fields = with_noise(see(camera, random_gravity(3, seed=2, most_deg=30)), 3, seed=3)
    sigma = fit(fields, options=FitOptions(cells=None, huber=None)).sigma.focal
    for cells in (None, 40, 20):
        options = FitOptions(cells=cells, huber=None)
        alone = fit(fields, options=options)
        result = fit(fields, focal=Prior(alone.camera.f + 3 * sigma, sigma), options=options)
        moved = (result.camera.f - alone.camera.f) / sigma
        torch.testing.assert_close(moved, torch.full_like(moved, 1.5), rtol=0.2, atol=0)


def test_a_prior_shared_by_a_group_counts_once() -> None:
    camera = random_cameras("pinhole", 1, seed=1, size=(40, 40), vfov_deg=(60, 70))
    gravity = random_gravity(5, seed=2, most_deg=30)
    fields = with_noise(see(camera[[0] * 5], gravity), 0.5, seed=3)
    groups = [0] * 5
    alone = fit(fields, groups=groups, options=PLAIN)
    sigma = alone.sigma.focal[0]
    prior = Prior(alone.camera.f[0] + sigma, sigma)
    result = fit(fields, focal=prior, groups=groups, options=PLAIN)
    moved = (result.camera.f - alone.camera.f) / sigma
    torch.testing.assert_close(moved, torch.full_like(moved, 0.5), rtol=0.02, atol=0)


# Wrong priors -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"focal": 0.0}, r"focal must be positive, in pixels; got 0\.0"),
        ({"focal": [50.0, -3.0, 50.0]}, r"focal must be positive, in pixels; got -3\.0"),
        ({"focal": Prior(50.0, 0.0)}, "focal sigma must be positive"),
        ({"focal": Prior(50.0, -1.0)}, "focal sigma must be positive"),
        ({"focal": math.nan}, "focal must be finite"),
        ({"focal": Prior(50.0, math.inf)}, "focal sigma must be finite"),
        ({"focal": [50.0, 50.0]}, "focal must be a number, or one row for each of 3 images"),
        ({"focal": "wide"}, "focal must hold numbers, got str"),
        ({"gravity": [0.0, 0.0, 0.0]}, "gravity must be a direction"),
        ({"gravity": [0.0, 1.0]}, r"gravity must be 3 numbers, .* got shape \(2,\)"),
        ({"gravity": Prior([0.0, 1.0, 0.0], -0.1)}, "gravity sigma must be positive"),
        ({"gravity": [0.0, math.nan, 0.0]}, "gravity must be finite"),
        ({"distortion": [0.1, 0.1]}, "distortion must be a number"),
        ({"distortion": 1e3}, r"simple_radial: k1 must lie in \[-50\.0, 50\.0\]"),
        ({"distortion": Prior(-1e3, 1.0)}, "k1 must lie in"),
        ({"principal_point": 20.0}, "principal_point must be 2 numbers"),
        ({"principal_point": Prior([20.0, 20.0], [1.0, 0.0])}, "principal_point sigma must be"),
    ],
)
def test_wrong_priors(arguments: dict[str, Any], message: str) -> None:
    _, _, fields = views()
    with pytest.raises(PriorError, match=message):
        fit(fields, "simple_radial", **arguments)


def test_a_pinhole_has_no_distortion() -> None:
    _, _, fields = views("pinhole")
    with pytest.raises(PriorError, match="pinhole has no distortion to constrain"):
        fit(fields, distortion=0.0)


def test_hard_constraints_that_contradict_each_other() -> None:
    _, gravity, fields = views()
    with pytest.raises(PriorError, match="contradictory hard constraints: focal of image"):
        fit(fields, "simple_radial", focal=[50.0, 50.0, 51.0], groups=[0, 1, 0])
    with pytest.raises(PriorError, match="contradictory hard constraints: distortion of image"):
        fit(fields, "simple_radial", distortion=[0.0, 0.1, 0.1], groups=[0, 0, 1])
    turns = torch.eye(3, dtype=torch.float64).expand(3, 3, 3)
    rig = Rig(turns, camera=[0, 1, 2], time=[0, 0, 0])
    with pytest.raises(PriorError, match="contradictory hard constraints: gravity of image"):
        fit(fields, "simple_radial", gravity=gravity, rig=rig)
    # What agrees is no contradiction.
    result = fit(fields, "simple_radial", focal=[50.0, 40.0, 50.0], groups=[0, 1, 0])
    assert result.camera.f.tolist() == pytest.approx([50, 40, 50])


RADIAL = get_model("radial")


def of(count: int, **known: object) -> Given:
    coupling = couple(count, None, None)
    return Given.create(RADIAL, coupling, **known)  # type: ignore[arg-type]


def hard(rows: Rows) -> list[list[float]]:
    assert is_array(rows)
    assert rows.dtype == namespace(rows).float64
    values: list[list[float]] = rows.tolist()
    return values


def soft(rows: Rows) -> tuple[list[list[float]], list[list[float]]]:
    assert isinstance(rows, Prior)
    return hard(rows.value), hard(rows.sigma)


def test_nothing_stays_nothing() -> None:
    assert of(3)[[0, 2]] == Given(None, None, None, None)


def test_one_for_all_and_one_for_each() -> None:
    assert hard(of(3, focal=500)[[1]].focal) == [[500]]
    assert hard(of(3, focal=[500, 600, 700])[[2, 0]].focal) == [[700], [500]]
    assert hard(of(2, principal_point=[[1, 2], [3, 4]])[[1]].principal_point) == [[3, 4]]


@pytest.mark.parametrize(
    ("name", "value"),
    [("gravity", [0.0, 0.8, 0.6]), ("principal_point", [3.0, 4.0]), ("distortion", [0.1, 0.2])],
)
def test_as_many_images_as_numbers_in_a_value(name: str, value: list[float]) -> None:
    count = len(value)
    assert hard(getattr(of(count, **{name: value})[[count - 1]], name)) == [value]
    sigma = [0.5] if name == "gravity" else [0.1 * (i + 1) for i in range(count)]
    prior = Prior(value, sigma[0] if name == "gravity" else sigma)
    assert soft(getattr(of(count, **{name: prior})[[0]], name)) == ([value], [sigma])


def test_priors_choose_their_rows() -> None:
    known = of(
        3,
        focal=Prior([500, 600, 700], [5, 6, 7]),
        gravity=Prior([0.0, 1.0, 0.0], [0.1, 0.2, 0.3]),
        distortion=Prior([0.0, 0.0], 0.1),
    )[[2, 1]]
    assert soft(known.focal) == ([[700], [600]], [[7], [6]])
    assert soft(known.gravity) == ([[0, 1, 0]] * 2, [[0.3], [0.2]])
    assert soft(known.distortion) == ([[0, 0]] * 2, [[0.1, 0.1]] * 2)


def test_what_is_wrong_is_named() -> None:
    with pytest.raises(PriorError, match="gravity must be 3 numbers, or one row for each of 4"):
        of(4, gravity=[[0.0, 1.0, 0.0]] * 3)
    with pytest.raises(PriorError, match="focal must be finite"):
        of(2, focal=[500.0, float("nan")])


@settings(max_examples=20)
@given(width=st.integers(40, 900), height=st.integers(40, 900))
def test_what_is_known_moves_as_cameras_do(width: int, height: int) -> None:
    """The oracle: ``View.to_input`` of a camera with these values."""
    size = (width, height)
    ready = prepare(read_photo(torch.zeros(1, height, width)), InputSpec(64, 32, 2.5))
    fields = (ready.size[0] // 4, ready.size[1] // 4)
    mapping = Mapping.create([ready.view], [fields])
    f, c = 321.0, (0.4 * width, 0.6 * height)
    seen = ready.view.to_input(Camera.create("pinhole", f, size, c=c), fields)

    moved = mapping.to_fields(of(1, focal=321.0, principal_point=c, gravity=[0.0, 1.0, 0.0]))
    np.testing.assert_allclose(mapping.aspect, seen.aspect)
    np.testing.assert_allclose(to_numpy(moved.focal), seen.f[:, None])
    np.testing.assert_allclose(to_numpy(moved.principal_point), seen.c)
    assert hard(moved.gravity) == [[0, 1, 0]]

    prior = mapping.to_fields(of(1, focal=Prior(321.0, 3.21), principal_point=Prior(c, [2.0, 4.0])))
    value, sigma = soft(prior.focal)
    assert value == hard(moved.focal)
    assert sigma[0][0] == pytest.approx(0.01 * value[0][0])
    value, sigma = soft(prior.principal_point)
    assert value == hard(moved.principal_point)
    assert sigma[0] == pytest.approx(
        [2 * seen.f.item() * seen.aspect.item() / 321, 4 * seen.f.item() / 321]
    )


def test_a_camera_is_restored_to_what_was_given() -> None:
    blurred = Camera.create(
        "pinhole", 500.00001, (640, 480), c=(320.00001, 240), aspect=1.00001, dtype=np.float64
    )
    known = of(2, focal=[1.0, 500.0], principal_point=centres([(2, 2), (640, 480)]))
    exact = known.restored(blurred, 1)
    assert exact.K.tolist() == [[[500, 0, 320], [0, 500, 240], [0, 0, 1]]]
    free = of(2, focal=Prior(500, 5)).restored(blurred, 1)
    assert (free.f.item(), free.aspect.item()) == (500.00001, 1)
    assert free.c.tolist() == blurred.c.tolist()


class TestExif:
    HINT = FocalReading(600.0, 30.0, "FocalLengthIn35mmFilm")
    SIZES = ((640, 480), (1000, 2000), (640, 480))

    def test_images_without_a_hint_stay_free(self) -> None:
        value, sigma = soft(focal_prior([None, self.HINT, None], self.SIZES, [0, 1, 2]))
        assert value == [[pytest.approx(448)], [600], [pytest.approx(448)]]
        assert sigma[1] == [30]
        assert min(sigma[0] + sigma[2]) > 1e8

    def test_a_hint_holds_for_all_images_of_its_camera(self) -> None:
        value, sigma = soft(focal_prior([self.HINT, None, None], self.SIZES, [4, 7, 4]))
        assert (value[0], value[2]) == ([600], [600])
        assert (sigma[0], sigma[2]) == ([30], [30])
        assert sigma[1][0] > 1e8

    def test_no_hint_is_no_prior(self) -> None:
        assert focal_prior([None, None, None], self.SIZES, [0, 0, 0]) is None


def test_the_information_of_a_gravity_is_one_over_its_squared_sigmas_along_the_sphere() -> None:
    """Against the angle between gravities whose roll or pitch differs by a sigma."""
    assert of(2).gravity_information is None
    assert of(2, gravity=[0.0, 1.0, 0.0]).gravity_information is None
    alike = of(2, gravity=Prior([0.0, 0.6, 0.8], [0.1, 0.2])).gravity_information
    assert alike is not None
    assert alike == pytest.approx(np.array([[100.0, 100.0], [25.0, 25.0]]))
    known = of(1, roll_deg=Prior(10.0, 0.1), pitch_deg=Prior(-60.0, 0.2)).gravity_information
    assert known is not None
    roll, pitch = np.deg2rad([[10.0, 10.1, 10.0], [-60.0, -60.0, -59.8]])
    at, *moved = sphere.from_roll_pitch(roll, pitch)
    sigmas = np.array([sphere.angle_between(at, each) for each in moved])
    assert known[0] == pytest.approx(sigmas**-2, rel=1e-3)
