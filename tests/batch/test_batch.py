from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
import tarfile
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fake_calibrator import FakeCalibrator, picture
from geocalib.batch import inputs
from geocalib.batch.columns import read_rows
from geocalib.batch.inputs import find_parts
from geocalib.batch.plan import MANIFEST
from geocalib.batch.run import BatchRun
from geocalib.errors import ConfigError, FormatError, OutputError
from geocalib.formats.schemas import arrow_schema
from geocalib.pipeline.engines.load import EngineSpec
from geocalib.pipeline.options import Options
from geocalib.result.calibration import read_outcome

NETWORK = EngineSpec("lean", "auto")
REQUEST = Options("pinhole")


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "PART", 4)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Ten, one of which is none, and something else beside them."""
    folder = tmp_path / "photos"
    (folder / "more").mkdir(parents=True)
    for index in range(9):
        picture(seed=index).save(folder / ("more" if index > 6 else "") / f"{index}.png")
    (folder / "9.png").write_bytes(b"no picture")
    (folder / "notes.txt").write_text("of the day")
    (folder / ".hidden.png").write_bytes(b"")
    return folder


def batch(source: object, tmp_path: Path, **other: Any) -> BatchRun:
    return BatchRun(str(source), str(tmp_path / "out"), REQUEST, NETWORK, **other)


def run(todo: BatchRun, calibrator: FakeCalibrator | None = None) -> list[tuple[str, int]]:
    fake: Any = calibrator or FakeCalibrator()
    with todo.alone():
        return [(part.name, failed) for part, failed in todo.run(todo.plan(), lambda: fake)]


def rows(tmp_path: Path) -> list[dict[str, Any]]:
    files = sorted((tmp_path / "out").glob("*.parquet"))
    return [row for file in files for row in pq.read_table(file).to_pylist()]


def names(tmp_path: Path) -> list[str]:
    return [Path(row["image"]).name for row in rows(tmp_path)]


class TestInputs:
    def test_a_folder(self, photos: Path, tmp_path: Path) -> None:
        done = run(batch(photos, tmp_path))
        assert [name for name, _ in done] == ["part-000000", "part-000001", "part-000002"]
        assert sum(failed for _, failed in done) == 1
        assert sorted(names(tmp_path)) == [f"{index}.png" for index in range(10)]
        found = rows(tmp_path)
        (failed,) = [row for row in found if row["error"] is not None]
        assert failed["image"] == str(photos / "9.png")
        assert failed["error"].startswith(failed["image"])
        assert failed["fx"] is None
        for row in found:
            assert read_outcome(row, "row").image == row["image"]
            assert json.loads(row["request"])["camera_model"] == "pinhole"
        table = pq.read_table(tmp_path / "out" / "part-000000.parquet")
        assert table.schema.remove_metadata().equals(arrow_schema())

    def test_a_pattern(self, photos: Path, tmp_path: Path) -> None:
        run(batch(photos / "[0-3].png", tmp_path))
        assert names(tmp_path) == ["0.png", "1.png", "2.png", "3.png"]

    def test_archives(self, photos: Path, tmp_path: Path) -> None:
        shards = tmp_path / "shards"
        shards.mkdir()
        for number, few in enumerate(([0, 1, 2, 3, 4], [5, 6])):
            with tarfile.open(shards / f"{number:03d}.tar", "w") as archive:
                for index in few:
                    archive.add(photos / f"{index}.png", f"{index:04d}.png")
                    label = io.BytesIO(b"{}")
                    member = tarfile.TarInfo(f"{index:04d}.json")
                    member.size = 2
                    archive.addfile(member, label)
        assert [len(part) for part in find_parts(str(shards))] == [4, 1, 2]
        assert [failed for _, failed in run(batch(shards / "*.tar", tmp_path))] == [0, 0, 0]
        assert [row["image"] for row in rows(tmp_path)] == [
            f"{shards}/{number:03d}.tar/{index:04d}.png"
            for number, few in enumerate(([0, 1, 2, 3, 4], [5, 6]))
            for index in few
        ]
        assert {row["width"] for row in rows(tmp_path)} == {64}

    @pytest.mark.parametrize("layout", ["paths", "bytes", "nested"])
    def test_tables(self, photos: Path, tmp_path: Path, layout: str) -> None:
        files = [photos / f"{index}.png" for index in (0, 1, 2, 3, 9)]
        held = [file.read_bytes() for file in files]
        columns: dict[str, Any] = {
            "paths": {"path": list(map(str, files))},
            "bytes": {"key": [file.stem for file in files], "jpg": held},
            "nested": {"image": [{"bytes": one, "path": None} for one in held]},
        }[layout]
        pq.write_table(pa.table(columns), tmp_path / "in.parquet", row_group_size=2)
        assert sum(failed for _, failed in run(batch(tmp_path / "in.parquet", tmp_path))) == 1
        found = [row["image"] for row in rows(tmp_path)]
        assert (
            found
            == {
                "paths": list(map(str, files)),
                "bytes": ["0", "1", "2", "3", "9"],
                "nested": [f"{tmp_path / 'in.parquet'}#{row}" for row in range(5)],
            }[layout]
        )
        assert rows(tmp_path)[-1]["error"].startswith(found[-1])

    def test_rows_that_were_asked_for(self, tmp_path: Path) -> None:
        table = pa.table({"path": [f"{row}.jpg" for row in range(7)]})
        pq.write_table(table, tmp_path / "in.parquet", row_group_size=3)
        read = read_rows(str(tmp_path / "in.parquet"), [2, 3, 6])
        assert [name for name, _ in read] == ["2.jpg", "3.jpg", "6.jpg"]

    def test_what_is_not_there(self, photos: Path, tmp_path: Path) -> None:
        (tmp_path / "empty").mkdir()
        (tmp_path / "bad.tar").write_bytes(b"no archive at all" * 99)
        pq.write_table(pa.table({"size": [1]}), tmp_path / "in.parquet")
        for name, words in (
            ("none", "does not exist"),
            ("empty", "holds no photo"),
            ("bad.tar", "uncompressed tar"),
            ("in.parquet", "columns size"),
        ):
            with pytest.raises(ConfigError, match=words):
                run(batch(tmp_path / name, tmp_path))
            assert not (tmp_path / "out").exists()

    def test_an_archive_that_vanishes_fails_photo_by_photo(
        self, photos: Path, tmp_path: Path
    ) -> None:
        with tarfile.open(tmp_path / "in.tar", "w") as archive:
            archive.add(photos / "0.png", "0.png")
        todo = batch(tmp_path / "in.tar", tmp_path)
        todo.plan()
        (tmp_path / "in.tar").unlink()
        assert run(todo) == [("part-000000", 1)]
        assert "No such file" in rows(tmp_path)[0]["error"]


class TestResuming:
    def test_what_is_done_is_not_done_again(self, photos: Path, tmp_path: Path) -> None:
        todo, calibrator = batch(photos, tmp_path), FakeCalibrator(interrupt_at="6.png")
        with pytest.raises(KeyboardInterrupt):
            run(todo, calibrator)
        assert len(rows(tmp_path)) == 4
        again = FakeCalibrator()
        run(todo, again)
        assert len(again.images) == 6
        assert Counter(names(tmp_path)) == Counter(f"{index}.png" for index in range(10))
        assert run(todo) == []

    def test_killed_at_any_point(self, photos: Path, tmp_path: Path) -> None:
        """Before a table, between two photos, and while a table or the plan is written."""
        script = """
