"""What stands beside the photo: the numbers, the warnings, what the network saw."""

from __future__ import annotations

import functools
import math
import textwrap
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import PurePath

import numpy as np
from matplotlib import font_manager
from matplotlib.axes import Axes
from PIL import Image

from geocalib.geometry.fields import Fields
from geocalib.overlay.draw import (
    ARROW,
    HORIZON,
    draw_confidence,
    draw_latitude,
    draw_up,
    latitude_colours,
    with_sigma,
)
from geocalib.overlay.lines import colours as line_colours
from geocalib.overlay.photo import BOX, FONT, LONGEST_SIDE, blank, rendered, write
from geocalib.result.calibration import Calibration
from geocalib.result.evidence import agreements

PAPER = "#fafaf8"
INK = "#1b1f27"
GREY = "#6b7280"
GOOD = "#12875a"
DOUBT = "#c2570c"

GAP = 26
"""Pixels around and between the parts."""
COLUMN = 348
"""Pixels across a column of text."""
TALLEST_BESIDE = 1000
"""Pixels of a photo beside the card."""
TALLEST_ABOVE = 1200
"""Pixels of a photo above the card."""
LEAST_ASPECT = 0.65
"""Width to height of a photo from which the card is below it."""
LEAST_ASPECT_WITH_FIELDS = 1.45
"""The same of a card that shows fields as well."""
LEAST_PANELS = 270
"""Pixels across what shows the fields."""
SMALL = 13.0
"""Size of small letters, pixels."""
LINE = 1.5
"""Heights of a letter from one line to the next."""
MOST_LINES = 7
"""Most lines of warnings."""


def photo_size(calibration: Calibration) -> tuple[int, int]:
    """The size to draw the photo at, so that the whole fits into 1600 pixels."""
    width, height = calibration.width, calibration.height
    if _card_below(calibration):
        scale = min(LONGEST_SIDE / width, TALLEST_ABOVE / height)
    else:
        scale = min((LONGEST_SIDE - COLUMN - 2 * GAP) / width, TALLEST_BESIDE / height)
    return max(1, round(scale * width)), max(1, round(scale * height))


def arrange(photo: Image.Image, calibration: Calibration, with_box: bool) -> Image.Image:
    """The annotated photo with the card below or beside it."""
    fields = calibration.fields
    title, table, legend = _title(calibration), _table(calibration), _legend(calibration, with_box)
    if _card_below(calibration):
        columns = [_stacked([title, legend]), table]
        room = photo.width - len(columns) * (COLUMN + GAP) - 2 * GAP
        if fields is not None:
            columns.append(_panels_in_a_row(fields, room))
        elif room >= COLUMN:
            columns = [title, table, legend]
        card = _beside(columns)
        return _pasted(photo.width, photo.height + card.height, photo, card, (0, photo.height))
    texts = _stacked([title, table, legend])
    if fields is not None:
        texts = _stacked([texts, _panels_in_a_column(fields, photo.height - texts.height)])
    card = _beside([texts])
    height = max(photo.height, card.height)
    return _pasted(photo.width + card.width, height, photo, card, (photo.width, 0))


def _card_below(calibration: Calibration) -> bool:
    """Whether the photo leaves room below rather than beside it."""
    least = LEAST_ASPECT if calibration.fields is None else LEAST_ASPECT_WITH_FIELDS
    return calibration.width >= least * calibration.height


def numbers(calibration: Calibration) -> list[tuple[str, str, str]]:
    """The name, value and sigma of each quantity, in words."""
    sigma = calibration.sigma
    rows = [
        ("roll", calibration.roll_deg, sigma.roll_deg, "°"),
        ("pitch", calibration.pitch_deg, sigma.pitch_deg, "°"),
        ("vFoV", calibration.vfov_deg, sigma.vfov_deg, "°"),
        ("hFoV", calibration.hfov_deg, sigma.hfov_deg, "°"),
        ("focal, px", calibration.fy, sigma.focal, ""),
    ]
    names = calibration.cameras.model.parameters
    for name, value, error in zip(names, calibration.distortion, sigma.distortion, strict=True):
        rows.append((name, value, error, ""))
    centre = (calibration.cx, calibration.cy)
    for name, value, error in zip(("cx", "cy"), centre, sigma.principal_point, strict=True):
        if name in calibration.parameters:
            rows.append((f"{name}, px", value, error, ""))
    shown = []
    for name, value, error, unit in rows:
        text = with_sigma(value, error, unit) if math.isfinite(value) else "undefined"
        # The value and what is said about it stand in columns of their own.
        value_text, _, sigma_text = text.replace("-", "−").partition(" ")
        shown.append((name, value_text, sigma_text))
    return shown


