"""A batch of thousands of photos that is killed twice, and loses and doubles none: docs/batch.md.

python lab/benchmarks/batch.py                 10,000 photos, killed after a fifth and after a half
python lab/benchmarks/batch.py --count 2000 --lines on

The photos are links to a few rendered ones. Each run is ``geocalib batch`` in a process of its own;
the first two are ended with SIGKILL as soon as enough tables are there.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import pyarrow.parquet as parquet

from throughput import render

KILLED_AT = (0.2, 0.5)
"""Shares of all tables after which a run is killed."""


def link(folder: Path, photos: list[str], count: int) -> list[str]:
    """So many names for the photos."""
    folder.mkdir()
    names = [f"{index:06d}.jpg" for index in range(count)]
    for index, name in enumerate(names):
        os.link(photos[index % len(photos)], folder / name)
    return names


def start(source: Path, output: Path, lines: bool) -> subprocess.Popen[bytes]:
    """Start the command in a process of its own."""
    words = ["batch", str(source), str(output), "--lines", "auto" if lines else "off"]
    return subprocess.Popen([sys.executable, "-m", "geocalib", *words])


def tables(output: Path) -> list[Path]:
    return sorted(output.glob("*.parquet"))


def orphans() -> int:
    """Worker processes whose parent has ended."""
    alone = 0
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            words = (status.parent / "cmdline").read_bytes()
            alone += (
                b"geocalib.pipeline.parallel.workers" in words
                and "PPid:\t1\n" in status.read_text()
            )
        except OSError:
            continue
    return alone


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--lines", choices=("on", "off"), default="off")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source, output = Path(folder) / "photos", Path(folder) / "out"
        rendered = Path(folder) / "rendered"
        rendered.mkdir()
        names = link(source, render(rendered), options.count)
        started = time.monotonic()
        for share in KILLED_AT:
            run = start(source, output, options.lines == "on")
            while run.poll() is None:
                manifest = output / "_manifest.jsonl"
                parts = json.loads(manifest.open().readline())["parts"] if manifest.exists() else 0
                if parts and len(tables(output)) >= share * parts:
                    run.send_signal(signal.SIGKILL)
                    break
                time.sleep(0.05)
            run.wait()
            done = sum(parquet.read_metadata(table).num_rows for table in tables(output))
            print(f"killed: {done} photos in {len(tables(output))} tables", flush=True)
        status = start(source, output, options.lines == "on").wait()
        spent = time.monotonic() - started
        column = [
            Path(name).name
            for table in tables(output)
            for name in parquet.read_table(table, columns=["image"])["image"].to_pylist()
        ]
        found = Counter(column)
        print(f"finished with status {status}: {len(column)} rows in {len(tables(output))} tables")
        print(f"lost {len(set(names) - set(found))}, doubled {len(column) - len(found)}")
        print(f"{options.count / spent:.1f} photos / s, with three starts and what was lost")
        time.sleep(2)
        print(f"worker processes left over: {orphans()}")


if __name__ == "__main__":
    main()
