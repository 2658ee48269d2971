"""What a server holds, on loopback, beside what the pipeline does without one (docs/server.md).

python lab/benchmarks/server.py                          everything
python lab/benchmarks/server.py --only throughput        or: latency, refit, memory
python lab/benchmarks/server.py --clients 16 --seconds 20

throughput  so many clients, each with a photo of its own size and content, one request after the
            other, for so long; the same photos through ``Calibrator.calibrate_many`` before and
            after, in turns, as the machine's pace changes. Every answer is held against the
            client's own: its name, which is a checksum of the photo, size and numbers.
latency     requests that come at random at half that pace: median and 99th percentile.
refit       one photo again and again with other things known, as a slider does it.
memory      10,000 requests of all kinds: resident memory after each twentieth, and since the cache
            of fields was full.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import io
import json
import math
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import httpx2
from PIL import Image

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from geocalib.pipeline.parallel.stream import AHEAD, TOGETHER  # noqa: E402
from geocalib.pipeline.parallel.threads import threads  # noqa: E402
from served import Served  # noqa: E402
from server_fuzz import processor_seconds, resident_megabytes  # noqa: E402

TOWN = ROOT / "examples" / "town.jpg"
COMPARED = {"fy": 1e-3, "roll_deg": 0.02, "pitch_deg": 0.02}
"""Numbers of an answer, and how far apart two may be: fy as a share, angles in degrees. Networks
round otherwise in batches of another size."""
ROUNDS = 2
PAUSE_SECONDS = 0.05
"""Between the answers of one batch and those of the next, at least."""
KEPT = re.compile(r"^geocalib_kept_photos (\d+)", re.MULTILINE)


@dataclass(frozen=True)
class Own:
    """A photo that belongs to one client."""

    data: bytes
    size: tuple[int, int]
    name: str
    form: bytes
    """What is sent; clients do not compute while cores are measured."""
    kind: str
    """Its content type."""


def photos(count: int) -> list[Own]:
    """Of different sizes near 640x480, each with a part of the town."""
    town, owned = Image.open(TOWN).convert("RGB"), []
    for i in range(count):
        size = (640 + i % 8, 480 + i // 8 % 8)
        left, top = 12 * (i % 16), 8 * (i // 16)
        picture = town.crop((left, top, left + 720, top + 540)).resize(size)
        file = io.BytesIO()
        picture.save(file, "JPEG", quality=90)
        data = file.getvalue()
        name = hashlib.sha256(data).hexdigest()
        sent = httpx2.Request("POST", "http://server", files={"image": (name, data)})
        owned.append(Own(data, size, name, sent.read(), sent.headers["content-type"]))
    return owned


BARE = """
import json, sys, time
from itertools import cycle, islice
sys.path[:0] = {paths!r}
import server as benchmark
from geocalib import Calibrator

data = [own.data for own in benchmark.photos({count})]
outcomes = Calibrator().calibrate_many(cycle(data), workers={cores})
print(json.dumps([outcome.to_dict() for outcome in islice(outcomes, {count})]), flush=True)
for line in sys.stdin:
    list(islice(outcomes, {ahead}))
    print("now", flush=True)
    began, done = time.perf_counter(), 0
    # They come by the chunk; a part of one would be none of the pace.
    while time.perf_counter() - began < float(line) or done % {together}:
        next(outcomes)
        done += 1
    print(done / (time.perf_counter() - began), done, flush=True)
"""


class Bare:
    """The pipeline without a server, in a process of its own."""

    def __init__(self, count: int) -> None:
        cores = threads()
        # Answers after the last request are not counted.
        together = cores * TOGETHER
        ahead = (1 + AHEAD) * together
        paths = [str(ROOT / "benchmarks")]
        script = BARE.format(paths=paths, count=count, cores=cores, ahead=ahead, together=together)
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            [sys.executable, "-c", script], stdin=pipe, stdout=pipe, text=True
        )
        self.records: list[dict[str, Any]] = json.loads(self._read())

    def run(self, seconds: float) -> tuple[float, float]:
        """Images a second, and the processor's seconds for each."""
        assert self._process.stdin is not None
        print(seconds, file=self._process.stdin, flush=True)
        self._read()
        before = sum(processor_seconds(self._process.pid))
        pace, count = map(float, self._read().split())
        return pace, (sum(processor_seconds(self._process.pid)) - before) / count

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def close(self) -> None:
        self._process.communicate()


