"""Which package may import which, by the code; imports in functions and for types are included."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path
from types import FrameType

import pytest

from geocalib import Calibrator
from scripts import load_script

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"

SCRIPT = """
import sys
import geocalib.cameras
from geocalib.geometry import fields, gravity, horizon
print(*sorted({"scipy", "cv2", "matplotlib", "PIL"} & set(sys.modules)))
"""


architecture = load_script(DOCS / "make_architecture.py")
Graph = dict[str, set[str]]


@pytest.fixture(scope="module")
def graph() -> Graph:
    """The modules that each module imports."""
    found: Graph = architecture.imports(architecture.modules())
    return found


@pytest.fixture(scope="module")
def packages(graph: Graph) -> Graph:
    """The packages that each package imports."""
    found: Graph = architecture.packages(graph)
    return found


def test_geometry_imports_nothing_else() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []


def test_a_calibrator_is_there_before_what_it_needs_for_photos() -> None:
    """So that the network is opened while the rest is imported, by who waits for it."""
    script = """
import sys
from geocalib import Calibrator
print(*{"numpy", "PIL", "onnxruntime", "geocalib.solver"} & set(sys.modules))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []


@pytest.mark.parametrize("package", ["cameras", "geometry", "solver", "result"])
def test_mathematics_starts_without_torch(package: str) -> None:
    script = f"""
import pkgutil, sys
import geocalib.{package}
for module in pkgutil.iter_modules(geocalib.{package}.__path__):
    if module.name != "implicit":
        __import__(f"geocalib.{package}.{{module.name}}")
print("torch" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False"]


def test_circles_are_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}
    assert architecture.circles(graph) == [["b", "c"]]


def test_no_module_imports_itself_by_way_of_others(graph: Graph) -> None:
    # The root has everybody's names, for users; nobody inside needs them from there.
    inside = {module: others for module, others in graph.items() if module != "geocalib"}
    assert architecture.circles(inside) == []


def test_no_package_imports_itself_by_way_of_others(packages: Graph) -> None:
    assert architecture.circles(packages) == []


def test_nobody_inside_imports_the_root(graph: Graph) -> None:
    users = {module for module, others in graph.items() if "geocalib" in others}
    assert users == set()


def test_nothing_imports_the_command_line(packages: Graph) -> None:
    assert {name for name, others in packages.items() if "cli" in others} == set()


def test_the_product_needs_nothing_of_the_laboratory() -> None:
    for path in (ROOT / "src").rglob("*.py"):
        assert not re.search(r"^\s*(from|import) geocalib_lab", path.read_text(), re.M), path


def test_no_module_of_the_laboratory_imports_itself_by_way_of_others() -> None:
    modules = architecture.modules(ROOT / "lab" / "src")
    assert len(modules) > 50
    assert architecture.circles(architecture.imports(modules)) == []


@pytest.mark.parametrize("package", ["cameras", "geometry", "solver"])
def test_mathematics_knows_neither_files_nor_networks(packages: Graph, package: str) -> None:
    assert packages[package] <= {"arrays", "cameras", "geometry", "errors", "records"}


def test_networks_know_no_photos(packages: Graph) -> None:
    assert packages["nets"] <= {"files", "errors"}


class TestArchitecturePage:
    PAGE = (DOCS / "architecture.md").read_text()

    def test_every_package_is_told(self, packages: Graph) -> None:
        told = set(re.findall(r"^\| `(\w+)` \|", self.PAGE, re.M))
        assert told == set(packages)
        assert set(architecture.STORY) == set(packages)

    @pytest.mark.parametrize(
        "topic",
        ["Jacobian |", "EXIF becomes", "lines are weighed", "COLMAP file", "becomes a batch"],
    )
    def test_what_people_look_for_is_found(self, topic: str) -> None:
        (row,) = (row for row in self.PAGE.splitlines() if row.startswith("|") and topic in row)
        (name,) = re.findall(r"`(geocalib[.\w]+)`", row)
        module, _, member = name.rpartition(".")
        assert callable(getattr(importlib.import_module(module), member))

    def test_the_walk_is_the_one_that_a_photo_takes(self, packaged: Calibrator) -> None:
        """In the order of their first calls."""
        walk = re.findall(r"^\d+\. `([\w.]+)`", self.PAGE, re.M)
        assert len(walk) <= 12
        entered: list[str] = []

        def note(frame: FrameType, event: str, _: object) -> None:
            name = frame.f_globals.get("__name__", "").removeprefix("geocalib.")
            # To make or to slice a record is not to do its work.
            work = event == "call" and not frame.f_code.co_name.startswith("__")
            if work and name in walk and name not in entered:
                entered.append(name)

        # Once before: what is imported on the way is not the way.
        packaged.calibrate(ROOT / "examples" / "town.jpg")
        sys.setprofile(note)
        try:
            packaged.calibrate(ROOT / "examples" / "town.jpg")
        finally:
            sys.setprofile(None)
        assert entered == walk
