"""``python -m geocalib_lab.evaluation``: makes the sigmas of weights true by photographs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from geocalib.console import fail
from geocalib.errors import GeoCalibError
from geocalib.files import Guard
from geocalib_lab.evaluation import commands
from geocalib_lab.evaluation.datasets import table_of


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 if all went well."""
    options = _parser().parse_args(arguments)
    try:
        options.command(options)
    except (GeoCalibError, OSError) as error:
        fail(str(error))
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m geocalib_lab.evaluation", description=__doc__)
    actions = parser.add_subparsers(required=True)

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
    calibrate.add_argument("--overwrite", action="store_true", help="replace the file if it exists")
    return parser


def _calibrate(options: argparse.Namespace) -> None:
    read = (options.weights, *map(table_of, (*options.dataset, *options.focal_dataset)))
    Guard(read, options.overwrite).check([options.out])
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
