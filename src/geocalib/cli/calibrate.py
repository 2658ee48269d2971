"""``geocalib calibrate``: the answers for any number of images, to look at or to keep."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from geocalib import console
from geocalib.cameras import Camera
from geocalib.cli import prior_report, report
from geocalib.cli.inputs import as_given
from geocalib.cli.pictures import is_drawn, save
from geocalib.errors import CameraError, ConfigError, GeoCalibError
from geocalib.files import Guard, is_special, locked
from geocalib.formats import FORMATS, json_lines
from geocalib.formats.outputs import STRAIGHTEN
from geocalib.lines.detect import opencv
from geocalib.pipeline.calibrator import Calibrator
from geocalib.pipeline.engines.load import EngineSpec
from geocalib.pipeline.options import AUTO, CameraModelName, Format, Options
from geocalib.pipeline.runs.answers import OutputFile, calibrated, write_as
from geocalib.pipeline.runs.journal import Journal
from geocalib.records import dataclass
from geocalib.result.calibration import OUTLIER, Calibration, Failure, Outcome
from geocalib.result.record import Frame
from geocalib.sets.resume_cache import clear

Take = Callable[[Outcome], None]
"""What becomes of an answer."""


@dataclass(frozen=True)
class CalibrateRun:
    """What to calibrate, and how."""

    images: Sequence[str]
    missing: Mapping[str, str]
    """The images that do not exist, and why, in one line."""
    options: Options
    network: EngineSpec
    load: Callable[[], Calibrator]
    """Returns the calibrator with its network."""
    drawings: Mapping[str, Path]
    """Where to draw what was seen in an image; none at all, or one for each."""
    guard: Guard
    """Refuses to write to inputs."""
    prior_report: bool = False
    """Whether to tell how well sensors and pictures agree."""
    workers: int | None = None
    """Processes; None: one for each core."""
    frame: Frame | None = None
    """The frame of records and exports; None: the one that the reader of each expects."""


@dataclass(frozen=True)
class Tally:
    """How many images have answers, doubts, or none."""

    good: int
    doubtful: int
    outliers: int
    failed: int

    def __str__(self) -> str:
        parts = [f"{console.count(self.good + self.doubtful, 'image')} calibrated"]
        if self.doubtful:
            parts.append(f"{self.doubtful} of them with warnings")
        if self.outliers:
            parts.append(f"{console.count(self.outliers, 'outlier')} left out")
        if self.failed:
            parts.append(f"{self.failed} failed")
        return ", ".join(parts)


def run(job: CalibrateRun, format: Format | None, output: str | None) -> bool:
    """Calibrate, show or write the answers, and say whether every image has one."""
    if format is None:
        if job.frame is not None:
            raise ConfigError("--frame is of records and exports; add --json, --csv or --format")
        job.guard.check(job.drawings.values())
        return _stream(job, _table(), beside_data=False).failed == 0
    _check_format(format, str(job.options.camera_model))
    if output is not None and not is_special(output):
        return _to_disk(job, format, output)
    job.guard.check([*job.drawings.values(), *map(Path, [output] if output else [])])
    if format is not Format.JSON:
        tally = _unkept(job, format, output)
    elif output is not None:
        tally = _stream(job, _appended(Path(output)))
    else:
        # On a terminal, lines that appear one by one are progress enough.
        tally = _stream(job, _lines(), hide_bar=sys.stdout.isatty())
    console.note(str(tally))
    return tally.failed == 0


def _stream(
    job: CalibrateRun,
    sink: AbstractContextManager[Take],
    hide_bar: bool = False,
    beside_data: bool = True,
    resume_in: Path | None = None,
) -> Tally:
    """Hand every answer on as it comes; failures are listed in the end, one line each."""
    # Now, while the network is being opened: all would wait for it afterwards.
    if job.options.lines != "off":
        opencv()
    answers = calibrated(
        job.images,
        job.missing,
        job.options,
        job.load,
        resume_in,
        job.workers,
    )
    failures: list[Failure] = []
    outliers: list[Failure] = []
    priors: list[prior_report.Row] = []
    good = doubtful = 0
    try:
        with sink as take, console.progress(len(job.images), "calibrating", hide_bar) as advance:
            for image, outcome in zip(job.images, answers, strict=True):
                # Drawn before the answer is kept, which says that the image needs no more work.
                if image in job.drawings and not isinstance(outcome, Failure):
                    _draw(image, outcome, job.drawings[image])
                outcome = as_given(outcome)
                take(outcome if job.frame is None else _framed(outcome, job.frame))
                advance()
                priors.extend(prior_report.rows(outcome) if job.prior_report else ())
                if isinstance(outcome, Failure):
                    (outliers if outcome.status == OUTLIER else failures).append(outcome)
                elif outcome.trusted:
                    good += 1
                else:
                    doubtful += 1
    finally:
        console.outliers(outliers)
        console.failures(failures)
        if job.prior_report:
            prior_report.print_table(priors, beside_data)
    return Tally(good, doubtful, len(outliers), len(failures))


@contextmanager
def _table() -> Iterator[Take]:
    """A table in the end, also of a run that was interrupted."""
    # Now, while the network is being opened: all would wait for it afterwards.
    import rich.console
    import rich.table  # noqa: F401

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
    """JSON lines at the end of a file, for no run to go on with."""
    with json_lines.Writer(journal) as writer:
        yield writer.write


def _to_disk(job: CalibrateRun, format: Format, output: str) -> bool:
    """Files that an interrupted run leaves such that the next one goes on."""
    kept = OutputFile.create(format, output, job.options, job.network, job.guard, job.frame)
    with locked(kept.place):
        return _kept(job, kept)


def _kept(job: CalibrateRun, kept: OutputFile) -> bool:
    journal, together = kept.journal, bool(job.options.shared_intrinsics)
    done = kept.done(job.images, together)
    todo = [image for image in job.images if image not in done]
    drawings = {image: file for image, file in job.drawings.items() if image not in done}
    # The last picture of an interrupted run may have been drawn before its answer was kept.
    job.guard.check(drawings.values(), is_drawn if kept.begun else None)
    if done:
        rest = f"going on with {len(todo)}" if todo else "nothing is left to do"
        where = kept.place if journal.path == kept.place or not todo else journal.path
        console.note(f"{console.count(len(done), 'image')} already in {where}: {rest}")
    kept.begin(todo)
    # Images that share a camera have answers when all have been seen.
    seen = Path(f"{journal.path}.seen") if together else None
    try:
        tally = _stream(
            replace(job, images=todo, drawings=drawings),
            journal.appending(todo, together),
            resume_in=seen,
        )
    except KeyboardInterrupt:
        raise KeyboardInterrupt("run the same command again to go on") from None
    if seen is not None:
        clear(seen)
    try:
        written = kept.finish()
    except GeoCalibError:
        if done or tally.good or tally.doubtful:
            console.note(f"the answers are kept in {journal.path}")
        else:
            journal.path.unlink()
        raise
    files = str(written[0]) if len(written) == 1 else f"{len(written)} files in {kept.output}"
    console.note(f"{tally}; see {files}")
    return tally.failed == 0


def _unkept(job: CalibrateRun, format: Format, output: str | None) -> Tally:
    """To standard output, or to a device."""
    with TemporaryDirectory(prefix="geocalib-") as folder:
        journal = Journal(Path(folder) / "journal.jsonl", {})
        tally = _stream(job, _appended(journal.path))
        if output is not None:
            write_as(format, journal, output, job.frame)
            return tally
        (table,) = write_as(format, journal, Path(folder) / "table.csv", job.frame)
        # As bytes: file names need not be valid text.
        with table.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
    return tally


def _framed(outcome: Outcome, frame: Frame) -> Outcome:
    """The outcome in that frame; failures have none."""
    return outcome.in_frame(frame) if isinstance(outcome, Calibration) else outcome


def _draw(image: str, calibration: Calibration, path: Path) -> None:
    """Draw the answer on its photo; if the drawing fails, the answer is kept."""
    from geocalib.overlay import overlay

    try:
        save(overlay(image, calibration), path)
    except GeoCalibError as error:
        console.warn(f"{image} was not drawn: {error}")


def _check_format(format: Format, camera_model: str) -> None:
    """Before a long run, see that its answers can be written."""
    lens = FORMATS[format].lens
    if lens is None or camera_model == AUTO:
        return
    try:
        lens(_ordinary(camera_model))
    except CameraError as error:
        wide = CameraModelName(camera_model).wide
        other = CameraModelName.KANNALA_BRANDT if wide else CameraModelName.RADIAL
        mend = f"use --camera-model {other}"
        try:
            lens(_ordinary(other))
        except CameraError:
            mend = STRAIGHTEN
        raise ConfigError(f"--format {format}: {error}; {mend}") from None


def _ordinary(camera_model: str) -> Camera:
    """A camera of that model."""
    return Camera.create(camera_model, f=500.0, size=(640, 480))
