"""Bugs in numbering events, and in their effects."""

from __future__ import annotations

import time
from typing import Any

from tests.chaos.bugs.planting import Planting

EVENTS = "taskqueue.engine.events"
DUTIES = "taskqueue.worker.duties"
WINDOW = 1.0
"""Seconds in which a scenario can kill a worker between two transactions."""


def cursor_over_ids(planting: Planting) -> None:
    """What has an older id than the last event that was numbered is passed over."""
    planting.rewrite(
        f"{EVENTS}.numbering:NUMBER",
        "WHERE seq IS NULL ORDER BY id",
        "WHERE seq IS NULL AND id > (SELECT COALESCE(max(id), 0) FROM taskqueue_event"
        " WHERE seq IS NOT NULL) ORDER BY id",
    )


def two_pumps(planting: Planting) -> None:
    """Workers number events side by side, also what another has numbered meanwhile."""
    planting.rewrite(f"{EVENTS}.numbering:LOCK", "FOR UPDATE SKIP LOCKED", "")
    # By its place a row is not found again once another has numbered it.
    by_id = "event.id IN (SELECT id FROM single WHERE single.ctid = numbered.single)"
    planting.rewrite(f"{EVENTS}.numbering:NUMBER", "event.ctid = numbered.single", by_id)
    planting.replace(f"{DUTIES}:OTHER_PUMP_PAUSE", 0.1)

    def select(connection: Any, statement: Any, *arguments: Any, **named: Any) -> Any:
        rows = before(connection, statement, *arguments, **named)
        time.sleep(0.05)
        return rows

    before = planting.replace(f"{EVENTS}.numbering:select", select)


def effects_after_commit(planting: Planting) -> None:
    """What events cause is written in a transaction behind the one that numbers them."""
    from taskqueue.engine.connections import orm_transaction
    from taskqueue.engine.sessions import take_write_lock

    kept: list[Any] = []

    def pump(connection: Any, **named: Any) -> Any:
        numbered = pump_before(connection, **named)
        if kept:
            time.sleep(WINDOW)
            with orm_transaction(connection):
                take_write_lock(connection)
                bring_about(connection, *kept.pop())
        return numbered

    def keep(connection: Any, *what: Any) -> None:
        kept.append(what)

    bring_about = planting.replace(f"{EVENTS}.numbering:bring_about", keep)
    pump_before = planting.replace(f"{DUTIES}:pump", pump)


def handler_tasks_apart(planting: Planting) -> None:
    """The tasks of handlers commit for themselves, whatever becomes of the pump."""
    from taskqueue.engine.connections import open_worker_connection
    from taskqueue.engine.events.effects import EFFECTS
    from taskqueue.engine.events.handling import enqueue_handlers
    from taskqueue.models.event import Subscriber

    def enqueue_apart(connection: Any, subscription: Any, events: Any) -> None:
        own = open_worker_connection(silence=10)
        try:
            enqueue_handlers(own, subscription, events)
        finally:
            own.close()
        time.sleep(WINDOW)

    effects = {**EFFECTS, Subscriber.HANDLER: enqueue_apart}
    planting.replace(f"{EVENTS}.effects:EFFECTS", effects)


def batch_cut_short(planting: Planting) -> None:
    """A batch of events is numbered whole, and its first event is not made."""
    planting.rewrite(
        f"{EVENTS}.numbering:NUMBER",
        "WITH ORDINALITY AS own (task_id, attempt, seconds, place)",
        "WITH ORDINALITY AS own (task_id, attempt, seconds, place) WHERE own.place > 1",
    )


def bulk_events_apart(planting: Planting) -> None:
    """The events of an enqueue in bulk commit for themselves, whatever becomes of its tasks."""
    from taskqueue.engine.connections import open_worker_connection

    def end_bulk(connection: Any, bulk: Any, **named: Any) -> None:
        before(connection, bulk._replace(publishes=False), **named)
        own = open_worker_connection(silence=10)
        try:
            before(own, bulk, **named | {"number": 0})
        finally:
            own.close()

    before = planting.replace("taskqueue.engine.postgresql.copying:end_bulk", end_bulk)


def bulk_events_after_commit(planting: Planting) -> None:
    """The events of an enqueue in bulk are written behind its COMMIT."""
    from django.db import transaction

    def end_bulk(connection: Any, bulk: Any, **named: Any) -> None:
        before(connection, bulk._replace(publishes=False), **named)
        tasks = list(named.pop("tasks"))
        transaction.on_commit(
            lambda: before(connection, bulk, **named | {"number": 0}, tasks=tasks),
            using=connection.alias,
        )

    before = planting.replace("taskqueue.engine.postgresql.copying:end_bulk", end_bulk)


def mask_never_refreshed(planting: Planting) -> None:
    """A worker's session knows what was wanted as it began, and nothing else."""
    for module in ("own_connection", "worker_session"):
        planting.replace(
            f"taskqueue.worker.{module}:set_wanted_events", lambda connection, kinds: None
        )
