"""What the network learns from: its fields, and the camera that is fitted to them.

Field losses compare the prediction with the exact field pixel by pixel. Fit losses compare the
fitted gravity, field of view and distortion with the truth, differentiated through the fit; the
confidences learn from these alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from geocalib.cameras.camera import Camera
from geocalib.geometry.fields import Fields, perspective_field, pixel_grid
from geocalib.nets.prediction import Prediction
from geocalib.records import named_tensors
from geocalib_lab.panoramas.wide import WidePart, inside_rim
from geocalib_lab.training.optimum import UNIFIED, find_optimum

SMALLEST_TRUST = 1e-30
"""Mean confidence that still counts in full. The fit does not care how large confidences are
together, so they drift; a larger limit would pay for letting them drift towards zero."""

LEVEL = -5.0
"""Mean log-confidence that both fields are held near."""

BORDER_SHARE = 0.995
"""How near to the end of what a fisheye sees its field of view is taken at most, by radius: the
angle's slope has no bound there."""


@dataclass(frozen=True)
class LossConfig:
    """Weights of the losses and how the fit inside them runs."""

    up: float = 1.0
    """Weight of the mean angle (radians) between up-vectors."""
    latitude: float = 1.0
    """Weight of the mean error of the latitude (radians)."""
    unweighted: float = 0.5
    """Share of the field losses that ignores the confidences, so that unsure regions learn."""
    gravity: float = 1.0
    """Weight of the L1 distance between gravities."""
    vfov: float = 1.0
    """Weight of the error of the vertical field of view (radians)."""
    distortion: float = 1.0
    """Weight of |k1 - k1_true| (H / f_true)^2."""
    doubt: float = 1.0
    """The sum x of an image's fit losses counts as log(1 + x / doubt) doubt: the worse, the less
    it pulls, so that hopeless images do not drown the others."""
    largest_pull: float = 10.0
    """Gradients of the fit losses are shortened, image by image, to this multiple of the batch's
    median: where the fields hardly determine the camera they would drown all others."""
    cells: int = 40
    """Cells along the shorter side that the fields are pooled to for the fit."""
    iterations: int = 5
    """Of the fit, which starts at the true camera."""
    drift: float = 3e-4
    """Weight of the squared distance of each field's mean log-confidence from ``LEVEL``. The fit
    sees ratios of confidences alone: without this they drift, until one field outweighs the other
    by ten orders of magnitude, which then falls silent and learns no more."""
    huber: float | None = None
    """Residual norm beyond which the fit's cost grows linearly; none: plain squares."""


@dataclass(frozen=True)
class Losses:
    """The loss to minimise and what it is made of; all () and, but for the total, detached."""

    total: Tensor
    parts: dict[str, Tensor]


def training_loss(
    prediction: Prediction,
    camera: Camera,
    gravity: Tensor,
    keep: Tensor,
    bends: Tensor,
    config: LossConfig,
    with_fit: bool,
) -> Losses:
    """The loss of B images.

    prediction: in any precision. camera: of the input images, with one distortion parameter;
    gravity (B, 3). keep (B,): images that count. bends (B,): images to be fitted with distortion;
    the others are fitted as pinhole cameras.
    """
    prediction = Prediction(*(value.float() for value in prediction))
    height, width = prediction.latitude.shape[-2:]
    camera = camera.resize(width, height)
    weight = keep.float() / keep.sum().clamp(min=1)
    up, latitude = field_losses(prediction, camera, gravity, config.unweighted)
    parts = {"up": (weight * up).sum(), "latitude": (weight * latitude).sum()}
    total = config.up * parts["up"] + config.latitude * parts["latitude"]
    if with_fit:
        fields = _guarded(Fields(**prediction._asdict()), config.largest_pull)
        losses = fit_losses(fields, camera, gravity, bends, config)
        for name in ("gravity", "vfov", "distortion"):
            parts[name] = (weight * getattr(losses, name)).sum()
        per_image = losses.combined(config)
        total = total + (weight * config.doubt * torch.log1p(per_image / config.doubt)).sum()
        parts["drift"] = (weight * _drift(prediction)).sum()
        total = total + config.drift * parts["drift"]
        parts["failed"] = (~losses.found).sum()
    return Losses(total, {name: value.detach() for name, value in parts.items()})


