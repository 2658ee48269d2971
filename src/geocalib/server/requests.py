"""What clients may ask, as JSON: every key, its kind and its range."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    Base64Bytes,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    FiniteFloat,
    Tag,
    ValidationError,
    model_validator,
)

from geocalib.cameras.exchange import LONGEST_SIDE
from geocalib.geometry.drawn import MOST, SIGMA_DEG, DrawnLine, LineKind
from geocalib.geometry.ruler import Ruler, RulerKind
from geocalib.pipeline.options import CameraModelName, Format, LinesChoice, Options, Usual
from geocalib.server.limits import RefusedError
from geocalib.solver.known import Prior

Model = TypeVar("Model", bound=BaseModel)
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Numbers = tuple[FiniteFloat, ...]
Kind = Literal["photo", "overlay", "upright", "rectified", "undistorted"]
PictureFormat = Literal["jpeg", "png"]

LARGEST_GRID = 2048
"""Columns and rows of fields that a client sends."""


class Strict(BaseModel):
    """A body in which unknown keys are mistakes."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Soft(Strict):
    """A value that is roughly known."""

    value: FiniteFloat
    sigma: Positive


class SoftNumbers(Strict):
    """Several values that are known with a sigma."""

    value: Numbers
    sigma: Positive


HARD, SOFT = "a value", "with its sigma"


def _how_sure(value: Any) -> str:
    return SOFT if isinstance(value, dict | Strict) else HARD


Known = (
    Annotated[
        Annotated[FiniteFloat, Tag(HARD)] | Annotated[Soft, Tag(SOFT)], Discriminator(_how_sure)
    ]
    | None
)
KnownNumbers = (
    Annotated[
        Annotated[Numbers, Tag(HARD)] | Annotated[SoftNumbers, Tag(SOFT)], Discriminator(_how_sure)
    ]
    | None
)


class DrawnBody(Strict):
    """A line that a person drew on the photo: pixels of it as it is seen, and what it is in the
    world."""

    x0: FiniteFloat
    y0: FiniteFloat
    x1: FiniteFloat
    y1: FiniteFloat
    kind: LineKind = LineKind.UP
    to: int | None = Field(None, description="of a parallel: the number, from 1, of a line before")
    sigma_deg: Positive = Field(SIGMA_DEG, description="by which the edge misses its direction")

    @property
    def line(self) -> DrawnLine:
        """The drawn line as ``Options`` holds it."""
        ends = self.x0, self.y0, self.x1, self.y1
        return DrawnLine(*ends, self.kind.value, self.to, self.sigma_deg)


class RulerBody(Strict):
    """A known length on the photo: pixels of it as it is seen, and metres."""

    x0: FiniteFloat
    y0: FiniteFloat
    x1: FiniteFloat
    y1: FiniteFloat
    metres: Positive
    kind: RulerKind = RulerKind.GROUND

    @property
    def ruler(self) -> Ruler:
        """As ``Options`` holds it."""
        return Ruler(self.x0, self.y0, self.x1, self.y1, self.metres, self.kind.value)


class OptionsBody(Strict):
    """The camera to find, and what is known of it. A value alone is fixed; with a sigma it
    pulls. Everything is in pixels of the original photo and in degrees."""

    camera_model: CameraModelName = CameraModelName.AUTO
    focal: Known = Field(None, description="fy, pixels")
    vfov_deg: Known = Field(None, description="vertical field of view, in place of focal")
    roll_deg: Known = Field(None, description="with pitch_deg, unless it has a sigma")
    pitch_deg: Known = Field(None, description="with roll_deg, unless it has a sigma")
    gravity: KnownNumbers = Field(None, description="down in the camera frame; sigma in radians")
    distortion: KnownNumbers = Field(None, description="in the order of the camera model")
    principal_point: KnownNumbers = Field(None, description="cx and cy, pixels")
    exif: bool = Field(True, description="whether the file's focal length is a hint")
    sensors: bool = Field(True, description="whether gravity in the file is a hint")
    prior: Usual = Field(
        Usual.AUTO, description="which focal lengths are expected; none for crops and renderings"
    )
    shared: bool = Field(False, description="whether one camera took all images")
    lines: LinesChoice = LinesChoice.AUTO
    drawn: tuple[DrawnBody, ...] = Field(
        (), max_length=MOST, description="lines that a person drew on the one photo"
    )
    ruler: RulerBody | None = Field(None, description="a known length on the one photo")

    @property
    def body(self) -> OptionsBody:
        """These alone, of a request that holds more."""
        return OptionsBody(**{name: getattr(self, name) for name in OptionsBody.model_fields})

    @property
    def options(self) -> Options:
        """As everything else takes them."""
        return Options(
            self.camera_model.value,
            focal=_known(self.focal),
            vfov_deg=_known(self.vfov_deg),
            roll_deg=_known(self.roll_deg),
            pitch_deg=_known(self.pitch_deg),
            gravity=_known(self.gravity),
            distortion=_known(self.distortion),
            principal_point=_known(self.principal_point),
            exif=self.exif,
            sensors=self.sensors,
            prior=self.prior.value,
            shared_intrinsics=self.shared,
            lines=self.lines.value,
            drawn=[each.line for each in self.drawn],
            ruler=None if self.ruler is None else self.ruler.ruler,
        )


