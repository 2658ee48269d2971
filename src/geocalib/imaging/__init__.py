"""From a file to the network's input, with bookkeeping; and pictures warped to other cameras.

``geocalib.imaging.warp`` needs OpenCV and is imported by its own name.
"""

from geocalib.imaging.metadata import Metadata
from geocalib.imaging.prepare import PUBLISHED, InputSpec, NetworkInput, prepare
from geocalib.imaging.read import ImageSource, Photo, is_blank, read_photo, read_size

__all__ = [
    "PUBLISHED",
    "ImageSource",
    "InputSpec",
    "Metadata",
    "NetworkInput",
    "Photo",
    "is_blank",
    "prepare",
    "read_photo",
    "read_size",
]
