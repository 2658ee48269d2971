"""Focal lengths from EXIF, as cameras write it and as nobody should."""

from __future__ import annotations

import io
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from PIL.ExifTags import IFD, Base
from PIL.TiffImagePlugin import IFDRational

from geocalib.imaging.metadata import read_tags
from geocalib.priors.exif import LENS_SIGMA, MAKERS_SIGMA, ROUNDED, FocalReading, focal_reading

FULL_FRAME = {  # 50 mm on 36 mm x 24 mm, photographed to 6000 x 4000 pixels.
    Base.FocalLength: IFDRational(50, 1),
    Base.FocalPlaneXResolution: 6000 / 3.6,
    Base.FocalPlaneResolutionUnit: 3,
    Base.ExifImageWidth: 6000,
    Base.ExifImageHeight: 4000,
}
TRUE_FOCAL = 6000 * 50 / 36


def jpeg(tags: dict[int, object], size: tuple[int, int] = (60, 40)) -> Image.Image:
    """An image that went through a file with these EXIF tags."""
    exif = Image.Exif()
    exif.get_ifd(IFD.Exif).update(tags)
    file = io.BytesIO()
    Image.new("RGB", size).save(file, "JPEG", exif=exif)
    image = Image.open(file)
    image.load()
    return image


def only_hint(tags: dict[int, object], size: tuple[int, int]) -> FocalReading:
    hint, notes = focal_reading(tags, size)
    assert hint is not None
    assert notes == ()
    return hint


@pytest.mark.parametrize("size", [(6000, 4000), (4000, 6000)])
def test_a_35_mm_equivalent_counts_by_the_diagonal(size: tuple[int, int]) -> None:
    hint = only_hint({Base.FocalLengthIn35mmFilm: 50}, size)
    assert hint.focal_px == pytest.approx(TRUE_FOCAL)
    assert hint.relative == pytest.approx(math.hypot(LENS_SIGMA, MAKERS_SIGMA, ROUNDED / 50))
    assert hint.source == "50 mm"


def test_a_phone() -> None:
    # 26 mm equivalent on 4:3: the diagonal view is 2 atan(43.27 / 52) = 79.5 degrees.
    hint = only_hint({Base.FocalLengthIn35mmFilm: 26}, (4032, 3024))
    assert math.degrees(2 * math.atan(2520 / hint.focal_px)) == pytest.approx(79.5, abs=0.1)


@pytest.mark.parametrize(("unit", "millimetres"), [(2, 25.4), (3, 10), (4, 1), (5, 0.001)])
def test_units_of_the_focal_plane(unit: int, millimetres: float) -> None:
    tags = {
        **FULL_FRAME,
        Base.FocalPlaneResolutionUnit: unit,
        Base.FocalPlaneXResolution: 6000 / 36 * millimetres,
    }
    hint = only_hint(tags, (6000, 4000))
    assert hint.focal_px == pytest.approx(TRUE_FOCAL)
    assert hint.relative == pytest.approx(math.hypot(LENS_SIGMA, ROUNDED / 50))


def test_a_unit_that_is_not_stated_is_an_inch() -> None:
    tags = {**FULL_FRAME, Base.FocalPlaneXResolution: 6000 / 36 * 25.4}
    del tags[Base.FocalPlaneResolutionUnit]
    assert only_hint(tags, (6000, 4000)).focal_px == pytest.approx(TRUE_FOCAL)


@pytest.mark.parametrize("size", [(1500, 1000), (1000, 1500), (600, 401)])
def test_a_resized_image_keeps_its_field_of_view(size: tuple[int, int]) -> None:
    hint = only_hint(FULL_FRAME, size)
    assert hint.focal_px == pytest.approx(TRUE_FOCAL * max(size) / 6000, rel=0.002)


def test_through_a_file() -> None:
    _, tags, notes = read_tags(jpeg(dict(FULL_FRAME)))
    assert notes == ()
    assert only_hint(tags, (60, 40)).focal_px == pytest.approx(TRUE_FOCAL / 100)


