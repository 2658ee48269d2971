"""Straighten a photo: ``python examples/straighten.py [PHOTO] [-o FOLDER]``.

Writes it twice, without black borders: *upright*, turned in its plane until the horizon is level,
and *rectified*, as a camera that looks straight ahead would have taken it, which also makes walls
parallel. Without a photo it takes the rendered one beside this file.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from geocalib import Calibrator, GeoCalibError

TOWN = Path(__file__).parent / "town.jpg"
UNSURE_DEG = 3.0
"""One sigma of gravity; a photo whose is larger would rather be tilted than straightened."""
STEEP_DEG = 30.0
"""Photos pitched by more are stretched too much when they are rectified."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("photo", type=Path, nargs="?", default=TOWN)
    parser.add_argument("-o", "--out", type=Path, default=Path("out"), metavar="FOLDER")
    options = parser.parse_args(arguments)
    try:
        c = Calibrator().calibrate(options.photo)
    except GeoCalibError as error:
        print(error, file=sys.stderr)
        return 2

    print(f"roll {c.roll_deg:+.2f} ± {c.sigma.roll_deg:.2f} degrees")
    print(f"pitch {c.pitch_deg:+.2f} ± {c.sigma.pitch_deg:.2f} degrees")
    if c.sigma.gravity_deg > UNSURE_DEG:
        print(f"left as it is: {'; '.join(c.warnings)}", file=sys.stderr)
        return 1

    pictures = {"upright": c.upright(options.photo, border="crop")}
    if abs(c.pitch_deg) < STEEP_DEG:
        pictures["rectified"] = c.rectify(options.photo, border="crop")
    options.out.mkdir(parents=True, exist_ok=True)
    for name, warped in pictures.items():
        file = options.out / f"{options.photo.stem}-{name}.jpg"
        warped.image.save(file, quality=92)
        print(f"{file}: {warped.image.width} x {warped.image.height}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
