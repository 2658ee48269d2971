"""Gravity and lens of a video against those of its frames: ``python lab/benchmarks/video.py``.

A hand-held camera looks around in a rendered town, and the network judges every frame; and the
same filters on made-up errors, as correlated from frame to frame as those of the network are.
Jitter is the standard deviation of the error's second difference: what an upright video shows.

python lab/benchmarks/video.py --simulated      without the network: seconds instead of minutes
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import cv2
import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from geocalib import Calibration, Calibrator, Camera, Failure
from geocalib.geometry import gravity as sphere
from geocalib.synthetic import render_scene
from geocalib.video.motion import FrameGravity, GravityEstimate, Moment, smooth
from geocalib.video.track import Tracker
from geocalib.video.turns import Watcher

SECONDS = 12
SIZE, FOCAL = (480, 360), 300.0
WIDE = Camera.create("pinhole", f=390.0, size=(1200, 900), dtype=torch.float32)
"""The picture that all frames of a path are cut from: turning a camera needs no new rays."""
SENSOR_NOISE = 4.0
"""Grey levels."""
HANDS = {"calm": 2.0, "lively": 0.5}
"""Powers of the frequency by which turns get smaller: hands push as hard at all rates, or harder at
high ones."""


@dataclass(frozen=True)
class Path:
    """How a camera in a hand turns."""

    time: Tensor
    """(N,) seconds."""
    gravity: Tensor
    """(N, 3)."""
    yaw: Tensor
    """(N,) radians."""


def hand_held(fps: float, seed: int, fall: float) -> Path:
    """Wanders by some degrees, up to once a second; fall: how much smaller fast turns are."""
    generator = torch.Generator().manual_seed(seed)
    time = torch.arange(round(SECONDS * fps), dtype=torch.float64) / fps

    def wander(degrees: float, fastest: float) -> Tensor:
        draw = torch.rand(2, 6, generator=generator, dtype=torch.float64)
        hertz = 0.1 + (fastest - 0.1) * draw[0]
        size = torch.randn(6, generator=generator, dtype=torch.float64) / hertz**fall
        sum_ = (size * torch.sin(2 * math.pi * (time[:, None] * hertz + draw[1]))).sum(1)
        return math.radians(degrees) * sum_ / sum_.std()

    gravity = sphere.from_roll_pitch(wander(3.0, 1.0), math.radians(4) + wander(2.5, 1.0))
    return Path(time, gravity, wander(4.0, 0.6))


def photographed(path: Path, town: int) -> list[npt.NDArray[np.uint8]]:
    """The frames of a path, with the noise of a sensor."""
    level = torch.tensor([[0.0, 1.0, 0.0]])
    wide = (255 * render_scene(WIDE, level, town, 1)[0]).to(torch.uint8).numpy()
    # Twice as fine at first, then shrunk: edges stay smooth. OpenCV counts from pixel centres.
    half = np.array([[1, 0, 0.5], [0, 1, 0.5], [0, 0, 1]])
    fine = np.array([[2 * FOCAL, 0, SIZE[0]], [0, 2 * FOCAL, SIZE[1]], [0, 0, 1]])
    turns = sphere.world_from_camera(path.gravity, path.yaw).numpy()
    generator = np.random.default_rng(town)
    frames = []
    for turn in turns:
        matrix = np.linalg.inv(half) @ WIDE.K[0].numpy() @ turn @ np.linalg.inv(fine) @ half
        size = (2 * SIZE[0], 2 * SIZE[1])
        flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
        seen = cv2.warpPerspective(wide, matrix, size, None, flags, cv2.BORDER_REPLICATE)
        frame = cv2.resize(seen, SIZE, interpolation=cv2.INTER_AREA)
        noisy = frame + generator.normal(0, SENSOR_NOISE, frame.shape)
        frames.append(noisy.clip(0, 255).astype(np.uint8))
    return frames


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--simulated", action="store_true", help="without the network")
    if not parser.parse_args().simulated:
        rendered(fps=10, towns=(0, 1))
    simulated()


def rendered(fps: float, towns: Sequence[int]) -> None:
    """The network on rendered frames."""
    calibrator = Calibrator()
    print(f"\nRendered paths of {SECONDS} s, {fps:g} fps, weights {calibrator.card.name}")
    header(
        "hand", "town", "answers", "gravity RMSE deg", "jitter deg", "less jitter", "vFoV RMSE deg"
    )
    truth = math.degrees(2 * math.atan(SIZE[1] / (2 * FOCAL)))
    for hand, town in product(HANDS, towns):
        path = hand_held(fps, town, HANDS[hand])
        tracker, watcher, raw, online = Tracker(), Watcher(), [], []
        frames = photographed(path, town)
        for k, outcome in enumerate(calibrator.calibrate(frames)):
            assert not isinstance(outcome, Failure)
            raw.append(outcome)
            time, flow = float(path.time[k]), watcher.see(frames[k])
            online.append(_known(tracker.add(k, time, outcome, flow).smoothed))
        smoothed = [_known(frame.smoothed) for frame in tracker.smoothed()]
        reference = jitter(path.gravity, _stacked(raw))
        kinds = {"single frames": raw, "online": online, "smoothed": smoothed}
        for name, answers in kinds.items():
            found = _stacked(answers)
            vfov = torch.tensor([answer.vfov_deg - truth for answer in answers])
            row(
                hand,
                town,
                name,
                f"{rmse(path.gravity, found):.3f}",
                f"{jitter(path.gravity, found):.3f}",
                f"{reference / jitter(path.gravity, found):.1f} x",
                f"{vfov.square().mean().sqrt():.2f}",
            )


def simulated() -> None:
    """Made-up errors of 0.35 degrees where 0.6 are claimed, forgotten over some time."""
    print(f"\nSimulated errors of 0.35 degrees, claimed 0.6, paths of {SECONDS} s, mean of 4")
    header(
        "hand",
        "fps",
        "memory s",
        "gravity RMSE deg",
        "smoothed",
        "jitter deg",
        "smoothed",
        "less jitter",
    )
    for hand, fps, memory in product(HANDS, (5, 10, 30), (0.0, 0.2, 0.5)):
        runs = [_simulated(hand_held(fps, seed, HANDS[hand]), memory, seed) for seed in range(4)]
        before, after, shaky, steady = torch.tensor(runs).mean(0).tolist()
        values = (f"{v:.3f}" for v in (before, after, shaky, steady))
        row(hand, fps, memory, *values, f"{shaky / steady:.1f} x")


def _simulated(path: Path, memory: float, seed: int) -> tuple[float, float, float, float]:
    kept = math.exp(-float(path.time[1]) / memory) if memory else 0.0
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(len(path.time), 2, generator=generator, dtype=torch.float64)
    error = [noise[0]]
    for new in noise[1:]:
        error.append(kept * error[-1] + math.sqrt(1 - kept**2) * new)
    seen = sphere.move(path.gravity, math.radians(0.35) * torch.stack(error))
    claimed = math.radians(0.6) ** 2 * torch.eye(2, dtype=torch.float64)
    times = path.time.tolist()
    sights = [FrameGravity(Moment(time), g, claimed) for time, g in zip(times, seen, strict=True)]
    found = _stacked(smooth(sights, [sight.moment for sight in sights]))
    truth = path.gravity
    return rmse(truth, seen), rmse(truth, found), jitter(truth, seen), jitter(truth, found)


def rmse(truth: Tensor, found: Tensor) -> float:
    """Degrees, of gravities (N, 3)."""
    return float(_error_deg(truth, found).square().sum(1).mean().sqrt())


def jitter(truth: Tensor, found: Tensor) -> float:
    """Degrees: the standard deviation of the error's second difference."""
    second = _error_deg(truth, found).diff(n=2, dim=0)
    return float((second - second.mean(0)).square().sum(1).mean().sqrt())


def _error_deg(truth: Tensor, found: Tensor) -> Tensor:
    return sphere.difference(truth, found, sphere.tangent_basis(truth)).rad2deg()


def _stacked(answers: Sequence[Calibration | GravityEstimate]) -> Tensor:
    return torch.stack([answer.gravity for answer in answers])


def _known(answer: Calibration | None) -> Calibration:
    assert answer is not None
    return answer


def row(*cells: object) -> None:
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def header(*cells: str) -> None:
    print()
    row(*cells)
    row(*["---"] * len(cells))


if __name__ == "__main__":
    main()
