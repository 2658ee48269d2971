"""Networks that answer the camera of a photograph themselves (``geocalib.nets.direct``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import torch

from geocalib.imaging import ImageSource, InputSpec
from geocalib.nets.direct import DeepCalib, ParamNet
from geocalib.nets.lean import LeanNetwork
from geocalib.nets.weights.card import WeightCard
from geocalib.pipeline.options import Keywords
from geocalib.pipeline.prepare import prepare
from geocalib.result.calibration import Failure, Outcome
from geocalib_lab.evaluation.answers import without_sigmas
from geocalib_lab.evaluation.direct import camera_of
from geocalib_lab.evaluation.report import K1_MODELS


class Direct:
    """A calibrator without a fit."""

    def __init__(
        self, network: DeepCalib | ParamNet, card: WeightCard, device: torch.device
    ) -> None:
        """network: a trained one, ready to use."""
        self.card = card
        self._network, self._device = network.to(device), device
        self._spec = InputSpec(
            card.short_side, LeanNetwork.multiple, card.largest_aspect, card.detail
        )

    def calibrate(
        self,
        images: Sequence[ImageSource],
        camera_model: str = "pinhole",
        **options: Unpack[Keywords],
    ) -> list[Outcome]:
        """Images one by one; nothing is known of them."""
        return [self._one(image, camera_model) for image in images]

    @torch.inference_mode()
    def _one(self, source: ImageSource, camera_model: str) -> Outcome:
        given = prepare(source, self._spec, with_lines=False)
        if isinstance(given, Failure):
            return given
        image = torch.from_numpy(given.image)[None].to(self._device)
        values = self._network(image).values.double().cpu()
        view, size = given.view, given.file.size
        model = camera_model if camera_model in K1_MODELS else "pinhole"
        seen = values.new_tensor([[view.width, view.height]])
        camera, gravity = camera_of(values, model, seen)
        # The middle of what it sees is that of the photograph, to half a pixel.
        whole = camera.crop(0.5 * (view.width - size[0]), 0.5 * (view.height - size[1]), *size)
        return without_sigmas(given.file.path, whole, gravity[0])
