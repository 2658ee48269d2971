"""Lenses of every model. Without torch, for tests that start a process."""

from __future__ import annotations

from geocalib.cameras import MODELS

PARAMETERS: dict[str, list[tuple[float, ...]]] = {
    "pinhole": [()],
    "simple_radial": [(-0.12,), (0.15,), (0.0,)],
    "radial": [(-0.3, 0.1), (0.2, -0.05), (-0.1, -0.02), (0.0, 0.0)],
    "radial3": [(-0.3, 0.1, -0.02), (0.2, -0.05, 0.01), (-0.2, 0.1, 0.0), (0.0,) * 3],
    "radial4": [(-0.3, 0.1, -0.02, 0.003), (0.1, 0.05, -0.04, -0.01), (0.0,) * 4],
    "ptlens": [(0.05, -0.25, 0.04), (-0.04, 0.1, -0.02), (-0.1, 0.0, 0.05), (0.0,) * 3],
    "division": [(-0.25,), (0.2,), (0.0,)],
    "division2": [(-0.25, 0.02), (0.2, -0.03), (-0.1, -0.05), (0.2, 0.01), (0.0, 0.0)],
    "kannala_brandt": [(0.05, -0.01, 0.002, -0.0003), (-0.03, 0.004, -0.001, 0.0), (0.0,) * 4],
    "ucm": [(0.6,), (0.4,), (0.5,)],
    "eucm": [(0.6, 1.1), (0.4, 0.8), (0.5, 1.0)],
    "double_sphere": [(-0.2, 0.55), (0.3, 0.4), (0.1, 0.65), (-0.2, 0.5)],
}
"""Ordinary distortion of each model, of both signs. A new model adds its line here."""

ALL_MODELS = sorted(MODELS)
