"""``geocalib calibrate``: the answers for any number of images, to look at or to keep."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from geocalib.calibration import OUTLIER, Calibration, Failure, Outcome
from geocalib.cameras import Camera, to_colmap, to_opencv
from geocalib.cli import prior_report, report
from geocalib.cli.engine import calibrated
from geocalib.cli.journal import convert, journal_path, resume
from geocalib.cli.options import CameraModel, Format, Network, Request
from geocalib.cli.pictures import save
from geocalib.errors import CameraError, ConfigError, GeoCalibError
from geocalib.formats import json_lines

Take = Callable[[Outcome], None]
"""What becomes of an answer."""


@dataclass(frozen=True)
class Job:
    """What to calibrate, and how."""

    images: Sequence[str]
    missing: Mapping[str, str]
    """The images that do not exist, and why, in one line."""
    request: Request
    network: Network
    drawings: Mapping[str, Path]
    """Where to draw what was seen in an image; none at all, or one for each."""
    prior_report: bool = False
    """Whether to tell how well sensors and pictures agree."""


@dataclass(frozen=True)
class Tally:
    """How it went."""

    good: int
    doubtful: int
    outliers: int
    failed: int

    def __str__(self) -> str:
        parts = [f"{report.count(self.good + self.doubtful, 'image')} calibrated"]
        if self.doubtful:
            parts.append(f"{self.doubtful} of them with warnings")
        if self.outliers:
            parts.append(f"{report.count(self.outliers, 'outlier')} left out")
        if self.failed:
            parts.append(f"{self.failed} failed")
        return ", ".join(parts)


def run(job: Job, format: Format | None, output: str | None) -> bool:
    """Calibrate, show or write the answers, and say whether every image has one."""
    if format is None:
        return _stream(job, _table(), beside_data=False).failed == 0
    _check_format(format, job.request.camera_model)
    if output is not None:
        return _to_disk(job, format, output)
    if format is Format.JSON:
        # On a terminal, lines that appear one by one are progress enough.
        tally = _stream(job, _lines(), hide_bar=sys.stdout.isatty())
    else:
        tally = _csv_to_standard_output(job)
    report.note(str(tally))
    return tally.failed == 0


def _stream(
    job: Job,
    sink: AbstractContextManager[Take],
    hide_bar: bool = False,
    beside_data: bool = True,
    resume_in: Path | None = None,
) -> Tally:
    """Hand every answer on as it comes; failures are listed in the end, one line each."""
    answers = calibrated(
        job.images, job.missing, job.request, job.network, bool(job.drawings), resume_in
    )
    failures: list[Failure] = []
    outliers: list[Failure] = []
    priors: list[prior_report.Row] = []
    good = doubtful = 0
    try:
        with sink as take, report.progress(len(job.images), "calibrating", hide_bar) as advance:
            for image, outcome in zip(job.images, answers, strict=True):
                # Drawn before the answer is kept, which says that the image needs no more work.
                if image in job.drawings and not isinstance(outcome, Failure):
                    _draw(image, outcome, job.drawings[image])
                take(outcome)
                advance()
                priors.extend(prior_report.rows(outcome) if job.prior_report else ())
                if isinstance(outcome, Failure):
                    (outliers if outcome.status == OUTLIER else failures).append(outcome)
                elif outcome.trusted:
                    good += 1
                else:
                    doubtful += 1
    finally:
        report.outliers(outliers)
        report.failures(failures)
        if job.prior_report:
            prior_report.print_table(priors, beside_data)
    return Tally(good, doubtful, len(outliers), len(failures))


@contextmanager
def _table() -> Iterator[Take]:
    """A table in the end, also of a run that was interrupted."""
    rows: list[report.Row] = []
    try:
        yield lambda outcome: rows.append(report.row(outcome))
    finally:
        if rows:
            report.print_table(rows)


@contextmanager
def _lines() -> Iterator[Take]:
    """JSON lines on standard output."""
    yield lambda outcome: print(outcome.to_json(), flush=True)


@contextmanager
def _appended(journal: Path) -> Iterator[Take]:
    """JSON lines at the end of a file."""
    with json_lines.Writer(journal) as writer:
        yield writer.write


def _to_disk(job: Job, format: Format, output: str) -> bool:
    """Files that an interrupted run leaves such that the next one goes on."""
    journal = journal_path(output, format)
    done = resume(journal, job.images, job.request)
    todo = [image for image in job.images if image not in done]
    if done:
        rest = f"going on with {len(todo)}" if todo else "nothing is left to do"
        report.note(f"{report.count(len(done), 'image')} already in {journal}: {rest}")
    # Images that share a camera have answers when all have been seen.
    seen = Path(f"{journal}.seen") if job.request.shared else None
    try:
        tally = _stream(replace(job, images=todo), _appended(journal), resume_in=seen)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("run the same command again to go on") from None
    if seen is not None:
        shutil.rmtree(seen, ignore_errors=True)
    if format is Format.JSON:
        written = [journal]
    else:
        try:
            written = convert(journal, format, output)
        except GeoCalibError:
            if done or tally.good or tally.doubtful:
                report.note(f"the answers are kept in {journal}")
            else:
                journal.unlink()
            raise
        journal.unlink()
    where = str(written[0]) if len(written) == 1 else f"{len(written)} files in {output}"
    report.note(f"{tally}; see {where}")
    return tally.failed == 0


def _csv_to_standard_output(job: Job) -> Tally:
    with TemporaryDirectory(prefix="geocalib-") as folder:
        journal, table = Path(folder) / "journal.jsonl", Path(folder) / "table.csv"
        tally = _stream(job, _appended(journal))
        convert(journal, Format.CSV, table)
        # As bytes: file names need not be valid text.
        with table.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
    return tally


def _draw(image: str, calibration: Calibration, path: Path) -> None:
    """Draw what was seen; a picture that cannot be drawn costs nobody the answer."""
    from geocalib.overlay import overlay

    try:
        save(overlay(image, calibration), path)
    except GeoCalibError as error:
        report.warn(f"{image} was not drawn: {error}")


def _check_format(format: Format, camera_model: CameraModel) -> None:
    """Before a long run, see that its answers can be written."""
    converter: Callable[[Camera], object]
    if format is Format.COLMAP:
        converter = to_colmap
    elif format in (Format.OPENCV, Format.ROS, Format.NERFSTUDIO):
        converter = to_opencv
    else:
        return
    try:
        converter(Camera.create(str(camera_model), f=500.0, size=(640, 480)))
    except CameraError as error:
        mend = CameraModel.KANNALA_BRANDT if camera_model.wide else CameraModel.RADIAL
        raise ConfigError(f"--format {format}: {error}; use --camera-model {mend}") from None
