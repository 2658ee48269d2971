"""``Gravity`` where the published package has it: it points UP."""

from geocalib.published_api import PublishedGravity as Gravity

__all__ = ["Gravity"]
