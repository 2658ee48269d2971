"""``python -m geocalib_lab.training``: train a lean network on a folder of panoramas."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path

import torch
from torch import distributed

from geocalib.errors import ConfigError, GeoCalibError
from geocalib.files import Guard, locked
from geocalib.nets.encoders import load_pretrained
from geocalib_lab.panoramas.decode import DECODED, decode_folder, is_decoded
from geocalib_lab.panoramas.panorama import PanoramaBank
from geocalib_lab.panoramas.pictures import find_panoramas
from geocalib_lab.training import checkpoint
from geocalib_lab.training.batches import make_draw, photo_pictures, validation_pictures
from geocalib_lab.training.cleaning import level_bank
from geocalib_lab.training.config import TrainingConfig, WorldConfig, read_config
from geocalib_lab.training.loop import LIGHT, TABLES, Budget, Places, train
from geocalib_lab.training.networks import build_network
from geocalib_lab.training.owners import among
from geocalib_lab.training.photos import PhotoBank, read_photo_bank
from geocalib_lab.training.processes import Process, join
from geocalib_lab.training.thin import thinned
from geocalib_lab.training.trainer import Trainer
from geocalib_lab.training.widen import widened
from geocalib_lab.training.worlds import panoramas

SHARP = "sharp"
"""The folder of further panoramas to learn from, wide enough for narrow views."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 if all went well."""
    start = time.perf_counter()
    options = _parser().parse_args(arguments)
    try:
        _run(options, start)
    except (GeoCalibError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m geocalib_lab.training", description=__doc__)
    parser.add_argument("--config", type=Path, help="TOML file of settings")
    parser.add_argument(
        "--panos", type=Path, required=True, help="folder of train/, val/ and, if any, sharp/"
    )
    parser.add_argument(
        "--photos", type=Path, help="folder of photos.csv or phones.csv, train/ and val/"
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for whole.pt and the rest")
    parser.add_argument("--travel", type=Path, help="folder of light files (default: OUT/travel)")
    parser.add_argument("--cache", type=Path, help="folder of decoded panoramas (default: OUT)")
    parser.add_argument("--minutes", type=float, help="stop in time to be done by then")
    parser.add_argument("--steps", type=int, help="stop at this step")
    parser.add_argument("--encoder", type=Path, help="pretrained weights of the encoder")
    parser.add_argument(
        "--init",
        type=Path,
        help="exported weights to start from, as DIR/raw; also of a narrower network",
    )
    parser.add_argument(
        "--levels", type=Path, help="table of tilted panoramas; made with --init if missing"
    )
    parser.add_argument("--resume", type=Path, help="whole.pt to go on from exactly")
    parser.add_argument("--device", choices=("cpu", "cuda"), help="default: cuda if there is one")
    parser.add_argument(
        "--overwrite", action="store_true", help="replace the files of an earlier run"
    )
    parser.add_argument(
        "--set", nargs="+", action="extend", default=[], metavar="KEY=VALUE", help="change settings"
    )
    return parser


def _run(options: argparse.Namespace, start: float) -> None:
    config = read_config(options.config, options.set)
    other = config.baseline is not None
    if options.levels is not None and other and not options.levels.exists():
        raise ConfigError(f"{options.levels} does not exist; a network of fields alone makes it")
    if config.photos.share and options.photos is None:
        raise ConfigError("photos.share needs --photos: say where photographs are, or set it to 0")
    travel = options.travel or options.out / "travel"
    cache = options.cache or options.out
    places = Places(options.out / "whole.pt", travel)
    with (
        join(options.device) as process,
        locked(places.whole) if process.leads else nullcontext(),
        ThreadPoolExecutor(1) as aside,
    ):
        if process.leads:
            _check_places(options, places, cache)
        # With cuDNN's attention some steps had gradients that were not finite, without it none had.
        torch.backends.cuda.enable_cudnn_sdp(False)
        # Rendering keeps the device busy, decoding the other cores.
        worlds = aside.submit(make_worlds, config.worlds, process.device)
        bank = _bank(options.panos, "train", cache, config, process)
        torch.manual_seed(config.seed)
        network = build_network(config.network, config.baseline)
        if options.encoder is not None:
            load_pretrained(network.encoder, options.encoder)
        if options.init is not None:
            given = checkpoint.import_shards(options.init)
            generator = torch.Generator().manual_seed(config.seed)
            wanted = network.state_dict()
            network.load_state_dict(widened(thinned(given, wanted), wanted, generator))
        if options.levels is not None:
            bank = level_bank(bank, options.levels, network.to(process.device), config)
        rendered = worlds.result()
        if rendered is not None:
            bank = bank.join(rendered)
        photo_bank: PhotoBank | None = None
        judged: dict[str, PhotoBank] = {}
        if options.photos is not None:
            photo_bank, judged = _photo_banks(options.photos, config, process)
        trainer = Trainer(config, network, make_draw(bank, config, photo_bank), process)
        if options.resume is not None:
            trainer.restore(checkpoint.load(options.resume, process.device))
        pictures = []
        if process.leads:
            pictures = validation_pictures(
                _bank(options.panos, "val", cache, config, process), config
            )
            pictures += photo_pictures(judged, config)
        seconds = None
        if options.minutes is not None:
            spent = time.perf_counter() - start
            seconds = 60 * options.minutes - config.closing_seconds - spent
            print(f"ready after {spent:.0f} s; {seconds:.0f} s to train", flush=True)
        train(
            trainer,
            pictures,
            Budget(options.steps, seconds),
            places,
        )


def _check_places(options: argparse.Namespace, places: Places, cache: Path) -> None:
    """An error unless the files of a run may be written; those it goes on from may."""
    goes_on = places.whole.exists() and options.resume is not None
    goes_on = goes_on and places.whole.samefile(options.resume)
    read = [options.config, options.encoder, options.levels, None if goes_on else options.resume]
    read += [] if options.init is None else checkpoint.shards_of(options.init)
    guard = Guard(read, options.overwrite)
    light = [path for name in LIGHT for path in sorted(places.travel.glob(name))]
    guard.check([places.whole, *light], (lambda path: True) if goes_on else None)
    decoded = [cache / f"{split}{suffix}" for split in ("train", "val") for suffix in DECODED]
    guard.check(decoded, is_decoded)
    if not goes_on:
        # Or the new lines would stand below the old ones.
        for name in TABLES:
            (places.travel / name).unlink(missing_ok=True)


def make_worlds(config: WorldConfig, device: torch.device) -> PanoramaBank | None:
    """Rendered panoramas, each its own owner; None if there are to be none."""
    if config.count == 0:
        return None
    worlds = list(panoramas(config.count, config.width, config.seed, device, config.supersample))
    names = [f"world__{number}" for number in range(len(worlds))]
    return PanoramaBank.create(
        [picture for picture, _ in worlds], names, [kind for _, kind in worlds], device
    )


def _photo_banks(
    folder: Path, config: TrainingConfig, process: Process
) -> tuple[PhotoBank, dict[str, PhotoBank]]:
    """Photographs to learn from, and those to be judged by: of held-out owners, and of val."""
    chosen = among(config.photos.owners)
    learnt = read_photo_bank(folder, "train", chosen, process.device)
    if learnt.gravity is None and config.baseline is None:
        raise ConfigError(f"{folder} tells nothing of gravity; fields do not learn without it")
    held = read_photo_bank(folder, "train", lambda owner: not chosen(owner), process.device)
    val = read_photo_bank(folder, "val", lambda owner: True, process.device)
    print(f"{len(learnt)} photographs to learn from, {len(held)} held out, {len(val)} of val")
    return learnt, {"held": held, "val": val}


def _bank(
    folder: Path, split: str, cache: Path, config: TrainingConfig, process: Process
) -> PanoramaBank:
    """The panoramas of a split, decoded by the leading process."""
    parts = [split]
    if split == "train" and (folder / SHARP).is_dir():
        parts.append(SHARP)
    names = [f"{part}/{path.name}" for part in parts for path in find_panoramas(folder / part)]
    file = cache / f"{split}.rgb"
    if process.leads:
        again = config.compress_again if split == "train" else None
        decode_folder(folder, file, names, config.panorama_width, again)
    if process.count > 1 and split == "train":
        distributed.barrier()
    manifests = [folder / "manifest.csv", folder / SHARP / "manifest.csv"]
    present = [manifest for manifest in manifests if manifest.exists()]
    return PanoramaBank.load(file, file.with_suffix(".json"), process.device, present)


if __name__ == "__main__":
    sys.exit(main())
