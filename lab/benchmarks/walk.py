"""What one photo passes: modules, functions, jumps from module to module, and calls upon calls.

python lab/benchmarks/walk.py                     of examples/town.jpg
python lab/benchmarks/walk.py PHOTO --modules     and every module, in the order of the walk
python lab/benchmarks/walk.py --camera-model pinhole    where the kind of lens is not chosen first

A second calibration by the same ``Calibrator`` is profiled, on the ONNX engine and one thread: what
is loaded and compiled once is left out. Only code of the package counts; a call through code of
others (a decorator, a sort) counts as one by the module of the package that led there.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).parents[2]


@dataclass
class Walk:
    """What was counted. Modules are named as in imports, without the package's name."""

    calls: dict[tuple[str, str], int] = field(default_factory=dict)
    """Of every function, by its module and qualified name, in the order of their first calls."""
    jumps: int = 0
    """Calls of a function of one module from another."""
    depth: int = 0
    """The most functions of the package that were running at once, each inside the one before."""

    @property
    def modules(self) -> list[str]:
        """In the order of their first calls."""
        return list(dict.fromkeys(module for module, _ in self.calls))

    @property
    def functions(self) -> int:
        """How many different ones were called."""
        return len(self.calls)

    def sentence(self) -> str:
        """The four numbers in one sentence."""
        return (
            f"{len(self.modules)} modules, {self.functions} functions, {self.jumps} jumps between "
            f"modules, {self.depth} calls deep"
        )


def walk(photo: Path, camera_model: str | None = None) -> Walk:
    """Profile one warm calibration of the photo, with the default camera model or a named one."""
    os.environ["OMP_NUM_THREADS"] = "1"
    import geocalib

    calibrator = geocalib.Calibrator(engine="onnx")
    named = {} if camera_model is None else {"camera_model": camera_model}
    calibrator.calibrate(photo, **named)
    package = Path(geocalib.__file__).parent
    counted = Walk()
    # Of every running function: the module of the package it belongs to or was called by, and how
    # many functions of the package are running.
    running: list[tuple[str | None, int]] = [(None, 0)]
    names: dict[CodeType, str | None] = {}

    def module_of(code: CodeType) -> str | None:
        if code not in names:
            path = Path(code.co_filename)
            inside = path.is_relative_to(package)
            parts = path.relative_to(package).with_suffix("").parts if inside else ()
            names[code] = ".".join(parts) if inside else None
        return names[code]

    def count(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            caller, depth = running[-1]
            module = module_of(frame.f_code)
            if module is None:
                running.append((caller, depth))
                return
            function = (module, frame.f_code.co_qualname)
            counted.calls[function] = counted.calls.get(function, 0) + 1
            counted.jumps += caller is not None and caller != module
            counted.depth = max(counted.depth, depth + 1)
            running.append((module, depth + 1))
        elif event == "return" and len(running) > 1:
            running.pop()

    sys.setprofile(count)
    try:
        calibrator.calibrate(photo, **named)
    finally:
        sys.setprofile(None)
    return counted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("photo", type=Path, nargs="?", default=ROOT / "examples/town.jpg")
    parser.add_argument("--camera-model", help="a name, by default the default of Calibrator")
    parser.add_argument("--modules", action="store_true", help="list every module")
    arguments = parser.parse_args()
    counted = walk(arguments.photo, arguments.camera_model)
    print(counted.sentence())
    if arguments.modules:
        for name in counted.modules:
            own = [count for (module, _), count in counted.calls.items() if module == name]
            print(f"{name:32} {len(own):3} functions, {sum(own):5} calls")


if __name__ == "__main__":
    main()
