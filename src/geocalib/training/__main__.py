"""``python -m geocalib.training``: train a lean network on a folder of panoramas."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from torch import distributed

from geocalib.errors import GeoCalibError
from geocalib.nets.encoders import Encoder, load_pretrained
from geocalib.training import checkpoint
from geocalib.training.ablation import build_network, keep_owners
from geocalib.training.batches import make_draw, validation_pictures
from geocalib.training.cleaning import level_bank
from geocalib.training.config import TrainingConfig, WorldConfig, read_config
from geocalib.training.decode import decode_folder
from geocalib.training.loop import Budget, Places, train
from geocalib.training.panorama import PanoramaBank
from geocalib.training.pictures import find_panoramas
from geocalib.training.processes import Process, join
from geocalib.training.trainer import Trainer
from geocalib.training.worlds import panoramas

SHARP = "sharp"
"""The folder of further panoramas to learn from, wide enough for narrow views."""


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
    parser.add_argument(
        "--panos", type=Path, required=True, help="folder of train/, val/ and, if any, sharp/"
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for whole.pt and the rest")
    parser.add_argument("--travel", type=Path, help="folder of light files (default: OUT/travel)")
    parser.add_argument("--cache", type=Path, help="folder of decoded panoramas (default: OUT)")
    parser.add_argument("--minutes", type=float, help="stop in time to be done by then")
    parser.add_argument("--steps", type=int, help="stop at this step")
    parser.add_argument("--encoder", type=Path, help="pretrained weights of the encoder")
    parser.add_argument("--init", type=Path, help="exported weights to start from, as DIR/raw")
    parser.add_argument(
        "--levels", type=Path, help="table of tilted panoramas; made with --init if missing"
    )
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
    with join(options.device) as process, ThreadPoolExecutor(1) as aside:
        # Rendering keeps the device busy, decoding the other cores.
        worlds = aside.submit(make_worlds, config.worlds, process.device)
        bank = _bank(options.panos, "train", cache, config, process)
        torch.manual_seed(config.seed)
        network = build_network(config.network, config.ablation)
        if options.encoder is not None:
            encoder = network.encoder
            assert isinstance(encoder, Encoder)
            load_pretrained(encoder, options.encoder)
        if options.init is not None:
            network.load_state_dict(checkpoint.import_shards(options.init))
        if options.levels is not None:
            bank = level_bank(bank, options.levels, network.to(process.device), config)
        rendered = worlds.result()
        if rendered is not None:
            bank = bank.join(rendered)
        trainer = Trainer(config, network, make_draw(bank, config), process)
        if options.resume is not None:
            trainer.restore(checkpoint.load(options.resume, process.device))
        pictures = []
        if process.leads:
            pictures = validation_pictures(
                _bank(options.panos, "val", cache, config, process), config
            )
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


def make_worlds(config: WorldConfig, device: torch.device) -> PanoramaBank | None:
    """Rendered panoramas, each its own owner; None if there are to be none."""
    if config.count == 0:
        return None
    worlds = list(panoramas(config.count, config.width, config.seed, device, config.supersample))
    names = [f"world__{number}" for number in range(len(worlds))]
    return PanoramaBank.create(
        [picture for picture, _ in worlds], names, [kind for _, kind in worlds], device
    )


def _bank(
    folder: Path, split: str, cache: Path, config: TrainingConfig, process: Process
) -> PanoramaBank:
    """The panoramas of a split, decoded by the leading process."""
    parts = [split]
    if split == "train" and (folder / SHARP).is_dir():
        parts.append(SHARP)
    names = [f"{part}/{path.name}" for part in parts for path in find_panoramas(folder / part)]
    if split == "train":
        names = keep_owners(names, config.ablation.panorama_share)
    file = cache / f"{split}.rgb"
    if process.leads:
        again = config.compress_again if split == "train" else None
        decode_folder(folder, file, names, config.panorama_width, again)
    if process.count > 1 and split == "train":
        distributed.barrier()
    manifests = [folder / "manifest.csv", folder / SHARP / "manifest.csv"]
    told = [manifest for manifest in manifests if manifest.exists()]
    return PanoramaBank.load(file, file.with_suffix(".json"), process.device, told)


if __name__ == "__main__":
    sys.exit(main())
