"""Histograms that are stored as JSON are summed, the same again from memory."""

from __future__ import annotations

import pytest

from taskqueue.monitoring import histograms
from taskqueue.monitoring.histograms import summed


def test_counts_are_summed_bucket_by_bucket() -> None:
    for _ in range(2):
        assert summed('{"-3": 2, "10": 1},{},{"-3": 40}') == {-3: 42, 10: 1}


@pytest.mark.parametrize("text", [None, "", "{}", "{},{}"])
def test_of_nothing_there_is_no_sum(text: str | None) -> None:
    assert summed(text) == {}


def test_only_so_many_sums_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(histograms, "MOST_KNOWN", 3)
    monkeypatch.setattr(histograms, "_known", {})
    for number in range(10):
        assert summed(f'{{"0": {number + 1}}}') == {0: number + 1}
        assert len(histograms._known) <= 3
