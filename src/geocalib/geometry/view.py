"""Windows of pictures: where in an original lies what a network sees of it."""

from __future__ import annotations

from geocalib.cameras.camera import Camera
from geocalib.records import dataclass


@dataclass(frozen=True)
class View:
    """A window of the original image, in its pixels."""

    left: float
    top: float
    width: float
    height: float

    def to_original(self, camera: Camera, size: tuple[int, int]) -> Camera:
        """The cameras of whole originals of (width, height), given those of inputs."""
        return camera.resize(self.width, self.height).crop(-self.left, -self.top, *size)

    def to_input(self, camera: Camera, size: tuple[int, int]) -> Camera:
        """The cameras of inputs of (width, height), given those of whole originals."""
        return camera.crop(self.left, self.top, self.width, self.height).resize(*size)
