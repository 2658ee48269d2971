"""``Eye``: photographs through the network, one by one or many."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.utils import convert_conv2d_weight_memory_format

from geocalib.errors import ConfigError, ImageError
from geocalib.geometry.fields import Fields
from geocalib.geometry.segments import Segments
from geocalib.geometry.view import View
from geocalib.imaging import (
    ImageSource,
    InputSpec,
    NetworkInput,
    Photo,
    is_blank,
    prepare,
    read_photo,
)
from geocalib.imaging.quiet import quiet
from geocalib.lines.detect import SHORT_SIDE, detect
from geocalib.nets.upright import find_upright
from geocalib.nets.weights import LoadedNetwork
from geocalib.pipeline.rotation import Look, Mode, look_all_ways, look_upright
from geocalib.priors.clues import File
from geocalib.result.calibration import Failure
from geocalib.result.trust import BLANK

BATCH = {"cpu": 4}
"""Images through the network at once, by device: a processor gains nothing from more."""
LARGEST_BATCH = 32
"""Images at once on other devices, and in a fit of images that share nothing."""


@dataclass(frozen=True)
class Seen:
    """One image after the network. Its pixels are gone: there may be many of these."""

    file: File
    view: View
    """What of the original the fields show."""
    fields: Fields
    down: Tensor | None
    """(3,) where to look for gravity first, where another side may be up."""
    notes: tuple[str, ...]
    segments: Segments | None
    """Straight ones at full resolution, where they were asked for."""


class Eye:
    """A network on a device, and all that lies between a photograph and its fields."""

    def __init__(
        self, loaded: LoadedNetwork, device: torch.device, *, half: bool, compile: bool
    ) -> None:
        """half: the network in bfloat16. compile: with torch.compile."""
        network, card = loaded.network.to(device), loaded.card
        convert_conv2d_weight_memory_format(network, torch.channels_last)
        self.device = device
        self.network = torch.compile(network) if compile else network
        self._half = half
        self._spec = InputSpec(card.short_side, network.multiple, card.largest_aspect, card.detail)
        self._confidence_scale = card.confidence_scale
        self._upright = find_upright(loaded)

    def see(
        self, sources: Sequence[ImageSource], with_lines: bool, any_rotation: Mode
    ) -> Iterator[Seen | Failure]:
        """Each image through the network, or why not; a few at a time."""
        count = BATCH.get(self.device.type, LARGEST_BATCH)
        for start in range(0, len(sources), count):
            yield from self._see_few(sources[start : start + count], with_lines, any_rotation)

    def _see_few(
        self, sources: Sequence[ImageSource], with_lines: bool, any_rotation: Mode
    ) -> list[Seen | Failure]:
        # Decoded once, for the network and for the lines.
        short_side = max(self._spec.short_side, SHORT_SIDE if with_lines else 0)
        sights: dict[int, Seen | Failure] = {}
        inputs: dict[int, tuple[Photo, NetworkInput]] = {}
        same_size: dict[tuple[int, int], list[int]] = defaultdict(list)
        for index, source in enumerate(sources):
            try:
                photo = read_photo(source, short_side)
            except ImageError as error:
                sights[index] = Failure(path_of(source), None, None, str(error))
                continue
            given = prepare(photo, self._spec)
            inputs[index] = photo, given
            same_size[given.size].append(index)
        for indices in same_size.values():
            look = self._look([inputs[index][1] for index in indices], any_rotation)
            for row, index in enumerate(indices):
                photo, given = inputs[index]
                blank = (BLANK,) if is_blank(photo.pixels) else ()
                sights[index] = Seen(
                    File(path_of(sources[index]), photo.name, photo.size, photo.metadata),
                    given.view,
                    look.fields[row : row + 1],
                    look.down[row],
                    (*photo.notes, *given.notes, *(blank or look.notes[row])),
                    detect(photo) if with_lines else None,
                )
        return [sights[index] for index in range(len(sources))]

    def _look(self, inputs: Sequence[NetworkInput], any_rotation: Mode) -> Look:
        """What is seen in inputs of one size."""
        images = torch.stack([given.image for given in inputs])
        if any_rotation != "off" and self._upright is not None:
            return look_upright(images, self._predict, self._glance, any_rotation == "auto")
        if any_rotation == "on":
            aspect = [given.aspect for given in inputs]
            return look_all_ways(images, aspect, self._predict, self._confidence_scale)
        return Look(self._predict(images), [None] * len(inputs), [()] * len(inputs))

    def _predict(self, images: Tensor) -> Fields:
        """The fields of (B, 3, H, W) images, where the fit runs."""
        with self._running():
            prediction = self.network(self._moved(images))
        # The fit needs double precision, which mps does not have.
        place = "cpu" if self.device.type == "mps" else self.device
        return Fields(*(value.float().to(place).clone() for value in prediction))

    def _glance(self, images: Tensor) -> Tensor:
        """As ``Upright.glance``, on the CPU."""
        assert self._upright is not None
        with self._running():
            chance = self._upright.glance(self._moved(images))
        return chance.float().cpu().clone()

    def _moved(self, images: Tensor) -> Tensor:
        return images.to(self.device, memory_format=torch.channels_last)

    @contextmanager
    def _running(self) -> Iterator[None]:
        """As networks run: without gradients, in the precision that was asked for.

        Processors without bfloat16 are slower at it, and torch's word on that helps nobody.
        """
        half = torch.autocast(self.device.type, torch.bfloat16, enabled=self._half)
        with torch.inference_mode(), half, quiet():
            yield


def path_of(source: ImageSource) -> str | None:
    """Where an image came from, if it has a path."""
    return os.fspath(source) if isinstance(source, str | os.PathLike) else None


def find_device(name: str) -> torch.device:
    """The device of a name; "auto" is the fastest kind there is."""
    counts = {
        "cuda": torch.cuda.device_count() if torch.cuda.is_available() else 0,
        "mps": int(torch.backends.mps.is_available()),
        "cpu": 1,
    }
    there = [kind for kind, count in counts.items() if count]
    if name == "auto":
        return torch.device(there[0])
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or (device.index or 0) >= counts.get(device.type, 0):
        raise ConfigError(
            f"there is no device {name!r} here; use auto or one of: {', '.join(there)}"
        )
    return device