def _known(value: Any) -> Any:
    if isinstance(value, Soft | SoftNumbers):
        return Prior(_listed(value.value), value.sigma)
    return _listed(value)


def _listed(value: float | Numbers | None) -> float | Sequence[float] | None:
    return list(value) if isinstance(value, tuple) else value


class Encoded(Strict):
    """An image within JSON, in base64."""

    name: str = ""
    data: Base64Bytes


class CalibrateRequest(OptionsBody):
    """The body of ``POST /v1/calibrate`` as JSON."""

    images: tuple[Encoded, ...]


class SentFields(Strict):
    """What a network saw in one image, as ``GET /v1/fields/{id}?form=whole`` gives it. Arrays are
    the bytes of little-endian numbers in base64, by rows from the top."""

    width: int = Field(gt=0, le=LONGEST_SIDE, description="of the photo, pixels")
    height: int = Field(gt=0, le=LONGEST_SIDE)
    view: tuple[FiniteFloat, FiniteFloat, Positive, Positive] | None = Field(
        None, description="left, top, width and height of what was seen of it; None: all"
    )
    columns: int = Field(ge=2, le=LARGEST_GRID, description="of the arrays")
    rows: int = Field(ge=2, le=LARGEST_GRID)
    dtype: Literal["float16", "float32"] = "float16"
    up: Base64Bytes = Field(description="(2, rows, columns) x right and y down")
    latitude: Base64Bytes = Field(description="(rows, columns) radians")
    up_confidence: Base64Bytes = Field(description="(rows, columns)")
    latitude_confidence: Base64Bytes = Field(description="(rows, columns)")


class RefitRequest(OptionsBody):
    """``POST /v1/refit``: an answer's id, several, or the fields themselves."""

    id: str | None = None
    ids: tuple[str, ...] = ()
    fields: SentFields | None = None

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if (self.id is not None) + bool(self.ids) + (self.fields is not None) != 1:
            raise ValueError("give one of id, ids and fields")
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """The ids of the photos that are given."""
        return self.ids if self.id is None else (self.id,)


class RenderRequest(OptionsBody):
    """``POST /v1/render``, beside the photo: an answer's record, or its id and what is known, as
    ``POST /v1/refit`` takes it."""

    record: dict[str, Any] | None = None
    id: str | None = None
    kind: Kind = "overlay"
    format: PictureFormat = "jpeg"
    border: Literal["keep", "crop"] = Field("keep", description="crop cuts black borders off")

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if (self.id is None) == (self.record is None):
            raise ValueError("give either record or id")
        return self


class ExportRequest(Strict):
    """The body of ``POST /v1/export``."""

    records: tuple[dict[str, Any], ...] = Field(min_length=1)
    format: Format


def checked(model: type[Model], text: str | bytes) -> Model:
    """The request that a text holds; a refusal names the first key that is wrong."""
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        raise RefusedError(422, sentence_of(error)) from None


def sentence_of(error: ValidationError) -> str:
    """The first thing that is wrong, and where."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"] if part not in (HARD, SOFT))
    return f"{where}: {first['msg']}" if where else first["msg"]
