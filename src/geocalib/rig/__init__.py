"""Cameras that are mounted together: how they are turned, and which photos each of them took."""

from geocalib.rig.description import RigCamera, RigDescription
from geocalib.rig.layouts import cube_faces, stereo_pair
from geocalib.rig.match import Shots, match_images
from geocalib.rig.read import read_rig

__all__ = [
    "RigCamera",
    "RigDescription",
    "Shots",
    "cube_faces",
    "match_images",
    "read_rig",
    "stereo_pair",
]
