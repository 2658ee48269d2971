"""``python -m geocalib.evaluation``: measure weights, make sets to measure on, mend sigmas."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from geocalib.cli.report import fail
from geocalib.errors import GeoCalibError
from geocalib.evaluation import commands
from geocalib.evaluation.crops import PER_PANORAMA, SIZE


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 if all went well."""
    options = _parser().parse_args(arguments)
    try:
        options.command(options)
    except GeoCalibError as error:
        fail(str(error))
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m geocalib.evaluation", description=__doc__)
    actions = parser.add_subparsers(required=True)

    run = actions.add_parser("run", help="errors on photographs with ground truth")
    run.set_defaults(command=_run)
    run.add_argument("--weights", default="lean", help="name or file")
    run.add_argument("--dataset", type=Path, nargs="+", required=True, help="folders or tables")
    run.add_argument("--camera-model", help="default: pinhole, simple_radial for distorted sets")
    run.add_argument("--blur", type=int, metavar="PX", help="again with PX pixels of detail across")
    run.add_argument("--out", type=Path, help="folder for tables, JSON, CSV and plots")
    run.add_argument("--device", default="auto")

    crops = actions.add_parser("crops", help="photographs cut out of panoramas")
    crops.set_defaults(command=_crops)
    crops.add_argument("--panos", type=Path, required=True, help="folder of the splits")
    crops.add_argument("--split", choices=("train", "val", "test"), required=True)
    crops.add_argument("--out", type=Path, required=True)
    crops.add_argument("--per-panorama", type=int, default=PER_PANORAMA)
    crops.add_argument("--size", type=int, default=SIZE, help="pixels on each side")
    crops.add_argument("--distorted", action="store_true", help="with radial distortion")
    crops.add_argument("--seed", type=int, default=0)

    calibrate = actions.add_parser("calibrate", help="make the sigmas of weights true")
    calibrate.set_defaults(command=_calibrate)
    calibrate.add_argument("--weights", type=Path, required=True, help="file of a lean network")
    calibrate.add_argument("--dataset", type=Path, nargs="+", required=True, help="pooled")
    calibrate.add_argument(
        "--focal-dataset",
        type=Path,
        nargs="+",
        default=[],
        help="pooled as well; the larger of both factors is that of the focal length",
    )
    calibrate.add_argument("--description", help="of the new weights; default: the old one's")
    calibrate.add_argument("--out", type=Path, required=True, help="file to write")
    calibrate.add_argument("--device", default="auto")
    return parser


def _run(options: argparse.Namespace) -> None:
    print(
        commands.run(
            options.dataset,
            options.weights,
            options.camera_model,
            options.blur,
            options.out,
            options.device,
        )
    )


def _crops(options: argparse.Namespace) -> None:
    print(
        commands.crops(
            options.panos / options.split,
            options.out,
            options.per_panorama,
            options.size,
            options.distorted,
            options.seed,
        )
    )


def _calibrate(options: argparse.Namespace) -> None:
    card = commands.calibrate(
        options.weights,
        options.dataset,
        options.out,
        options.focal_dataset,
        options.description,
        options.device,
    )
    print(*(f"{name} {scale:.4g}" for name, scale in card.sigma_scale.items()), sep="\n")


if __name__ == "__main__":
    sys.exit(main())
