"""Pictures that lie on a side, looked at all ways."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from geocalib import Calibration, Calibrator
from geocalib.cameras import Camera
from geocalib.errors import ConfigError
from geocalib.fields import Fields, perspective_field
from geocalib.gravity import angle_between, from_roll_pitch, rotate90
from geocalib.synthetic import render_scene
from geocalib.turns import look_all_ways, turned

SIZE = (64, 48)
GRAVITY = from_roll_pitch(torch.tensor([0.2]).double(), torch.tensor([-0.3]).double())
CAMERA = Camera.create("pinhole", f=torch.tensor(60.0).double(), size=SIZE, aspect=1.01)


def fields(turns: int, confidence: float = 1.0) -> Fields:
    """Of the camera's picture turned counter-clockwise."""
    up, latitude, valid = perspective_field(CAMERA.rotate90(turns), rotate90(GRAVITY, turns))
    sure = confidence * valid.double()
    return Fields(up, latitude, sure, sure)


def image(turns: int) -> Tensor:
    """(3, H, W): bright at the top."""
    rows = torch.linspace(1, 0, SIZE[1])[:, None].expand(SIZE[1], SIZE[0])
    return torch.rot90(rows.expand(3, *rows.shape), turns, (-2, -1))


class Eye:
    """Sees true fields however a picture is turned, and is sure of them where it is upright."""

    def __init__(self, doubt: float) -> None:
        self.doubt = doubt

    def __call__(self, images: Tensor) -> Fields:
        return Fields.concatenate([self._one(image) for image in images])

    def _one(self, image: Tensor) -> Fields:
        corners = [image[0, 0, 0], image[0, 0, -1], image[0, -1, -1], image[0, -1, 0]]
        # The corner that was top left, with the next one clockwise just as bright.
        pairs = [float(corners[i] + corners[(i + 1) % 4]) for i in range(4)]
        turns = (4 - int(np.argmax(pairs))) % 4
        return fields(turns, 1.0 if turns == 0 else self.doubt)


@pytest.mark.parametrize("turns", range(-1, 5))
def test_fields_turn_with_their_cameras(turns: int) -> None:
    found, expected = turned(fields(0), turns), fields(turns % 4)
    for name, value in vars(expected).items():
        torch.testing.assert_close(getattr(found, name), value, atol=1e-9, rtol=0, msg=name)


@pytest.mark.parametrize("turns", range(4))
def test_the_surest_side_is_up(turns: int) -> None:
    images = torch.stack([image(turns)] * 2)
    aspect = CAMERA.rotate90(turns).aspect.tolist() * 2
    look = look_all_ways(images, aspect, Eye(0.5), 1.0)
    assert look.unsure == (False, False)
    assert look.down is not None
    for row in range(2):
        torch.testing.assert_close(look.fields[row : row + 1].up, fields(turns).up)
        assert angle_between(look.down[row], rotate90(GRAVITY, turns)[0]).item() < 1e-3


def test_equally_sure_of_all_sides() -> None:
    look = look_all_ways(image(0)[None], [1.01], Eye(1.0), 1.0)
    assert look.unsure == (True,)


@pytest.fixture(scope="module")
def calibrator() -> Calibrator:
    return Calibrator(device="cpu")


def test_photos_on_their_sides(calibrator: Calibrator) -> None:
    camera = Camera.create("pinhole", f=235.0, size=(320, 240))
    gravity = from_roll_pitch(torch.tensor([math.radians(4)]), torch.tensor([math.radians(5)]))
    picture = render_scene(camera, gravity, 1, subpixels=1)[0].numpy()
    sides = [np.ascontiguousarray(np.rot90(picture, turns)) for turns in (1, 2, 3)]
    answers = calibrator.calibrate(sides, any_rotation=True, lines="off")
    for turns, found in zip((1, 2, 3), answers, strict=True):
        assert isinstance(found, Calibration)
        expected = rotate90(gravity[0].double(), turns)
        assert math.degrees(angle_between(found.gravity, expected).item()) < 5


def test_lines_alone_do_not_know_up(calibrator: Calibrator) -> None:
    with pytest.raises(ConfigError, match="nothing else"):
        calibrator.calibrate(np.zeros((64, 64, 3)), lines="only", any_rotation=True)
