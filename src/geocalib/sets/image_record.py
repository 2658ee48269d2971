"""A picture as the joint fit of a set needs it, in memory and as a file of its own."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from geocalib.arrays import Array
from geocalib.errors import FormatError
from geocalib.geometry.segments import Curves, Segments
from geocalib.imaging.metadata import Metadata
from geocalib.priors.enabled import File
from geocalib.records import dataclass, named_tensors
from geocalib.solver.joint import Plane
from geocalib.solver.known import Mapping as PixelMapping
from geocalib.solver.observations import Observations

HEADER = "record"
"""Name of what is no tensor, as JSON, in a file's metadata."""


@dataclass(frozen=True)
class ImageRecord:
    """What the network, the detector of lines and the file tell of one picture."""

    file: File
    plane: Plane
    observations: Observations
    """The observations of one picture, in the plane of its camera."""
    down: Array | None
    """(3,) where to look for gravity first, where any side may be up."""
    notes: tuple[str, ...]
    segments: Segments | None

    def to_bytes(self) -> bytes:
        """A safetensors file, with all that is no tensor as JSON in its metadata."""
        from safetensors.numpy import save

        plane, segments, metadata = self.plane, self.segments, self.file.metadata
        tensors = {
            f"observations.{name}": value
            for name, value in named_tensors(self.observations).items()
        }
        tensors |= {
            "plane.scale": plane.mapping.scale,
            "plane.corner": plane.mapping.corner,
            "plane.size": plane.size,
            "plane.centre": plane.centre,
        }
        if self.down is not None:
            tensors["down"] = self.down
        if segments is not None:
            tensors["segments.ends"] = segments.ends
            tensors |= {
                f"curves.{name}": value for name, value in named_tensors(segments.curves).items()
            }
        header = {
            "path": self.file.path,
            "name": self.file.name,
            "size": self.file.size,
            "orientation": metadata.orientation,
            "tags": {str(tag): _plain(value) for tag, value in metadata.tags.items()},
            "xmp": None if metadata.xmp is None else metadata.xmp.decode("latin-1"),
            "held": metadata.held,
            "taken": metadata.taken,
            "damage": metadata.damage,
            "notes": self.notes,
            "noise": None if segments is None else segments.noise,
        }
        # Arrays may be views of one another, which the format does not know.
        own = {name: value.copy() for name, value in tensors.items()}
        return save(own, metadata={HEADER: json.dumps(header)})

    @classmethod
    def from_bytes(cls, data: bytes, source: str) -> ImageRecord:
        """The inverse; errors name the source."""
        from safetensors import SafetensorError
        from safetensors.numpy import load

        try:
            tensors = load(data)
            length = int.from_bytes(data[:8], "little")
            header = json.loads(json.loads(data[8 : 8 + length])["__metadata__"][HEADER])
            return cls._gathered(header, tensors)
        except (SafetensorError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise FormatError(f"{source} is damaged ({type(error).__name__})") from error

    @classmethod
    def _gathered(cls, header: Mapping[str, Any], tensors: Mapping[str, Array]) -> ImageRecord:
        tags = {int(tag): value for tag, value in header["tags"].items()}
        xmp = None if header["xmp"] is None else header["xmp"].encode("latin-1")
        width, height = header["size"]
        held = {name: tuple(numbers) for name, numbers in header["held"].items()}
        taken, damage = header["taken"], tuple(header["damage"])
        metadata = Metadata(header["orientation"], tags, xmp, held, taken, damage)
        mapping = PixelMapping(tensors["plane.scale"], tensors["plane.corner"])
        segments = None
        if header["noise"] is not None:
            curves = Curves(**_under("curves", tensors))
            segments = Segments(tensors["segments.ends"], header["noise"], curves)
        return cls(
            File(header["path"], header["name"], (width, height), metadata),
            Plane(mapping, tensors["plane.size"], tensors["plane.centre"]),
            Observations(**_under("observations", tensors)),
            tensors.get("down"),
            tuple(header["notes"]),
            segments,
        )


def _under(prefix: str, tensors: Mapping[str, Array]) -> dict[str, Array]:
    """Those whose names begin with a prefix and a dot, by the rest of their names."""
    parts = {name.partition(".")[::2]: value for name, value in tensors.items()}
    return {rest: value for (first, rest), value in parts.items() if first == prefix}


def _plain(value: Any) -> str | float:
    """An EXIF value as far as it is used: text, or a number, NaN if it is neither."""
    if isinstance(value, str):
        return value
    try:
        return float(value)
    except (TypeError, ValueError, ArithmeticError):
        return math.nan
