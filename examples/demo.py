"""From a noisy perspective field to a camera with uncertainties: ``make demo``.

A camera looks at a synthetic town. Its exact field is spoilt by noise and by two regions of
nonsense that carry little confidence, as a network's would be, and the fit gets it all back.
"""

from __future__ import annotations

import math
import time
from pathlib import Path

import torch
from torch import Tensor

from geocalib import Camera, Fields, fit, perspective_field
from geocalib.draw import fit_figure
from geocalib.fields import pixel_grid
from geocalib.gravity import from_roll_pitch
from geocalib.synthetic import render_scene

WIDTH, HEIGHT = 480, 320
ROLL_DEG, PITCH_DEG, VFOV_DEG, K1 = 8.0, -12.0, 65.0, -0.1
NOISE_DEG = 2.0
BLUNDERS = ((110.0, 200.0, 60.0), (370.0, 90.0, 45.0))
"""Centre x, y and radius, in pixels, of the regions where the field is wrong."""


def observe(camera: Camera, gravity: Tensor, seed: int = 0) -> Fields:
    """The field of one camera, as if a network had seen it."""
    generator = torch.Generator().manual_seed(seed)
    up, latitude, _ = perspective_field(camera, gravity)
    grid = pixel_grid(WIDTH, HEIGHT, up)

    def noise() -> Tensor:
        return math.radians(NOISE_DEG) * torch.randn(latitude.shape, generator=generator)

    turn, climb, confidence = noise(), noise(), torch.ones(1, HEIGHT, WIDTH)
    for x, y, radius in BLUNDERS:
        distance = torch.linalg.vector_norm(grid - torch.tensor([x, y]), dim=-1) / radius
        bump = (1 - distance**2).clamp(min=0)
        turn, climb = turn + 0.6 * bump, climb + 0.5 * bump
        # Wherever the field is wrong the confidence is low, and it recovers a little further out.
        confidence = confidence * ((distance - 1) / 0.4).clamp(0.02, 1)
    up_x, up_y = up[:, :1], up[:, 1:]
    cosine, sine = torch.cos(turn), torch.sin(turn)
    turned = torch.cat([cosine * up_x - sine * up_y, sine * up_x + cosine * up_y], 1)
    return Fields(turned, latitude + climb, confidence, confidence)


def main() -> None:
    f = 0.5 * HEIGHT / math.tan(math.radians(0.5 * VFOV_DEG))
    camera = Camera.create("simple_radial", f=f, size=(WIDTH, HEIGHT), distortion=[K1])
    gravity = from_roll_pitch(*torch.deg2rad(torch.tensor([[ROLL_DEG], [PITCH_DEG]])))
    fields = observe(camera, gravity)

    start = time.perf_counter()
    result = fit(fields, camera_model="simple_radial")
    elapsed = time.perf_counter() - start

    print(f"{WIDTH} x {HEIGHT} pixels of field, noise of {NOISE_DEG:.0f} degrees, and blunders\n")
    print(f"{'':12}{'true':>10}{'estimated':>12}{'sigma':>10}")
    sigma = result.sigma
    for name, digits, true, estimated, error in (
        ("roll deg", 3, ROLL_DEG, result.roll_deg, sigma.roll_deg),
        ("pitch deg", 3, PITCH_DEG, result.pitch_deg, sigma.pitch_deg),
        ("vFoV deg", 3, VFOV_DEG, result.vfov_deg, sigma.vfov_deg),
        ("k1", 5, K1, result.camera.distortion[:, 0], sigma.distortion[:, 0]),
    ):
        row = (
            f"{float(value):{width}.{digits}f}"
            for value, width in ((true, 10), (estimated, 12), (error, 10))
        )
        print(f"{name:12}{''.join(row)}")
    print(f"\nstatus: {result.status[0]}")
    print(f"time:   {1000 * elapsed:.0f} ms")

    path = Path("out", "demo.png")
    path.parent.mkdir(exist_ok=True)
    fit_figure(fields, result, image=render_scene(camera, gravity, seed=3)[0]).savefig(path)
    print(f"figure: {path}")


if __name__ == "__main__":
    main()
