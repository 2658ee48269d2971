"""What the lens and the pitch of castle photographs are, by structure from motion: ``pip install
geocalib[motion]``, then ``python benchmarks/castle.py castle_berlin``.

The eleven photographs of one castle that the table has were taken with one camera. Points that
several of them show tell its lens and how they are turned against each other, whatever is upright;
near-vertical segments of all of them together tell gravity, which is then that of each. Nothing of
this is shared with ``geocalib.lines`` but the segments. It is compared with the table, with the
answers of the network and of network and lines together, and with what these answer if they are
told all of the lens but its focal length.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pycolmap
from scipy.optimize import least_squares

from geocalib import Calibrator
from geocalib.cameras import get_model
from geocalib.evaluation.datasets import Sample, read_dataset
from geocalib.geometry.gravity import to_roll_pitch
from geocalib.imaging import read_photo
from geocalib.lines.detect import SHORT_SIDE, detect
from geocalib.pipeline.arguments import LinesMode

PREFIX = "sceaux"
LENSES = {"SIMPLE_PINHOLE": "pinhole", "SIMPLE_RADIAL": "simple_radial", "RADIAL": "radial"}
"""Models of COLMAP, and ours."""
NEAR_VERTICAL, LONG = np.cos(np.radians(12.0)), 40.0
"""Of segments: cosine to the picture's vertical, and pixels."""
WIDTHS = (0.05, 0.02, 0.007)
"""Radians by which verticals may miss gravity, narrower and narrower."""

WAYS: dict[str, LinesMode] = {"network": "off", "both": "auto"}

Array = npt.NDArray[np.float64]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", type=Path)
    every = read_dataset(parser.parse_args().table)
    samples = sorted((s for s in every if s.image.name.startswith(PREFIX)), key=lambda s: s.image)
    ends = [vertical_ends(sample) for sample in samples]
    calibrator = Calibrator("lean")
    answers = {
        way: np.array([answer(calibrator, sample, lines) for sample in samples])
        for way, lines in WAYS.items()
    }
    with tempfile.TemporaryDirectory() as folder:
        mapped(samples, Path(folder))
        for lens, freedom in ((lens, freedom) for lens in LENSES for freedom in (False, True)):
            found = adjusted(Path(folder) / "0", lens, freedom)
            (camera,) = found.cameras.values()
            told = np.array([answer(calibrator, sample, "auto", camera) for sample in samples])
            title = f"{lens}, principal point {'free' if freedom else 'held'}"
            show(found, samples, ends, {**answers, "both, told the lens": told}, title)


def answer(
    calibrator: Calibrator,
    sample: Sample,
    lines: LinesMode,
    camera: pycolmap.Camera | None = None,
) -> tuple[float, float]:
    """Pitch and vFoV in degrees; by a camera whose focal length alone is not told."""
    model, distortion, point = "pinhole", None, None
    if camera is not None:
        model = LENSES[camera.model.name]
        distortion = list(camera.params[3:]) or None
        point = camera.principal_point_x, camera.principal_point_y
    found = calibrator.calibrate(
        sample.image,
        camera_model=model,
        distortion=distortion,
        principal_point=point,
        lines=lines,
        exif=False,
    )
    return found.pitch_deg, found.vfov_deg


def vertical_ends(sample: Sample) -> Array:
    """(N, 2, 2) ends of long segments that are nearly vertical in a picture."""
    ends = np.asarray(detect(read_photo(sample.image, SHORT_SIDE)).ends, np.float64)
    along = ends[:, 1] - ends[:, 0]
    length = np.hypot(*along.T)
    return np.asarray(ends[(length > LONG) & (np.abs(along[:, 1]) > NEAR_VERTICAL * length)])


