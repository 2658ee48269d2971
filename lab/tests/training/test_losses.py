"""Losses: zero at the truth, known errors, gradients against differences, and no NaN."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from geocalib.cameras import Camera
from geocalib.geometry.fields import Fields, pixel_grid
from geocalib.nets.prediction import Prediction
from geocalib_lab.panoramas.wide import WidePart
from geocalib_lab.training.losses import (
    LossConfig,
    bounded,
    field_losses,
    fit_losses,
    training_loss,
    wide_loss,
)
from views import random_cameras, random_gravity, see, turned, with_noise

BENDS = torch.tensor([True, False, True, False, False, True])
"""Which pictures have distortion."""


def scene() -> tuple[Camera, Tensor, Prediction]:
    """Cameras of 96x64 pictures, some distorted, gravity, and their exact fields."""
    count, stride, seed = len(BENDS), 4, 1
    camera = random_cameras("simple_radial", count, seed, (96, 64), (40, 90))
    camera = replace(camera, distortion=camera.distortion * BENDS[:, None]).to(torch.float32)
    gravity = random_gravity(count, seed, 30).float()
    fields = see(camera.resize(96 / stride, 64 / stride), gravity, torch.float32)
    return camera, gravity, Prediction(*vars(fields).values())


def disturbed(prediction: Prediction, sigma_deg: float = 4.0) -> Prediction:
    fields = with_noise(Fields(*prediction), sigma_deg, 0)
    generator = torch.Generator().manual_seed(0)
    confidence = torch.rand(prediction.up_confidence.shape, generator=generator) * 0.9 + 0.1
    return Prediction(fields.up, fields.latitude, confidence, confidence.flip(2))


def leaves(prediction: Prediction) -> Prediction:
    return Prediction(*(value.detach().clone().requires_grad_() for value in prediction))


def loss_of(
    prediction: Prediction,
    camera: Camera,
    gravity: Tensor,
    config: LossConfig,
    keep: Tensor | None = None,
    with_fit: bool = True,
) -> tuple[Tensor, dict[str, Tensor]]:
    keep = torch.ones(len(camera), dtype=torch.bool) if keep is None else keep
    losses = training_loss(prediction, camera, gravity, keep, BENDS, config, with_fit)
    return losses.total, losses.parts


def test_the_truth_has_no_loss() -> None:
    camera, gravity, prediction = scene()
    total, parts = loss_of(prediction, camera, gravity, LossConfig(drift=0.0))
    assert set(parts) == {
        "up",
        "latitude",
        "gravity",
        "vfov",
        "distortion",
        "drift",
        "failed",
    }
    assert float(total) < 1e-3
    assert int(parts["failed"]) == 0


def test_known_errors_of_the_fields_are_measured() -> None:
    camera, gravity, exact = scene()
    angle = torch.full_like(exact.latitude, 0.2)
    wrong = exact._replace(up=turned(exact.up, angle), latitude=exact.latitude - 0.05)
    total, parts = loss_of(wrong, camera, gravity, LossConfig(up=2, latitude=3), with_fit=False)
    assert set(parts) == {"up", "latitude"}
    assert float(parts["up"]) == pytest.approx(0.2, abs=1e-5)
    assert float(parts["latitude"]) == pytest.approx(0.05, abs=1e-5)
    assert float(total) == pytest.approx(2 * 0.2 + 3 * 0.05, abs=1e-4)


def test_field_losses_mix_weighted_and_plain_means() -> None:
    camera, gravity, exact = scene()
    latitude = exact.latitude.clone()
    latitude[..., :12] += 0.1
    confidence = torch.full_like(exact.up_confidence, 0.2)
    confidence[..., :12] = 0.6
    wrong = exact._replace(latitude=latitude, latitude_confidence=confidence)
    at_fields = camera.resize(24, 16)
    # Half the pixels are off; with confidence 3 : 1 they make up three quarters of the mean.
    for unweighted, expected in ((0.0, 0.075), (1.0, 0.05), (0.5, 0.0625)):
        _, off = field_losses(wrong, at_fields, gravity, unweighted)
        assert off.tolist() == pytest.approx([expected] * len(off), rel=1e-3)


def test_wide_pictures_count_within_their_rim_alone() -> None:
    camera = random_cameras("kannala_brandt", 3, 2, (48, 32), (140, 170)).to(torch.float32)
    gravity = random_gravity(3, 2, 30).float()
    exact = Prediction(*vars(see(camera, gravity, torch.float32)).values())
    rim = 12 / camera.f
    off = torch.linalg.vector_norm(
        pixel_grid(48, 32, camera.f) - torch.tensor([24.0, 16.0]), dim=-1
    )
    beyond = (off >= 12).expand_as(exact.latitude)
    for where, expected in ((beyond, 0.0), (~beyond, 0.1)):
        prediction = leaves(exact._replace(latitude=exact.latitude + 0.1 * where))
        up, latitude = field_losses(prediction, camera, gravity, 0.5, rim)
        assert latitude.tolist() == pytest.approx([expected] * 3, abs=1e-5)
        assert up.tolist() == pytest.approx([0.0] * 3, abs=1e-3)
        (up + latitude).sum().backward()
        assert torch.isfinite(prediction.up.grad).all()
        assert torch.isfinite(prediction.latitude.grad).all()
        assert not prediction.latitude.grad[beyond].any()


def test_the_fit_of_fisheyes_teaches_their_confidences() -> None:
    camera = random_cameras("ucm", 3, 2, (48, 32), (90, 150)).to(torch.float32)
    gravity = random_gravity(3, 2, 30).float()
    exact = Prediction(*vars(see(camera, gravity, torch.float32)).values())
    yes = torch.ones(3, dtype=torch.bool)
    part = WidePart(camera, gravity, yes, torch.full((3,), torch.inf))
    right = wide_loss(exact, [part], LossConfig(drift=0), True)
    assert float(right.parts["wide_gravity"]) == pytest.approx(0, abs=2e-3)
    assert float(right.parts["wide_vfov"]) == pytest.approx(0, abs=2e-3)
    wrong = torch.zeros_like(exact.latitude)
    wrong[..., :12] = 0.4
    prediction = leaves(exact._replace(latitude=exact.latitude + wrong))
    losses = wide_loss(prediction, [part], LossConfig(up=0, latitude=0, drift=0), True)
    assert float(losses.parts["wide_gravity"]) > 0.02
    losses.total.backward()
    pull = prediction.latitude_confidence.grad
    # To be less sure where the field is wrong makes the fit better.
    assert float(pull[..., :12].sum()) > 0
    fields = leaves(exact._replace(latitude=exact.latitude + wrong))
    wide_loss(fields, [part], LossConfig(), False).total.backward()
    assert fields.latitude_confidence.grad is None


def test_small_confidences_do_not_pay() -> None:
    camera, gravity, prediction = scene()
    wrong = disturbed(prediction)
    small = wrong._replace(
        up_confidence=1e-18 * wrong.up_confidence,
        latitude_confidence=1e-18 * wrong.latitude_confidence,
    )
    for usual, shrunk in zip(
        field_losses(wrong, camera.resize(24, 16), gravity, 0.5),
        field_losses(small, camera.resize(24, 16), gravity, 0.5),
        strict=True,
    ):
        torch.testing.assert_close(usual, shrunk)


def test_confidences_learn_from_the_fit_alone() -> None:
    camera, gravity, exact = scene()
    prediction = leaves(disturbed(exact))
    loss_of(prediction, camera, gravity, LossConfig(), with_fit=False)[0].backward()
    assert prediction.up_confidence.grad is None
    assert float(prediction.up.grad.abs().sum()) > 0
    prediction = leaves(disturbed(exact))
    loss_of(prediction, camera, gravity, LossConfig(up=0, latitude=0))[0].backward()
    for value in prediction:
        assert (value.grad.flatten(1).abs().sum(1) > 0).all()


def test_confidence_falls_where_the_field_is_wrong() -> None:
    camera, gravity, exact = scene()
    latitude = exact.latitude.clone()
    latitude[..., :8, :12] += 0.3
    prediction = leaves(exact._replace(latitude=latitude))
    loss_of(prediction, camera, gravity, LossConfig(drift=0.0))[0].backward()
    wrong = prediction.latitude_confidence.grad[:, :8, :12].sum()
    both = prediction.latitude_confidence.grad.sum() + prediction.up_confidence.grad.sum()
    # Steps go against the gradient.
    assert float(wrong) > 1e-3
    # All confidences (they are 1) scaled alike leave the fit where it is.
    assert float(both) == pytest.approx(0, abs=1e-2 * float(wrong))


def test_confidences_that_drifted_are_called_back() -> None:
    camera, gravity, exact = scene()
    wrong = disturbed(exact)
    prediction = leaves(wrong._replace(latitude_confidence=1e-20 * wrong.latitude_confidence))
    silent = LossConfig(up=0, latitude=0, gravity=0, vfov=0, distortion=0)
    total, parts = loss_of(prediction, camera, gravity, silent)
    assert float(parts["drift"]) > 40**2
    total.backward()
    assert bool((prediction.latitude_confidence.grad < 0).all())


@pytest.mark.parametrize("cells", [8, 40])
def test_gradients_match_differences(cells: int) -> None:
    camera, gravity, exact = scene()
    # The Gauss-Newton Hessian is the exact one where the residuals are small.
    wrong = disturbed(Prediction(*(value.double() for value in exact)), 0.5)
    values = [value.double() for value in wrong]
    camera, gravity = camera.resize(24, 16).to(torch.float64), gravity.double()
    config = LossConfig(iterations=30, cells=cells)

    def loss(shift: list[Tensor]) -> Tensor:
        moved = {n: v + s for n, v, s in zip(wrong._fields, values, shift, strict=True)}
        fields = Fields(**moved)
        return fit_losses(fields, camera, gravity, BENDS, config).combined(config).sum()

    zero = [torch.zeros_like(v, requires_grad=True) for v in values]
    gradients = torch.autograd.grad(loss(zero), zero)
    # One direction for each field and confidence: along its gradient, shaken.
    generator = torch.Generator().manual_seed(5)
    for i, gradient in enumerate(gradients):
        noise = 0.5 + torch.rand(gradient.shape, generator=generator, dtype=gradient.dtype)
        shift = [torch.zeros_like(v) for v in values]
        shift[i] = 1e-7 * noise * gradient / gradient.abs().max()
        expected = float(loss(shift) - loss([-s for s in shift])) / 2
        assert float((gradient * shift[i]).sum()) == pytest.approx(expected, rel=2e-2)


def test_a_failed_fit_is_counted_and_harms_nobody() -> None:
    camera, gravity, exact = scene()
    config = LossConfig(largest_pull=1e9)
    whole = leaves(disturbed(exact))
    loss_of(whole, camera, gravity, config)[0].backward()
    broken = disturbed(exact)
    for image in (0, 4):
        broken.up_confidence[image] = 0
        broken.latitude_confidence[image] = 0
    broken = leaves(broken)
    total, parts = loss_of(broken, camera, gravity, config)
    total.backward()
    assert int(parts["failed"]) == 2
    assert torch.isfinite(total)
    others = [1, 2, 3, 5]
    for value, expected in zip(broken, whole, strict=True):
        assert torch.isfinite(value.grad).all()
        torch.testing.assert_close(value.grad[others], expected.grad[others])
    assert float(broken.up_confidence.grad[[0, 4]].abs().sum()) == 0


def test_hopeless_images_pull_less() -> None:
    camera, gravity, exact = scene()
    latitude = exact.latitude.clone()
    latitude[1] += 0.6
    pulls = []
    for doubt in (0.1, 1e6):
        config = LossConfig(up=0, latitude=0, doubt=doubt, largest_pull=1e9)
        prediction = leaves(exact._replace(latitude=latitude))
        total, parts = loss_of(prediction, camera, gravity, config)
        total.backward()
        pulls.append(prediction.latitude.grad[1].norm())
    # The derivative of log(1 + x / doubt) doubt is 1 / (1 + x / doubt); the others are exact.
    x = len(camera) * sum(float(parts[name]) for name in ("gravity", "vfov", "distortion"))
    assert float(pulls[0] / pulls[1]) == pytest.approx(1 / (1 + x / 0.1), rel=2e-2)


def test_dropped_images_do_not_count() -> None:
    camera, gravity, exact = scene()
    keep = torch.tensor([True, True, False, True, True, False])
    prediction = leaves(disturbed(exact))
    total, parts = loss_of(prediction, camera, gravity, LossConfig(), keep)
    total.backward()
    assert (prediction.latitude.grad.flatten(1).abs().sum(1) > 0).tolist() == keep.tolist()
    kept = keep.nonzero()[:, 0]
    some = Prediction(*(value.detach()[kept] for value in prediction))
    every = torch.ones(4, dtype=torch.bool)
    alone = training_loss(some, camera[kept], gravity[kept], every, BENDS[kept], LossConfig(), True)
    for name in ("up", "latitude", "gravity", "vfov", "distortion"):
        assert float(parts[name]) == pytest.approx(float(alone.parts[name]), rel=1e-4)


def test_bounded_rows() -> None:
    pull = torch.zeros(6, 2)
    pull[0] = torch.tensor([3.0, 4.0])
    pull[1] = torch.tensor([6.0, 8.0])
    pull[2] = torch.tensor([300.0, 400.0])
    pull[3, 0] = torch.nan
    pull[4, 1] = torch.inf
    expected = pull.clone()
    expected[2] = torch.tensor([12.0, 16.0])
    expected[3:] = 0
    # The median of the lengths 5, 10 and 500 is 10.
    torch.testing.assert_close(bounded(pull, 2.0), expected)
    assert torch.equal(bounded(torch.zeros(2, 3), 2.0), torch.zeros(2, 3))
