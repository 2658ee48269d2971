"""A batch on a cluster of two nodes, one of which dies in the middle."""

from __future__ import annotations

import os
import platform
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from fake_calibrator import picture
from geocalib import Calibrator
from geocalib.batch import cluster, inputs
from geocalib.batch.run import BatchRun
from geocalib.errors import MissingPackageError
from geocalib.pipeline.engines.load import EngineSpec
from geocalib.pipeline.options import Options


def test_without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(cluster, "import_module", missing)
    with pytest.raises(MissingPackageError, match=r'pip install "geocalib\[ray\]"'):
        next(cluster.answers([], None))  # type: ignore[arg-type]


@pytest.fixture
def two_nodes() -> Iterator[Any]:
    machine = f"{platform.system()} on {platform.machine()}"
    ray = pytest.importorskip("ray", reason=f"Ray is not installed, or has no wheel for {machine}")
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 2})
    nodes.add_node(num_cpus=2)
    ray.init(address=nodes.address, log_to_driver=False)
    yield nodes
    ray.shutdown()
    nodes.shutdown()


@pytest.mark.filterwarnings("ignore")
def test_a_worker_dies(two_nodes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "PART", 24)
    monkeypatch.setattr(cluster, "PIECE", 2)
    (tmp_path / "photos").mkdir()
    for index in range(47):
        picture(96, 64, index).save(tmp_path / "photos" / f"{index}.png")
    (tmp_path / "photos" / "47.png").write_bytes(b"no picture")
    request = Options("pinhole", lines="off")
    network = EngineSpec("lean", "cpu")
    todo = BatchRun(str(tmp_path / "photos"), str(tmp_path / "out"), request, network, "ray")
    worker = next(iter(two_nodes.worker_nodes))

    def kill() -> None:
        time.sleep(8)
        two_nodes.remove_node(worker, allow_graceful=False)

    killer = threading.Thread(target=kill)
    killer.start()
    calibrator = Calibrator(device="cpu")
    done = list(todo.run(todo.plan(), lambda: calibrator))
    killer.join()
    assert sum(failed for _, failed in done) == 1
    tables = map(pq.read_table, sorted((tmp_path / "out").glob("*.parquet")))
    rows = [row for table in tables for row in table.to_pylist()]
    names = Counter(Path(row["image"]).name for row in rows)
    assert names == Counter(f"{index}.png" for index in range(48))
    # As on this machine alone, to the last bit.
    first = next(row for row in rows if row["image"].endswith("/0.png"))
    here = calibrator.calibrate(first["image"], "pinhole", lines="off").to_dict()
    assert {key: first[key] for key in here if key not in ("request", "photo")} == {
        key: value for key, value in here.items() if key not in ("request", "photo")
    }
