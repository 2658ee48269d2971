"""``python -m geocalib_lab.training.release``: exported weights of a run as a file with a card.

Of a lean network, or of a baseline.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor

from geocalib.errors import ConfigError, FormatError, GeoCalibError
from geocalib.files import Guard
from geocalib.nets.weights.card import WeightCard
from geocalib.nets.weights.files import architecture_of, save_weights
from geocalib_lab.training import checkpoint
from geocalib_lab.training.config import TrainingConfig, read_config
from geocalib_lab.training.loop import TABLES
from geocalib_lab.training.networks import build_network

METHODS = {
    None: "fields learnt through the fit, with confidences",
    "deepcalib": "direct classification, 256 bins a parameter, in the manner of DeepCalib",
    "paramnet": "regression from fields, in the manner of Perspective Fields",
}
"""What a run learns, by its baseline."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 if all went well."""
    parser = argparse.ArgumentParser(prog="python -m geocalib_lab.training.release")
    parser.add_argument("--config", type=Path, help="TOML file of the run's settings")
    parser.add_argument(
        "--set", nargs="+", action="extend", default=[], metavar="KEY=VALUE", help="as of the run"
    )
    parser.add_argument("--travel", type=Path, required=True, help="folder of the run's ema-*.pt")
    parser.add_argument(
        "--start", type=Path, help="exported weights that the run began with, as DIR/ema, to mix in"
    )
    parser.add_argument("--start-share", type=float, default=0.3, help="their part (default: 0.3)")
    parser.add_argument("--on", default="", help="what it was trained on, as 'one H200'")
    parser.add_argument("--out", type=Path, required=True, help="file.safetensors")
    parser.add_argument("--overwrite", action="store_true", help="replace the file if it exists")
    options = parser.parse_args(arguments)
    try:
        shards = checkpoint.shards_of(options.travel / "ema")
        initial = [] if options.start is None else checkpoint.shards_of(options.start)
        read = (options.config, *shards, *initial, options.travel / TABLES[0])
        Guard(read, options.overwrite).check([options.out])
        config = read_config(options.config, options.set)
        start = None if options.start is None else Start(options.start, options.start_share)
        card = release(config, options.travel, options.out, options.on, start)
    except (GeoCalibError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"{options.out}: {card.description}")
    return 0


@dataclass(frozen=True)
class Start:
    """Weights that a run began with, to mix in: between both ends of a run lie networks that err
    less on what neither has seen."""

    weights: Path
    """The exported weights, as DIR/ema."""
    share: float

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise ConfigError(f"the share of the start is {self.share:g}; it is between 0 and 1")

    def mixed_into(self, state: dict[str, Tensor]) -> dict[str, Tensor]:
        """The weights on the way from the start to a state; matrices, as those two come, in half
        precision."""
        initial = checkpoint.import_shards(self.weights)
        if initial.keys() != state.keys():
            raise ConfigError(f"{self.weights} holds another network than the run")
        mixed = {}
        for name, value in state.items():
            between = torch.lerp(value.float(), initial[name].float(), self.share)
            mixed[name] = between.half().float() if value.dim() > 1 else between.to(value.dtype)
        return mixed


def release(
    config: TrainingConfig, travel: Path, out: Path, on: str = "", start: Start | None = None
) -> WeightCard:
    """Write the averaged weights that a run with this config left in a folder.

    on: what it was trained on, for people to read. start: mixed in, if given.
    """
    network = build_network(config.network, config.baseline)
    try:
        network.load_state_dict(checkpoint.import_shards(travel / "ema"))
    except RuntimeError as error:
        reason = str(error).splitlines()[-1].strip()
        raise ConfigError(f"{travel} holds another network than the settings: {reason}") from None
    if start is not None:
        network.load_state_dict(start.mixed_into(network.state_dict()))
    steps, minutes = time_spent(travel / TABLES[0])
    where = f" on {on}" if on else ""
    card = WeightCard(
        name=config.baseline or "lean",
        architecture=architecture_of(network),
        short_side=min(config.sizes[0]),
        detail=config.detail,
        camera_models="pinhole and radial distortion, k1 (H/f)^2 within "
        f"{config.views.distortion_limit:g}",
        trained=True,
        licence="Apache-2.0",
        source="trained by geocalib_lab.training; see docs/training.md",
        description=f"{METHODS[config.baseline]}; {minutes:.1f} minutes of training{where}, "
        f"{steps} steps of {config.batch} crops",
    )
    save_weights(out, network, card)
    return card


def time_spent(table: Path) -> tuple[int, float]:
    """Steps and minutes of training, by the log of a run; those of resumed runs are added up."""
    try:
        with table.open(newline="") as lines:
            rows = [(int(row["step"]), float(row["seconds"])) for row in csv.DictReader(lines)]
    except FileNotFoundError:
        raise FormatError(f"{table} does not exist; it tells how long the run took") from None
    except (KeyError, TypeError, ValueError):
        raise FormatError(f"{table} is no log of a training run") from None
    if not rows:
        raise FormatError(f"{table} has no line yet; train for more steps")
    ends = [a for (_, a), (_, b) in pairwise(rows) if b < a]
    return rows[-1][0], (sum(ends) + rows[-1][1]) / 60


if __name__ == "__main__":
    sys.exit(main())
