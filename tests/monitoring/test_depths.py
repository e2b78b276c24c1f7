"""How many tasks waited over time, as workers record it."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.db import connection, connections, transaction
from django.test.utils import CaptureQueriesContext

from taskqueue import Concurrency
from taskqueue.engine import depth_statement
from taskqueue.engine import depths as recording
from taskqueue.engine.depths import record_depths
from taskqueue.engine.statement import Statement
from taskqueue.models import Depth, Queue
from taskqueue.monitoring.depths import depths
from taskqueue.monitoring.reading import now
from taskqueue.monitoring.rollups import span_of
from tests.engine.steps import another_connection, claim
from tests.sample.tasks import noop

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)


def record(moment: datetime) -> None:
    record_depths(connections["default"], now=moment)


def rows() -> dict[tuple[str, int], int]:
    """The recorded depths, by queue and resolution."""
    return {(row.queue_name, row.resolution): row.waiting for row in Depth.objects.all()}


def test_ready_tasks_of_every_kind_are_recorded_once_a_minute() -> None:
    noop.using(queue_name="mail").enqueue_many([((), {})] * 3)
    noop.using(queue_name="mail", priority=5).enqueue()
    noop.using(queue_name="imports", worker_names=["w"]).enqueue()
    noop.using(queue_name="later", run_after=3600).enqueue()
    moment = now()
    record(moment)
    record(moment)
    assert rows() == {("", 60): 5, ("mail", 60): 4, ("imports", 60): 1}
    claim(1, queue="mail")
    record(moment + MINUTE)
    assert Depth.objects.filter(queue_name="mail").count() == 2


def test_a_chart_tells_zero_from_unknown() -> None:
    moment = now()
    record(moment - 3 * MINUTE)
    noop.using(queue_name="mail").enqueue()
    record(moment)
    found = depths("hour", queue_name="mail")
    assert len(found.waiting) == len(found.starts) == 60
    assert [found.waiting[place] for place in (-1, -2, -4)] == [1, None, 0]
    assert depths("hour").waiting[-1] == 1
    assert depths("hour", queue_name="other").waiting[-1] == 0
    assert not found.is_capped


def test_old_rows_are_merged_to_the_most_of_their_span_and_deleted_in_the_end() -> None:
    moment = now()
    quarter = span_of("day").starts(moment - timedelta(hours=3))[-1]
    for minutes, number in ((0, 3), (5, 9), (14, 1)):
        for name in ("mail", ""):
            Depth.objects.create(
                resolution=60, starts_at=quarter + minutes * MINUTE, queue_name=name,
                waiting=number,
            )  # fmt: skip
    record(moment)
    assert rows() == {("mail", 900): 9, ("", 900): 9, ("", 60): 0}
    record(moment + timedelta(hours=27))
    assert rows()[("mail", 3600)] == 9
    assert max(number for number in depths("week", queue_name="mail").waiting if number) == 9
    record(moment + timedelta(days=93))
    assert rows() == {("", 60): 0}


def test_merging_twice_comes_to_the_same() -> None:
    hour = span_of("quarter").starts(now() - timedelta(days=3))[-1]
    for resolution, number in ((900, 4), (3600, 7)):
        Depth.objects.create(
            resolution=resolution, starts_at=hour, queue_name="mail", waiting=number
        )
    record(now())
    assert rows()[("mail", 3600)] == 7


def test_a_capped_depth_is_marked() -> None:
    Depth.objects.create(
        resolution=60, starts_at=span_of("hour").starts(now())[-1], queue_name="mail",
        waiting=7, is_capped=True,
    )  # fmt: skip
    assert depths("hour", queue_name="mail").is_capped


def test_a_deleted_queue_that_has_tasks_again_is_there_again() -> None:
    Queue.objects.create(name="mail", deleted_at=now())
    Queue.objects.create(name="old", deleted_at=now() - timedelta(days=1))
    noop.using(queue_name="mail").enqueue()
    record(now())
    assert list(Queue.objects.values_list("name", "deleted_at")) == [("mail", None)]


def test_deleted_queues_are_looked_at_by_one_statement() -> None:
    for name in ("later", "ready", "pinned", "running"):
        Queue.objects.create(name=name)
    noop.using(queue_name="later", run_after=60).enqueue()
    noop.using(queue_name="ready").enqueue()
    noop.using(queue_name="pinned", worker_names=["w"]).enqueue()
    noop.using(queue_name="running").enqueue()
    claim(1, queue="running")
    record(now() - MINUTE)
    counts = []
    for minute in range(2):
        Queue.objects.bulk_create(
            [Queue(name=f"{minute} {n}", deleted_at=now()) for n in range(20 * minute)]
        )
        Queue.objects.update(deleted_at=now())
        with CaptureQueriesContext(connection) as asked:
            record(now() + minute * MINUTE)
        counts.append(len(asked))
    assert counts[0] == counts[1]
    back = Queue.objects.filter(deleted_at=None).order_by("name")
    assert list(back.values_list("name", flat=True)) == ["later", "pinned", "ready", "running"]


def test_recording_reads_by_indexes() -> None:
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL enable_seqscan = off")
            cursor.execute("EXPLAIN " + recording.WAITING.postgresql)
        else:
            cursor.execute("EXPLAIN QUERY PLAN " + recording.WAITING.sqlite)
        plan = "\n".join(str(row) for row in cursor.fetchall())
    for index in ("taskqueue_task_claim", "taskqueue_task_partition", "taskqueue_task_apart"):
        assert index in plan
    assert "Seq Scan" not in plan


def test_a_deep_queue_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    few = recording.WAITING.postgresql.replace(str(depth_statement.CAP), "3")
    monkeypatch.setattr(recording, "WAITING", Statement.of(few))
    for queue_name, number in (("a", 5), ("b", 2)):
        many = [((), {})] * number
        noop.using(queue_name=queue_name).enqueue_many(many)
        noop.using(queue_name=queue_name, worker_names=["w"]).enqueue_many(many)
        limit = Concurrency(1, name=queue_name)
        noop.using(queue_name=queue_name, concurrency=limit).enqueue_many(many)
    record(now())
    found = {row.queue_name: (row.waiting, row.is_capped) for row in Depth.objects.all()}
    assert found["b"] == (6, False)
    assert found["a"] == (9, True)
    assert depths("hour", queue_name="a").is_capped
    assert not depths("hour", queue_name="b").is_capped


@pytest.mark.django_db(transaction=True)
def test_one_worker_records_at_a_time() -> None:
    if connection.vendor != "postgresql":
        pytest.skip("On SQLite one transaction writes at a time.")
    noop.enqueue()
    moment = now()
    record(moment - MINUTE)
    with another_connection() as other, transaction.atomic():
        list(Depth.objects.select_for_update())
        record_depths(other, now=moment)
        assert Depth.objects.filter(queue_name="").count() == 1
    record(moment)
    assert Depth.objects.filter(queue_name="").count() == 2


def test_merging_keeps_that_there_may_have_been_more() -> None:
    moment = now()
    quarter = span_of("day").starts(moment - timedelta(hours=3))[-1]
    for minute, (waiting, is_capped) in enumerate([(500, True), (3000, False)]):
        Depth.objects.create(
            resolution=60, starts_at=quarter + minute * MINUTE, queue_name="mail",
            waiting=waiting, is_capped=is_capped,
        )  # fmt: skip
    record(moment)
    merged = Depth.objects.get(queue_name="mail")
    assert (merged.resolution, merged.waiting, merged.is_capped) == (900, 3000, True)
