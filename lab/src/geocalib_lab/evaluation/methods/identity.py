"""The identity of what answers, where it is not the weights alone."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from geocalib.nets.weights.card import WeightCard


def renamed(card: WeightCard, name: str, description: str) -> WeightCard:
    """The card of a method on top of weights: a checksum of its own, for answers that are kept."""
    source = f"{name} {card.sha256 or card.name}"
    checksum = hashlib.sha256(source.encode()).hexdigest()
    return replace(card, name=name, description=description, sha256=checksum, sigma_scale={})
