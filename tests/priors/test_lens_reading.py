"""Distortion by the names of body and lens, against Lensfun's own coordinates (lensfunpy)."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from PIL.ExifTags import IFD, Base

from geocalib.arrays import Array
from geocalib.cameras import Camera, get_model
from geocalib.cli import photo_info, prior_report
from geocalib.priors import lens_reading
from geocalib.priors.exif import focal_reading
from geocalib.priors.lens_database import database, sampled
from geocalib.priors.lens_reading import HELD, SIGMA, LensReading, find_lens
from oracle_network import knowing, picture, truth

lensfunpy = pytest.importorskip("lensfunpy", reason="no lensfunpy here")

SIZE = (4256, 2832)
"""12 megapixels."""
CANON = ("Canon", "Canon EOS 5D Mark II")
EF = "EF24-105mm f/4L IS USM"
DX = "AF-S DX Nikkor 18-105mm f/3.5-5.6G ED VR"

Tags = dict[int, Any]


def tags(
    lens: str = EF, millimetres: float = 24.0, body: tuple[str, str] = CANON, **more: Any
) -> Tags:
    known: Tags = {Base.Make: body[0], Base.Model: body[1], Base.LensModel: lens}
    return known | {Base.FocalLength: millimetres} | {Base[key]: more[key] for key in more}


def found(told: Tags, model: str, size: tuple[int, int] = SIZE) -> LensReading:
    hint, _ = focal_reading(told, size)
    assert hint is not None
    reading, why_not = find_lens(told, size, hint.focal_px, get_model(model))
    assert reading is not None, why_not
    return reading


def refused(told: Tags, size: tuple[int, int] = SIZE) -> str:
    reading, why_not = find_lens(told, size, 3000.0, get_model("radial"))
    assert reading is None
    assert why_not is not None
    return why_not


def lenses(*types: str) -> list[tuple[Any, float]]:
    """Every lens of some types that one polynomial describes, at its shortest focal length of which
    that is known."""
    return [
        (lens, lens.calib_distortion[0].focal)
        for lens in database().lenses
        if lens.type.name in types and len({each.model for each in lens.calib_distortion}) == 1
    ]


def spread(every: list[Any], count: int) -> list[Any]:
    """So many of them, at even steps."""
    return every[:: max(1, len(every) // count)][:count]


def of_kind(kind: str, count: int) -> list[tuple[Any, float]]:
    """So many lenses of one polynomial, spread over the database."""
    every = lenses("RECTILINEAR")
    return spread([each for each in every if each[0].calib_distortion[0].model.name == kind], count)


def coordinates(lens: Any, millimetres: float, size: tuple[int, int]) -> tuple[Array, Array]:
    """Rays (N, 3) of a straight picture, or of that of an equidistant fisheye, and where in the
    photo, pixels (N, 2), Lensfun takes them from."""
    modifier = lensfunpy.Modifier(lens, lens.crop_factor, *size)
    flags, ideal = lensfunpy.ModifyFlags.DISTORTION, lens.type
    straight = lens.type == lensfunpy.LensType.RECTILINEAR
    if not straight:
        flags, ideal = flags | lensfunpy.ModifyFlags.GEOMETRY, lensfunpy.LensType.FISHEYE
    modifier.initialize(millimetres, 8.0, 1000.0, 1.0, ideal, flags=flags)
    x, y = np.meshgrid(np.linspace(0, size[0] - 1, 25), np.linspace(0, size[1] - 1, 17))
    points = np.stack([x, y], -1).reshape(-1, 2)
    rows = [modifier.apply_geometry_distortion(*point, 1, 1)[0, 0] for point in points.tolist()]
    plane = (points + 0.5 - 0.5 * np.array(size)) / focal_of(lens, millimetres, size)
    radius = np.linalg.norm(plane, axis=-1, keepdims=True)
    z = np.ones_like(radius) if straight else np.cos(radius) / np.sinc(radius / math.pi)
    return np.concatenate([plane, z], -1), np.array(rows) + 0.5


def focal_of(lens: Any, millimetres: float, size: tuple[int, int]) -> float:
    """Pixels, between the middles of the outermost ones as Lensfun counts a picture."""
    return millimetres * lens.crop_factor * math.hypot(size[0] - 1, size[1] - 1) / 43.266615


def reading_of(
    lens: Any, millimetres: float, model: str, size: tuple[int, int] = SIZE
) -> LensReading:
    profile = sampled(lens, millimetres, lens.crop_factor, size)
    focal_px = focal_of(lens, millimetres, size)
    return lens_reading.in_words_of(get_model(model), profile, focal_px, 0.5 * size[1])


def worst(
    lens: Any, millimetres: float, model: str, size: tuple[int, int] = SIZE
) -> tuple[float, float]:
    """Pixels between our camera and Lensfun at most, and what we say of it."""
    reading = reading_of(lens, millimetres, model, size)
    focal_px = focal_of(lens, millimetres, size) * reading.stretch
    camera = Camera.create(model, f=focal_px, size=size, distortion=reading.distortion)
    rays, expected = coordinates(lens, millimetres, size)
    ours, valid = camera.project(rays[None])
    assert valid.all()
    return float(np.abs(ours[0] - expected).max()), reading.miss_px


TWELVE_MEGAPIXELS = (4000, 3000)


class TestAgainstLensfun:
    @pytest.mark.parametrize(
        ("kind", "model"), [("POLY3", "simple_radial"), ("POLY3", "radial"), ("POLY5", "radial")]
    )
    def test_even_polynomials_are_exact(self, kind: str, model: str) -> None:
        found = of_kind(kind, 20)
        assert len(found) == (1 if kind == "POLY5" else 20)  # The database has no more.
        assert max(worst(*each, model)[0] for each in found) < 0.01

    def test_ptlens_is_exact(self) -> None:
        found = of_kind("PTLENS", 20)
        assert len(found) == 20
        assert max(worst(*each, "ptlens", TWELVE_MEGAPIXELS)[0] for each in found) < 0.05

    @pytest.mark.parametrize("model", ["simple_radial", "radial4"])
    def test_what_odd_terms_leave_is_stated(self, model: str) -> None:
        for each in of_kind("PTLENS", 20):
            off, miss = worst(*each, model)
            assert off < miss + 0.05

    def test_lenses_all_over_the_database(self) -> None:
        """Of all types and polynomials, in the model that is taken where nobody names one."""
        names = sorted({lens.type.name for lens in database().lenses} - {"PANORAMIC"})
        rectilinear, fisheyes = lenses("RECTILINEAR"), lenses(*names[:-1])
        assert names[-1] == "RECTILINEAR"
        assert (len(rectilinear), len(fisheyes)) == (1239, 26)
        taken = spread(rectilinear, 20)
        for lens, millimetres in taken:
            kind = {"POLY3": "simple_radial", "POLY5": "radial", "PTLENS": "ptlens"}
            model = kind[lens.calib_distortion[0].model.name]
            assert worst(lens, millimetres, model, TWELVE_MEGAPIXELS)[0] < 0.1
        limit = HELD * 0.5 * min(TWELVE_MEGAPIXELS)
        words = "kannala_brandt", TWELVE_MEGAPIXELS
        held = [each for each in fisheyes if reading_of(*each, *words).miss_px <= limit]
        assert len(held) == 7
        assert max(worst(*each, *words)[0] for each in held) < 0.1


class TestNames:
    def test_a_barrel(self) -> None:
        reading = found(tags(), "simple_radial")
        assert reading.name == "Canon EF 24-105mm f/4L IS USM"
        (k1,), (sigma,) = reading.distortion, reading.sigma
        assert -0.07 < k1 < -0.04
        assert 0.005 < sigma < 0.01
        # Lensfun's real focal length is that in the middle of the picture.
        assert reading.stretch == pytest.approx(1.02, abs=0.015)

    @pytest.mark.parametrize("scale", [0.25, 1.0])
    def test_it_is_the_same_of_a_picture_that_was_resized_or_stands(self, scale: float) -> None:
        usual = found(tags(), "radial").distortion
        small = (round(SIZE[1] * scale), round(SIZE[0] * scale))
        assert found(tags(), "radial", small).distortion == pytest.approx(usual, rel=5e-3)

    def test_a_shape_cut_out_of_the_sensor_has_the_same_lens(self) -> None:
        whole = found(tags(), "radial4")
        part = found(tags(), "radial4", (4256, 2394))
        for rho in (0.1, 0.3, 0.5):
            bent = [
                1 + sum(k * rho ** (2 * place + 2) for place, k in enumerate(each.distortion))
                for each in (whole, part)
            ]
            # The two polynomials are fitted to different circles.
            assert bent[0] * whole.stretch == pytest.approx(bent[1] * part.stretch, abs=2e-4)

    def test_a_digital_zoom_shows_its_middle(self) -> None:
        plain = found(tags(), "simple_radial")
        zoomed = found(tags(DigitalZoomRatio=2.0), "simple_radial")
        # In the middle the lens bends more than one number says of it all.
        assert plain.distortion[0] * 3 < zoomed.distortion[0] < plain.distortion[0]

    def test_a_converter_is_a_lens_of_its_own(self) -> None:
        lens = "EF300mm f/2.8L IS II USM +1.4x III"
        reading, _ = find_lens(tags(lens, 420.0), SIZE, 50000.0, get_model("radial"))
        assert reading is not None
        assert "extender" in reading.name
        assert "not in Lensfun's database" in refused(tags(EF + " +1.4x III", 100.0))
        assert "not in Lensfun's database" in refused(tags(EF, 150.0))

    @pytest.mark.parametrize(
        ("lens", "body", "why"),
        [
            ("FE 24-70mm F2.8 GM", ("SONY", "ILCE-7M3"), "camera straightens"),
            ("", CANON, None),
            ("24mm", CANON, "not in Lensfun's database"),
            ("iPhone 13 back camera 4mm", ("Apple", "iPhone 13"), "camera straightens"),
            ("EF8-15mm f/4L FISHEYE USM", CANON, "not in Lensfun's database"),
            ("Coolpix P7000 & compatibles", ("Nikon", "COOLPIX P7000"), "camera straightens"),
            ("DMC-LX5 & compatibles", ("Panasonic", "DMC-LX5"), "camera straightens"),
            ("DSC-RX100 III & compatibles", ("SONY", "DSC-RX100M3"), "camera straightens"),
            ("FC6310 & compatibles", ("DJI", "FC6310"), "camera straightens"),
            ("samsung SM-G991B 5.4mm", ("samsung", "SM-G991B"), "camera straightens"),
        ],
    )
    def test_others_are_left_alone(self, lens: str, body: tuple[str, str], why: str | None) -> None:
        reading, said = find_lens(tags(lens, 24.0, body), SIZE, 3000.0, get_model("radial"))
        assert reading is None
        assert said is None if why is None else said is not None and why in said

    @pytest.mark.parametrize(
        ("lens", "millimetres", "model"),
        [("Canon EF 100-300mm f/5.6L", 100.0, "simple_radial"), (EF, 24.0, "ptlens")],
    )
    def test_where_no_model_is_named_it_is_the_first_that_holds_the_lens(
        self, lens: str, millimetres: float, model: str
    ) -> None:
        reading, _ = find_lens(tags(lens, millimetres), SIZE, 118 * millimetres, None)
        assert reading is not None
        assert reading.model.name == model
        assert reading.miss_px < 0.1

    def test_a_fisheye(self) -> None:
        """It is told to the fisheye model alone, and where that holds it."""
        canon = ("Canon", "Canon EOS 450D")
        told = tags("Sigma 10mm f/2.8 EX DC Fisheye HSM", 10.0, canon)
        reading = found(told, "kannala_brandt")
        # An equidistant one with b = -0.0274 at half the shorter side of its sensor, which is
        # 1 / 1.27 of its focal length.
        assert reading.distortion[0] == pytest.approx(-0.0274 * 1.27**2 / 1.0267, abs=1e-3)
        assert "it is a fisheye" in refused(told)
        lens, why = find_lens(tags(), SIZE, 3000.0, get_model("kannala_brandt"))
        assert lens is None
        assert why == "it is no fisheye"
        nikon = tags(
            "AF DX Fisheye-Nikkor 10.5mm f/2.8G ED", 10.5, ("NIKON CORPORATION", "NIKON D90")
        )
        lens, why = find_lens(nikon, SIZE, 1900.0, get_model("kannala_brandt"))
        assert lens is None
        assert why is not None
        assert re.match(r"kannala_brandt misses this fisheye by [1-9]", why)

    def test_developed_files_may_be_straight(self) -> None:
        assert "a program may have" in refused(tags(Software="Adobe Lightroom 12.0"))

    def test_damaged_tags_are_no_lens(self) -> None:
        for millimetres in (math.nan, 0.0, -5.0, "x", None):
            refused(tags(EF, millimetres))  # type: ignore[arg-type]

    def test_without_the_extra(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(lens_reading, "installed", lambda: False)
        assert refused(tags()).endswith('pip install "geocalib[lensfun]"')

    def test_sigma_at_half_the_shorter_side(self) -> None:
        reading = found(tags(EF, 105.0), "simple_radial")
        hint, _ = focal_reading(tags(EF, 105.0), SIZE)
        assert hint is not None
        half = 0.5 * SIZE[1] / hint.focal_px
        assert reading.sigma[0] * half**2 == pytest.approx(SIGMA, rel=0.5)


def test_a_crop_factor_gives_the_focal_length() -> None:
    told = tags(DX, 18.0, ("PENTAX", "PENTAX K-5"))
    hint, _ = focal_reading(told, SIZE)
    assert hint is not None
    assert hint.source == "18 mm by Lensfun's crop factor"
    # The maker states 23.7 x 15.7 mm.
    assert hint.focal_px == pytest.approx(18 / 23.7 * SIZE[0], rel=0.01)


SMALL = (480, 320)


def photo(folder: Path, **more: Any) -> Path:
    exif = Image.Exif()
    inner = exif.get_ifd(IFD.Exif)
    for tag, value in tags(**more).items():
        (exif if tag < 0x8000 else inner)[tag] = value
    file = folder / "photo.png"
    Image.fromarray(picture(SMALL, 0)).save(file, exif=exif)
    return file


class TestCalibration:
    @pytest.mark.parametrize("model", ["auto", "simple_radial", "radial"])
    def test_the_name_of_the_lens_tells_what_the_picture_hardly_does(
        self, tmp_path: Path, model: str
    ) -> None:
        known = truth(SMALL, 53.0)
        calibrator = knowing(known, confidence_scale=1e6)
        answer = calibrator.calibrate(photo(tmp_path), model)
        expected = found(tags(), answer.camera.model.name, SMALL)
        assert answer.camera.model.name == ("ptlens" if model == "auto" else model)
        bend = answer.camera.distortion.tolist()
        for value, mean, sigma in zip(bend, expected.distortion, expected.sigma, strict=True):
            assert value == pytest.approx(mean, abs=2 * sigma)
        check = next(each for each in answer.priors if each.quantity == "distortion")
        assert check.source == "Lensfun Canon EF 24-105mm f/4L IS USM"

    def test_photos_of_one_camera(self, tmp_path: Path) -> None:
        calibrator = knowing(truth(SMALL, 53.0), confidence_scale=1e6)
        answers = list(calibrator.calibrate_set([photo(tmp_path)] * 2, "auto", exif=True))
        expected = found(tags(), "ptlens", SMALL)
        for answer in answers:
            bend = answer.camera.distortion.tolist()
            for value, mean, sigma in zip(bend, expected.distortion, expected.sigma, strict=True):
                assert value == pytest.approx(mean, abs=2 * sigma)

    @pytest.mark.parametrize("model", ["auto", "simple_radial"])
    def test_a_straightened_file_leaves_the_lens_out(self, tmp_path: Path, model: str) -> None:
        answer = knowing(truth(SMALL, 53.0), confidence_scale=1e-3).calibrate(
            photo(tmp_path), model
        )
        check = next(each for each in answer.priors if each.quantity == "distortion")
        assert check.contradicts
        assert not check.used
        assert answer.camera.distortion.tolist() == pytest.approx([0] * len(check.prior), abs=0.01)
        assert "Lensfun Canon EF 24-105mm f/4L IS USM (-0.0" in " ".join(answer.warnings)

    def test_the_report_says_what_it_is_worth(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        calibrator = knowing(truth(SMALL, 53.0), confidence_scale=1e6)
        answer = calibrator.calibrate(photo(tmp_path), "simple_radial")
        prior_report.print_table(prior_report.rows(answer), False)
        (sigma,) = found(tags(), "simple_radial", SMALL).sigma
        assert f"-0.051 ± {sigma:.2g}" in capsys.readouterr().out

    def test_a_compact_camera_is_not_bent(self, tmp_path: Path) -> None:
        """Though the database knows how its lens bends."""
        file = photo(
            tmp_path,
            lens="Coolpix P7000 & compatibles",
            millimetres=6.0,
            body=("Nikon", "COOLPIX P7000"),
        )
        answer = knowing(truth(SMALL, 53.0), confidence_scale=1e-3).calibrate(file, "simple_radial")
        assert [each.quantity for each in answer.priors] == ["focal"]
        assert answer.camera.distortion.item() == pytest.approx(0, abs=0.02)

    def test_exif_off_knows_no_lens(self, tmp_path: Path) -> None:
        answer = knowing(truth(SMALL, 53.0)).calibrate(photo(tmp_path), exif=False)
        assert answer.priors == ()


def test_info_tells_of_the_lens(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert photo_info.run([str(photo(tmp_path, DigitalZoomRatio=1.0001234))], {})
    said = " ".join(capsys.readouterr().out.split())
    assert re.search("distortion ptlens k1 .* k2 -0.19.* k3 .0.13", said)
    assert "digital zoom 1 " in said
    assert "by Lensfun Canon EF 24-105mm f/4L IS USM" in said
