"""Records of earlier versions, in the layout of today.

Those of ``geocalib/1`` had some keys only sometimes. Until ``geocalib/2`` all were of upright
pictures, and none said how the pixels lie in the file. Until ``geocalib/3`` all lenses were named,
nobody drew lines, and nothing was trusted by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from geocalib.geometry.fields import LOG_ASPECT
from geocalib.result.layout import Many, Null
from geocalib.result.schema import OLDER, RECORD, SCHEMA
from geocalib.result.uncertainty import EVERYTHING
from geocalib.solver.result import Status

FIRST, SECOND = OLDER[:2]

_NOT_ALWAYS: dict[str, Any] = {"lines": None, "priors": []}
"""What records lack whose writers did not know of it."""

_EMPTY: dict[str, Any] = {
    field.name: []
    for field in RECORD.fields
    if field.null is Null.NEVER and isinstance(field.kind, Many)
}
"""The lists of a failure, which were null."""


def upgraded(record: Mapping[str, Any]) -> dict[str, Any]:
    """The same answer as a record of today; what is damaged in it stays for the reader to find."""
    new = _second(record) if record["schema"] == FIRST else dict(record)
    answered = new.get("error") is None
    if record["schema"] in (FIRST, SECOND):
        new |= {"frame": "upright" if answered else None, "orientation": None}
    # A warning was one about everything.
    good = new.get("status") == Status.CONVERGED and not new.get("warnings")
    trusted = {f"trusted_{quantity}": good if answered else None for quantity in EVERYTHING}
    return {**new, "schema": SCHEMA, "lens": [], "drawn": [], "ruler": None, **trusted}


def _second(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record of ``geocalib/1`` in the layout of ``geocalib/2``.

    How sure the aspect is was not recorded: it is known only where the aspect was held fixed. The
    options and the file were recorded in another form; nothing is added to such files, so they are
    left out.
    """
    new = {**_NOT_ALWAYS, **record, "request": None, "photo": None}
    if new.get("error") is not None:
        return new | _EMPTY
    names, sigma, lines = new.get("parameters"), new.get("sigma"), new["lines"]
    if isinstance(sigma, Mapping):
        free = isinstance(names, list) and LOG_ASPECT in names
        new["sigma"] = {**sigma, "aspect": None if free else 0.0}
    if isinstance(new["priors"], list):
        new["priors"] = [
            {"used": True, **prior} if isinstance(prior, Mapping) else prior
            for prior in new["priors"]
        ]
    if isinstance(lines, Mapping) and lines.get("verdict", "") is None:
        new["lines"] = None
    return new
