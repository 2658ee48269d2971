from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count, islice
from pathlib import Path
from threading import get_native_id
from typing import Any

import numpy as np
import pytest

from fake_calibrator import picture
from geocalib import Calibrator, Fields
from geocalib.arrays import Array
from geocalib.errors import ConfigError, ImageError
from geocalib.pipeline.job import Batch
from geocalib.pipeline.parallel import stream
from geocalib.pipeline.parallel.stream import ORIENTATION_BATCH as FEW
from geocalib.pipeline.parallel.stream import FullBatches, in_order, isolate_failures
from geocalib.pipeline.parallel.threads import (
    BEHIND,
    POOLS,
    cores,
    environment,
    low_priority,
    threads,
)
from geocalib.pipeline.parallel.workers import WorkerLostError, Workers
from geocalib.result.calibration import Calibration, Failure, Outcome
from quick_network import write_quick_network

SIZES = ((96, 64), (64, 96), (80, 80))


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a few photos are work for two."""
    monkeypatch.setattr(stream, "TOGETHER", 3)


@pytest.fixture(scope="module")
def calibrator(tmp_path_factory: pytest.TempPathFactory) -> Calibrator:
    network = write_quick_network(tmp_path_factory.mktemp("network") / "quick.onnx")
    return Calibrator(network, engine="onnx")


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Of several sizes; some cannot be read."""
    folder = tmp_path_factory.mktemp("stream")
    for index in range(6):
        picture(*SIZES[index % 3], seed=index).save(folder / f"{index}.png")
    (folder / "3.png").write_bytes(b"no picture")
    (folder / "5.png").unlink()
    return [str(folder / f"{index}.png") for index in range(6)]


def records(outcomes: list[Outcome]) -> list[dict[str, Any]]:
    return [outcome.to_dict() for outcome in outcomes]


def plain(photos: list[Any]) -> Batch[Any]:
    class Job:
        def __getitem__(self, rows: object) -> Job:
            return self

    return Batch(photos, Job())  # type: ignore[arg-type]


