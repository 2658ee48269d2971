"""Ten short programs as users of the published package write them, and what they get here.

They were written after public programs: a viewer, a straightener of photos, an eraser of objects,
pipelines for depth, tracking and phones.
"""

from __future__ import annotations

import math
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from PIL import Image

from geocalib import GeoCalib
from test_without_torch import BLOCKED

PHOTO = Path(__file__).parents[1] / "examples" / "town.jpg"
ROLL, PITCH, VFOV = 6, 8, 60
"""Degrees, the truth of the photo."""


@pytest.fixture(scope="module", autouse=True)
def backend() -> Iterator[None]:
    plt.switch_backend("agg")
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def photo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small copy, as answers come quickly for it."""
    path = tmp_path_factory.mktemp("clients") / "town.png"
    Image.open(PHOTO).reduce(2).save(path)
    return path


@pytest.fixture(scope="module")
def model() -> GeoCalib:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return GeoCalib().to("cuda" if torch.cuda.is_available() else "cpu").eval()


@pytest.fixture(scope="module")
def result(model: GeoCalib, photo: Path) -> dict[str, Any]:
    with torch.no_grad():
        return model.calibrate(model.load_image(photo))


def test_1_intrinsics_of_frames(model: GeoCalib, photo: Path) -> None:
    device = next(model.parameters()).device
    frame = np.array(Image.open(photo))
    image = torch.from_numpy(frame.copy()).float().permute(2, 0, 1).div(255.0).to(device)
    camera = model.calibrate(image)["camera"]
    fx, fy = camera.f[0].tolist()
    cx, cy = camera.c[0].tolist()
    np.testing.assert_allclose(camera.K[0].cpu().numpy(), [[fx, 0, cx], [0, fy, cy], [0, 0, 1]])
    assert (cx, cy) == (frame.shape[1] / 2, frame.shape[0] / 2)


def test_2_angles_of_a_phone(model: GeoCalib, photo: Path) -> None:
    from geocalib.utils import load_image

    camera = model.calibrate(load_image(photo))["camera"]
    width, height = camera.size[0].tolist()
    assert math.degrees(camera.vfov.item()) == pytest.approx(VFOV, abs=8)
    hfov = torch.rad2deg(camera.hfov).item()
    assert hfov == pytest.approx(math.degrees(2 * math.atan(width / 2 / camera.f[0, 0].item())))
    assert (width, height) == (480, 320)


def test_3_a_straightener(model: GeoCalib, photo: Path) -> None:
    from geocalib.utils import numpy_image_to_torch

    rgb = np.array(Image.open(photo).convert("RGB"))
    with torch.inference_mode():
        answer = model.calibrate(numpy_image_to_torch(rgb).to("cpu"))
    roll = float(torch.rad2deg(answer["gravity"].roll))
    height, width = rgb.shape[:2]
    turn = cv2.getRotationMatrix2D((width / 2, height / 2), -roll, 1)
    level = cv2.warpAffine(rgb, turn, (width, height), borderMode=cv2.BORDER_REPLICATE)
    again = model.calibrate(numpy_image_to_torch(level))["gravity"]
    assert roll == pytest.approx(ROLL, abs=2)
    assert abs(float(torch.rad2deg(again.roll))) < 2


def test_4_an_eraser_of_objects(result: dict[str, Any]) -> None:
    from geocalib.utils import rad2deg

    roll, pitch = rad2deg(result["gravity"].rp).unbind(-1)
    assert (roll.item(), pitch.item()) == pytest.approx((ROLL, PITCH), abs=3)


def test_5_a_printout(result: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    from geocalib.utils import print_calibration

    print_calibration(result)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["roll", "pitch", "vFoV", "focal"]
    assert all("±" in line for line in lines)


def test_6_pictures_of_the_fields(model: GeoCalib, photo: Path, tmp_path: Path) -> None:
    from geocalib import viz2d
    from geocalib.perspective_fields import get_perspective_field

    image = model.load_image(photo)
    answer = model.calibrate(image)
    up, latitude = get_perspective_field(answer["camera"], answer["gravity"])
    assert up.shape == (1, 2, *image.shape[1:])
    assert latitude.shape == (1, 1, *image.shape[1:])
    figure = viz2d.plot_images([image.permute(1, 2, 0).cpu().numpy()] * 3, dpi=50)
    axes = figure.axes
    viz2d.plot_vector_fields([up[0]], axes=[axes[0]])
    viz2d.plot_latitudes([latitude[0, 0]], axes=[axes[1]])
    viz2d.plot_confidences([answer["up_confidence"][0]], axes=[axes[2]])
    viz2d.plot_horizon_lines([answer["camera"]], [answer["gravity"]], ax=[axes[0]])
    viz2d.plot_perspective_fields([answer["camera"]], [answer["gravity"]], axes=[axes[2]])
    viz2d.add_text(0, "up")
    viz2d.save_plot(tmp_path / "fields.png")
    assert np.asarray(Image.open(tmp_path / "fields.png")).std() > 10


def test_7_the_horizon_of_a_field(result: dict[str, Any]) -> None:
    from geocalib.perspective_fields import get_latitude_field, get_up_field

    camera, gravity = result["camera"].cpu(), result["gravity"].cpu()
    latitude = get_latitude_field(camera, gravity)[0, :, :, 0].detach().cpu().numpy()
    height, width = latitude.shape
    # In the middle it is the pitch, and the up-vector is turned by the roll.
    middle = math.degrees(latitude[height // 2, width // 2])
    assert middle == pytest.approx(math.degrees(gravity.pitch.item()), abs=0.2)
    x, y = get_up_field(camera, gravity)[0, height // 2, width // 2].tolist()
    assert math.degrees(math.atan2(-x, -y)) == pytest.approx(
        math.degrees(gravity.roll.item()), abs=0.3
    )


def test_8_without_distortion(model: GeoCalib, photo: Path) -> None:
    from geocalib.extractor import GeoCalib as Extractor

    assert Extractor is GeoCalib
    image = model.load_image(photo)
    camera = model.calibrate(image, camera_model="simple_radial")["camera"]
    straight = camera.undistort_image(image[None])
    assert straight.shape == image[None].shape
    expected = cv2.undistort(
        image.permute(1, 2, 0).numpy(),
        (camera.K[0].numpy().astype(float) - [[0, 0, 0.5], [0, 0, 0.5], [0, 0, 0]]),
        np.array([camera.k1.item(), 0, 0, 0]),
    )
    assert np.abs(straight[0].permute(1, 2, 0).numpy() - expected).mean() < 2e-3


def test_9_what_is_known(model: GeoCalib, photo: Path) -> None:
    from geocalib.gravity import Gravity

    image = model.load_image(photo)
    priors = {"focal": torch.tensor(277.0)}
    assert model.calibrate(image, priors=priors)["camera"].f[0, 1].item() == pytest.approx(277)
    up = Gravity.from_rp(torch.tensor(math.radians(ROLL)), torch.tensor(math.radians(PITCH)))
    found = model.calibrate(image, priors={"gravity": up})["gravity"]
    torch.testing.assert_close(found.vec3d, up.vec3d)


def test_10_without_torch(photo: Path) -> None:
    """Nobody has tensors: what comes back are arrays of NumPy."""
    script = """
import numpy as np
from geocalib import GeoCalib
from geocalib.utils import print_calibration, rad2deg
model = GeoCalib("lean").to("cpu").eval()
result = model.calibrate(model.load_image(sys.argv[1]))
assert isinstance(result["camera"].K, np.ndarray)
print_calibration(result)
print(*rad2deg(result["gravity"].rp)[0])
"""
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED + script, photo], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    roll, pitch = map(float, done.stdout.splitlines()[-1].split())
    assert (roll, pitch) == pytest.approx((ROLL, PITCH), abs=3)
