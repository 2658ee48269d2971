"""How good distortion by the name of a lens is: Lensfun's database against itself.

    python lab/benchmarks/lens_names.py

Lenses of one name that were measured on sensors of different sizes differ as the lens of a photo
does from the one that was measured; and the profiles of all lenses, brought to our models, miss
Lensfun's coordinates by so many pixels of a picture of 12 megapixels.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations
from typing import Any

import lensfunpy
import numpy as np

from geocalib.priors.lens_database import database, sampled
from geocalib.priors.lens_reading import POLYNOMIALS, in_words_of

SIZE = (4256, 2832)
HALF = 0.5 * min(SIZE)


def main() -> None:
    lenses = [
        lens
        for lens in database().lenses
        if lens.type == lensfunpy.LensType.RECTILINEAR
        and len({each.model for each in lens.calib_distortion}) == 1
    ]
    apart = np.array(differences(lenses))
    print(f"{len(apart)} pairs: |difference of k1| {np.quantile(apart, 0.68):.4f} at 68%")
    print("\n| model | median, pixels | 95% | within 0.1 |\n| --- | --- | --- | --- |")
    profiles = [
        sampled(lens, lens.calib_distortion[0].focal, lens.crop_factor, SIZE) for lens in lenses
    ]
    for model in POLYNOMIALS:
        misses = np.array(
            [in_words_of(model, each, each.focal_px, HALF).miss_px for each in profiles]
        )
        within = (misses < 0.1).mean()
        print(
            f"| {model.name} | {np.median(misses):.2f} | {np.quantile(misses, 0.95):.1f} "
            f"| {within:.0%} |"
        )


def differences(lenses: list[Any]) -> list[float]:
    """Of k1 in units of half the shorter side, of lenses of one name on the smaller of their
    sensors, at focal lengths where both were measured."""
    named = defaultdict(list)
    for lens in lenses:
        named[lens.maker, lens.model].append(lens)
    found = []
    for alike in named.values():
        for one, other in combinations(alike, 2):
            crop = max(one.crop_factor, other.crop_factor)
            lengths = {each.focal for each in one.calib_distortion}
            for focal in lengths & {each.focal for each in other.calib_distortion}:
                values = [bend(lens, focal, crop) for lens in (one, other)]
                found.append(abs(values[0] - values[1]))
    return found


def bend(lens: Any, focal: float, crop: float) -> float:
    profile = sampled(lens, focal, crop, SIZE)
    return in_words_of(POLYNOMIALS[0], profile, HALF, HALF).distortion[0]


if __name__ == "__main__":
    main()
