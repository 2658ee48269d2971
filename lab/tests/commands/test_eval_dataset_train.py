"""``geocalib eval``, ``dataset`` and ``train``: words in, files out; the work is done elsewhere."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner, Result

from calibrations import FAILURE
from fake_calibrator import Run
from geocalib.cli.app import app
from geocalib_lab.evaluation.datasets import read_dataset
from geocalib_lab.evaluation.report import Report
from geocalib_lab.training import __main__ as training
from geocalib_lab.training.journal import TRAIN_COLUMNS, Table
from known_photos import FakeCalibrator, answer, write_set

PAGES = Path(__file__).parents[3] / "docs"
EXISTS = "exists; choose another name or add --overwrite"
HEADER = "image,width,height,roll_deg,pitch_deg,vfov_deg\n"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*words: object) -> Result:
        result = CliRunner().invoke(app, [str(word) for word in words])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


@pytest.fixture
def known(run: Run, monkeypatch: pytest.MonkeyPatch) -> FakeCalibrator:
    """A calibrator that finds 62 degrees, in the place of any."""
    fake = FakeCalibrator(lambda image: FAILURE if "broken" in str(image) else answer(62.0))
    monkeypatch.setattr("geocalib.cli.network.load", lambda network: fake)
    # Drawing takes longer than all the rest.
    monkeypatch.setattr("geocalib_lab.evaluation.commands.save_plots", lambda report, out: {})
    monkeypatch.setattr("geocalib_lab.evaluation.commands.worst_cases", lambda report: [])
    return fake


def interrupt(*given: object) -> None:
    raise KeyboardInterrupt


@pytest.fixture
def panos(tmp_path: Path) -> Path:
    """A folder with one panorama in its split test."""
    pixels = np.random.default_rng(0).integers(1, 255, (32, 64, 3), dtype=np.uint8)
    (tmp_path / "panos" / "test").mkdir(parents=True)
    Image.fromarray(pixels).save(tmp_path / "panos" / "test" / "a.png")
    return tmp_path / "panos"


class TestEval:
    def test_prints_and_writes(self, run: Run, known: FakeCalibrator, tmp_path: Path) -> None:
        write_set(tmp_path / "town", "gt.csv", HEADER + "a.png,64,48,0,0,60\nb.png,64,48,0,0,60\n")
        words = ("--known", "focal", "--images-per-fit", "1,2", "--split-by", "vfov")
        result = run("eval", "--dataset", "town", *words, "--out", "results")
        assert result.exit_code == 0
        assert "| town | pinhole | 2 " in result.stdout
        assert "| fields, jointly " in result.stdout
        assert "50 to 70°" in result.stdout
        assert result.stderr == "see results/report.html\n"
        assert {"report.html", "report.md", "town.json", "town.csv"} <= {
            path.name for path in Path("results").iterdir()
        }

    def test_other_methods(self, run: Run, known: FakeCalibrator, tmp_path: Path) -> None:
        write_set(tmp_path / "sets" / "town", "gt.csv", HEADER + "a.png,64,48,0,0,60\n")
        result = run("eval", "--dataset", "sets", "--methods", "manhattan,ours", "--out", "results")
        assert result.exit_code == 0
        assert "town: methods" in result.stdout
        assert result.stdout.index("level, 28 mm") < result.stdout.index("| vanishing points")
        result = run("eval", "--dataset", "sets", "--methods", "magic", "--out", "results")
        assert result.exit_code == 2
        assert "--methods magic: known are manhattan, vanishing, lines, " in result.stderr

    def test_baselines(self, run: Run, known: FakeCalibrator, tmp_path: Path) -> None:
        write_set(tmp_path / "town", "gt.csv", HEADER + "a.png,64,48,0,0,60\n")
        common = ("eval", "--dataset", "town", "--out", "results", "--methods")
        result = run(*common, "deepcalib,ours")
        assert result.exit_code == 2
        assert "deepcalib has no weights: train it (docs/training.md)" in result.stderr
        Path("made").mkdir()
        Path("made/paramnet.safetensors").write_text("no weights at all")
        result = run(*common, "paramnet", "--baseline-weights", "made")
        assert result.exit_code == 2
        assert "made/paramnet.safetensors is neither a safetensors file nor" in result.stderr
        assert "train it again (docs/training.md)" in result.stderr
        assert not Path("results").exists()

    def test_pages_for_a_site(
        self, run: Run, known: FakeCalibrator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def plot(report: Report, folder: Path) -> dict[str, Path]:
            return {"errors": folder / f"{report.name}-errors.png"}

        monkeypatch.setattr("geocalib_lab.evaluation.site_pages.save_plots", plot)
        monkeypatch.setattr("sys.argv", ["geocalib", "eval", "--dataset", "town", "--overwrite"])
        write_set(tmp_path / "town", "gt.csv", HEADER + "a.png,64,48,0,0,60\n")
        pages = tmp_path / "site" / "benchmarks"
        pages.mkdir(parents=True)
        note = "<!-- note -->\nA town by the sea.\n<!-- end -->\n"
        (pages / "town.md").write_text(f"# town\n\n{note}\n## Old\n")
        words = ("eval", "--dataset", "town", "--methods", "lines", "--report", "site/benchmarks")
        assert run(*words, "--overwrite").exit_code == 0
        index = Path("site/benchmarks/index.md").read_text()
        assert "    geocalib eval --dataset town\n" in index
        assert "- [town](town.md): 1 photographs, 0 without an answer" in index
        assert "## Errors" not in index
        assert "Errors: median error (AUC" in Path("site/benchmarks/index.csv").read_text()
        page = Path("site/benchmarks/town.md").read_text()
        assert f"(index.md). [All tables](town.csv) are beside this page.\n\n{note}" in page
        assert "Old" not in page
        assert "![errors](town-errors.png)" in page
        assert "- Errors: How large" in index
        table = Path("site/benchmarks/town.csv").read_text()
        assert table.startswith("town: methods: median error")
        assert ",CPU s / photo\n" in table
        assert "| lines alone  | 0.00 / 0.00 / 2.00 " in index
        # Pages are not replaced unasked.
        result = run(*words, "--out", "elsewhere")
        assert result.exit_code == 2
        assert "site/benchmarks/index.md" in result.stderr

    def test_reports_and_the_truth_stay(
        self, run: Run, known: FakeCalibrator, tmp_path: Path
    ) -> None:
        write_set(tmp_path / "gt", "gt.csv", HEADER + "a.png,64,48,0,0,60\n")
        before = Path("gt/gt.csv").read_bytes()
        for more in ((), ("--overwrite",)):
            result = run("eval", "--dataset", "gt", "--out", "gt", *more)
            assert result.exit_code == 2
            assert result.stderr == (
                "error: gt/gt.csv is an input and stays as it is; choose another output\n"
            )
        assert Path("gt/gt.csv").read_bytes() == before
        assert run("eval", "--dataset", "gt", "--out", "results").exit_code == 0
        calls = len(known.calls)
        result = run("eval", "--dataset", "gt", "--out", "results")
        assert result.stderr == (
            "error: results/report.md exists; choose another name or add --overwrite\n"
        )
        assert (result.exit_code, len(known.calls)) == (2, calls)
        assert run("eval", "--dataset", "gt", "--out", "results", "--overwrite").exit_code == 0
        assert not list(tmp_path.rglob("*.lock"))

    def test_an_interrupted_evaluation_asks_the_same(
        self, run: Run, known: FakeCalibrator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write_set(tmp_path / "town", "gt.csv", HEADER + "a.png,64,48,0,0,60\n")
        with monkeypatch.context() as broken:
            broken.setattr("geocalib_lab.evaluation.commands._write", interrupt)
            assert run("eval", "--dataset", "town", "--out", "out").exit_code == 130
        (table := tmp_path / "town" / "gt.csv").write_text(table.read_text().replace("60", "61"))
        result = run("eval", "--dataset", "town", "--out", "out")
        assert result.exit_code == 2
        assert "answers another question (--dataset " in result.stderr
        assert run("eval", "--dataset", "town", "--out", "out", "--overwrite").exit_code == 0
        assert not Path("out/unfinished").exists()

    def test_a_broken_photo_is_told_and_counted(
        self, run: Run, known: FakeCalibrator, tmp_path: Path
    ) -> None:
        lines = "a.png,64,48,0,0,60\nbroken.png,64,48,0,0,60\n"
        write_set(tmp_path / "town", "gt.csv", HEADER + lines)
        result = run("eval", "--dataset", "town")
        assert result.exit_code == 1
        assert "the file ends too early" in result.stderr
        assert "| town | pinhole | 2      | 1 " in result.stdout

    @pytest.mark.parametrize(
        ("words", "line"),
        [
            (("--known", "all"), "--known all: known are gravity, focal"),
            (("--initial", "best"), "--initial best: known are trivial, heuristic, ransac"),
            (("--split-by", "size"), "--split-by size: known are magnification, scene, vfov"),
            (("--images-per-fit", "two"), "--images-per-fit two: give whole numbers, as 1,2,4,8"),
            (("--limit", "0"), "limit is 0; give the number of photographs to take"),
            ((), "town holds no table"),
        ],
    )
    def test_bad_words(
        self, run: Run, known: FakeCalibrator, words: Sequence[str], line: str
    ) -> None:
        result = run("eval", "--dataset", "town", *words)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith(f"error: {line}")
        assert known.calls == []


class TestDataset:
    def test_make(self, run: Run, panos: Path) -> None:
        (panos / "manifest.csv").write_text("file,scene\ntest/a.png,indoor\n")
        words = ("--split", "test", "--per-panorama", "2", "--size", "16x12", "--distorted")
        result = run("dataset", "make", panos, "set", *words)
        assert result.exit_code == 0
        assert result.stderr == "pictures and their truth are in set/images.csv\n"
        samples = read_dataset("set")
        assert [(s.width, s.height, s.scene) for s in samples] == [(16, 12, "indoor")] * 2
        assert all(s.k1 for s in samples)

    def test_make_keeps_what_is_there(self, run: Run, panos: Path) -> None:
        words = ("dataset", "make", panos, "set", "--split", "test", "--size", "16x12")
        Path("set/images").mkdir(parents=True)
        Path("set/images/mine.jpg").write_bytes(b"mine")
        assert f"error: set/images/mine.jpg {EXISTS}" in run(*words).stderr
        Path("set/images/mine.jpg").unlink()
        assert run(*words).exit_code == 0
        result = run(*words)
        assert (result.exit_code, result.stderr) == (2, f"error: set/images.csv {EXISTS}\n")
        assert run(*words, "--overwrite").exit_code == 0
        assert not list(Path().rglob("*.lock"))

    def test_make_leaves_out_what_is_broken(self, run: Run, panos: Path) -> None:
        whole = (panos / "test" / "a.png").read_bytes()
        (panos / "test" / "b.png").write_bytes(whole[: len(whole) // 2])
        (panos / "test" / "c.png").write_bytes(whole)
        os.symlink("gone.png", panos / "test" / "d.png")
        result = run(
            "dataset",
            "make",
            panos,
            "set",
            "--split",
            "test",
            "--per-panorama",
            "1",
            "--size",
            "16x12",
        )
        assert result.exit_code == 1
        assert [sample.panorama for sample in read_dataset("set")] == ["a.png", "c.png"]
        note, broken, gone = result.stderr.splitlines()
        assert note == "pictures and their truth are in set/images.csv"
        assert broken.startswith("error: cannot read panorama ")
        assert "b.png is damaged or cut short" in broken
        assert "d.png is a link to gone.png, which does not exist" in gone

    def test_make_refuses(self, run: Run, panos: Path) -> None:
        result = run("dataset", "make", panos, "set", "--size", "big")
        assert result.exit_code == 2
        assert result.stderr == ("error: --size big: give width and height in pixels, as 640x480\n")
        assert "holds no panorama" in run("dataset", "make", panos, "set").stderr

    def test_check_and_resume(self, run: Run, known: FakeCalibrator, panos: Path) -> None:
        """The fake finds each view level, so the panorama seems to tilt wherever one looks."""
        (panos / "test" / "bad.png").write_text("no picture")
        result = run("dataset", "check", panos, "--split", "test", "--views", "6")
        assert result.exit_code == 1
        assert "bad.png" in result.stderr
        assert "of 1 panorama level; see levels.csv" in result.stderr
        with Path("levels.csv").open(newline="") as stream:
            (row,) = csv.DictReader(stream)
        assert row["file"] == "test/a.png"
        assert row["verdict"] in ("level", "tilted", "unclear")
        asked = len(known.calls)
        (panos / "test" / "bad.png").unlink()
        result = run("dataset", "check", panos, "--split", "test", "--views", "6")
        assert "1 panorama already in levels.csv: going on with 0" in result.stderr
        assert (result.exit_code, len(known.calls)) == (0, asked)

    def test_check_asks_the_same(self, run: Run, known: FakeCalibrator, panos: Path) -> None:
        words = ("dataset", "check", panos, "--split", "test", "--views")
        assert run(*words, "6").exit_code == 0
        asked, before = len(known.calls), Path("levels.csv").read_bytes()
        result = run(*words, "8")
        assert result.exit_code == 2
        assert result.stderr == (
            "error: levels.csv answers another question (--views 6 there, --views 8 here); choose "
            "another name or add --overwrite\n"
        )
        assert Path("levels.csv").read_bytes() == before
        pixels = np.random.default_rng(1).integers(1, 255, (32, 64, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(panos / "test" / "a.png")
        assert run(*words, "6").exit_code == 0
        assert len(known.calls) == 2 * asked
        Path("mine.csv").write_text("dear diary\n")
        result = run(*words, "6", "--out", "mine.csv")
        assert result.stderr.startswith("error: mine.csv exists and is not from geocalib; choose")
        result = run(*words, "6", "--out", panos / "test" / "a.png", "--overwrite")
        assert "a.png is an input and stays as it is" in result.stderr

    def test_get(self, run: Run, tmp_path: Path) -> None:
        result = run("dataset", "get", "stanford2d3d", "sets")
        assert result.exit_code == 2
        assert "--accept-terms" in result.stderr
        (tmp_path / "sets" / "lamar2k").mkdir(parents=True)
        assert (
            "geocalib eval --dataset sets/lamar2k"
            in run("dataset", "get", "lamar2k", "sets").stderr
        )


class TestTrain:
    def test_has_the_options_of_the_module(self) -> None:
        text = CliRunner().invoke(app, ["train", "--help"]).stdout
        options = set(re.findall(r"^  (?:-h, )?(--[a-z-]+)", text, re.MULTILINE))
        words = {word for action in training._parser()._actions for word in action.option_strings}
        assert options - {"--plot"} == words - {"-h"}

    def test_hands_on_what_it_is_given(
        self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        seen: list[Any] = []

        def main(words: Sequence[str]) -> int:
            seen.append(training._parser().parse_args(words))
            return 0 if seen[-1].steps else 2

        drawn: list[Path] = []
        monkeypatch.setattr(training, "main", main)
        monkeypatch.setattr(
            "geocalib_lab.training.journal.plot", lambda folder, picture: drawn.append(picture)
        )
        words = ("train", "--panos", "panos", "--out", "run", "--set", "batch=4", "--set", "seed=1")
        assert run(*words, "--steps", "3", "--device", "cpu").exit_code == 0
        (options,) = seen
        assert (options.panos, options.steps, options.device) == (Path("panos"), 3, "cpu")
        assert options.set == ["batch=4", "seed=1"]
        assert drawn == [Path("run/travel/curves.png")]
        assert run(*words).exit_code == 2
        assert len(drawn) == 1
        assert "--panos" in run("train", "--out", "run").stderr

    def test_plot(self, run: Run, tmp_path: Path) -> None:
        table = Table(tmp_path / "training.csv", TRAIN_COLUMNS)
        for step in (1, 2):
            table.add({"step": step, "up": 1 / step, "gradient_norm": 1.0})
        table.close()
        (tmp_path / "validation.csv").write_text("step,published_gravity_median\n2,5\n")
        result = run("train", "--plot", tmp_path)
        assert result.exit_code == 0
        assert f"curves.png {EXISTS}" in run("train", "--plot", tmp_path).stderr
        assert run("train", "--plot", tmp_path, "--overwrite").exit_code == 0
        with Image.open(tmp_path / "curves.png") as picture:
            assert picture.width > 1000
        assert "training.csv: No such file" in run("train", "--plot", tmp_path / "none").stderr


@pytest.mark.parametrize(
    "command", ["eval", "dataset make", "dataset check", "dataset get", "train"]
)
def test_the_pages_name_every_option(run: Run, command: str) -> None:
    page = (PAGES / ("training.md" if command == "train" else "evaluation.md")).read_text()
    assert f"geocalib {command}" in page
    options = set(re.findall(r"--[a-z-]+", run(*command.split(), "--help").stdout))
    assert "--help" in options
    for option in options - {"--help"}:
        assert option in page
