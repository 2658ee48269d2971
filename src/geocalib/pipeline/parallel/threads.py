"""How many threads there are, of whom, and how many images at once: the one place that says it.

BLAS, OpenMP, torch, OpenCV and ONNX Runtime each bring a pool as large as the machine. Where
several of them work at a time, or several processes do, each then waits for the others.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import get_native_id
from typing import TypeVar

Made = TypeVar("Made")

POOLS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "OPENCV_FOR_THREADS_NUM",
)
"""What the libraries read from the environment as they are loaded. The first is read by our engine
(``geocalib.pipeline.engines.onnx``) and by torch as well."""

KEPT = {"MALLOC_MMAP_THRESHOLD_": "33554432", "MALLOC_TRIM_THRESHOLD_": "268435456"}
"""Bytes, set in GNU's C library: up to the first as one piece, and up to the second in all, freed
memory is kept for the next photo. Else it goes back to the system and is requested again, page by
page: a tenth of the time of the line detector."""

BEHIND = 10
"""How nice, on top of what this process is, threads are that give way to others."""

QUOTA = Path("/sys/fs/cgroup/cpu.max")
"""Where Linux tells a container how much of the machine it may use."""


BATCH = {"cpu": 4}
"""Images through the network at once, by kind of device: a processor gains nothing from more."""
LARGEST_BATCH = 64
"""Images at once on other devices."""


def batch_on(kind: str) -> int:
    """Images through the network at once on a kind of device."""
    return BATCH.get(kind, LARGEST_BATCH)


def threads() -> int:
    """As many as there are cores for this process, or as OMP_NUM_THREADS says."""
    stated = os.environ.get(POOLS[0], "")
    return int(stated) if stated.isdecimal() and int(stated) > 0 else cores()


def low_priority(make: Callable[[], Made]) -> Made:
    """What a function makes. The threads that it starts give way, on busy cores, to those of
    others: a network takes a core that lines are looked for on when these are done with it. On
    Linux, where single threads have a priority; elsewhere they are like all others."""
    with ThreadPoolExecutor(1, initializer=_lower_priority) as pool:
        return pool.submit(make).result()


def _lower_priority() -> None:
    """Lower the priority of this thread for good; threads that it starts inherit it."""
    if sys.platform == "linux":
        own = get_native_id()
        # A sandbox may forbid it, and all goes on without.
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, own, os.getpriority(os.PRIO_PROCESS, own) + BEHIND)


def cores() -> int:
    """Cores that this process may use."""
    there = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        there = len(os.sched_getaffinity(0))
    return max(1, min(there, _quota(there)))


def _quota(most: int) -> int:
    """What of so many cores a container is allowed, rounded."""
    try:
        share, period = QUOTA.read_text().split()
        return round(int(share) / int(period))
    except (OSError, ValueError):  # No container, or one without a limit: "max".
        return most


def start_quickly() -> None:
    """Before NumPy is loaded, in a process of ours: to start BLAS's threads takes longer than all
    that the small matrices here are multiplied for."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def environment(count: int) -> Mapping[str, str]:
    """That of a worker: every pool has so many threads, and memory is kept."""
    return {**KEPT, **os.environ, **dict.fromkeys(POOLS, str(count))}