import os, signal, sys
from pathlib import Path
from fake_calibrator import FakeCalibrator
from geocalib.batch import inputs
from test_batch import batch, rows
inputs.PART = 4
folder = Path(sys.argv[1])
def die_at(point):
    class Dying(FakeCalibrator):
        def _one(self, image, model):
            if point > 1 and sum(map(len, (images for images, _ in self.calls))) == point:
                os.kill(os.getpid(), signal.SIGKILL)
            return super()._one(image, model)
    replace, left = os.replace, [point]
    def dying(*paths):
        left[0] -= 1
        if left[0] < 0 and point < 2:
            os.kill(os.getpid(), signal.SIGKILL)
        replace(*paths)
    os.replace = dying
    todo = batch(folder / "photos", folder)
    with todo.alone():
        for _ in todo.run(todo.plan(), Dying):
            pass
for point in map(int, sys.argv[2:]):
    # A process for each, without importing everything again.
    if (process := os.fork()) == 0:
        die_at(point)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), len(rows(folder)))
"""
        path = [str(Path(__file__).parent), str(Path(__file__).parents[1]), *sys.path]
        done = subprocess.run(
            [sys.executable, "-c", script, str(tmp_path), "0", "1", "2", "6"],
            env={"PYTHONPATH": ":".join(path)},
            capture_output=True,
            text=True,
        )
        assert done.stdout.splitlines() == ["-9 0", "-9 0", "-9 0", "-9 4"], done.stderr
        run(batch(photos, tmp_path))
        assert Counter(names(tmp_path)) == Counter(f"{index}.png" for index in range(10))
        left = {file.suffix for file in (tmp_path / "out").iterdir()}
        assert left == {".parquet", ".jsonl"}

    def test_another_question(self, photos: Path, tmp_path: Path) -> None:
        run(batch(photos, tmp_path))
        other = BatchRun(str(photos), str(tmp_path / "out"), Options("radial"), NETWORK)
        with pytest.raises(OutputError, match="another question"):
            other.plan()

    def test_folders_of_others_and_damaged_plans(self, photos: Path, tmp_path: Path) -> None:
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "diary.txt").write_text("mine")
        with pytest.raises(OutputError, match="holds something else"):
            run(batch(photos, tmp_path))
        shutil.rmtree(tmp_path / "out")
        run(batch(photos, tmp_path))
        manifest = tmp_path / "out" / MANIFEST
        manifest.write_text("".join(manifest.read_text().splitlines(keepends=True)[:-1]))
        with pytest.raises(FormatError, match="damaged"):
            run(batch(photos, tmp_path))


def test_object_stores(photos: Path) -> None:
    """In memory, as fsspec has one."""
    fsspec = pytest.importorskip("fsspec")
    store = fsspec.filesystem("memory")
    for file in photos.glob("*.png"):
        store.pipe_file(f"/bucket/in/{file.name}", file.read_bytes())
    todo = BatchRun("memory://bucket/in", "memory://bucket/out", REQUEST, NETWORK)
    assert sum(failed for _, failed in run(todo)) == 1
    assert run(todo) == []
    tables = [store.cat_file(file) for file in store.glob("/bucket/out/*.parquet")]
    found = [row for one in tables for row in pq.read_table(io.BytesIO(one)).to_pylist()]
    assert {row["image"].partition(":")[0] for row in found} == {"memory"}
    assert len(found) == 8
