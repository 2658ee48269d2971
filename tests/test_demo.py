"""What ``make demo`` shows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

DEMO = Path(__file__).parents[1] / "examples" / "demo.py"
NAMES = {"roll", "pitch", "vFoV", "k1"}


def test_demo_recovers_the_camera_and_draws_it(tmp_path: Path) -> None:
    # One thread: on a busy machine, threads that wait for each other are slow.
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    run = [sys.executable, "-W", "error", str(DEMO)]
    shown = subprocess.run(
        run, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True
    ).stdout
    rows = [line.split() for line in shown.splitlines()]
    found = {row[0]: [float(v) for v in row[-3:]] for row in rows if row and row[0] in NAMES}
    assert set(found) == NAMES
    for true, estimated, sigma in found.values():
        assert 0 < sigma < 0.1
        assert abs(estimated - true) < 4 * sigma + 1e-4
    assert "status: converged" in shown
    assert (tmp_path / "out" / "demo.png").stat().st_size > 50_000
