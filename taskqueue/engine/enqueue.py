"""Enqueue tasks in the caller's transaction, with one holder for each unique key.

If a task already holds the key, the enqueue returns that task, updated or unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import atomic
from django.utils.timezone import get_default_timezone

from taskqueue.core.periods import period_of
from taskqueue.core.refusals import refusal as _
from taskqueue.core.states import FINISHED, PENDING, TaskStatus
from taskqueue.declarations.arguments import LONGEST_UNIQUE_KEY
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.audit import Act, audit, person
from taskqueue.engine.control.changes import reopen
from taskqueue.engine.debouncing import debounce, debounce_many
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.holders import (
    TRIES,
    arguments_of,
    enqueued_of,
    holder_of,
    options_of,
    release_expired,
)
from taskqueue.engine.multi_worker import begin_anew
from taskqueue.engine.notify import ANYWHERE, wake
from taskqueue.engine.payloads import Enqueued, LatePayloads, Payload
from taskqueue.engine.places import Places
from taskqueue.engine.ready import make_due
from taskqueue.engine.specs import EnqueueSpec, later
from taskqueue.exceptions import DuplicateTask, InvalidTask, TaskQueueError
from taskqueue.models import Task


def enqueue(spec: EnqueueSpec, payload: Payload, *, on_duplicate: str) -> Enqueued:
    """Insert one task, or find the one that holds its unique key.

    Raises `DuplicateTask` if duplicates are set to raise, and `CapacityReached`.
    """
    connection = project_connection()
    dialect = dialect_for(connection)
    if payload.unique_key is None:
        enqueued = dialect.insert(connection, spec, payload)
        if enqueued is None:
            raise TaskQueueError(_("Task {payload} exists already.", payload=payload.id))
        return enqueued
    if spec.debounce_in is not None:
        return debounce(connection, spec, payload)
    if spec.places:
        return Places(connection, spec).enqueue(payload, base=payload.unique_key)
    if spec.unique_per:
        return _enqueue_in_period(connection, spec, payload, on_duplicate=on_duplicate)
    return _enqueue_with_key(connection, spec, payload, on_duplicate=on_duplicate)


def _enqueue_in_period(
    connection: BaseDatabaseWrapper, spec: EnqueueSpec, payload: Payload, *, on_duplicate: str
) -> Enqueued:
    """Enqueue a task whose key holds for the period in which it is due.

    As everywhere, the database's clock decides: the clocks of two hosts could give two periods at
    the same moment.
    """
    now = spec.at or dialect_for(connection).now(connection)
    try:
        period = period_of(spec.unique_per, spec.run_after_at(now), get_default_timezone())
    except (OverflowError, ValueError):
        raise InvalidTask(_("run_after is too late for unique_per: no period ends then.")) from None
    key = f"{payload.unique_key}@{period.label}"
    if len(key) > LONGEST_UNIQUE_KEY:
        room = LONGEST_UNIQUE_KEY - len(period.label) - 1
        raise InvalidTask(_(
            "With unique_per, unique_key may have at most {room} characters.", room=room
        ))  # fmt: skip
    held = replace(spec, at=now, unique_in=(period.ends_at - now).total_seconds())
    try:
        named = payload._replace(unique_key=key)
        return _enqueue_with_key(connection, held, named, on_duplicate=on_duplicate)
    except DuplicateTask as duplicate:
        duplicate.unique_key = payload.unique_key
        raise


def _enqueue_with_key(
    connection: BaseDatabaseWrapper, spec: EnqueueSpec, payload: Payload, *, on_duplicate: str
) -> Enqueued:
    dialect, unique_key = dialect_for(connection), str(payload.unique_key)
    for _try in range(TRIES):
        enqueued = dialect.insert(connection, spec, payload)
        if enqueued is not None:
            return enqueued
        if release_expired(connection, spec.unique_scope, unique_key):
            continue
        holder = meet_holder(connection, spec, payload, on_duplicate=on_duplicate)
        if holder is not None:
            return holder
    raise TaskQueueError(_(
        "The holder of the unique key {unique_key!r} of {unique_scope} changed {tries} times while "
        "this task was enqueued. Enqueue it again.",
        unique_key=unique_key, unique_scope=spec.unique_scope, tries=TRIES,
    ))  # fmt: skip


def enqueue_many(
    spec: EnqueueSpec, payloads: Sequence[Payload], *, on_duplicate: str
) -> Sequence[Enqueued]:
    """Insert many tasks, all or none, in their order."""
    connection = project_connection()
    is_late = isinstance(payloads, LatePayloads)
    plain = not spec.is_apart and (
        is_late or all(payload.unique_key is None for payload in payloads)
    )
    if not payloads:
        return []
    dialect = dialect_for(connection)
    # If a duplicate raises, or an argument that is only encoded now, the caller's transaction must
    # stay usable, without these tasks.
    with atomic(using=connection.alias, savepoint=is_late or not plain):
        if plain:
            return dialect.insert_many(connection, spec, payloads)
        if spec.at is None:  # One moment for all of them keeps them first in, first out.
            spec = replace(spec, at=dialect.now(connection))
        results: dict[str, Enqueued] = {}
        if spec.debounce_in is not None or spec.places:
            keyed = [payload for payload in payloads if payload.unique_key is not None]
            if spec.debounce_in is not None:
                answers = debounce_many(connection, spec, keyed)
            else:
                answers = Places(connection, spec).enqueue_many(keyed)
            results = {payload.id: answer for payload, answer in zip(keyed, answers, strict=True)}
        # Two enqueues of the same keys in different orders could deadlock.
        rest = [payload for payload in payloads if payload.id not in results]
        for payload in sorted(rest, key=lambda payload: payload.unique_key or ""):
            results[payload.id] = enqueue(spec, payload, on_duplicate=on_duplicate)
    return [results[payload.id] for payload in payloads]


# The final statuses from which `restart` runs a task again.
RESTARTED = {
    None: frozenset[TaskStatus](),
    "failed": frozenset({TaskStatus.FAILED}),
    "all": FINISHED,
}


def meet_holder(
    connection: BaseDatabaseWrapper, spec: EnqueueSpec, payload: Payload, *, on_duplicate: str
) -> Enqueued | None:
    """Return the holder of the key, updated if requested; None if nobody holds the key any more.

    Raises `DuplicateTask` if duplicates are set to raise.
    """
    holder = holder_of(connection, spec, payload)
    if holder is None:
        return None
    updated = False
    # A task of another definition has other parameters and other secrets, so it is not changed.
    if holder.name == spec.name:
        if holder.status in RESTARTED[spec.restart]:
            updated = _restart(connection, holder, spec, payload)
        elif on_duplicate == "replace":
            updated = _replace(connection, holder, spec, payload)
    if on_duplicate == "raise" and not updated:
        raise DuplicateTask(_(
            "Task {holder} ({status}) holds the unique key {unique_key!r} of {unique_scope}.",
            holder=holder.id, status=holder.status, unique_key=payload.unique_key,
            unique_scope=spec.unique_scope,
        ), holder.id, unique_key=payload.unique_key)  # fmt: skip
    if updated:
        holder = holder_of(connection, spec, payload)
        if holder is None:  # It has started or ended meanwhile, and released the key.
            return None
    return enqueued_of(holder, updated=updated)


def _replace(
    connection: BaseDatabaseWrapper, holder: Task, spec: EnqueueSpec, payload: Payload
) -> bool:
    """Give a holder that nobody runs new arguments, a new time and the named options.

    Return whether that changes it. Raises `InvalidTask` if these options conflict with those that
    it has.
    """
    now = spec.at or dialect_for(connection).now(connection)
    run_after = spec.run_after_at(now)
    options = options_of(spec, payload, holder, now=now)
    is_alike = _is_alike(holder, spec, payload, run_after=run_after, now=now)
    if is_alike and not options:
        return False
    waiting = Task.objects.using(connection.alias).filter(id=holder.id, status__in=sorted(PENDING))
    columns = arguments_of(payload, holder) | options
    if is_alike:  # It keeps its position in the queue.
        updated = waiting.update(**columns)
    else:
        updated = make_due(waiting, due=run_after, now=now, **columns)
    if updated and options:
        wake(connection, ANYWHERE)
    return updated > 0


def _is_alike(
    holder: Task, spec: EnqueueSpec, payload: Payload, *, run_after: datetime, now: datetime
) -> bool:
    """Return whether the holder already has these arguments and this time."""
    if _text(holder.args) != _text(json.loads(payload.args)):
        return False
    if _text(holder.kwargs) != _text(json.loads(payload.kwargs)):
        return False
    if run_after == now:
        return holder.status == TaskStatus.READY
    return spec.run_at is not None and spec.run_at == holder.run_after


def _text(value: Any) -> str:
    """Return JSON text for comparisons: in Python 1 would equal True."""
    return json.dumps(value, sort_keys=True)


def _restart(
    connection: BaseDatabaseWrapper, holder: Task, spec: EnqueueSpec, payload: Payload
) -> bool:
    """Run a finished holder again with these arguments, on all of its workers.

    The change is audited as a retry, because it leaves a final status.
    """
    with atomic(using=connection.alias):
        tasks = Task.objects.using(connection.alias).filter(id=holder.id)
        task = tasks.filter(status=holder.status).select_for_update().first()
        if task is None:
            return False
        reopen(connection, [task])
        begin_anew(connection, task)
        now = spec.at or dialect_for(connection).now(connection)
        make_due(
            tasks,
            due=spec.run_after_at(now),
            now=now,
            **arguments_of(payload, holder)
            | options_of(spec, payload, holder, now=now, begins_anew=True)
            | {
                "deadline_at": spec.deadline_at or later(now, spec.deadline_in),
                "expires_at": later(now, spec.expires_in),
            },
        )
        act = Act(str(task.id), before=holder.status, detail="published again")
        audit(connection, "task", "retry", [act], person=person("", f"restart={spec.restart}"))
        wake(connection, ANYWHERE)
    return True
