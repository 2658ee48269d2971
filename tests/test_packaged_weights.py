"""The network that comes with the package: signs and noise, not how good it is."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from PIL import Image

from geocalib import Calibration, Calibrator, Camera
from geocalib.geometry.gravity import from_roll_pitch
from geocalib.pipeline.engines.load import EngineName
from geocalib.synthetic import render_scene

ANGLES = ((0.0, 0.0), (15.0, 0.0), (-15.0, 0.0), (0.0, 15.0))
"""Roll and pitch of the photos, degrees."""
ENGINES: tuple[EngineName, ...] = ("torch", "onnx")


@pytest.fixture(scope="module", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> EngineName:
    name: EngineName = request.param
    return name


@pytest.fixture(scope="module")
def calibrator(engine: EngineName) -> Calibrator:
    return Calibrator(device="cpu", engine=engine)


@pytest.fixture(scope="module")
def photos() -> torch.Tensor:
    """(4, 3, 320, 320) of one town."""
    roll, pitch = torch.tensor(ANGLES).deg2rad().T
    camera = Camera.create("pinhole", f=torch.full((4,), 230.0), size=(320, 320))
    pictures = render_scene(camera, from_roll_pitch(roll, pitch), subpixels=1)
    return pictures.permute(0, 3, 1, 2)


@pytest.fixture(scope="module")
def together(calibrator: Calibrator, photos: torch.Tensor) -> list[Calibration]:
    """The photos' calibrations, found in one batch."""
    outcomes = calibrator.calibrate(list(photos))
    return [found for found in outcomes if isinstance(found, Calibration)]


def test_roll_and_pitch(together: list[Calibration]) -> None:
    for found, (roll, pitch) in zip(together, ANGLES, strict=True):
        assert found.roll_deg == pytest.approx(roll, abs=5)
        assert found.pitch_deg == pytest.approx(pitch, abs=5)


def test_the_large_weights_by_both_engines(photos: torch.Tensor) -> None:
    calibrators = [Calibrator("large", device="cpu", engine=each) for each in ENGINES]
    # One that rolls and one that pitches.
    for photo, (roll, pitch) in zip(photos[2:], ANGLES[2:], strict=True):
        one, other = (calibrator.calibrate(photo, lines="off") for calibrator in calibrators)
        assert one.roll_deg == pytest.approx(roll, abs=3)
        assert one.pitch_deg == pytest.approx(pitch, abs=3)
        for name in ("roll_deg", "pitch_deg", "vfov_deg"):
            assert getattr(one, name) == pytest.approx(getattr(other, name), abs=0.01)


def test_content_turned_counter_clockwise_is_roll(
    calibrator: Calibrator, photos: torch.Tensor
) -> None:
    photo = Image.fromarray((255 * photos[0]).byte().permute(1, 2, 0).numpy())
    turned = photo.rotate(12, Image.Resampling.BICUBIC)
    # What the corners do not reach into.
    window = (25, 25, 295, 295)
    before, after = (calibrator.calibrate(one.crop(window)).roll_deg for one in (photo, turned))
    assert after - before == pytest.approx(12, abs=4)


def test_the_same_call_gives_the_same_bits(
    calibrator: Calibrator, photos: torch.Tensor, together: list[Calibration]
) -> None:
    alone = calibrator.calibrate(photos[1])
    assert together[1].roll_deg == pytest.approx(alone.roll_deg, abs=1e-3)
    assert together[1].vfov_deg == pytest.approx(alone.vfov_deg, abs=1e-2)
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(calibrator.calibrate, [photos[1]] * 2)) == [alone] * 2


def test_the_number_of_threads_is_not_seen(
    engine: EngineName, photos: torch.Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums are split otherwise, so the last bits differ; what is printed does not."""
    photo = photos[1]
    before = torch.get_num_threads()
    answers = []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            monkeypatch.setenv("OMP_NUM_THREADS", str(threads))
            calibrator = Calibrator(device="cpu", engine=engine)
            answers.append(calibrator.calibrate(photo))
        # With one thread: ``test_the_same_call_gives_the_same_bits``.
        assert answers[-1] == calibrator.calibrate(photo)
    finally:
        torch.set_num_threads(before)
    one, two = answers
    for name in ("roll_deg", "pitch_deg", "vfov_deg"):
        assert getattr(one, name) == pytest.approx(getattr(two, name), abs=1e-3), name
        sigmas = getattr(one.sigma, name), getattr(two.sigma, name)
        assert sigmas[0] == pytest.approx(sigmas[1], rel=1e-3), name
    assert one.warnings == two.warnings