def wide_loss(
    prediction: Prediction, parts: Sequence[WidePart], config: LossConfig, with_fit: bool
) -> Losses:
    """The loss of wide pictures, one camera model after another. Those through ucm cameras, which
    invert in closed form, are fitted too."""
    prediction = Prediction(*(value.float() for value in prediction))
    height, width = prediction.latitude.shape[-2:]
    keep = torch.cat([part.keep for part in parts]).float()
    weights = keep / keep.sum().clamp(min=1)
    total = prediction.latitude.new_zeros(())
    numbers = {"wide_up": total, "wide_latitude": total, "wide_keep": keep.mean()}
    first = 0
    for part in parts:
        which = slice(first, first + len(part))
        first += len(part)
        seen, weight = Prediction(*(value[which] for value in prediction)), weights[which]
        camera = part.camera.resize(width, height)
        up, latitude = field_losses(seen, camera, part.gravity, config.unweighted, part.rim)
        up, latitude = (weight * up).sum(), (weight * latitude).sum()
        total = total + config.up * up + config.latitude * latitude
        numbers["wide_up"] = numbers["wide_up"] + up
        numbers["wide_latitude"] = numbers["wide_latitude"] + latitude
        if with_fit and camera.model.name == UNIFIED.model.name:
            fields = _guarded(Fields(**seen._asdict()), config.largest_pull)
            losses = unified_fit_losses(fields, camera, part.gravity, config)
            per_image = config.doubt * torch.log1p(losses.combined(config) / config.doubt)
            total = total + (weight * (per_image + config.drift * _drift(seen))).sum()
            share = part.keep.float() / part.keep.sum().clamp(min=1)
            numbers["wide_gravity"] = (share * losses.gravity).sum()
            numbers["wide_vfov"] = (share * losses.vfov).sum()
    return Losses(total, {name: value.detach() for name, value in numbers.items()})


def _drift(prediction: Prediction) -> Tensor:
    """(B,) squared distance of mean log-confidences from their level, summed over both fields."""
    both = torch.stack([prediction.up_confidence, prediction.latitude_confidence])
    means = torch.log(both.clamp(min=SMALLEST_TRUST)).flatten(2).mean(2)
    return ((means - LEVEL) ** 2).sum(0)


