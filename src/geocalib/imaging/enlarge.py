"""Fields at the size of the image that they show."""

from __future__ import annotations

import torch
from torch.nn.functional import grid_sample, normalize

from geocalib.geometry.fields import Fields, pixel_grid
from geocalib.geometry.view import View


def enlarge(fields: Fields, view: View, size: tuple[int, int]) -> Fields:
    """The fields of a view of an original of (width, height), at every pixel of the original.

    Between the fields' pixels they are interpolated. What the view leaves out of the original has
    the values of the nearest pixel in it, and no confidence.
    """
    width, height = fields.size
    pixels = pixel_grid(*size, like=fields.up)
    corner = pixels.new_tensor([view.left, view.top])
    # From -1 at one side of the view to 1 at the other, as grid_sample counts.
    place = 2 * (pixels - corner) / pixels.new_tensor([view.width, view.height]) - 1
    inside = (place.abs() <= 1).all(-1).to(fields.up)
    confidences = torch.stack([fields.up_confidence, fields.latitude_confidence], 1)
    seen = grid_sample(
        torch.cat([fields.up, fields.latitude, confidences], 1),
        place.expand(len(fields), *place.shape),
        mode="bilinear",
        padding_mode="border",
        align_corners=False,
    )
    # A direction in pixels of the original, which need not be scaled alike along both axes.
    stretch = pixels.new_tensor([view.width / width, view.height / height])
    return Fields(
        up=normalize(seen[:, :2] * stretch[:, None, None], dim=1),
        latitude=seen[:, 2:3],
        up_confidence=seen[:, 3] * inside,
        latitude_confidence=seen[:, 4] * inside,
    )
