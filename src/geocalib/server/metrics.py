"""The counters and gauges that ``/metrics`` gives to Prometheus."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
SIZES = (1, 2, 4, 8, 16, 32)


class Metrics:
    """Counts of one application; several live side by side."""

    def __init__(self, waiting: Callable[[], float], kept: Callable[[], float]) -> None:
        registry = self._registry = CollectorRegistry()
        self.requests = Counter(
            "geocalib_requests",
            "Requests by route and status.",
            ["route", "status"],
            registry=registry,
        )
        self.seconds = Histogram(
            "geocalib_request_seconds",
            "From the first byte of a request to the last of its answer.",
            ["route"],
            buckets=SECONDS,
            registry=registry,
        )
        self.images = Counter(
            "geocalib_images",
            "Images, by whether there was an answer.",
            ["outcome"],
            registry=registry,
        )
        self.batches = Histogram(
            "geocalib_batch_images",
            "Images taken through the network together.",
            buckets=SIZES,
            registry=registry,
        )
        self._gauge("geocalib_waiting_images", "Images accepted and not yet answered.", waiting)
        self._gauge("geocalib_kept_photos", "Photos whose fields are kept.", kept)

    def _gauge(self, name: str, words: str, value: Callable[[], float]) -> None:
        Gauge(name, words, registry=self._registry).set_function(value)

    def text(self) -> bytes:
        """In the format of Prometheus."""
        return generate_latest(self._registry)
