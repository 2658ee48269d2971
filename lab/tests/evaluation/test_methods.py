"""Other ways to an answer find cameras that are known."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from geocalib.cameras import Camera
from geocalib.geometry.fields import Fields, perspective_field
from geocalib.geometry.gravity import from_roll_pitch, world_from_camera
from geocalib.imaging import ImageSource, InputSpec, prepare, read_photo
from geocalib.nets.direct import Regressed
from geocalib.result.calibration import Calibration, Failure, Outcome
from geocalib_lab.commands import evaluate as command
from geocalib_lab.evaluation import commands, methods
from geocalib_lab.evaluation.answers import truth_of
from geocalib_lab.evaluation.commands import Plan
from geocalib_lab.evaluation.datasets import Sample, dataset_name, find_sets, read_dataset
from geocalib_lab.evaluation.methods import first_order, manhattan, methods_with, vanishing
from geocalib_lab.evaluation.methods.baselines import Baselines
from geocalib_lab.evaluation.methods.direct import Direct
from geocalib_lab.evaluation.methods.first_order import FirstOrder
from geocalib_lab.evaluation.methods.manhattan import Manhattan, OfSegments
from geocalib_lab.evaluation.methods.vanishing import Vanishing
from geocalib_lab.training.direct import parameters_of
from known_photos import CARD, FakeCalibrator, answer, sample, save_picture, write_set

TOWN = Path(__file__).parents[3] / "examples" / "town.jpg"
TRUTH = json.loads(TOWN.with_suffix(".json").read_text(encoding="utf-8"))
SIZE = (140, 96)
HEADER = "image,width,height,roll_deg,pitch_deg,vfov_deg\n"


class SeesFields:
    """Sees the exact fields of the truth, and answers something else."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        self.card = replace(CARD, short_side=64)
        self.samples = {s.image: s for s in samples}

    def calibrate(
        self, images: Sequence[ImageSource], camera_model: str, **options: Any
    ) -> list[Outcome]:
        assert options["keep_fields"] is True
        return [self._one(self.samples[Path(str(image))], camera_model) for image in images]

    def _one(self, known: Sample, camera_model: str) -> Outcome:
        if not known.image.exists():
            return Failure(str(known.image), None, None, "gone")
        truth = truth_of(known, SIZE)
        assert truth is not None
        given = prepare(read_photo(known.image), InputSpec(64))
        camera = given.view.to_input(truth.cameras, given.size)
        up, latitude, _ = perspective_field(camera, truth.gravity[None])
        ones = np.ones((1, *given.size[::-1]))
        guess = Camera.create(camera_model, f=100.0, size=SIZE)
        sigma = replace(truth.sigma, distortion=(0.0,) * len(guess.model.parameters))
        fields = Fields(up, latitude, ones, ones)
        return replace(truth, cameras=guess, sigma=sigma, fields=fields)


