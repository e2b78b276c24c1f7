"""The fields of a task that say how it holds its unique key, derived from its options."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from taskqueue.declarations.admission import Capacity, Debounce, Throttle
from taskqueue.declarations.options import Options


def held_as(options: Options) -> dict[str, Any]:
    """Return the fields that say how a key is held, and what happens to further calls."""
    if isinstance(admission := options.admission, Debounce):
        return {
            "unique_for": "started",
            "debounce_in": admission.wait_seconds,
            "debounce_most": admission.most_seconds,
        }
    if isinstance(admission, Throttle):
        return {
            "unique_for": "duration",
            "unique_in": float(admission.seconds),
            "places": admission.number,
            "when_full": "drop",
        }
    if isinstance(admission, Capacity):
        places, when_full = admission.number, admission.when_full
        return {"unique_for": "finished", "places": places, "when_full": when_full}
    if options.unique_key is None:
        return {}
    if isinstance(per := options.unique_per, timedelta):
        return {"unique_for": "duration", "unique_per": _plain_number(per.total_seconds())}
    if per is not None:
        return {"unique_for": "duration", "unique_per": per}
    if isinstance(options.unique_for, timedelta):
        return {"unique_for": "duration", "unique_in": options.unique_for.total_seconds()}
    return {"unique_for": options.unique_for}


def _plain_number(seconds: float) -> str:
    """Return the number without an exponent and without trailing zeros."""
    return f"{seconds:f}".rstrip("0").rstrip(".")
