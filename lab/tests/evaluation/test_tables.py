"""What a report says, to people and to programs."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from calibrations import FAILURE
from geocalib.result.calibration import Outcome
from geocalib_lab.evaluation import uncertainty
from geocalib_lab.evaluation.constant import CONSTANT, constant_report
from geocalib_lab.evaluation.datasets import Sample
from geocalib_lab.evaluation.quoted import KINDS, quoted
from geocalib_lab.evaluation.report import Report, leak
from geocalib_lab.evaluation.run import evaluate
from geocalib_lab.evaluation.studies import Study
from geocalib_lab.evaluation.table import Table
from geocalib_lab.evaluation.tables import (
    error_tables,
    leak_table,
    markdown,
    study_table,
    write_csv,
    write_json,
)
from known_photos import FakeCalibrator, answer, by_name, sample


def report_of(pairs: list[tuple[Sample, Outcome]], name: str = "town") -> Report:
    samples = [pair[0] for pair in pairs]
    answers = {s.image.name: outcome for s, outcome in pairs}
    return evaluate(FakeCalibrator(by_name(answers)), samples, name=name)


@pytest.fixture
def town() -> Report:
    return report_of(
        [
            (sample("a.png", magnification=1.0), answer(63.0, roll_deg=0.5)),
            (sample("b.png", magnification=9.0), answer(60.9, roll_deg=3.0)),
        ]
    )


@pytest.fixture
def bent() -> Report:
    return report_of(
        [
            (sample("a.png", k1=-0.2, vfov_deg=90.0), answer(90.0, k1=-0.15)),
            (sample("b.png", k1=None, vfov_deg=None), answer(k1=0.0)),
            (sample("c.png", k1=0.1), FAILURE),
        ],
        "bent",
    )


def cells(text: str, *start: str) -> list[str]:
    """The cells of the line of a table that begins with these, the constant answer's apart."""
    lines = [[cell.strip() for cell in line.strip("| \n").split("|")] for line in text.splitlines()]
    (found,) = [
        line for line in lines if line[: len(start)] == list(start) and CONSTANT not in line
    ]
    return found


def test_angles(town: Report) -> None:
    line = cells(markdown(error_tables([town])), "town", "pinhole")
    # Roll errors 0.5 and 3: the areas of the metric's own example.
    assert line[2:6] == ["2", "0", "fake", "1.75 (50/80/90)"]
    assert line[-2:] == ["1.95 (50/80/90)", "+1.95"]


def test_the_constant_answer_is_the_first_row_of_every_table(town: Report, bent: Report) -> None:
    study = Study("town: told", "known", (("nothing", town),))
    for table in (*error_tables([town]), study_table(study)):
        if "Sigmas" not in table.title:
            assert CONSTANT in table.rows[0]
    first = error_tables([town])[0].rows[0]
    # 64x48 pixels have a diagonal of 80, so that 28 mm are 51.8 of them: 49.7 degrees.
    assert first[:6] == ["town", "pinhole", "2", "0", CONSTANT, "0.00 (100/100/100)"]
    assert first[-1] == "-10.26"
    # Distortion that is always 0.
    errors = constant_report(bent).errors
    np.testing.assert_allclose(errors["k1"], [0.2, np.nan, 0.1])
    assert errors.keys() == bent.errors.keys()


def test_rows_that_others_measured() -> None:
    town = report_of([(sample("a.png"), answer())], "lamar2k")
    study = Study("m", "method", (("ours", town),), kinds=KINDS, quoted=quoted("lamar2k"))
    table = study_table(study)
    assert [row[0] for row in table.rows][:2] == [CONSTANT, "ours"]
    by_label = {row[0]: row for row in table.rows}
    assert by_label["MSCC †"] == [
        "MSCC †",
        "-",
        "1.44 (40/61/73)",
        "3.02 (21/42/56)",
        "14.78 (3/8/17)",
    ]
    assert by_label["SVA †"][2] == "- (9/9/10)"
    assert quoted("our own photos") == []


def test_only_tables_that_have_something_to_say(town: Report, bent: Report) -> None:
    assert "k1 = 0" not in markdown(error_tables([town]))
    assert "magnification" in markdown(error_tables([town]))
    assert "magnification" not in markdown(error_tables([bent]))


def test_distortion_and_failures(bent: Report) -> None:
    text = markdown(error_tables([bent]))
    assert cells(text, "bent", "simple_radial")[2:4] == ["3", "1"]
    # The failure's error is infinite, and so is the median of the two with a truth.
    assert cells(text, "bent", "fake")[2:4] == ["inf", "inf"]
    # The answer 0 has (0.2 + 0.1) / 2 and (0.8 + 0.1 * (2 tan 30)^2) / 2.
    assert cells(text, "bent", "k1 = 0")[2:4] == ["0.150", "0.4667"]
    # One of two has an answer, and no pixel of 64x48 is misplaced by much.
    assert cells(text, "bent", "fake")[-1] == "50.0"


