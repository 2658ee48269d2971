"""What a sensor says of gravity: ``geocalib.priors.exif.FocalReading`` for the other half."""

from __future__ import annotations

from dataclasses import dataclass

from geocalib.priors.frames import Vector


@dataclass(frozen=True)
class GravityReading:
    """A direction of gravity, with what is known of its error."""

    gravity: Vector
    """Unit vector in the frame of the upright picture, pointing down."""
    sigma_deg: float
    """One sigma in each direction."""
    source: str
    """The instrument, and where its reading was found."""