def test_the_focal_plane_is_preferred_where_both_agree() -> None:
    hint = only_hint({**FULL_FRAME, Base.FocalLengthIn35mmFilm: 51}, (6000, 4000))
    assert hint.focal_px == pytest.approx(TRUE_FOCAL)


def test_the_equivalent_is_preferred_where_they_contradict_each_other() -> None:
    hint = only_hint({**FULL_FRAME, Base.FocalLengthIn35mmFilm: 75}, (6000, 4000))
    assert hint.focal_px == pytest.approx(1.5 * TRUE_FOCAL)


def test_a_rounded_millimetre_matters_where_lenses_are_short() -> None:
    sigmas = [only_hint({Base.FocalLengthIn35mmFilm: f}, (4032, 3024)).relative for f in (13, 70)]
    assert sigmas[0] > 0.038 > 0.033 > sigmas[1]
    # A phone that writes 4 mm, and 26 of an equivalent, is known by the equivalent.
    phone = {Base.Model: "iPhone 5", Base.FocalLength: 4, Base.FocalLengthIn35mmFilm: 30}
    assert only_hint(phone, (3264, 2448)).source == "30 mm"
    assert "sensor" in only_hint(phone | {Base.FocalLength: 4.1}, (3264, 2448)).source


@pytest.mark.parametrize("size", [(1920, 1080), (1080, 1920), (1000, 1000)])
def test_a_picture_of_no_sensors_shape_may_be_a_part_of_one(size: tuple[int, int]) -> None:
    """The equivalent is that of the picture, or that of the 4:3 sensor around it."""
    hint = only_hint({Base.FocalLengthIn35mmFilm: 32}, size)
    longer, shorter = max(size), min(size)
    whole = 1.25 * longer if longer > 4 / 3 * shorter else 5 / 3 * shorter
    for diagonal in (math.hypot(*size), whole):
        apart = abs(math.log(32 * diagonal / math.hypot(36, 24) / hint.focal_px))
        assert 0.5 < apart / hint.relative < 1


def test_a_digital_zoom_is_counted_in_by_apple_and_perhaps_by_others() -> None:
    zoomed = {Base.FocalLengthIn35mmFilm: 52, Base.DigitalZoomRatio: IFDRational(2, 1)}
    apple = only_hint(zoomed | {Base.Make: "Apple"}, (4032, 3024))
    assert apple == only_hint({Base.FocalLengthIn35mmFilm: 52}, (4032, 3024))
    other = only_hint(zoomed, (4032, 3024))
    assert other.focal_px == pytest.approx(math.sqrt(2) * apple.focal_px)
    assert other.relative == pytest.approx(math.hypot(apple.relative, 0.5 * math.log(2)))
    assert focal_reading(zoomed | {Base.DigitalZoomRatio: 4.0}, (4032, 3024)) == (None, ())


def test_a_digital_zoom_leaves_the_focal_plane_out() -> None:
    tags = {**FULL_FRAME, Base.DigitalZoomRatio: IFDRational(2, 1)}
    assert focal_reading(tags, (6000, 4000)) == (None, ())


@pytest.mark.parametrize("tag", [Base.FocalLength, Base.FocalPlaneXResolution, Base.ExifImageWidth])
def test_an_incomplete_focal_plane_says_nothing(tag: Base) -> None:
    tags = {key: value for key, value in FULL_FRAME.items() if key != tag}
    assert focal_reading(tags, (6000, 4000)) == (None, ())


def test_a_cropped_image_has_no_hint() -> None:
    hint, notes = focal_reading({**FULL_FRAME, Base.FocalLengthIn35mmFilm: 50}, (4000, 4000))
    assert hint is None
    assert "cropped" in notes[0]


