"""Histograms that are stored as JSON are summed."""

from __future__ import annotations

import pytest

from taskqueue.monitoring.rollups import summed


def test_counts_are_summed_bucket_by_bucket() -> None:
    assert summed('{"-3": 2, "10": 1},{},{"-3": 40}') == {-3: 42, 10: 1}


@pytest.mark.parametrize("text", [None, "", "{}", "{},{}"])
def test_of_nothing_there_is_no_sum(text: str | None) -> None:
    assert summed(text) == {}
