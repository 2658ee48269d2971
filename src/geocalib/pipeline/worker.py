"""What a worker process does: calls functions, one after another, until nobody asks any more.

It talks by pickles on its standard streams. So it needs no ``if __name__ == "__main__"`` in the
program that uses it, shares no lock with it, and ends with it, however that ends.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from typing import IO, Any

from geocalib.pipeline.messages import packed, receive, send


def main() -> None:
    """Answer (function, arguments) with (True, result) or (False, exception)."""
    # Whoever presses Ctrl-C means the program, which ends its workers itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asked, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # What libraries print must not get between the answers.
    os.dup2(2, 1)
    try:
        while True:
            send(answers, _answer(asked))
    except (EOFError, BrokenPipeError):
        os._exit(0)  # At once: the program is gone, or done with us.


def _answer(asked: IO[bytes]) -> list[Any]:
    try:
        function, arguments = receive(asked)
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
