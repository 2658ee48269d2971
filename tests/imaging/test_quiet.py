"""Warnings of decoders, and of nobody else."""

from __future__ import annotations

import threading
import warnings

import pytest

from geocalib.imaging.read import quiet


def test_only_within() -> None:
    with quiet():
        warnings.warn("of a decoder", UserWarning, stacklevel=1)
        with quiet():
            pass
        warnings.warn("of a decoder", UserWarning, stacklevel=1)
    with pytest.warns(UserWarning, match="of a user"):
        warnings.warn("of a user", UserWarning, stacklevel=1)


def test_not_in_another_thread() -> None:
    inside, told, errors = threading.Event(), threading.Event(), []

    def reads() -> None:
        with quiet():
            inside.set()
            told.wait(10)

    thread = threading.Thread(target=reads)
    thread.start()
    inside.wait(10)
    try:
        warnings.warn("of a user", UserWarning, stacklevel=1)
    except UserWarning as error:
        errors.append(str(error))
    finally:
        told.set()
        thread.join()
    assert errors == ["of a user"]


def test_the_filters_do_not_grow() -> None:
    with quiet():
        count = len(warnings.filters)
    for _ in range(3):
        with quiet():
            pass
    assert len(warnings.filters) == count
