"""Send a server what no honest client sends, and see that it holds.

python lab/benchmarks/server_fuzz.py                 10,000 requests
python lab/benchmarks/server_fuzz.py --count 500 --clients 4 --seed 3

Truncated and mutated JPEG, PNG, WebP, HEIC, TIFF and GIF files, bombs, polyglots, wrong types, huge
headers, mangled forms and malformed JSON, to ``geocalib serve`` in a process of its own. Each must
be answered with 4xx and a sentence (or 200, where what is left is an image) in half a minute,
and the server must be as ready and hardly larger afterwards.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import httpx2

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from fuzzed_requests import Sent, requests, verdict  # noqa: E402
from served import Served  # noqa: E402

SLOWEST_SECONDS = 30.0


def family(process: int) -> list[int]:
    """A process and those that it started."""
    found = [process]
    for thread in Path("/proc", str(process), "task").iterdir():
        with suppress(FileNotFoundError):  # It has ended meanwhile.
            for child in (thread / "children").read_text().split():
                found += family(int(child))
    return found


def resident_megabytes(process: int) -> list[float]:
    """Memory of a process, and of each of its workers."""
    texts = [Path("/proc", str(each), "status").read_text() for each in family(process)]
    return [int(line) / 1024 for text in texts for line in re.findall(r"VmRSS:\s*(\d+) kB", text)]


def processor_seconds(process: int) -> list[float]:
    """What a process, and each of its workers, has computed."""
    seconds = []
    for each in family(process):
        # The name before them may hold spaces.
        fields = Path("/proc", str(each), "stat").read_text().rpartition(")")[2].split()
        seconds.append((int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"))
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seed", type=int, default=17)
    options = parser.parse_args()
    every = requests(options.count, options.seed)
    with Served() as served, httpx2.Client(base_url=served.address, timeout=60) as client:

        def send(sent: Sent) -> tuple[str, int, float, str | None]:
            began = time.perf_counter()
            try:
                answer = client.post(sent.path, content=sent.body, headers=sent.headers)
            except httpx2.HTTPError as error:
                return sent.kind, 0, 0.0, f"{sent.kind}: {type(error).__name__}: {error}"
            seconds = time.perf_counter() - began
            wrong = verdict(sent, answer.status_code, answer.text)
            if seconds > SLOWEST_SECONDS:
                wrong = f"{sent.kind}: {seconds:.0f} s"
            return sent.kind, answer.status_code, seconds, wrong

        tenth = max(1, len(every) // 10)
        memory = [sum(resident_megabytes(served.process.pid))]
        answers = []
        with ThreadPoolExecutor(options.clients) as pool:
            for start in range(0, len(every), tenth):
                answers += pool.map(send, every[start : start + tenth])
                memory.append(sum(resident_megabytes(served.process.pid)))
                print(f"{len(answers)} of {len(every)}, {memory[-1]:.0f} MB", flush=True)
        ready = client.get("/v1/ready").status_code
        logged = served.logged
    counts = Counter((kind, status) for kind, status, _, _ in answers)
    for (kind, status), count in sorted(counts.items()):
        print(f"{kind:16}{status:5}{count:7}")
    wrong = [words for *_, words in answers if words]
    print(f"slowest {max(seconds for _, _, seconds, _ in answers):.2f} s")
    print(f"memory {' '.join(f'{value:.0f}' for value in memory)} MB")
    print(f"unexpected errors in the log: {logged.count('unexpected')}; ready: {ready}")
    print(f"wrong: {len(wrong)} of {len(every)}", *wrong[:20], sep="\n")
    sys.exit(bool(wrong) or ready != 200)


if __name__ == "__main__":
    main()
