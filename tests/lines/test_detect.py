"""Segments and edges found in pictures: their places, chains and sagittas."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image, ImageDraw
from scipy.ndimage import map_coordinates

from geocalib.geometry.segments import STRETCHES, Curves
from geocalib.imaging import read_photo
from geocalib.lines.detect import (
    LONGEST_SIDE,
    MOST,
    SHORT_SIDE,
    Array,
    chains,
    detect,
    join_halves,
    opencv,
    profiles,
    refit_to_edges,
    steepest,
    straight_pieces,
    trace_edges,
)


def _halves(width: int, height: int, edge: int) -> Image.Image:
    pixels = np.zeros((height, width, 3), np.uint8)
    pixels[:, edge:] = 220
    return Image.fromarray(pixels)


def test_an_edge_is_found_where_it_is() -> None:
    """Between the pixels 199 and 200 lies x = 200."""
    segments = detect(read_photo(_halves(640, 480, 200)))
    assert len(segments) >= 1
    assert np.allclose(segments.ends[0, :, 0], np.full((2,), 200.0), atol=0.05)
    assert segments.length[0] > 470


@pytest.mark.parametrize("factor", [2, 4])
def test_large_photos_are_shrunk_and_counted_in_their_own_pixels(factor: int) -> None:
    size = factor * LONGEST_SIDE // 2, factor * LONGEST_SIDE // 4
    picture = _halves(*size, size[0] // 5)
    segments = detect(read_photo(picture, SHORT_SIDE))
    expected = np.full((2,), size[0] / 5)
    assert np.allclose(segments.ends[0, :, 0], expected, atol=0.1 * factor)
    small = detect(read_photo(_halves(640, 480, 200)))
    assert segments.noise == pytest.approx(small.noise * factor / 2, rel=0.01)


def test_slanted_lines() -> None:
    picture = Image.new("RGB", (1600, 1200), "white")
    ImageDraw.Draw(picture).line((100, 200, 1500, 900), fill="black", width=16)
    picture = picture.resize((800, 600), Image.Resampling.LANCZOS)
    segments = detect(read_photo(picture))
    along = segments.ends[:2, 1] - segments.ends[:2, 0]
    slope = along[:, 1] / along[:, 0]
    assert np.allclose(slope, np.full((2,), 0.5), atol=0.003)


@pytest.mark.parametrize("size", [(1600, 1200), (1200, 1600)])
def test_a_line_through_the_whole_picture_is_one(size: tuple[int, int]) -> None:
    """Though its halves are looked at by themselves."""
    width, height = size
    picture = Image.new("RGB", (2 * width, 2 * height), "white")
    across = (40, 1.1 * height, 2 * width - 40, 0.9 * height)
    ImageDraw.Draw(picture).line(across, fill="black", width=40)
    segments = detect(read_photo(picture.resize(size, Image.Resampling.LANCZOS)))
    assert bool((segments.length[:2] > 0.95 * (width - 40)).all())
    assert bool((segments.length[2:] < 0.1 * width).all())


def test_halves_are_joined_along_their_edges() -> None:
    first = [[(10, 10), (130, 10)], [(90, 50), (120, 50)], [(150, 70), (105, 70)], [(5, 5), (9, 9)]]
    second = [[(300, 10.4), (80, 10)], [(105, 70), (190, 79)], [(99, 90), (100, 80)]]
    found = join_halves(np.array(first, float), np.array(second, float), 100.0, 0)
    expected = [[(5, 5), (9, 9)], [(105, 70), (190, 79)], [(10, 10), (300, 10.4)]]
    assert np.allclose(found, np.array(expected))
    swapped = join_halves(np.array(first, float)[..., ::-1], np.array(second)[..., ::-1], 100.0, 1)
    assert np.allclose(swapped[..., ::-1], found)


def test_nothing_in_a_blank_picture() -> None:
    assert len(detect(read_photo(Image.new("RGB", (640, 480), "gray")))) == 0


def test_the_longest_come_first_and_no_more_than_enough() -> None:
    noise = np.random.default_rng(0).integers(0, 2, (60, 80)).astype(np.uint8) * 255
    picture = Image.fromarray(noise).resize((1600, 1200), Image.Resampling.NEAREST)
    segments = detect(read_photo(picture))
    assert len(segments) == MOST
    assert bool((np.diff(segments.length) <= 0).all())


@pytest.mark.parametrize(("sag", "pieces"), [(2.5, 2), (-1.8, 2), (0.4, 1)])
def test_edges_that_a_lens_has_bent_are_cut_in_two(sag: float, pieces: int) -> None:
    y, x = np.mgrid[:400, :600] + 0.5
    edge = 200 + sag * (1 - ((x - 300) / 150) ** 2)
    grey = (255 / (1 + np.exp(-(y - edge) / 0.7))).astype(np.uint8)
    chord = np.array([[[150.0, 200.0], [450.0, 200.0]]])
    found = straight_pieces(grey, chord)
    assert len(found) == pieces
    if pieces == 1:
        assert np.array_equal(found, chord)
    else:
        first, second = found
        path = np.stack([first[0], first[1], second[1]])
        assert np.allclose(first[1], second[0])
        assert np.allclose(path, [(150, 200), (300, 200 + sag), (450, 200)], atol=0.4)


def test_profiles_are_the_brightness_along_normals() -> None:
    """SciPy is the oracle; it too counts pixels from the centre of the first one."""
    random = np.random.default_rng(0)
    grey = random.uniform(0, 255, (40, 60)).astype(np.float32)
    places = random.uniform(10, 30, (7, 5, 2))
    angle = random.uniform(0, 2 * np.pi, (7, 1))
    normals = np.stack([np.cos(angle), np.sin(angle)], -1)
    found = profiles(grey, places, normals, 4)
    assert found.shape == (7, 5, 9)
    points = places[..., None, :] + np.arange(-4, 5.0)[:, None] * normals[..., None, :]
    expected = map_coordinates(grey, [points[..., 1] - 0.5, points[..., 0] - 0.5], order=1)
    # OpenCV interpolates at 1/32 of a pixel.
    assert np.allclose(found, expected, atol=255 / 16)
    assert np.abs(found - expected).mean() < 2


def test_no_places_have_no_profiles() -> None:
    grey = np.zeros((8, 8), np.uint8)
    assert profiles(grey, np.zeros((0, 2)), np.zeros((0, 2)), 3).shape == (0, 7)


@pytest.mark.parametrize("place", [-1.3, -0.5, 0.0, 0.21, 1.7])
def test_the_steepest_place_of_a_bell(place: float) -> None:
    middle = np.arange(8) - 3.5
    slopes = 20 * np.exp(-0.5 * ((middle - place) / 1.2) ** 2)[None]
    offset, there = steepest(slopes)
    assert there.all()
    assert offset[0] == pytest.approx(place, abs=1e-6)


def test_what_falls_or_stays_level_has_no_edge() -> None:
    _, there = steepest(np.stack([np.full(8, -5.0), np.zeros(8), np.full(8, 0.5)]))
    assert not there.any()


def test_short_segments_are_turned_onto_their_edges() -> None:
    """Those of tiles, which the detector turns towards corners, are seen as the tiles are."""
    y, x = np.mgrid[:80, :120] + 0.5
    slope = 0.3
    side = 2 * (y - 40 - slope * (x - 60))
    grey = (128 + 60 * np.tanh(side)).astype(np.uint8)
    right = np.array([[50.0, 40 - 10 * slope], [70.0, 40 + 10 * slope]])
    turned = right + np.array([[0.0, 0.6], [0.0, -0.6]])
    (found,) = refit_to_edges(grey, turned[None])
    off = found - right
    assert np.abs(off[:, 1] - slope * off[:, 0]).max() < 0.1


def test_segments_without_an_edge_stay() -> None:
    ends = np.array([[[10.0, 10.0], [40.0, 20.0]]])
    assert np.array_equal(refit_to_edges(np.full((60, 60), 90, np.uint8), ends), ends)
    assert refit_to_edges(np.zeros((9, 9), np.uint8), np.zeros((0, 2, 2))).shape == (0, 2, 2)


def pieces(radius: float, gap: float = 10.0, count: int = 4, length: float = 60.0) -> Array:
    """(count, 2, 2) of an arc of so many pixels radius that starts to the right."""
    starts = np.arange(count) * (length + gap)
    ends = []
    for start in starts:
        angles = np.array([start, start + length]) / radius
        ends.append(np.stack([radius * np.sin(angles), radius * (1 - np.cos(angles))], -1))
    return np.array(ends)


def test_pieces_of_a_straight_edge_are_one_chain() -> None:
    assert len(set(chains(pieces(1e9)))) == 1


def test_pieces_of_a_gentle_arc_are_one_chain_either_way() -> None:
    arc = pieces(2000.0)
    assert len(set(chains(arc))) == 1
    assert len(set(chains(arc * [1, -1]))) == 1


def test_a_sharp_arc_is_none() -> None:
    """A lens bends no edge within 150 pixels."""
    assert len(set(chains(pieces(150.0)))) == 4


def test_far_pieces_and_steps_aside_are_not_of_one_edge() -> None:
    assert len(set(chains(pieces(1e9, gap=120.0)))) == 4
    aside = pieces(1e9, count=2)
    aside[1, :, 1] += 6.0
    assert len(set(chains(aside))) == 2


def test_the_two_sides_of_a_bar_are_two_edges() -> None:
    """Brighter on the other hand: the second runs the other way."""
    one = pieces(1e9, count=2)
    other = one[:, ::-1] + [0.0, 3.0]
    label = chains(np.concatenate([one, other]))
    assert label[0] == label[1]
    assert label[2] == label[3]
    assert label[0] != label[2]


def test_a_ring_ends() -> None:
    """Each piece of a polygon of many sides follows another, and none is the first."""
    count = 240
    angles = 2 * math.pi * np.arange(count + 1) / count
    places = 1500.0 * np.stack([np.cos(angles), np.sin(angles)], -1)
    ring = np.stack([places[:-1], places[1:]], 1)
    assert len(set(chains(ring))) == 1


SPAN = (100.0, 500.0)


def _picture(sag: float, stripes: tuple[float, ...] = ()) -> npt.NDArray[np.uint8]:
    """A dark and a bright side, with an arc between them that rises by so many pixels from x = 100
    to 500; without contrast in stripes that are 20 pixels wide."""
    y, x = np.mgrid[:400, :600] + 0.5
    edge = 200 + sag * (1 - ((x - 300) / 200) ** 2)
    bright = 1 / (1 + np.exp(-(y - edge) / 0.7))
    for stripe in stripes:
        bright[np.abs(x - stripe) < 10] = 0.5
    return (40 + 160 * bright).astype(np.uint8)


def _chords(sag: float, places: list[float]) -> npt.NDArray[np.float64]:
    """Chords of that arc from place to place."""
    x = np.array(places)
    points = np.stack([x, 200 + sag * (1 - ((x - 300) / 200) ** 2)], -1)
    return np.stack([points[:-1], points[1:]], 1)


def _trace(grey: npt.NDArray[np.uint8], ends: npt.NDArray[np.float64]) -> Curves:
    return trace_edges(grey, ends, np.ones(2), np.zeros(2))


def _sagittas(curves: Curves) -> Array:
    """Off the chord of each curve, which is level."""
    return (curves.comb * curves.points[..., 1]).sum(1)


@pytest.mark.parametrize("sag", [-3.0, 0.0, 0.4, 5.0])
def test_the_sagitta_of_an_arc(sag: float) -> None:
    curves = _trace(_picture(sag), _chords(sag, [100, 250, 400, 500]))
    assert curves.points.shape == (1, STRETCHES, 2)
    x = curves.points[0, :, 0]
    assert x.min() < 130
    assert x.max() > 470
    # Between the ends of the edge, which are half a step inside.
    assert _sagittas(curves).item() == pytest.approx(sag, abs=0.07 + 0.02 * abs(sag))
    assert curves.sigma.item() < 0.05


def test_a_comb_feels_neither_shifts_nor_turns() -> None:
    curves = _trace(_picture(1.0, (180.0, 333.0)), _chords(1.0, [100, 260, 500]))
    along = curves.points[..., 0]
    assert np.allclose(curves.comb.sum(1), np.zeros(1), atol=1e-9)
    assert np.allclose((curves.comb * along).sum(1), np.zeros(1), atol=1e-3)


def test_gaps_are_bridged() -> None:
    ends = _chords(2.0, [100, 240, 260, 400, 420, 500])[::2]
    curves = _trace(_picture(2.0, (250.0, 410.0)), ends)
    assert len(curves) == 1
    assert _sagittas(curves).item() == pytest.approx(2.0, abs=0.1)


def test_detected_edges_are_in_pixels_of_the_original() -> None:
    large = np.kron(_picture(3.0), np.ones((6, 6), np.uint8))
    segments = detect(read_photo(np.repeat(large[..., None], 3, -1)))
    curves = segments.curves
    longest = int(np.linalg.norm(curves.points[:, -1] - curves.points[:, 0], axis=-1).argmax())
    x, y = curves.points[longest].T
    path = 6 * (200 + 3 * (1 - ((x / 6 - 300) / 200) ** 2))
    assert np.allclose(y, path, atol=1.5)
    assert x.max() - x.min() > 3000


def test_no_edges_in_a_blank_picture() -> None:
    grey = np.full((100, 100), 128, np.uint8)
    assert len(_trace(grey, np.zeros((0, 2, 2)))) == 0
    assert len(_trace(grey, np.array([[[10.0, 10.0], [90.0, 90.0]]]))) == 0


def test_short_edges_tell_nothing() -> None:
    assert len(_trace(_picture(0.0), _chords(0.0, [100, 150]))) == 0


def test_turned_with_the_picture() -> None:
    curves = _trace(_picture(2.0), _chords(2.0, [100, 300, 500]))
    pixels = np.rot90(_picture(2.0))
    ends = _chords(2.0, [100, 300, 500])
    ends = np.stack([ends[..., 1], 600 - ends[..., 0]], -1)
    expected = _trace(np.ascontiguousarray(pixels), ends)
    turned = curves.turned(600)
    for mine, other in ((turned.points, expected.points), (turned.comb, expected.comb)):
        assert np.allclose(mine, other, atol=0.05) or np.allclose(mine, other[:, ::-1], atol=0.05)


def test_pieces_of_one_arc_are_a_chain_whichever_way_it_bends() -> None:
    for bend in (-8.0, 0.0, 8.0):
        pieces = _chords(bend, [100, 180, 260, 340, 420, 500])
        assert len(set(chains(pieces).tolist())) == 1


def test_pieces_may_overlap() -> None:
    """As they do where a picture was searched in parts."""
    pieces = np.array([[[0.0, 0.0], [300.0, 0.0]], [[190.0, 0.2], [400.0, 0.2]]])
    assert len(set(chains(pieces).tolist())) == 1


def test_what_is_beside_or_against_is_another_chain() -> None:
    piece = np.array([[0.0, 0.0], [100.0, 0.0]])
    on = piece + np.array([110.0, 0.0])
    beside, askew = on + np.array([0.0, 6.0]), np.array([[110.0, 0.0], [200.0, 30.0]])
    for other in (beside, askew, on[::-1]):
        assert len(set(chains(np.stack([piece, other])).tolist())) == 2
    assert len(set(chains(np.stack([piece, on])).tolist())) == 1


def test_a_ring_is_one_chain() -> None:
    angle = np.linspace(0, 2 * math.pi, 61)
    points = 900 * np.stack([np.cos(angle), np.sin(angle)], -1)
    assert set(chains(np.stack([points[:-1], points[1:]], 1)).tolist()) == {0}


def test_it_runs_with_one_thread() -> None:
    assert opencv().getNumThreads() == 1
