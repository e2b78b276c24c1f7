"""Windows begin small, lest what comes from disk take long, and grow while it is quick."""

from __future__ import annotations

from itertools import islice

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from taskqueue.engine.control.filters import TaskFilter
from taskqueue.monitoring.searching import streams
from taskqueue.monitoring.searching.finding import Effort, _Work, find
from taskqueue.monitoring.searching.search import parse
from tests.monitoring.searching.rows import make_tasks
from tests.monitoring.searching.test_finding import SEARCHES, expected, ids, pages_of

MOST_QUERIES = 10
"""Of the 15 of a page; to know who asks for it, and what they may do, takes five."""
GROWING = Effort(first=1, growth=2, seconds=60)


def sizes(effort: Effort, streams: int = 1) -> list[list[int]]:
    """Of the windows of each stream, where each is read to its last."""
    work = _Work(effort, streams)
    return [list(work.sizes()) for _ in range(streams)]


def test_windows_grow_while_time_remains() -> None:
    assert sizes(Effort(seconds=60)) == [[1_000, 4_000, 16_000, 50_000]]
    assert sizes(Effort(seconds=60, most=6_000)) == [[1_000, 4_000, 1_000]]
    assert sizes(Effort(seconds=0)) == [[1_000]]


def test_streams_share_the_windows_and_each_has_one() -> None:
    assert list(map(len, sizes(Effort(seconds=60), streams=2))) == [2, 2]
    assert list(map(len, sizes(Effort(seconds=60), streams=5))) == [1] * 5
    work = _Work(Effort(seconds=60), 2)
    assert len(list(islice(work.sizes(), 1))) == 1
    assert len(list(work.sizes())) == 3


@pytest.mark.django_db
def test_windows_that_grow_skip_nothing_and_show_nothing_twice() -> None:
    make_tasks(90)
    for text in SEARCHES:
        which = parse(text, now=timezone.now()).which
        assert ids(*pages_of(which, limit=5, effort=GROWING)) == expected(which), text


@pytest.mark.django_db
@pytest.mark.parametrize(
    "which",
    [
        TaskFilter(name="gone"),
        TaskFilter(words=["gone"]),
        TaskFilter(error_text="gone"),
        TaskFilter(name="gone", statuses=["blocked", "ready"]),
        TaskFilter(unique_key="gone", statuses=["ready", "running"]),
        TaskFilter(name="gone", statuses=["cancelled", "failed", "succeeded"]),
    ],
)
def test_a_search_that_finds_nothing_leaves_queries_to_its_page(
    monkeypatch: pytest.MonkeyPatch, which: TaskFilter
) -> None:
    monkeypatch.setattr(streams, "MOST_CANDIDATES", 3)
    make_tasks(120)
    with CaptureQueriesContext(connection) as queries:
        assert not find(which, effort=GROWING).tasks
    assert len(queries) <= MOST_QUERIES
