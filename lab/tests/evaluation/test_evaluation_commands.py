"""What the commands of evaluation print, write and refuse."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from calibrations import FAILURE
from geocalib.errors import ConfigError
from geocalib.imaging import ImageSource
from geocalib.nets.weights.files import read_weights
from geocalib.result.calibration import Calibration, Outcome
from geocalib_lab.evaluation import commands
from geocalib_lab.evaluation.__main__ import main
from geocalib_lab.evaluation.commands import Plan
from known_photos import CARD, FakeCalibrator, answer, save_little_weights, write_set

HEADER = "image,width,height,roll_deg,pitch_deg,vfov_deg\n"


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Weights and device of each calibrator; all find 62 degrees, sure of it to 10% of f."""
    found: list[tuple[str, str]] = []

    def open_fake(weights: str, *, device: str) -> FakeCalibrator:
        found.append((str(weights), device))
        return FakeCalibrator(lambda _: answer(62.0, roll_deg=1.0))

    monkeypatch.setattr(commands, "Calibrator", open_fake)
    return found


@pytest.fixture
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes longer than all the rest."""
    monkeypatch.setattr(commands, "save_plots", lambda report, out: {})
    monkeypatch.setattr(commands, "worst_cases", lambda report: [])


def photos(folder: Path, vfov_deg: float = 60.0, count: int = 12) -> Path:
    return write_set(folder, "gt.csv", HEADER + f"a.png,64,48,0.5,0,{vfov_deg}\n" * count)


def fake(image: ImageSource) -> Calibration:
    return answer(62.0, roll_deg=1.0)


def test_run(tmp_path: Path, no_pictures: None) -> None:
    sets = [photos(tmp_path / "town"), photos(tmp_path / "sea", 50.0, 1)]
    out = tmp_path / "out"
    evaluation = commands.run(FakeCalibrator(fake), Plan(sets, blur=16), out)
    text = evaluation.markdown
    assert evaluation.failed == 0
    assert "| town | pinhole | 12" in text
    assert "+12.00" in text
    # The fake answers the same whatever it sees.
    assert "| town | 16         | +0.00" in text
    assert (out / "report.md").read_text() == text
    assert json.loads((out / "town.json").read_text())["summary"]["vfov_median"] == pytest.approx(2)
    assert len((out / "sea.csv").read_text().splitlines()) == 2
    # Nothing is left but the results.
    suffixes = {file.suffix for file in out.iterdir()}
    assert suffixes == {".md", ".html", ".json", ".csv"}


def test_the_page_holds_everything(tmp_path: Path) -> None:
    folder = photos(tmp_path / "a&b", count=1)
    with (folder / "gt.csv").open("a") as table:
        table.write("b.png,64,48,0,20,60\ngone.png,64,48,0,0,60\n")

    def rule(image: ImageSource) -> Outcome:
        return FAILURE if "gone" in str(image) else replace(fake(image), image=str(image))

    evaluation = commands.run(FakeCalibrator(rule), Plan([folder]), tmp_path)
    assert evaluation.failed == 1
    page = (tmp_path / "report.html").read_text()
    assert "http" not in page
    assert "<script" not in page
    assert "a&amp;b" in page
    shown = re.findall(r"data:image/(png|jpeg);base64,([^\"]+)", page)
    kinds = [kind for kind, _ in shown]
    assert kinds == ["png"] * 3 + ["jpeg"] * 2
    for _, content in shown:
        with Image.open(BytesIO(b64decode(content))) as picture:
            assert picture.width > 500
    # The one without an answer is the worst, then the one that is off by 20 degrees.
    assert page.index("gone.png") < page.index("<h3>b.png") < page.index("<h3>a.png")
    assert "pitch 0.0 ± 1.0°, true 20.0°" in page


def test_studies(tmp_path: Path, no_pictures: None) -> None:
    folder = photos(tmp_path / "town", count=5)
    calibrator = FakeCalibrator(fake)
    plan = Plan([folder], known=["gravity", "focal"], images_per_fit=[1, 2, 4])
    text = commands.run(calibrator, plan, tmp_path / "out").markdown
    assert "town: partial calibration" in text
    assert "| fields and lines, averaged | 4 " in text
    assert all(options["exif"] is options["sensors"] is False for options in calibrator.options)
    usual = {"lines", "exif", "prior", "sensors"}
    told = [sorted(options.keys() - usual) for options in calibrator.options]
    # What was answered before is not asked again, but for the four that fits of 4 are made of.
    fits = [[], ["shared_intrinsics"], ["shared_intrinsics"]]
    assert told == [[], ["gravity"], ["focal"], *fits, *fits]
    calls = len(calibrator.calls)
    with pytest.raises(ConfigError, match="no camera took 8 photographs of a set"):
        commands.run(calibrator, Plan([folder], images_per_fit=[1, 8, 16]))
    assert len(calibrator.calls) == calls
    with pytest.raises(ConfigError, match="fits of 1 image share nothing"):
        Plan([folder], images_per_fit=[1])


def test_fits_are_of_as_many_images_as_a_camera_took(tmp_path: Path, no_pictures: None) -> None:
    folder = photos(tmp_path / "town", count=5)
    plan = Plan([folder], images_per_fit=[1, 2, 4, 8])
    text = commands.run(FakeCalibrator(fake), plan, tmp_path / "out").markdown
    assert "| fields and lines, averaged | 4 " in text
    assert "4 images" in text
    assert "8 images" not in text


def test_limit_spreads_over_the_set(tmp_path: Path) -> None:
    lines = "".join(f"a.png,64,48,{i},0,60\n" for i in range(11))
    folder = write_set(tmp_path / "town", "gt.csv", HEADER + lines)
    (samples,) = Plan([folder], limit=3).read().values()
    assert [s.roll_deg for s in samples] == [0, 5, 10]
    assert len(Plan([folder], limit=100).read()["town"]) == 11
    with pytest.raises(ConfigError, match="limit is 0"):
        Plan([folder], limit=0)


def test_two_sets_of_one_name(tmp_path: Path) -> None:
    twins = [photos(tmp_path / side / "town") for side in ("left", "right")]
    with pytest.raises(ConfigError, match="two sets are called town"):
        Plan(twins).read()


def test_an_interrupted_run_leaves_its_answers(tmp_path: Path, no_pictures: None) -> None:
    first, second = photos(tmp_path / "town", count=1), tmp_path / "sea"
    write_set(second, "gt.csv", HEADER + "b.png,64,48,0,0,60\n")
    seen: list[str] = []

    def rule(image: ImageSource) -> Calibration:
        seen.append(Path(str(image)).parts[-3])
        if seen == ["town", "sea"]:
            raise KeyboardInterrupt
        return fake(image)

    plan, out = Plan([first, second]), tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        commands.run(FakeCalibrator(rule), plan, out)
    commands.run(FakeCalibrator(rule), plan, out)
    assert seen == ["town", "sea", "sea"]
    # Other weights answer for themselves.
    seen.clear()
    with pytest.raises(KeyboardInterrupt):
        commands.run(FakeCalibrator(rule), plan, out)
    other = FakeCalibrator(rule, replace(CARD, name="other"))
    commands.run(other, plan, out)
    assert seen == ["town", "sea", "town", "sea"]


def test_calibrate(
    tmp_path: Path,
    opened: list[tuple[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    weights = save_little_weights(tmp_path / "mine.safetensors", monkeypatch)
    near, far = photos(tmp_path / "near", 61.0), photos(tmp_path / "far", 40.0)
    out = tmp_path / "new.safetensors"
    words = ["calibrate", "--weights", str(weights), "--dataset", str(near), "--out", str(out)]
    assert main(words) == 0
    alone = read_weights(out)[1]
    assert alone.description == read_weights(weights)[1].description
    assert main(words) == 2
    assert "new.safetensors exists; choose another name or add" in capsys.readouterr().err
    words.append("--overwrite")
    assert main([*words, "--out", str(weights)]) == 2
    assert "mine.safetensors is an input and stays as it is" in capsys.readouterr().err
    assert main([*words, "--focal-dataset", str(far), "--description", "truer"]) == 0
    card = read_weights(out)[1]
    assert card.description == "truer"
    # Half of the angles are off by 0.5 (roll), the others exact, and all have a sigma of 1.
    assert card.sigma_scale["gravity"] == alone.sigma_scale["gravity"] == pytest.approx(0.5)
    # log(tan(31) / tan(20)) over 0.1, where that is the larger one.
    assert alone.sigma_scale["focal"] == pytest.approx(0.1983, abs=1e-3)
    assert card.sigma_scale["focal"] == pytest.approx(5.01, abs=1e-2)
    assert "focal 5.01" in capsys.readouterr().out
    assert main([*words, "--focal-dataset", str(photos(tmp_path / "few", count=1))]) == 2
    assert "too few photographs" in capsys.readouterr().err


def test_what_is_wrong_is_one_line(
    tmp_path: Path,
    opened: list[tuple[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    weights = save_little_weights(tmp_path / "mine.safetensors", monkeypatch)
    words = ["calibrate", "--weights", str(weights), "--dataset", str(tmp_path)]
    assert main([*words, "--out", str(tmp_path / "new.safetensors")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "holds no table" in line
