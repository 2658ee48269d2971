"""Pieces of one edge find each other."""

from __future__ import annotations

import math

import numpy as np

from geocalib.lines.chains import Array, chains


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
