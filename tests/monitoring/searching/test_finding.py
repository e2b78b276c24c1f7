"""Pages hold what fits, in order, each task once, and never cost a look at the whole table."""

from __future__ import annotations

import base64
from datetime import timedelta
from itertools import product
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from taskqueue.core.states import FINISHED
from taskqueue.engine.control.filters import TaskFilter
from taskqueue.models import Occurrence, Schedule, Task
from taskqueue.monitoring.searching import streams
from taskqueue.monitoring.searching.finding import Effort, Page, find
from taskqueue.monitoring.searching.search import parse
from tests.monitoring.searching.rows import make_tasks

pytestmark = pytest.mark.django_db

SMALL = Effort(first=7, largest=11, most=40, windows=3, seconds=60)
NOW = timezone.now()
SEARCHES = (
    "", "status:failed", "status:succeeded,cancelled", "status:scheduled", "status:ready",
    "status:running", "status:blocked,retrying,ready", "status:ready,failed", "name:shop.*",
    "send", "status:failed name:shop.pay", "status:succeeded,failed queue:mail", "error:KeyError",
    'error:"nothing"',
    "class:builtins.KeyError", 'class:""', 'class:"" status:failed',
    "queue:mail status:ready", "worker:w1", "worker:w1 status:running", "worker:nobody",
    "metadata.n:3", "priority:>0 status:scheduled,retrying", "key:k3", "after:20s", "before:70s",
    "after:70s before:30s name:mail.send", "status:failed after:40s", "name:gone",
)  # fmt: skip


def expected(which: TaskFilter) -> list[Any]:
    """The ids of what fits, as one query would give them."""
    statuses = set(which.statuses or ())
    has_ended = bool(statuses) and statuses <= FINISHED
    is_of_error = which.error_path and "" not in which.error_path
    if which.error_class or which.error_text or is_of_error:
        has_ended = True
    order = ("-finished_at", "-id") if has_ended else ("-id",)
    return list(which.tasks(connection).order_by(*order).values_list("id", flat=True))


def pages_of(which: TaskFilter, **options: Any) -> list[Page]:
    """All pages, from the newest to the oldest."""
    pages = [find(which, **options)]
    while pages[-1].older:
        assert len(pages) < 200
        pages.append(find(which, before=pages[-1].older, **options))
    return pages


def ids(*pages: Page) -> list[Any]:
    return [task.id for page in pages for task in page.tasks]


@pytest.mark.slow
@pytest.mark.parametrize("effort", [SMALL, Effort()], ids=["small", "usual"])
def test_pages_walked_either_way_hold_each_task_that_fits_once(effort: Effort) -> None:
    make_tasks(90)
    for text in SEARCHES:
        walk(parse(text, now=timezone.now()).which, effort)


def walk(which: TaskFilter, effort: Effort) -> None:
    there = pages_of(which, limit=5, effort=effort)
    assert ids(*there) == expected(which), which
    assert not there[0].newer
    back, page = [there[-1]], there[-1]
    while page.newer:
        page = find(which, after=page.newer, limit=5, effort=effort)
        back.insert(0, page)
        assert len(back) < 200
    assert set(ids(*back)) == set(expected(which))


def test_a_page_costs_few_queries_however_little_fits() -> None:
    make_tasks(90)
    efforts: tuple[dict[str, Any], ...] = ({}, {"effort": SMALL})
    for text, options in product(SEARCHES, efforts):
        which = parse(text, now=timezone.now()).which
        with CaptureQueriesContext(connection) as queries:
            page = find(which, limit=5, **options)
            find(which, limit=5, before=page.older, **options)
        assert len(queries) <= 2 * 9, text


