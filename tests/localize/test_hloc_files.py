"""hloc's files: features and matches in HDF5, in all the forms its versions have written."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from geocalib.errors import FormatError, MissingPackageError
from geocalib.localize import hloc
from geocalib.localize.colmap_model import ColmapModel, ModelImage

IDS = np.array([7, -1, 9, 5])
IMAGE = ModelImage("db/1.jpg", 1, np.eye(3), np.zeros(3), np.zeros((4, 2)), IDS)
MODEL = ColmapModel(
    {"db/1.jpg": IMAGE, "db/2.jpg": IMAGE},
    {7: np.array([1.0, 2.0, 3.0]), 9: np.array([4.0, 5.0, 6.0])},
)
KEYPOINTS = np.array([[0, 0], [10, 20], [30.5, 40]], dtype=np.float32)
FEATURES = {"q/a.jpg/keypoints": KEYPOINTS}


def found(matches: dict[str, Any], *database: str) -> tuple[list[Any], list[Any], list[str]]:
    notes: list[str] = []
    names = list(database or ["db/1.jpg"])
    pixels, points = hloc.find_matches("q/a.jpg", names, MODEL, FEATURES, matches, notes.append)
    return pixels.tolist(), points.tolist(), notes


@pytest.mark.parametrize(
    ("pair", "table"),
    [
        ("q-a.jpg/db-1.jpg", [-1, 0, 2]),
        ("q-a.jpg_db-1.jpg", [-1, 0, 2]),
        ("db-1.jpg/q-a.jpg", [1, -1, 2, -1]),
        ("db-1.jpg_q-a.jpg", [1, -1, 2, -1]),
    ],
)
def test_pairs_in_all_forms(pair: str, table: list[int]) -> None:
    pixels, points, notes = found({f"{pair}/matches0": np.array(table)})
    assert pixels == [[10.5, 20.5], [31, 40.5]]
    assert points == [[1, 2, 3], [4, 5, 6]]
    assert notes == []


def test_keypoints_without_a_point_are_left_out() -> None:
    """One has none; the point of the other is not in the model."""
    assert found({"q-a.jpg/db-1.jpg/matches0": np.array([1, 3, -1])}) == ([], [], [])


def test_the_same_match_twice_counts_once() -> None:
    matches = {f"q-a.jpg/db-{i}.jpg/matches0": np.array([-1, 0, -1]) for i in (1, 2)}
    pixels, points, notes = found(matches, "db/1.jpg", "db/2.jpg")
    assert (pixels, points, notes) == ([[10.5, 20.5]], [[1, 2, 3]], [])


def test_what_is_missing_is_reported() -> None:
    matches = {
        "q-a.jpg/db-1.jpg/matches0": np.array([0, 0, 0, 0]),
        "q-a.jpg/db-3.jpg/matches0": np.array([0]),
    }
    pixels, _, notes = found(matches, "db/1.jpg", "db/2.jpg", "db/3.jpg")
    assert pixels == []
    assert notes == [
        "q/a.jpg: the matches with db/1.jpg are those of other keypoints",
        "q/a.jpg: there are no matches with db/2.jpg",
        "q/a.jpg: the model has no image db/3.jpg",
    ]
    notes = []
    hloc.find_matches("q/b.jpg", ["db/1.jpg"], MODEL, FEATURES, matches, notes.append)
    assert notes == ["q/b.jpg: the features hold no keypoints (K, 2) for it"]


def test_files_as_hloc_writes_them(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "features.h5", "w") as file:
        group = file.create_group("q/a.jpg")
        group.create_dataset("keypoints", data=KEYPOINTS.astype(np.float16))
        group["keypoints"].attrs["uncertainty"] = 1.0
    with h5py.File(tmp_path / "matches.h5", "w") as file:
        group = file.create_group("q-a.jpg/db-1.jpg")
        group.create_dataset("matches0", data=np.array([-1, 0, 2], dtype=np.int16))
        group.create_dataset("matching_scores0", data=np.ones(3, dtype=np.float16))
    notes: list[str] = []
    with (
        hloc.open_hdf5(tmp_path / "features.h5") as features,
        hloc.open_hdf5(tmp_path / "matches.h5") as matches,
    ):
        names = ["db/1.jpg"]
        pixels, _ = hloc.find_matches("q/a.jpg", names, MODEL, features, matches, notes.append)
    assert pixels.tolist() == [[10.5, 20.5], [31, 40.5]]
    assert notes == []


def test_a_file_that_is_no_hdf5(tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    (tmp_path / "text.h5").write_text("dear diary")
    with (
        pytest.raises(FormatError, match=r"text.h5 is damaged or is no HDF5 file"),
        hloc.open_hdf5(tmp_path / "text.h5"),
    ):
        pass
    with pytest.raises(FileNotFoundError), hloc.open_hdf5(tmp_path / "gone.h5"):
        pass


def test_without_h5py(monkeypatch: pytest.MonkeyPatch) -> None:
    load = importlib.import_module

    def refuse(name: str) -> Any:
        if name == "h5py":
            raise ImportError(name)
        return load(name)

    monkeypatch.setattr(hloc, "import_module", refuse)
    with (
        pytest.raises(MissingPackageError, match=r"m.h5: HDF5 files need h5py; pip install h5py"),
        hloc.open_hdf5("m.h5"),
    ):
        pass


def test_pairs(tmp_path: Path) -> None:
    path = tmp_path / "pairs.txt"
    path.write_text("a.jpg 1.jpg\na.jpg 2.jpg\nb.jpg\n\nc.jpg 1.jpg\n")
    notes: list[str] = []
    assert hloc.read_pairs(path, notes.append) == {"a.jpg": ["1.jpg", "2.jpg"], "c.jpg": ["1.jpg"]}
    assert notes == [f"{path}, line 3: must be QUERY DATABASE_IMAGE, got 'b.jpg'"]
