"""What users of the published package type works, and means what it meant."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from geocalib import GeoCalib, published_api
from geocalib.errors import ConfigError, ImageError, WeightsError
from geocalib.geometry.fields import perspective_field
from oracle_network import Truth, knowing, picture, truth

SIZE = (480, 360)


def model_of(*truths: Truth | None) -> GeoCalib:
    with mock.patch.object(published_api, "Calibrator", return_value=knowing(*truths)):
        return GeoCalib("lean")


def tensor(mark: int, size: tuple[int, int] = SIZE) -> Tensor:
    """(3, H, W) in [0, 1]."""
    return torch.from_numpy(picture(size, mark)).permute(2, 0, 1) / 255


def test_names_of_the_weights() -> None:
    published_api._say_which.cache_clear()
    with mock.patch.object(published_api, "Calibrator") as made:
        made.return_value.device = "cpu"
        with pytest.warns(UserWarning, match="takes the weights of this package, lean"):
            GeoCalib()
        GeoCalib()  # which says it no second time
        GeoCalib(weights="pinhole")
        GeoCalib(weights="distorted").to(torch.device("cpu"))
        GeoCalib(weights="lean").to("cuda")
    asked = [call.args[0] for call in made.call_args_list]
    assert asked == ["lean", "lean", "published-pinhole", "published-distorted", "lean", "lean"]
    assert [call.kwargs["device"] for call in made.call_args_list] == [*["cpu"] * 5, "cuda"]
    with pytest.raises(WeightsError, match="fisheye"):
        GeoCalib(weights="fisheye")


def test_an_image_from_a_file(tmp_path: Path) -> None:
    Image.fromarray(picture(SIZE, 0)).save(tmp_path / "photo.png")
    image = model_of(truth()).load_image(tmp_path / "photo.png")
    assert image.dtype == torch.float32
    torch.testing.assert_close(image, tensor(0))


def test_one_image() -> None:
    known = truth(SIZE, vfov_deg=50, roll_deg=7, pitch_deg=-11)
    result = model_of(known).calibrate(tensor(0))
    camera, gravity = result["camera"], result["gravity"]
    assert camera.f.shape == camera.c.shape == camera.size.shape == camera.dist.shape == (1, 2)
    assert camera.K.shape == (1, 3, 3)
    assert math.degrees(camera.vfov.item()) == pytest.approx(50, abs=0.05)
    assert camera.hfov.item() > camera.vfov.item()
    assert camera.k1.tolist() == [0]
    # It points up; roll and pitch have the signs they have in the rest of the package.
    np.testing.assert_allclose(gravity.vec3d, -known.gravity, atol=1e-3, rtol=0)
    assert gravity.rp.rad2deg().tolist()[0] == pytest.approx([7, -11], abs=0.05)
    assert [gravity.roll.item(), gravity.pitch.item()] == gravity.rp[0].tolist()
    assert result["covariance"].shape == (1, 3, 3)
    sigma = result["covariance"][0].diagonal().sqrt().tolist()
    names = ("roll_uncertainty", "pitch_uncertainty", "focal_uncertainty")
    assert sigma == pytest.approx([result[name].item() for name in names], rel=1e-4)
    assert result["gravity_uncertainty"].shape == result["vfov_uncertainty"].shape == (1,)


def test_fields_are_those_of_the_whole_image() -> None:
    known = truth((500, 340))  # which the network does not see to its borders
    result = model_of(known).calibrate(tensor(0, known.size))
    up, latitude, _ = perspective_field(known.camera, known.gravity)
    confidence = result["up_confidence"]
    assert confidence.shape == result["latitude_confidence"].shape == (1, 340, 500)
    seen = confidence[0] > 0.99
    assert 0.9 < seen.float().mean() < 1
    for name, field in (("up_field", up), ("latitude_field", latitude)):
        assert result[name].shape == field.shape
        error = (result[name] - torch.from_numpy(field)).abs().amax(1)[0]
        assert error[seen].max() < 0.01


def test_a_batch_and_one_camera() -> None:
    truths = [truth(SIZE, 50, 5), truth(SIZE, 54, -8)]
    model, images = model_of(*truths), torch.stack([tensor(0), tensor(1)])
    alone = model.calibrate(images)["camera"].vfov.rad2deg()
    assert alone.tolist() == pytest.approx([50, 54], abs=0.05)
    result = model.calibrate(images, shared_intrinsics=True)
    first, second = result["camera"].f[:, 1].tolist()
    assert first == second
    assert result["gravity"].roll.rad2deg().tolist() == pytest.approx([5, -8], abs=1)


def test_distortion() -> None:
    known = truth(SIZE, model="division", hat=(-0.1,))
    result = model_of(known).calibrate(tensor(0), camera_model="simple_divisional")
    assert result["camera"].k1.item() == pytest.approx(known.camera.distortion.item(), rel=0.02)
    assert result["camera"].camera.model.name == "division"
    assert result["covariance"].shape == (1, 4, 4)


@pytest.mark.parametrize("batched", [False, True])
def test_priors(batched: bool) -> None:
    up = torch.tensor([0.0, -0.8, 0.6])
    focal = torch.tensor(400.0)
    given = (up[None], focal[None]) if batched else (up, focal)
    model = model_of(truth())
    result = model.calibrate(tensor(0)[None], priors={"gravity": given[0], "focal": given[1]})
    assert result["camera"].f.tolist() == [[400, 400]]
    assert result["gravity"].vec3d[0].tolist() == pytest.approx(up.tolist())
    assert result["focal_uncertainty"].tolist() == result["roll_uncertainty"].tolist() == [0]
    again = model.calibrate(tensor(0), priors={"gravity": result["gravity"]})
    torch.testing.assert_close(again["gravity"].vec3d, result["gravity"].vec3d)


@pytest.mark.parametrize(
    ("priors", "error", "words"),
    [({"k1": 0.1}, ConfigError, "k1; known: focal, gravity"), (None, ImageError, "NaN")],
)
def test_what_cannot_be_answered(priors: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        model_of(None).calibrate(tensor(0), priors=priors)
