"""Rows of the paper's main table, whose methods have no code or weights here.

Of *GeoCalib: Learning Single-image Calibration with Geometric Optimization* (ECCV 2024), table 1,
on its four sets. A star: trained on the paper's panoramas. Quoted rows are marked with a dagger
wherever they are shown.
"""

from __future__ import annotations

from collections.abc import Mapping

from geocalib_lab.evaluation.metrics import THRESHOLDS

MARK = "†"

KINDS = ("roll", "pitch", "vfov")

_NO = float("nan")

_ROWS: dict[str, dict[str, tuple[float, ...]]] = {
    "stanford2d3d": {
        "DeepCalib*": (1.59, 33.8, 63.9, 79.2, 2.58, 21.6, 46.9, 65.7, 6.67, 8.1, 20.6, 37.6),
        "Perceptual": (2.08, 26.8, 53.8, 70.7, 3.17, 21.5, 41.8, 57.8, 13.84, 2.8, 7.7, 16.1),
        "CTRL-C": (3.04, 23.2, 43.0, 56.9, 3.43, 18.3, 38.6, 53.8, 8.5, 7.7, 18.2, 31.5),
        "MSCC": (3.43, 13.5, 36.8, 57.3, 2.64, 22.6, 45.0, 60.5, 5.81, 9.6, 23.8, 41.6),
        "ParamNet": (2.52, 20.6, 48.5, 68.1, 2.78, 20.9, 44.2, 61.5, 7.79, 7.4, 18.0, 33.2),
        "ParamNet*": (1.14, 44.6, 73.9, 84.8, 1.94, 29.2, 56.7, 73.1, 9.01, 5.8, 14.3, 27.8),
        "SVA": (_NO, 21.7, 24.6, 25.8, _NO, 15.4, 19.9, 22.4, _NO, 6.2, 11.5, 15.2),
        "UVP": (0.52, 65.3, 74.6, 79.1, 0.95, 51.2, 63.0, 69.2, 3.65, 22.2, 39.5, 51.3),
        "GeoCalib*": (0.4, 83.1, 91.8, 94.8, 0.93, 52.3, 74.8, 84.6, 3.21, 17.4, 40.0, 59.4),
    },
    "tartanair": {
        "DeepCalib*": (1.95, 24.7, 55.4, 71.5, 3.27, 16.3, 38.8, 58.5, 8.07, 1.5, 8.8, 27.2),
        "Perceptual": (2.24, 23.2, 48.6, 66.7, 2.86, 23.5, 44.6, 61.5, 15.06, 5.1, 8.9, 17.1),
        "CTRL-C": (1.68, 32.8, 59.1, 74.1, 2.39, 24.6, 48.6, 65.2, 5.64, 10.7, 25.4, 43.5),
        "MSCC": (3.5, 15.0, 37.2, 57.7, 3.48, 18.8, 38.6, 54.3, 11.18, 4.4, 11.8, 23.0),
        "ParamNet": (2.33, 23.3, 51.4, 71.0, 2.87, 19.9, 43.8, 62.9, 6.04, 8.5, 22.5, 40.8),
        "ParamNet*": (1.63, 34.5, 59.2, 73.9, 3.05, 19.4, 42.0, 60.3, 8.21, 6.0, 16.8, 31.6),
        "SVA": (9.48, 32.4, 39.6, 44.1, 18.46, 21.2, 28.8, 34.5, 43.01, 8.8, 16.1, 21.6),
        "UVP": (0.89, 52.1, 64.8, 71.9, 2.48, 36.2, 48.8, 58.6, 9.15, 15.8, 25.8, 35.7),
        "GeoCalib*": (0.43, 71.3, 83.8, 89.8, 1.49, 38.2, 62.9, 76.6, 4.9, 14.1, 30.4, 47.6),
    },
    "megadepth2k": {
        "DeepCalib*": (1.41, 34.6, 65.4, 79.4, 5.19, 11.9, 27.8, 44.8, 11.14, 5.6, 12.1, 22.9),
        "Perceptual": (1.07, 47.9, 72.4, 83.2, 3.49, 19.8, 39.1, 54.2, 13.4, 2.9, 8.2, 16.8),
        "CTRL-C": (0.88, 54.5, 75.0, 84.2, 4.8, 16.6, 33.2, 46.5, 18.65, 2.0, 5.8, 12.8),
        "MSCC": (0.9, 53.1, 72.8, 82.1, 5.73, 19.0, 33.2, 44.3, 10.8, 6.0, 14.6, 26.2),
        "ParamNet": (1.46, 37.0, 66.4, 80.8, 3.53, 15.8, 37.3, 57.1, 10.98, 5.3, 12.8, 24.0),
        "ParamNet*": (1.17, 43.4, 70.7, 82.2, 3.99, 15.4, 34.5, 53.3, 11.01, 3.2, 10.1, 21.3),
        "SVA": (_NO, 31.9, 35.0, 36.2, _NO, 13.6, 20.6, 24.9, _NO, 9.4, 16.1, 21.1),
        "UVP": (0.51, 69.2, 81.6, 86.9, 4.59, 21.6, 36.2, 47.4, 10.92, 8.2, 18.7, 29.8),
        "GeoCalib*": (0.36, 82.6, 90.6, 94.0, 1.94, 32.4, 53.3, 67.5, 4.46, 13.6, 31.7, 48.2),
    },
    "lamar2k": {
        "DeepCalib*": (1.15, 44.1, 73.9, 84.8, 4.68, 10.8, 28.3, 49.8, 10.93, 0.7, 13.0, 24.0),
        "Perceptual": (1.29, 40.0, 68.9, 81.6, 2.83, 21.2, 44.7, 62.6, 17.78, 3.0, 5.3, 10.7),
        "CTRL-C": (1.2, 43.5, 70.9, 82.5, 1.94, 27.6, 54.7, 70.2, 5.64, 9.8, 24.6, 43.2),
        "MSCC": (1.44, 39.6, 60.7, 72.8, 3.02, 20.9, 41.8, 55.7, 14.78, 3.2, 8.3, 16.8),
        "ParamNet": (1.3, 38.7, 69.4, 82.8, 2.77, 19.0, 44.7, 65.7, 15.15, 1.8, 6.2, 13.2),
        "ParamNet*": (0.93, 51.7, 77.0, 86.0, 2.15, 27.0, 52.7, 70.2, 14.71, 2.8, 6.8, 14.3),
        "SVA": (_NO, 8.6, 9.2, 9.7, _NO, 3.4, 5.7, 7.0, _NO, 1.2, 2.7, 4.1),
        "UVP": (0.38, 72.7, 81.8, 85.7, 1.34, 42.3, 59.9, 69.4, 5.57, 15.6, 30.6, 43.5),
        "GeoCalib*": (0.28, 86.4, 92.5, 95.0, 0.87, 55.0, 76.9, 86.2, 3.03, 19.1, 41.5, 60.0),
    },
}
"""By set and method: of roll, pitch and vFoV the median in degrees (none: more than half failed)
and the AUC at 1, 5 and 10 degrees in percent."""


def quoted(name: str) -> list[tuple[str, Mapping[str, float]]]:
    """Label and summary, as ``metrics.summarise`` has it, of what the paper says of a set."""
    return [(f"{method} {MARK}", _summary(row)) for method, row in _ROWS.get(name, {}).items()]


def _summary(row: tuple[float, ...]) -> dict[str, float]:
    names = ["median", *(f"auc{threshold:g}" for threshold in THRESHOLDS)]
    keys = [f"{kind}_{name}" for kind in KINDS for name in names]
    return dict(zip(keys, row, strict=True))
