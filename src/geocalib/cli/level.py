"""``geocalib level``: a finished reconstruction set upright by the gravity of its photos."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from geocalib.cli.exits import SOME_FAILED
from geocalib.cli.groups import INPUT, LENS, OUTPUT
from geocalib.cli.options import Device, Overwrite, Weights
from geocalib.errors import ConfigError
from geocalib.pipeline.engines.load import EngineSpec
from geocalib.pipeline.options import CameraModelName, Options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from geocalib.arrays import Array
    from geocalib.level import Down
    from geocalib.level.models import Model
    from geocalib.result.calibration import Calibration


class Up(StrEnum):
    """The axis that points up in the new world."""

    Z = "z"
    Y = "y"
    MINUS_Y = "-y"


AXES = {Up.Z: (0.0, 0.0, 1.0), Up.Y: (0.0, 1.0, 0.0), Up.MINUS_Y: (0.0, -1.0, 0.0)}

NAMED = 10
"""Outliers that are named one by one."""


def command(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="Folder of a COLMAP model, transforms.json, bundle.out, or a list of poses.",
            show_default=False,
        ),
    ],
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="PATH",
            help="File or folder to write.",
            show_default=False,
            rich_help_panel=OUTPUT,
        ),
    ],
    images: Annotated[
        str | None,
        typer.Option(
            metavar="DIR", help="The folder of its photos, to look at.", rich_help_panel=INPUT
        ),
    ] = None,
    calibration: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Or what was found already: calibrate --json -o FILE.",
            rich_help_panel=INPUT,
        ),
    ] = None,
    ply: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Points or Gaussian splats of its world, to turn along.",
            rich_help_panel=INPUT,
        ),
    ] = None,
    up: Annotated[
        Up, typer.Option(help="The axis that points up then.", rich_help_panel=OUTPUT)
    ] = Up.Z,
    heading: Annotated[
        bool,
        typer.Option(
            "--heading", help="Turn the dominant walls along the axes, too.", rich_help_panel=OUTPUT
        ),
    ] = False,
    camera_model: Annotated[
        CameraModelName,
        typer.Option(
            "--camera-model", help="What kind of lens, with --images.", rich_help_panel=LENS
        ),
    ] = CameraModelName.AUTO,
    weights: Weights = "auto",
    device: Device = "auto",
    overwrite: Overwrite = False,
) -> None:
    """Set a finished reconstruction upright.

    Poses, points and splats are turned together, by the gravity of all photos as one estimate.
    Scale, place and heading stay as they are.
    """
    if images is None and calibration is None:
        raise ConfigError("which photos? Add --images DIR, or --calibration FILE")
    if heading and images is None:
        raise ConfigError("--heading looks at the walls in the photos: add --images DIR")
    from geocalib import console
    from geocalib.files import Guard, write_bytes
    from geocalib.level import ply as clouds
    from geocalib.level.models import read_model

    reconstruction = read_model(model)
    extra = [*reconstruction.clouds, *map(Path, ply or [])]
    network = EngineSpec(weights, device)
    found = _calibrations(reconstruction, images, calibration, camera_model, network)
    if not found:
        raise ConfigError(f"no photo of {model} is calibrated; check --images or --calibration")
    place = Path(output)
    folder = place if Path(model).is_dir() else place.parent
    turn = _turn(reconstruction, found, AXES[up], images if heading else None)
    files = reconstruction.turned(turn, place)
    for cloud in extra:
        files[folder / cloud.name] = clouds.turned(_content(cloud), turn, str(cloud))
    Guard((*reconstruction.files, *extra, calibration), overwrite).check(files)
    for file, content in files.items():
        write_bytes(file, content)
    console.note(f"written to {output}")
    if len(found) < len(reconstruction.rotations):
        raise typer.Exit(SOME_FAILED)


def _content(file: Path) -> bytes:
    if not file.is_file():
        raise ConfigError(f"{file} does not exist; check --ply, or ply_file_path in the model")
    return file.read_bytes()


def _calibrations(
    model: Model,
    images: str | None,
    calibration: str | None,
    camera_model: CameraModelName,
    network: EngineSpec,
) -> dict[str, Calibration]:
    """By the names that the model has for its photos; missing photos are named."""
    from geocalib import console
    from geocalib.cli.network import load
    from geocalib.files.image_files import why_not_a_file
    from geocalib.pipeline.runs.answers import calibrated, saved
    from geocalib.result.calibration import Failure

    folder = Path(images or "")
    paths = {name: str(folder / name) for name in model.rotations}
    missing: dict[str, str] = {}
    if calibration is not None:
        outcomes = saved(list(paths.values()), {}, Path(calibration))
    else:
        reasons = {path: why_not_a_file(path) for path in paths.values()}
        missing = {path: reason for path, reason in reasons.items() if reason is not None}
        options = Options(camera_model.value)
        outcomes = calibrated(list(paths.values()), missing, options, lambda: load(network))
    found: dict[str, Calibration] = {}
    failures: list[Failure] = []
    with console.progress(len(paths), "calibrating") as advance:
        for name, outcome in zip(paths, outcomes, strict=True):
            if isinstance(outcome, Failure):
                failures.append(outcome)
            else:
                # Models are of the pixels as they are stored.
                found[name] = outcome.in_frame("stored")
            advance()
    console.failures(failures)
    return found


def _turn(
    model: Model,
    found: dict[str, Calibration],
    axis: tuple[float, float, float],
    walls: str | None,
) -> Array:
    """(3, 3) the rotation of the world; what it rests on is printed.

    walls: the folder of the photos whose walls are to lie along the axes.
    """
    import numpy as np

    from geocalib import console
    from geocalib.level import down_of, upright_turn

    names = list(found)
    rotations = [model.rotations[name] for name in names]
    down = down_of(rotations, list(found.values()))
    up = np.array(axis)
    lean = np.degrees(np.arccos(np.clip(-down.direction @ up, -1, 1)))
    used = len(names) - len(down.outliers)
    console.note(
        f"turned by {lean:.2f} degrees, level to {down.sigma_deg:.2f} degrees (one sigma) by "
        f"{console.count(used, 'photo')}"
    )
    _tell_outliers(names, down)
    turn = upright_turn(down.direction, up)
    return turn if walls is None else _along_walls(turn, up, rotations, found, walls) @ turn


def _tell_outliers(names: Sequence[str], down: Down) -> None:
    from geocalib import console

    worst = sorted(down.outliers, key=lambda i: -down.off_deg[i])
    for i in worst[:NAMED]:
        console.warn(f"{names[i]} is {down.off_deg[i]:.1f} degrees off and was left out")
    if len(worst) > NAMED:
        console.warn(f"{len(worst) - NAMED} more photos were left out")


def _along_walls(
    turn: Array,
    up: Array,
    rotations: Sequence[Array],
    found: dict[str, Calibration],
    folder: str,
) -> Array:
    """(3, 3) a further rotation about up that takes the dominant walls along the axes."""
    import numpy as np

    from geocalib import console
    from geocalib.imaging.read import read_photo
    from geocalib.level import upright_turn
    from geocalib.level.heading import dominant_heading, votes
    from geocalib.lines.detect import detect
    from geocalib.localize.rotation import from_vector

    # Headings are counted in a world with z up.
    turned_upright = upright_turn(-up, np.array([0.0, 0.0, 1.0]))
    ballots = []
    for R, (name, calibration) in zip(rotations, found.items(), strict=True):
        segments = detect(read_photo(Path(folder) / name))
        ballots.append(votes(segments, calibration.cameras, turned_upright @ turn @ R.T))
    angle = dominant_heading(ballots)
    if angle is None:
        console.warn("no walls stand out: the heading stays as it is")
        return np.eye(3)
    console.note(f"walls turned by {-np.degrees(angle):.2f} degrees to lie along the axes")
    return from_vector(-angle * up)
