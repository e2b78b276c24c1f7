"""Debounce: a call whose key a waiting task holds replaces its arguments and postpones it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.refusals import refusal as _
from taskqueue.core.states import PENDING, TaskStatus
from taskqueue.engine.call_counts import count_turned_away
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.holders import TRIES, arguments_of, enqueued_of, holder_of
from taskqueue.engine.notify import ANYWHERE, wake
from taskqueue.engine.payloads import Enqueued, Payload
from taskqueue.engine.ready import put_off
from taskqueue.engine.specs import EnqueueSpec
from taskqueue.exceptions import TaskQueueError
from taskqueue.models import Task
from taskqueue.models.call_count import TurnedAway


def debounce(connection: BaseDatabaseWrapper, spec: EnqueueSpec, payload: Payload) -> Enqueued:
    """Insert a waiting task, or give the key's waiting task these arguments and a new time.

    A task that starts releases its key in the statement that claims it. So the UPDATE either comes
    first, and the body gets these arguments, or it changes nothing, and they become the next task.
    """
    dialect = dialect_for(connection)
    first = replace(spec, run_in=spec.debounce_in)
    for _try in range(TRIES):
        enqueued = dialect.insert(connection, first, payload)
        if enqueued is not None:
            return enqueued
        holder = holder_of(connection, spec, payload)
        if holder is not None and _put_off(connection, holder, spec, payload):
            count_turned_away(connection, spec.name, TurnedAway.DEBOUNCED)
            return enqueued_of(holder, updated=True)
    raise TaskQueueError(_(
        "The task of {spec} that a call would put off changed {tries} times while it was enqueued. "
        "Enqueue it again.",
        spec=spec.name, tries=TRIES,
    ))  # fmt: skip


def debounce_many(
    connection: BaseDatabaseWrapper, spec: EnqueueSpec, payloads: Sequence[Payload]
) -> list[Enqueued]:
    """Debounce many calls at once: of the calls with one key, the last one counts."""
    keys = [str(payload.unique_key) for payload in payloads]
    last = dict(zip(keys, payloads, strict=True))
    # In a fixed order, because otherwise two enqueues of the same keys could deadlock.
    last = {key: last[key] for key in sorted(last)}
    first = replace(spec, run_in=spec.debounce_in)
    inserted = {
        enqueued.id: enqueued
        for enqueued in dialect_for(connection).insert_keyed(connection, first, list(last.values()))
    }
    answers: dict[str, Enqueued] = {}
    for key, payload in last.items():
        answer = inserted.get(payload.id)
        answers[key] = answer or debounce(connection, spec, payload)
    # `debounce` counts the calls whose keys were already held.
    count_turned_away(connection, spec.name, TurnedAway.DEBOUNCED, len(keys) - len(last))
    results, seen = [], set[str]()
    for key in keys:
        answer = answers[key]
        if answer.created and key in seen:
            answer = answer._replace(created=False, updated=True, name=spec.name)
        seen.add(key)
        results.append(answer)
    return results


def _put_off(
    connection: BaseDatabaseWrapper, holder: Task, spec: EnqueueSpec, payload: Payload
) -> bool:
    """Give the holder these arguments and a new time. Return whether it was still waiting."""
    now = spec.at or dialect_for(connection).now(connection)
    due = now + timedelta(seconds=spec.debounce_in or 0)
    if spec.debounce_most is not None:
        due = min(due, holder.enqueued_at + timedelta(seconds=spec.debounce_most))
    waiting = Task.objects.using(connection.alias).filter(
        id=holder.id, holds_unique_key=True, status__in=sorted(PENDING)
    )
    if not put_off(waiting, due=due, now=now, **arguments_of(payload, holder)):
        return False
    if due < holder.run_after:  # A worker may be sleeping until the later time.
        wake(connection, ANYWHERE)
    waits = due > now
    holder.status = TaskStatus.SCHEDULED.value if waits else TaskStatus.READY.value
    holder.ready_at = None if waits else holder.ready_at or now
    return True
