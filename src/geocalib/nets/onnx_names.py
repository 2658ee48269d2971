"""What a network's ONNX file calls its parts.

Its card is in the metadata, where the SHA-256 is that of the weights it was made from. Nothing here
needs torch: a program that runs the file reads the rest out of it.
"""

from __future__ import annotations

SUFFIX = ".onnx"

IMAGE = "image"
"""(B, 3, H, W) RGB in [0, 1], H and W whole multiples."""

FIELDS = ("up", "latitude", "up_confidence", "latitude_confidence")
"""As in ``geocalib.nets.prediction.Prediction``."""

WANTED = "fields"
"""A boolean, true where it is not given: whether the fields are to be computed. Else they are
empty, and how the images stand is known sooner. Only where that is an output."""

QUARTER_TURN = "standing"
"""(B, 4) log-probabilities that the images stand turned by 0 to 3 quarters. Only where a
classifier was fitted to the weights."""

LOGITS = "logits"
"""(B, 4, 256) of ``geocalib.nets.direct.Binned``: what a network answers that sees no fields."""

MULTIPLE_KEY = "multiple"
"""In the metadata: H and W are whole multiples of this."""
