"""The calibrations of a video from those of its frames."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from clips import HEIGHT, WIDTH, seen
from geocalib.errors import FormatError, OutputError
from geocalib.result.calibration import Calibration, Failure, Outcome
from geocalib.video import plot, records
from geocalib.video.motion import GravityEstimate
from geocalib.video.track import Tracked, Tracker, combined, lens_of

FAILED = Failure(None, WIDTH, HEIGHT, "nothing to see")


def tracked(*outcomes: Outcome) -> Tracker:
    tracker = Tracker()
    for k, outcome in enumerate(outcomes):
        tracker.add(k, k / 10, outcome)
    return tracker


def wobble(count: int, vfov_deg: float = 60.0) -> list[Calibration]:
    generator = np.random.default_rng(0)
    noise = generator.standard_normal((count, 2)).tolist()
    return [seen(3 + 0.2 * a, vfov_deg=vfov_deg + b) for a, b in noise]


def answer(frame: Tracked) -> Calibration:
    assert frame.smoothed is not None
    return frame.smoothed


def test_one_lens_and_a_steady_gravity() -> None:
    frames = tracked(*wobble(30)).smoothed()
    assert {frame.status for frame in frames} == {"ok"}
    assert len({answer(frame).vfov_deg for frame in frames}) == 1
    assert answer(frames[0]).vfov_deg == pytest.approx(60, abs=0.5)
    assert all(abs(answer(frame).roll_deg - 3) < 0.2 for frame in frames)


def test_online_answers_rest_on_the_past() -> None:
    outcomes = wobble(12)
    tracker, other = Tracker(), Tracker()
    first = [tracker.add(k, k / 10, outcome) for k, outcome in enumerate(outcomes)]
    second = [other.add(k, k / 10, outcome) for k, outcome in enumerate(outcomes[:6])]
    assert [answer(f) for f in first[:6]] == [answer(f) for f in second]


def test_failed_frames_are_filled_in() -> None:
    outcomes: list[Outcome] = [FAILED, *wobble(10)]
    outcomes[5] = FAILED
    frames = tracked(*outcomes).smoothed()
    assert [k for k, frame in enumerate(frames) if frame.status == "failed"] == [0, 5]
    assert answer(frames[5]).roll_deg == pytest.approx(3, abs=0.3)


def test_nothing_but_failures() -> None:
    frames = tracked(FAILED, FAILED).smoothed()
    assert [frame.smoothed for frame in frames] == [None, None]


def test_outliers_do_not_pull() -> None:
    outcomes = wobble(20)
    strange = [*outcomes[:10], seen(60.0, vfov_deg=20.0), *outcomes[11:]]
    frames = tracked(*strange).smoothed()
    assert [k for k, frame in enumerate(frames) if frame.status == "outlier"] == [10]
    assert answer(frames[10]).roll_deg == pytest.approx(3, abs=0.3)
    assert answer(frames[10]).vfov_deg == pytest.approx(60, abs=0.6)


def test_a_zoom_starts_a_segment() -> None:
    frames = tracked(*wobble(12), *wobble(12, vfov_deg=35.0)).smoothed()
    assert [frame.segment for frame in frames] == [0] * 12 + [1] * 12
    assert answer(frames[-1]).vfov_deg == pytest.approx(35, abs=1)
    assert answer(frames[0]).vfov_deg == pytest.approx(60, abs=1)
    assert all(abs(answer(frame).roll_deg - 3) < 0.3 for frame in frames)


def test_a_lens_that_is_known_stays() -> None:
    known = seen()
    known = replace(known, parameters=known.parameters[:2], covariance=known.covariance[:2, :2])
    frames = tracked(*[known] * 5).smoothed()
    assert {frame.status for frame in frames} == {"ok"}
    assert answer(frames[0]).cameras.f == known.cameras.f
    assert answer(frames[0]).sigma.vfov_deg == 0


@pytest.mark.parametrize("model", ["pinhole", "simple_radial", "kannala_brandt"])
def test_sigma_of_the_field_of_view(model: str) -> None:
    """Against samples of the lens."""
    frame = seen(model=model, sigma_log_f=0.002)
    lens = lens_of(frame)
    assert lens is not None
    pose = GravityEstimate(frame.gravity, 1e-4 * np.eye(2))
    found = combined(frame, lens, pose, "x")
    assert np.allclose(found.cameras.f, frame.cameras.f)
    assert found.sigma.pitch_deg == pytest.approx(math.degrees(0.01))
    generator = np.random.default_rng(0)
    draws = generator.standard_normal((4000, len(lens.mean)))
    values = lens.mean + 0.002 * draws
    camera = replace(
        frame.cameras,
        f=np.exp(values[:, 0]),
        distortion=values[:, 1:],
        c=np.broadcast_to(frame.cameras.c, (4000, 2)),
        size=np.broadcast_to(frame.cameras.size, (4000, 2)),
        aspect=np.broadcast_to(frame.cameras.aspect, (4000,)),
    )
    assert found.sigma.vfov_deg == pytest.approx(float(np.rad2deg(camera.vfov).std()), rel=0.06)


ORIGIN = {"request": {}, "photo": None}


class TestRecords:
    def test_round_trip(self, tmp_path: Path) -> None:
        frames = tracked(FAILED, *wobble(5)).smoothed()
        records.write(frames, tmp_path / "out.jsonl", ORIGIN)
        assert records.read(tmp_path / "out.jsonl") == frames

    def test_a_line_cut_short_is_mended(self, tmp_path: Path) -> None:
        path, frames = tmp_path / "out.jsonl", tracked(*wobble(3)).smoothed()
        records.write(frames, path, ORIGIN)
        path.write_bytes(path.read_bytes()[:-20])
        assert records.read(path) == frames[:2]
        with records.appending(path, ORIGIN) as append:
            append(frames[2])
        assert records.read(path) == frames

    def test_answers(self, tmp_path: Path) -> None:
        path, frames = tmp_path / "out.jsonl", tracked(*wobble(2), FAILED).smoothed()
        video = tmp_path / "clip.mp4"
        video.write_bytes(b"frames")
        request = {"camera_model": "pinhole"}
        assert records.answers(path, request, str(video)) == {}
        records.write(frames, path, records.origin_of(request, str(video)))
        found = {0: frames[0].raw, 1: frames[1].raw}
        assert records.answers(path, request, str(video)) == found
        with pytest.raises(OutputError, match="--camera-model pinhole there, --camera-model radia"):
            records.answers(path, {"camera_model": "radial"}, str(video))
        os.utime(video, (1, 1))  # Copied, say.
        assert records.answers(path, request, str(video)) == found
        video.write_bytes(b"others")
        with pytest.raises(OutputError, match=r"is of another video than .*clip\.mp4 is now"):
            records.answers(path, request, str(video))

    @pytest.mark.parametrize("line", ["{}", "[1]", "nonsense", '{"schema": "geocalib/1"}'])
    def test_other_files(self, tmp_path: Path, line: str) -> None:
        (tmp_path / "other.jsonl").write_text(line + "\n")
        with pytest.raises(FormatError, match=r"other\.jsonl, line 1"):
            records.read(tmp_path / "other.jsonl")


def test_plot_shows_everything() -> None:
    outcomes = [*wobble(12), *wobble(12, vfov_deg=35.0)]
    frames = tracked(FAILED, *outcomes[:5], seen(70.0), *outcomes[5:]).smoothed()
    figure = plot.draw(frames, "clip")
    assert [axes.get_ylabel() for axes in figure.axes] == [
        "roll, degrees",
        "pitch, degrees",
        "vFoV, degrees",
    ]
    dots, left_out, line, *zoom = figure.axes[0].get_lines()
    assert len(dots.get_xdata()) == 24
    assert len(left_out.get_xdata()) == 2
    assert list(line.get_ydata()) == pytest.approx([answer(frame).roll_deg for frame in frames])
    assert len(zoom) == 1
