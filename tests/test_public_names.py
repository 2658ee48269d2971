"""What the package shows to those who look into it."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import geocalib
from geocalib import Calibrator
from test_without_torch import BLOCKED

PHOTO = Path(__file__).parents[1] / "examples" / "town.jpg"


def test_names_are_those_for_users() -> None:
    names = [name for name in dir(geocalib) if not name.startswith("__")]
    assert names == sorted(geocalib.__all__)


def test_its_version() -> None:
    assert geocalib.__version__ == version("geocalib")


def test_a_misspelt_name() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Calibrater'"):
        geocalib.Calibrater  # noqa: B018


@pytest.mark.parametrize("blocked", ["", BLOCKED])
def test_it_can_be_inspected(blocked: str) -> None:
    script = "import geocalib, inspect; inspect.getmembers(geocalib); help(geocalib)"
    done = subprocess.run(
        [sys.executable, "-c", blocked + script], capture_output=True, text=True, env=os.environ
    )
    assert done.returncode == 0, done.stderr
    assert "class Calibrator" in done.stdout


def test_a_calibrator_is_copied_and_travels(packaged: Calibrator) -> None:
    expected = packaged.calibrate(PHOTO)
    for other in (copy.deepcopy(packaged), pickle.loads(pickle.dumps(packaged))):
        assert other.engine_spec == packaged.engine_spec
        assert other.calibrate(PHOTO) == expected
