"""Processes that call functions for us, each on a core of its own; and what such a process does.

A worker calls functions, one after another, until its input ends. It talks by pickles on its
standard streams. So it needs no ``if __name__ == "__main__"`` in the program that uses it, shares
no lock with it, and ends with it, however that ends. Arrays are sent as they lie in memory, without
a copy.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import IO, Any, ParamSpec, TypeVar

from geocalib.pipeline.parallel.threads import environment

P = ParamSpec("P")
R = TypeVar("R")

START = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); "
    "from geocalib.pipeline.parallel.workers import work; work()"
)


PIPE = 1 << 20
"""Bytes that a pipe holds, where that can be chosen: with few, a worker waits again and again until
this process has read some of its pixels."""


class WorkerLostError(RuntimeError):
    """A worker process ended in the middle of its work."""


class WorkersEnded(BaseException):
    """There are no workers any more: who asks them is to end as well."""


class Workers:
    """So many worker processes, with one thread in each of their pools.

    A context: at its end, whatever the reason, they are ended.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._callers = ThreadPoolExecutor(count, "geocalib-worker")
        self._idle: queue.SimpleQueue[_Process | None] = queue.SimpleQueue()
        self._all: list[_Process] = []
        self._closed = False
        for _ in range(count):
            self._start()

    def submit(self, call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """What the call will return; it runs in this process, in a thread that has a worker to
        itself, and asks it by ``ask``."""
        return self._callers.submit(call, *args, **kwargs)

    def ask(self, function: Callable[..., R], *arguments: Any) -> R:
        """What a function returns, or raises, in a worker that is idle. It is pickled by its name.

        A worker that dies of it is replaced, and ``WorkerLostError`` raised.
        """
        # First, so that what cannot be pickled costs no worker.
        question = packed((function, arguments))
        process = self._idle.get()
        if process is None:
            raise WorkersEnded
        try:
            done, value = process.ask(question)
        except BaseException:
            # Between question and answer nothing else can be sent.
            process.end()
            self._all.remove(process)
            if self._closed:
                raise WorkersEnded from None
            self._start()
            raise
        self._idle.put(process)
        if not done:
            raise value
        answer: R = value
        return answer

    def _start(self) -> None:
        process = _Process()
        self._all.append(process)
        self._idle.put(process)

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self._closed = True
        self._callers.shutdown(wait=False, cancel_futures=True)
        # Callers that wait for an answer learn that there will be none.
        for process in tuple(self._all):
            process.kill()
        for _number in range(self.count):
            self._idle.put(None)
        self._callers.shutdown(wait=True)
        for process in tuple(self._all):
            process.end()


class _Process:
    """One worker process and its pipe."""

    def __init__(self) -> None:
        import subprocess  # Not at the top: one photo needs no workers, and it is slow to import.

        self._process = subprocess.Popen(
            [sys.executable, "-c", START],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pipesize=PIPE,
            env=environment(1),
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._questions, self._answers = self._process.stdin, self._process.stdout
        self._greeting = pickle.dumps(sys.path)

    def ask(self, question: list[Any]) -> tuple[bool, Any]:
        """Whether it worked, and the result or the exception."""
        try:
            self._questions.write(self._greeting)
            send(self._questions, question)
            self._greeting = b""
            answer: tuple[bool, Any] = receive(self._answers)
        except (OSError, EOFError, pickle.UnpicklingError):
            code = self._process.wait()
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            raise WorkerLostError(f"the process that worked on it ended ({how})") from None
        return answer

    def kill(self) -> None:
        """End the process now, whatever it does."""
        if self._process.poll() is None:
            self._process.kill()

    def end(self) -> None:
        """End the process at once, without messages."""
        self.kill()
        self._process.wait()
        self._answers.close()
        with suppress(OSError):  # What it has not read is lost.
            self._questions.close()


def work() -> None:
    """Answer (function, arguments) with (True, result) or (False, exception)."""
    # Anyone who presses Ctrl-C means the program, which ends its workers itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # What libraries print must not get between the answers.
    os.dup2(2, 1)
    try:
        while True:
            send(answers, _reply(requests))
    except (EOFError, BrokenPipeError):
        os._exit(0)  # At once: the program is gone, or done with us.


def _reply(requests: IO[bytes]) -> list[Any]:
    try:
        function, arguments = receive(requests)
        reply: tuple[bool, Any] = (True, function(*arguments))
        return packed(reply)
    except (EOFError, KeyboardInterrupt):
        raise
    except Exception as error:
        return packed((False, _portable(error)))


def _portable(error: Exception) -> Exception:
    """The error, or its words where it cannot travel."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def packed(thing: object) -> list[Any]:
    """What to write, in order: the sizes of what follows, the thing, and its arrays."""
    buffers: list[pickle.PickleBuffer] = []
    head = pickle.dumps(thing, 5, buffer_callback=buffers.append)
    arrays = [buffer.raw() for buffer in buffers]
    sizes = pickle.dumps([len(head), *(array.nbytes for array in arrays)])
    return [sizes, head, *arrays]


def send(file: IO[bytes], parts: list[Any]) -> None:
    """Write to the process what was packed."""
    for part in parts:
        file.write(part)
    file.flush()


def receive(file: IO[bytes]) -> Any:
    """The next thing; ``EOFError`` where there is none."""
    length, *sizes = pickle.load(file)
    head, *arrays = (_filled(file, size) for size in (length, *sizes))
    return pickle.loads(head, buffers=arrays)


def _filled(file: IO[bytes], size: int) -> bytearray:
    content = bytearray(size)
    view, at = memoryview(content), 0
    while at < size:
        count = file.readinto(view[at:])  # type: ignore[attr-defined]
        if not count:
            raise EOFError
        at += count
    return content
