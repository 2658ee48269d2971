"""Straight lines as evidence: segments of the photo at full resolution, in the same estimate.

The network's answer is the prior; edges of buildings and furniture, which are vertical or level,
sharpen it where there are any (``docs/lines.md``).
"""
