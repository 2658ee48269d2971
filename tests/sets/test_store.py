"""Observations come back from their file as they went in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from geocalib.sets import camera_group
from geocalib.sets.camera_group import Store
from geocalib.solver.observations import Observations


def observations(images: int, places: int, seed: int, shared: bool = False) -> Observations:
    generator = np.random.default_rng(seed)
    widths = [places if shared else 2 * places] * 2 + [places] * 5
    return Observations(*(generator.random((images, n)) for n in widths))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_of_different_widths(
    tmp_path: Path, dtype: npt.DTypeLike, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(camera_group, "ROWS_AT_ONCE", 2)
    kept = Store(tmp_path / "file", dtype)
    parts = [
        observations(3, 5, 0),
        observations(2, 8, 1),
        observations(1, 8, 2, shared=True),
        observations(1, 4, 3),
    ]
    for part in parts:
        kept.append(part)
    assert len(kept) == 7
    found = kept.load()
    row = 0
    for part in parts:
        wanted = part.padded(8)
        for name, value in vars(wanted).items():
            got = getattr(found, name)[row : row + len(part)]
            assert got.dtype == dtype
            assert np.array_equal(got, value.astype(dtype)), name
        row += len(part)


def test_changes_stay_in_memory(tmp_path: Path) -> None:
    kept = Store(tmp_path / "file")
    kept.append(observations(2, 3, 0))
    kept.load().up_weight[0] = -1.0
    assert (kept.load().up_weight >= 0).all()


def test_an_empty_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds no observations"):
        Store(tmp_path / "file").load()
