"""Camera models behind one protocol. Nothing here knows of fields, solvers or images."""

from geocalib.cameras.base import CameraModel, DepthJet, Limits
from geocalib.cameras.camera import Camera
from geocalib.cameras.exchange import (
    ColmapCamera,
    OpenCVCamera,
    from_colmap,
    from_opencv,
    to_colmap,
    to_opencv,
)
from geocalib.cameras.registry import MODELS, get_model

__all__ = [
    "MODELS",
    "Camera",
    "CameraModel",
    "ColmapCamera",
    "DepthJet",
    "Limits",
    "OpenCVCamera",
    "from_colmap",
    "from_opencv",
    "get_model",
    "to_colmap",
    "to_opencv",
]
