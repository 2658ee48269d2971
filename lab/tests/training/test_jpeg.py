import io

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from geocalib.cameras import Camera
from geocalib.geometry.gravity import from_roll_pitch
from geocalib.synthetic import render_scene
from geocalib_lab.training.jpeg import CHROMINANCE_STEPS, LUMINANCE_STEPS, jpeg


@pytest.fixture(scope="module")
def town() -> Tensor:
    """(1, 3, 90, 120): not whole blocks."""
    camera = Camera.create("pinhole", f=100.0, size=(120, 90), dtype=torch.float32)
    gravity = from_roll_pitch(torch.tensor([0.1]), torch.tensor([0.05]))
    return render_scene(camera, gravity).permute(0, 3, 1, 2).contiguous()


def by_pillow(image: Tensor, quality: int) -> tuple[Tensor, dict[int, list[int]]]:
    """(3, H, W) through a real JPEG file with halved colours, and its rounding steps."""
    pixels = (255 * image).round().byte().permute(1, 2, 0).contiguous().numpy()
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "jpeg", quality=quality, subsampling=2)
    with Image.open(file) as back:
        return torch.from_numpy(np.array(back)).permute(2, 0, 1) / 255, back.quantization


@pytest.mark.parametrize("quality", [10, 30, 50, 75, 92])
def test_comes_close_to_a_real_file(town: Tensor, quality: int) -> None:
    found = jpeg(town, torch.tensor([float(quality)]))[0]
    expected, _ = by_pillow(town[0], quality)
    error = (found - expected).square().mean().sqrt()
    loss = (expected - town[0]).square().mean().sqrt()
    # What differs is small against what compression loses.
    assert float(error) < 0.35 * float(loss)
    ours = (found - town[0]).square().mean().sqrt()
    assert float(ours) == pytest.approx(float(loss), rel=0.15)


def test_steps_are_those_of_quality_50(town: Tensor) -> None:
    _, steps = by_pillow(town[0], 50)
    for number, table in enumerate([LUMINANCE_STEPS, CHROMINANCE_STEPS]):
        np.testing.assert_array_equal(np.reshape(steps[number], (8, 8)), table)


def test_each_picture_has_its_quality(town: Tensor) -> None:
    both = jpeg(town.expand(2, -1, -1, -1), torch.tensor([15.0, 90.0]))
    torch.testing.assert_close(both[:1], jpeg(town, torch.tensor([15.0])))
    torch.testing.assert_close(both[1:], jpeg(town, torch.tensor([90.0])))
    loss = (both - town).abs().mean((1, 2, 3))
    assert loss[0] > 2 * loss[1]


def test_grey_stays_grey() -> None:
    images = torch.rand(1, 1, 32, 32, generator=torch.Generator().manual_seed(1))
    found = jpeg(images.expand(-1, 3, -1, -1), torch.tensor([60.0]))
    torch.testing.assert_close(found[:, 0], found[:, 2], atol=1.1 / 255, rtol=0)
