"""GeoCalib: from one photograph to its camera, with uncertainties.

The flow: image -> network -> fields -> fit -> calibration -> outputs. The names below are
imported when they are first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from geocalib.calibration import Calibration, Failure
    from geocalib.calibrator import Calibrator
    from geocalib.cameras import Camera
    from geocalib.crop import Crop
    from geocalib.errors import GeoCalibError
    from geocalib.fields import Fields, perspective_field
    from geocalib.horizon_curve import horizon
    from geocalib.published_api import GeoCalib
    from geocalib.solver import FitOptions, FitResult, Prior, Rig, Status
    from geocalib.solver.fit import fit

__all__ = [
    "Calibration",
    "Calibrator",
    "Camera",
    "Crop",
    "Failure",
    "Fields",
    "FitOptions",
    "FitResult",
    "GeoCalib",
    "GeoCalibError",
    "Prior",
    "Rig",
    "Status",
    "fit",
    "horizon",
    "perspective_field",
]

_HOMES = {
    "Calibration": "geocalib.calibration",
    "Calibrator": "geocalib.calibrator",
    "Camera": "geocalib.cameras",
    "Crop": "geocalib.crop",
    "Failure": "geocalib.calibration",
    "Fields": "geocalib.fields",
    "GeoCalib": "geocalib.published_api",
    "GeoCalibError": "geocalib.errors",
    "horizon": "geocalib.horizon_curve",
    "perspective_field": "geocalib.fields",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES.get(name, "geocalib.solver")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
