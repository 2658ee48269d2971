"""The choice of the engine that runs a network, and an engine that is being loaded.

What each of them needs is imported when it is chosen.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from geocalib.errors import GET_TORCH, ConfigError, MissingPackageError
from geocalib.nets.onnx_names import SUFFIX
from geocalib.nets.weights.catalogue import PACKAGES, check_known, is_here
from geocalib.records import dataclass

if TYPE_CHECKING:
    from geocalib.pipeline.engines.onnx import OnnxEngine
    from geocalib.pipeline.engines.torch import TorchEngine


EngineName = Literal["auto", "onnx", "torch"]

DRIVERS = ("libcuda.so.1", "nvcuda.dll", "libamdhip64.so")
"""Libraries that come with the drivers of accelerators."""


@dataclass(frozen=True)
class EngineSpec:
    """How to make an engine, here or in another process. All as ``Calibrator`` takes it; "auto"
    weights become the name that is meant."""

    weights: str | Path = "auto"
    device: str = "auto"
    engine: EngineName = "auto"
    compile: bool = False

    def __post_init__(self) -> None:
        self.__dict__["weights"] = resolve_weights(self.weights, self.device)
        check_known(self.weights)

    @property
    def certain(self) -> bool:
        """Whether nothing can be wrong with it: the packaged weights, where they always run."""
        usual = self.engine in ("auto", "onnx") and self.device in ("auto", "cpu")
        return self.weights == "lean" and usual and not self.compile

    @property
    def file(self) -> str | None:
        """That of the weights, where they are not known by name."""
        return str(self.weights) if os.path.isfile(self.weights) else None

    def load(self) -> OnnxEngine | TorchEngine:
        """Load the engine of this specification."""
        return load_engine(self.weights, self.engine, self.device, self.compile)


class EngineFuture:
    """An engine that is being loaded, in a thread of its own: meanwhile modules are imported and
    photos decoded."""

    def __init__(self, spec: EngineSpec) -> None:
        self.spec = spec
        # First, as two threads that import one library at once may each find half of it. To open
        # the network is one thread's work, which leaves Python alone.
        if spec.engine == "torch":
            import numpy  # noqa: F401
        else:
            import geocalib.pipeline.engines.onnx  # noqa: F401
        with_one = ThreadPoolExecutor(1, "geocalib-engine")
        self._engine = with_one.submit(spec.load)
        with_one.shutdown(wait=False)

    def engine(self) -> OnnxEngine | TorchEngine:
        """The engine, when it is ready; an error if there can be none."""
        return self._engine.result()

    def afterwards(self, work: Callable[[], object]) -> None:
        """Do this in the same thread, when the engine is ready."""
        self._engine.add_done_callback(lambda _: work())


def load_engine(
    weights: str | Path, engine: EngineName, device: str, compile: bool
) -> OnnxEngine | TorchEngine:
    """The engine of a name, with a network on a device. All as ``Calibrator`` takes it."""
    if engine not in get_args(EngineName):
        raise ConfigError(f"engine is {engine!r}; known: {', '.join(get_args(EngineName))}")
    if engine == "auto":
        engine = "torch" if compile else choose(weights, device)
    if engine == "torch":
        if find_spec("torch") is None:
            check_known(weights)
            wish = "this engine" if weights in PACKAGES else str(weights)
            raise MissingPackageError(f"{wish} needs torch: {GET_TORCH}")
        from geocalib.nets.weights import files as networks
        from geocalib.pipeline.engines.torch import TorchEngine, find_device

        place = find_device(device)
        return TorchEngine(networks.load_network(weights), place, compile)
    if compile:
        raise ConfigError("compile needs the engine torch")
    from geocalib.pipeline.engines.onnx import OnnxEngine

    return OnnxEngine(weights, device)


def choose(weights: str | Path, device: str) -> Literal["onnx", "torch"]:
    """Torch where it has more than processors to run on, and for weights that need it."""
    if Path(weights).suffix == SUFFIX:
        return "onnx"
    if weights not in PACKAGES:
        return "torch"
    return "torch" if find_spec("torch") is not None and _elsewhere(device) else "onnx"


def resolve_weights(weights: str | Path, device: str) -> str | Path:
    """The weights that are meant; "auto" means the large ones where they are installed and an
    accelerator makes up for what they cost, else the lean ones."""
    if weights != "auto":
        return weights
    return "large" if is_here("large") and _elsewhere(device) else "lean"


def _elsewhere(device: str) -> bool:
    """Whether a device is something else than processors."""
    return _accelerated() if device == "auto" else device not in ("cpu", "coreml", "openvino")


def _accelerated() -> bool:
    """Whether torch is there and has an accelerator. Importing it takes seconds, so this is done
    only where there may be one."""
    if find_spec("torch") is None or not (sys.platform == "darwin" or any(map(_loads, DRIVERS))):
        return False
    from geocalib.pipeline.engines.torch import find_device

    return find_device("auto").type != "cpu"


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True
