"""The geometry stands on torch and numpy alone."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys
import geocalib.cameras
from geocalib.geometry import fields, gravity, horizon
print(*sorted({"scipy", "cv2", "matplotlib", "PIL"} & set(sys.modules)))
"""


def test_geometry_imports_nothing_else() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []
