"""Equirectangular panoramas, and the pictures that cameras would take within them.

A panorama's frame has x right, y down and z ahead, where its middle column looks; its top row looks
along -y, and longitude grows to the right. It is level where y is down in the world. Pixel centres
lie at half-integers, as everywhere.
"""

from __future__ import annotations

import math

import cv2
import numpy as np
import numpy.typing as npt

from geocalib.arrays import Array, namespace, unstack
from geocalib.cameras.camera import Camera
from geocalib.errors import PanoramaError
from geocalib.geometry.fields import pixel_grid
from geocalib.imaging.content import PANORAMA_ASPECT
from geocalib.imaging.read import ImageSource, Photo, read_photo

Pixels = npt.NDArray[np.uint8]


def read_panorama(source: ImageSource) -> Photo:
    """All pixels of a picture that may be a panorama: one twice as wide as high."""
    photo = read_photo(source, None)
    width, height = photo.size
    if abs(width / height - 2) > PANORAMA_ASPECT:
        raise PanoramaError(
            f"{photo.name} is {width}x{height} pixels; an equirectangular panorama is twice as "
            "wide as high"
        )
    return photo


def place_of(rays: Array) -> tuple[Array, Array]:
    """Where rays (..., 3) of any length in a panorama's frame meet it, from 0 to 1 across and
    down, each (...)."""
    xp = namespace(rays)
    x, y, z = unstack(rays)
    longitude = xp.atan2(x, z)
    latitude = xp.atan2(-y, xp.sqrt(x * x + z * z))
    return longitude / (2 * math.pi) + 0.5, 0.5 - latitude / math.pi


def shrunk(pixels: Pixels, focal: float) -> Pixels:
    """A panorama (H, W, 3) with pixels no finer than those on the axis of a pinhole camera with
    that focal length, so that its pictures can be read off between them."""
    height, width = pixels.shape[:2]
    wanted = math.ceil(2 * math.pi * focal)
    if wanted >= width:
        return pixels
    size = (wanted, max(1, round(wanted * height / width)))
    return np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), np.uint8)


def cut(pixels: Pixels, camera: Camera, panorama_from_camera: Array) -> Pixels:
    """(h, w, 3) the picture that a camera, a batch of 1, takes within a panorama (H, W, 3).

    panorama_from_camera: (3, 3) rotation to the panorama's frame. Pixels outside the camera's
    domain are black.
    """
    width, height = (round(side) for side in camera.size[0].tolist())
    rays, valid = camera.unproject(pixel_grid(width, height, like=camera.f)[None])
    u, v = place_of(rays[0] @ np.asarray(panorama_from_camera).T)
    # Around the sphere the columns go on; at the poles the rows end.
    around = np.concatenate([pixels[:, -1:], pixels, pixels[:, :1]], axis=1)
    x = u * pixels.shape[1] + 0.5
    y = (v * pixels.shape[0] - 0.5).clip(0, pixels.shape[0] - 1)
    picture = cv2.remap(
        around,
        x.astype(np.float32),
        y.astype(np.float32),
        cv2.INTER_LINEAR,
        borderMode=cv2.BORDER_REPLICATE,
    )
    return np.where(valid[0][..., None], picture, 0).astype(np.uint8)