def mapped(samples: Sequence[Sample], folder: Path) -> None:
    """Cameras and points, written to folder/0."""
    images, database = samples[0].image.parent, folder / "matches.db"
    pycolmap.extract_features(
        database,
        images,
        image_names=[sample.image.name for sample in samples],
        camera_mode=pycolmap.CameraMode.SINGLE,
        reader_options=pycolmap.ImageReaderOptions(camera_model="SIMPLE_RADIAL"),
    )
    pycolmap.match_exhaustive(database)
    pycolmap.incremental_mapping(database, images, folder)


def adjusted(folder: Path, lens: str, free_point: bool) -> pycolmap.Reconstruction:
    """All poses, points and the lens together, where the reprojection errors are least."""
    found = pycolmap.Reconstruction(folder)
    (camera,) = found.cameras.values()
    middle = camera.width / 2, camera.height / 2
    params = [camera.focal_length, *middle, *[0.0] * len(get_model(LENSES[lens]).parameters)]
    camera.model = getattr(pycolmap.CameraModelId, lens)
    camera.params = params
    options = pycolmap.BundleAdjustmentOptions()
    options.refine_principal_point = free_point
    options.print_summary = False
    # Each call stops after a limited number of steps.
    for _ in range(3):
        pycolmap.bundle_adjustment(found, options)
    found.update_point_3d_errors()
    return found


def show(
    found: pycolmap.Reconstruction,
    samples: Sequence[Sample],
    ends: Sequence[Array],
    answers: dict[str, Array],
    title: str,
) -> None:
    """The lens, and by how much the pitch of each picture is another one than the table's."""
    (camera,) = found.cameras.values()
    turns = {i.name: i.cam_from_world().rotation.matrix() for i in found.images.values()}
    planes = {s.image.name: planes_of(camera, e) for s, e in zip(samples, ends, strict=True)}
    start = np.mean([turn[1] for turn in turns.values()], 0)
    down = upright(np.concatenate([planes[name] @ turn for name, turn in turns.items()]), start)
    together, alone = (np.empty(len(samples)) for _ in range(2))
    for i, sample in enumerate(samples):
        own = turns[sample.image.name] @ down
        together[i] = np.degrees(to_roll_pitch(own)[1])
        alone[i] = np.degrees(to_roll_pitch(upright(planes[sample.image.name], own))[1])
    table = np.array([sample.pitch_deg for sample in samples])
    vfov = 2 * np.degrees(np.arctan(0.5 * camera.height / camera.focal_length))
    print(f"\n{title}: {np.round(camera.params, 4).tolist()}, vFoV {vfov:.2f}")
    print(f"reprojection error {found.compute_mean_reprojection_error():.3f} pixels")
    print(f"pitch less the table's: {np.round(together - table, 2).tolist()}")
    print(
        f"median {np.median(together - table):.2f}; {np.median(alone - table):.2f} by its own lines"
    )
    for way, (pitch, width) in ((way, each.T) for way, each in answers.items()):
        off = np.median(np.abs(pitch - together)), np.median(np.abs(width - vfov))
        print(f"median error, {way}: pitch {off[0]:.2f}, vFoV {off[1]:.2f}")


def planes_of(camera: pycolmap.Camera, ends: Array) -> Array:
    """(N, 3) normals, in the camera frame, of the planes through segments (N, 2, 2)."""
    rays = [
        np.c_[camera.cam_from_img(side), np.ones(len(side))] for side in np.moveaxis(ends, 1, 0)
    ]
    normals = np.cross(*rays)
    return np.asarray(normals / np.linalg.norm(normals, axis=1, keepdims=True))


def upright(normals: Array, start: Array) -> Array:
    """(3,) the direction that lies in most of the planes of normals (N, 3)."""
    down = start
    for width in WIDTHS:
        fit = least_squares(
            lambda x, w=width: normals @ x / np.linalg.norm(x) / w, down, loss="cauchy"
        )
        down = fit.x / np.linalg.norm(fit.x)
    return np.asarray(down)


if __name__ == "__main__":
    main()
