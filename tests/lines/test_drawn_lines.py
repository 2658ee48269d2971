"""Lines that a person draws: the answer follows them, as surely as it says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from streets import SIZE, camera_of, gravity_of, headings_of
from typer.testing import CliRunner

from calibrations import one
from geocalib import Calibration, Calibrator, DrawnLine, Options
from geocalib.arrays import Array
from geocalib.cli.app import app
from geocalib.errors import ConfigError, GeoCalibError
from geocalib.formats import csv_table, json_lines
from geocalib.geometry import gravity as sphere
from geocalib.geometry.drawn import END, parse_line
from geocalib.geometry.gravity import angle_between
from geocalib.lines.drawn import follow
from geocalib.result.trust import disagreements

TOWN = Path(__file__).parents[2] / "examples/town.jpg"
SIGMAS = {"roll direction": 0.05, "pitch direction": 0.05, "log f": 0.15}
"""Of a network that hardly knows."""


def network(truth: Calibration, rng: np.random.Generator | None = None) -> Calibration:
    """What a network that is as sure as ``SIGMAS`` says of a camera."""
    names = tuple(SIGMAS)
    off = np.zeros(3) if rng is None else rng.normal(size=3) * list(SIGMAS.values())
    camera = replace(truth.cameras, f=truth.cameras.f * np.exp(off[2]))
    gravity = sphere.move(truth.gravity, off[:2])
    covariance = np.diag(np.square(list(SIGMAS.values())))
    return replace(
        truth, cameras=camera, gravity=gravity, covariance=covariance, parameters=names
    ).moved(camera, gravity, covariance)


def truth_of(model: str = "pinhole", roll: float = 4.0, pitch: float = -12.0) -> Calibration:
    camera = camera_of(model)
    gravity = gravity_of(roll, pitch)
    return replace(one(model), cameras=camera, gravity=gravity)


def edge(
    truth: Calibration,
    direction: Array,
    start: tuple[float, float],
    kind: str = "up",
    to: int | None = None,
) -> DrawnLine:
    """An edge along a direction of the world that begins at a place of the picture."""
    ray, _ = truth.cameras.unproject(np.array([start], np.float64))
    for length in (0.8, -0.8, 0.5, -0.5, 0.25, -0.25, 0.1, -0.1):
        end, valid = truth.cameras.project(ray + length * direction)
        if valid.all() and ((end >= 0) & (end <= truth.cameras.size)).all():
            return DrawnLine(*start, *end[0].tolist(), kind, to)
    raise AssertionError(f"no edge from {start} stays in the picture")


def horizon_of(truth: Calibration) -> DrawnLine:
    (x0, y0), (x1, y1) = truth.horizon()[[0, -1]].tolist()
    return DrawnLine(x0, y0, x1, y1, "horizon")


def everything(truth: Calibration) -> list[DrawnLine]:
    """Two upright edges, two that are level and parallel, and two of another heading."""
    g, (one_way, other) = truth.gravity, headings_of(truth.gravity, [30, 120])
    return [
        edge(truth, g, (150.0, 300.0)),
        edge(truth, g, (850.0, 400.0)),
        edge(truth, one_way, (300.0, 150.0), "level"),
        edge(truth, one_way, (350.0, 600.0), "parallel", to=3),
        edge(truth, other, (600.0, 200.0), "level"),
        edge(truth, other, (650.0, 650.0), "parallel", to=5),
    ]


def shaken(lines: Sequence[DrawnLine], rng: np.random.Generator) -> list[DrawnLine]:
    """As an unsteady hand draws them."""
    found = []
    for line in lines:
        x0, y0, x1, y1 = rng.normal((line.x0, line.y0, line.x1, line.y1), END * max(SIZE))
        found.append(replace(line, x0=x0, y0=y0, x1=x1, y1=y1, sigma_deg=1e-3))
    return found


def followed(network: Calibration, lines: Sequence[DrawnLine]) -> Calibration:
    (answer,) = follow([network], lines)
    assert isinstance(answer, Calibration)
    return answer


def off_deg(a: Calibration, b: Calibration) -> float:
    return math.degrees(angle_between(a.gravity, b.gravity).item())


@pytest.mark.parametrize("model", ["pinhole", "simple_radial", "kannala_brandt", "ucm"])
def test_true_lines_lead_to_the_true_camera(model: str) -> None:
    truth = truth_of(model)
    lines = [replace(line, sigma_deg=1e-3) for line in everything(truth)]
    start = network(truth, np.random.default_rng(1))
    answer = followed(start, lines)
    assert off_deg(start, truth) > 2
    assert off_deg(answer, truth) < 0.3
    assert abs(math.log(answer.fy / truth.fy)) < 0.25 * abs(math.log(start.fy / truth.fy))
    assert answer.sigma.gravity_deg < 0.35 * start.sigma.gravity_deg
    assert not disagreements(answer.drawn)


def test_the_answer_is_as_sure_as_it_says() -> None:
    rng, truth, squared = np.random.default_rng(2), truth_of(), []
    for _ in range(150):
        answer = followed(network(truth, rng), shaken(everything(truth), rng))
        turn = sphere.difference(
            answer.gravity, truth.gravity, sphere.tangent_basis(answer.gravity)
        )
        off = np.array([*turn, math.log(truth.fy / answer.fy)])
        squared.append(off @ np.linalg.solve(answer.covariance, off))
    # Of three unknowns: the mean of 150 has a sigma of 0.2.
    assert 2.3 < np.mean(squared) < 3.7


def test_one_line_moves_only_what_it_tells() -> None:
    truth = truth_of(roll=0.0, pitch=0.0)
    start = replace(network(truth), gravity=gravity_of(2.0, 1.5))
    middle = SIZE[0] / 2
    answer = followed(start, [DrawnLine(middle, 100.0, middle, 650.0, "up")])
    assert abs(answer.roll_deg) < 0.3
    assert abs(answer.pitch_deg - 1.5) < 0.1
    assert answer.sigma.pitch_deg > 0.95 * start.sigma.pitch_deg


def test_a_horizon_is_followed_however_far_it_is_dragged() -> None:
    truth = truth_of(roll=-8.0, pitch=20.0)
    sure = replace(network(truth), covariance=np.diag([0.01, 0.01, 0.1]) ** 2)
    start = replace(sure, gravity=gravity_of(3.0, 0.0))
    answer = followed(start, [horizon_of(truth)])
    assert abs(answer.roll_deg + 8) < 0.5
    assert off_deg(answer, truth) < 4  # As far as the focal length is wrong.
    assert "contradicts the picture" in disagreements(answer.drawn)[0].text
    assert answer.drawn[0].used


def test_a_level_line_alone_tells_nothing_and_says_so() -> None:
    truth = truth_of()
    start = network(truth, np.random.default_rng(5))
    answer = followed(start, [everything(truth)[2]])
    assert off_deg(answer, start) < 1e-6
    np.testing.assert_allclose(answer.covariance, start.covariance, rtol=1e-4, atol=1e-9)
    assert "draw one" in disagreements(answer.drawn)[0].text


def test_a_single_mistake_is_left_out_and_named() -> None:
    truth = truth_of()
    wrong = DrawnLine(100.0, 300.0, 700.0, 330.0, "up")
    for lines in ([wrong], [*everything(truth), wrong]):
        answer = followed(network(truth), lines)
        assert off_deg(answer, truth) < 0.5
        assert [check.used for check in answer.drawn] == [True] * (len(lines) - 1) + [False]
        (warning,) = disagreements(answer.drawn)
        assert warning.text.startswith(f"line {len(lines)} (up) contradicts")


def test_several_that_agree_outvote_a_network_that_is_sure_and_wrong() -> None:
    truth = truth_of(roll=0.0, pitch=-65.0)
    sure = replace(network(truth), covariance=np.diag([0.015, 0.015, 0.1]) ** 2)
    start = replace(sure, gravity=gravity_of(1.0, 5.0))
    lines = [edge(truth, truth.gravity, place) for place in ((100.0, 100.0), (900.0, 150.0))]
    lines.append(edge(truth, truth.gravity, (500.0, 100.0)))
    assert off_deg(followed(start, lines), truth) < 6


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (DrawnLine(0, 0, 0, 0), "line 1 is shorter than a pixel"),
        (DrawnLine(0, 0, math.nan, 5), "line 1 must have finite numbers"),
        (DrawnLine(0, 0, math.inf, 5), "line 1 must have finite numbers"),
        (DrawnLine(0, 0, 50, 5, "sideways"), "line 1 is 'sideways'; known: up, level"),
        (DrawnLine(0, 0, 50, 5, "parallel"), "line 1 must be parallel to a line before it"),
        (DrawnLine(0, 0, 50, 5, "parallel", 1), "line 1 must be parallel to a line before it"),
        (DrawnLine(0, 0, 50, 5, "up", 1), "line 1 is up, and parallel to none"),
        (DrawnLine(0, 0, 50, 5, sigma_deg=0), "line 1 must have a sigma above 0"),
        ((0, 0, 50, 5), "line 1 must be a DrawnLine"),
    ],
)
def test_nonsense_is_refused_in_one_sentence(line: DrawnLine, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as error:
        Options(lines=[line])
    assert "\n" not in str(error.value)


def test_what_drawn_lines_do_not_go_with() -> None:
    line = DrawnLine(0, 0, 50, 500)
    with pytest.raises(ConfigError, match="each hold drawn lines"):
        Options(lines=[line], drawn=[line])
    with pytest.raises(ConfigError, match="drop drawn"):
        Options(lines="only", drawn=[line])
    with pytest.raises(ConfigError, match="one photograph"):
        Options(drawn=[line], shared_intrinsics=True).check_set()


def test_a_photo_follows_and_its_record_comes_back(packaged: Calibrator, tmp_path: Path) -> None:
    plain = packaged.calibrate(TOWN, lines="off")
    lines = [DrawnLine(3, 450, 957, 350, "horizon"), DrawnLine(186, 142, 198, 515)]
    answer = packaged.calibrate(TOWN, lines=lines)
    assert answer.lines is not None
    alone = packaged.calibrate(TOWN, options=Options(lines="off", drawn=lines))
    assert alone.lines is None
    # Upright lines of the town have a roll of 6 degrees.
    assert abs(alone.roll_deg - 6) < abs(plain.roll_deg - 6)
    assert alone.sigma.vfov_deg < plain.sigma.vfov_deg
    assert [check.line for check in answer.drawn] == lines
    assert Calibration.from_json(answer.to_json()) == answer
    assert [check.line for check in Calibration.from_json(answer.to_json()).drawn] == lines
    for form, name in ((csv_table, "a.csv"), (json_lines, "a.jsonl")):
        form.write([answer], tmp_path / name)
        assert form.read(tmp_path / name) == [answer]


def test_lines_that_were_found_give_way_to_drawn_ones(packaged: Calibrator) -> None:
    # By these the camera leans to the other side than by all edges of the town.
    wrong = [DrawnLine(300, 100, 240, 600), DrawnLine(700, 100, 640, 600)]
    answer = packaged.calibrate(TOWN, lines=wrong)
    assert answer.lines is not None
    assert not answer.lines.verdict.used
    assert answer.roll_deg < -2
    assert all(check.used for check in answer.drawn)
    assert not answer.trusted


def test_a_horizon_is_followed_where_found_lines_allow_it(packaged: Calibrator) -> None:
    answer = packaged.calibrate(TOWN, lines=[DrawnLine(3, 600, 957, 500, "horizon")])
    points = answer.horizon()
    assert abs(np.interp(3, points[:, 0], points[:, 1]) - 600) < 25
    assert not answer.trusted


@pytest.mark.parametrize("orientation", [3, 6, 8])
def test_in_the_stored_frame_lines_lie_where_their_pixels_are(orientation: int) -> None:
    truth = replace(truth_of(), orientation=orientation)
    answer = followed(network(truth), everything(truth))
    stored = answer.in_frame("stored")
    again = followed(stored, [check.line for check in stored.drawn])
    # Lines of the turned picture suit the turned camera just as well.
    assert off_deg(again, stored) < 0.05
    there = stored.in_frame("upright").drawn
    for check, back in zip(answer.drawn, there, strict=True):
        np.testing.assert_allclose(
            (back.x0, back.y0, back.x1, back.y1), (check.x0, check.y0, check.x1, check.y1)
        )


def test_lines_belong_to_one_photo_and_lie_in_it(packaged: Calibrator) -> None:
    small = Image.new("RGB", (64, 48), "grey")
    with pytest.raises(ConfigError, match="drawn on one photograph"):
        packaged.calibrate([small, small], lines=[DrawnLine(1, 1, 1, 40)])
    with pytest.raises(ConfigError, match="drawn on one photograph"):
        packaged.calibrate_many([small], lines=[DrawnLine(1, 1, 1, 40)])
    with pytest.raises(GeoCalibError, match=r"line 1 ends at \(1, 400\), outside .* of 64x48 pix"):
        packaged.calibrate(small, lines=[DrawnLine(1, 1, 1, 400)])


def test_on_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "out.jsonl"
    asked = ["calibrate", str(TOWN), "--line", "186,142,198,515,up", "-o", str(file)]
    asked += ["--line", "100,300,400,240,level", "--line", "100,500,400,520,parallel,2"]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code in (0, None), result.output
    (answer,) = json_lines.read(file)
    assert isinstance(answer, Calibration)
    assert [(check.kind, check.to) for check in answer.drawn] == [
        ("up", None),
        ("level", None),
        ("parallel", 2),
    ]


@pytest.mark.parametrize(
    "text", ["1,2,3", "a,b,c,d,up", "1,2,3,4,up,x", "1,2,3,4,parallel,1,2", ""]
)
def test_a_line_that_is_none(text: str) -> None:
    with pytest.raises(ConfigError, match="line must be x0,y0,x1,y1,kind"):
        parse_line(text)
