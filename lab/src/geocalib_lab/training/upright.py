"""``python -m geocalib_lab.training.upright``: fit the classifier of which side of a picture is up.

It needs upright photographs and trained weights; turned by quarters, the photographs are their own
labels. Run it again whenever the weights change.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from geocalib.errors import ConfigError, GeoCalibError
from geocalib.files import replacing
from geocalib.imaging import InputSpec, prepare, read_photo
from geocalib.nets.lean import LeanNetwork
from geocalib.nets.upright import WEIGHTS_KEY, features
from geocalib.nets.weights.files import LoadedNetwork, load_network
from geocalib.pipeline.engines.torch import find_device
from geocalib.pipeline.orientation import TURNS

PENALTY = 0.15
"""On half the squared weights of standardised features."""
ITERATIONS = 100
LEAST_SPREAD = 1e-3
"""Of a feature, so that one that never changes stays small."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 if all went well."""
    parser = argparse.ArgumentParser(prog="python -m geocalib_lab.training.upright")
    parser.add_argument("--photos", type=Path, required=True, help="folder of upright photographs")
    parser.add_argument("--weights", default="lean", help="a name or a file")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, mps")
    parser.add_argument("--each", type=int, default=100, help="photos of one OWNER__*, at most")
    parser.add_argument("--out", type=Path, required=True, help="upright.safetensors")
    options = parser.parse_args(arguments)
    try:
        photos = choose(options.photos, options.each)
        loaded = load_network(options.weights)
        weight, bias = fit_turns(gather(loaded, photos, find_device(options.device)))
        save_upright(options.out, loaded, weight, bias)
    except GeoCalibError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"{options.out}: fitted to {len(photos)} photographs")
    return 0


def choose(folder: Path, each: int) -> list[Path]:
    """Photographs of a folder, spread over those of each owner, whose name is before a "__"."""
    owners = defaultdict(list)
    for path in sorted(folder.iterdir()):
        owners[path.name.partition("__")[0]].append(path)
    if not owners:
        raise ConfigError(f"{folder} holds no photographs")
    return [path for paths in owners.values() for path in paths[:: -(-len(paths) // each)]]


def gather(loaded: LoadedNetwork, photos: Sequence[Path], device: torch.device) -> Tensor:
    """(N, 4, F) features of N photographs, turned by 0 to 3 quarters."""
    network, card = loaded.network, loaded.card
    if not isinstance(network, LeanNetwork):
        raise ConfigError("the classifier is for lean networks")
    network = network.to(device)
    spec = InputSpec(card.short_side, network.multiple, card.largest_aspect, card.detail)
    rows = []
    for photo in photos:
        given = prepare(read_photo(photo, spec.short_side), spec)
        image = torch.from_numpy(given.image)[None].to(device)
        with torch.inference_mode():
            turned = [features(network, torch.rot90(image, k, (-2, -1))) for k in TURNS]
        rows.append(torch.cat(turned).cpu())
    return torch.stack(rows)


def fit_turns(seen: Tensor) -> tuple[Tensor, Tensor]:
    """Weight (4, F) and bias (4,) of a penalised logistic regression of features (N, 4, F)."""
    values = seen.flatten(0, 1).double().clone()
    labels = torch.tensor(TURNS).repeat(len(seen))
    mean, spread = values.mean(0), values.std(0) + LEAST_SPREAD
    values = (values - mean) / spread
    weight = values.new_zeros(len(TURNS), values.shape[1], requires_grad=True)
    bias = values.new_zeros(len(TURNS), requires_grad=True)
    search = torch.optim.LBFGS([weight, bias], max_iter=ITERATIONS, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        search.zero_grad()
        missed = functional.cross_entropy(functional.linear(values, weight, bias), labels)
        total = missed + 0.5 * PENALTY * weight.square().sum()
        total.backward()  # type: ignore[no-untyped-call]
        return total

    search.step(loss)  # type: ignore[no-untyped-call]
    scaled = weight.detach() / spread
    return scaled.float(), (bias.detach() - scaled @ mean).float()


def save_upright(path: Path, loaded: LoadedNetwork, weight: Tensor, bias: Tensor) -> None:
    """Write a classifier of the network of these weights."""
    from safetensors.torch import save

    if loaded.card.sha256 is None:
        raise ConfigError("a classifier belongs to weights that are a file")
    with replacing(path) as file:
        tensors = {"weight": weight, "bias": bias}
        file.write(save(tensors, metadata={WEIGHTS_KEY: loaded.card.sha256}))


if __name__ == "__main__":
    sys.exit(main())