def _title(calibration: Calibration) -> Image.Image:
    name = PurePath(calibration.image).name if calibration.image else "calibration"
    what = f"{calibration.camera_model},  {calibration.width} × {calibration.height} px"
    lines = [(_elided(name, 28), 19.0, INK, "bold"), (what, 14.0, GREY, "normal")]
    good = calibration.trusted
    status = wrapped(f"● {calibration.status}", 14.0)
    lines += [(line, 14.0, GOOD if good else DOUBT, "bold") for line in status]
    if calibration.lines is not None:
        rows = wrapped(str(calibration.lines), SMALL)
        lines += [(line, SMALL, GREY, "normal") for line in rows]
    for text in agreements(calibration.priors):
        lines += [(line, SMALL, GREY, "normal") for line in wrapped(text, SMALL)]
    warnings = [line for text in calibration.warnings for line in wrapped(f"⚠ {text}", SMALL)]
    if len(warnings) > MOST_LINES:
        warnings = [*warnings[: MOST_LINES - 1], "…"]
    lines += [(line, SMALL, DOUBT, "normal") for line in warnings]

    def draw(axes: Axes) -> float:
        y = 0.0
        for text, size, colour, weight in lines:
            _line(axes, 0, y, text, size, color=colour, fontweight=weight)
            y += LINE * size
        return y

    return _block(COLUMN, draw)


def _table(calibration: Calibration) -> Image.Image:
    size = 17.0

    def draw(axes: Axes) -> float:
        y = 0.0
        for name, value, sigma in numbers(calibration):
            axes.plot([0, COLUMN], [y, y], color=GREY, alpha=0.35, linewidth=1)
            y += 5
            _line(axes, 0, y, name, size, color=GREY)
            _line(axes, 0.60 * COLUMN, y, value, size, color=INK, fontweight="bold", ha="right")
            _line(axes, 0.64 * COLUMN, y, sigma, size, color=GREY)
            y += LINE * size
        return y

    return _block(COLUMN, draw)


