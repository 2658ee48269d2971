"""Gravity: roll and pitch, tangent steps, quarter turns, rotations."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from geocalib.geometry import gravity

ANGLES = st.floats(-math.pi, math.pi)
PITCHES = st.floats(-math.pi / 2, math.pi / 2)


def tensor(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def directions(count: int = 200) -> Tensor:
    """(count, 3) unit vectors all over the sphere, with the poles of the axes among them."""
    random = torch.randn(count - 6, 3, dtype=torch.float64, generator=torch.manual_seed(1))
    random = random / torch.linalg.vector_norm(random, dim=-1, keepdim=True)
    axes = torch.eye(3, dtype=torch.float64)
    return torch.cat([axes, -axes, random])


def assert_close(found: Tensor, expected: Tensor, atol: float = 1e-12) -> None:
    torch.testing.assert_close(found, expected.expand_as(found), rtol=0, atol=atol)


# Roll and pitch ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("roll_deg", "pitch_deg", "expected"),
    [
        (0, 0, (0, 1, 0)),
        # Clockwise as seen from behind: what was down is now to the right.
        (90, 0, (1, 0, 0)),
        (180, 0, (0, -1, 0)),
        # Looking up: gravity points backwards.
        (0, 90, (0, 0, -1)),
        (0, -90, (0, 0, 1)),
        (30, 0, (0.5, math.sqrt(3) / 2, 0)),
        (0, 30, (0, math.sqrt(3) / 2, -0.5)),
    ],
)
def test_roll_pitch_by_hand(
    roll_deg: float, pitch_deg: float, expected: tuple[float, float, float]
) -> None:
    roll, pitch = torch.deg2rad(tensor(roll_deg, pitch_deg))
    assert_close(gravity.from_roll_pitch(roll, pitch), tensor(*expected))


@given(roll=ANGLES, pitch=PITCHES)
def test_roll_pitch_round_trip(roll: float, pitch: float) -> None:
    g = gravity.from_roll_pitch(tensor(roll), tensor(pitch))
    assert_close(torch.linalg.vector_norm(g, dim=-1), tensor(1.0))
    found_roll, found_pitch = gravity.to_roll_pitch(g)
    assert_close(found_pitch, tensor(pitch))
    # Towards the poles roll is as uncertain as the rounding of gravity makes it.
    turn = found_roll - roll
    assert_close(torch.sin(turn) * math.cos(pitch), tensor(0.0))
    assert math.cos(pitch) < 1e-12 or torch.cos(turn).item() > 0


def test_to_roll_pitch_and_back() -> None:
    g = directions()
    assert_close(gravity.from_roll_pitch(*gravity.to_roll_pitch(g)), g)


def test_roll_and_pitch_broadcast() -> None:
    g = gravity.from_roll_pitch(torch.zeros(3, 1), torch.tensor([0.1, 0.2]))
    assert g.shape == (3, 2, 3)
    assert gravity.from_roll_pitch(torch.tensor(0.0), torch.tensor([0.1, 0.2])).shape == (2, 3)


# The tangent plane ------------------------------------------------------------------------------


def test_tangent_basis_is_orthonormal_everywhere() -> None:
    tiny = tensor(1e-20, -1e-17, 1.0)[None]
    g = torch.cat([directions(), tiny, -tiny])
    frame = torch.cat([gravity.tangent_basis(g), g[..., None]], -1)
    assert_close(frame.transpose(-1, -2) @ frame, torch.eye(3, dtype=torch.float64))


@given(roll=ANGLES, pitch=st.floats(-1.5, 1.5))
def test_tangent_basis_follows_roll_and_pitch(roll: float, pitch: float) -> None:
    basis = gravity.tangent_basis(gravity.from_roll_pitch(tensor(roll), tensor(pitch)))[0]
    step = 1e-6
    for column, (d_roll, d_pitch), speed in (
        (basis[:, 0], (step, 0.0), math.cos(pitch)),
        (basis[:, 1], (0.0, step), 1.0),
    ):
        ahead = gravity.from_roll_pitch(tensor(roll + d_roll), tensor(pitch + d_pitch))
        behind = gravity.from_roll_pitch(tensor(roll - d_roll), tensor(pitch - d_pitch))
        assert_close((ahead - behind)[0] / (2 * step), speed * column, atol=1e-9)


def test_move_and_difference_are_inverse() -> None:
    g = directions()
    basis = gravity.tangent_basis(g)
    turns = torch.rand(len(g), dtype=torch.float64, generator=torch.manual_seed(2)) * 2 * math.pi
    direction = torch.stack([torch.cos(turns), torch.sin(turns)], -1)
    for length in (0.0, 1e-12, 1e-7, 1e-5, 1.1e-4, 1e-3, 0.5, 2.0, 3.1):
        step = length * direction
        moved = gravity.move(g, step, basis)
        assert_close(torch.linalg.vector_norm(moved, dim=-1), tensor(1.0), atol=1e-14)
        assert_close(gravity.angle_between(g, moved), tensor(length))
        assert_close(gravity.difference(g, moved, basis), step, atol=1e-13)
        assert_close(gravity.move(g, step), moved, atol=0)
    target = g.roll(1, 0)
    near = gravity.angle_between(g, target) < 3.1
    back = gravity.move(g, gravity.difference(g, target, basis), basis)
    assert_close(back[near], target[near])
    assert int(near.sum()) > 150


def test_move_has_derivatives_at_step_zero() -> None:
    g = directions(20)
    basis = gravity.tangent_basis(g)
    step = torch.zeros(20, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda s: gravity.move(g, s, basis), (step,))
    (jacobian,) = torch.autograd.grad(gravity.move(g, step, basis)[:, 0].sum(), step)
    assert_close(jacobian, basis[:, 0])
    larger = torch.full((20, 2), 0.3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda s: gravity.move(g, s, basis), (larger,))


def test_difference_has_derivatives_at_zero() -> None:
    g = directions(20)
    basis = gravity.tangent_basis(g)

    def there_and_back(step: Tensor) -> Tensor:
        return gravity.difference(g, gravity.move(g, step, basis), basis)

    step = torch.zeros(20, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(there_and_back, (step,))


def test_angle_between_is_exact_for_small_angles() -> None:
    a = tensor(0.0, 1.0, 0.0)
    b = tensor(1e-10, 1.0, 0.0)
    assert gravity.angle_between(a, b).item() == pytest.approx(1e-10, rel=1e-12)
    assert gravity.angle_between(a, -a).item() == pytest.approx(math.pi)


# Rotations --------------------------------------------------------------------------------------


def test_rotate90() -> None:
    level = tensor(0.0, 1.0, 0.0)
    # Turned counter-clockwise once, the picture's ground is on its right.
    assert gravity.rotate90(level, 1).tolist() == [1.0, 0.0, 0.0]
    assert gravity.rotate90(level, 2).tolist() == [0.0, -1.0, 0.0]
    assert gravity.rotate90(level, -1).tolist() == [-1.0, 0.0, 0.0]
    g = directions()
    assert_close(gravity.rotate90(gravity.rotate90(g, 3), 1), g, atol=0)
    # That is a roll by 90 degrees.
    roll, pitch = gravity.to_roll_pitch(g)
    assert_close(gravity.from_roll_pitch(roll + math.pi / 2, pitch), gravity.rotate90(g, 1))


def test_world_from_camera() -> None:
    g = directions()
    yaw = torch.linspace(-3, 3, len(g), dtype=torch.float64)
    for rotation in (gravity.world_from_camera(g), gravity.world_from_camera(g, yaw)):
        assert_close(rotation @ rotation.transpose(-1, -2), torch.eye(3, dtype=torch.float64))
        assert_close(torch.linalg.det(rotation), tensor(1.0))
        assert_close((rotation @ g[..., None])[..., 0], tensor(0.0, 1.0, 0.0))


def test_world_from_camera_looks_straight_ahead() -> None:
    roll, pitch = tensor(0.3, -0.4, 0.0), tensor(0.5, -0.2, 0.7)
    rotation = gravity.world_from_camera(gravity.from_roll_pitch(roll, pitch))
    axis = rotation[..., 2]
    # No sideways component, and up by the pitch (y is down).
    assert_close(axis, torch.stack([torch.zeros(3).double(), -pitch.sin(), pitch.cos()], -1))


def test_yaw_turns_right() -> None:
    level = tensor(0.0, 1.0, 0.0)
    rotation = gravity.world_from_camera(level, torch.tensor(math.pi / 6, dtype=torch.float64))
    assert_close(rotation[:, 2], tensor(0.5, 0.0, math.sqrt(3) / 2))


def test_turning_follows_roll_and_pitch() -> None:
    """As moving does to first order, but along circles of equal pitch and equal roll."""
    start = gravity.from_roll_pitch(tensor(0.3), tensor(-0.9))
    along_roll = gravity.turn(start, tensor(0.5, 0.0)[None])
    roll, pitch = gravity.to_roll_pitch(along_roll)
    assert pitch.item() == pytest.approx(-0.9)
    assert roll.item() == pytest.approx(0.3 + 0.5 / math.cos(0.9))
    along_pitch = gravity.turn(start, tensor(0.0, 0.5)[None])
    assert [angle.item() for angle in gravity.to_roll_pitch(along_pitch)] == pytest.approx(
        [0.3, -0.4]
    )
    little = 1e-5 * tensor(0.6, -0.8)[None]
    torch.testing.assert_close(
        gravity.turn(start, little), gravity.move(start, little), rtol=0, atol=1e-9
    )
