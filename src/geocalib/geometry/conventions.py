"""Axes, signs, pixel centres and units: stated here, once, and used everywhere.

Camera frame
    x right, y down, z forward.
Pixels
    The image spans [0, W] x [0, H]; the centre of the top-left pixel is (0.5, 0.5) and the
    default principal point is (W/2, H/2), as in COLMAP. (OpenCV counts from the centre of the
    first pixel instead: its principal point is ours minus 0.5.)
Intrinsics
    ``f`` is the vertical focal length in pixels, fx = aspect * f with a known, fixed aspect.
    A pixel (x, y) has normalised coordinates m = ((x - cx) / fx, (y - cy) / f).
Gravity
    A unit vector in the camera frame that points DOWN: (0, 1, 0) for a level camera.
Roll and pitch
    gravity = (sin(roll) cos(pitch), cos(roll) cos(pitch), -sin(pitch)).
    Pitch > 0 looks up: the horizon sinks below the image centre. Roll > 0 turns the camera
    clockwise as seen from behind it: the top of a pole leans left in the picture.
Latitude
    The angle of a pixel's ray above the horizontal plane, positive above the horizon:
    sin(latitude) = -ray . gravity for a unit ray.
Up
    The unit image direction, in pixels, in which a point moves when it goes up (along
    -gravity): (0, -1) everywhere for a level pinhole camera.
Field of view
    vFoV = 2 atan(H / (2 f)) for the perspective models (pinhole, simple_radial, radial, radial3,
    radial4, ptlens, division, division2); for the wide ones (kannala_brandt, ucm, eucm,
    double_sphere) the angle between the rays of the top and the bottom middle of the image. hFoV
    likewise with fx and W.
Units
    Radians, except where a name ends in ``_deg``.
"""

import math

FULL_FRAME_DIAGONAL = math.hypot(36.0, 24.0)
"""Millimetres: 35 mm equivalents are counted by the diagonal of the image."""

TRIVIAL_FOCAL = 0.7
"""The focal length a fit starts from, in units of the longer image side."""

VFOV_RANGE_DEG = (5.0, 150.0)
"""The vertical fields of view that a fit of a perspective model stays within, and that are
believed of a lens."""

HUBER_THRESHOLD = 0.01
"""Residual norm up to which the cost is quadratic; linear beyond."""
