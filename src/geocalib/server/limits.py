"""What a request may ask for, and the sentence that answers one that asks for more."""

from __future__ import annotations

from geocalib.records import dataclass

MEGA = 10**6


@dataclass(frozen=True)
class ServerLimits:
    """Bounds of one request and of all of them together; ``docs/server.md`` tells of each."""

    megabytes: float = 64.0
    """Largest body of a request."""
    megapixels: float = 50.0
    """Largest size of each image."""
    images: int = 64
    """Most images in a request."""
    seconds: float = 60.0
    """For the upload of a request, and again for its answer."""
    queue: int = 256
    """Images that were accepted and wait for their answer, of all clients together."""
    upload_megabytes: float = 1024.0
    """Largest total of all bodies in memory at a time."""
    kept: int = 256
    """Photos whose fields are kept for refits."""
    kept_minutes: float = 15.0
    """How long photos are kept after their last use."""

    @property
    def bytes(self) -> int:
        return round(self.megabytes * MEGA)

    @property
    def upload_bytes(self) -> int:
        return round(self.upload_megabytes * MEGA)

    @property
    def pixels(self) -> int:
        return round(self.megapixels * MEGA)


class RefusedError(Exception):
    """A request that gets no answer but a status and one sentence."""

    def __init__(self, status: int, sentence: str, **headers: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


def busy(seconds: int = 1) -> RefusedError:
    """The answer to one more than can wait."""
    return RefusedError(
        429,
        f"the server is busy; ask again in {seconds} s, or send fewer images at a time",
        Retry_After=str(seconds),
    )


def too_slow(seconds: float) -> RefusedError:
    """The answer to a request whose answer is not there in time."""
    return RefusedError(
        504, f"no answer within {seconds:g} s; ask again later, or send fewer images at a time"
    )
