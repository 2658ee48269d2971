"""What is known becomes one row per image, and moves with the pixels it is counted in."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from geocalib.arrays import is_array, namespace, to_numpy
from geocalib.cameras import Camera, get_model
from geocalib.errors import PriorError
from geocalib.imaging import InputSpec, prepare, read_photo
from geocalib.priors.exif import FocalReading, focal_prior
from geocalib.solver import Prior
from geocalib.solver.coupling import couple
from geocalib.solver.given import Given, Mapping, Rows, centres

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
