"""Which kind of lens took a picture, by its fields."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from geocalib.arrays import to_numpy
from geocalib.cameras import Camera
from geocalib.cameras.base import CameraModel
from geocalib.geometry.fields import Fields
from geocalib.geometry.gravity import from_roll_pitch
from geocalib.solver.families import (
    CELLS,
    FAMILIES,
    Candidate,
    Fitted,
    FitTo,
    compare,
    probabilities,
)
from geocalib.solver.fit import FitOptions, fit
from geocalib.solver.known import Prior
from views import see

SIZE = (96, 72)
GRAVITY = from_roll_pitch(torch.tensor([0.1]), torch.tensor([-0.15])).double()
ALL = (0.8, 0.1, 0.1)
NAMES = [family.model.name for family in FAMILIES]


def seen(camera: Camera, noise: float = 0.03) -> Fields:
    """What a network sees that errs smoothly, as networks do."""
    fields = see(camera.map(torch.tensor), GRAVITY).map(to_numpy)
    x, y = np.meshgrid(np.linspace(0, 1, SIZE[0]), np.linspace(0, 1, SIZE[1]))
    return replace(fields, latitude=fields.latitude + noise * np.sin(5 * x + 3) * np.cos(7 * y))


def fitted(fields: Fields, **known: Any) -> FitTo:
    """Fits to one field, asked of as many pictures as there may be."""

    def fit_to(
        rows: Sequence[int], model: CameraModel, usual: Sequence[tuple[float, float]] | None
    ) -> list[Fitted]:
        prior = None if usual is None else Prior([usual[0][0]], usual[0][1])
        options = FitOptions(confidence_scale=0.015, cells=CELLS)
        result = fit(fields, model, distortion=prior, options=options, **known)
        return [(result, 0) for _ in rows]

    return fit_to


def looked_at(camera: Camera) -> list[Candidate]:
    (found,) = compare(fitted(seen(camera)), [0], {0: ALL})
    return found


PINHOLE = Camera.create("pinhole", 80.0, SIZE)
FISHEYE = Camera.create("kannala_brandt", 42.0, SIZE, [0.0, 0.0, 0.0, 0.0])


@pytest.mark.parametrize(("camera", "name"), [(PINHOLE, "pinhole"), (FISHEYE, "ucm")])
def test_the_family_that_took_a_picture_is_the_most_probable(camera: Camera, name: str) -> None:
    shares = probabilities([looked_at(camera)])
    assert NAMES[int(np.argmax(shares))] == name
    assert max(shares) > 0.7
    assert sum(shares) == pytest.approx(1)


def test_a_fisheye_is_as_wide_as_it_is() -> None:
    wide = looked_at(FISHEYE)[NAMES.index("ucm")]
    true, found = (math.degrees(camera.border_hfov.item()) for camera in (FISHEYE, wide.camera))
    assert found == pytest.approx(true, abs=4)


def test_pictures_of_one_camera_decide_together() -> None:
    bent = Camera.create("simple_radial", 80.0, SIZE, [-0.18])
    one = looked_at(bent)
    first, several = (probabilities([one] * count)[0] for count in (1, 6))
    assert several < first


def test_odds_of_a_file_move_the_choice() -> None:
    found = looked_at(PINHOLE)
    even = probabilities([found], (1 / 3, 1 / 3, 1 / 3))
    sure = probabilities([found], (1e-9, 1e-9, 1.0))
    assert even[0] < probabilities([found])[0]
    assert sure[2] > even[2]


def test_what_is_known_holds_for_every_family() -> None:
    gravity = to_numpy(GRAVITY)
    (found,) = compare(fitted(seen(PINHOLE), focal=80.0, gravity=gravity), [0], {0: ALL})
    assert len(found) == 3
    for each in found:
        assert each.camera.f.item() == pytest.approx(80.0)
        assert each.gravity == pytest.approx(gravity[0])


def test_fields_without_confidence_fall_back_to_a_pinhole() -> None:
    fields = seen(PINHOLE)
    nothing = 0 * fields.up_confidence
    blind = replace(fields, up_confidence=nothing, latitude_confidence=nothing)
    (found,) = compare(fitted(blind), [0], {})
    assert probabilities([found])[0] == 1


def test_what_a_pinhole_explains_is_not_looked_at_again() -> None:
    exact = fitted(seen(PINHOLE, noise=0.0))
    (found,) = compare(exact, [0], {})
    assert [each.family.model.name for each in found] == ["pinhole"]
    assert probabilities([found]) == [1.0]
    # Unless the file speaks for another lens; rounding is no reason to believe it.
    (every,) = compare(exact, [0], {0: ALL})
    assert probabilities([every], ALL)[0] > 0.9


def test_all_pictures_of_a_camera_are_asked_the_same() -> None:
    fits = {0: fitted(seen(PINHOLE, noise=0.0)), 1: fitted(seen(FISHEYE))}

    def fit_to(rows: Sequence[int], *asked: Any) -> list[Fitted]:
        return [fits[row]([row], *asked)[0] for row in rows]

    apart = compare(fit_to, [0, 1], {})
    assert [len(found) for found in apart] == [1, 3]
    together = compare(fit_to, [0, 0], {})
    assert [len(found) for found in together] == [3, 3]
