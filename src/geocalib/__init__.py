"""GeoCalib: from one photograph to its camera, with uncertainties.

The flow: image -> network -> fields -> fit -> calibration -> outputs. Here so far: the geometry
(``cameras``, ``gravity``, ``fields``, ``horizon``) and the fit (``solver``).
"""

from geocalib.cameras import Camera
from geocalib.errors import GeoCalibError
from geocalib.fields import Fields, perspective_field
from geocalib.horizon import horizon
from geocalib.solver import FitOptions, FitResult, Prior, Rig, Status, fit

__all__ = [
    "Camera",
    "Fields",
    "FitOptions",
    "FitResult",
    "GeoCalibError",
    "Prior",
    "Rig",
    "Status",
    "fit",
    "horizon",
    "perspective_field",
]
