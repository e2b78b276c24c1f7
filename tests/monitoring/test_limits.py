"""What faces tell of limits: what runs and waits, why a task waits, and what never ends."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, connections, transaction
from django.utils import timezone

from taskqueue import Fair, Rate, Sequence, control
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.engine.limits.sweeping import Sweep
from taskqueue.engine.statement import Statement
from taskqueue.models import Lease, Limit, LimitCount, Partition, Task, Worker
from taskqueue.monitoring.counts import status_counts
from taskqueue.monitoring.doctor.limits import look_at_limits
from taskqueue.monitoring.doctor.work import look_at_work
from taskqueue.monitoring.fairness import fairness_of, jain
from taskqueue.monitoring.limit_statements import KEYS, WAITING
from taskqueue.monitoring.metrics import exposition
from taskqueue.monitoring.notices import Notice, notices
from taskqueue.monitoring.read_models.base import EVERYTHING
from taskqueue.monitoring.read_models.limit import keys_of, limit_named, read_limits
from taskqueue.monitoring.read_models.queue import queue_named
from taskqueue.monitoring.read_models.task_history import shown_task
from taskqueue.monitoring.searching.finding import find
from taskqueue.monitoring.searching.search import parse
from taskqueue.monitoring.why import why
from tests.engine.steps import claim, end
from tests.engine.test_limits import args, one_at_a_time, take, two_a_key
from tests.monitoring.rows import make_worker, told
from tests.sample.tasks import add

pytestmark = pytest.mark.django_db(transaction=True)
NAME = "tests.sample.tasks.add:a"


@pytest.fixture(autouse=True)
def worker() -> Worker:
    """A worker that lives."""
    return make_worker(concurrency=50, lease_seconds=600)


def test_a_limit_tells_what_runs_and_waits_of_all_its_keys() -> None:
    two_a_key.enqueue_many([((key,), {}) for key in (1, 1, 1, 1, 2, 2, 2, 3)])
    take()
    take()
    limit = limit_named(NAME)
    assert limit is not None
    assert (limit.concurrency, limit.running, limit.waiting) == (2, 5, 3)
    assert not limit.is_waiting_capped
    keys = keys_of(Limit.objects.get(name=NAME))
    assert [(key.key, key.running, key.waiting) for key in keys] == [
        ("1", 2, 2), ("2", 2, 1), ("3", 1, 0),
    ]  # fmt: skip
    assert keys[0].oldest_seconds is not None
    assert not any(key.is_waiting_capped for key in keys)


def test_a_count_over_many_partitions_is_capped_and_marked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    two_a_key.enqueue_many([((key,), {}) for key in (1, 2) for _ in range(30)])
    take()
    take()
    shared = {
        name: Statement(
            postgresql=statement.postgresql.replace("100000", "40"),
            sqlite=statement.sqlite.replace("100000", "40"),
        )
        for name, statement in (("WAITING", WAITING), ("KEYS", KEYS))
    }
    for name, statement in shared.items():
        monkeypatch.setattr(f"taskqueue.monitoring.read_models.limit.{name}", statement)
    limit = limit_named(NAME)
    assert limit is not None
    assert (limit.waiting, limit.is_waiting_capped) == (40, True)
    keys = keys_of(Limit.objects.get(name=NAME))
    assert [(key.waiting, key.is_waiting_capped) for key in keys] == [(20, True), (20, True)]


def test_a_limit_tells_how_much_of_its_rate_is_used() -> None:
    add.using(rate=Rate("4/h")).enqueue_many([((1,), {})] * 6)
    take()
    [limit] = read_limits()
    assert (limit.rate, limit.used_ratio, limit.waiting) == ("4/h", 1.0, 2)
    [key] = keys_of(Limit.objects.get())
    assert (key.key, key.used, key.waiting) == ("", 4, 2)


def test_the_limit_of_a_queue_tells_of_its_ordinary_tasks() -> None:
    add.enqueue_many([((1,), {})] * 3)
    control.limit_queue("default", concurrency=1)
    take()
    queue, limit = queue_named("default"), limit_named("queue:default")
    assert queue is not None
    assert limit is not None
    assert queue.limit is not None
    assert (queue.limit.concurrency, limit.queue_name) == (1, "default")
    assert (limit.running, limit.waiting) == (1, 2)
    [key] = keys_of(Limit.objects.get(name="queue:default"))
    assert (key.key, key.running, key.waiting, key.is_waiting_capped) == ("", 1, 2, False)
    assert type(key.oldest_seconds) is float
    assert told(Task.objects.filter(status="ready").latest("id")).keys() == {"queue_full"}


def test_limited_tasks_are_counted_and_found_as_ready() -> None:
    two_a_key.enqueue_many([((key,), {}) for key in (1, 1, 1, 2)])
    assert status_counts()["ready"].value == 4
    queue = queue_named("default")
    assert queue is not None
    assert (queue.waiting, queue.is_waiting_capped) == (4, False)
    assert queue.oldest_seconds is not None
    assert queue.reachable_seconds is None
    assert len(find(parse("status:ready", now=timezone.now()).which).tasks) == 4
    take()
    assert (status_counts()["ready"].value, status_counts()["running"].value) == (1, 3)


def test_a_full_limit_names_the_oldest_of_its_holders() -> None:
    holder, waiting = one_at_a_time.enqueue(1), one_at_a_time.enqueue(2)
    take()
    take()
    reason = told(waiting)["limit_full"]
    assert reason.details["most"] == 1
    assert reason.details["task"] == str(holder.id)
    assert reason.moment == Lease.objects.get().claimed_at
    assert "Tasks that hold it: 1;" in reason.sentence


def test_a_limit_of_zero_says_so() -> None:
    one_at_a_time.enqueue(1)
    end(take()[0], OutcomeKind.SUCCEEDED)
    control.override_limit("tests.sample.tasks.add", concurrency=0)
    waiting = one_at_a_time.enqueue(2)
    assert take() == []
    assert "limit_zero" in told(waiting)


def test_a_rate_tells_when_the_next_start_is() -> None:
    once = add.using(rate=Rate("1/h"))
    once.enqueue(1)
    second = once.enqueue(2)
    take()
    take()
    reason = told(second)["rate_used"]
    assert reason.moment == Partition.objects.get().opens_at
    assert "The rate 1/h" in reason.sentence


def test_a_sequence_names_the_task_that_comes_first() -> None:
    ordered = add.using(sequence=Sequence("a"), max_attempts=2)
    results = [ordered.enqueue(1, b) for b in range(3)]
    [first] = take()
    found = told(results[2])
    assert found["sequence_runs"].subject == str(results[0].id)
    assert found["behind_in_sequence"].details["number"] == 1
    end(first, OutcomeKind.FAILED, delay=3600.0)
    take()
    assert told(results[2])["sequence_waits"].details["status"] == "retrying"


def test_a_halted_sequence_is_reported_by_why_and_the_doctor() -> None:
    ordered = add.using(sequence=Sequence("a", on_failure="halt"), max_attempts=1)
    failed, behind = ordered.enqueue(1), ordered.enqueue(1, 2)
    [first] = take()
    end(first, OutcomeKind.FAILED)
    take()
    assert told(behind)["sequence_halted"].subject == str(failed.id)
    for result in (failed, behind):
        assert "release" in shown_task(Task.objects.get(id=result.id), EVERYTHING).can
    [finding] = look_at_limits_here()
    assert str(failed.id) in finding.remedy
    control.release_sequence(behind.id)
    assert "sequence_halted" not in told(behind)
    assert "release" not in shown_task(Task.objects.get(id=behind.id), EVERYTHING).can


def halted_notice() -> Notice | None:
    found = [notice for notice in notices() if notice.code == "halted"]
    assert len(found) < 2
    return found[0] if found else None


def test_halted_sequences_are_a_notice_and_an_error_only_where_tasks_wait(worker: Worker) -> None:
    ordered = add.using(sequence=Sequence("a", on_failure="halt"), max_attempts=1)
    failed = [ordered.enqueue(1), ordered.enqueue(2)]
    for claimed in take():
        end(claimed, OutcomeKind.FAILED)
    take()
    alone = halted_notice()
    assert alone is not None
    assert (alone.level, alone.count, alone.total) == ("warning", 2, 0)
    assert alone.subject == str(failed[0].id)
    assert alone.since == Task.objects.get(id=failed[0].id).finished_at
    assert alone.sentence.endswith("No task waits behind it.")

    ordered.enqueue(2, 2)
    found = halted_notice()
    assert found is not None
    assert (found.level, found.count, found.total) == ("error", 2, 1)
    assert found.subject == str(failed[1].id)
    assert f"taskqueue release {failed[1].id}" in found.remedy
    [finding] = look_at_limits_here()
    assert (finding.severity, finding.seen) == ("problem", found.sentence)
    assert all("Halted sequences" not in each.seen for each in look_at_work(connection))
    assert 'taskqueue_notices{kind="halted",level="error"} 1.0' in exposition()[0].decode()
    control.release_sequence(failed[1].id)
    control.release_sequence(failed[0].id)
    assert halted_notice() is None


def test_halted_sequences_are_found_by_an_index() -> None:
    statement = "SELECT id FROM taskqueue_partition WHERE state = 'halted' ORDER BY id LIMIT 5"
    with transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute(f"EXPLAIN QUERY PLAN {statement}")
        else:
            cursor.execute("SET LOCAL enable_seqscan = off")
            cursor.execute(f"EXPLAIN {statement}")
        assert "taskqueue_partition_halted" in str(cursor.fetchall())


def look_at_limits_here() -> list[Any]:
    from taskqueue.engine.connections import project_connection

    return list(look_at_limits(project_connection()))


def test_tags_that_no_worker_has_are_reported(worker: Worker) -> None:
    result = add.using(requires={"gpu", "eu"}).enqueue(1)
    take()
    assert told(result)["tags_missing"].subject == "eu, gpu"
    [finding] = [each for each in look_at_work(connection) if "require the tags" in each.seen]
    assert (finding.check, finding.severity) == ("queues", "problem")
    assert "--tags eu,gpu" in finding.remedy
    assert told(result).keys() == {"tags_missing"}, "Its workers take other tasks."
    Worker.objects.update(tags=["eu", "gpu"])
    assert told(result).keys() == {"in_line"}
    assert all("require the tags" not in each.seen for each in look_at_work(connection))


def test_tenants_that_have_their_turn_before_are_counted() -> None:
    fair = add.using(fair=Fair("a"))
    for _ in range(2):
        fair.enqueue_many([((tenant,), {}) for tenant in (1, 2, 3)])
    taken = json.loads(take(1)[0].args)[0]
    waiting = Task.objects.get(status="ready", args=[taken])
    assert told(waiting)["tenants_ahead"].details["number"] == 2


def test_forgotten_limits_with_tasks_are_reported() -> None:
    one_at_a_time.enqueue_many([((1,), {})] * 2)
    take()
    take()
    [finding] = look_at_limits_here()
    assert (finding.subject, finding.severity) == ("tests.sample.tasks.add", "info")


def test_the_shares_of_tenants_are_shown() -> None:
    fair = add.using(fair=Fair("a"))
    fair.enqueue_many([((tenant,), {}) for tenant in (1, 2) for _ in range(10)])
    assert len(args(take(10))) == 10
    shown = fairness_of("default")
    assert [(tenant.starts, tenant.waiting) for tenant in shown.tenants] == [(5, 5), (5, 5)]
    assert shown.index == pytest.approx(1.0)
    assert shown.tenants[0].wait_p95_seconds is not None
    assert jain([1.0, 0.0]) == pytest.approx(0.5)


def test_metrics_are_by_limit_and_never_by_key(scrape: Callable[[], str]) -> None:
    two_a_key.enqueue_many([((key,), {}) for key in (1, 1, 1, 2)])
    take()
    text = scrape()
    assert f'taskqueue_limit_running{{limit="{NAME}"}} 3.0' in text
    assert f'taskqueue_limit_slots{{limit="{NAME}"}} 2.0' in text
    assert 'taskqueue_partitions{state="open"}' in text
    assert "taskqueue_partition_notes " in text


@pytest.fixture
def scrape() -> Callable[[], str]:
    """The metrics of the whole queue, as text."""
    from prometheus_client import CollectorRegistry, generate_latest

    from taskqueue.monitoring.metrics.collector import DatabaseCollector

    registry = CollectorRegistry()
    registry.register(DatabaseCollector())
    return lambda: generate_latest(registry).decode()


def test_metrics_tell_for_how_long_a_limit_was_full_and_what_was_repaired() -> None:
    two_a_key.enqueue_many([((1,), {})] * 3)
    take()
    take()
    sweep = Sweep()
    sweep.step(connections["default"])
    LimitCount.objects.update(counted_at=timezone.now() - timedelta(seconds=9))
    sweep.step(connections["default"])
    [count] = LimitCount.objects.all()
    assert 8 <= count.number < 30
    LimitCount.objects.update(counted_at=timezone.now() - timedelta(hours=8))
    sweep.step(connections["default"])
    assert LimitCount.objects.get().number == count.number, "Nobody looked in between."
    Partition.objects.update(state="empty", waits_for=None)
    sweep.step(connections["default"])
    control.pause_definition("tests.sample.tasks.add")
    Worker.objects.update(queue_slots={"mail": 2}, definition_slots={"tests.sample.tasks.add": 1})
    text = exposition()[0].decode()
    assert f'taskqueue_limit_saturated_seconds_total{{limit="{NAME}"}} {count.number}' in text
    assert "taskqueue_partition_repairs_total 1.0" in text
    assert "taskqueue_definitions_paused 1.0" in text
    assert "taskqueue_paused 0.0" in text
    assert 'taskqueue_queue_slots{queue="mail"} 2.0' in text
    assert 'taskqueue_definition_slots{name="tests.sample.tasks.add"} 1.0' in text


def test_full_slots_of_a_queue_or_a_definition_are_named(worker: Worker) -> None:
    add.enqueue(1)
    waiting = add.enqueue(2)
    claim(1)
    assert "own_slots_busy" not in told(waiting)
    row = Task.objects.get(id=waiting.id)
    now = timezone.now()
    for column, subject in (("queue_slots", "default"), ("definition_slots", waiting.name)):
        slots = {column: {subject: 1}}
        Worker.objects.update(**{"queue_slots": {}, "definition_slots": {}, **slots})
        # Another free slot is none for it.
        assert [(each.code, each.subject) for each in why(row)] == [("own_slots_busy", subject)]
        other = Worker.objects.create(
            name="w2", host="h", pid=2, concurrency=9, lease_seconds=600, started_at=now,
            seen_at=now, **slots,
        )  # fmt: skip
        assert "own_slots_busy" not in told(waiting), "The one slot of another worker is free."
        Worker.objects.filter(id=other.id).update(**{column: {}})
        assert "own_slots_busy" not in told(waiting), "Another worker has any number of slots."
        other.delete()
