"""Errors of known answers to known truths."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from calibrations import FAILURE
from geocalib.errors import ConfigError
from geocalib.imaging import ImageSource, read_photo
from geocalib.pipeline.runs.journal import Journal
from geocalib_lab.evaluation.report import leak, measure
from geocalib_lab.evaluation.run import CHUNK, Setting, blurred, evaluate
from known_photos import FakeCalibrator, answer, by_name, sample, save_picture


def test_errors_of_each_photograph() -> None:
    samples = [
        sample("a.png", roll_deg=1.0, vfov_deg=50.0),
        sample("b.png"),
        sample("c.png", roll_deg=None),
        sample("d.png", vfov_deg=None),
    ]
    calibrator = FakeCalibrator(
        by_name(
            {
                "a.png": answer(53.0, roll_deg=3.0),
                "b.png": FAILURE,
                "c.png": answer(58.0),
                "d.png": answer(pitch_deg=-4.0),
            }
        )
    )
    count = []
    report = evaluate(calibrator, samples, done=lambda: count.append(1))
    assert (len(report), report.failed, len(count)) == (4, 1, 4)
    assert calibrator.calls == [(4, "pinhole")]
    nan, inf = math.nan, math.inf
    np.testing.assert_allclose(report.errors["roll"], [2, inf, nan, 0], atol=1e-9)
    np.testing.assert_allclose(report.errors["pitch"], [0, inf, nan, 4], atol=1e-9)
    np.testing.assert_allclose(report.errors["gravity"], [2, inf, nan, 4], atol=1e-9)
    np.testing.assert_allclose(report.errors["vfov"], [3, inf, 2, nan], atol=1e-9)
    # Of three with a truth one has no answer; the mean recall up to 5 degrees is by hand:
    # 1/3 at 0..1, rising to 2/3 at 2 for roll.
    summary = report.summary()
    assert summary["roll_median"] == pytest.approx(2)
    assert summary["roll_auc1"] == pytest.approx(100 / 3)
    assert summary["roll_auc5"] == pytest.approx(100 * (1 / 3 + 1 / 2 + 2) / 5)
    assert report.vfov_bias_deg() == pytest.approx(0.5)  # of +3 and -2
    assert "k1_hat_median" not in summary


def test_distortion_beside_a_method_that_finds_none() -> None:
    truth = sample(k1=-0.2, vfov_deg=90.0)
    calibrator = FakeCalibrator(by_name({"a.png": answer(90.0, k1=-0.15)}))
    report = evaluate(calibrator, [truth])
    assert calibrator.calls == [(1, "simple_radial")]
    # H / f is 2 at 90 degrees.
    assert report.errors["k1_hat"] == pytest.approx([0.05 * 4])
    assert report.errors["k1_hat_of_none"] == pytest.approx([0.2 * 4])
    assert report.errors["k1"] == pytest.approx([0.05])
    assert report.errors["pixels_of_none"] == pytest.approx(4 * report.errors["pixels"])
    # By hand: the median of one is itself, and recall is all or nothing.
    summary, pixels = report.summary(), report.errors["pixels"].item()
    assert summary["k1_of_none_median"] == pytest.approx(0.2)
    assert summary["pixels_median"] == pytest.approx(pixels)
    shares = [summary[f"pixels_recall{threshold}"] for threshold in ("0.5", "1", "3", "5")]
    assert shares == [100.0 if pixels <= threshold else 0.0 for threshold in (0.5, 1, 3, 5)]


def test_failures_and_unknown_truths_of_distortion() -> None:
    failed = measure(sample(k1=0.1), FAILURE, "simple_radial")
    assert failed["k1_hat"] == failed["pixels"] == math.inf
    assert 0 < failed["k1_hat_of_none"] < 1
    unknown = measure(sample(), answer(k1=0.1), "simple_radial")
    assert math.isnan(unknown["k1_hat"])
    assert math.isnan(unknown["pixels_of_none"])
    assert "k1_hat" not in measure(sample(k1=0.1), answer(), "pinhole")


def test_a_given_model_is_fitted_whatever_the_truth_says() -> None:
    calibrator = FakeCalibrator(lambda _: answer())
    assert evaluate(calibrator, [sample(k1=0.1)], "pinhole").camera_model == "pinhole"
    assert calibrator.calls == [(1, "pinhole")]


def test_many_photographs_come_in_chunks() -> None:
    calibrator = FakeCalibrator(lambda _: answer())
    evaluate(calibrator, [sample()] * (2 * CHUNK + 1))
    assert [count for count, _ in calibrator.calls] == [CHUNK, CHUNK, 1]


def test_classes_of_magnification() -> None:
    """The pictures are 48 pixels high and the network sees 24, so half is left of each."""
    magnifications = [1.0, 2.0, 2.98, 3.0, None]
    samples = [
        sample(magnification=value, vfov_deg=60.0 + i) for i, value in enumerate(magnifications)
    ]
    report = evaluate(FakeCalibrator(lambda _: answer(60.0)), samples)
    classes = {name: chosen.tolist() for name, chosen in report.split("magnification").items()}
    assert classes == {
        "below 1": [True, False, False, False, False],
        "1 to 1.5": [False, True, True, False, False],
        "above 1.5": [False, False, False, True, False],
    }
    chosen = report.split("magnification")["1 to 1.5"]
    assert report.summary(chosen)["vfov_median"] == pytest.approx(1.5)
    assert evaluate(FakeCalibrator(lambda _: answer()), [sample()]).split("magnification") == {}


def test_blur_takes_detail_and_nothing_else(tmp_path: Path) -> None:
    x = np.linspace(0, 2 * np.pi, 128)
    smooth = 127 + 100 * np.sin(x)[None] * np.ones((96, 1))
    stripes = 50 * (-1.0) ** np.arange(128)[None]
    picture = np.repeat((smooth + 0.5 * stripes)[..., None], 3, -1).round().astype(np.uint8)
    file = tmp_path / "photo.png"
    Image.fromarray(picture).save(file)
    soft = blurred(file, 24)
    assert soft.size == (128, 96)
    inner = slice(8, -8)
    difference = np.asarray(soft, float)[:, inner, 0] - smooth[:, inner]
    assert np.abs(difference).max() < 4
    np.testing.assert_array_equal(np.asarray(blurred(file, 96)), picture)


def by_sharpness(image: ImageSource) -> object:
    """A network that takes what is sharp for wide."""
    grey = read_photo(image, short_side=None).pixels.mean(-1)
    return answer(80.0 if np.diff(grey).std() > 40 else 60.0, sigmas_deg=(1, 1, 5))


def test_leak_of_sharpness(tmp_path: Path) -> None:
    files = [save_picture(tmp_path / f"{i}.png", seed=i) for i in range(3)]
    samples = [sample(str(file)) for file in files]
    leaky = FakeCalibrator(by_sharpness)  # type: ignore[arg-type]
    sharp, soft = evaluate(leaky, samples), evaluate(leaky, samples, setting=Setting(blur=8))
    moved = leak(sharp, soft)
    assert moved.median_shift_deg == pytest.approx(-20)
    assert moved.median_change_deg == pytest.approx(20)
    assert moved.within_sigma == 0
    assert leak(sharp, sharp).within_sigma == 1


def test_blurring_what_cannot_be_read_leaves_it_to_the_calibrator(tmp_path: Path) -> None:
    seen: list[ImageSource] = []
    broken = sample(str(tmp_path / "gone.png"))
    rule = FakeCalibrator(lambda image: seen.append(image) or FAILURE)
    report = evaluate(rule, [broken], setting=Setting(blur=8))
    assert report.failed == 1
    assert seen == [broken.image]
    with pytest.raises(ConfigError, match="no photograph has an answer"):
        leak(report, report)


def test_nonsense_is_refused() -> None:
    calibrator = FakeCalibrator(lambda _: answer())
    with pytest.raises(ConfigError, match="nothing to evaluate"):
        evaluate(calibrator, [])
    with pytest.raises(ConfigError, match="blur is 0"):
        Setting(blur=0)
    with pytest.raises(ConfigError, match="no fit of 0 images"):
        Setting(images_per_fit=0)
    with pytest.raises(ConfigError, match="3 photographs are not made of fits of 2"):
        evaluate(calibrator, [sample()] * 3, setting=Setting(images_per_fit=2))


def test_classes_of_scenes_and_fields_of_view() -> None:
    truths = [("indoor", 25.0), ("street", 89.0), (None, 90.0), ("indoor", None)]
    samples = [sample(scene=scene, vfov_deg=vfov) for scene, vfov in truths]
    report = evaluate(FakeCalibrator(lambda _: answer()), samples)
    scenes = {name: chosen.tolist() for name, chosen in report.split("scene").items()}
    assert scenes == {"indoor": [True, False, False, True], "street": [False, True, False, False]}
    vfovs = {name: chosen.nonzero()[0].tolist() for name, chosen in report.split("vfov").items()}
    assert vfovs == {"below 30°": [0], "70 to 90°": [1], "above 90°": [2]}


def test_what_is_told_is_the_truth(tmp_path: Path) -> None:
    """In pixels of the picture, which is half as large as its table says."""
    picture = save_picture(tmp_path / "a.png", (32, 24))
    truth = sample(str(picture), roll_deg=90.0, vfov_deg=90.0)
    calibrator = FakeCalibrator(lambda _: answer())
    evaluate(calibrator, [truth], setting=Setting("gravity"))
    evaluate(calibrator, [truth], setting=Setting("focal"))
    told, focal = calibrator.options
    np.testing.assert_allclose(told["gravity"], [[1, 0, 0]], atol=1e-9)
    assert focal["focal"] == pytest.approx([12.0])
    evaluate(calibrator, [truth], setting=Setting("both"))
    assert calibrator.options[-1].keys() >= {"gravity", "focal"}
    # 12 pixels are 12.98 mm of film, for a diagonal of 40.
    report = evaluate(calibrator, [truth], setting=Setting("exif"))
    exif = calibrator.options[-1]["focal"]
    assert exif.value == pytest.approx([13 * 40 / 43.2666], rel=1e-4)
    assert 0.03 < exif.sigma[0] / exif.value[0] < 0.1
    assert report.seconds is not None
    # What no file tells of its lens is anything but sure: this one is a strip.
    strip = save_picture(tmp_path / "b.png", (96, 24))
    evaluate(calibrator, [replace(truth, image=strip, width=192)], setting=Setting("exif"))
    exif = calibrator.options[-1]["focal"]
    assert exif.sigma[0] > 1000 * exif.value[0]
    with pytest.raises(ConfigError, match="not known, so it cannot be given"):
        evaluate(calibrator, [sample(roll_deg=None)], setting=Setting("gravity"))
    with pytest.raises(ConfigError, match="not a focal length of kannala_brandt"):
        evaluate(calibrator, [truth], "kannala_brandt", Setting("focal"))


def test_fits_of_several_stay_together() -> None:
    calibrator = FakeCalibrator(lambda _: answer())
    evaluate(calibrator, [sample()] * 24, setting=Setting(images_per_fit=3))
    assert [count for count, _ in calibrator.calls] == [15, 9]
    groups = [0, 0, 0, 1, 1, 1, 2, 2, 2]
    # Files, and what photographs are like, would tell what is to be found out.
    unheard = {"exif": False, "prior": "none", "sensors": False}
    expected = {"shared_intrinsics": groups, "lines": "off", **unheard}
    assert calibrator.options[1] == expected


def test_an_interrupted_run_goes_on(tmp_path: Path) -> None:
    samples = [sample(f"{i}.png") for i in range(CHUNK + 2)]
    patience = [CHUNK + 1]
    seen: list[str] = []

    def rule(image: ImageSource) -> object:
        if len(seen) >= patience[0]:
            raise KeyboardInterrupt
        seen.append(Path(str(image)).name)
        return FAILURE if seen[-1] == "3.png" else answer(61.0)

    calibrator = FakeCalibrator(rule)  # type: ignore[arg-type]
    journal = Journal(tmp_path / "new" / "journal.jsonl", {"weights": "fake"})
    with pytest.raises(KeyboardInterrupt):
        evaluate(calibrator, samples, journal=journal)
    seen.clear()
    patience[0] = 1000
    count = []
    report = evaluate(calibrator, samples, journal=journal, done=lambda: count.append(1))
    # What failed is tried again, what is done is not.
    assert seen == ["3.png", f"{CHUNK}.png", f"{CHUNK + 1}.png"]
    assert (report.failed, len(count)) == (1, CHUNK + 2)
    np.testing.assert_allclose(np.delete(report.errors["vfov"], 3), 1, atol=1e-9)
    # Of those that are fitted together, all are done or none.
    (line, *_) = journal.path.read_text().splitlines()
    journal.path.write_text(line + "\n")
    seen.clear()
    evaluate(calibrator, samples, setting=Setting(images_per_fit=2), journal=journal)
    assert seen == [s.image.name for s in samples]
