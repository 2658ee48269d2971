"""One process at a time, and none that is gone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from geocalib.errors import OutputError
from geocalib.files import locked

HOLDS = """
import sys
from pathlib import Path
from geocalib.files import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_one_at_a_time(tmp_path: Path) -> None:
    out, link = tmp_path / "out.csv", tmp_path / "link.csv"
    link.symlink_to(out)
    with locked(out):
        for name in (out, link):
            line = rf"{name.name} is being written by process {os.getpid()}; wait for it, or choose"
            with pytest.raises(OutputError, match=line), locked(name):
                pass
        with locked(tmp_path / "other.csv"):
            pass
    with locked(out):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["link.csv"]


def test_a_crash_ends_a_lock(tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    words = [sys.executable, "-c", HOLDS, str(out)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(OutputError, match=f"process {other.pid};"), locked(out):
            pass
        other.kill()
        other.wait()
        assert (tmp_path / "out.csv.lock").exists()
        with locked(out):
            pass
    assert list(tmp_path.iterdir()) == []


def test_folders_that_are_not_needed_are_not_left(tmp_path: Path) -> None:
    with locked(tmp_path / "new" / "deep" / "out.csv"):
        pass
    assert list(tmp_path.iterdir()) == []
    with locked(tmp_path / "new" / "deep" / "out.csv"):
        (tmp_path / "new" / "file").touch()
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["file"]


def test_devices_are_for_all() -> None:
    with locked(Path(os.devnull)), locked(Path(os.devnull)):
        pass
