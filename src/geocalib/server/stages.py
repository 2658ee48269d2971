"""What is done with photos, here or in another process. They are called by their names there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from io import BytesIO

from PIL import Image

from geocalib.arrays import copied
from geocalib.errors import ImageError
from geocalib.formats.derived_tags import save_options
from geocalib.imaging import read_size
from geocalib.imaging.warp import Warped
from geocalib.overlay import overlay
from geocalib.pipeline.calibrator import Calibrator
from geocalib.pipeline.predict import NetworkOutput
from geocalib.pipeline.prepare import Prepared
from geocalib.result.calibration import Calibration, Failure, Outcome
from geocalib.server.limits import MEGA, ServerLimits
from geocalib.server.requests import Kind, OptionsBody, PictureFormat, RenderRequest
from geocalib.server.uploads import Upload

QUALITY = 92
"""The quality of written JPEG files."""
SHOWN_SIDE = 2048
"""Pixels of the longer side of a photo that is shown, at most."""

WARPS: dict[str, Callable[..., Warped]] = {
    "upright": Calibration.upright,
    "rectified": Calibration.rectify,
    "undistorted": Calibration.undistort,
}
"""Kinds of pictures that another camera takes."""


@dataclass(frozen=True)
class ServedAnswer:
    """What became of one image."""

    output: NetworkOutput | Failure
    outcome: Outcome | None
    """None where it is to be fitted together with others."""


def answers(
    calibrator: Calibrator, images: Sequence[Upload], body: OptionsBody, limits: ServerLimits
) -> list[ServedAnswer]:
    """All three stages of a few images with the same options."""
    options = body.options
    lines = options.lines != "off"
    prepared = [_prepared(calibrator, image, lines, limits) for image in images]
    seen = calibrator.predict(prepared, any_rotation=options.rotation)
    outputs = [_alone(output) for output in seen]
    if options.shared_intrinsics:
        return [ServedAnswer(output, None) for output in outputs]
    outcomes = calibrator.fit(outputs, options=options)
    return [ServedAnswer(*pair) for pair in zip(outputs, outcomes, strict=True)]


def picture(
    _: Calibrator,
    image: Upload,
    calibration: Calibration,
    wanted: RenderRequest,
    limits: ServerLimits,
) -> bytes:
    """The file of a picture."""
    if (failure := _refused(image, limits)) is not None:
        raise ImageError(failure.error)
    return rendered(image.data, calibration, wanted.kind, wanted.border, wanted.format)


def _alone(output: NetworkOutput | Failure) -> NetworkOutput | Failure:
    """With fields of its own: those of a whole batch would travel, and be kept, along with them."""
    if isinstance(output, Failure):
        return output
    return replace(output, fields=output.fields.map(copied))


def _prepared(
    calibrator: Calibrator, image: Upload, lines: bool, limits: ServerLimits
) -> Prepared | Failure:
    if (failure := _refused(image, limits)) is not None:
        return failure
    name = image.name or None
    found = calibrator.prepare(image.data, lines=lines)
    if isinstance(found, Failure):
        return replace(found, image=name)
    return replace(found, file=replace(found.file, path=name, name=name or "image"))


def _refused(image: Upload, limits: ServerLimits) -> Failure | None:
    """Why an image is not even decoded, if it is not."""
    name = image.name or None
    try:
        size = read_size(image.data)
    except ImageError as error:
        return Failure(name, None, None, str(error))
    if size[0] * size[1] <= limits.pixels:
        return None
    most = f"more than {limits.pixels / MEGA:g} megapixels; shrink it first"
    return Failure(name, *size, f"image is {size[0]}x{size[1]} pixels, {most}")


def rendered(
    photo: bytes, calibration: Calibration, kind: Kind, border: str, format: PictureFormat
) -> bytes:
    """The file of a picture."""
    name, tags = format.upper(), {}
    if kind in WARPS:
        warped = WARPS[kind](calibration, photo, border)
        picture, tags = warped.image, save_options(photo, warped.camera, name)
    else:
        draw = overlay if kind == "overlay" else upright_photo
        picture = draw(photo, calibration)
    content = BytesIO()
    picture.convert("RGB").save(content, name, quality=QUALITY, **tags)
    return content.getvalue()


def upright_photo(photo: bytes, calibration: Calibration) -> Image.Image:
    """The photo as it is seen, for browsers that cannot read its format."""
    from geocalib.overlay.photo import load

    width, height = calibration.width, calibration.height
    scale = min(1.0, SHOWN_SIDE / max(width, height))
    return load(photo, calibration, (max(1, round(scale * width)), max(1, round(scale * height))))
