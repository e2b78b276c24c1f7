"""Lists in other orders hold what matches, each task once, and say what they leave out."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from taskqueue.core.states import FINISHED, WAITING
from taskqueue.engine.control.filters import TaskFilter
from taskqueue.models import Lease, Task
from taskqueue.monitoring.searching import sorting
from taskqueue.monitoring.searching.finding import Page
from taskqueue.monitoring.searching.search import parse
from taskqueue.monitoring.searching.sorting import SORTINGS, Sorting, SortKey, find_sorted
from tests.engine.operation_steps import fill
from tests.monitoring.searching.rows import make_tasks

pytestmark = pytest.mark.django_db
SEARCHES = ("", "status:failed", "status:scheduled", "status:ready,failed", "name:shop.*")
EVERYTHING = TaskFilter(everything=True)


def walked(which: TaskFilter, sort: str, *, limit: int = 7) -> list[Page]:
    """All pages, from the first to the last."""
    pages = [find_sorted(which, Sorting.of(sort), limit=limit)]
    while pages[-1].older:
        assert len(pages) < 100
        before = pages[-1].older
        pages.append(find_sorted(which, Sorting.of(sort), limit=limit, before=before))
    return pages


def run_times() -> dict[Any, float]:
    return {
        lease.task_id: (lease.finished_at - lease.started_at).total_seconds()
        for lease in Lease.objects.filter(started_at__isnull=False, finished_at__isnull=False)
    }


@pytest.mark.parametrize("sort", SORTINGS)
def test_pages_hold_each_matching_task_once_and_in_order(sort: str) -> None:
    make_tasks(60)
    key = SortKey(sort.removeprefix("-"))
    for text in SEARCHES:
        which = parse(text, now=timezone.now()).which
        matching = set(which.tasks(connection))
        if key is SortKey.FINISHED:
            matching = {task for task in matching if task.status in FINISHED}
        if key is SortKey.DUE and which.statuses is None:
            matching = {task for task in matching if task.status in WAITING}
        pages = walked(which, sort)
        tasks = [task for page in pages for task in page.tasks]
        assert len(tasks) == len({task.pk for task in tasks})
        assert set(tasks) == matching, text
        assert all(page.sorted_among is None for page in pages)
        if key is SortKey.RUN_TIME:
            continue
        column = {"created": "id", "due": "run_after", "finished": "finished_at"}.get(key, key)
        values = [getattr(task, column) for task in tasks]
        assert values == sorted(values, reverse=sort.startswith("-")), text


def test_pages_lead_back() -> None:
    make_tasks(30)
    for each in ("-priority", "created", "finished", "-finished"):
        pages = walked(EVERYTHING, each)
        assert not pages[0].newer
        for before, page in pairwise(pages):
            back = find_sorted(EVERYTHING, Sorting.of(each), limit=7, after=page.newer)
            assert [task.pk for task in back.tasks] == [task.pk for task in before.tasks], each


def test_the_longest_attempts_come_first_and_those_without_one_last() -> None:
    ids = fill(4)
    now = timezone.now()
    for task_id, seconds in zip(ids, (5, 50, None, 20), strict=True):
        Task.objects.filter(pk=task_id).update(attempt=1)
        Lease.objects.create(
            task_id=task_id, attempt=1, worker_id="w", status="succeeded", claimed_at=now,
            started_at=None if seconds is None else now - timedelta(seconds=seconds),
            finished_at=now, expires_at=now,
        )  # fmt: skip
    page = find_sorted(EVERYTHING, Sorting.of("-run_time"))
    assert [task.pk for task in page.tasks] == [ids[1], ids[3], ids[0], ids[2]]


def test_where_more_match_the_newest_are_sorted_and_the_page_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sorting, "MOST_SORTED", 5)
    oldest = fill(1, priority=100)
    newest = fill(5)
    page = find_sorted(EVERYTHING, Sorting.of("-priority"))
    assert page.sorted_among == 5
    assert {task.pk for task in page.tasks} == set(newest)
    assert oldest[0] not in {task.pk for task in page.tasks}


@pytest.mark.parametrize("sort", ["due", "-due"])
def test_the_next_due_task_is_found_however_many_wait(
    monkeypatch: pytest.MonkeyPatch, sort: str
) -> None:
    monkeypatch.setattr(sorting, "MOST_SORTED", 5)
    ids = [fill(1, run_after=timedelta(hours=hours))[0] for hours in (*range(2, 9), 1, 20)]
    page = find_sorted(EVERYTHING, Sorting.of(sort))
    assert page.sorted_among == 5
    assert page.tasks[0].pk == (ids[-1] if sort.startswith("-") else ids[-2])


@pytest.mark.parametrize("which", [EVERYTHING, TaskFilter(statuses=["failed", "succeeded"])])
@pytest.mark.parametrize("sort", SORTINGS)
def test_no_statement_grows_with_the_table(sort: str, which: TaskFilter) -> None:
    make_tasks(40)
    with CaptureQueriesContext(connection) as queries:
        find_sorted(which, Sorting.of(sort), limit=5)
    assert len(queries) <= 8
    for each in queries:
        if "taskqueue_task" in each["sql"] and "ORDER BY" in each["sql"]:
            assert "LIMIT" in each["sql"], each["sql"]


@pytest.mark.parametrize("cursor", ["nonsense", "\0", "cy4", "cy4tMQ", "cy45OTk5OTk5OTk5OTk5"])
def test_a_cursor_that_is_none_gives_the_first_page(cursor: str) -> None:
    fill(3)
    page = find_sorted(EVERYTHING, Sorting.of("priority"), before=cursor)
    assert len(page.tasks) == 3