def test_a_page_whose_window_ends_first_says_how_far_it_has_looked() -> None:
    tasks = make_tasks(120)
    oldest = tasks[0]
    Task.objects.filter(id=oldest.id).update(name="rare")
    which = TaskFilter(name="rare")
    effort = Effort(first=40, windows=1, seconds=60)
    page = find(which, effort=effort)
    assert page.is_cut_short
    assert not page.tasks
    assert page.searched_to is not None
    assert abs(page.searched_to - tasks[-40].enqueued_at) < timedelta(seconds=1)
    pages = pages_of(which, effort=effort)
    assert ids(*pages) == [oldest.id]
    assert len(pages) == 4
    assert not pages[-1].is_cut_short


def test_time_ends_a_search_as_rows_do() -> None:
    make_tasks(60)
    page = find(TaskFilter(name="rare"), effort=Effort(first=7, seconds=0))
    assert page.is_cut_short
    assert page.searched_to is not None


def test_who_holds_a_key_is_found_at_once_however_old_it_is() -> None:
    tasks = make_tasks(120)
    Task.objects.filter(id=tasks[0].id).update(unique_key="mine", holds_unique_key=True)
    for choice in (TaskFilter(unique_key="mine"), TaskFilter(words=["mine"])):
        page = find(choice, effort=SMALL)
        assert not page.tasks
        assert [task.id for task in page.holders] == [tasks[0].id]
    assert not find(TaskFilter(unique_key="mine", name="gone"), effort=SMALL).holders


def test_tasks_of_a_schedule_are_found_by_its_runs_however_old_they_are() -> None:
    tasks = make_tasks(120)
    schedule = Schedule.objects.create(
        name="nightly", task_name="x", rule={}, request={}, served_until=NOW
    )
    Task.objects.filter(id=tasks[3].id).update(schedule=schedule)
    Occurrence.objects.create(
        schedule=schedule, nominal_at=NOW, status="ended", task_id=tasks[3].id
    )
    page = find(TaskFilter(schedule="nightly"), effort=SMALL)
    assert ids(page) == [tasks[3].id]
    assert page.is_all
    assert find(TaskFilter(schedule="gone"), effort=SMALL).is_all


def test_more_that_is_ready_than_can_be_looked_at_is_read_in_windows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streams, "MOST_CANDIDATES", 3)
    make_tasks(120)
    for status in ("ready", "running"):
        which = TaskFilter(statuses=[status])
        assert ids(*pages_of(which, limit=5, effort=SMALL)) == expected(which)


@pytest.mark.parametrize(
    "cursor",
    [
        "x", "====", "é", "\x00", "\ud800", "a" * 5000, base64.urlsafe_b64encode(b"i.zz").decode(),
        base64.urlsafe_b64encode(b"f.1." + b"0" * 32).decode(),
        base64.urlsafe_b64encode(b"i.99999999999999999999." + b"0" * 32).decode(),
        base64.urlsafe_b64encode(b"q." + b"0" * 32).decode(),
    ],
)  # fmt: skip
def test_a_cursor_that_is_none_gives_the_first_page(cursor: str) -> None:
    make_tasks(20)
    first = find(TaskFilter(everything=True), limit=5)
    for options in ({"before": cursor}, {"after": cursor}):
        assert ids(find(TaskFilter(everything=True), limit=5, **options)) == ids(first)


def test_a_cursor_of_another_order_gives_the_first_page() -> None:
    make_tasks(60)
    ended = TaskFilter(statuses=["failed"])
    cursor = find(TaskFilter(everything=True), limit=5).older
    assert ids(find(ended, before=cursor, limit=5)) == ids(find(ended, limit=5))


def test_only_those_of_the_given_rows_are_found() -> None:
    make_tasks(60)
    mail = Task.objects.filter(queue_name="mail")
    pages = pages_of(TaskFilter(everything=True), tasks=mail, limit=5, effort=SMALL)
    assert set(ids(*pages)) == set(mail.values_list("id", flat=True))


def test_text_that_cannot_be_stored_is_searched_without_a_query() -> None:
    with CaptureQueriesContext(connection) as queries:
        assert not find(TaskFilter(name="\x00")).tasks
    assert len(queries) <= 1
