"""Summing the histograms of many rollups."""

from __future__ import annotations

import json
from collections.abc import Mapping

from taskqueue.core.histogram import loaded


def summed(histograms: str | None) -> Mapping[int, int]:
    """The sum of histograms that were stored as JSON, joined by commas."""
    total: dict[str, int] = {}
    for histogram in json.loads(f"[{histograms or ''}]"):
        for bucket, count in histogram.items():
            total[bucket] = total.get(bucket, 0) + count
    return loaded(total)
