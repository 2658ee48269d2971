"""Residuals of segments and their derivatives against central differences and autograd; which
direction a segment belongs to, and whether that is chance.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from streets import camera_of, gravity_of, headings_of, segments_along

from geocalib.cameras import Camera
from geocalib.geometry import gravity as sphere
from geocalib.geometry.fields import Free, perspective_field
from geocalib.geometry.gravity import move, tangent_basis
from geocalib.lines.descent import turn_headings
from geocalib.lines.residuals import (
    FITTED,
    Noise,
    align,
    assign,
    directions_of,
    misfit,
    moves_of,
    noise_model,
    support,
)
from geocalib.lines.unknowns import Array, Images, SegmentBatch, level_frame
from lenses import ALL_MODELS

GRAVITY = gravity_of(-6.0, 9.0)
HEADINGS = headings_of(GRAVITY, [20.0, 63.0])
DOWN = GRAVITY[None, None]
LEVEL = HEADINGS[None, None]
DIRECTIONS = directions_of(DOWN, LEVEL)


def images_of(camera: Camera, gravity: Array = DOWN) -> Images:
    """One guess at one image."""
    values = camera.focal, camera.c, camera.distortion
    arrays = (value[None] for value in values)
    return Images(camera.model, *arrays, gravity, tangent_basis(gravity))


@pytest.mark.parametrize("model", ALL_MODELS)
def test_lines_of_the_world_have_no_residual(model: str) -> None:
    camera = camera_of(model)
    for k, direction in enumerate(DIRECTIONS[0, 0]):
        segments = segments_along(camera, direction[None], each=20, length=1.0)
        alignment = align(images_of(camera), SegmentBatch.create([segments]), DIRECTIONS)
        assert np.abs(alignment.residual[0, 0, k]).max() < 1e-5


@pytest.mark.parametrize("model", ALL_MODELS)
def test_the_vertical_is_seen_along_the_up_vector(model: str) -> None:
    """Against the sine between segments and the perspective field."""
    camera = camera_of(model)
    segments = segments_along(camera, HEADINGS[:0], clutter=50)
    alignment = align(images_of(camera), SegmentBatch.create([segments]), DIRECTIONS)
    first, last = segments.ends.swapaxes(0, 1)
    along = (last - first) / segments.length[:, None]
    up, _, valid = perspective_field(camera, GRAVITY[None], 0.5 * (first + last)[None])
    sine = np.abs(along[:, 0] * up[0, :, 1] - along[:, 1] * up[0, :, 0])
    seen = valid[0]
    assert np.array_equal(alignment.valid[0, 0, 0], seen)
    assert np.allclose(np.abs(alignment.residual[0, 0, 0])[seen], sine[seen], atol=1e-10)


def test_the_residual_is_the_angle_in_the_picture() -> None:
    """Against the sine between a segment and the line to the vanishing point, by hand."""
    camera = camera_of("pinhole")
    segments = segments_along(camera, HEADINGS[:0], clutter=50)
    alignment = align(images_of(camera), SegmentBatch.create([segments]), DIRECTIONS)
    first, last = segments.ends.swapaxes(0, 1)
    along = (last - first) / segments.length[:, None]
    for k, d in enumerate(DIRECTIONS[0, 0]):
        point = camera.c[0] + camera.f.item() * d[:2] / d[2]
        towards = point - 0.5 * (first + last)
        distance = np.linalg.norm(towards, axis=-1)
        sine = np.abs(along[:, 0] * towards[:, 1] - along[:, 1] * towards[:, 0]) / distance
        assert np.allclose(np.abs(alignment.residual[0, 0, k]), sine, atol=1e-10)
        assert np.allclose(alignment.nearness[0, 0, k], 1 / distance, rtol=1e-9)


def _residuals(camera: Camera, batch: SegmentBatch, step: Array) -> Array:
    """After steps of gravity, log f, distortion, principal point and headings."""
    count = len(camera.model.parameters)
    gravity = move(DOWN, step[None, None, :2])
    headings = turn_headings(LEVEL, DOWN, gravity, step[None, None, -2:])
    images = images_of(camera, gravity)
    moved = replace(
        images,
        focal=images.focal * np.exp(step[2]),
        distortion=images.distortion + step[3 : 3 + count],
        c=images.c + step[3 + count : 5 + count],
    )
    return align(moved, batch, directions_of(gravity, headings)).residual[0, 0]


@pytest.mark.parametrize("model", ALL_MODELS)
def test_jacobian(model: str) -> None:
    """Against central differences of fourth order."""
    camera = camera_of(model)
    directions = DIRECTIONS[0, 0]
    batch = SegmentBatch.create([segments_along(camera, directions, each=4, clutter=6)])
    images = images_of(camera)
    alignment = align(images, batch, DIRECTIONS)
    free = Free(True, True, tuple(range(len(camera.model.parameters))), True)
    moves = moves_of(DIRECTIONS, images.basis, free.intrinsics)
    analytic = np.moveaxis(moves.mT @ alignment.jacobian(free), -2, 2)[0, 0]
    count = 2 + 2 + 1 + len(camera.model.parameters) + 2
    assert len(analytic) == count
    for i in range(count):
        step = np.zeros(count)
        step[i] = 0.1 if count - 4 <= i < count - 2 else 1e-5
        near, far = (
            _residuals(camera, batch, n * step) - _residuals(camera, batch, -n * step)
            for n in (1, 2)
        )
        central = (8 * near - far) / (12 * step[i])
        assert np.allclose(analytic[i], central, rtol=1e-6, atol=1e-8), i


def test_headings_stay_level() -> None:
    after = gravity_of(20.0, -30.0)
    moved = turn_headings(LEVEL, DOWN, after[None, None], np.zeros((1, 1, 2)))[0, 0]
    assert np.allclose(moved @ after, 0, atol=1e-12)
    assert np.allclose(moved @ moved.T, LEVEL[0, 0] @ LEVEL[0, 0].T, atol=1e-12)


def test_the_sphere_in_arrays_is_that_in_tensors() -> None:
    for gravity in (GRAVITY, gravity_of(170.0, -80.0), gravity_of(0.0, 90.0)):
        array, step = gravity, np.array([0.3, -0.2])
        assert np.allclose(tangent_basis(array), sphere.tangent_basis(gravity), atol=1e-12)
        assert np.allclose(move(array, step), sphere.move(gravity, step))
        assert np.allclose(level_frame(array), sphere.world_from_camera(gravity), atol=1e-12)


WIDTH = np.radians(0.2)


def noise_of(length: float, count: int, nearness: float = 0.0) -> Noise:
    shape = (1, 2, count)
    usable = np.ones(shape, np.bool_)
    lengths, near = np.full((1, count), length), np.full(shape, nearness)
    return noise_model(lengths, near, np.array([0.3]), usable, WIDTH)


def residuals(first: Array, second: Array) -> Array:
    return np.stack([first, second])[None]


def test_a_segment_goes_to_the_direction_that_it_points_along() -> None:
    noise = noise_of(80.0, 3)
    share = assign(residuals(np.array([0.0, 0.5, 0.5]), np.array([0.5, 0.0, 0.5])), noise).share[0]
    assert share[0, 0] > 0.9
    assert share[1, 1] > 0.9
    assert share[:, 2].sum() < 0.01


def test_long_segments_are_surer_and_those_near_a_vanishing_point_less() -> None:
    short, long, near = (
        noise_of(length, 1, nearness).information[0, 0, 0]
        for length, nearness in ((20.0, 0.0), (200.0, 0.0), (200.0, 0.1))
    )
    assert short < long
    assert near < long


def test_chance_supports_little_and_parallels_much() -> None:
    random = np.random.default_rng(0)
    anywhere = np.sin(random.uniform(-np.pi / 2, np.pi / 2, (2, 200)))
    along = 0.005 * random.normal(size=200)
    noise = noise_of(60.0, 200)
    assert support(residuals(*anywhere), noise, 4.0).max() < 3
    first, second = support(residuals(along, anywhere[1]), noise, 4.0)[0]
    assert first > 50
    assert second < 3


REPEATS = 4.0


def noise_for(count: int, directions: int = 1) -> Noise:
    shape = (1, directions, count)
    length, nearness = np.full((1, count), 60.0), np.zeros(shape)
    there = np.ones(shape, np.bool_)
    return noise_model(length, nearness, np.array([0.35]), there, math.radians(0.2))


def supported(residual: list[list[float]]) -> list[float]:
    array = np.radians(np.array(residual))[None]
    found: list[float] = support(array, noise_for(array.shape[2], len(residual)), REPEATS)[
        0
    ].tolist()
    return found


def test_support_grows_with_the_segments_that_follow() -> None:
    few, many = supported([[0.1] * 10])[0], supported([[0.1] * 40])[0]
    assert 0 < few < many
    assert many > 3 * few


def test_segments_that_point_anywhere_support_nothing() -> None:
    anywhere = np.random.default_rng(0).uniform(-90, 90, 200)
    assert supported([np.degrees(np.sin(np.radians(anywhere))).tolist()])[0] < 3


def test_a_direction_is_worth_what_the_others_do_not_explain() -> None:
    """Two that the same segments follow are worth less than each would be alone."""
    alone = supported([[0.1] * 30])[0]
    twice = supported([[0.1] * 30, [0.1] * 30])
    assert max(twice) < 0.3 * alone
    apart = supported([[0.1] * 30 + [40.0] * 30, [40.0] * 30 + [0.1] * 30])
    assert min(apart) > 0.5 * alone


def test_the_misfit_is_1_where_residuals_are_as_large_as_expected() -> None:
    """And counts what follows a direction alone, less what was fitted."""
    count = 4000
    noise = noise_for(count)
    sigma = 1 / np.sqrt(noise.information[0, 0, 0])
    residual = np.random.default_rng(0).normal(0, sigma, (1, 1, 1, count))
    share = np.ones_like(residual)
    assert abs(misfit(residual, noise, share)[0] - 1) < 0.1
    assert abs(misfit(2 * residual, noise, share)[0] - 4) < 0.4
    far = np.where(np.arange(count) < 100, residual, 1.0)
    own = np.broadcast_to(np.arange(count) < 100, share.shape).astype(np.float64)
    squared = np.square(residual[..., :100] / sigma).sum()
    assert abs(misfit(far, noise, own)[0] - squared / (100 - FITTED)) < 1e-9