def _legend(calibration: Calibration, with_box: bool) -> Image.Image:
    """What the colours mean, in two columns."""
    above, below = latitude_colours(np.array([20.0, -20.0]))
    entries = [
        (HORIZON, 3.4, "horizon"),
        (above, 1.8, "above the horizon"),
        (ARROW, 3.0, "up"),
        (below, 1.8, "below it"),
        (BOX, 3.4, "box on the ground"),
    ][: 5 if with_box else 4]
    if calibration.lines is not None and (traces := calibration.lines.traces) is not None:
        found = dict(zip(line_colours(traces), traces.vertical.tolist(), strict=True))
        level = (f"level lines, heading {n}" for n in count(1))
        entries += [
            (colour, 2.4, "vertical lines" if upright else next(level))
            for colour, upright in found.items()
        ]

    def draw(axes: Axes) -> float:
        for i, (colour, width, text) in enumerate(entries):
            x, y = (i % 2) * 0.5 * COLUMN, (i // 2) * LINE * SMALL
            middle = y + 0.5 * LINE * SMALL
            axes.plot([x, x + 20], [middle, middle], color=colour, linewidth=width)
            _line(axes, x + 28, y, text, SMALL, color=GREY)
        return LINE * SMALL * math.ceil(len(entries) / 2)

    return _block(COLUMN, draw)


def _panels_in_a_column(fields: Fields, room: int) -> Image.Image:
    """One panel above two, made smaller if they would be taller than the room by much."""
    across, down = fields.size
    width = round(min(COLUMN, max(LEAST_PANELS, (room - 6 * GAP) / 1.5 * across / down)))
    small = (width - GAP // 2) // 2
    confidences = [_up_confidence(fields, small), _latitude_confidence(fields, small)]
    return _stacked([_observed(fields, width), _beside(confidences, GAP // 2, 0)], GAP // 2)


def _panels_in_a_row(fields: Fields, width: int) -> Image.Image:
    large = round(0.62 * width)
    small = min(width - large - GAP, round(0.5 * large))
    confidences = [_up_confidence(fields, small), _latitude_confidence(fields, small)]
    return _beside([_observed(fields, large), _stacked(confidences, GAP // 2)], GAP, 0)


def _observed(fields: Fields, width: int) -> Image.Image:
    def draw(axes: Axes) -> None:
        draw_latitude(axes, fields.latitude[0, 0], fields.latitude_confidence[0])
        draw_up(axes, fields.up[0], fields.up_confidence[0])

    return _panel("what the network saw", fields, width, draw)


def _up_confidence(fields: Fields, width: int) -> Image.Image:
    return _panel(
        "up confidence", fields, width, lambda axes: draw_confidence(axes, fields.up_confidence[0])
    )


def _latitude_confidence(fields: Fields, width: int) -> Image.Image:
    return _panel(
        "latitude confidence",
        fields,
        width,
        lambda axes: draw_confidence(axes, fields.latitude_confidence[0]),
    )


def _panel(title: str, fields: Fields, width: int, draw: Callable[[Axes], object]) -> Image.Image:
    """What is drawn of the fields over that width, under its title."""
    across, down = fields.size
    band, height = round(LINE * SMALL), max(1, round(width * down / across))
    figure, axes = blank((width, band + height))
    figure.text(
        0, 1 - 0.5 * band / (band + height), title, size=SMALL, color=GREY, family=FONT, va="center"
    )
    axes.set_position((0, 0, 1, height / (band + height)))
    draw(axes)
    return rendered(figure)


def _line(axes: Axes, x: float, y: float, text: str, size: float, **how: object) -> None:
    """A line of text in a band of ``LINE`` letters' height below y."""
    middle = np.array([x, y + 0.5 * LINE * size])
    style = {"ha": "left", "va": "center_baseline", "fontsize": size} | how
    write(axes, middle, _drawable(text), **style)


def _block(width: int, draw: Callable[[Axes], float]) -> Image.Image:
    """What is drawn over that width, cut off below the height that drawing it gives."""
    figure, axes = blank((width, LONGEST_SIDE // 2))
    height = draw(axes)
    return rendered(figure).crop((0, 0, width, math.ceil(height) + 1))


def _stacked(parts: Sequence[Image.Image], gap: int = GAP) -> Image.Image:
    height = sum(part.height for part in parts) + gap * (len(parts) - 1)
    card = Image.new("RGBA", (max(part.width for part in parts), height), PAPER)
    y = 0
    for part in parts:
        card.alpha_composite(part, (0, y))
        y += part.height + gap
    return card


def _beside(parts: Sequence[Image.Image], gap: int = GAP, margin: int = GAP) -> Image.Image:
    width = sum(part.width for part in parts) + gap * (len(parts) - 1) + 2 * margin
    height = max(part.height for part in parts) + 2 * margin
    card = Image.new("RGBA", (width, height), PAPER)
    x = margin
    for part in parts:
        card.alpha_composite(part, (x, margin))
        x += part.width + gap
    return card


def _pasted(
    width: int, height: int, photo: Image.Image, card: Image.Image, corner: tuple[int, int]
) -> Image.Image:
    whole = Image.new("RGB", (width, height), PAPER)
    whole.paste(photo, (0, 0))
    whole.paste(card.convert("RGB"), corner)
    return whole


def wrapped(text: str, size: float) -> list[str]:
    """Lines that fit into the column; a sigma stays with its sign."""
    text = text.replace("± ", "±\N{NO-BREAK SPACE}")
    return textwrap.wrap(text, int(COLUMN / (0.6 * size)), subsequent_indent="   ")


def _elided(text: str, length: int) -> str:
    """The text, without its middle if it is longer."""
    half = length // 2
    return text if len(text) <= length else f"{text[: half - 1]}…{text[-half:]}"


def _drawable(text: str) -> str:
    """The text with a box for each letter that the font does not have."""
    return "".join(letter if ord(letter) in _letters() else "□" for letter in text)


@functools.cache
def _letters() -> frozenset[int]:
    path = font_manager.findfont(FONT)
    return frozenset(font_manager.get_font(path).get_charmap())
