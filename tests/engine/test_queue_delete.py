"""Deleting a queue: only an empty one that no worker serves by its name."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connections
from django.utils import timezone

from taskqueue import control
from taskqueue.core.states import TaskStatus
from taskqueue.engine.control import queues
from taskqueue.engine.depths import record_depths
from taskqueue.engine.queue_tasks import COUNTS, counts_of, unfinished_in
from taskqueue.exceptions import QueueDoesNotExist, TransitionRefused
from taskqueue.models import Audit, Limit, Queue, Rollup, Task, Worker
from taskqueue.monitoring.read_models.queue import queue_named, read_queues
from tests.engine.steps import claim
from tests.sample.tasks import noop

pytestmark = pytest.mark.django_db


def names() -> list[str]:
    return [queue.name for queue in read_queues()]


def hire(**values: Any) -> None:
    now = timezone.now()
    Worker.objects.create(
        **{"name": "w", "host": "h", "pid": 1, "started_at": now, "seen_at": now} | values
    )


def test_an_empty_queue_goes_with_its_pause_and_its_limit_and_is_audited() -> None:
    control.pause("old", by="ada")
    control.limit_queue("old", concurrency=3)
    control.delete_queue("old", by="ada", reason="no more imports")
    assert names() == []
    assert queue_named("old") is None
    assert not Limit.objects.exists()
    entry = Audit.objects.get(verb="delete")
    assert (entry.noun, entry.subject, entry.before) == ("queue", "old", "paused")
    assert (entry.actor, entry.reason) == ("ada", "no more imports")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"run_after": 3600},
        {"worker_names": ["w"]},
    ],
    ids=str,
)
def test_a_queue_with_a_waiting_task_is_not_deleted(options: dict[str, Any]) -> None:
    Queue.objects.create(name="mail")
    noop.using(queue_name="mail", **options).enqueue()
    with pytest.raises(TransitionRefused, match="1 task that has not finished"):
        control.delete_queue("mail")
    assert names() == ["mail"]


def test_a_queue_with_a_task_under_a_limit_is_not_deleted() -> None:
    control.limit_queue("mail", concurrency=1)
    noop.using(queue_name="mail").enqueue()
    with pytest.raises(TransitionRefused, match="1 task that has not finished"):
        control.delete_queue("mail")


def test_a_queue_with_a_running_task_is_not_deleted_until_it_has_ended() -> None:
    noop.using(queue_name="mail").enqueue_many([((), {})] * 2)
    Queue.objects.create(name="mail")
    claim(1, queue="mail")
    with pytest.raises(TransitionRefused, match="2 tasks that have not finished"):
        control.delete_queue("mail")
    Task.objects.update(status=TaskStatus.CANCELLED, finished_at=timezone.now())
    control.delete_queue("mail")
    assert Task.objects.count() == 2, "What has finished stays."


def test_a_queue_that_a_live_worker_serves_by_name_is_not_deleted() -> None:
    Queue.objects.create(name="mail")
    hire(queues={"mail": 1})
    with pytest.raises(TransitionRefused, match="Worker 'w' serves queue 'mail' by its name"):
        control.delete_queue("mail")
    Worker.objects.update(seen_at=timezone.now() - timedelta(days=1))
    control.delete_queue("mail")
    assert names() == []


def test_a_worker_that_serves_all_queues_keeps_none() -> None:
    Queue.objects.create(name="mail")
    hire(queues={})
    control.delete_queue("mail")
    assert names() == []


def test_a_deleted_queue_is_not_listed_for_what_has_ended_there() -> None:
    Rollup.objects.create(queue_name="mail", name=noop.name, succeeded=3, tasks_succeeded=3)
    assert names() == ["mail"]
    control.delete_queue("mail")
    assert names() == []
    with pytest.raises(QueueDoesNotExist):
        control.delete_queue("mail")


def test_a_new_task_or_a_pause_brings_it_back() -> None:
    Queue.objects.create(name="mail")
    control.delete_queue("mail")
    noop.using(queue_name="mail").enqueue()
    assert names() == ["mail"]
    Task.objects.all().delete()
    control.pause("mail")
    found = queue_named("mail")
    assert found is not None
    assert found.is_paused


def test_an_unknown_queue_is_refused_with_the_nearest_name() -> None:
    Queue.objects.create(name="mail")
    with pytest.raises(QueueDoesNotExist, match="Did you mean 'mail'"):
        control.delete_queue("mial")
    with pytest.raises(QueueDoesNotExist):
        control.delete_queue("a\x00b")


def test_counts_are_exact_up_to_what_is_looked_at() -> None:
    connection = connections["default"]
    noop.using(queue_name="mail").enqueue_many([((), {})] * 4)
    noop.using(queue_name="mail", run_after=60).enqueue()
    noop.using(queue_name="other", run_after=60).enqueue_many([((), {})] * 3)
    for task in Task.objects.filter(queue_name="mail", status="ready")[:2]:
        Task.objects.filter(id=task.id).update(status="failed", finished_at=timezone.now())
    found = counts_of(connection, "mail", most=100)
    shown = {status: number for status, (number, _) in found.items() if number}
    assert shown == {"ready": 2, "scheduled": 1, "failed": 2}
    assert all(is_whole for _, is_whole in found.values())
    few = counts_of(connection, "mail", most=2)
    assert few["scheduled"].is_whole is False
    assert few["failed"] == (2, False)
    assert unfinished_in(connection, "mail", most=100) == (3, True)


def test_the_count_is_bounded_and_a_held_queue_stays_where_it_cannot_tell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(queues, "MOST_LOOKED", 2)
    noop.using(queue_name="mail", run_after=60).enqueue()
    noop.using(queue_name="other", run_after=60).enqueue_many([((), {})] * 3)
    control.pause("mail")
    with pytest.raises(TransitionRefused, match="may have tasks that have not finished"):
        control.delete_queue("mail")
    control.resume("mail")
    control.delete_queue("mail")
    assert "mail" not in names()
    record_depths(connections["default"])
    assert "mail" in names(), "It is there again with the task that was not seen."


def test_counts_read_by_indexes() -> None:
    connection = connections["default"]
    parameters = {"queue_name": "mail", "most": 10}
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL enable_seqscan = off")
            # Of an empty table anything is sorted for next to nothing.
            cursor.execute("SET LOCAL enable_sort = off")
            cursor.execute("EXPLAIN " + COUNTS.postgresql, parameters)
        else:
            cursor.execute("EXPLAIN QUERY PLAN " + COUNTS.sqlite, parameters)
        plan = "\n".join(str(row) for row in cursor.fetchall())
    for index in ("claim", "partition", "apart", "waiting", "ended"):
        assert f"taskqueue_task_{index}" in plan
    assert "taskqueue_lease_running" in plan
    assert "Sort" not in plan, "Each part is in the order of its index."
    assert "TEMP B-TREE" not in plan
