"""Histograms of durations with buckets that grow by a constant factor. Standard library only.

Each bucket's upper bound is 2^(1/4) = 1.19 times the one before, so that a quantile is off by a
tenth at most. These are the buckets of scale 2 of OpenTelemetry's exponential histograms, and of
schema 2 of Prometheus's native ones (https://opentelemetry.io/docs/specs/otel/metrics/data-model/).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

# The number of buckets for each doubling.
STEPS = 4
# Up to 2^-10 s, about a millisecond; beyond 2^21 s, about 24 days.
LOWEST, HIGHEST = -40, 84
_SHORTEST = 2 ** (LOWEST / STEPS)

# How many durations are in each bucket.
Histogram = Counter[int]


def bucket_of(seconds: float) -> int:
    """Return the bucket whose bounds hold a duration: above its predecessor's, up to its own."""
    if seconds <= _SHORTEST:
        return LOWEST
    return min(HIGHEST, math.ceil(math.log2(seconds) * STEPS))


def counted(durations: Sequence[float]) -> Histogram:
    """Return how many of the durations are in each bucket."""
    # As in `bucket_of`, without a call for each.
    longer = [seconds for seconds in durations if seconds > _SHORTEST]
    counts = Counter([math.ceil(math.log2(seconds) * STEPS) for seconds in longer])
    if len(longer) < len(durations):
        counts[LOWEST] += len(durations) - len(longer)
    for bucket in [bucket for bucket in counts if bucket > HIGHEST]:
        counts[HIGHEST] += counts.pop(bucket)
    return counts


def upper_bound(bucket: int) -> float:
    """Return the longest duration, in seconds, that the bucket holds."""
    return float(2 ** (bucket / STEPS))


def loaded(stored: Mapping[str, int]) -> Histogram:
    """Return the histogram from JSON, where keys are text."""
    return Counter({int(bucket): count for bucket, count in stored.items()})


def stored(histogram: Mapping[int, int]) -> dict[str, int]:
    """Return the histogram as JSON."""
    return {str(bucket): count for bucket, count in sorted(histogram.items()) if count}


def quantile(histogram: Mapping[int, int], share: float) -> float | None:
    """Return the duration, in seconds, that `share` of all do not exceed; None if there are none.

    Between a bucket's bounds durations are taken to be spread evenly by their logarithm.
    """
    total = sum(histogram.values())
    if not total:
        return None
    wanted, below = share * total, 0
    for bucket in sorted(histogram):
        count = histogram[bucket]
        if below + count >= wanted:
            inside = max(0.0, wanted - below) / count
            return float(2 ** ((bucket - 1 + inside) / STEPS))
        below += count
    return upper_bound(max(histogram))


# Every fourth bucket: each twice as long as the one before, from a millisecond to 4.6 hours.
DOUBLINGS = range(LOWEST, 14 * STEPS + 1, STEPS)


def cumulative(
    histogram: Mapping[int, int], bounds: Iterable[int] = DOUBLINGS
) -> list[tuple[str, float]]:
    """Return how many durations do not exceed the bound of each bucket, as Prometheus wants it.

    Exact, since a bucket's durations never lie on both sides of another's bound.
    """
    below, counts = 0, []
    rest = sorted(histogram.items(), reverse=True)
    for bound in bounds:
        while rest and rest[-1][0] <= bound:
            below += rest.pop()[1]
        counts.append((str(upper_bound(bound)), float(below)))
    return [*counts, ("+Inf", float(sum(histogram.values())))]
