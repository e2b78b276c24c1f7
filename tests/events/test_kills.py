"""Events equal the committed changes, whoever is killed; and seeded bugs are found out."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

from taskqueue import events
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.declarations import handlers
from taskqueue.engine.connections import open_worker_connection
from taskqueue.engine.events import numbering
from taskqueue.engine.events.declaring import sync_handlers
from taskqueue.engine.events.numbering import pump
from taskqueue.engine.sessions import leave_session, own_session, set_wanted_events
from taskqueue.engine.statement import Statement
from taskqueue.models import Event, Subscription, Task, Worker
from tests.conftest import StartWorker
from tests.engine.steps import another_connection, claim, claim_one, end, future
from tests.events.judging import complaints
from tests.events.steps import are_numbered, listen, number_all
from tests.sample.event_tasks import keep_event
from tests.sample.tasks import add, fail, noop, sleep
from tests.worker_process import wait_until

pytestmark = pytest.mark.django_db(transaction=True)
QUICK = {"LEASE_DURATION": 2, "PING_INTERVAL": 0.5, "TAKEOVER_INTERVAL": 0.3}
OPEN = ("ready", "scheduled", "running", "retrying")


@pytest.fixture(autouse=True)
def _no_handlers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handlers, "_handlers", {})


def test_events_equal_the_changes_when_workers_and_pumps_are_killed(
    start_worker: StartWorker,
) -> None:
    listen()
    workers = [start_worker("--concurrency", "2", settings=QUICK) for _ in range(2)]
    for worker in Worker.objects.all():
        name = worker.name
        wait_until(
            lambda name=name: Worker.objects.get(name=name).schedules is not None,
            what="its declarations",
        )
    events.on("task.succeeded", name="tests.sample.tasks.*")(keep_event)
    sync_handlers()
    # Workers that start later do not declare it, as those of the project would.
    Subscription.objects.update(declared_at=future())
    short = {"crash_delay": 0.1, "max_crashes": 100}
    for _ in range(4):
        add.using(**short).enqueue_many([((1,), {})] * 20)
        fail.using(max_attempts=2, **short).enqueue_many([((), {})] * 5)
        sleep.using(**short).enqueue_many([((0.2,), {})] * 5)
        seen = Event.objects.filter(kind="task.succeeded").count()
        wait_until(
            lambda seen=seen: Event.objects.filter(kind="task.succeeded").count() > seen + 5,
            what="ends",
        )
        workers.pop(0).kill()
        workers.append(start_worker("--concurrency", "2", settings=QUICK))

    def is_over() -> bool:
        is_open = Task.objects.filter(status__in=OPEN).exists()
        return not is_open and are_numbered()

    wait_until(is_over, timeout=120, what="the end of all tasks")
    assert complaints(handler=keep_event.name, handled="task.succeeded") == []
    assert Task.objects.filter(name=keep_event.name).count() == 4 * 25


# Seeded bugs


def test_an_event_that_is_not_written_with_its_change_is_found_missing() -> None:
    listen()
    noop.enqueue()
    number_all()
    assert complaints() == []
    claimed = claim_one()
    Event.objects.filter(kind="task.started").delete()  # Its writer died behind the COMMIT.
    end(claimed, OutcomeKind.SUCCEEDED)
    number_all()
    (found,) = complaints()
    assert "The start of" in found


def test_a_second_pump_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    if connection.vendor == "sqlite":
        pytest.skip("has one writer at a time")
    listen()
    noop.enqueue_many([((), {})] * 3)
    monkeypatch.setattr(numbering, "LOCK", Statement.of("SELECT last_seq FROM taskqueue_audience"))
    with another_connection() as other, connection.cursor() as cursor:
        cursor.execute("BEGIN")
        pump_within(connection)
        with pytest.raises(Exception, match="lock timeout"):
            pump(other)
        cursor.execute("COMMIT")
    monkeypatch.undo()
    with another_connection() as other, connection.cursor() as cursor:
        cursor.execute("BEGIN")
        noop.enqueue()
        cursor.execute("SELECT last_seq FROM taskqueue_audience FOR UPDATE")
        assert pump(other).number == 0  # It leaves them to the first one.
        cursor.execute("COMMIT")


def pump_within(own: Any) -> None:
    """Number events without an end of the transaction."""
    last = numbering.select(own, numbering.LOCK)[0][0]
    numbering.execute(own, numbering.NUMBER, last=last, limit=10)


def test_a_reader_that_follows_ids_misses_an_event() -> None:
    if connection.vendor == "sqlite":
        pytest.skip("has one writer at a time")
    listen()
    with another_connection() as other, other.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("INSERT INTO taskqueue_event (kind, details) VALUES ('task.lost', '{}')")
        noop.enqueue()
        number_all()
        (by_id,) = Event.objects.order_by("id")
        by_seq = events.since(0)[-1].seq
        cursor.execute("COMMIT")
    number_all()
    assert not Event.objects.filter(id__gt=by_id.id).exists()
    assert [event.kind for event in events.since(by_seq)] == ["task.lost"]


@pytest.mark.postgresql_only
def test_a_session_that_never_asks_what_is_wanted_is_found_out() -> None:
    worker = open_worker_connection(silence=30)
    try:
        own_session(worker)
        listen()
        noop.enqueue_many([((), {})] * 2)
        for claimed in claim(1, connection=worker):
            number_all()
            assert any("The start of" in each for each in complaints())
            end(claimed, OutcomeKind.RETURNED)
        set_wanted_events(worker, "task.started")
        Event.objects.filter(kind="task.started").delete()
        before = Event.objects.filter(kind="task.started").count()
        assert claim(1, connection=worker)
        assert Event.objects.filter(kind="task.started").count() == before + 1
        leave_session(worker)
    finally:
        worker.close()


def test_a_worker_hears_within_seconds_that_somebody_has_subscribed(
    start_worker: StartWorker,
) -> None:
    start_worker()
    add.enqueue(1).wait(timeout=60)
    listen("task.started")

    def is_heard() -> bool:
        add.enqueue(1).wait(timeout=60)
        return Event.objects.exists()

    wait_until(is_heard, what="a start")
