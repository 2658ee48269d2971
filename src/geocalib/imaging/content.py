"""What kind of picture pixels show where it is no photograph that fills its frame.

Four kinds are known: an equirectangular panorama (2:1, its seam closes, its poles are smeared), a
circular picture with black around it, as fisheyes make them, a drawing or screenshot (few colours,
flat areas), and a scan or a sheet of paper that fills the picture. All is judged on some ten
thousand pixels, without any network.

The probabilities are logistic regressions on a few features each, fitted to 200 panoramas, 830
photographs and 120 drawn plots, screens, drawings, pages and photographed pages.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from geocalib.records import dataclass

Pixels = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]

SAMPLES = 128
"""Pixels along the shorter side that are looked at."""

LIKELY = 0.5
"""Probability from which a kind is spoken of."""

PANORAMA_ASPECT = 0.02
"""How far the ratio of a panorama's sides may be from 2."""
PANORAMA_WEIGHTS = (-6.96, -1.37, -1.54, -2.64, -1.52)
"""Constant, and weights of the logarithms of: the step across the seam, over the steps between
neighbouring columns, and over those between opposite ones; how rough the top and the bottom row
are, over rows in the middle."""

DRAWING_WEIGHTS = (-21.4, 3.25, 5.42, -1.64, -2.12)
"""Constant, and weights of: the share of pixels that equal their neighbours exactly; that of the
eight most frequent colours; the logarithms of how many colours there are per pixel, and of how much
the brightness of the background varies."""

SHEET_WEIGHTS = (-19.3, 2.39, 9.94, 2.39, -1.86)
"""Constant, and weights of: the share of pixels that are about as bright as the background around
them; that of blocks with a little ink; the dimmest over the brightest background; and the logarithm
of how many colours there are per pixel."""

FLOOR = 0.01
"""Added to a share before its logarithm is taken."""
BLOCK = 16
"""Samples along the sides of the blocks whose background is compared."""

BLACK = 48
"""Brightest channel of what may be around a circular picture."""
CONTRAST = 20
"""How much brighter than its surroundings a pixel of the picture is."""
LEAST_ARC = 0.15
"""Part of a circle, within the picture, whose border has to be seen."""
LARGEST_MISFIT = 0.02
"""Median distance of border pixels from the circle, in radii."""

FURTHEST_CENTRE = 0.25
"""Distance of the circle's centre from the middle of the picture, in widths and heights."""


@dataclass(frozen=True)
class Circle:
    """The border of a circular picture, in pixels of the original."""

    centre: tuple[float, float]
    radius: float

    def whole(self, size: tuple[int, int]) -> bool:
        """Whether all of it lies within an image of (width, height), up to 2% of its radius."""
        sides = [(c, s - c) for c, s in zip(self.centre, size, strict=True)]
        return all(min(pair) >= 0.98 * self.radius for pair in sides)


@dataclass(frozen=True)
class Content:
    """What a picture looks like."""

    panorama: float
    """Probability that it is an equirectangular panorama."""
    drawing: float
    """Probability that it is a drawing or a screenshot."""
    sheet: float
    """Probability that it is a scan, or a photograph of a sheet that fills the picture."""
    circle: Circle | None
    """The circle with black around it that the picture fills, if it does."""

    @property
    def warning(self) -> str | None:
        """Say what else than a photograph it looks like, and what follows; None if nothing."""
        if self.panorama >= LIKELY:
            return (
                f"this looks like an equirectangular panorama ({self.panorama:.0%} likely), which "
                "no camera model describes; for its level, and views to calibrate: "
                "geocalib panorama PHOTO --views DIR"
            )
        if self.sheet >= LIKELY:
            return (
                f"this looks like a scan or a sheet that fills the picture ({self.sheet:.0%} "
                "likely), which tells neither focal length nor gravity"
            )
        if self.drawing >= LIKELY:
            return (
                f"this looks like a drawing or a screenshot ({self.drawing:.0%} likely), "
                "not like a photograph"
            )
        return None


NOTHING_SPECIAL = Content(0.0, 0.0, 0.0, None)
"""What is said of a picture that shows nothing."""


