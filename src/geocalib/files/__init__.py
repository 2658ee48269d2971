"""Files of the user's: what may be written where, whole or not at all, and by one at a time."""

from geocalib.files.guard import Guard, existing
from geocalib.files.lock import locked
from geocalib.files.snapshot import sha256_of
from geocalib.files.whole import is_special, naming, replacing, write_bytes, write_text

__all__ = [
    "Guard",
    "existing",
    "is_special",
    "locked",
    "naming",
    "replacing",
    "sha256_of",
    "write_bytes",
    "write_text",
]