class TestStream:
    def test_workers_change_no_bit_and_no_order(
        self, packaged: Calibrator, sources: list[str]
    ) -> None:
        alone = [packaged.calibrate([source], lines="off")[0] for source in sources]
        shared = list(packaged.calibrate_many(iter(sources), workers=2, lines="off"))
        assert records(shared) == records(alone)
        assert [i for i, one in enumerate(shared) if isinstance(one, Failure)] == [3, 5]
        # A camera from another process is no other one.
        for one, here in zip(shared, alone, strict=True):
            if isinstance(here, Calibration):
                assert isinstance(one, Calibration)
                assert one.cameras.model is here.cameras.model

    def test_photos_of_other_sizes_change_no_bit(self, calibrator: Calibrator) -> None:
        photos = [np.asarray(picture(128 + i % 2 * 16, 96, seed=i)) for i in range(12)]
        together = calibrator.calibrate(photos, lines="off")
        for photo, beside in zip(photos, together, strict=True):
            alone = calibrator.calibrate(photo, lines="off")
            assert isinstance(alone, Calibration)
            assert isinstance(beside, Calibration)
            np.testing.assert_array_equal(beside.gravity, alone.gravity)
            np.testing.assert_array_equal(beside.covariance, alone.covariance)

    def test_stages_apart_give_the_same(
        self, calibrator: Calibrator, sources: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As with an accelerator, whose place the processor takes."""
        whole = list(calibrator.calibrate_many(sources, workers=1, focal=90.0, lines="off"))
        monkeypatch.setattr(calibrator._engine, "on_processor", False)
        monkeypatch.setattr(calibrator._engine, "batch", 2)
        staged = list(calibrator.calibrate_many(sources, workers=2, focal=90.0, lines="off"))
        assert records(staged) == records(whole)

    def test_a_few_need_no_workers(
        self, calibrator: Calibrator, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(stream, "Workers", lambda *_: pytest.fail("there are workers"))
        monkeypatch.setattr(stream, "threads", lambda: 8)
        assert len(list(calibrator.calibrate_many(["none.jpg"] * stream.FEW))) == stream.FEW

    def test_photos_are_taken_as_outcomes_are(self, calibrator: Calibrator) -> None:
        taken = count()
        endless = (f"{next(taken)}.jpg" for _ in iter(int, 1))
        few = list(islice(calibrator.calibrate_many(endless, workers=1), 3))
        assert len(few) == 3
        assert next(taken) == stream.TOGETHER

    def test_it_may_be_left_in_the_middle(self, calibrator: Calibrator, sources: list[str]) -> None:
        """Also by who presses Ctrl-C; what is under way is not waited for."""
        answers = calibrator.calibrate_many(itertools.cycle(sources), workers=2, lines="off")
        next(answers)
        start = time.monotonic()
        answers.close()  # type: ignore[attr-defined]
        assert time.monotonic() - start < 5

    def test_bad_calls(self, calibrator: Calibrator) -> None:
        with pytest.raises(ConfigError, match="go to calibrate, or to a set"):
            calibrator.calibrate_many([], shared_intrinsics=True)
        with pytest.raises(ConfigError, match="workers is 0; at least 1"):
            calibrator.calibrate_many([], workers=0)
        with pytest.raises(ConfigError, match="lines is 'some'"):
            next(calibrator.calibrate_many(["a.jpg"], lines="some"))  # type: ignore[arg-type]


class TestFailures:
    def test_one_that_fails_costs_the_others_nothing(self) -> None:
        def run(batch: Batch[str]) -> list[str]:
            if "bad.jpg" in batch.images:
                raise RuntimeError("it broke\nsomewhere")
            return [photo.upper() for photo in batch.images]

        found = isolate_failures(run, plain(["a", "bad.jpg", "c"]))
        assert found == ["A", Failure("bad.jpg", None, None, "bad.jpg: it broke"), "C"]

    def test_a_wrong_call_is_raised(self) -> None:
        def run(batch: Batch[str]) -> list[str]:
            raise ConfigError("no such thing")

        with pytest.raises(ConfigError):
            isolate_failures(run, plain(["a", "b"]))

    def test_an_unreadable_photo_is_a_failure(self) -> None:
        def run(batch: Batch[str]) -> list[str]:
            raise ImageError("")

        assert isolate_failures(run, plain(["a"])) == [Failure("a", None, None, "a: ImageError")]


def test_no_more_is_started_than_may_wait() -> None:
    started = []
    with ThreadPoolExecutor(1) as pool:

        def start(batch: Batch[int]) -> Future[int]:
            started.append(batch.images[0])
            return pool.submit(time.sleep, 0.02)  # type: ignore[return-value, arg-type]

        answers = in_order(start, (plain([index]) for index in range(10)), 3)
        assert started == []
        next(answers)
        assert started == [0, 1, 2]
        assert len(list(answers)) == 9
    assert started == list(range(10))


class TestWorkers:
    def test_results_errors_and_deaths(self) -> None:
        with Workers(1) as pool:
            assert pool.ask(divmod, 7, 2) == (3, 1)
            with pytest.raises(ZeroDivisionError):
                pool.ask(divmod, 7, 0)
            with pytest.raises(WorkerLostError, match="exit code 3"):
                pool.ask(os._exit, 3)
            with pytest.raises(Exception, match="pickle"):
                pool.ask(lambda: 1)
            # Another took its place; what it prints is no answer. Its pools have one thread.
            assert pool.ask(print, "words") is None
            assert {pool.ask(os.getenv, name) for name in POOLS} == {"1"}

    def test_they_end_at_once(self) -> None:
        with Workers(2) as pool:
            waiting = [pool.submit(pool.ask, time.sleep, 60) for _ in range(3)]
            processes = [pool.ask.__self__._all[row]._process for row in range(2)]  # type: ignore[attr-defined]
            start = time.monotonic()
        assert time.monotonic() - start < 5
        assert all(process.poll() is not None for process in processes)
        assert all(one.done() for one in waiting)

    @pytest.mark.skipif(sys.platform == "win32", reason="it has other signals")
    @pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
    def test_they_do_not_outlive_the_program(self, ending: signal.Signals) -> None:
        # Whoever runs tests in the background of a shell has interrupts ignored.
        script = """
import os, signal, time
from geocalib.pipeline.parallel.workers import Workers
signal.signal(signal.SIGINT, signal.default_int_handler)
with Workers(2) as pool:
    print(*{pool.submit(pool.ask, os.getpid).result() for _ in range(8)}, flush=True)
    asked = pool.submit(pool.ask, time.sleep, 0.5)
    print(flush=True)
    asked.result()
    time.sleep(60)
"""
        with subprocess.Popen(
            [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as program:
            assert program.stdout is not None
            workers = list(map(int, program.stdout.readline().split()))
            # It has asked by then: interrupted while it asks, Python may keep a lock.
            program.stdout.readline()
            program.send_signal(ending)
            assert program.wait(10) != 0
        assert workers
        end = time.monotonic() + 10
        while any(map(_runs, workers)) and time.monotonic() < end:
            time.sleep(0.05)
        assert not any(map(_runs, workers))


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
        return "Z" not in Path(f"/proc/{process}/stat").read_text().split()[2:3]
    except (OSError, IndexError):
        return False


class TestThreads:
    @pytest.mark.skipif(sys.platform != "linux", reason="single threads have no priority elsewhere")
    def test_those_that_give_way(self) -> None:
        """What is started meanwhile does; who waits for it does not."""

        def niceness() -> int:
            return os.getpriority(os.PRIO_PROCESS, get_native_id())

        def started() -> int:
            with ThreadPoolExecutor(1) as pool:
                return pool.submit(niceness).result()

        before = niceness()
        assert low_priority(started) == min(before + BEHIND, 19)
        assert niceness() == started() == before
        with pytest.raises(ZeroDivisionError):
            low_priority(lambda: 1 // 0)

    def test_where_priorities_are_forbidden(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def forbidden(*_: int) -> None:
            raise PermissionError

        monkeypatch.setattr(os, "setpriority", forbidden, raising=False)
        assert low_priority(lambda: 7) == 7

    def test_as_the_environment_says(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OMP_NUM_THREADS", "3")
        assert threads() == 3
        monkeypatch.setenv("OMP_NUM_THREADS", "many")
        assert threads() == cores() >= 1
        assert environment(2)["OMP_NUM_THREADS"] == "2"
        assert int(environment(1)["MALLOC_MMAP_THRESHOLD_"]) > 1e7

    def test_as_a_container_is_allowed(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        from geocalib.pipeline.parallel import threads as module

        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
        for text, expected in (("200000 100000", 2), ("max 100000", 8), ("1000 100000", 1)):
            (tmp_path / "cpu.max").write_text(text)
            monkeypatch.setattr(module, "QUOTA", tmp_path / "cpu.max")
            assert cores() == expected


def test_batches_are_filled_up(calibrator: Calibrator) -> None:
    sizes: list[int] = []

    class Noting:
        batch = 16
        spec, confidence_scale, has_orientation = calibrator._engine.spec, None, True
        on_processor, has_focal_head = False, True

        def predict(self, images: Array) -> Any:
            means = self.orientation(images)[:, None, None]
            wide = np.broadcast_to(means, (len(images), 2, 2))
            up = np.broadcast_to(wide[:, None], (len(images), 2, 2, 2))
            return Fields(up, wide[:, None], wide, wide)

        def predict_oriented(self, images: Array) -> Any:
            return self.predict(images), images.sum((1, 2, 3))

        def orientation(self, images: Array) -> Any:
            sizes.append(len(images))
            return images.sum((1, 2, 3))

        focal_estimate = orientation

    images = np.arange(6.0).reshape(2, 3, 1, 1)
    full = FullBatches(Noting())  # type: ignore[arg-type]
    assert full.predict(images).up_confidence[:, 0, 0].tolist() == [3.0, 12.0]
    fields, stands = full.predict_oriented(images)
    assert fields.up_confidence[:, 0, 0].tolist() == stands.tolist() == [3.0, 12.0]
    assert full.has_focal_head
    assert full.focal_estimate(images).tolist() == [3.0, 12.0]
    assert sizes == [16, 16, 16]
    # Which side is up is asked of few.
    sizes.clear()
    assert full.orientation(np.ones((FEW + 1, 3, 1, 1))).tolist() == [3.0] * (FEW + 1)
    assert sizes == [FEW, FEW]


def test_arrays_travel_as_they_are() -> None:
    rows = np.arange(12.0).reshape(3, 4)
    with Workers(1) as pool:
        turned, again = pool.ask(_turned, rows, rows[:, 1:])
    np.testing.assert_array_equal(turned, rows.T)
    np.testing.assert_array_equal(again, rows[:, 1:])
    assert again.flags.writeable


def _turned(first: Any, second: Any) -> tuple[Any, Any]:
    return first.T, second
