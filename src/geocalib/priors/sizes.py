"""Sizes of sensors, as their makers state them: for EXIF data with a focal length and no scale.

Cameras with one sensor only, under the names that they write into EXIF as their model. Phones with
several lenses have several sensors and are not here; they write 35 mm equivalents anyway.
"""

from __future__ import annotations

import math

FULL = (36.0, 24.0)
ONE_INCH = (13.2, 8.8)
FOUR_THIRDS = (17.3, 13.0)
COMPACT = (7.44, 5.58)
"""Width and height of a 1/1.7 inch sensor, millimetres."""
SMALL = (6.17, 4.55)
"""Width and height of a 1/2.3 inch sensor, millimetres."""

SHAPE = 0.02
"""Relative: shapes that differ by less are one, as sides are rounded."""

SENSORS: dict[str, tuple[float, float]] = {
    "Canon EOS 5D": (35.8, 23.9),
    "Canon EOS 5D Mark II": FULL,
    "Canon EOS 5D Mark III": FULL,
    "Canon EOS 5D Mark IV": FULL,
    "Canon EOS 6D": (35.8, 23.9),
    "Canon EOS R": FULL,
    "Canon EOS R5": FULL,
    "Canon EOS 7D": (22.3, 14.9),
    "Canon EOS 10D": (22.7, 15.1),
    "Canon EOS 20D": (22.5, 15.0),
    "Canon EOS 30D": (22.5, 15.0),
    "Canon EOS 40D": (22.2, 14.8),
    "Canon EOS 60D": (22.3, 14.9),
    "Canon EOS 70D": (22.5, 15.0),
    "Canon EOS 350D DIGITAL": (22.2, 14.8),
    "Canon EOS 400D DIGITAL": (22.2, 14.8),
    "Canon EOS 450D": (22.2, 14.8),
    "Canon EOS 500D": (22.3, 14.9),
    "Canon EOS 550D": (22.3, 14.9),
    "Canon EOS 600D": (22.3, 14.9),
    "Canon PowerShot G10": COMPACT,
    "Canon PowerShot G12": COMPACT,
    "Canon PowerShot S90": COMPACT,
    "Canon PowerShot S95": COMPACT,
    "NIKON D40": (23.7, 15.6),
    "NIKON D70": (23.7, 15.6),
    "NIKON D80": (23.6, 15.8),
    "NIKON D90": (23.6, 15.8),
    "NIKON D200": (23.6, 15.8),
    "NIKON D300": (23.6, 15.8),
    "NIKON D600": (35.9, 24.0),
    "NIKON D700": (36.0, 23.9),
    "NIKON D750": (35.9, 24.0),
    "NIKON D800": (35.9, 24.0),
    "NIKON D810": (35.9, 24.0),
    "NIKON D850": (35.9, 23.9),
    "NIKON D3100": (23.1, 15.4),
    "NIKON D3200": (23.2, 15.4),
    "NIKON D5100": (23.6, 15.6),
    "NIKON D5300": (23.5, 15.6),
    "NIKON D7000": (23.6, 15.6),
    "NIKON D7100": (23.5, 15.6),
    "ILCE-6000": (23.5, 15.6),
    "ILCE-7": (35.8, 23.9),
    "ILCE-7M3": (35.6, 23.8),
    "DSC-RX100": ONE_INCH,
    "X-T2": (23.6, 15.6),
    "FinePix X100": (23.6, 15.8),
    "E-M1": FOUR_THIRDS,
    "E-M5": FOUR_THIRDS,
    "DMC-GH4": FOUR_THIRDS,
    "FC300X": SMALL,
    "FC330": SMALL,
    "FC220": SMALL,
    "FC6310": ONE_INCH,
    "L1D-20c": ONE_INCH,
    "iPhone 4": (4.54, 3.42),
    "iPhone 4S": (4.54, 3.42),
    "iPhone 5": (4.54, 3.42),
}
"""Width and height in millimetres by EXIF model."""


def sensor_size(model: object) -> tuple[float, float] | None:
    """Width and height in millimetres of the sensor of an EXIF model; None if it is not known.

    >>> sensor_size("NIKON D90  ")
    (23.6, 15.8)
    """
    if not isinstance(model, str):
        return None
    return SENSORS.get(" ".join(model.strip("\0 ").split()))


def diagonal_of_sensor(size: tuple[int, int], aspect: float) -> float:
    """Pixels: the diagonal of the smallest picture of that shape, longer by shorter side, that
    holds one of (width, height), lying or standing.

    >>> diagonal_of_sensor((1600, 900), 4 / 3)
    2000.0
    """
    longer, shorter = max(size), min(size)
    if abs(math.log(longer / shorter / aspect)) < SHAPE:
        return math.hypot(longer, shorter)
    return math.hypot(1, aspect) * max(longer / aspect, shorter)
