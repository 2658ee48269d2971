"""From an observed perspective field to the camera that shows it."""

from geocalib.solver.coupling import Rig
from geocalib.solver.fit import FitOptions, fit
from geocalib.solver.known import Prior
from geocalib.solver.result import FitResult, Sigma, Status

__all__ = ["FitOptions", "FitResult", "Prior", "Rig", "Sigma", "Status", "fit"]
