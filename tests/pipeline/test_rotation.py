"""Pictures that lie on a side, looked at all ways."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from geocalib import Calibration, Calibrator, Prior
from geocalib.arrays import Array
from geocalib.cameras import Camera
from geocalib.errors import ConfigError
from geocalib.geometry.fields import Fields, perspective_field
from geocalib.geometry.gravity import angle_between, from_roll_pitch, rotate90
from geocalib.nets.onnx_names import FIELDS, QUARTER_TURN
from geocalib.pipeline.options import rotation_mode
from geocalib.pipeline.orientation import (
    LIES,
    MAY_LIE,
    UNSURE,
    OrientedFields,
    predict_all_turns,
    predict_upright,
    turned,
)
from geocalib.synthetic import render_scene

EXAMPLE = Path(__file__).parents[2] / "examples" / "town.jpg"
SIZE = (64, 48)
GRAVITY = from_roll_pitch(np.array([0.2]), np.array([-0.3]))
CAMERA = Camera.create("pinhole", f=np.array(60.0), size=SIZE, aspect=1.01)


def fields(turns: int, confidence: float = 1.0) -> Fields:
    """Of the camera's picture turned counter-clockwise."""
    up, latitude, valid = perspective_field(CAMERA.rotate90(turns), rotate90(GRAVITY, turns))
    sure = confidence * valid
    return Fields(up, latitude, sure, sure)


def image(turns: int) -> Array:
    """(3, H, W): bright at the top."""
    rows = np.linspace(1, 0, SIZE[1], dtype=np.float32)[:, None]
    return np.rot90(np.broadcast_to(rows, (3, *SIZE[::-1])), turns, (-2, -1))


def brightest(image: Array) -> int:
    """By how many quarter turns the bright side has left the top."""
    corners = [image[0, 0, 0], image[0, 0, -1], image[0, -1, -1], image[0, -1, 0]]
    # The corner that was top left, with the next one clockwise just as bright.
    pairs = [float(corners[i] + corners[(i + 1) % 4]) for i in range(4)]
    return (4 - int(np.argmax(pairs))) % 4


class Eye:
    """Sees true fields however a picture is turned, and is sure of them where it is upright."""

    def __init__(self, doubt: float) -> None:
        self.doubt = doubt

    def __call__(self, images: Array) -> Fields:
        return Fields.concatenate([self._one(image) for image in images])

    def _one(self, image: Array) -> Fields:
        turns = brightest(image)
        return fields(turns, 1.0 if turns == 0 else self.doubt)


@pytest.mark.parametrize("turns", range(-1, 5))
def test_fields_turn_with_their_cameras(turns: int) -> None:
    found, expected = turned(fields(0), turns), fields(turns % 4)
    for name, value in vars(expected).items():
        np.testing.assert_allclose(getattr(found, name), value, atol=1e-9, rtol=0, err_msg=name)


@pytest.mark.parametrize("turns", range(4))
def test_the_surest_side_is_up(turns: int) -> None:
    images = np.stack([image(turns)] * 2)
    aspect = CAMERA.rotate90(turns).aspect.tolist() * 2
    found = predict_all_turns(images, aspect, Eye(0.5), 1.0)
    assert found.notes == [(), ()]
    for row, down in enumerate(found.down):
        np.testing.assert_allclose(found.fields[row : row + 1].up, fields(turns).up)
        assert down is not None
        assert angle_between(down, rotate90(GRAVITY, turns)[0]).item() < 1e-3


def test_equally_sure_of_all_sides() -> None:
    found = predict_all_turns(image(0)[None], [1.01], Eye(1.0), 1.0)
    assert found.notes == [(UNSURE,)]


class Engine:
    """Sees true fields, and which side is bright, with a probability that it is up."""

    def __init__(self, probability: float) -> None:
        self.probability = probability
        self.looked: list[int] = []
        """How many pictures, in each run of the whole network."""
        self.asked: list[int] = []
        """And where only how they stand was asked."""

    def predict_oriented(self, images: Array) -> tuple[Fields, Array]:
        self.looked.append(len(images))
        return Eye(0.5)(images), self._standing(images)

    def orientation(self, images: Array) -> Array:
        self.asked.append(len(images))
        return self._standing(images)

    def _standing(self, images: Array) -> Array:
        chances = np.full((len(images), 4), (1 - self.probability) / 3)
        for row, one in enumerate(images):
            chances[row, brightest(one)] = self.probability
        return np.log(chances)


def predicted(engine: Engine, images: Array, certain: bool) -> OrientedFields:
    return predict_upright(images, engine.predict_oriented, engine.orientation, certain)


