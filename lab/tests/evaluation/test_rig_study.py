"""Rigs against single photographs, and curves over numbers of images: what is asked, and drawn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from calibrations import FAILURE
from geocalib.errors import ConfigError
from geocalib.imaging import ImageSource
from geocalib.result.calibration import Outcome
from geocalib_lab.evaluation import commands
from geocalib_lab.evaluation.commands import Plan
from geocalib_lab.evaluation.datasets import Sample
from geocalib_lab.evaluation.plots import draw_curves, save_curves
from geocalib_lab.evaluation.report import Report
from geocalib_lab.evaluation.rig_study import mounted, rig_study
from geocalib_lab.evaluation.run import Setting, evaluate
from geocalib_lab.evaluation.studies import Study, joint_study, same_camera
from known_photos import CARD, FakeCalibrator, answer, sample, write_set

EYE = (1.0, 0.0, 0.0, 0.0)
BACKWARDS = (0.0, 0.0, 1.0, 0.0)


class Mounting:
    """Finds 62 degrees alone, the truth in a rig, and keeps what it was asked."""

    card = CARD

    def __init__(self) -> None:
        self.calls: list[tuple[list[str], dict[str, Any]]] = []

    def calibrate(
        self, images: Sequence[ImageSource], camera_model: str = "pinhole", **options: Any
    ) -> list[Outcome]:
        if "rig" not in options:
            return [answer(62.0)] * len(images)
        self.calls.append(([Path(str(image)).name for image in images], options))
        return [FAILURE if "bad" in str(image) else answer(60.0) for image in images]


def shot(rig: str, *cameras: str | None) -> list[Sample]:
    """Photographs of one shot, of cameras of these names."""
    turns = (EYE, BACKWARDS, EYE, EYE)
    return [
        sample(f"{rig}{i}.png", rig=rig, camera_name=name, camera_from_rig=turns[i])
        for i, name in enumerate(cameras)
    ]


def study(samples: Sequence[Sample], calibrator: Mounting) -> Study:
    done: list[int] = []
    alone = evaluate(calibrator, samples, name="town")
    found = rig_study(alone, calibrator, lambda: done.append(1))
    assert len(done) == len(samples) * (len(found.rows) - 1)
    return found


def test_each_shot_is_a_fit() -> None:
    calibrator = Mounting()
    found = study([*shot("a", "l", "r"), *shot("b", None, "bad")], calibrator)
    assert found.title == "town: rigs"
    rows = dict(found.rows)
    assert list(rows) == ["alone", "gravity shared"]
    assert rows["alone"].errors["vfov"].tolist() == pytest.approx([2] * 4)
    assert rows["gravity shared"].errors["vfov"].max() < 1e-9
    assert [images for images, _ in calibrator.calls] == [
        ["a0.png", "a1.png"],
        ["b0.png", "b1.png"],
    ]
    rig = calibrator.calls[0][1]["rig"]
    expected = np.stack([np.eye(3), np.diag([-1.0, 1.0, -1.0])])
    np.testing.assert_allclose(rig.camera_from_rig, expected, atol=1e-12)
    assert (list(rig.camera), list(rig.time)) == ([0, 1], [0, 0])
    assert calibrator.calls[0][1]["shared_intrinsics"] == [0, 1]


def test_lenses_join_shots() -> None:
    """c shares a lens with a, b with none; the order of the answers is that of the photographs."""
    calibrator = Mounting()
    samples = [*shot("a", "x", "y"), *shot("b", "z", None), *shot("c", "u", "x")]
    samples = [samples[i] for i in (0, 2, 4, 1, 3, 5)]
    rows = dict(study(samples, calibrator).rows)
    assert list(rows) == ["alone", "gravity shared", "gravity and lenses shared"]
    joined, options = max(calibrator.calls, key=lambda call: len(call[0]))
    assert joined == ["a0.png", "c0.png", "a1.png", "c1.png"]
    assert options["shared_intrinsics"] == [0, 1, 2, 0]
    assert list(options["rig"].time) == [0, 1, 0, 1]
    assert rows["gravity and lenses shared"].samples == tuple(samples)


def test_failures_count() -> None:
    rows = dict(study([*shot("bad", "x", "y"), *shot("a", "u", "v")], Mounting()).rows)
    assert np.isinf(rows["gravity shared"].errors["gravity"]).tolist() == [True, True, False, False]


def test_what_is_no_rig() -> None:
    with pytest.raises(
        ConfigError, match="no photograph is of a rig; a table tells by the columns"
    ):
        mounted([sample()])
    with pytest.raises(ConfigError, match=r"a\.png is of rig r, but has no rotation"):
        mounted([sample(rig="r")])
    assert mounted([sample(), *shot("a", "l")]) == shot("a", "l")


def test_cameras_are_told_by_their_names() -> None:
    """Not by the field of view: cameras may be alike, and truths may differ by rounding."""
    samples = [
        sample("0.png", camera_name="a"),
        sample("1.png", camera_name="b"),
        sample("2.png", camera_name="a", vfov_deg=60.1),
        sample("3.png", camera_name="b"),
    ]
    assert [s.image.stem for s in same_camera(samples, 2)] == ["0", "2", "1", "3"]


def better_together(samples: Sequence[Sample], setting: Setting) -> Report:
    """Alone 6 degrees off, and less and less with more images."""
    vfov = 60 + 6 / setting.images_per_fit
    return evaluate(FakeCalibrator(lambda _: answer(vfov)), samples)


def test_curves() -> None:
    samples = [sample(f"{i}.png") for i in range(8)]
    found = joint_study("town", samples, [1, 2, 8], better_together)
    assert {name: list(curve) for name, curve in found.curves.items()} == {
        f"{way}, {how}": [1, 2, 8]
        for way in ("fields", "fields and lines")
        for how in ("jointly", "averaged")
    }
    vfov, gravity = draw_curves(found).axes
    lines = {line.get_label(): line.get_xydata() for line in vfov.lines}
    np.testing.assert_allclose(lines["fields, jointly"], [[1, 6], [2, 3], [8, 0.75]])
    np.testing.assert_allclose(lines["fields, averaged"], [[1, 6], [2, 6], [8, 6]])
    assert {len(axes.lines) for axes in (vfov, gravity)} == {4}


def test_there_is_no_curve_of_what_is_not_known() -> None:
    samples = [sample(f"{i}.png", roll_deg=None, pitch_deg=None) for i in range(2)]
    (vfov,) = draw_curves(joint_study("photos", samples, [1, 2], better_together)).axes
    assert vfov.get_ylabel().startswith("vFoV")


def test_files_of_curves(tmp_path: Path) -> None:
    samples = [sample(f"{i}.png") for i in range(2)]
    curves = joint_study("town", samples, [1, 2], better_together)
    assert save_curves([Study("plain", "row", ())], "town", tmp_path) == {}
    files = save_curves([curves], "town", tmp_path)
    assert files == {"images": tmp_path / "town-images.png"}
    with Image.open(files["images"]) as picture:
        assert picture.convert("L").getextrema()[0] < 50


def test_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "save_plots", lambda report, out: {})
    monkeypatch.setattr(commands, "worst_cases", lambda report: [])
    header = "image,width,height,roll_deg,pitch_deg,vfov_deg,camera,rig,rotation\n"
    rows = "".join(f"{name}.png,64,48,0,0,60,c,r,1 0 0 0\n" for name in "ab")
    folder = write_set(tmp_path / "town", "gt.csv", header + rows)
    plan = Plan([folder], images_per_fit=(1, 2), rig=True)
    out = tmp_path / "out"
    evaluation = commands.run(Mounting(), plan, out)
    assert "| gravity and lenses shared | 2      | 0.00 (100/100/100)" in evaluation.markdown
    assert (out / "town-images.png").exists()
    assert "Images of one camera fitted together" in (out / "report.html").read_text()
    plain = write_set(tmp_path / "sea", "gt.csv", "image,width,height\na.png,64,48\n")
    calibrator = Mounting()
    with pytest.raises(ConfigError, match="no photograph is of a rig"):
        commands.run(calibrator, Plan([plain], rig=True))
    assert calibrator.calls == []
