"""GeoCalib: from one photograph to its camera, with uncertainties."""

from geocalib.cameras import Camera
from geocalib.fields import Fields, perspective_field

__all__ = ["Camera", "Fields", "perspective_field"]
