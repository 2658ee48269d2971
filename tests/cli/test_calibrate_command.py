"""``geocalib calibrate``: what goes in, and where the answers go."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from PIL import Image

from fake_calibrator import FakeCalibrator, Run, picture
from geocalib.formats import colmap, csv_table, json_lines, opencv
from geocalib.result.calibration import Calibration, Failure
from geocalib.result.schema import RECORD

pytestmark = pytest.mark.usefixtures("photos")


def test_a_table_to_look_at(run: Run) -> None:
    result = run("calibrate", "photos")
    lines = result.stdout.splitlines()
    assert result.exit_code == 0
    assert " ".join(lines[1].split()) == "image roll ° pitch ° vFoV ° focal px status"
    assert [line.split()[0] for line in lines[3:13]] == [f"{i}.png" for i in range(1, 11)]
    assert " ".join(lines[3].split()) == ("1.png +5.00 ± 0.30 -10.00 ± 0.40 60.0 ± 1.2 42 ± 12 ok")
    assert "in photos; ± is one sigma" in lines[-1]
    assert result.stderr == ""


def test_the_table_says_what_bends(run: Run) -> None:
    result = run("calibrate", "photos/1.png", "--camera-model", "radial")
    assert "distortion" in result.stdout
    assert "k1 -0.3000 ± 0.0100" in result.stdout
    assert "k2 +0.1000 ± 0.0100" in result.stdout


def test_json_on_standard_output_and_all_else_on_standard_error(
    run: Run, calibrator: FakeCalibrator
) -> None:
    Path("photos/bad.png").write_bytes(b"")
    calibrator.trained = False
    result = run("calibrate", "photos", "none/*.jpg", "gone.jpg", "--json")
    records = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.exit_code == 1
    assert all(tuple(record) == RECORD.keys for record in records)
    assert [record["image"] for record in records[-2:]] == ["photos/bad.png", "gone.jpg"]
    assert records[-2]["error"] == "photos/bad.png is empty; copy it again"
    assert records[-2]["roll_deg"] is None
    assert result.stderr.splitlines() == [
        "error: none/*.jpg matches no image; check the pattern",
        "warning: these are placeholder weights that were never trained: the numbers mean nothing",
        "error: photos/bad.png is empty; copy it again",
        "error: gone.jpg does not exist; check the path",
        "10 images calibrated, 2 failed",
    ]


def test_csv_on_standard_output(run: Run) -> None:
    result = run("calibrate", "photos", "--csv")
    Path("table.csv").write_text(result.stdout)
    assert [outcome.image for outcome in csv_table.read("table.csv")][:2] == [
        "photos/1.png",
        "photos/2.png",
    ]
    assert result.stderr == "10 images calibrated\n"


def test_json_in_a_file(run: Run) -> None:
    Path("photos/3.png").write_text("no image")
    result = run("calibrate", "photos", "--json", "-o", "new/out.jsonl")
    outcomes = json_lines.read("new/out.jsonl")
    assert (result.exit_code, result.stdout) == (1, "")
    assert [outcome.image for outcome in outcomes] == [f"photos/{i}.png" for i in range(1, 11)]
    assert isinstance(outcomes[2], Failure)
    assert result.stderr.splitlines()[-1] == "9 images calibrated, 1 failed; see new/out.jsonl"


def test_other_formats(run: Run) -> None:
    Path("photos/3.png").write_text("no image")
    assert run("calibrate", "photos", "-o", "out.csv").exit_code == 1
    assert len(csv_table.read("out.csv")) == 10
    assert run("calibrate", "photos", "--format", "colmap", "-o", "model").exit_code == 1
    assert len(colmap.read("model")) == 1
    assert run("calibrate", "photos", "--format", "opencv", "-o", "cameras").exit_code == 1
    assert opencv.read("cameras/1.png.yaml").size.tolist() == [[64, 48]]
    assert run("calibrate", "photos/1.png", "--format", "ros", "-o", "a.yaml").exit_code == 0
    assert run("calibrate", "photos", "--format", "nerfstudio", "-o", "t.json").exit_code == 1
    assert json.loads(Path("t.json").read_text())["frames"][0]["file_path"] == "photos/1.png"
    assert sorted(path.name for path in Path.cwd().iterdir()) == [
        *("a.yaml", "cameras", "model", "out.csv", "photos", "t.json")
    ]


def test_a_format_that_cannot_hold_the_camera_is_refused_at_once(
    run: Run, calibrator: FakeCalibrator
) -> None:
    for name, model, mend in (
        ("opencv", "division", "radial"),
        ("nerfstudio", "division", "radial"),
        ("colmap", "double_sphere", "kannala_brandt"),
    ):
        result = run("calibrate", "photos", "--format", name, "-o", "x", "--camera-model", model)
        assert result.exit_code == 2
        assert result.stderr.startswith(f"error: --format {name}: ")
        assert result.stderr.endswith(f"use --camera-model {mend}\n")
    assert calibrator.opened == []


def test_nothing_to_write(run: Run) -> None:
    result = run("calibrate", "gone.jpg", "--format", "colmap", "-o", "model")
    assert result.exit_code == 2
    assert result.stderr.splitlines() == [
        "error: gone.jpg does not exist; check the path",
        "error: there is no camera to write; gone.jpg: gone.jpg does not exist; check the path",
    ]
    assert [path.name for path in Path.cwd().iterdir()] == ["photos"]


def test_what_is_known_reaches_the_calibrator(run: Run, calibrator: FakeCalibrator) -> None:
    picture(32, 96).save("photos/high.png")
    Path("photos/bad.png").write_text("no image")
    Path("w.safetensors").touch()
    options = ("--roll", "-3", "--pitch", "12", "--weights", "w.safetensors", "--device", "cpu")
    paths = ("photos/1.png", "photos/bad.png", "photos/high.png")
    result = run("calibrate", *paths, "--fov", "90", "--json", *options)
    ((images, known),) = calibrator.calls
    assert calibrator.opened == [("w.safetensors", "cpu")]
    assert images == list(paths)
    assert (known["vfov_deg"], known["roll_deg"], known["pitch_deg"]) == (90, -3, 12)
    assert [json.loads(line)["image"] for line in result.stdout.splitlines()] == list(paths)

    run("calibrate", "photos/1.png", "--focal", "700", "--camera-model", "division")
    assert calibrator.calls[-1][1]["camera_model"] == "division"
    assert calibrator.calls[-1][1]["focal"] == 700


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        (["photos/1.png"], True),
        (["photos/1.png", "--exif", "off"], False),
        (["photos/1.png", "--exif=off"], False),
        (["--exif", "on", "photos/1.png"], True),
        # As it was spelt when it was off by default.
        (["--exif", "photos/1.png"], True),
        (["photos/1.png", "--exif"], True),
    ],
)
def test_exif_is_asked_unless_it_is_switched_off(
    run: Run, calibrator: FakeCalibrator, words: list[str], asked: bool
) -> None:
    assert run("calibrate", *words).exit_code == 0
    ((images, known),) = calibrator.calls
    assert (images, known["exif"]) == (["photos/1.png"], asked)


def test_an_engine(run: Run, calibrator: FakeCalibrator) -> None:
    run("calibrate", "photos/1.png", "--engine", "onnx")
    run("calibrate", "photos/1.png")
    assert calibrator.engines == ["onnx", "auto"]
    assert run("calibrate", "photos/1.png", "--engine", "jax").exit_code == 2


def test_workers(run: Run, calibrator: FakeCalibrator) -> None:
    run("calibrate", "photos", "--workers", "3")
    assert [len(images) for images, _ in calibrator.calls] == [10]
    assert (len(calibrator.opened), calibrator.workers) == (1, 3)
    assert run("calibrate", "photos", "--workers", "0").exit_code == 2


def test_images_of_one_camera_are_fitted_together(run: Run, calibrator: FakeCalibrator) -> None:
    run("calibrate", "photos", "--shared")
    ((images, known),) = calibrator.calls
    assert len(images) == 10
    assert known["cameras"] == [0] * 10


def test_a_list_of_paths_on_standard_input(run: Run) -> None:
    result = run("calibrate", "-", "--json", stdin=b"photos/2.png\nphotos/1.png\n")
    assert [json.loads(line)["image"] for line in result.stdout.splitlines()] == [
        "photos/2.png",
        "photos/1.png",
    ]


def test_drawings(run: Run, calibrator: FakeCalibrator, monkeypatch: pytest.MonkeyPatch) -> None:
    import geocalib.overlay

    def overlay(photo: str, calibration: Calibration) -> Image.Image:
        return Image.new("RGB", (calibration.width, calibration.height))

    monkeypatch.setattr(geocalib.overlay, "overlay", overlay)
    Path("photos/sub").mkdir()
    picture(80, 60).save("photos/sub/1.png")
    Path("photos/2.png").write_bytes(b"")
    result = run("calibrate", "photos", "-r", "--overlay", "photos")
    assert result.exit_code == 1
    assert calibrator.calls[0][1]["keep_fields"] is True
    drawn = sorted(str(path) for path in Path("photos").rglob("*.geocalib.png"))
    assert len(drawn) == 10
    assert drawn[-1] == "photos/sub/1.png.geocalib.png"
    with Image.open(drawn[-1]) as drawing:
        assert drawing.size == (80, 60)
    # They are not taken for photographs.
    assert run("calibrate", "photos", "-r").stdout == result.stdout


def test_the_field_of_view_that_is_known_is_the_vertical_one(run: Run) -> None:
    """The fake calibrator's camera has 60 degrees, so that its focal length is the one asked."""
    record = json.loads(run("calibrate", "photos/1.png", "--json").stdout)
    assert record["vfov_deg"] == pytest.approx(60)
    assert record["fy"] == pytest.approx(48 / 2 / math.tan(math.radians(30)))


