"""Roll, pitch and field of view of a video over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from geocalib.result.calibration import Calibration, Outcome
from geocalib.video.track import Tracked

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROWS = {"roll": "roll_deg", "pitch": "pitch_deg", "vFoV": "vfov_deg"}
RAW, OUTLIER, SMOOTHED = "#8d99ae", "#e63946", "#14213d"


def draw(frames: Sequence[Tracked], title: str) -> Figure:
    """Single frames as dots, all together as a line with a band of two sigmas."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 7), layout="constrained")
    figure.suptitle(title)
    times = np.array([frame.time for frame in frames])
    used = np.array([frame.status == "ok" for frame in frames], dtype=bool)
    for axes, (name, key) in zip(figure.subplots(3, sharex=True), ROWS.items(), strict=True):
        raw = _values([frame.raw for frame in frames], attrgetter(key))
        line = _values([frame.smoothed for frame in frames], attrgetter(key))
        sigma = _values([frame.smoothed for frame in frames], attrgetter(f"sigma.{key}"))
        axes.fill_between(
            times, line - 2 * sigma, line + 2 * sigma, color=SMOOTHED, alpha=0.15, linewidth=0
        )
        axes.plot(times[used], raw[used], ".", color=RAW, markersize=4, label="single frames")
        if not used.all():
            axes.plot(times[~used], raw[~used], "x", color=OUTLIER, markersize=4, label="left out")
        axes.plot(times, line, color=SMOOTHED, label="all together, ± 2 sigma")
        axes.set(ylabel=f"{name}, degrees")
        axes.grid(alpha=0.3)
        for before, frame in pairwise(frames):
            if frame.segment != before.segment:
                axes.axvline(frame.time, color=OUTLIER, linestyle=":", linewidth=1)
    figure.axes[0].legend(loc="upper right", ncols=3, fontsize="small")
    figure.axes[-1].set(xlabel="time, seconds")
    return figure


def _values(
    answers: Sequence[Outcome | None], value: Callable[[Calibration], float]
) -> npt.NDArray[np.float64]:
    """One number per frame, NaN where there is no answer."""
    known = [value(a) if isinstance(a, Calibration) else np.nan for a in answers]
    return np.array(known, dtype=np.float64)