def wrong(own: Own, truth: dict[str, Any], answer: httpx2.Response) -> str | None:
    """What is wrong with an answer, if anything."""
    if answer.status_code != 200:
        return f"{answer.status_code} {answer.text[:100]}"
    (record,) = answer.json()["results"]
    if record["name"] != own.name or (record["width"], record["height"]) != own.size:
        return "somebody else's answer"
    for key, tolerance in COMPARED.items():
        scale = truth[key] if key == "fy" else 1
        if abs(record[key] - truth[key]) > tolerance * scale:
            return f"{key} is {record[key]}, not {truth[key]}"
    return None


async def post(client: httpx2.AsyncClient, own: Own) -> httpx2.Response:
    headers = {"content-type": own.kind}
    return await client.post("/v1/calibrate", content=own.form, headers=headers)


@dataclass(frozen=True)
class Driven:
    """What became of the requests of clients."""

    pace: float
    """Answers a second while all of them options."""
    client_cost: float
    """What this process computed for each, seconds."""
    answers: int
    faults: list[str]
    """What was wrong with them."""


def pace_of(came: Sequence[float], began: float, end: float) -> float:
    """Answers a second. They come by the batch: from the end of a batch to that of another."""
    within = sorted(at for at in came if began <= at < end)
    ends = [i for i, (at, after) in enumerate(pairwise(within)) if after - at > PAUSE_SECONDS]
    if len(ends) < 2:  # One after the other, as an accelerator gives them.
        return len(within) / (end - began)
    return (ends[-1] - ends[0]) / (within[ends[-1]] - within[ends[0]])


async def drive(
    address: str, owned: Sequence[Own], truths: Sequence[dict[str, Any]], seconds: float
) -> Driven:
    """Clients that ask one after the other, for so long once all of them have been answered."""
    limits = httpx2.Limits(max_connections=None)
    came: list[float] = []
    verdicts: list[str | None] = []
    waiting = set(range(len(owned)))
    settled, busy = asyncio.Event(), time.process_time()
    async with httpx2.AsyncClient(base_url=address, timeout=600, limits=limits) as client:
        end = math.inf

        async def ask(number: int) -> None:
            while time.perf_counter() < end:
                answer = await post(client, owned[number])
                came.append(time.perf_counter())
                verdicts.append(wrong(owned[number], truths[number], answer))
                waiting.discard(number)
                if not waiting:
                    settled.set()

        asking = asyncio.gather(*map(ask, range(len(owned))))
        await settled.wait()
        began = time.perf_counter()
        end = began + seconds
        # Those who wait by then get their answers; nobody asks any more, so they are no measure.
        await asking
    cost = (time.process_time() - busy) / len(came)
    return Driven(pace_of(came, began, end), cost, len(came), [v for v in verdicts if v])


async def arrive(address: str, owned: Sequence[Own], pace: float, seconds: float) -> list[float]:
    """Seconds that each request took; they arrive at random, so many a second."""
    random, took, tasks = Random(0), [], []
    async with httpx2.AsyncClient(base_url=address, timeout=600) as client:

        async def ask(own: Own) -> None:
            began = time.perf_counter()
            answer = await post(client, own)
            assert answer.status_code == 200, answer.text
            took.append(time.perf_counter() - began)

        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            tasks.append(asyncio.create_task(ask(random.choice(owned))))
            await asyncio.sleep(random.expovariate(pace))
        await asyncio.gather(*tasks)
    return took


def throughput(served: Served, owned: Sequence[Own], seconds: float) -> float:
    bare = Bare(len(owned))
    ratios, costs, paces, answers, faults = [], [], [], 0, []
    before = bare.run(seconds / 2)
    for _ in range(ROUNDS):
        idle = processor_seconds(served.process.pid)
        driven = asyncio.run(drive(served.address, owned, bare.records, seconds))
        busy = processor_seconds(served.process.pid)
        after = bare.run(seconds / 2)
        alone, alone_cost = (0.5 * (one + other) for one, other in zip(before, after, strict=True))
        cost = (sum(busy) - sum(idle)) / driven.answers
        own = (busy[0] - idle[0]) / driven.answers
        print(
            f"  bare {alone:.2f} images/s at {alone_cost:.3f} s of a core each, "
            f"server {driven.pace:.2f} at {cost:.3f}, {own:.3f} of it not its workers'; clients "
            f"{driven.client_cost:.3f}",
            flush=True,
        )
        ratios.append(driven.pace / alone)
        costs.append(alone_cost / cost)
        paces.append(driven.pace)
        before = after
        answers += driven.answers
        faults += driven.faults
    bare.close()
    print(
        f"throughput: {statistics.median(ratios):.2f} of the bare pipeline's (at least 0.85); by "
        f"what the cores computed for an image, {statistics.median(costs):.2f}"
    )
    print(f"  {answers} answers, {len(faults)} lost, mixed up or wrong", *faults[:5], sep="\n  ")
    return statistics.median(paces)


