"""``GeoCalib`` where the published package has it."""

from geocalib.published_api import GeoCalib

__all__ = ["GeoCalib"]
