"""What optics, sensors and people do to the values of pictures; nothing moves.

Every function takes pictures (B, 3, H, W) in [0, 1] with a strength (B,) per picture, and may
leave the range; the caller clamps.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

LUMA = (0.299, 0.587, 0.114)
DISPLAY_GAMMA = 2.2
"""Pictures are roughly the light to the power of 1 / 2.2."""
KERNEL_RADIUS = 7
"""Where blur kernels end, pixels."""


def per_picture(strength: Tensor) -> Tensor:
    """(B,) shaped to broadcast with (B, 3, H, W)."""
    return strength[:, None, None, None]


def luma(images: Tensor) -> Tensor:
    """(B, 1, H, W) brightness as seen."""
    red, green, blue = images.unbind(1)
    return (LUMA[0] * red + LUMA[1] * green + LUMA[2] * blue).unsqueeze(1)


def gamma(images: Tensor, exponent: Tensor) -> Tensor:
    """Brighter (exponent below 1) or darker, black and white kept."""
    return images.clamp(min=1e-5) ** per_picture(exponent)


def tone_curve(images: Tensor, shadows: Tensor, lights: Tensor) -> Tensor:
    """A cubic Bezier curve from black to white, lifted by shadows and lights at its thirds.

    It rises everywhere while both stay within a third.
    """
    x, y = images, 1 - images
    low, high = per_picture(1 / 3 + shadows), per_picture(2 / 3 + lights)
    return 3 * y * y * x * low + 3 * y * x * x * high + x * x * x


def contrast(images: Tensor, factor: Tensor, brightness: Tensor) -> Tensor:
    """Stretched about the picture's mean, then shifted."""
    mean = images.mean((1, 2, 3), keepdim=True)
    return (images - mean) * per_picture(factor) + mean + per_picture(brightness)


def saturation(images: Tensor, factor: Tensor) -> Tensor:
    """Colours further from grey, or nearer; 0 is grey."""
    grey = luma(images)
    return grey + (images - grey) * per_picture(factor)


def hue(images: Tensor, angle: Tensor) -> Tensor:
    """Colours turned about the grey axis, radians."""
    # Rodrigues' formula about (1, 1, 1) / sqrt(3); the cross product is a difference of channels.
    cosine, sine = per_picture(torch.cos(angle)), per_picture(torch.sin(angle))
    across = (images.roll(1, 1) - images.roll(-1, 1)) / math.sqrt(3)
    mean = images.mean(1, keepdim=True)
    return mean + (images - mean) * cosine + across * sine


def white_balance(images: Tensor, warmth: Tensor, tint: Tensor) -> Tensor:
    """Gains of exp(warmth) for red, exp(-warmth) for blue and exp(tint) for green."""
    gains = torch.stack([warmth, tint, -warmth], 1).exp()
    return images * gains[:, :, None, None]


def sepia(images: Tensor, amount: Tensor) -> Tensor:
    """Towards the brown of old prints."""
    grey = luma(images)
    brown = torch.cat([1.10 * grey, 0.95 * grey, 0.75 * grey], 1)
    return torch.lerp(images, brown, per_picture(amount))


def vignette(images: Tensor, amount: Tensor) -> Tensor:
    """Darker towards the corners, where the given part of the light is lost."""
    height, width = images.shape[-2:]
    x = torch.linspace(-1, 1, width, device=images.device)
    y = torch.linspace(-1, 1, height, device=images.device)
    # Squared distance from the middle, 1 in the corners.
    aspect = width / height
    away = ((x * aspect) ** 2 + y[:, None] ** 2) / (1 + aspect * aspect)
    return images * (1 - per_picture(amount) * away)


def gaussian_noise(images: Tensor, sigma: Tensor, generator: torch.Generator) -> Tensor:
    """The same normal noise everywhere."""
    return images + per_picture(sigma) * _normal(images.shape, images, generator)


