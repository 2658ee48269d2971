"""What the server writes down: nothing that a client sent."""

from __future__ import annotations

import logging
import traceback

log = logging.getLogger("geocalib.server")


def unexpected(error: BaseException) -> None:
    """Log the kind of an unexpected error and its place in the code, without its message, which may
    hold what users sent."""
    places = "".join(traceback.format_tb(error.__traceback__))
    log.error("unexpected %s\n%s", type(error).__name__, places)
