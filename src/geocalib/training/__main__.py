"""``python -m geocalib.training``: train a lean network on a folder of panoramas."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import distributed

from geocalib.errors import ConfigError, GeoCalibError
from geocalib.nets.encoders import load_pretrained
from geocalib.nets.lean import LeanNetwork
from geocalib.training import checkpoint
from geocalib.training.batches import make_draw, validation_pictures
from geocalib.training.config import read_config
from geocalib.training.loop import Budget, Places, train
from geocalib.training.panorama import PanoramaBank, decode_folder
from geocalib.training.processes import Process, join
from geocalib.training.trainer import Trainer


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 if all went well."""
    start = time.perf_counter()
    options = _parser().parse_args(arguments)
    try:
        _run(options, start)
    except GeoCalibError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m geocalib.training", description=__doc__)
    parser.add_argument("--config", type=Path, help="TOML file of settings")
    parser.add_argument("--panos", type=Path, required=True, help="folder of train/ and val/")
    parser.add_argument("--out", type=Path, required=True, help="folder for whole.pt and the rest")
    parser.add_argument("--travel", type=Path, help="folder of light files (default: OUT/travel)")
    parser.add_argument("--cache", type=Path, help="folder of decoded panoramas (default: OUT)")
    parser.add_argument("--minutes", type=float, help="stop in time to be done by then")
    parser.add_argument("--steps", type=int, help="stop at this step")
    parser.add_argument("--encoder", type=Path, help="pretrained weights of the encoder")
    parser.add_argument("--init", type=Path, help="exported weights to start from, as DIR/raw")
    parser.add_argument("--resume", type=Path, help="whole.pt to go on from exactly")
    parser.add_argument("--device", choices=("cpu", "cuda"), help="default: cuda if there is one")
    parser.add_argument(
        "--set", nargs="+", action="extend", default=[], metavar="KEY=VALUE", help="change settings"
    )
    return parser


def _run(options: argparse.Namespace, start: float) -> None:
    config = read_config(options.config, options.set)
    travel = options.travel or options.out / "travel"
    cache = options.cache or options.out
    with join(options.device) as process:
        banks = {
            split: _bank(options.panos, split, cache, config.panorama_width, process)
            for split in ("train", "val")
        }
        torch.manual_seed(config.seed)
        network = LeanNetwork(config.network)
        if options.encoder is not None:
            load_pretrained(network.encoder, options.encoder)
        if options.init is not None:
            network.load_state_dict(checkpoint.import_shards(options.init))
        trainer = Trainer(config, network, make_draw(banks["train"], config), process)
        if options.resume is not None:
            trainer.restore(checkpoint.load(options.resume, process.device))
        pictures = validation_pictures(banks["val"], config) if process.leads else []
        seconds = None
        if options.minutes is not None:
            spent = time.perf_counter() - start
            seconds = 60 * options.minutes - config.closing_seconds - spent
            print(f"ready after {spent:.0f} s; {seconds:.0f} s to train", flush=True)
        train(
            trainer,
            pictures,
            Budget(options.steps, seconds),
            Places(options.out / "whole.pt", travel),
        )


def _bank(folder: Path, split: str, cache: Path, width: int, process: Process) -> PanoramaBank:
    """The panoramas of a split, decoded by the leading process."""
    names = [f"{split}/{path.name}" for path in sorted((folder / split).glob("*.webp"))]
    if not names:
        raise ConfigError(f"{folder / split} holds no .webp file; put panoramas there")
    file = cache / f"{split}.rgb"
    if process.leads:
        decode_folder(folder, file, names, width)
    if process.count > 1:
        distributed.barrier()
    manifest = folder / "manifest.csv"
    return PanoramaBank.load(
        file, file.with_suffix(".json"), process.device, manifest if manifest.exists() else None
    )


if __name__ == "__main__":
    sys.exit(main())
