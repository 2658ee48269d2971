"""Labels made better by what was learnt from them: tilted panoramas are set upright."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn

from geocalib.geometry.fields import Fields
from geocalib.nets.prediction import Prediction
from geocalib.solver.fit import fit
from geocalib_lab.panoramas.levelness import Level, estimate_level, read_levels, write_levels
from geocalib_lab.panoramas.panorama import PanoramaBank
from geocalib_lab.panoramas.views import sample_views
from geocalib_lab.training.batches import enlarge, photograph, seen_size
from geocalib_lab.training.config import TrainingConfig

VIEWS = 32
"""Of each panorama."""

SEED = 11


def level_bank(
    bank: PanoramaBank, table: Path, network: nn.Module, config: TrainingConfig
) -> PanoramaBank:
    """The bank with the panoramas upright that a table says are tilted.

    A table that does not exist yet is made, of what the network sees.
    """
    if not table.exists():
        write_levels(measure_levels(network, bank, config), table)
    levels = read_levels(table)
    tilted = {
        name: level.panorama_from_world
        for name, level in levels.items()
        if level.verdict == "tilted"
    }
    print(f"{len(tilted)} of {len(bank)} panoramas are tilted and are set upright", flush=True)
    return bank.levelled(tilted)


def measure_levels(
    network: nn.Module, bank: PanoramaBank, config: TrainingConfig
) -> dict[str, Level]:
    """How each panorama of a bank stands, by name."""
    network.eval()
    generator = torch.Generator(bank.device).manual_seed(SEED)
    every = torch.arange(len(bank), device=bank.device).repeat_interleave(VIEWS)
    calm = replace(
        config.views, published_share=0.0, people_focal_mm=(15.0, 33.0), distorted_share=0.0
    )
    down = []
    size = config.sizes[0]
    width, height = seen_size(size, config.detail)
    for first in range(0, len(every), config.validation.batch):
        index = every[first : first + config.validation.batch]
        drawn = sample_views(bank, len(index), calm, width, height, generator)
        views = replace(drawn, index=index)
        images, _ = photograph(bank, views, width, height)
        gravity = _gravity(network, enlarge(images, size))
        # Not a matrix product: those may be rounded to ten bits.
        down.append((views.panorama_from_camera * gravity[:, None]).sum(-1))
    grouped = torch.cat(down).reshape(len(bank), VIEWS, 3).cpu()
    return {name: estimate_level(part) for name, part in zip(bank.names, grouped, strict=True)}


@torch.no_grad()
def _gravity(network: nn.Module, images: Tensor) -> Tensor:
    """(B, 3) fitted to what the network sees."""
    prediction = Prediction(*(value.float() for value in network(images)))
    return fit(Fields(**prediction._asdict()), "pinhole").gravity
