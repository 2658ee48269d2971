"""``python -m geocalib_lab.training.labelling``: the photographs that networks learn gravity from,
in one folder.

Of some a phone's accelerometer tells it. Of others, whose focal length is known, weights do where
they are sure of it, by their lines: crops of these are turned, show less and have no lines, so that
the weights learn from them what they could not tell.
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from geocalib import Calibrator, console
from geocalib.errors import GeoCalibError, ImageError
from geocalib.files import write_text
from geocalib.result.calibration import Calibration
from geocalib_lab.training.kept import Record, read_kept
from geocalib_lab.training.owners import among
from geocalib_lab.training.photos import owner_of

SURE_DEG = 2.0
"""One sigma of gravity up to which an answer is a label. Where it is 1.5, on photographs whose
accelerometer tells as well, half are within 1.2 degrees and 90% within 2.9."""
COLUMNS = (
    "image",
    "width",
    "height",
    "focal",
    "vfov_deg",
    "roll_deg",
    "pitch_deg",
    "norm_g",
)

ABOUT = COLUMNS[:5]
GRAVITY = COLUMNS[5:]

Row = dict[str, str]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 if all went well."""
    parser = argparse.ArgumentParser(prog="python -m geocalib_lab.training.labelling")
    parser.add_argument("--phones", type=Path, required=True, help="folder with phones.csv")
    parser.add_argument(
        "--photos", type=Path, required=True, help="folder with photos.csv and gravity.csv"
    )
    parser.add_argument("--weights", default="large", help="a name or a file")
    parser.add_argument("--owners", type=float, required=True, help="photos.owners of training")
    parser.add_argument("--out", type=Path, required=True, help="folder to write; repeat to resume")
    options = parser.parse_args(arguments)
    try:
        photos = _rows(options.photos / "photos.csv", (*ABOUT, "edited"))
        measured = [
            *_rows(options.phones / "phones.csv", COLUMNS),
            *_at_rest(options.photos, photos),
        ]
        options.out.mkdir(parents=True, exist_ok=True)
        known = {row["image"] for row in measured}
        chosen = among(options.owners)
        others = [
            row
            for row in photos
            if row["image"].startswith("train/") and row["image"] not in known
            # What was cropped has another focal length.
            if row["edited"] != "1" and chosen(owner_of(row["image"]))
        ]
        calibrator = Calibrator(options.weights)
        labelled = list(_labelled(calibrator, options.photos, others, options.out))
        _write(options.out, [options.phones, options.photos], [*measured, *labelled])
    except GeoCalibError as error:
        console.fail(str(error))
        return 2
    owners = {owner_of(row["image"]) for row in labelled}
    print(
        f"{len(measured)} photographs with an accelerometer, {len(labelled)} of {len(others)} "
        f"others labelled, of {len(owners)} owners"
    )
    return 0


def _rows(table: Path, columns: Sequence[str]) -> list[Row]:
    """The rows of a table that has these columns."""
    try:
        with table.open(newline="") as lines:
            rows = list(csv.DictReader(lines))
    except OSError:
        raise ImageError(f"{table} cannot be read") from None
    if any(row.get(name) is None for row in rows for name in columns):
        raise ImageError(f"{table} needs columns {', '.join(columns)} in every row")
    return rows


def _at_rest(folder: Path, photos: Sequence[Row]) -> Iterator[Row]:
    """Rows of the photographs of a folder whose accelerometer can be trusted."""
    about = {row["image"]: row for row in photos}
    for row in _rows(folder / "gravity.csv", ("image", "trust", *GRAVITY)):
        if row["trust"] == "1" and row["image"] in about:
            yield about[row["image"]] | row


def _labelled(
    calibrator: Calibrator, folder: Path, rows: Sequence[Row], out: Path
) -> Iterator[Row]:
    """Those of the rows whose gravity the calibrator is sure of, with it. All its answers are kept
    in a file."""
    kept = out / "answers.jsonl"
    known = read_kept(kept, calibrator.card.sha256)
    todo = [row for row in rows if row["image"] not in known]
    with kept.open("a") as file, console.progress(len(todo), "photographs") as done:
        for row in todo:
            (answer,) = calibrator.calibrate([folder / row["image"]], focal=float(row["focal"]))
            record: Record = {"image": row["image"], "sigma_deg": None}
            if isinstance(answer, Calibration):
                record |= {"roll_deg": answer.roll_deg, "pitch_deg": answer.pitch_deg}
                record["sigma_deg"] = answer.sigma.gravity_deg
            known[row["image"]] = record
            file.write(json.dumps(record) + "\n")
            file.flush()
            done()
    for row in rows:
        record = known[row["image"]]
        if record["sigma_deg"] is not None and record["sigma_deg"] < SURE_DEG:
            told = {name: f"{record[name]:.3f}" for name in ("roll_deg", "pitch_deg")}
            yield row | told | {"norm_g": "1"}


def _write(out: Path, folders: Sequence[Path], rows: Sequence[Row]) -> None:
    """The table of the photographs, and they themselves."""
    for row in rows:
        source = next((f / row["image"] for f in folders if (f / row["image"]).exists()), None)
        if source is None:
            raise ImageError(f"{row['image']} is in neither of {', '.join(map(str, folders))}")
        target = out / row["image"]
        if not target.exists():
            target.parent.mkdir(exist_ok=True)
            shutil.copyfile(source, target)
    lines = [",".join(COLUMNS), *(",".join(row[name] for name in COLUMNS) for row in rows)]
    write_text(out / "phones.csv", "\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(main())
