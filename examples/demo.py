"""Calibrate one photograph, and see how close it came: ``make demo``.

The photograph, town.jpg, was rendered, so that its camera is known: town.json holds it.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

from geocalib import Calibrator
from geocalib.overlay import show

PHOTO = Path(__file__).parent / "town.jpg"
PICTURE = Path("out", "demo.png")


def main() -> None:
    truth = json.loads(PHOTO.with_suffix(".json").read_text(encoding="utf-8"))
    calibration = Calibrator().calibrate(PHOTO, keep_fields=True)

    true_focal = 0.5 * calibration.height / math.tan(math.radians(0.5 * truth["vfov_deg"]))
    found, sigma = calibration, calibration.sigma
    print(f"{'':12}{'true':>10}{'estimated':>12}{'sigma':>10}")
    for name, true, estimated, one_sigma in (
        ("roll deg", truth["roll_deg"], found.roll_deg, sigma.roll_deg),
        ("pitch deg", truth["pitch_deg"], found.pitch_deg, sigma.pitch_deg),
        ("vFoV deg", truth["vfov_deg"], found.vfov_deg, sigma.vfov_deg),
        ("focal px", true_focal, found.fy, sigma.focal),
    ):
        print(f"{name:12}{true:10.2f}{estimated:12.2f}{one_sigma:10.2f}")
    print(f"\nstatus: {calibration.status}")
    for warning in calibration.warnings:
        print(f"warning: {warning}")

    PICTURE.parent.mkdir(exist_ok=True)
    show(PHOTO, calibration).save(PICTURE)
    print(f"picture: {PICTURE}")


if __name__ == "__main__":
    main()
