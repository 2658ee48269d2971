"""How good the network is on a fixed set of pictures of panoramas it does not learn from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from geocalib.cameras.camera import Camera
from geocalib.geometry.fields import Fields, perspective_field, pixel_grid
from geocalib.nets.direct import Binned, Regressed
from geocalib.nets.prediction import Prediction
from geocalib.solver.fit import fit
from geocalib_lab.evaluation.direct import camera_of
from geocalib_lab.evaluation.metrics import (
    gravity_errors,
    k1_hat_error,
    median,
    summarise,
    vfov_error,
)


@dataclass(frozen=True)
class Pictures:
    """N pictures of one size, to be fitted with one camera model."""

    name: str
    model: str
    images: Tensor
    """(N, 3, H, W) uint8."""
    camera: Camera
    """simple_radial, or of the model where that is a wide one."""
    gravity: Tensor | None
    """(N, 3); None where it is not known."""

    def __len__(self) -> int:
        return len(self.images)


def evaluate(network: nn.Module, sets: Iterable[Pictures], batch: int) -> dict[str, float]:
    """Medians and AUC of the fit, and median errors of the fields (degrees), of every set.

    Keys are like ``published_gravity_median``, ``people_vfov_auc5``, ``distorted_k1_hat_median``.
    The network runs in single precision, as it is (set it to ``eval`` before).
    """
    numbers = {}
    with torch.no_grad():
        for pictures in sets:
            parts = [
                _errors(network, pictures, slice(first, first + batch))
                for first in range(0, len(pictures), batch)
            ]
            errors = {name: torch.cat([part[name] for part in parts]).cpu() for name in parts[0]}
            for name in ("up", "latitude", "k1_hat"):
                if name in errors:
                    numbers[f"{pictures.name}_{name}_median"] = median(errors.pop(name))
            summary = summarise(errors)
            numbers |= {f"{pictures.name}_{name}": value for name, value in summary.items()}
    return numbers


def _errors(network: nn.Module, pictures: Pictures, part: slice) -> dict[str, Tensor]:
    """Errors (B,) of the pictures of a run."""
    images = pictures.images[part].float() / 255
    camera = pictures.camera[part]
    output = network(images)
    found, down, fields = _answers(output, pictures.model, camera)
    errors = {"vfov": vfov_error(found, camera)}
    if pictures.gravity is None:
        return errors
    gravity = pictures.gravity[part]
    errors = gravity_errors(down, gravity) | errors
    if pictures.model == "simple_radial":
        errors["k1_hat"] = k1_hat_error(found.distortion[:, 0], camera)
    if fields is not None:
        errors |= field_errors(fields, _at_size_of(fields, camera), gravity)
    return errors


def _answers(
    output: Prediction | Binned | Regressed, model: str, camera: Camera
) -> tuple[Camera, Tensor, Prediction | None]:
    """The cameras and gravity (B, 3) that a network answers, or that fit its fields; and fields,
    if it sees any. Of the true camera, only the principal point and the shape of the pictures
    are used."""
    if isinstance(output, Binned | Regressed):
        found, down = camera_of(output.values, model, camera.size)
        return found, down, output.fields if isinstance(output, Regressed) else None
    fields = Prediction(*(value.float() for value in output))
    known = _at_size_of(fields, camera)
    result = fit(Fields(**fields._asdict()), model, aspect=known.aspect, principal_point=known.c)
    return result.camera, result.gravity, fields


def _at_size_of(fields: Prediction, camera: Camera) -> Camera:
    height, width = fields.latitude.shape[-2:]
    return camera.resize(width, height)


def field_errors(prediction: Prediction, camera: Camera, gravity: Tensor) -> dict[str, Tensor]:
    """Median error (B,) over each picture of the up-vectors' angle and of the latitude, degrees."""
    batch, _, height, width = prediction.latitude.shape
    grid = pixel_grid(width, height, camera.f).reshape(1, -1, 2).expand(batch, -1, 2)
    up, latitude, valid = perspective_field(camera, gravity, grid)
    found = prediction.up.flatten(2)
    cross = found[:, 0] * up[..., 1] - found[:, 1] * up[..., 0]
    angle = torch.atan2(cross, (found.transpose(1, 2) * up).sum(-1))
    errors = {"up": angle, "latitude": prediction.latitude.flatten(1) - latitude}
    return {
        name: torch.rad2deg(torch.where(valid, value.abs(), torch.nan).nanmedian(1).values)
        for name, value in errors.items()
    }


def one_line(numbers: dict[str, float]) -> str:
    """The medians and the AUC at 5 degrees of gravity and field of view, to be read quickly."""
    names = list(dict.fromkeys(key.partition("_")[0] for key in numbers))
    parts = []
    for name in names:
        words = [name]
        for kind in ("roll", "pitch", "gravity", "vfov", "k1_hat", "up", "latitude"):
            if (value := numbers.get(f"{name}_{kind}_median")) is not None:
                words.append(f"{kind} {value:.3g}")
                if kind in ("gravity", "vfov"):
                    words.append(f"(auc5 {numbers[f'{name}_{kind}_auc5']:.1f})")
        parts.append(" ".join(words))
    return " | ".join(parts)


def refresh_batch_norms(network: nn.Module, batches: Iterable[Tensor]) -> None:
    """Recompute the statistics of all batch norms on pictures (B, 3, H, W).

    Averaged weights have other activations than those the averaged statistics were taken of.
    Everything else in the network behaves as in evaluation, and the network is left in it.
    """
    network.eval()
    norms = [module for module in network.modules() if isinstance(module, _BatchNorm)]
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.reset_running_stats()
        # None: the plain mean over all batches.
        norm.momentum = None
        norm.train()
    with torch.no_grad():
        for images in batches:
            network(images)
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
        norm.eval()
