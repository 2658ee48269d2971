"""The image plane of a camera, in which its portrait, landscape and resized pictures agree.

Its origin is the principal point and its unit the longer side of the picture. Turning a camera by
a quarter turns its gravity and swaps the sides of its pictures; the focal length in this unit and
a radial distortion stay what they are. So observations that are moved here can share a camera
whatever the size and the orientation of the fields they come from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from geocalib.arrays import Array, as_array, cast, clip, namespace, tiny, to_array
from geocalib.cameras.camera import Camera
from geocalib.records import dataclass
from geocalib.solver.given import Given, Mapping
from geocalib.solver.observations import Observations
from geocalib.solver.priors import Prior
from geocalib.solver.result import FitResult

SHAPE_TOLERANCE = 0.01
"""Relative difference of the sides' ratio that is more than the rounding of a resize."""


@dataclass(frozen=True)
class Plane:
    """Where the fields of B images lie in the planes of their cameras."""

    mapping: Mapping
    """From pixels of the originals to those of the fields."""
    size: Array
    """(B, 2) width and height of the originals, pixels."""
    centre: Array
    """(B, 2) principal point, pixels of the originals."""

    @classmethod
    def create(
        cls, mapping: Mapping, sizes: Sequence[tuple[int, int]], centre: Array | None = None
    ) -> Plane:
        """With the principal point at the centre, or where it is known to be (B, 2)."""
        size = as_array(sizes, mapping.scale).reshape(-1, 2)
        return cls(mapping, size, 0.5 * size if centre is None else centre)

    def __len__(self) -> int:
        return len(self.size)

    def __getitem__(self, index: Array | Sequence[int]) -> Plane:
        """Some of the images."""
        rows = to_array(index, namespace(self.size))
        mapping = Mapping(self.mapping.scale[rows], self.mapping.corner[rows])
        return Plane(mapping, self.size[rows], self.centre[rows])

    @classmethod
    def concatenate(cls, parts: Sequence[Plane]) -> Plane:
        xp = namespace(parts[0].size)
        return cls(
            Mapping(
                xp.concat([part.mapping.scale for part in parts]),
                xp.concat([part.mapping.corner for part in parts]),
            ),
            xp.concat([part.size for part in parts]),
            xp.concat([part.centre for part in parts]),
        )

    @property
    def unit(self) -> Array:
        """(B,) pixels of the originals."""
        return namespace(self.size).max(self.size, axis=1)

    @property
    def shape(self) -> Array:
        """(B, 2) longer and shorter side of the pictures in the plane: 1 and at most 1."""
        xp = namespace(self.size)
        return xp.flip(xp.sort(self.size, axis=1), axis=1) / self.unit[:, None]

    def place(self, observations: Observations) -> Observations:
        """Observations in pixels of the fields, moved to the plane."""
        o = observations.padded(observations.count)
        kind = o.up_x.dtype
        scale, unit = cast(self.mapping.scale, kind), cast(self.unit[:, None], kind)
        origin = cast(self.mapping.corner - self.centre, kind)
        x, y = o.up_x / scale[:, :1], o.up_y / scale[:, 1:]
        length = clip(namespace(x).hypot(x, y), tiny(x))
        return replace(
            o,
            at_x=(o.at_x / scale[:, :1] + origin[:, :1]) / unit,
            at_y=(o.at_y / scale[:, 1:] + origin[:, 1:]) / unit,
            up_x=x / length,
            up_y=y / length,
        )

    def known(self, given: Given) -> Given:
        """What is known in pixels of the originals, in the plane."""
        focal, unit = given.focal, self.unit[:, None]
        if isinstance(focal, Prior):
            focal = Prior(focal.value / unit, focal.sigma / unit)
        elif focal is not None:
            focal = focal / unit
        return replace(
            given, focal=focal, principal_point=namespace(self.centre).zeros_like(self.centre)
        )

    def originals(self, camera: Camera) -> Camera:
        """The cameras of the originals, with square pixels, given those of the plane."""
        size, centre, unit = (as_array(v, camera.f) for v in (self.size, self.centre, self.unit))
        square = namespace(unit).ones_like(unit)
        return Camera(camera.model, camera.f * unit, centre, camera.distortion, size, square)

    def to_fields(self, result: FitResult, sizes: Sequence[tuple[int, int]]) -> FitResult:
        """A fit in the plane as one in pixels of fields of these (width, height), whose principal
        point is fixed."""
        scale, corner = self.mapping.scale, self.mapping.corner
        camera = self.originals(result.camera)
        focal = as_array(scale[:, 1], camera.f)
        moved = Camera(
            camera.model,
            camera.f * focal,
            (camera.c - corner) * scale,
            camera.distortion,
            as_array(sizes, camera.f),
            as_array(self.mapping.aspect, camera.f),
        )
        return replace(result, camera=moved)


def alike(size: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether one camera can take pictures of both sizes: turned or resized, but not cropped."""
    ratio, wanted = max(size) / min(size), max(other) / min(other)
    return abs(ratio / wanted - 1) <= SHAPE_TOLERANCE
