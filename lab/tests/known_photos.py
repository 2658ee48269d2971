"""For the tests of evaluation: photographs with a table of truth, and answers to compare with."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from calibrations import one
from geocalib.imaging import ImageSource
from geocalib.nets.lean import LeanConfig, LeanNetwork
from geocalib.nets.weights.card import WeightCard
from geocalib.nets.weights.files import save_weights
from geocalib.result.calibration import Calibration, Outcome
from geocalib_lab.evaluation.datasets import Sample
from little_encoder import register_little

SIZE = (64, 48)

CARD = WeightCard(
    name="fake",
    architecture="lean",
    short_side=24,
    trained=True,
    licence="none",
    source="a test",
    description="answers that are known",
)


def save_picture(file: Path, size: tuple[int, int] = SIZE, seed: int = 0) -> Path:
    """Noise, which is as sharp as can be."""
    pixels = np.random.default_rng(seed).integers(0, 255, (size[1], size[0], 3), dtype=np.uint8)
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(file)
    return file


def write_set(folder: Path, table: str, text: str, pictures: str = "images") -> Path:
    """A folder with a table, and pictures a.png and b.png."""
    for name in ("a.png", "b.png"):
        save_picture(folder / pictures / name)
    (folder / table).write_text(text)
    return folder


def sample(name: str = "a.png", **truth: object) -> Sample:
    """A level photograph of 60 degrees, unless told otherwise."""
    given = {"roll_deg": 0.0, "pitch_deg": 0.0, "vfov_deg": 60.0} | truth
    return Sample(Path(name), *SIZE, **given)  # type: ignore[arg-type]


def answer(
    vfov_deg: float = 60.0,
    roll_deg: float = 0.0,
    pitch_deg: float = 0.0,
    k1: float | None = None,
    sigmas_deg: tuple[float, float, float] = (1.0, 1.0, 1.0),
) -> Calibration:
    """An answer with sigmas of roll, pitch and vFoV; the others are 10% of the focal length and
    0.1 of k1."""
    f = 0.5 * SIZE[1] / math.tan(math.radians(vfov_deg) / 2)
    centre = (0.5 * SIZE[0], 0.5 * SIZE[1])
    model, distortion = ("pinhole", ()) if k1 is None else ("simple_radial", (k1,))
    calibration = one(
        model, None, roll_deg, pitch_deg, f=f, size=SIZE, c=centre, distortion=distortion
    )
    roll, pitch, vfov = sigmas_deg
    sigma = replace(
        calibration.sigma,
        roll_deg=roll,
        pitch_deg=pitch,
        vfov_deg=vfov,
        focal=0.1 * f,
        distortion=(0.1,) * len(distortion),
    )
    return replace(calibration, sigma=sigma)


def save_little_weights(file: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Weights of a network that is quick to make."""
    register_little(monkeypatch)
    torch.manual_seed(0)
    save_weights(file, LeanNetwork(LeanConfig("little", (4, 6, 32), blocks=1)), CARD)
    return file


@dataclass
class FakeCalibrator:
    """Answers by a rule: an image to an outcome."""

    rule: Callable[[ImageSource], Outcome]
    card: WeightCard = CARD
    calls: list[tuple[int, str]] = field(default_factory=list)
    """Number of images and camera model of each call."""
    options: list[dict[str, Any]] = field(default_factory=list)
    """What else each call was told."""

    def calibrate(
        self, images: Sequence[ImageSource], camera_model: str = "pinhole", **options: Any
    ) -> list[Outcome]:
        self.calls.append((len(images), camera_model))
        self.options.append(options)
        return [self.rule(image) for image in images]


def by_name(answers: dict[str, Outcome]) -> Callable[[ImageSource], Outcome]:
    """The rule of a table of file names."""

    def rule(image: ImageSource) -> Outcome:
        assert isinstance(image, str | os.PathLike)
        return answers[Path(image).name]

    return rule
