"""``geocalib show``: one picture of what was seen in a photo, and the numbers beside it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from geocalib import console
from geocalib.cli import report
from geocalib.cli.inputs import as_given
from geocalib.cli.network import load
from geocalib.cli.pictures import save
from geocalib.pipeline.engines.load import EngineSpec
from geocalib.pipeline.options import Options
from geocalib.pipeline.runs.answers import calibrated
from geocalib.result.calibration import Failure


def run(
    photo: str, missing: Mapping[str, str], file: Path, options: Options, network: EngineSpec
) -> bool:
    """Draw, and say whether there was an answer to draw."""
    from geocalib.overlay import show

    (found,) = calibrated([photo], missing, options, partial(load, network))
    outcome = as_given(found)
    if isinstance(outcome, Failure):
        console.failures([outcome])
        return False
    save(show(photo, outcome), file)
    report.print_table([report.row(outcome)])
    console.note(f"drawn in {file}")
    return True
