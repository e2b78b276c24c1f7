"""Attempts over workers: what each slot ran within a span."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection

from taskqueue.models import Lease, Task
from taskqueue.monitoring import gantt as module
from taskqueue.monitoring.gantt import gantt
from taskqueue.monitoring.reading import now
from tests.sample.tasks import add, noop

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


def ran(
    begin: datetime, minutes: float | None, *, task: Any = noop, worker: str = "w", **values: Any
) -> Lease:
    """An attempt that began then and took so long; None: it runs."""
    args = (1, 2) if task is add else ()
    row = Task.objects.get(id=task.enqueue(*args).id)
    ended = {} if minutes is None else {"finished_at": begin + minutes * MINUTE}
    status = "running" if minutes is None else "succeeded"
    return Lease.objects.create(
        **{
            "task": row, "worker_id": worker, "attempt": 1, "status": status,
            "claimed_at": begin, "started_at": begin, "expires_at": begin + HOUR,
        } | ended | values
    )  # fmt: skip


def found(**asked: Any) -> list[int]:
    return [bar.lease_id for bar in gantt(HOUR, **asked).bars]


def test_attempts_that_overlap_the_span_are_found_newest_first() -> None:
    here = now()
    first = ran(here - 3 * HOUR, 10)
    long = ran(here - 2 * HOUR, 90)
    within = ran(here - 10 * MINUTE, 1)
    old_running = ran(here - 30 * HOUR, None)
    claimed_only = ran(here - MINUTE, None, started_at=None)
    assert found() == [old_running.id, within.id, long.id]
    assert claimed_only.id not in found()
    assert found(until=here - 2 * HOUR) == [old_running.id, first.id]


def test_an_earlier_span_is_found_by_its_end() -> None:
    here = now()
    leases = [ran(here - hours * HOUR, 5) for hours in (5, 4, 3, 2)]
    if connection.vendor == "postgresql":  # As a claim gives them: they hold the second.
        for lease in leases:
            seconds = int(lease.claimed_at.timestamp()) - module.FIRST_SECOND
            key = (seconds << module.SHIFT) | lease.id
            Lease.objects.filter(id=lease.id).update(id=key)
            lease.id = key
    end = here - 3 * HOUR + 30 * MINUTE
    assert found(until=end) == [leases[2].id]


def test_filters_choose_by_worker_task_and_queue() -> None:
    here = now() - 5 * MINUTE
    first = ran(here, 1, worker="a")
    second = ran(here, 1, task=add, worker="b")
    third = ran(here, 1, task=noop.using(queue_name="mail"), worker="b")
    assert found(worker="a") == [first.id]
    assert found(name=add.name) == [second.id]
    assert found(queue_name="mail") == [third.id]
    assert found(worker="b", name=add.name, queue_name="mail") == []


def test_attempts_of_a_worker_that_overlap_have_lanes_of_their_own() -> None:
    here = now() - 30 * MINUTE
    ran(here, 10)
    ran(here + 5 * MINUTE, 10)
    ran(here + 11 * MINUTE, 1)
    ran(here, 1, worker="v")
    lanes = gantt(HOUR).lanes()
    assert list(lanes) == ["v", "w"]
    assert [len(lane) for lane in lanes["w"]] == [2, 1]


def test_the_chart_says_that_it_is_truncated(monkeypatch: pytest.MonkeyPatch) -> None:
    here = now() - 10 * MINUTE
    for _ in range(3):
        ran(here, 1)
    assert not gantt(HOUR).is_cut
    monkeypatch.setattr(module, "MOST_BARS", 2)
    assert (len(gantt(HOUR).bars), gantt(HOUR).is_cut) == (2, True)
    monkeypatch.setattr(module, "MOST_BARS", 10)
    monkeypatch.setattr(module, "MOST_LOOKED", 2)
    assert (len(gantt(HOUR).bars), gantt(HOUR).is_cut) == (2, True)


def test_attempts_before_the_span_do_not_make_it_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    here = now()
    for hours in (5, 4, 3):
        ran(here - hours * HOUR, 1)
    ran(here - MINUTE, 1)
    monkeypatch.setattr(module, "MOST_LOOKED", 2)
    assert (len(gantt(HOUR).bars), gantt(HOUR).is_cut) == (1, False)


def test_it_reads_attempts_by_their_keys() -> None:
    moment = now()
    text = f"{moment:%Y-%m-%d %H:%M:%S.%f}"
    parameters = {
        "since": moment, "until": moment, "since_text": text, "until_text": text, "worker": "",
        "name": "", "queue_name": "", "last": 10, "looked": 5, "bars": 5,
    }  # fmt: skip
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL enable_seqscan = off")
            cursor.execute("EXPLAIN " + module.SPAN.postgresql, parameters)
        else:
            cursor.execute("EXPLAIN QUERY PLAN " + module.SPAN.sqlite, parameters)
        plan = "\n".join(str(row) for row in cursor.fetchall())
    assert "taskqueue_lease_running" in plan
    assert "taskqueue_lease_pkey" in plan or "USING INTEGER PRIMARY KEY" in plan
    assert "Seq Scan on taskqueue_lease" not in plan


def test_a_span_that_would_begin_before_the_first_year_is_empty() -> None:
    assert gantt(HOUR, until=datetime.min.replace(tzinfo=UTC)).bars == []
