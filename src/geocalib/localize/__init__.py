"""Where a photo was taken: its pose from 2D-3D matches, with the help of gravity."""

from geocalib.localize.estimate import localize
from geocalib.localize.options import LocalizeOptions
from geocalib.localize.pose import GravityPrior, Pose, PoseStatus
from geocalib.localize.world import world_gravity

__all__ = [
    "GravityPrior",
    "LocalizeOptions",
    "Pose",
    "PoseStatus",
    "localize",
    "world_gravity",
]
