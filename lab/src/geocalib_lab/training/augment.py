"""Random changes of pictures that leave their geometry alone, and the mirror that does not.

Each change befalls a random few pictures of a batch, with a strength of its own for each, so
that a picture meets a handful of them. Sharpness, noise and compression are drawn without regard
to the view: they must not tell the network the field of view. How many pictures a change is
computed for depends on the batch size alone; nothing here waits for the device.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from geocalib.cameras.camera import Camera
from geocalib_lab.training import photometry
from geocalib_lab.training.jpeg import jpeg

NADIR_DEG = 12.0
"""How far around the nadir logos and tripods reach."""


@dataclass(frozen=True)
class Change:
    """How often a change befalls a picture, and between which strengths."""

    probability: float
    low: float
    high: float


@dataclass(frozen=True)
class AugmentConfig:
    """The changes of pictures, in the order in which they happen."""

    changed_share: float = 0.9
    """Part of the pictures that may be changed at all."""
    vignette: Change = Change(0.1, 0.1, 0.5)
    """Part of the light lost in the corners."""
    blur: Change = Change(0.25, 0.3, 2.5)
    """Sigma along its longer axis, pixels, with all ratios of magnitude alike."""
    blur_ratio: float = 0.25
    """Smallest sigma across as a part of the one along."""
    early_resample: Change = Change(0.2, 1.2, 4.0)
    """Shrunk by this factor and enlarged again, before noise and compression."""
    crispen: Change = Change(0.0, 0.3, 0.9)
    """How far blurred edges become steps."""
    low_light: Change = Change(0.06, 0.08, 0.5)
    """Part of the light that is left."""
    sensor_noise: Change = Change(0.12, 0.01, 0.1)
    """Sigma in full light."""
    gaussian_noise: Change = Change(0.12, 0.005, 0.06)
    """Sigma."""
    white_balance: Change = Change(0.25, 0.0, 0.2)
    """Largest logarithm of a channel's gain."""
    saturation: Change = Change(0.2, 0.3, 1.7)
    hue: Change = Change(0.1, -0.25, 0.25)
    """Radians."""
    gamma: Change = Change(0.2, 0.6, 1.7)
    tone_curve: Change = Change(0.2, 0.0, 0.25)
    """Largest shift of a third of the curve."""
    contrast: Change = Change(0.25, 0.6, 1.4)
    brightness: float = 0.15
    """Largest shift of brightness that comes with contrast."""
    grey: float = 0.06
    """Probability."""
    sepia: Change = Change(0.03, 0.4, 1.0)
    sharpen: Change = Change(0.15, 0.3, 2.0)
    jpeg: Change = Change(0.35, 12.0, 95.0)
    """Quality."""
    late_resample: Change = Change(0.15, 1.2, 3.0)
    """Shrunk by this factor and enlarged again, after all of the above."""
    erase: Change = Change(0.1, 0.08, 0.35)
    """Sides of the rectangles, in parts of the picture's."""
    erase_count: int = 3


Op = Callable[[Tensor, Tensor], Tensor]
"""Pictures (B, 3, H, W) and strengths (B,) to pictures."""


def augment(images: Tensor, config: AugmentConfig, generator: torch.Generator) -> Tensor:
    """Pictures (B, 3, H, W) in [0, 1] after random changes; the generator is the device's."""
    draw = _Draw(generator, images.device)

    def chain(images: Tensor, _: Tensor) -> Tensor:
        for change, op in _changes(config, draw):
            images = _befall(images, change, op, draw)
        return images

    return _befall(images, Change(config.changed_share, 0.0, 0.0), chain, draw)


@dataclass(frozen=True)
class _Draw:
    """Random numbers of a device."""

    generator: torch.Generator
    device: torch.device

    def uniform(self, count: int, low: float = 0.0, high: float = 1.0) -> Tensor:
        draw = torch.rand(count, generator=self.generator, device=self.device)
        return low + (high - low) * draw

    def signed(self, limit: Tensor) -> Tensor:
        """Uniform within plus or minus the limit (B,)."""
        return limit * self.uniform(len(limit), -1, 1)


def _befall(images: Tensor, change: Change, op: Op, draw: _Draw) -> Tensor:
    """The pictures, some of them changed."""
    expected = change.probability * len(images)
    count = math.ceil(expected)
    if count == 0:
        return images
    # A random few, in a number known beforehand; rounding it up is made good by chance.
    chosen = draw.uniform(len(images)).argsort()[:count]
    happens = draw.uniform(count) < expected / count
    before = images[chosen]
    after = op(before, draw.uniform(count, change.low, change.high)).clamp(0, 1)
    after = torch.where(happens[:, None, None, None], after, before)
    return images.index_copy(0, chosen, after)


