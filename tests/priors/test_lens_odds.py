"""How probable kinds of lenses are, by what files and pictures say before they are looked at."""

from __future__ import annotations

import pytest
from PIL.ExifTags import Base

from geocalib.imaging.content import Circle
from geocalib.imaging.metadata import Metadata
from geocalib.priors.lens import odds_of_lenses

CIRCLE = Circle((240.0, 180.0), 170.0)


def of(make: str = "", model: str = "", lens: str = "") -> Metadata:
    return Metadata(tags={Base.Make: make, Base.Model: model, Base.LensModel: lens})


@pytest.mark.parametrize(
    "names",
    [
        ("Canon", "Canon EOS R5", "EF8-15mm f/4L FISHEYE USM"),
        ("NIKON CORPORATION", "NIKON D850", "AF-S Fish-Eye-Nikkor 8-15mm f/3.5-4.5E ED"),
        ("SONY", "ILCE-7M3", "Samyang 8mm F2.8 Fisheye II"),
    ],
)
def test_a_fisheye_is_one_by_its_name(names: tuple[str, str, str]) -> None:
    odds = odds_of_lenses([(of(*names), None)])
    assert odds is not None
    assert odds[2] > 0.8


@pytest.mark.parametrize(
    "names",
    [
        ("GoPro", "HERO9 Black"),
        ("Insta360", "Insta360 ONE RS"),
        ("DJI", "Osmo Action 3"),
        ("DJI", "OsmoAction4"),
        ("SJCAM", "SJ8 Pro"),
        ("YI", "YI 4K Action Camera"),
        ("SONY", "HDR-AS300"),
        ("SONY", "FDR-X3000"),
        ("Garmin", "VIRB Ultra 30"),
    ],
)
def test_action_cameras_have_any_lens(names: tuple[str, str]) -> None:
    odds = odds_of_lenses([(of(*names), None)])
    assert odds is not None
    assert min(odds) > 0.1
    assert odds[2] == max(odds)


@pytest.mark.parametrize(
    "names",
    [
        ("Apple", "iPhone 15 Pro", "iPhone 15 Pro back triple camera 2.22mm f/2.2"),
        ("samsung", "SM-G991B", "Samsung Ultra Wide"),
        ("LGE", "LG-H870", ""),
    ],
)
def test_phones_straighten_their_ultra_wide_lenses(names: tuple[str, str, str]) -> None:
    odds = odds_of_lenses([(of(*names), None)])
    assert odds is not None
    assert odds[0] >= 0.9
    assert odds[2] <= 0.001


@pytest.mark.parametrize(
    "names",
    [
        (),
        ("Canon", "Canon EOS 5D", "EF16-35mm f/2.8L USM"),
        ("SONY", "ILCE-7M3", "FE 24-105mm F4 G OSS"),
        ("FUJIFILM", "X-T3", "XF10-24mmF4 R OIS"),
    ],
)
def test_other_names_tell_nothing(names: tuple[str, ...]) -> None:
    assert odds_of_lenses([(of(*names), None)]) is None


def test_a_circle_tells_more_than_a_name() -> None:
    odds = odds_of_lenses([(of("Apple", "iPhone 8"), CIRCLE)])
    assert odds is not None
    assert odds[2] > 0.9


def test_one_picture_of_a_camera_tells_for_all() -> None:
    alone = odds_of_lenses([(of("GoPro", "HERO9 Black"), None)])
    assert odds_of_lenses([(of(), None), (of("GoPro", "HERO9 Black"), None)]) == alone
