"""How often a photograph that lies on a side is noticed, as the table in docs/priors.md.

python lab/benchmarks/upright.py FOLDER ...  folders of upright photographs, searched to the bottom

Each photograph is judged by the packaged weights as it is and turned by 90, 180 and 270 degrees.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

import numpy as np

from geocalib.cli.inputs import find_images
from geocalib.imaging import prepare, read_photo
from geocalib.pipeline.engines.onnx import OnnxEngine
from geocalib.pipeline.orientation import TURNS
from geocalib.pipeline.orientation import _orientations as judge


def main() -> None:
    """Print a row for each folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="+", type=Path)
    names = (
        "upright, suspected",
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
            f"{found[name]} of {turned if k > 2 else len(photos)}" for k, name in enumerate(names)
        ]
        right = f"{found['right']} of {len(TURNS) * len(photos)}"
        print(f"| {len(photos)} in {folder.name} |", " | ".join((*counts, right)), "|", flush=True)


def measure(photos: tuple[str, ...]) -> Counter[str]:
    """How often each thing happened."""
    engine = OnnxEngine("lean", "cpu")
    assert engine.knows_upright, "fit the classifier: python -m geocalib_lab.training.upright"
    found: Counter[str] = Counter()
    for photo in photos:
        image = prepare(read_photo(photo, engine.spec.short_side), engine.spec).image[None]
        answers = [engine.orientation(np.rot90(image, turns, (-2, -1))) for turns in TURNS]
        for turns in TURNS:
            first, *more = answers[turns:] + answers[:turns]
            others = iter(more)
            (stands,), (notes,) = judge(image, first, lambda _, answers=others: next(answers), True)
            kind = "turned" if turns else "upright"
            found[f"{kind}, suspected"] += not list(others)
            others = iter(more)
            (likeliest,), _ = judge(image, first, lambda _, answers=others: next(answers), False)
            found["right"] += likeliest == turns
            if turns and stands == turns:
                found["turned, found"] += 1
            elif stands:
                found["turned wrongly" if turns else "upright, turned"] += 1
            elif notes:
                found[f"{kind}, warned"] += 1
    return found


if __name__ == "__main__":
    main()