def examine(pixels: Pixels, size: tuple[int, int]) -> Content:
    """Say what pixels (h, w, 3) of an original of (width, height) look like."""
    drawing, sheet = _drawn_or_sheet(pixels)
    # A plot closes at its sides as well as a panorama does.
    panorama = _panorama(pixels, size) * (1 - max(drawing, sheet))
    return Content(panorama, drawing, sheet, find_circle(pixels, size))


def _panorama(pixels: Pixels, size: tuple[int, int]) -> float:
    """The probability of an equirectangular panorama."""
    height, width = pixels.shape[:2]
    if abs(size[0] / size[1] - 2) > PANORAMA_ASPECT:
        return 0.0
    rows = pixels[:: max(1, height // SAMPLES)]
    columns = np.linspace(0, width - 2, 24).astype(np.intp)

    def steps(first: npt.NDArray[np.intp], second: npt.NDArray[np.intp]) -> Floats:
        apart = rows[:, first].astype(np.int64) - rows[:, second]
        return np.abs(apart).mean((0, 2))

    seam = float(steps(np.array([0]), np.array([width - 1]))[0])
    beside = float(np.median(steps(columns, columns + 1)))
    opposite = float(steps(columns, (columns + width // 2) % width).mean())

    def roughness(row: int) -> float:
        values = pixels[row].astype(np.int64)
        return float(np.abs(np.roll(values, max(1, width // 64), 0) - values).mean())

    middle = float(np.mean([roughness(int(height * at)) for at in (0.3, 0.4, 0.5, 0.6, 0.7)])) + 1
    ratios = (
        seam / (beside + 1),
        seam / (opposite + 1),
        roughness(0) / middle,
        roughness(height - 1) / middle,
    )
    return _probability(PANORAMA_WEIGHTS, [math.log(ratio + 2 * FLOOR) for ratio in ratios])


def _drawn_or_sheet(pixels: Pixels) -> tuple[float, float]:
    """The probabilities of a drawing or screenshot, and of a scan or a sheet."""
    step = max(1, min(pixels.shape[:2]) // SAMPLES)
    few = np.ascontiguousarray(pixels[:-1:step, :-1:step])
    at = pixels[: -1 : 2 * step, :-1:step]
    alike = at == pixels[: -1 : 2 * step, 1::step]
    alike &= at == pixels[1 :: 2 * step, :-1:step]
    flat = (alike[..., 0] & alike[..., 1] & alike[..., 2]).mean()
    red, green, blue = (few[..., band].astype(np.uint16) for band in range(3))
    counts = np.bincount((red >> 3 << 10 | green >> 3 << 5 | blue >> 3).ravel(), minlength=1 << 15)
    used = np.sort(counts[counts > 0])
    frequent = used[-8:].sum() / red.size
    colours = math.log(len(used) / red.size + FLOOR)

    bright = np.maximum(np.maximum(few[..., 0], few[..., 1]), few[..., 2])
    height, width = (side // BLOCK for side in bright.shape)
    if min(height, width) < 2:
        return 0.0, 0.0
    whole = bright[: height * BLOCK, : width * BLOCK].reshape(height, BLOCK, width, BLOCK)
    blocks = whole.transpose(0, 2, 1, 3).reshape(height, width, -1).astype(np.float32)
    place = int(0.85 * (blocks.shape[-1] - 1))
    background = np.partition(blocks, place, axis=2)[..., place]
    middle = max(1.0, float(np.median(background)))
    varying = math.log(float(np.median(np.abs(np.diff(background, axis=1)))) / middle + FLOOR)
    plain = (blocks > 0.88 * background[..., None]).mean()
    ink = (blocks < 0.65 * background[..., None]).mean(2)
    inky = ((ink > 0.005) & (ink < 0.45)).mean()
    dimmest, brightest = np.percentile(background, [10, 90]).tolist()
    even = dimmest / max(1.0, brightest)
    return (
        _probability(DRAWING_WEIGHTS, [flat, frequent, colours, varying]),
        _probability(SHEET_WEIGHTS, [plain, inky, even, colours]),
    )


def _probability(weights: tuple[float, ...], features: Sequence[float]) -> float:
    """The logistic function of a constant and weighted features."""
    constant, *slopes = weights
    score = constant + sum(w * float(x) for w, x in zip(slopes, features, strict=True))
    return 1 / (1 + math.exp(-max(-700.0, min(700.0, score))))


def find_circle(pixels: Pixels, size: tuple[int, int]) -> Circle | None:
    """Find the circle with black around it that pixels (h, w, 3) of an original of (width, height)
    show, as circular fisheyes do, also where the sides of the picture cut it; None without one."""
    step = max(1, min(pixels.shape[:2]) // SAMPLES)
    few = pixels[::step, ::step]
    height, width = few.shape[:2]
    corners = np.array([few[:2, :2], few[:2, -2:], few[-2:, :2], few[-2:, -2:]])
    dark = np.median(corners.max(3).reshape(4, -1), axis=1)
    # An ordinary picture leaves here.
    if np.sort(dark)[2] > BLACK:
        return None
    bright = np.maximum(np.maximum(few[..., 0], few[..., 1]), few[..., 2]).astype(np.int64)
    outside = bright <= dark[dark <= BLACK].max() + CONTRAST
    x, y = _border(outside)
    if len(x) < 16:
        return None
    fitted = _fit_circle(x, y)
    if fitted is None:
        return None
    cx, cy, r = fitted
    off = max(abs(cx / width - 0.5), abs(cy / height - 0.5))
    if off > FURTHEST_CENTRE or not 0.3 * min(height, width) <= r <= 0.5 * math.hypot(
        width, height
    ):
        return None
    away = np.abs(np.hypot(x - cx, y - cy) - r)
    near = away <= 2 * LARGEST_MISFIT * r + 1
    if near.mean() < 0.6 or np.median(away[near]) > LARGEST_MISFIT * r + 0.5:
        return None
    # The border must be seen nearly wherever the circle lies within the picture.
    turns = np.linspace(0, 2 * np.pi, 72, endpoint=False)
    at = np.stack([cx + r * np.cos(turns), cy + r * np.sin(turns)])
    inside = ((at > 1) & (at < np.array([[width - 1], [height - 1]]))).all(0)
    seen = np.zeros(72, bool)
    seen[np.round(np.arctan2(y - cy, x - cx)[near] / (2 * np.pi) * 72).astype(int) % 72] = True
    if inside.mean() < LEAST_ARC or (seen & inside).sum() < 0.6 * inside.sum():
        return None
    # Around the circle all is dark, and just within it most is not.
    rows, columns = np.mgrid[:height, :width]
    distance = np.hypot(columns + 0.5 - cx, rows + 0.5 - cy) / r
    rim = (distance > 0.85) & (distance < 0.96)
    if outside[distance > 1.04].mean() < 0.97 or outside[rim].mean() > 0.5:
        return None
    scale = size[0] / width, size[1] / height
    return Circle((cx * scale[0], cy * scale[1]), r * math.sqrt(scale[0] * scale[1]))


def _border(outside: npt.NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """x and y of the places where the dark runs end that begin at the sides of the picture."""
    _height, _width = outside.shape
    found_x, found_y = [], []
    for mask, along_x in ((outside, True), (outside.T, False)):
        length = mask.shape[1]
        for flipped in (False, True):
            run = np.argmin(mask[:, ::-1] if flipped else mask, axis=1)
            lines = np.nonzero(run > 1)[0]
            ends = length - run[lines] if flipped else run[lines]
            across = lines + 0.5
            found_x.append(ends if along_x else across)
            found_y.append(across if along_x else ends)
    return np.concatenate(found_x).astype(np.float64), np.concatenate(found_y).astype(np.float64)


def _fit_circle(x: Floats, y: Floats) -> tuple[float, float, float] | None:
    """Centre and radius of the circle through most of the points, by least squares on ever fewer
    of them; None where they lie on a line."""
    keep = np.ones(len(x), bool)
    for _ in range(6):
        rows = np.stack([2 * x[keep], 2 * y[keep], np.ones(keep.sum())], 1)
        try:
            cx, cy, c = np.linalg.lstsq(rows, x[keep] ** 2 + y[keep] ** 2, rcond=1e-9)[0].tolist()
        except np.linalg.LinAlgError:
            return None
        if c + cx * cx + cy * cy <= 0:
            return None
        r = math.sqrt(c + cx * cx + cy * cy)
        away = np.abs(np.hypot(x - cx, y - cy) - r)
        keep = away <= max(2.5 * float(np.median(away)), 1.0)
    return cx, cy, r