def _changes(config: AugmentConfig, draw: _Draw) -> list[tuple[Change, Op]]:
    """What may befall a picture, from the lens to the web page."""
    generator = draw.generator

    def blur(images: Tensor, strength: Tensor) -> Tensor:
        low, high = config.blur.low, config.blur.high
        # Evenly in the logarithm: slight blurs are as telling as strong ones.
        sigma = low * (high / low) ** ((strength - low) / (high - low))
        ratio = draw.uniform(len(images), config.blur_ratio, 1)
        angle = draw.uniform(len(images), 0, math.pi)
        return photometry.blur(images, sigma, ratio, angle)

    def sensor_noise(images: Tensor, strength: Tensor) -> Tensor:
        return photometry.sensor_noise(images, strength, generator)

    def gaussian_noise(images: Tensor, strength: Tensor) -> Tensor:
        return photometry.gaussian_noise(images, strength, generator)

    def low_light(images: Tensor, strength: Tensor) -> Tensor:
        return photometry.low_light(images, strength, generator)

    def white_balance(images: Tensor, strength: Tensor) -> Tensor:
        tint = 0.5 * draw.signed(strength)
        return photometry.white_balance(images, draw.signed(strength), tint)

    def tone_curve(images: Tensor, strength: Tensor) -> Tensor:
        return photometry.tone_curve(images, draw.signed(strength), draw.signed(strength))

    def contrast(images: Tensor, strength: Tensor) -> Tensor:
        brightness = draw.uniform(len(images), -config.brightness, config.brightness)
        return photometry.contrast(images, strength, brightness)

    def erase(images: Tensor, strength: Tensor) -> Tensor:
        return _erase(images, config, draw)

    return [
        (config.vignette, photometry.vignette),
        (config.blur, blur),
        (config.early_resample, photometry.resample),
        (config.crispen, photometry.crispen),
        (config.low_light, low_light),
        (config.sensor_noise, sensor_noise),
        (config.gaussian_noise, gaussian_noise),
        (config.white_balance, white_balance),
        (config.saturation, photometry.saturation),
        (config.hue, photometry.hue),
        (config.gamma, photometry.gamma),
        (config.tone_curve, tone_curve),
        (config.contrast, contrast),
        (Change(config.grey, 0.0, 0.0), photometry.saturation),
        (config.sepia, photometry.sepia),
        (config.sharpen, photometry.sharpen),
        (config.jpeg, jpeg),
        (config.late_resample, photometry.resample),
        (config.erase, erase),
    ]


def _erase(images: Tensor, config: AugmentConfig, draw: _Draw) -> Tensor:
    """Rectangles filled with noise, with the picture's mean or with one colour."""
    count, _, height, width = images.shape
    device = images.device
    x = (torch.arange(width, device=device) + 0.5) / width
    y = (torch.arange(height, device=device)[:, None] + 0.5) / height
    noise = torch.rand(images.shape, generator=draw.generator, device=device)
    mean = images.mean((2, 3), keepdim=True)
    for _ in range(config.erase_count):

        def column(low: float, high: float) -> Tensor:
            return draw.uniform(count, low, high)[:, None, None, None]

        half_width, half_height = (
            0.5 * column(config.erase.low, config.erase.high) for _ in range(2)
        )
        within = ((x - column(0, 1)).abs() < half_width) & ((y - column(0, 1)).abs() < half_height)
        colour = torch.rand((count, 3, 1, 1), generator=draw.generator, device=device)
        kind = column(0, 3)
        fill = torch.where(kind < 1, noise, torch.where(kind < 2, mean, colour))
        # Fewer rectangles are likelier than all of them.
        images = torch.where(within & (column(0, 1) < 0.6), fill, images)
    return images


def hide_nadir(
    images: Tensor, latitude: Tensor, probability: float, generator: torch.Generator
) -> Tensor:
    """Pictures (B, 3, H, W) of latitudes (B, 1, H, W) with the nadir in one random colour.

    What panorama makers put over their tripod tells the way down, and only there.
    """
    draw = _Draw(generator, images.device)
    colour = torch.rand((len(images), 3, 1, 1), generator=generator, device=images.device)
    hidden = (draw.uniform(len(images)) < probability)[:, None, None, None]
    return torch.where(hidden & (latitude < math.radians(NADIR_DEG - 90)), colour, images)


def flip(
    images: Tensor, gravity: Tensor, camera: Camera, chosen: Tensor | None = None
) -> tuple[Tensor, Tensor, Camera]:
    """Pictures (B, 3, H, W), gravity (B, 3) and cameras seen in a mirror, left for right.

    chosen (B,): which of them; by default all.
    """
    if chosen is None:
        chosen = torch.ones(len(images), dtype=torch.bool, device=images.device)
    x, y, z = gravity.unbind(-1)
    cx, cy = camera.c.unbind(-1)
    return (
        torch.where(chosen[:, None, None, None], images.flip(-1), images),
        torch.stack([torch.where(chosen, -x, x), y, z], -1),
        replace(camera, c=torch.stack([torch.where(chosen, camera.size[:, 0] - cx, cx), cy], -1)),
    )