@pytest.mark.parametrize("k1", [None, -0.15])
def test_adam_finds_the_camera_of_exact_fields(
    tmp_path: Path, k1: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Half as many steps get there as well.
    monkeypatch.setattr(first_order, "STEPS", first_order.STEPS // 2)
    picture = save_picture(tmp_path / "a.png", SIZE)
    known = replace(
        sample(str(picture), roll_deg=-12.0, pitch_deg=20.0, vfov_deg=55.0, k1=k1),
        width=SIZE[0],
        height=SIZE[1],
    )
    gone = replace(known, image=tmp_path / "gone.png")
    method = FirstOrder(SeesFields([known, gone]))
    model = "pinhole" if k1 is None else "simple_radial"
    found, failed = method.calibrate([known.image, gone.image], model, exif=False)
    assert isinstance(found, Calibration)
    assert isinstance(failed, Failure)
    assert found.image == str(picture)
    assert found.roll_deg == pytest.approx(-12, abs=0.3)
    assert found.pitch_deg == pytest.approx(20, abs=0.5)
    assert found.vfov_deg == pytest.approx(55, abs=1)
    assert len(found.distortion) == (k1 is not None)


@pytest.mark.parametrize("kind", [Manhattan, Vanishing])
def test_vanishing_points_of_a_town(tmp_path: Path, kind: type[OfSegments]) -> None:
    method = kind(FakeCalibrator(lambda _: answer()))
    blank = tmp_path / "noise.png"
    save_picture(blank)
    town, nothing, gone = method.calibrate([TOWN, blank, tmp_path / "gone.png"])
    assert isinstance(town, Calibration)
    assert town.roll_deg == pytest.approx(TRUTH["roll_deg"], abs=0.3)
    assert town.pitch_deg == pytest.approx(TRUTH["pitch_deg"], abs=0.5)
    assert town.vfov_deg == pytest.approx(TRUTH["vfov_deg"], abs=2)
    assert isinstance(nothing, Failure)
    assert "too few straight lines" in nothing.error
    assert isinstance(gone, Failure)


GRAVITY = from_roll_pitch(np.array(0.15), np.array(-0.25))
FOCAL = 0.8


def clutter(count: int, axes: np.ndarray) -> np.ndarray:
    """(count, 2, 2) ends of segments: half of them belong to no direction, and the others, along
    axes (A, 3), are off by half a pixel."""
    rng = np.random.default_rng(3)
    ends = []
    for i in range(count):
        start = rng.uniform(-0.5, 0.5, 2)
        if i % 2:
            ends.append([start, start + rng.normal(0, 0.1, 2)])
        else:
            axis = axes[rng.integers(len(axes))]
            point = np.array([*start / FOCAL, 1.0]) * 5
            other = point + 0.7 * axis * rng.choice([-1, 1])
            ends.append([start, FOCAL * other[:2] / other[2] + rng.normal(0, 0.0003, 2)])
    return np.array(ends)


def test_vanishing_points_among_clutter() -> None:
    ends = clutter(120, world_from_camera(GRAVITY, np.array(0.6)))
    found = manhattan.search(ends)
    assert found is not None
    focal, directions = found
    assert focal == pytest.approx(FOCAL, rel=0.03)
    assert np.abs(directions @ GRAVITY).max() > np.cos(np.deg2rad(0.5))
    assert manhattan.search(ends[:7]) is None


def test_walls_at_any_angles() -> None:
    """Two directions on the ground are 35 degrees apart: the zenith tells the focal length."""
    gravity = from_roll_pitch(np.array(0.15), np.array(-0.5))
    turned = [world_from_camera(gravity, np.deg2rad(turn)) for turn in (20.0, 75.0)]
    level = [axes[np.abs(axes @ gravity).argmin()] for axes in turned]
    ends = clutter(200, np.array([gravity, *level]))
    found = vanishing.search(ends)
    assert found is not None
    focal, vertical = found
    assert focal == pytest.approx(FOCAL, rel=0.05)
    assert abs(vertical @ gravity) > np.cos(np.deg2rad(1.5))
    assert vanishing.search(ends[:7]) is None


METHODS = methods_with(Baselines())

PUBLISHED = ("stanford2d3d", "tartanair", "megadepth2k", "lamar2k")


@pytest.fixture
def sets(tmp_path: Path) -> Path:
    """The published sets as they are unpacked, each with two pictures."""
    header = "fname,width,height,vfov,roll,pitch\n"
    rows = "a.png,64,48,1.0471975512,0.02,-0.1\nb.png,64,48,0.9,0,0.3\n"
    folder = tmp_path / "sets"
    for name in PUBLISHED:
        write_set(folder / name, "images.csv", header + rows)
    write_set(folder / "openpano", "test.csv", header + rows, pictures="test")
    (folder / "openpano" / "train.csv").write_text(header + rows)
    (folder / "notes").mkdir()
    return folder


def test_a_folder_of_sets(sets: Path) -> None:
    found = find_sets(sets)
    assert [dataset_name(path) for path in found] == sorted([*PUBLISHED, "openpano-test"])
    first, second = read_dataset(found[0])
    assert first.vfov_deg == pytest.approx(60)
    assert (first.roll_deg, first.pitch_deg) == pytest.approx(np.rad2deg([0.02, -0.1]))
    assert second.image.is_file()
    # What is a set, or nothing, is left to be read or refused.
    for path in (sets / "lamar2k", sets / "notes", sets / "lamar2k" / "images.csv", sets / "no"):
        assert find_sets(path) == [path]


def test_the_table_of_the_paper(
    sets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "save_plots", lambda report, out: {})
    monkeypatch.setattr(commands, "worst_cases", lambda report: [])
    calibrator = FakeCalibrator(lambda _: answer(62.0, roll_deg=1.0))
    plan = Plan([sets], methods=["manhattan", "lines", "ours"])
    text = commands.run(calibrator, plan, tmp_path / "out").markdown
    for name in PUBLISHED:
        table = text.split(f"{name}: methods")[1].split("\n\n")[1]
        labels = [line.split("|")[1].strip() for line in table.splitlines()[2:]]
        assert labels[:4] == [
            "level, 28 mm",
            *(METHODS[word].label for word in plan.methods),
        ]
        assert labels[4:] == [
            f"{quoted} †"
            for quoted in (
                *("DeepCalib*", "Perceptual", "CTRL-C", "MSCC", "ParamNet", "ParamNet*"),
                *("SVA", "UVP", "GeoCalib*"),
            )
        ]
    # Noise has no straight lines: all photographs fail, which is said, and the others are done.
    assert "| vanishing points at right angles | 2, 2 failed" in text
    assert "inf (0/0/0)" in text
    asked = {options["lines"] for options in calibrator.options}
    assert asked == {"off", "only", "auto"}
    assert "openpano-test: methods" in text


def test_baselines_without_weights_leave_the_others_alone(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "town", "gt.csv", HEADER + "a.png,64,48,0,0,60\n")
    calibrator = FakeCalibrator(lambda _: answer(62.0))
    nowhere = Plan([folder], methods=["lines", "deepcalib", "ours"])
    text = commands.run(calibrator, nowhere).markdown.split("town: methods")[1]
    labels = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("|")]
    assert labels[3:] == ["lines alone", "DeepCalib ‡ (no weights)", "fields and lines"]
    assert "‡ deepcalib has no weights: train it (docs/training.md)" in text
    made = replace(nowhere, baselines=Baselines(tmp_path))
    (tmp_path / "deepcalib.safetensors").write_text("damaged, as it were")
    text = commands.run(calibrator, made).markdown
    assert f"‡ {tmp_path / 'deepcalib.safetensors'} is neither a safetensors file" in text


def test_the_prior_is_for_photographs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Crops of panoramas, of any field of view alike, are not asked about with it."""
    monkeypatch.setattr(methods, "LARGE", "larger-than-any")
    calibrator = FakeCalibrator(lambda _: answer(62.0))
    for name, header, cell in (("town", HEADER, ""), ("crops", f"panorama,{HEADER}", "p,")):
        write_set(tmp_path / name, "gt.csv", f"{header}{cell}a.png,64,48,0,0,60\n")
    plan = Plan([tmp_path / "crops", tmp_path / "town"], methods=["ours", "prior", "large"])
    crops, town = commands.run(calibrator, plan).markdown.split("town: methods")
    assert METHODS["prior"].label in town
    assert METHODS["prior"].label not in crops.split("crops: methods")[1]
    asked = [(options["lines"], options.get("prior", "none")) for options in calibrator.options]
    assert sorted(asked) == sorted([("off", "none"), ("auto", "none")] * 2 + [("auto", "photos")])
    # Weights that are not there are said to be missing.
    assert f"| {METHODS['large'].label} (no weights) | -" in town


class Knows(nn.Module):
    """Answers the parameters of one camera, whatever it sees."""

    def __init__(self, camera: Camera, gravity: Tensor) -> None:
        super().__init__()
        self.values = parameters_of(camera, gravity)

    def forward(self, image: Tensor) -> Regressed:
        assert image.shape[2] % 32 == image.shape[3] % 32 == 0
        return Regressed(None, self.values)  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [(140, 96), (64, 300)])
@pytest.mark.parametrize("model", ["pinhole", "simple_radial", "radial", "ucm"])
def test_a_network_that_answers_itself(tmp_path: Path, size: tuple[int, int], model: str) -> None:
    """Answers are for the whole photograph, of which the network may see the middle alone."""
    picture = save_picture(tmp_path / "a.png", size)
    gravity = from_roll_pitch(torch.tensor([0.2]), torch.tensor([-0.3]))
    truth = Camera.create("simple_radial", 180.0, size, torch.tensor([[-0.1]]))
    card = replace(CARD, short_side=64)
    view = prepare(read_photo(picture), InputSpec(64)).view
    network = Knows(view.to_input(truth, (64, 64)), gravity)
    method = Direct(network, card, torch.device("cpu"))  # type: ignore[arg-type]
    found, failed = method.calibrate([picture, tmp_path / "gone.png"], model)
    assert isinstance(failed, Failure)
    assert isinstance(found, Calibration)
    assert found.image == str(picture)
    assert (found.width, found.height) == size
    assert (found.cx, found.cy) == (0.5 * size[0], 0.5 * size[1])
    assert found.fy == pytest.approx(180, rel=1e-5)
    assert (found.roll_deg, found.pitch_deg) == pytest.approx(np.rad2deg([0.2, -0.3]), rel=1e-5)
    distortion = {"simple_radial": [-0.1], "radial": [-0.1, 0.0]}.get(model, [])
    assert list(found.distortion) == pytest.approx(distortion, rel=1e-4)


def test_cli_names_are_those_of_the_methods() -> None:
    assert get_args(command.METHODS) == tuple(METHODS)