@pytest.mark.parametrize("size", [(8000, 2400), (2400, 8000)])
def test_a_panorama_has_the_hint_of_its_parts(size: tuple[int, int]) -> None:
    hint, notes = focal_reading({Base.FocalLengthIn35mmFilm: 26}, size)
    assert hint is None
    assert "stitched" in notes[0]


def test_no_exif_is_no_news() -> None:
    orientation, tags, notes = read_tags(Image.new("RGB", (60, 40)))
    assert (orientation, tags, notes) == (1, {}, ())
    assert focal_reading(tags, (60, 40)) == (None, ())


@pytest.mark.parametrize(
    "bad", [0, -50, 1, 5000, math.nan, IFDRational(1, 0), b"\xff", "x", (1, 2)]
)
def test_an_absurd_equivalent_is_left_out_with_a_note(bad: object) -> None:
    hint, notes = focal_reading({Base.FocalLengthIn35mmFilm: bad}, (6000, 4000))
    assert hint is None
    assert notes == ("EXIF FocalLengthIn35mmFilm makes no sense and was ignored",)


@pytest.mark.parametrize("bad", [0, -50, IFDRational(0, 0), b"\xff", "x"])
@pytest.mark.parametrize("tag", [Base.FocalLength, Base.FocalPlaneXResolution])
def test_an_absurd_focal_plane_is_left_out_with_a_note(tag: Base, bad: object) -> None:
    hint, notes = focal_reading({**FULL_FRAME, tag: bad}, (6000, 4000))
    assert hint is None
    assert notes == ("EXIF FocalLength makes no sense and was ignored",)


def test_one_absurd_value_does_not_hide_the_other() -> None:
    hint, notes = focal_reading({**FULL_FRAME, Base.FocalLengthIn35mmFilm: 0}, (6000, 4000))
    assert hint is not None
    assert hint.focal_px == pytest.approx(TRUE_FOCAL)
    assert len(notes) == 1


VALUES = st.one_of(
    st.none(),
    st.integers(),
    st.floats(),
    st.binary(max_size=8),
    st.text(max_size=4),
    st.tuples(st.integers(0, 9), st.integers(0, 9)),
    st.builds(IFDRational, st.integers(-9, 9), st.integers(0, 9)),
)


@given(
    # From nonsense alone there is no hint.
    focal=st.integers(0, 400),
    tags=st.dictionaries(st.sampled_from([*FULL_FRAME, 0xA405, 0xA404]), VALUES),
)
def test_a_hint_is_plausible_whatever_the_tags(focal: int, tags: dict[int, object]) -> None:
    hint, _ = focal_reading({Base.FocalLengthIn35mmFilm: focal, **tags}, (640, 480))
    if hint is not None:
        vfov_deg = math.degrees(2 * math.atan(240 / hint.focal_px))
        assert 5 <= vfov_deg <= 150
        assert 0 < hint.sigma_px < hint.focal_px


@pytest.mark.filterwarnings("ignore")  # Pillow warns of some of them, as it may.
@given(data=st.binary(max_size=80), header=st.sampled_from([b"", b"II*\0\x08\0\0\0", b"MM\0*"]))
def test_garbage_never_raises(data: bytes, header: bytes) -> None:
    image = Image.new("RGB", (60, 40))
    image.info["exif"] = b"Exif\0\0" + header + data
    orientation, tags, _ = read_tags(image)
    assert orientation in range(1, 9)
    focal_reading(tags, (60, 40))


def test_damaged_exif_is_noted() -> None:
    image = Image.new("RGB", (60, 40))
    image.info["exif"] = b"Exif\0\0no TIFF at all"
    assert read_tags(image) == (1, {}, ("the EXIF data are damaged and were ignored",))


@pytest.mark.parametrize("orientation", [0, 9, -3, "6", b"", None])
def test_an_unknown_orientation_is_upright(orientation: object) -> None:
    image = Image.new("RGB", (60, 40))
    image.getexif()[Base.Orientation] = orientation
    assert read_tags(image)[0] == 1
