"""Size, operations and CPU latency of the networks, as a table.

python lab/benchmarks/networks.py                    320x320 pixels
python lab/benchmarks/networks.py --size 448 320     another size, width and height
"""

from __future__ import annotations

import argparse
import time

import torch
from torch import nn

from geocalib.nets.encoders import ENCODERS
from geocalib.nets.folding import fold_batch_norm
from geocalib.nets.lean import LeanConfig, LeanNetwork
from geocalib.nets.published import PublishedNetwork
from geocalib_lab.cost import Cost, measure_cost

THREADS = (1, 2)


def latency_ms(network: nn.Module, width: int, height: int, threads: int, rounds: int) -> float:
    """The quickest of several calls with one image; the others met other programs."""
    torch.set_num_threads(threads)
    image = torch.rand(1, 3, height, width).contiguous(memory_format=torch.channels_last)
    with torch.inference_mode():
        network(image)
        times = []
        for _ in range(rounds):
            start = time.perf_counter()
            network(image)
            times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, nargs=2, default=(320, 320), metavar=("W", "H"))
    parser.add_argument("--rounds", type=int, default=10)
    arguments = parser.parse_args()
    width, height = arguments.size

    networks: dict[str, nn.Module] = {"published": PublishedNetwork()}
    networks |= {f"lean, {name}": LeanNetwork(LeanConfig(name)) for name in ENCODERS}
    print(f"One image of {width}x{height}, folded, channels last; in brackets, of the first row.\n")
    print("| network | parameters [M] | GFLOP |", *(f"threads = {n} [ms] |" for n in THREADS))
    print("| --- | --- | --- |" + " --- |" * len(THREADS))
    first: list[float] = []
    for name, network in networks.items():
        cost: Cost = measure_cost(network, width, height)
        fast = fold_batch_norm(network).to(memory_format=torch.channels_last)
        values = [cost.parameters / 1e6, cost.flops / 1e9]
        values += [latency_ms(fast, width, height, n, arguments.rounds) for n in THREADS]
        first = first or values
        cells = (
            f"{value:.{digits}f} ({value / reference:.2f})"
            for value, reference, digits in zip(values, first, (1, 1, 0, 0), strict=True)
        )
        print(f"| {name} |", *(f"{cell} |" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
