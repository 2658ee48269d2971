"""The camera models by name. A new model is one module and one line here."""

from __future__ import annotations

import copyreg
from typing import Any

from geocalib.cameras.base import CameraModel
from geocalib.cameras.division import Division, Division2
from geocalib.cameras.double_sphere import DoubleSphere
from geocalib.cameras.eucm import Eucm
from geocalib.cameras.kannala_brandt import KannalaBrandt
from geocalib.cameras.pinhole import Pinhole
from geocalib.cameras.ptlens import Ptlens
from geocalib.cameras.radial import Radial, Radial3, Radial4, SimpleRadial
from geocalib.cameras.ucm import Ucm
from geocalib.errors import CameraError

MODELS: dict[str, CameraModel] = {
    model.name: model
    for model in (
        Pinhole(),
        SimpleRadial(),
        Radial(),
        Radial3(),
        Radial4(),
        Ptlens(),
        Division(),
        Division2(),
        KannalaBrandt(),
        Ucm(),
        Eucm(),
        DoubleSphere(),
    )
}


def get_model(name: str | CameraModel) -> CameraModel:
    """The model of that name; a model itself is passed through."""
    if isinstance(name, str):
        if name not in MODELS:
            raise CameraError(f"unknown camera model {name!r}; known: {', '.join(MODELS)}")
        return MODELS[name]
    return name


def _named(model: CameraModel) -> tuple[Any, tuple[str]]:
    return get_model, (model.name,)


# There is one of each: copies, also those that come from another process, are the same.
for _model in MODELS.values():
    copyreg.pickle(type(_model), _named)
