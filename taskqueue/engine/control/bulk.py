"""The verbs on all tasks that fit a filter: in chunks, each a transaction of its own.

They skip what others hold and come back to it, so that they close no circle, whatever the caller's
transaction holds. Only a shared task is waited for, once all its running leases are held.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F, Q
from django.db.transaction import atomic

from taskqueue.core.states import TaskStatus
from taskqueue.declarations.option_kinds import Moment
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.abandoned import runs_on
from taskqueue.engine.control.audit import person
from taskqueue.engine.control.changes import moment_of, reschedule_each, run_now_each, update_each
from taskqueue.engine.control.deleting import delete_each
from taskqueue.engine.control.duplicating import duplicate_each
from taskqueue.engine.control.filters import TaskFilter
from taskqueue.engine.control.locking import ALLOWED, Statuses, statuses_for
from taskqueue.engine.control.mutable_options import check_terms
from taskqueue.engine.control.retrying import retry_each
from taskqueue.engine.control.tasks import cancel_each, request_stop_each
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.lost import all_lost_attempts, is_held_by_lost_worker
from taskqueue.models import Task

CHUNK = 500
"""Tasks a transaction."""
TRIES, PAUSE = 4, 0.05
"""How often a chunk comes back to what others hold, and after how many seconds."""

HAS_ALL_SUCCESSES = Q(workers__gt=1) & Q(successes__gte=F("workers")) | Q(
    broadcast=True, workers__gt=0, successes__gte=F("workers")
)
"""As `shared.has_all_successes` says of a row."""

ENDING = frozenset({"cancel", "stop", "retry"})
"""The verbs that end an attempt of a lost worker at once."""

Each = Callable[..., Collection[UUID]]
"""Does something to those of the tasks that it may be done to, and gives these."""


class BulkOutcome(NamedTuple):
    """How many tasks fitted the filter, and to how many of them it was done."""

    matched: int
    done: int

    @property
    def refused(self) -> int:
        """Those that were in no status for it, or ended meanwhile."""
        return self.matched - self.done


def dry_run(
    which: TaskFilter,
    verb: str,
    *,
    changes: Mapping[str, Any] | None = None,
    run_after: Moment | None = None,
) -> BulkOutcome:
    """What the bulk verb would come to at this moment; writes nothing.

    `verb` is one of `cancel`, `stop`, `retry`, `run_now`, `reschedule`, `update`, `delete`,
    `duplicate`. Raises ValueError for another, and `InvalidTask` for `changes` or `run_after` that
    the verb would refuse; whether they fit each task is not looked at.
    """
    if verb not in ALLOWED:
        raise ValueError(f"{verb!r} is no verb of many. Choose from {sorted(ALLOWED)}.")
    connection = project_connection()
    if changes is not None:
        check_terms(changes)
    if run_after is not None:
        moment_of(run_after, dialect_for(connection).now(connection))
    tasks = which.tasks(connection)
    would = tasks.filter(status__in=sorted(statuses_for(verb, which.statuses)))
    if verb == "retry":
        would = would.exclude(HAS_ALL_SUCCESSES)
        would = would.exclude(runs_on(connection))
    return BulkOutcome(tasks.count(), would.count())


def count_held_by_lost(which: TaskFilter, verb: str) -> int:
    """Of the tasks that fit, those that lost workers hold, and whose attempts the verb ends."""
    if verb not in ENDING or TaskStatus.RUNNING not in statuses_for(verb, which.statuses):
        return 0
    connection = project_connection()
    if not all_lost_attempts(connection, limit=1):
        return 0  # As nearly always: the tasks need not be looked at.
    return which.tasks(connection).filter(is_held_by_lost_worker(connection)).count()


def cancel_many(which: TaskFilter, *, by: object = "", reason: str = "") -> BulkOutcome:
    """Cancel all of them: what waits ends now, what runs is stopped as with `request_stop`."""
    return _in_chunks(which, "cancel", partial(cancel_each, person=person(by, reason)))


def request_stop_many(which: TaskFilter, *, by: object = "", reason: str = "") -> BulkOutcome:
    """Ask those that run to stop; attempts of lost workers end at once."""
    return _in_chunks(which, "stop", partial(request_stop_each, person=person(by, reason)))


def retry_many(which: TaskFilter, *, by: object = "", reason: str = "") -> BulkOutcome:
    """Run those again that have finished.

    A filter whose `statuses` name `running` also chooses what lost workers hold: these attempts
    end at once.
    """
    return _in_chunks(which, "retry", partial(retry_each, person=person(by, reason)))


def run_now_many(which: TaskFilter, *, by: object = "", reason: str = "") -> BulkOutcome:
    """Make those ready that wait for their time."""
    return _in_chunks(which, "run_now", partial(run_now_each, person=person(by, reason)))


def reschedule_many(
    which: TaskFilter, run_after: Moment, *, by: object = "", reason: str = ""
) -> BulkOutcome:
    """Give those that wait another time. Raises `InvalidTask` before anything is changed."""
    return _in_chunks(
        which,
        "reschedule",
        partial(reschedule_each, run_after=run_after, person=person(by, reason)),
    )


def update_many(
    which: TaskFilter, changes: Mapping[str, Any], *, by: object = "", reason: str = ""
) -> BulkOutcome:
    """Change the terms of those that have not finished. Raises `InvalidTask` as `update` does.

    One that a change does not fit counts as refused.
    """
    check_terms(changes)
    return _in_chunks(
        which, "update", partial(update_each, changes=changes, person=person(by, reason))
    )


def delete_many(which: TaskFilter, *, by: object = "", reason: str = "") -> BulkOutcome:
    """Delete those that have finished, with their attempts and log lines."""
    return _in_chunks(which, "delete", partial(delete_each, person=person(by, reason)))


def duplicate_many(which: TaskFilter, *, by: object = "", reason: str = "") -> BulkOutcome:
    """Enqueue another like each of them."""
    return _in_chunks(which, "duplicate", partial(duplicate_each, person=person(by, reason)))


def _in_chunks(which: TaskFilter, verb: str, each: Each) -> BulkOutcome:
    """Each chunk commits with its audit lines, unless the caller holds a transaction."""
    connection = project_connection()
    # Looked at again under the lock: what was ready when it was found may run by then.
    statuses = statuses_for(verb, which.statuses)
    matched = done = 0
    for ids in _chunks(which, connection):
        matched += len(ids)
        done += _do(connection, ids, statuses, partial(each, statuses=statuses, skip_locked=True))
    return BulkOutcome(matched, done)


def _do(
    connection: BaseDatabaseWrapper, ids: Sequence[UUID], statuses: Statuses, each: Each
) -> int:
    """Do it to a chunk, and again to what somebody else held; to how many it was done."""
    done = 0
    for number in range(TRIES):
        if number:
            time.sleep(PAUSE)
        with atomic(using=connection.alias):
            found = frozenset(each(connection, ids))
        done += len(found)
        left = Task.objects.using(connection.alias).filter(
            id__in=[task_id for task_id in ids if task_id not in found],
            status__in=sorted(statuses),
        )
        ids = list(left.values_list("id", flat=True))
        if not ids:
            break
    return done


def _chunks(which: TaskFilter, connection: BaseDatabaseWrapper) -> Iterator[list[UUID]]:
    """The ids, in order. What is enqueued from now on is left out, or it might never end."""
    ids = which.tasks(connection).order_by("id").values_list("id", flat=True)
    last = ids.last()
    found: list[UUID] = []
    while last is not None and (not found or found[-1] != last):
        rest = ids.filter(id__gt=found[-1]) if found else ids
        found = list(rest.filter(id__lte=last)[:CHUNK])
        if not found:
            return
        yield found
