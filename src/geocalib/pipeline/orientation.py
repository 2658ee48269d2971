"""Find which side of a picture is up.

The network has learnt from pictures that are within 45 degrees of upright, and answers any other as
if it were. So a picture that lies on a side has to be found out: by a classifier on what the
network's encoder sees (``geocalib.nets.upright``), which speaks whenever the network runs. Only
pictures that it suspects are shown to it again, turned. Networks that have none see all four turns,
and the one is kept that leaves the camera least uncertain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from geocalib.arrays import Array, double, namespace, unstack
from geocalib.geometry import gravity as sphere
from geocalib.geometry.fields import Fields
from geocalib.priors.enabled import LEVEL
from geocalib.records import dataclass
from geocalib.solver import FitOptions, fit

Pictures = npt.NDArray[np.float32]

TURNS = (0, 1, 2, 3)
"""Quarter turns counter-clockwise, as ``numpy.rot90``."""
DEPENDENCE = 2.0
"""The four turns of one picture are not independent: the sum of their log-probabilities is divided
by this."""
SUSPECT = 0.9
"""Probability, by the first look, that another side is up, from which on the other turns are looked
at. Of pictures that four looks find to lie on a side, the first one doubts 49 of 50 so much
(photographs of people it was not fitted to, turned); of upright ones one of 20."""
CLEAR = 0.995
"""Probability from which on another side is taken to be up: an upright picture must not be turned,
so many that do lie on a side are left as they are."""
LIKELY = 0.9
"""Probability from which on a warning says that another side may be up."""
CLOSE = 0.3
"""Difference of two entropies, in nats, that does not tell which turn is the right one."""

UNSURE = "which side is up is uncertain: the picture turned another way is almost as likely"
MAY_LIE = "another side of the picture may be up; if so, turn it, or set any rotation to on"
LIES = "taken as lying on a side or upside down; if it is upright, set any rotation to off"


@dataclass(frozen=True)
class OrientedFields:
    """The fields of B pictures, and how the pictures stand."""

    fields: Fields
    turns: Sequence[int]
    """Quarters that each was taken to stand turned by."""
    down: Sequence[Array | None]
    """A rough direction of gravity (3,) of each picture; None if it was not estimated."""
    notes: Sequence[tuple[str, ...]]
    """Warnings for each picture."""


def turned(fields: Fields, turns: int) -> Fields:
    """The fields of the pictures turned counter-clockwise by that many quarter turns."""
    xp = namespace(fields.up)
    x, y = unstack(fields.up, 1)
    for _ in range(turns % 4):
        x, y = y, -x
    rotated = replace(fields, up=xp.stack([x, y], axis=1))
    return rotated.map(lambda value: xp.rot90(value, turns, (-2, -1)))


def predict_upright(
    images: Pictures,
    predict: Callable[[Pictures], tuple[Fields, Pictures]],
    orientation: Callable[[Pictures], Pictures],
    certain: bool,
) -> OrientedFields:
    """The fields of images (B, 3, H, W), each seen as it stands, and turned back.

    predict, orientation: ``predict_oriented`` and ``orientation`` of an engine. certain: an image
    is taken as it is, unless another side of it is clearly up; else the likeliest side is.
    """
    fields, first = predict(images)
    stands, notes = _orientations(images, first, orientation, certain)
    # Almost all pictures are upright, and have been seen.
    if any(stands):
        parts = [fields[row : row + 1] for row in range(len(images))]
        for turns in set(stands) - {0}:
            those = np.flatnonzero(np.array(stands) == turns)
            seen, _ = predict(np.rot90(images[those], -turns, (-2, -1)))
            for at, row in enumerate(those.tolist()):
                parts[row] = turned(seen[at : at + 1], turns)
        fields = Fields.concatenate(parts)
    level = np.array(LEVEL)
    return OrientedFields(
        fields,
        stands,
        [sphere.rotate90(level, turns) if turns else None for turns in stands],
        notes,
    )


def _orientations(
    images: Pictures, first: Pictures, orientation: Callable[[Pictures], Pictures], certain: bool
) -> tuple[list[int], list[tuple[str, ...]]]:
    """How many quarters each image (B, 3, H, W) is taken to stand turned by, and what to say of it.

    first: (B, 4) log-probabilities of the first run. Everything else as in ``predict_upright``.
    """
    chance = first.copy()
    rows = np.arange(len(images))
    if certain:
        rows = rows[np.exp(chance[:, 1:]).sum(1) >= SUSPECT]
    if len(rows):
        chance[rows] = combined_over_turns(images[rows], chance[rows], orientation)
    probability, best = np.exp(chance.max(1)), chance.argmax(1)
    stands = best if not certain else np.where(probability >= CLEAR, best, 0)
    verdicts = zip(stands.tolist(), best.tolist(), probability.tolist(), strict=True)
    return stands.tolist(), [_notes(*verdict, certain) for verdict in verdicts]


def combined_over_turns(
    images: Pictures, first: Pictures, orientation: Callable[[Pictures], Pictures]
) -> Pictures:
    """(B, 4) log-probabilities that inputs (B, 3, H, W) stand turned by 0 to 3 quarters, from those
    of the inputs as they are and of their other turns: a picture that stands turned by k shows,
    turned by j more, one that is turned by k + j.

    first: (B, 4) of the inputs as they are. orientation: gives those of other inputs.
    """
    others = (orientation(np.rot90(images, turns, (-2, -1))) for turns in TURNS[1:])
    each = [first, *others]
    total = np.stack([sum(each[j][:, (k + j) % 4] for j in TURNS) for k in TURNS], 1) / DEPENDENCE
    return np.asarray(total - np.logaddexp.reduce(total, axis=1, keepdims=True))


def _notes(stands: int, best: int, probability: float, certain: bool) -> tuple[str, ...]:
    if not certain:
        return (UNSURE,) if probability < LIKELY else ()
    if stands:
        return (LIES,)
    return (MAY_LIE,) if best and probability >= LIKELY else ()


def predict_all_turns(
    images: Pictures,
    aspect: Sequence[float],
    predict: Callable[[Pictures], Fields],
    confidence_scale: float | None,
) -> OrientedFields:
    """The fields of images (B, 3, H, W), each seen with that side up that leaves its camera least
    uncertain, and turned back.

    The uncertainty is the entropy of gravity and focal length given the fields: half the
    logarithm of the determinant of their covariance, but for a constant. aspect: fx / fy of each.
    """
    every: list[Fields] = []
    entropies, downs = [], []
    for turns in TURNS:
        fields = predict(np.rot90(images, turns, (-2, -1)))
        ratio = np.array(aspect)
        result = fit(
            fields.map(double),
            aspect=1 / ratio if turns % 2 else ratio,
            options=FitOptions(confidence_scale=confidence_scale),
        ).in_numpy()
        entropy = 0.5 * np.linalg.slogdet(result.covariance)[1]
        # NaN where the fit failed.
        entropies.append(np.where(np.isfinite(entropy), entropy, np.inf))
        downs.append(sphere.rotate90(result.gravity, -turns))
        every.append(turned(fields, -turns))
    entropy = np.stack(entropies, 1)
    order = entropy.argsort(1, kind="stable")
    best = np.take_along_axis(entropy, order, 1)
    rows = np.arange(len(images))
    chosen = [every[turns][row : row + 1] for row, turns in enumerate(order[:, 0].tolist())]
    close = (best[:, 1] - best[:, 0] < CLOSE).tolist()
    return OrientedFields(
        Fields.concatenate(chosen),
        [-turns % len(TURNS) for turns in order[:, 0].tolist()],
        list(np.stack(downs, 1)[rows, order[:, 0]]),
        [(UNSURE,) if one else () for one in close],
    )
