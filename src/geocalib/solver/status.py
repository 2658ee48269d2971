"""How a fit ended, in words."""

from __future__ import annotations

from enum import StrEnum


class Status(StrEnum):
    """The outcome for one image; its value is the sentence to show."""

    CONVERGED = "converged"
    MAX_ITERATIONS = (
        "the maximum number of iterations was reached; the answer may still move a little"
    )
    STALLED = "no step lowers the cost any further, though the gradient has not vanished"
    NOT_FINITE = "failed: the field or its confidence holds NaN or infinite values"
    NO_CONFIDENCE = "failed: no pixel has a positive confidence, so there is nothing to fit"
    NEGATIVE_CONFIDENCE = "failed: a confidence is negative"
    DIVERGED = "failed: the cost or the solution is not finite"

    @property
    def failed(self) -> bool:
        """Whether there is no answer (all its numbers are NaN)."""
        return self.value.startswith("failed")