def test_an_image_on_standard_input(run: Run) -> None:
    result = run("calibrate", "-", "--json", stdin=Path("photos/1.png").read_bytes())
    record = json.loads(result.stdout)
    assert (record["image"], record["error"]) == ("-", None)
    result = run("calibrate", "-", stdin=Path("photos/1.png").read_bytes()[:50])
    assert result.exit_code == 1
    assert result.stderr.splitlines()[0].startswith("error: -: this image is damaged or cut short")


def test_both_names_of_the_field_of_view(run: Run, calibrator: FakeCalibrator) -> None:
    for name in ("--fov", "--vfov", "--vfov-deg"):
        assert run("calibrate", "photos/1.png", name, "50").exit_code == 0
        assert calibrator.calls[-1][1]["vfov_deg"] == 50


def test_a_zero_is_a_value(run: Run, calibrator: FakeCalibrator, photos: list[str]) -> None:
    assert run("calibrate", photos[0], "--roll", 0, "--pitch", 0).exit_code == 0
    ((_, known),) = calibrator.calls
    assert (known["roll_deg"], known["pitch_deg"]) == (0, 0)
    assert run("calibrate", photos[0], "--roll", 0, "--pitch", 8, "--json").exit_code == 0
    assert calibrator.calls[1][1]["roll_deg"] == 0
