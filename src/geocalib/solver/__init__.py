"""From an observed perspective field to the camera that shows it."""

from geocalib.solver.coupling import Rig
from geocalib.solver.fit import fit
from geocalib.solver.options import FitOptions
from geocalib.solver.priors import Prior
from geocalib.solver.result import FitResult
from geocalib.solver.sigmas import Sigma
from geocalib.solver.status import Status

__all__ = ["FitOptions", "FitResult", "Prior", "Rig", "Sigma", "Status", "fit"]
