"""Statements that record, renew and note the same leases at the same moment."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial
from threading import Thread
from typing import Any

import pytest
from django.db import connection as default_connection

from taskqueue.core.outcomes import OutcomeKind
from taskqueue.engine.connections import transaction
from taskqueue.engine.rows import Claimed
from taskqueue.engine.statement import fetch
from taskqueue.models import Lease, Task
from tests.engine.steps import another_connection, claim, run_at_once, task_statuses
from tests.engine.worker_verbs import Verb, record_as, renew, see_stops, write_note
from tests.sample.tasks import noop
from tests.worker_process import wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql_only]

IS_WAITING = "SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = %s"


class Undone(Exception):
    """Rolls a transaction back."""


def write_behind(first: Verb, second: Verb, claimed: Sequence[Claimed]) -> object:
    """Let the second write wait for the locks of the first one; what came of it."""
    answers: list[Any] = []
    with another_connection() as one, another_connection() as other:
        session: Any = other.connection
        thread = Thread(target=lambda: answers.append(second(other, claimed)), daemon=True)
        with transaction(one):
            first(one, claimed)
            thread.start()
            pid = session.info.backend_pid
            wait_until(lambda: fetch(default_connection, IS_WAITING, (pid,))[0][0])
        thread.join(60)
    (answer,) = answers
    return answer


@pytest.mark.parametrize(
    "write",
    [
        record_as(OutcomeKind.SUCCEEDED),
        record_as(OutcomeKind.FAILED),
        record_as(OutcomeKind.UNSTARTED),
        write_note,
        see_stops,
    ],
    ids=["success", "failure", "withdrawal", "note", "stop"],
)
def test_a_write_that_waited_for_a_takeover_changes_no_row(write: Verb) -> None:
    noop.enqueue_many([((), {})] * 3)
    claimed = claim()
    take_over = record_as(OutcomeKind.LOST)

    assert not write_behind(take_over, write, claimed)

    assert set(Lease.objects.values_list("status", "stop_seen_at", "progress")) == {
        ("lost", None, None)
    }
    assert set(Task.objects.values_list("status", "crashes", "failures", "attempt")) == {
        ("retrying", 1, 0, 1)
    }


def test_a_record_that_waited_for_a_note_is_written() -> None:
    noop.enqueue_many([((), {})] * 3)
    claimed = claim()

    recorded = write_behind(write_note, record_as(OutcomeKind.SUCCEEDED), claimed)

    assert task_statuses(recorded) == dict.fromkeys(
        [each.lease_id for each in claimed], "succeeded"
    )
    # The success completes the progress of the note, so the note was there first.
    assert set(Lease.objects.values_list("status", "progress")) == {("succeeded", 100.0)}
    assert set(Task.objects.values_list("status", flat=True)) == {"succeeded"}


def test_writes_in_any_order_do_not_deadlock() -> None:
    """A deadlock is an error of the statement that PostgreSQL ends."""
    noop.enqueue_many([((), {})] * 200)
    claimed = claim(200)
    writes = [
        record_as(OutcomeKind.SUCCEEDED),
        record_as(OutcomeKind.FAILED),
        renew,
        write_note,
        see_stops,
    ]

    run_at_once([partial(write_again_and_again, write, claimed) for write in writes])

    assert Lease.objects.filter(status="running").count() == 200


def write_again_and_again(write: Verb, claimed: Sequence[Claimed]) -> None:
    """Write all in one random order after the other, and undo it."""
    chance = random.Random(f"{write}")
    with another_connection() as worker:
        for _ in range(30):
            try:
                with transaction(worker):
                    write(worker, chance.sample(claimed, len(claimed)))
                    raise Undone
            except Undone:
                pass
