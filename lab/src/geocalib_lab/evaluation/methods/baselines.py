"""Baselines: methods with weights of their own, trained on equal terms (``docs/training.md``)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from geocalib.errors import WeightsError
from geocalib_lab.evaluation.run import Calibrates

MARK = "‡"

BASELINES = {
    "deepcalib": f"DeepCalib {MARK}",
    "paramnet": f"ParamNet {MARK}",
    "fields": f"fields, not end to end, our solver {MARK}",
    "endtoend": f"fields, end to end, our solver {MARK}",
}
"""Labels by the names that users give them. The last one is ours, trained as long as the others."""

FILES = {name: f"{name}.safetensors" for name in BASELINES} | {"fields": "paramnet.safetensors"}
"""Fields that are learnt without the fit are a part of ParamNet."""

FITTED = ("fields", "endtoend")
"""Those whose fields our solver fits."""


@dataclass(frozen=True)
class Baselines:
    """Where the weights of baselines are, and what runs them."""

    folder: Path | None = None
    device: str = "auto"

    @property
    def files(self) -> dict[str, Path]:
        """Where weights would be, by name."""
        if self.folder is None:
            return {}
        return {name: self.folder / file for name, file in FILES.items()}

    def check(self, names: Iterable[str]) -> None:
        """An error if one of these is a baseline that cannot be loaded."""
        for name in names:
            if name in BASELINES:
                self.load(name)

    def load(self, name: str) -> Calibrates:
        """A baseline; an error that says what to do if there are no weights of it."""
        # Not at the top: torch may not be installed.
        from geocalib.nets.weights.files import read_direct
        from geocalib.pipeline.calibrator import Calibrator
        from geocalib.pipeline.engines.torch import find_device
        from geocalib_lab.evaluation.methods.direct import Direct

        file = self._file(name)
        if name in FITTED:
            return Calibrator(file, device=self.device)
        return Direct(*read_direct(file), find_device(self.device))

    def _file(self, name: str) -> Path:
        file = self.files.get(name)
        if file is None:
            raise WeightsError(
                f"{name} has no weights: train it (docs/training.md) and name the folder of "
                f"{FILES[name]} with --baseline-weights"
            )
        if not file.is_file():
            raise WeightsError(f"{file} does not exist: train {name} (docs/training.md)")
        return file
