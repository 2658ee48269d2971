"""How often a photograph that lies on a side is noticed, as the table in docs/priors.md.

python benchmarks/upright.py FOLDER ...    folders of upright photographs, searched to the bottom

Each photograph is judged by the packaged weights as it is and turned by 90, 180 and 270 degrees.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

import torch

from geocalib.cli.inputs import find_images
from geocalib.imaging import InputSpec, prepare, read_photo
from geocalib.nets.glance import TURNS
from geocalib.nets.upright import find_upright
from geocalib.nets.weights import load_network
from geocalib.pipeline.rotation import judge


def main() -> None:
    """Print a row for each folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="+", type=Path)
    names = (
        "upright, turned",
        "upright, warned",
        "turned, found",
        "turned, warned",
        "turned wrongly",
    )
    print("| photographs |", " | ".join((*names, "the likeliest side is right")), "|")
    print("| --- " * (len(names) + 2) + "|")
    for folder in parser.parse_args().folder:
        photos = find_images([str(folder)], recursive=True).images
        found = measure(photos)
        turned = (len(TURNS) - 1) * len(photos)
        counts = [
            f"{found[name]} of {turned if k > 1 else len(photos)}" for k, name in enumerate(names)
        ]
        right = f"{found['right']} of {len(TURNS) * len(photos)}"
        print(f"| {len(photos)} in {folder.name} |", " | ".join((*counts, right)), "|", flush=True)


@torch.inference_mode()
def measure(photos: tuple[str, ...]) -> Counter[str]:
    """How often each thing happened."""
    loaded = load_network("lean")
    upright, card = find_upright(loaded), loaded.card
    assert upright is not None, "fit the classifier first: python -m geocalib.training.upright"
    spec = InputSpec(card.short_side, loaded.network.multiple, card.largest_aspect, card.detail)
    found: Counter[str] = Counter()
    for photo in photos:
        given = prepare(read_photo(photo, spec.short_side), spec)
        image = torch.from_numpy(given.image)[None]
        for turns in TURNS:
            turned = torch.rot90(image, turns, (-2, -1))
            (stands,), (notes,) = judge(turned, upright.glance, certain=True)
            (likeliest,), _ = judge(turned, upright.glance, certain=False)
            found["right"] += likeliest == turns
            kind = "turned" if turns else "upright"
            if turns and stands == turns:
                found["turned, found"] += 1
            elif stands:
                found["turned wrongly" if turns else "upright, turned"] += 1
            elif notes:
                found[f"{kind}, warned"] += 1
    return found


if __name__ == "__main__":
    main()
