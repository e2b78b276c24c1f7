"""Histograms of durations."""

from __future__ import annotations

from taskqueue.core.histogram import HIGHEST, LOWEST, Histogram, bucket_of, counted


def test_many_durations_are_counted_as_each_of_them_would_be() -> None:
    durations = [0.0, 1e-9, 2**-10, 0.001, 0.0011, 0.5, 1.0, 1.0, 3600.0, 2.0**21, 2.0**22, 1e12]
    found = counted(durations)
    assert found == Histogram(map(bucket_of, durations))
    assert min(found) == LOWEST
    assert max(found) == HIGHEST
    assert counted([]) == Histogram()