def sensor_noise(images: Tensor, sigma: Tensor, generator: torch.Generator) -> Tensor:
    """Noise of a high ISO, of sigma in full light: it falls with the root of the light, yet shows
    most in the dark, which displays lift; fine grain, and coarse blotches of colour."""
    batch, _, height, width = images.shape
    grain = _normal((batch, 1, height, width), images, generator)
    coarse = (batch, 3, -(-height // 3), -(-width // 3))
    blotches = functional.interpolate(
        _normal(coarse, images, generator), size=(height, width), mode="bilinear"
    )
    light = images.clamp(min=0) ** DISPLAY_GAMMA
    shot = per_picture(sigma) * (light + 0.01).sqrt()
    noisy = light + shot * (0.8 * grain + 0.8 * blotches)
    return noisy.clamp(min=1e-5) ** (1 / DISPLAY_GAMMA)


def low_light(images: Tensor, exposure: Tensor, generator: torch.Generator) -> Tensor:
    """The picture taken with a small part of the light, and with the noise that comes with it."""
    dark = images.clamp(min=1e-5) * per_picture(exposure) ** (1 / DISPLAY_GAMMA)
    return sensor_noise(dark, 0.02 / (0.2 + exposure), generator)


def _normal(shape: tuple[int, ...], like: Tensor, generator: torch.Generator) -> Tensor:
    return torch.randn(shape, generator=generator, device=like.device)


def blur(images: Tensor, sigma: Tensor, ratio: Tensor, angle: Tensor) -> Tensor:
    """Gaussian blur of sigma pixels along a direction (radians) and sigma * ratio across it."""
    place = _kernel_places(images)
    x, y = place[None, :], place[:, None]
    cosine, sine = torch.cos(angle)[:, None, None], torch.sin(angle)[:, None, None]
    along, across = x * cosine + y * sine, (y * cosine - x * sine) / ratio[:, None, None]
    kernel = torch.exp(-0.5 * (along**2 + across**2) / _variance(sigma)[:, None, None])
    return _convolve(images, kernel)


def soften(images: Tensor, sigma: Tensor) -> Tensor:
    """Gaussian blur of sigma pixels, the same in all directions."""
    kernel = torch.exp(-0.5 * _kernel_places(images) ** 2 / _variance(sigma)[:, None])
    return _convolve(_convolve(images, kernel[:, None, :]), kernel[:, :, None])


def _kernel_places(images: Tensor) -> Tensor:
    return torch.arange(-KERNEL_RADIUS, KERNEL_RADIUS + 1.0, device=images.device)


def _variance(sigma: Tensor) -> Tensor:
    # The floor is far below a pixel: sigma 0 changes nothing.
    return (sigma * sigma).clamp(min=1e-3)


def _convolve(images: Tensor, kernels: Tensor) -> Tensor:
    """Each picture with its own kernel (B, h, w), made to sum to one."""
    batch, channels = images.shape[:2]
    kernels = kernels / kernels.sum((1, 2), keepdim=True)
    down, right = kernels.shape[1] // 2, kernels.shape[2] // 2
    padded = functional.pad(images, (right, right, down, down), mode="reflect")
    # One group per channel of each picture.
    flat = padded.reshape(1, batch * channels, *padded.shape[-2:])
    weights = kernels.repeat_interleave(channels, 0, output_size=batch * channels)[:, None]
    return functional.conv2d(flat, weights, groups=batch * channels).reshape(images.shape)


def sharpen(images: Tensor, amount: Tensor) -> Tensor:
    """What a blur of one pixel takes away, added the given number of times."""
    return images + per_picture(amount) * (images - soften(images, torch.ones_like(amount)))


def crispen(images: Tensor, amount: Tensor) -> Tensor:
    """Blurred edges made steps: each pixel moves to the darker or the brighter extreme around it,
    whichever is nearer, by the given part of the way, twice."""
    for _ in range(2):
        bright = functional.max_pool2d(images, 3, stride=1, padding=1)
        dark = -functional.max_pool2d(-images, 3, stride=1, padding=1)
        nearer = torch.where(bright - images < images - dark, bright, dark)
        images = torch.lerp(images, nearer, per_picture(amount))
    return images


def resample(images: Tensor, factor: Tensor) -> Tensor:
    """Shrunk by a factor of 1 or more and enlarged again, by linear interpolation."""
    # The small picture lies in the top left of a canvas of the old size.
    small = _zoom(soften(images, 0.4 * factor), factor)
    return _zoom(small, 1 / factor)


def _zoom(images: Tensor, spacing: Tensor) -> Tensor:
    """The picture at points spaced by so many pixels, the first as far from the corner of the
    picture, in its spacing, as a pixel is."""
    height, width = images.shape[-2:]

    def places(size: int) -> Tensor:
        """(B, size) from -1 to 1 between the picture's borders."""
        centre = (torch.arange(size, device=images.device) + 0.5) * (2 / size)
        return spacing[:, None] * centre - 1

    x = places(width)[:, None, :].expand(-1, height, -1)
    y = places(height)[:, :, None].expand(-1, -1, width)
    grid = torch.stack([x, y], -1)
    return functional.grid_sample(images, grid, padding_mode="border", align_corners=False)