class TestOneLook:
    @pytest.mark.parametrize("certain", [True, False])
    @pytest.mark.parametrize("turns", range(4))
    def test_the_side_that_is_up(self, turns: int, certain: bool) -> None:
        found = predicted(Engine(0.95), np.stack([image(turns)] * 2), certain)
        assert found.notes == 2 * [(LIES,) if turns and certain else ()]
        for row, down in enumerate(found.down):
            # Seen upright, and turned back.
            np.testing.assert_allclose(found.fields[row : row + 1].up, fields(turns).up)
            assert bool((found.fields.up_confidence[row] == 1).all())
            assert (down is None) == (turns == 0)
            if down is not None:
                assert angle_between(down, rotate90(GRAVITY, turns)[0]).item() < 0.5

    def test_a_mixed_batch(self) -> None:
        engine = Engine(0.95)
        found = predicted(engine, np.stack([image(0), image(2), image(0)]), True)
        assert found.notes == [(), (LIES,), ()]
        expected = Fields.concatenate([fields(0), fields(2), fields(0)])
        np.testing.assert_allclose(found.fields.latitude, expected.latitude)
        # Only the one that lies on a side has cost more than one run.
        assert (engine.looked, engine.asked) == ([3, 1], [1, 1, 1])

    def test_upright_pictures_cost_one_run(self) -> None:
        engine = Engine(0.6)
        found = predicted(engine, np.stack([image(0)] * 3), True)
        assert (engine.looked, engine.asked) == ([3], [])
        assert found.turns == [0, 0, 0]

    def test_a_suspicion_is_a_warning_and_changes_nothing(self) -> None:
        engine = Engine(0.72)
        found = predicted(engine, image(1)[None], True)
        assert found.notes == [(MAY_LIE,)]
        assert engine.looked == [1]
        assert found.down == [None]
        assert bool((found.fields.up_confidence == 0.5).all())

    def test_less_than_a_suspicion_is_not_told(self) -> None:
        found = predicted(Engine(0.55), image(1)[None], True)
        assert found.notes == [()]
        assert found.down == [None]

    def test_who_asks_gets_the_likeliest_side(self) -> None:
        found = predicted(Engine(0.4), image(1)[None], False)
        assert found.notes == [(UNSURE,)]
        np.testing.assert_allclose(found.fields.up, fields(1).up)


def test_modes() -> None:
    assert [rotation_mode(asked) for asked in (True, False, "auto", "on", "off")] == [
        *("on", "off", "auto", "on", "off")
    ]
    with pytest.raises(ConfigError, match="any_rotation is 'yes'; known: auto, on, off"):
        rotation_mode("yes")  # type: ignore[arg-type]


def test_photos_on_their_sides(packaged: Calibrator) -> None:
    camera = Camera.create("pinhole", f=235.0, size=(320, 240))
    gravity = from_roll_pitch(np.array([math.radians(4)]), np.array([math.radians(5)]))
    picture = render_scene(camera, gravity, 1, subpixels=1)[0]
    sides = [np.ascontiguousarray(np.rot90(picture, turns)) for turns in (1, 2, 3)]
    answers = packaged.calibrate(sides, any_rotation=True, lines="off")
    for turns, found in zip((1, 2, 3), answers, strict=True):
        assert isinstance(found, Calibration)
        expected = rotate90(gravity[0], turns)
        assert math.degrees(angle_between(found.gravity, expected).item()) < 5


@pytest.fixture(scope="module")
def lying() -> np.ndarray:
    """The example, which has a roll of 6 degrees, turned by a quarter."""
    with Image.open(EXAMPLE) as upright:
        return np.ascontiguousarray(np.rot90(np.asarray(upright.convert("RGB"))))


def test_a_photo_on_its_side_is_noticed_without_being_asked(
    packaged: Calibrator, lying: np.ndarray
) -> None:
    found = packaged.calibrate(lying, lines="off")
    assert found.roll_deg == pytest.approx(96, abs=1)
    assert LIES in found.warnings
    assert not found.trusted
    believed = packaged.calibrate(lying, lines="off", any_rotation=False)
    assert abs(believed.roll_deg) < 45


def test_an_upright_photo_costs_one_run_of_the_network(
    packaged: Calibrator, lying: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    upright = np.ascontiguousarray(np.rot90(lying, -1))
    believed = packaged.calibrate(upright, lines="off", any_rotation=False)
    runs: list[tuple[str, ...]] = []
    run = packaged._engine._run  # type: ignore[union-attr]

    def counted(names: Sequence[str], given: dict[str, Array]) -> list[Array]:
        runs.append(tuple(names))
        return run(names, given)

    monkeypatch.setattr(packaged._engine, "_run", counted)
    assert packaged.calibrate(upright, lines="off") == believed
    assert runs == [(*FIELDS, QUARTER_TURN)]


def test_who_knows_gravity_knows_which_side_is_up(
    packaged: Calibrator, lying: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        packaged._engine, "predict_oriented", lambda *_: pytest.fail("it was asked")
    )
    found = packaged.calibrate(lying, gravity=Prior([1.0, 0.0, 0.0], 0.1), lines="off")
    assert LIES not in found.warnings


def test_lines_alone_do_not_know_up(packaged: Calibrator) -> None:
    with pytest.raises(ConfigError, match="asks lines alone; drop"):
        packaged.calibrate(np.zeros((64, 64, 3)), lines="only", any_rotation=True)
