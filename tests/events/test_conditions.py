"""The conditions of triggers hold for one statement, and are asked once for all of its rows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connection, transaction

from taskqueue.engine.sessions import WANTED_EVENTS
from taskqueue.engine.statement import change, fetch
from taskqueue.models import Event, Task
from tests.events.steps import kinds, listen
from tests.sample.tasks import noop

pytestmark = pytest.mark.django_db(transaction=True)
SET_WANTED = f"SELECT set_config('{WANTED_EVENTS}', %s, true)"
READS = """
SELECT COALESCE(sum(calls), 0)
FROM pg_stat_xact_user_functions
WHERE funcname = 'taskqueue_wants'
"""
INSERT = """
INSERT INTO taskqueue_task (
    id, name, queue_name, status, priority, args, kwargs, options, metadata, max_attempts,
    max_crashes, crash_delay
)
SELECT
    gen_random_uuid(), 'raw', 'default', 'ready', 0, '[]', '{}', '{}', '{}', 1, 3, interval '1 s'
FROM generate_series(1, %s)
"""


def insert_many(number: int) -> None:
    """Insert tasks as a project can, by its own code."""
    Task.objects.bulk_create(
        Task(id=uuid4(), name="raw", crash_delay=timedelta(0)) for _ in range(number)
    )


def cancel_all(_: int) -> None:
    """End whatever tasks there are."""
    change(connection, "UPDATE taskqueue_task SET status = 'cancelled', finished_at = now()")


def test_rows_of_the_project_s_own_statements_cause_events() -> None:
    insert_many(3)
    listen("task.enqueued", "task.cancelled")
    insert_many(30)
    assert Event.objects.filter(kind="task.enqueued").count() == 30
    Task.objects.update(status="cancelled", finished_at="2026-01-01T00:00:00Z")
    assert Event.objects.filter(kind="task.cancelled").count() == 33


@pytest.mark.postgresql_only
def test_wanted_events_of_a_session_apply_from_the_next_statement() -> None:
    listen("task.enqueued")
    with connection.cursor() as cursor:
        cursor.execute(f"PREPARE raw AS {INSERT}" % 1)
        try:
            # More often than plans are made anew: then the server keeps one, as a procedure does.
            for wanted in ("task.enqueued", "-", "task.failed", "") * 4:
                before = Event.objects.count()
                with transaction.atomic():
                    cursor.execute(SET_WANTED, (wanted,))
                    cursor.execute("EXECUTE raw")
                    noop.enqueue()
                written = Event.objects.count() - before
                assert written == (2 if wanted in ("task.enqueued", "") else 0)
        finally:
            cursor.execute("DEALLOCATE raw")


@pytest.mark.postgresql_only
@pytest.mark.parametrize(
    "write",
    [
        lambda number: change(connection, INSERT, (number,)),
        insert_many,
        lambda number: noop.enqueue_many([((), {})] * number),
        cancel_all,
    ],
)
def test_the_setting_is_read_once_for_however_many_rows(write: Callable[[int], object]) -> None:
    def reads() -> int:
        return int(fetch(connection, READS)[0][0])

    def reads_of(number: int) -> int:
        """How often conditions asked for the setting while so many rows were written."""
        if write is cancel_all:
            change(connection, INSERT, (number,))
        with transaction.atomic():
            fetch(connection, SET_WANTED, ("-",))
            fetch(connection, "SELECT set_config('track_functions', 'pl', true)")
            before = reads()
            write(number)
            return reads() - before

    assert 0 < reads_of(10) == reads_of(200) < 5
    assert kinds() == []
