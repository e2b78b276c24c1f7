"""Batches that the checker must object to: invariant 12."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chaos.batch_rows import BatchRow, EventRow
from tests.chaos.story import Story, found

EVENTS = (
    EventRow(1, "a", "ok"),
    EventRow(2, "a", "ok"),
    EventRow(3, "a", "failed"),
    EventRow(4, "a", "asked"),
)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, set()),
        ({"batches": (BatchRow("t", [(1, "a")]), BatchRow("u", [(2, "a"), (4, "a")]))}, set()),
        ({"batches": (BatchRow("t", [(1, "a")]),), "collected": (2,)}, set()),
        ({"batches": (BatchRow("t", [(1, "a")]),)}, {12}),
        ({"batches": (BatchRow("t", [(1, "a"), (2, "a")]), BatchRow("u", [(2, "a")]))}, {12}),
        ({"collected": (2,)}, {12}),
        ({"batches": (BatchRow("t", [(1, "a"), (2, "a"), (3, "a")]),)}, {12}),
        ({"batches": (BatchRow("t", [(1, "a"), (2, "b")]),)}, {12}),
        ({"batches": (BatchRow("t", [(n, "a") for n in (1, 2, 5, 6, 7, 8, 9, 10)]),)}, {12}),
    ],
    ids=["as it should", "unknown", "waits", "lost", "twice", "also waits", "rolled back",
         "of two groups", "too large"],
)  # fmt: skip
def test_an_event_is_in_one_batch(
    story: Story, changed: dict[str, Any], expected: set[int]
) -> None:
    told = {"batches": (BatchRow("t", [(1, "a"), (2, "a")]),), **changed}
    assert found(story.history(events=EVENTS, **told)) == expected
