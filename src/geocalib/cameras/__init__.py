"""Camera models behind one protocol. Nothing here knows of fields, solvers or images."""

from geocalib.cameras.base import CameraModel, DepthJet, Limits
from geocalib.cameras.camera import Camera
from geocalib.cameras.registry import MODELS, get_model

__all__ = ["MODELS", "Camera", "CameraModel", "DepthJet", "Limits", "get_model"]
