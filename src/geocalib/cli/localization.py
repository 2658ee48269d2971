"""The work of ``geocalib localize``: from files of matches to files of poses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from geocalib import console
from geocalib.cameras import Camera
from geocalib.cli.poses import PoseFormat, Sources
from geocalib.errors import ConfigError, GeoCalibError
from geocalib.files import write_text
from geocalib.formats import json_lines
from geocalib.localize import GravityPrior, LocalizeOptions, Pose, colmap_model, hloc, localize
from geocalib.localize.colmap_model import ColmapModel
from geocalib.localize.world import world_gravity
from geocalib.result.calibration import Calibration

Array = npt.NDArray[np.float64]

TEXT = ".txt"


class Notes:
    """Says each thing that was left out, and remembers that there was one."""

    def __init__(self) -> None:
        self.any = False

    def __call__(self, line: str) -> None:
        self.any = True
        console.fail(line)


def run(
    sources: Sources,
    world: tuple[float, float, float] | None,
    options: LocalizeOptions,
    format: PoseFormat,
    output: str,
) -> bool:
    """Write a pose for each query, and say whether nothing had to be left out."""
    notes = Notes()
    model = colmap_model.read_model(sources.model)
    queries = hloc.read_queries(sources.queries, notes)
    if not queries:
        raise ConfigError(f"{sources.queries} names no photo; give it a line for each")
    calibrations = _calibrations(sources.calibration)
    down = _down(model, calibrations, world, queries)
    poses: dict[str, Pose] = {}
    cameras: dict[str, Camera] = {}
    with console.progress(len(queries), "localize") as advance:
        for name, (pixels, points) in _matches(sources, model, queries, notes):
            try:
                calibration = calibrations.get(name)
                camera = _camera(queries[name], calibration)
                prior = None
                if calibration is not None and down is not None:
                    prior = GravityPrior.from_calibration(calibration, down)
                pose = localize(pixels, points, camera, prior, options)
            except GeoCalibError as error:
                notes(f"{name}: {error}")
            else:
                if pose.status.failed:
                    notes(f"{name}: {pose.status}")
                else:
                    poses[name], cameras[name] = pose, camera
            advance()
    if poses:
        _write(poses, cameras, format, Path(output))
        console.note(f"{console.count(len(poses), 'pose')} written to {output}")
    return not notes.any


def files_of(format: PoseFormat, output: Path) -> list[Path]:
    """What is written: the results file of hloc, or a COLMAP model without points."""
    if format is PoseFormat.HLOC:
        return [output]
    return [output / name for name in ("cameras.txt", "images.txt", "points3D.txt")]


def _matches(
    sources: Sources, model: ColmapModel, queries: Iterable[str], notes: Notes
) -> Iterator[tuple[str, tuple[Array, Array]]]:
    """The pixels (N, 2) and world points (N, 3) of each query."""
    if Path(sources.matches).suffix == TEXT:
        table = hloc.read_text_matches(sources.matches, model, notes)
        for name in queries:
            yield name, table.get(name, (np.empty((0, 2)), np.empty((0, 3))))
        return
    if sources.features is None or sources.pairs is None:
        raise ConfigError(
            f"{sources.matches}: matches in HDF5 need --features and --pairs beside them; a file "
            f"of lines NAME X Y POINT3D_ID must end in {TEXT}"
        )
    pairs = hloc.read_pairs(sources.pairs, notes)
    with hloc.open_hdf5(sources.features) as features, hloc.open_hdf5(sources.matches) as matches:
        for name in queries:
            database = pairs.get(name, [])
            yield name, hloc.find_matches(name, database, model, features, matches, notes)


def _calibrations(path: str | None) -> dict[str, Calibration]:
    """By the name of the image, and by every end of its path that no other image shares."""
    if path is None:
        return {}
    whole: dict[str, Calibration] = {}
    for outcome in json_lines.read(path):
        if isinstance(outcome, Calibration) and outcome.image is not None:
            # As COLMAP and hloc see it: models and keypoints are of the stored pixels.
            whole[outcome.image] = outcome.in_frame("stored")
    ends: dict[str, set[str]] = {}
    for image in whole:
        parts = image.split("/")
        for start in range(1, len(parts)):
            ends.setdefault("/".join(parts[start:]), set()).add(image)
    return {end: whole[min(images)] for end, images in ends.items() if len(images) == 1} | whole


def _down(
    model: ColmapModel,
    calibrations: Mapping[str, Calibration],
    world: tuple[float, float, float] | None,
    queries: Iterable[str],
) -> Array | None:
    """Gravity in the model: as given, or as its own photos show it, where they are calibrated."""
    if world is None and not calibrations:
        return None
    if not any(name in calibrations for name in queries):
        console.warn("gravity is not used: no query is calibrated in --calibration")
        return None
    if world is not None:
        return np.array(world)
    known = [name for name in model.images if name in calibrations]
    if not known:
        console.warn(
            "gravity is not used: no image of the model is calibrated, nor is there a "
            "--world-gravity"
        )
        return None
    return world_gravity(
        [model.images[name].rotation for name in known],
        [calibrations[name].gravity for name in known],
    )


def _camera(given: Camera | None, calibration: Calibration | None) -> Camera:
    if given is not None:
        return given
    if calibration is None:
        raise ConfigError("has no camera; give MODEL WIDTH HEIGHT PARAMS[] or a --calibration")
    return calibration.cameras


def _write(
    poses: Mapping[str, Pose], cameras: Mapping[str, Camera], format: PoseFormat, output: Path
) -> None:
    if format is PoseFormat.HLOC:
        texts = [hloc.format_results(poses)]
    else:
        texts = [*hloc.format_model(poses, cameras), "# POINT3D_ID X Y Z R G B ERROR TRACK[]\n"]
    for file, text in zip(files_of(format, output), texts, strict=True):
        write_text(file, text)
