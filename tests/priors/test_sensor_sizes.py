"""The focal length that a known sensor gives."""

from __future__ import annotations

import math

import pytest
from PIL.ExifTags import Base

from geocalib.priors.exif import focal_reading
from geocalib.priors.sizes import SENSORS, sensor_size


@pytest.mark.parametrize("name", ["NIKON D90", "NIKON D90 \0", "  NIKON  D90"])
def test_models_are_found_as_cameras_write_them(name: str) -> None:
    assert sensor_size(name) == (23.6, 15.8)


@pytest.mark.parametrize("name", ["NIKON D9", "", None, 7, b"NIKON D90"])
def test_what_is_not_known_is_none(name: object) -> None:
    assert sensor_size(name) is None


def test_sensors_are_wide_and_of_ordinary_shapes() -> None:
    for name, (width, height) in SENSORS.items():
        assert 4 < width <= 36, name
        assert 1.3 <= width / height <= 1.6, name
        assert sensor_size(name) == (width, height), name


@pytest.mark.parametrize("size", [(3000, 2000), (2000, 3000)])
def test_a_focal_length_on_a_known_sensor(size: tuple[int, int]) -> None:
    tags = {Base.Model: "Canon EOS 5D Mark II", Base.FocalLength: 50}
    hint, notes = focal_reading(tags, size)
    assert hint is not None
    assert hint.focal_px == pytest.approx(3000 * 50 / 36)
    assert hint.sigma_px == pytest.approx(0.025 * hint.focal_px, rel=0.03)
    assert "sensor" in hint.source
    assert notes == ()


def test_a_picture_of_another_shape_keeps_the_width() -> None:
    # 16:9 of a 4:3 sensor is cut at top and bottom.
    hint, _ = focal_reading({Base.Model: "DMC-GH4", Base.FocalLength: 20}, (4608, 2592))
    assert hint is not None
    assert hint.focal_px == pytest.approx(4608 * 20 / 17.3)


def test_an_equivalent_that_agrees_yields_to_the_sensor_and_one_that_does_not_wins() -> None:
    tags = {Base.Model: "NIKON D90", Base.FocalLength: 35, Base.FocalLengthIn35mmFilm: 52}
    by_sensor, _ = focal_reading(tags, (4288, 2848))
    assert by_sensor is not None
    assert by_sensor.focal_px == pytest.approx(35 * 2848 / 15.8, rel=0.01)
    other, _ = focal_reading(tags | {Base.FocalLengthIn35mmFilm: 85}, (4288, 2848))
    assert other is not None
    assert other.focal_px == pytest.approx(85 * math.hypot(4288, 2848) / math.hypot(36, 24))


def test_a_digital_zoom_takes_a_part_of_the_sensor() -> None:
    tags = {Base.Model: "iPhone 5", Base.FocalLength: 4.1, Base.DigitalZoomRatio: 2.0}
    zoomed, _ = focal_reading(tags, (3264, 2448))
    assert zoomed is not None
    assert zoomed.focal_px == pytest.approx(2 * 4.1 * 3264 / 4.54)
