"""GeoCalib: from one photograph to its camera, with uncertainties.

The flow: image -> network -> fields -> fit -> calibration -> outputs. The names below are
imported when they are first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from geocalib.cameras import Camera
    from geocalib.errors import GeoCalibError
    from geocalib.geometry.drawn import DrawnLine
    from geocalib.geometry.fields import Fields, perspective_field
    from geocalib.geometry.horizon import horizon
    from geocalib.geometry.ruler import Ruler
    from geocalib.pipeline.calibrator import Calibrator
    from geocalib.pipeline.options import Options
    from geocalib.priors.crop import Crop
    from geocalib.published_api import GeoCalib
    from geocalib.result.calibration import Calibration, Failure
    from geocalib.solver import FitOptions, FitResult, Prior, Rig, Status
    from geocalib.solver.fit import fit

__version__: str
"""The version of the installed package."""

__all__ = [
    "Calibration",
    "Calibrator",
    "Camera",
    "Crop",
    "DrawnLine",
    "Failure",
    "Fields",
    "FitOptions",
    "FitResult",
    "GeoCalib",
    "GeoCalibError",
    "Options",
    "Prior",
    "Rig",
    "Ruler",
    "Status",
    "fit",
    "horizon",
    "perspective_field",
]

_HOMES = {
    "Calibration": "geocalib.result.calibration",
    "Calibrator": "geocalib.pipeline.calibrator",
    "Camera": "geocalib.cameras",
    "Crop": "geocalib.priors.crop",
    "DrawnLine": "geocalib.geometry.drawn",
    "Failure": "geocalib.result.calibration",
    "Fields": "geocalib.geometry.fields",
    "GeoCalib": "geocalib.published_api",
    "GeoCalibError": "geocalib.errors",
    "Options": "geocalib.pipeline.options",
    "Ruler": "geocalib.geometry.ruler",
    "horizon": "geocalib.geometry.horizon",
    "perspective_field": "geocalib.geometry.fields",
}


if not TYPE_CHECKING:  # Type checkers know all names from above, and tell those that are misspelt.

    def __getattr__(name: str) -> object:
        if name not in (*__all__, "__version__"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import importlib
        import importlib.metadata

        if name == "__version__":
            value = importlib.metadata.version("geocalib")
        else:
            value = getattr(importlib.import_module(_HOMES.get(name, "geocalib.solver")), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """The names for users, and those that every module has."""
    return sorted({*__all__, "__version__", *(name for name in globals() if name[:2] == "__")})