def field_losses(
    prediction: Prediction,
    camera: Camera,
    gravity: Tensor,
    unweighted: float,
    rim: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """(B,) mean angle between up-vectors and mean latitude error of each image, radians.

    camera: at the size of the fields. The mean is weighted by the detached confidences, mixed
    with the plain one by the share ``unweighted``. It is over the pixels that the camera sees,
    and, of wide ones, that lie inside their rim (B,).
    """
    batch, _, height, width = prediction.latitude.shape
    grid = pixel_grid(width, height, camera.f).reshape(1, -1, 2).expand(batch, -1, 2)
    up, latitude, seen = perspective_field(camera, gravity, grid)
    if rim is not None:
        seen = seen & inside_rim(camera, rim, grid)
        # Choose before computing: a derivative of NaN is NaN even where its value is not used.
        up = torch.where(seen[..., None], up, 1.0)
        latitude = torch.where(seen, latitude, 0.0)
    area = seen.sum(1).clamp(min=1)
    found = prediction.up.flatten(2)
    cross = found[:, 0] * up[..., 1] - found[:, 1] * up[..., 0]
    along = found[:, 0] * up[..., 0] + found[:, 1] * up[..., 1]
    angle = torch.atan2(cross, along).abs()
    off = (prediction.latitude.flatten(1) - latitude).abs()
    means = []
    for error, confidence in (
        (angle, prediction.up_confidence),
        (off, prediction.latitude_confidence),
    ):
        trust = confidence.detach().flatten(1)
        mean = (trust * seen).sum(1, keepdim=True) / area[:, None]
        trust = trust / mean.clamp(min=SMALLEST_TRUST)
        weight = ((1 - unweighted) * trust + unweighted) * seen
        means.append((weight * error).sum(1) / area)
    return means[0], means[1]


@dataclass(frozen=True)
class FitLosses:
    """Errors (B,) of fitted cameras; 0 and without a gradient where the fit has failed."""

    gravity: Tensor
    """L1 distance."""
    vfov: Tensor
    """Radians."""
    distortion: Tensor
    """In units of the image height; 0 for pinhole cameras. Of fisheyes, radians: the error of the
    horizontal field of view."""
    found: Tensor
    """Whether the fit has an answer."""

    def combined(self, config: LossConfig) -> Tensor:
        """The weighted sum of all losses, (B,)."""
        return (
            config.gravity * self.gravity
            + config.vfov * self.vfov
            + config.distortion * self.distortion
        )


def fit_losses(
    fields: Fields, camera: Camera, gravity: Tensor, bends: Tensor, config: LossConfig
) -> FitLosses:
    """Fit cameras to fields and compare with the truth, given at the fields' size."""
    found = find_optimum(
        fields, camera, gravity, bends, config.cells, config.iterations, config.huber
    )
    answer = torch.cat([found.gravity, found.log_f[:, None], found.distortion[:, None]], 1)
    truth = torch.cat([gravity, camera.f.log()[:, None], camera.distortion], 1).to(answer)
    confidence = fields.up_confidence.detach() + fields.latitude_confidence.detach()
    usable = torch.isfinite(answer.detach()).all(1) & (confidence.flatten(1).amax(1) > 0)
    # Choose before computing: a derivative of NaN is NaN even where its value is not used.
    answer = torch.where(usable[:, None], answer, truth)
    half = 0.5 * camera.size[:, 1].to(answer)
    vfov, true_vfov = (2 * torch.atan(half * torch.exp(-v[:, 3])) for v in (answer, truth))
    k1_unit = (2 * half * torch.exp(-truth[:, 3])) ** 2
    return FitLosses(
        gravity=(answer[:, :3] - truth[:, :3]).abs().sum(1),
        vfov=(vfov - true_vfov).abs(),
        distortion=(answer[:, 4] - truth[:, 4]).abs() * k1_unit,
        found=usable,
    )


def unified_fit_losses(
    fields: Fields, camera: Camera, gravity: Tensor, config: LossConfig
) -> FitLosses:
    """Fit ucm cameras to fields and compare with the truth, given at the fields' size."""
    free = torch.ones_like(camera.f, dtype=torch.bool)
    found = find_optimum(
        fields, camera, gravity, free, config.cells, config.iterations, config.huber, UNIFIED
    )
    answer = torch.cat([found.gravity, found.log_f[:, None], found.distortion[:, None]], 1)
    truth = torch.cat([gravity, camera.f.log()[:, None], camera.distortion], 1).to(answer)
    usable = torch.isfinite(answer.detach()).all(1)
    answer = torch.where(usable[:, None], answer, truth)
    horizontal, vertical = (
        2 * (_border_angle(answer, half) - _border_angle(truth, half)).abs()
        for half in 0.5 * camera.size.to(answer).T
    )
    return FitLosses((answer[:, :3] - truth[:, :3]).abs().sum(1), vertical, horizontal, usable)


def _border_angle(values: Tensor, radius: Tensor) -> Tensor:
    """(B,) radians from the axis, at a radius (B,) in pixels, of ucm cameras (B, 5) by their
    gravity, log f and alpha; at the end of what the camera sees where that is nearer."""
    rho, alpha = radius * torch.exp(-values[:, 3]), values[:, 4]
    end = UNIFIED.model.limits((alpha,)).radius
    rho = torch.minimum(rho, BORDER_SHARE * end)
    depth, _ = UNIFIED.model.depth(rho * rho, (alpha,))
    return torch.atan2(rho, depth)


def _guarded(fields: Fields, largest_pull: float) -> Fields:
    """The same fields, whose gradients are finite and of bounded length image by image."""
    held = named_tensors(fields)
    flat = torch.cat([value.flatten(1) for value in held.values()], 1)
    flat = flat.view_as(flat)
    if flat.requires_grad:
        flat.register_hook(lambda pull: bounded(pull, largest_pull))  # type: ignore[no-untyped-call]
    parts = torch.split(flat, [value[0].numel() for value in held.values()], 1)
    named = zip(held.items(), parts, strict=True)
    return Fields(**{name: part.reshape(value.shape) for (name, value), part in named})


def bounded(pull: Tensor, largest_pull: float) -> Tensor:
    """Rows (B, N) without those that are not finite, none longer than a multiple of the median
    length of the finite ones that pull at all."""
    length = torch.linalg.vector_norm(pull, dim=1)
    pulling = torch.isfinite(length) & (length > 0)
    typical = torch.where(pulling, length, torch.nan).nanmedian()
    scale = (largest_pull * typical / length.clamp(min=1e-30)).clamp(max=1)
    return torch.where(pulling[:, None], pull * scale[:, None], 0.0)
