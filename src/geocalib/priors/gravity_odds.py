"""Which of sensor and picture is the likelier right about gravity, where they differ.

Sensors of pictures that nobody has touched are not wrong. Pictures are lost now and then:
of phones' photographs one in fourteen, and nearly every other of those that look steeply up or
down, where nothing says that a table is no wall. So the angle between the two comes from a normal
distribution as wide as both sigmas, or from a wide one of pictures that are lost; or from anywhere,
of sensors that speak of another picture than this: one turned by a program, which left the notes of
the camera as they were. ``lab/benchmarks/sensors.py`` fits all of it.
"""

from __future__ import annotations

import math

import numpy as np

from geocalib.geometry import gravity as sphere
from geocalib.priors.gravity_reading import GravityReading
from geocalib.records import dataclass
from geocalib.result.calibration import Calibration

SPREAD = 1.5
"""Of pictures that are not lost: their errors, in their sigmas."""
STEEP_DEG = 30.0
"""Pitch by the sensor beyond which a picture looks steeply up or down."""
LOST_LEVEL, LOST_STEEP = (0.07, 8.0), (0.45, 26.0)
"""Share of the pictures that are lost, and half of how far in the mean, degrees."""
WRONG_IF_EDITED = 0.1
"""Share of sensors that speak of another picture, of those that a program may have written. Of some
nine hundred photographs that none has, not one."""
LEAST_WEIGHT = 0.01
"""Of a picture, which may still be the only one to tell of the lens."""
SPHERE = 4 * math.pi * math.degrees(1) ** 2
"""Square degrees."""


@dataclass(frozen=True)
class Odds:
    """Densities, per square degree, of what sensor and picture say, by what may be the case."""

    both_right: float
    picture_lost: float
    sensor_wrong: float

    @classmethod
    def create(cls, said: GravityReading, alone: Calibration) -> Odds:
        """Of a sensor, and of the calibration that the picture gives without it."""
        down = np.array(said.gravity)
        basis = sphere.tangent_basis(alone.gravity)
        apart = np.rad2deg(sphere.difference(alone.gravity, down, basis))
        picture = np.rad2deg(np.rad2deg(alone.covariance[:2, :2]))
        covariance = SPREAD**2 * picture + said.sigma_deg**2 * np.eye(2)
        steep = abs(said.gravity[2]) > math.sin(math.radians(STEEP_DEG))
        share, half = LOST_STEEP if steep else LOST_LEVEL
        wrong = WRONG_IF_EDITED if said.edited else 0.0
        squared = float(apart @ np.linalg.solve(covariance, apart))
        normal = math.exp(-0.5 * squared) / (2 * math.pi * math.sqrt(np.linalg.det(covariance)))
        scale = math.hypot(half, said.sigma_deg)
        wide = math.exp(-math.hypot(*apart) / scale) / (2 * math.pi * scale**2)
        return cls((1 - wrong) * (1 - share) * normal, (1 - wrong) * share * wide, wrong / SPHERE)

    @property
    def sensor_believed(self) -> bool:
        """Whether the sensor is likelier right than wrong."""
        return self.both_right + self.picture_lost >= self.sensor_wrong

    @property
    def picture_lost_likelier(self) -> bool:
        """Whether the sensor is believed, and the picture not."""
        return self.sensor_believed and self.picture_weight < 0.5

    @property
    def picture_weight(self) -> float:
        """How much the picture weighs beside the sensor, 0 to 1: the probability that it is not
        lost, where the sensor is right."""
        right = self.both_right + self.picture_lost
        return max(LEAST_WEIGHT, self.both_right / right) if right > 0 else LEAST_WEIGHT
