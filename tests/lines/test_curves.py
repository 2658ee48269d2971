"""Long edges of pictures, traced."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest

from geocalib.arrays import Array
from geocalib.imaging import read_photo
from geocalib.lines.chains import chains
from geocalib.lines.curves import STRETCHES, Curves, trace
from geocalib.lines.detect import detect

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
    return trace(grey, ends, np.ones(2), np.zeros(2))


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


def test_nothing_in_a_blank_picture() -> None:
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
