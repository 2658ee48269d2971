"""``geocalib video``: the camera of a video over time, from a file or while it is taken."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from geocalib.cli.groups import INPUT, KNOWN, LENS, OUTPUT
from geocalib.cli.options import Device, Overwrite, Weights
from geocalib.errors import ConfigError, FormatError, OutputError, VideoError
from geocalib.files import Guard, is_special, locked
from geocalib.pipeline.engines.load import EngineSpec
from geocalib.pipeline.options import AUTO, CameraModelName, Options
from geocalib.records import dataclass

if TYPE_CHECKING:
    from geocalib.pipeline.calibrator import Calibrator
    from geocalib.result.calibration import Outcome
    from geocalib.video.frames import Source, VideoFrame
    from geocalib.video.lens_choice import LensChoice
    from geocalib.video.track import Tracked, Tracker

USUAL_FPS = 10.0
"""Frames per second that are looked at: what a hand does is slower."""

BATCH = 8
"""Frames of a file that are given at once."""

INCOMPLETE = 1
"""Exit code: the video broke off, or frames have no answer."""

STATUS_WORDS = {"outlier": "left out", "failed": "without an answer"}


def command(
    file: Annotated[
        str | None, typer.Argument(metavar="FILE", help="The video.", show_default=False)
    ] = None,
    camera: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="This camera instead of a file; Ctrl-C ends it.",
            rich_help_panel=INPUT,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="JSONL",
            help="Default: FILE.geocalib.jsonl, here.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    every: Annotated[
        int | None,
        typer.Option(metavar="N", help="Look at every N-th frame.", rich_help_panel=INPUT),
    ] = None,
    fps: Annotated[
        float | None,
        typer.Option(
            metavar="N",
            help=f"Look at N frames per second. Default: {USUAL_FPS:g}.",
            rich_help_panel=INPUT,
        ),
    ] = None,
    upright: Annotated[
        Path | None,
        typer.Option(
            metavar="MP4", help="Write the video turned upright there.", rich_help_panel=OUTPUT
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="PNG", help="Draw the answers over time there.", rich_help_panel=OUTPUT
        ),
    ] = None,
    camera_model: Annotated[
        CameraModelName, typer.Option(help="What kind of lens.", rich_help_panel=LENS)
    ] = CameraModelName.AUTO,
    focal: Annotated[
        float | None,
        typer.Option(metavar="PX", help="Known focal length, in pixels.", rich_help_panel=KNOWN),
    ] = None,
    fov: Annotated[
        float | None,
        typer.Option(metavar="DEG", help="Known vertical field of view.", rich_help_panel=KNOWN),
    ] = None,
    weights: Weights = "auto",
    device: Device = "auto",
    overwrite: Overwrite = False,
) -> None:
    """Find the camera of a video over time.

    One lens for all frames, unless it zooms, and a gravity that moves smoothly: a line of JSON per
    frame. Run it again to resume.
    """
    if (file is None) == (camera is None):
        raise ConfigError("name a video file, or a camera with --camera N: one of the two")
    name = f"camera-{camera}" if file is None else Path(file).name
    job = VideoRun(
        file,
        camera,
        output or Path(f"{name}.geocalib.jsonl"),
        every,
        USUAL_FPS if every is None and fps is None else fps,
        upright,
        plot,
        # Containers say how their frames stand; a frame taken otherwise than its neighbours would
        # only disturb them. Frames are not taken at the focal lengths of photographs.
        Options(camera_model.value, focal=focal, vfov_deg=fov, any_rotation="off", prior="none"),
        EngineSpec(weights, device),
        overwrite,
    )
    if not run(job):
        raise typer.Exit(INCOMPLETE)


@dataclass(frozen=True)
class VideoRun:
    """What to look at, and what to write."""

    file: str | None
    camera: int | None
    """Used where there is no file."""
    output: Path
    every: int | None
    fps: float | None
    upright: Path | None
    plot: Path | None
    options: Options
    network: EngineSpec
    overwrite: bool = False

    @property
    def live(self) -> bool:
        return self.file is None

    def opened(self) -> AbstractContextManager[Source]:
        """The frames of a file or a camera, opened."""
        from geocalib.video.frames import open_camera, open_file

        return open_camera(self.camera or 0) if self.file is None else open_file(self.file)


def run(job: VideoRun) -> bool:
    """Do it, and say whether every frame has an answer."""
    _check(job)
    with locked(job.output):
        return _run(job, *_begun(job))


def _run(job: VideoRun, journal: VideoJournal, done: Mapping[int, Outcome]) -> bool:
    """done: the answers that there are already."""
    from geocalib import console
    from geocalib.video.track import Tracker

    tracker = Tracker()
    broken: VideoError | None = None
    interrupted = False
    try:
        _follow(job, journal, done, tracker)
    except VideoError as error:
        broken = error
    except KeyboardInterrupt:
        interrupted = True
    frames = tracker.smoothed()
    if frames:
        journal.write(frames)
    elif broken is not None:
        raise broken
    if interrupted or not frames:
        raise KeyboardInterrupt("run the same command again to go on")
    if journal.path != job.output:
        os.replace(journal.path, job.output)
    if job.plot is not None:
        _plot(job, frames, job.plot)
    if broken is not None:
        console.fail(str(broken))
    if job.upright is not None and not job.live:
        _turn(job, frames)
    _summarise(job, frames)
    return broken is None and all(frame.status != "failed" for frame in frames)


def _check(job: VideoRun) -> None:
    """What is wrong with the call is said before the work begins."""
    from geocalib.video import records

    guard = Guard((job.file, job.network.file), job.overwrite)
    guard.check([job.output], None if job.live else records.is_ours)
    guard.check([path for path in (job.upright, job.plot) if path is not None])
    if job.upright is not None:
        from geocalib.video.stabilise import check_name

        check_name(job.upright)
    if job.plot is not None and job.plot.suffix.lower() != ".png":
        raise ConfigError(f"{job.plot}: plots are written as .png")


@dataclass(frozen=True)
class VideoJournal:
    """The lines as they come."""

    path: Path
    """The output, or a file beside it where that is to be replaced by the end."""
    origin: Mapping[str, Any]

    def appending(self) -> AbstractContextManager[Callable[[Tracked], None]]:
        from geocalib.video import records

        return records.appending(self.path, self.origin)

    def write(self, frames: Sequence[Tracked]) -> None:
        """All of them, smoothed now."""
        from geocalib.video import records

        if not is_special(self.path):
            records.write(frames, self.path, self.origin)


def _begun(job: VideoRun) -> tuple[VideoJournal, Mapping[int, Outcome]]:
    """The journal, and the answers in it: of an unfinished run, or of a finished one."""
    from geocalib.nets.weights.catalogue import identify
    from geocalib.pipeline.runs.journal import request_of
    from geocalib.video import records

    request = request_of(
        identify(job.network.weights),
        video=None if job.file is None else Path(job.file).name,
        camera_model=str(job.options.camera_model),
        focal=job.options.focal,
        fov=job.options.vfov_deg,
        every=job.every,
        fps=job.fps,
    )
    replaces = job.overwrite and job.output.exists() and not is_special(job.output)
    path = Path(f"{job.output}.partial.jsonl") if replaces else job.output
    done: Mapping[int, Outcome] = {}
    if job.file is not None:
        try:
            done = records.answers(path, request, job.file)
        except (OutputError, FormatError):
            if not replaces:
                raise
            path.unlink()
    return VideoJournal(path, records.origin_of(request, job.file)), done


def _follow(
    job: VideoRun, journal: VideoJournal, done: Mapping[int, Outcome], tracker: Tracker
) -> None:
    """Every frame that is looked at, to the tracker and to the file."""
    from geocalib import console
    from geocalib.video import stabilise
    from geocalib.video.frames import sampled
    from geocalib.video.turns import Watcher

    with ExitStack() as stack:
        source = stack.enter_context(job.opened())
        chosen = sampled(source.frames, job.every, job.fps)
        share = 1 / job.every if job.every else min(1.0, (job.fps or 1) / float(source.rate))
        total = round(source.count * share)
        if done:
            console.note(f"{console.count(len(done), 'frame')} already in {journal.path}: going on")
        turned = None
        if job.live and job.upright is not None:
            turned = stack.enter_context(stabilise.writing(job.upright, source.rate))
        append = stack.enter_context(journal.appending())
        advance = stack.enter_context(console.progress(total, "calibrating"))
        if job.live:
            # Here Ctrl-C is how it ends.
            stack.enter_context(suppress(KeyboardInterrupt))
        watcher = Watcher()
        for frame, outcome in _outcomes(job, source.name, chosen, done):
            with _undisturbed():
                flow = watcher.see(frame.pixels)
                tracked = tracker.add(frame.index, frame.time, outcome, flow)
                if frame.index not in done:
                    append(tracked)
                if turned is not None and tracked.smoothed is not None:
                    pixels = stabilise.upright(frame.pixels, tracked.smoothed)
                    turned(replace(frame, pixels=pixels))
            advance()


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Ctrl-C is heard at the end: a frame that was half added is of no use to the others."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    pressed: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: pressed.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if pressed:
        raise KeyboardInterrupt


def _outcomes(
    job: VideoRun, name: str, frames: Iterable[VideoFrame], done: Mapping[int, Outcome]
) -> Iterator[tuple[VideoFrame, Outcome]]:
    """Each frame with what the network says of it, in order; those done are left out."""
    from geocalib.cli.network import load
    from geocalib.video.lens_choice import LensChoice

    calibrator, chosen = None, LensChoice(job.options)
    # A camera does not wait for a batch to fill.
    for batch in _batches(frames, 1 if job.live else BATCH):
        new = [frame for frame in batch if frame.index not in done]
        if new and calibrator is None:
            calibrator = load(job.network)
            chosen = _lens_choice(job, calibrator, new, done)
        pixels = [frame.pixels for frame in new]
        answers = iter(calibrator.calibrate(pixels, options=chosen.options) if calibrator else ())
        for frame in batch:
            outcome = done.get(frame.index)
            if outcome is None:
                outcome = chosen.applied(replace(next(answers), image=f"{name}#{frame.index}"))
            yield frame, outcome


def _lens_choice(
    job: VideoRun, calibrator: Calibrator, first: Sequence[VideoFrame], done: Mapping[int, Outcome]
) -> LensChoice:
    """The kind of lens, for all frames; first: those that are given first."""
    from geocalib.video.frames import spread_over
    from geocalib.video.lens_choice import DECIDING, LensChoice

    if done or job.options.camera_model != AUTO:
        return LensChoice.by_answers(done.values(), job.options)
    # A camera has shown no more than its first frame.
    frames = first if job.file is None else spread_over(job.file, DECIDING) or first
    return LensChoice.by_frames(calibrator, [frame.pixels for frame in frames], job.options)


def _batches(frames: Iterable[VideoFrame], size: int) -> Iterator[list[VideoFrame]]:
    batch: list[VideoFrame] = []
    try:
        for frame in frames:
            batch.append(frame)
            if len(batch) == size:
                yield batch
                batch = []
    except VideoError:
        # What was read before the video broke off is as good as ever.
        if batch:
            yield batch
        raise
    if batch:
        yield batch


def _plot(job: VideoRun, frames: Sequence[Tracked], file: Path) -> None:
    from geocalib.overlay.draw import save_figure
    from geocalib.video import plot

    save_figure(plot.draw(frames, job.file or f"camera {job.camera}"), file, dpi=100)


def _turn(job: VideoRun, frames: Sequence[Tracked]) -> None:
    """The upright video: all frames of the file, also those between the ones looked at."""
    from geocalib import console
    from geocalib.video import stabilise

    assert job.upright is not None
    way = stabilise.Way.through(frames)
    with (
        job.opened() as source,
        stabilise.writing(job.upright, source.rate) as write,
        console.progress(source.count, "turning upright") as advance,
    ):
        try:
            for frame in source.frames:
                pixels = stabilise.upright(frame.pixels, way.at(frame.time))
                write(replace(frame, pixels=pixels))
                advance()
        except VideoError:
            # It was said before, and what there is can be played.
            return


def _summarise(job: VideoRun, frames: Sequence[Tracked]) -> None:
    from geocalib import console

    counts = {status: sum(f.status == status for f in frames) for status in ("outlier", "failed")}
    parts = [console.count(len(frames), "frame")]
    parts += [f"{number} {STATUS_WORDS[status]}" for status, number in counts.items() if number]
    console.note(", ".join(parts))
    for before, frame in pairwise((None, *frames)):
        answer = frame.smoothed if frame is not None else None
        if frame is None or answer is None:
            continue
        if before is None or before.segment != frame.segment:
            sigma = answer.sigma.vfov_deg
            console.note(f"vFoV {answer.vfov_deg:.1f} ± {sigma:.1f}° from {frame.time:.1f} s on")
    written = [str(path) for path in (job.output, job.upright, job.plot) if path is not None]
    console.note(f"see {', '.join(written)}")
