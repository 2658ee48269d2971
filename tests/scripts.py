"""Scripts that are no part of the package, to be tested as modules."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType


def load_script(path: Path) -> ModuleType:
    """What a script defines; it does not take itself for the program."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look for their module there.
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module
