"""Start COLMAP with known lenses: ``python examples/colmap_priors.py [PHOTOS ...] [-o FOLDER]``.

Photos of one camera, by their EXIF data and size, share a lens. Writes ``features.sh``, which makes
a database in which every photo has the lens found here, marked as known beforehand, and
``gravity.txt``, the direction down in each photo as GLOMAP's rotation averaging takes it. Both are
of the pixels as they are stored, as COLMAP reads them. Without photos it takes the rendered one
beside this file.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from geocalib import Calibrator, Failure
from geocalib.cameras import to_colmap
from geocalib.sets.grouping import group_by_exif

TOWN = Path(__file__).parent / "town.jpg"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("photos", type=Path, nargs="*", default=[TOWN])
    parser.add_argument("--camera-model", default="simple_radial")
    parser.add_argument("-o", "--out", type=Path, default=Path("out", "colmap"), metavar="FOLDER")
    options = parser.parse_args(arguments)
    photos = [str(photo.resolve()) for photo in options.photos]
    folder = os.path.commonpath([os.path.dirname(photo) for photo in photos])
    options.out.mkdir(parents=True, exist_ok=True)

    cameras: dict[tuple[int, int, str, str], list[str]] = defaultdict(list)
    gravity = []
    failed = 0
    calibrator = Calibrator()
    groups = group_by_exif(photos)
    for outcome in calibrator.calibrate_set(photos, options.camera_model, cameras=groups):
        if isinstance(outcome, Failure):
            failed += 1
            print(outcome.error, file=sys.stderr)
            continue
        name = os.path.relpath(str(outcome.image), folder)
        stored = outcome.in_frame("stored")
        model, parameters = to_colmap(stored.camera)[0]
        text = ",".join(map(repr, parameters))
        cameras[stored.width, stored.height, model, text].append(name)
        gravity.append(" ".join([name, *map(repr, stored.gravity.tolist())]))
    if not cameras:
        return 2

    (options.out / "gravity.txt").write_text("\n".join(gravity) + "\n", encoding="utf-8")
    commands = ["#!/bin/sh", "# Options are handed on to feature_extractor.", "set -e"]
    for number, (key, names) in enumerate(cameras.items(), 1):
        *_, model, parameters = key
        photo_list = options.out / f"camera_{number}.txt"
        photo_list.write_text("\n".join(names) + "\n", encoding="utf-8")
        words = ["colmap", "feature_extractor", "--image_path", folder]
        words += ["--database_path", str(options.out / "database.db")]
        words += ["--image_list_path", str(photo_list), "--ImageReader.single_camera", "1"]
        words += ["--ImageReader.camera_model", model, "--ImageReader.camera_params", parameters]
        commands.append(f'{shlex.join(words)} "$@"')
        print(f"camera {number}: {model} {parameters}, {len(names)} photos")
    script = options.out / "features.sh"
    script.write_text("\n".join(commands) + "\n", encoding="utf-8")
    print(f"sh {script}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
