"""The geometry stands on torch and numpy alone, and modules import each other in one direction."""

from __future__ import annotations

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import geocalib

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


def test_no_circle() -> None:
    """Imports in functions and those for types alone count, too."""
    graph = _imports(Path(geocalib.__file__).parent)
    assert "geocalib.result.record" in graph["geocalib.result.calibration"]
    TopologicalSorter(graph).prepare()  # CycleError names the modules.


def _imports(package: Path) -> dict[str, set[str]]:
    """The modules of a package that each of its modules imports, anywhere in it."""
    files = {}
    for file in package.rglob("*.py"):
        parts = file.relative_to(package.parent).with_suffix("").parts
        files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    graph: dict[str, set[str]] = {}
    for module, file in files.items():
        named = set()
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                named |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                several = {f"{node.module}.{alias.name}" for alias in node.names}
                named |= {name if name in files else str(node.module) for name in several}
        graph[module] = named & files.keys() - {module}
    return graph
