"""A worker writes the events of many claims and ends by one statement, not by triggers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import atomic, set_rollback
from django.test.utils import CaptureQueriesContext

from taskqueue.conf import get_settings
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.declarations.event_filters import EventFilter
from taskqueue.engine.connections import transaction
from taskqueue.engine.events.numbering import pump
from taskqueue.engine.events.reading import waits_for_number
from taskqueue.engine.events.subscribing import last_seq
from taskqueue.engine.postgresql.events import LEAST
from taskqueue.engine.record import record
from taskqueue.engine.retention import EndPolicy
from taskqueue.engine.rows import Claimed
from taskqueue.engine.sessions import leave_session, own_session, set_wanted_events
from taskqueue.engine.statement import change
from taskqueue.models import Audience, Event, EventBatch, Lease
from taskqueue.monitoring.doctor.events import look_at_events
from taskqueue.monitoring.metrics.workflows import workflow_figures
from taskqueue.workflows import group
from tests.engine.steps import Undo, another_connection, claim, claim_one, end, outcome, past
from tests.engine.test_bad_statistics import FINISHED
from tests.engine.test_plans import BATCH, rows_read
from tests.events.steps import listen, number_all, numbered, written
from tests.sample.tasks import add, noop

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql_only]
MANY = 2 * LEAST
WRITES = "INSERT INTO taskqueue_eventbatch"


@pytest.fixture
def worker() -> Iterator[BaseDatabaseWrapper]:
    """The session of a worker that listens."""
    with another_connection() as own:
        own_session(own)
        yield own
        leave_session(own)


def learn(worker: BaseDatabaseWrapper) -> None:
    """Let the worker know what anybody wants."""
    set_wanted_events(worker, Audience.objects.get().kinds)


def record_successes(worker: BaseDatabaseWrapper, claimed: Sequence[Claimed]) -> None:
    with transaction(worker):
        ends = [outcome(each, OutcomeKind.SUCCEEDED) for each in claimed]
        record(worker, ends, policy=EndPolicy.of(get_settings()))


def told(kind: str) -> list[dict[str, Any]]:
    """The events of a kind without what differs from one to the next."""
    number_all()
    rows = Event.objects.filter(kind=kind).order_by("seq")
    return [
        {
            "name": row.name, "queue": row.queue_name, "worker": row.worker,
            "attempt": row.attempt, "step": row.details.get("step"), "details": set(row.details),
            "in_workflow": row.workflow_id is not None,
        }
        for row in rows
    ]  # fmt: skip


@pytest.mark.parametrize("enqueue", [
    lambda: noop.enqueue_many([((), {})] * MANY),
    lambda: group(noop.s() for _ in range(MANY)).enqueue(),
])  # fmt: skip
def test_the_events_are_those_that_triggers_write(
    worker: BaseDatabaseWrapper, enqueue: Any
) -> None:
    listen("task.started", "task.succeeded")
    enqueue()
    for claimed in claim(MANY):
        end(claimed, OutcomeKind.SUCCEEDED)
    by_triggers = told("task.started"), told("task.succeeded")
    Event.objects.all().delete()
    learn(worker)
    enqueue()
    with CaptureQueriesContext(worker) as queries:  # type: ignore[arg-type]
        claimed_together = claim(MANY, connection=worker)
        record_successes(worker, claimed_together)
    assert sum(WRITES in query["sql"] for query in queries) == 2
    assert (told("task.started"), told("task.succeeded")) == by_triggers
    of_tasks = [[str(row.task_id) for row in numbered() if row.kind == kind]
                for kind in ("task.started", "task.succeeded")]  # fmt: skip
    assert of_tasks[0] == [each.task_id for each in claimed_together]
    assert sorted(of_tasks[1]) == sorted(of_tasks[0])
    seconds = {row.details["seconds"] for row in numbered() if row.kind == "task.succeeded"}
    assert seconds == {1.0}


def test_only_events_that_match_a_subscription_are_written(worker: BaseDatabaseWrapper) -> None:
    listen("task.started", name="*.add")
    listen("task.succeeded", queue="mail")
    add.enqueue_many([((1,), {})] * MANY)
    noop.enqueue_many([((), {})] * MANY)
    learn(worker)
    record_successes(worker, claim(2 * MANY, connection=worker))
    assert [(row.kind, row.name) for row in numbered()] == [("task.started", add.name)] * MANY


def test_they_are_undone_with_their_change(worker: BaseDatabaseWrapper) -> None:
    listen("task.started")
    noop.enqueue_many([((), {})] * MANY)
    learn(worker)

    def claim_in_vain() -> None:
        with transaction(worker):
            claim(MANY, connection=worker)
            raise Undo

    with pytest.raises(Undo):
        claim_in_vain()
    assert numbered() == []
    assert not Lease.objects.exists()
    claim_one(size=1, connection=worker)
    assert len(numbered()) == 1


def test_a_statement_that_fails_leaves_what_the_session_knows(worker: BaseDatabaseWrapper) -> None:
    listen("task.*")
    learn(worker)
    noop.enqueue_many([((), {})] * MANY)
    Event.objects.all().delete()
    with pytest.raises(Exception, match="interval"):
        claim(MANY, connection=worker, lease_duration="never")  # type: ignore[arg-type]
    claim_one(size=1, connection=worker)
    assert [row.kind for row in written()] == ["task.started"]


def test_triggers_write_what_follows_in_the_transaction(worker: BaseDatabaseWrapper) -> None:
    listen("task.started", "task.succeeded")
    noop.enqueue_many([((), {})] * (MANY + 2))
    learn(worker)
    with transaction(worker):
        many = claim(MANY, connection=worker)
        one = claim_one(size=1, connection=worker)
        ends = [outcome(each, OutcomeKind.SUCCEEDED) for each in many]
        record(worker, ends, policy=EndPolicy.of(get_settings()))
        record(worker, [outcome(one, OutcomeKind.SUCCEEDED)], policy=EndPolicy.of(get_settings()))
    assert (len(told("task.started")), len(told("task.succeeded"))) == (MANY + 1, MANY + 1)


def test_a_success_that_the_fence_refuses_tells_nothing(worker: BaseDatabaseWrapper) -> None:
    listen("task.succeeded")
    learn(worker)
    noop.enqueue_many([((), {})] * MANY)
    claimed = claim(MANY, connection=worker)
    Lease.objects.filter(id=claimed[0].lease_id).update(
        status="lost", finished_at="2020-01-01T00:00:00Z"
    )
    record_successes(worker, claimed)
    assert len(told("task.succeeded")) == MANY - 1


def test_rows_are_found_by_their_keys_though_the_plan_was_made_over_empty_tables(
    worker: BaseDatabaseWrapper,
) -> None:
    change(connection, "VACUUM (ANALYZE) taskqueue_task, taskqueue_lease, taskqueue_step")
    listen("task.started", "task.succeeded")
    learn(worker)
    for _ in range(7):
        noop.enqueue_many([((), {})] * LEAST)
        record_successes(worker, claim(LEAST, connection=worker))
    change(connection, FINISHED, (20_000,))
    noop.enqueue_many([((), {})] * 20_000)
    counts = []
    for _ in range(5):
        with transaction(worker):
            before = rows_read(worker)
            ends = [
                outcome(each, OutcomeKind.SUCCEEDED) for each in claim(BATCH, connection=worker)
            ]
            record(worker, ends, policy=EndPolicy.of(get_settings()))
            counts.append(rows_read(worker) - before)
    # About five a task, and five more for its two events.
    assert max(counts) <= 20 * BATCH


def waiting_batches(worker: BaseDatabaseWrapper) -> None:
    """Leave a batch of starts, and one of ends, without numbers."""
    learn(worker)
    noop.enqueue_many([((), {})] * MANY)
    record_successes(worker, claim(MANY, connection=worker))


def test_batches_and_single_events_get_their_numbers_in_one_order(
    worker: BaseDatabaseWrapper,
) -> None:
    listen()
    waiting_batches(worker)
    noop.enqueue()
    assert pump(connection, limit=MANY + 5) == (MANY, True)
    # No batch is cut in two, nor left because it is larger than a turn.
    assert pump(connection, limit=5) == (MANY, True)
    assert pump(connection) == (MANY + 1, False)
    rows = Event.objects.order_by("seq")
    kinds = [kind for kind in ("enqueued", "started", "succeeded") for _ in range(MANY)]
    assert [row.kind for row in rows] == [f"task.{kind}" for kind in [*kinds, "enqueued"]]
    assert [row.seq for row in rows] == list(range(1, 3 * MANY + 2))
    assert last_seq(connection) == 3 * MANY + 1
    assert not EventBatch.objects.exists()


def test_a_pump_that_dies_leaves_batches_as_they_were(worker: BaseDatabaseWrapper) -> None:
    listen("task.started")
    waiting_batches(worker)
    with atomic():
        assert pump(connection).number == MANY
        set_rollback(True)
    assert (Event.objects.count(), last_seq(connection)) == (0, 0)
    assert [row.seq for row in numbered()] == list(range(1, MANY + 1))


def test_batches_are_among_what_waits_for_numbers(worker: BaseDatabaseWrapper) -> None:
    listen("task.succeeded")
    waiting_batches(worker)
    assert waits_for_number(connection, EventFilter.of("task.succeeded", name=noop.name))
    assert not waits_for_number(connection, EventFilter.of("task.succeeded", name=add.name))
    assert workflow_figures().new_events == MANY
    EventBatch.objects.update(at=past())
    (found,) = look_at_events(connection)
    assert f"Those that wait: {MANY}," in found.seen
    number_all()
    assert not waits_for_number(connection, EventFilter.of())
    assert workflow_figures().new_events == 0