def latency(served: Served, owned: Sequence[Own], pace: float, seconds: float) -> None:
    took = sorted(asyncio.run(arrive(served.address, owned, 0.5 * pace, seconds)))
    median, p99 = statistics.median(took), took[min(len(took) - 1, int(0.99 * len(took)))]
    print(
        f"latency at {0.5 * pace:.2f} images/s: {len(took)} requests, median {median:.3f} s, "
        f"p99 {p99:.3f} s, {p99 / median:.2f} times it (less than 3)"
    )


def refit(served: Served, own: Own, count: int = 60) -> None:
    with httpx2.Client(base_url=served.address, timeout=60) as client:
        answer = client.post("/v1/calibrate", files={"image": (own.name, own.data)}).json()
        name = answer["results"][0]["id"]
        for label, known in (
            ("focal length", lambda i: {"focal": 500 + i}),
            ("roll and pitch", lambda i: {"roll_deg": i / 10, "pitch_deg": 5}),
            ("all three", lambda i: {"focal": 500 + i, "roll_deg": i / 10, "pitch_deg": 5}),
            ("simple_radial", lambda i: {"focal": 500 + i, "camera_model": "simple_radial"}),
        ):
            for lines in ("off", "auto"):
                took = []
                for i in range(count if lines == "off" else count // 4):
                    began = time.perf_counter()
                    body = {"id": name, "lines": lines, **known(i)}
                    assert client.post("/v1/refit", json=body).status_code == 200
                    took.append(1000 * (time.perf_counter() - began))
                took.sort()
                print(
                    f"refit, {label}, lines {lines}: least {took[0]:.0f} ms, "
                    f"median {statistics.median(took):.0f} ms (less than 50)",
                    flush=True,
                )


def memory(served: Served, own: Own, count: int) -> None:
    """Of ten requests one calibrates and one fits again; the others are of all kinds. Until as many
    photos are kept as may be, memory has to grow; from then on it must not."""
    record: dict[str, Any] = {}
    full: list[tuple[int, float]] = []
    with httpx2.Client(base_url=served.address, timeout=600) as client:
        most = client.get("/v1/models").json()["limits"]["kept"]
        for index in range(count):
            match index % 10:
                case 0:
                    files = {"image": (own.name, own.data)}
                    record = client.post("/v1/calibrate", files=files).json()["results"][0]
                case 1:
                    client.post("/v1/refit", json={"id": record["id"], "lines": "off"})
                case 2 | 3:
                    client.get(f"/v1/fields/{record['id']}")
                case 4 | 5:
                    client.post("/v1/export", json={"records": [record], "format": "colmap"})
                case _:
                    half = own.data[: index % len(own.data)]
                    client.post("/v1/calibrate", files={"image": half})
            if (index + 1) % max(1, count // 20) == 0:
                found = KEPT.search(client.get("/metrics").text)
                kept = int(found[1]) if found else 0
                each = resident_megabytes(served.process.pid)
                print(
                    f"  {index + 1} requests, {kept} photos kept: {sum(each):.0f} MB, "
                    f"{each[0]:.0f} of them the server's, the others its workers'",
                    flush=True,
                )
                if kept == most:
                    full.append((index + 1, sum(each)))
    if len(full) < 2:
        print(f"memory: {most} photos were never kept; it has to grow until then")
        return
    (first, start), (last, end) = full[0], full[-1]
    print(
        f"memory: {start:.0f} MB after {first} requests, when the cache of fields was full, "
        f"{end:.0f} MB after {last}: {1024 * (end - start) / (last - first):+.1f} kB a request"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--only", choices=("throughput", "latency", "refit", "memory"))
    options = parser.parse_args()
    owned = photos(options.clients)
    with Served("--queue", "1024", "--seconds", "600") as served:
        pace = 0.0
        if options.only in (None, "throughput", "latency"):
            pace = throughput(served, owned, options.seconds)
        if options.only in (None, "latency"):
            latency(served, owned, pace, options.seconds)
        if options.only in (None, "refit"):
            refit(served, owned[0])
        if options.only in (None, "memory"):
            memory(served, owned[0], options.requests)


if __name__ == "__main__":
    main()