def test_sigmas() -> None:
    report = report_of([(sample(f"{i}.png"), answer(roll_deg=float(i))) for i in range(12)])
    line = cells(markdown(error_tables([report])), "town", "gravity")
    # Rolls 0..11 with a sigma of 1, and 12 pitches that are exact.
    assert line[2:6] == ["24", "58%", "62%", "67%"]
    assert float(line[6]) == pytest.approx(3.7, abs=0.05)


def test_truth_that_was_measured_is_compared_by_both_sigmas() -> None:
    rng = np.random.default_rng(0)
    pairs = []
    for number in range(400):
        # Answers with a sigma of 1 beside labels with one of 2.
        pitch, label = rng.normal(0, 1), rng.normal(0, 2)
        truth = sample(f"{number}.png", pitch_deg=label, pitch_sigma_deg=2.0)
        pairs.append((truth, answer(pitch_deg=pitch)))
    report = report_of(pairs)
    (table,) = (t for t in error_tables([report]) if "measured" in t.title)
    (row,) = table.rows
    cells = dict(zip(table.header, row, strict=True))
    assert (row[1], cells["σ of the truth °"], cells["σ stated °"]) == ("pitch", "2.00", "1.00")
    assert float(cells["68% by both σ (1)"]) == pytest.approx(1, abs=0.1)
    assert float(cells["68% °"]) == pytest.approx(np.sqrt(5), rel=0.1)
    assert uncertainty.deviations(report.samples, report.outcomes)["gravity"].within(1) > 0.65


def test_magnifications(town: Report) -> None:
    assert cells(markdown(error_tables([town])), "town", "below 1")[2] == "1"
    assert cells(markdown(error_tables([town])), "town", "above 1.5")[-1] == "0.90 (100/100/100)"


def test_leak(town: Report) -> None:
    soft = report_of([(s, answer(58.0)) for s in town.samples])
    text = leak_table([(town, 160, leak(town, soft))]).markdown()
    assert cells(text, "town") == ["town", "160", "-3.95", "3.95", "0%"]


def test_splits(town: Report) -> None:
    (angles, _, by) = error_tables([town], split_by=["vfov"])
    assert angles.rows[0][2] == by.rows[0][2] == "2"
    assert by.rows[0][:2] == ["town", "50 to 70°"]


def test_studies(town: Report, tmp_path: Path) -> None:
    study = Study("town: told", "known", (("nothing", town), ("all", town)))
    text = study_table(study).markdown()
    assert text.startswith("town: told: median error")
    assert cells(text, "all") == ["all", "2", "1.75 (50/80/90)", "1.95 (50/80/90)"]
    write_json(town, tmp_path / "town.json", ["vfov"], [study])
    content = json.loads((tmp_path / "town.json").read_text())
    assert content["studies"]["town: told"]["all"] == content["summary"]
    assert content["by_vfov"]["50 to 70°"]["photos"] == 2


def test_html_of_a_table() -> None:
    html = Table("a < b", ["x", "y"], [["1", "&"]]).html()
    root = ElementTree.fromstring(f"<div>{html}</div>")
    assert root.findtext("h3") == "a < b"
    assert [cell.text for cell in root.iter("td")] == ["1", "&"]
    assert [cell.text for cell in root.iter("th")] == ["x", "y"]


def test_json(town: Report, bent: Report, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    write_json(town, file)
    content = json.loads(file.read_text())
    assert content["summary"]["roll_median"] == pytest.approx(1.75)
    assert content["by_magnification"]["below 1"]["photos"] == 1
    assert content["within_sigmas"]["gravity"] == [0.75, 0.75, 1.0]
    assert [line["image"] for line in content["images"]] == ["a.png", "b.png"]
    write_json(bent, file)
    content = json.loads(file.read_text(), parse_constant=pytest.fail)
    assert content["failed"] == 1
    assert content["images"][2]["vfov_error"] is None
    assert content["images"][2]["error"] == FAILURE.error
    assert content["images"][0]["k1"] == pytest.approx(-0.15)


def test_csv(bent: Report, tmp_path: Path) -> None:
    file = tmp_path / "report.csv"
    write_csv(bent, file)
    with file.open(newline="") as stream:
        first, second, third = csv.DictReader(stream)
    assert float(first["k1_hat_error"]) == pytest.approx(0.2)
    assert float(first["sigma_k1"]) == pytest.approx(0.1)
    # Unknown truth, and no answer.
    assert (second["true_vfov_deg"], second["vfov_error"]) == ("", "")
    assert (third["vfov_error"], third["vfov_deg"], third["status"]) == ("inf", "", "failed")
