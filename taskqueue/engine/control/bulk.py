"""Run a verb on all tasks that match a filter, in chunks, each in its own transaction.

Rows that other sessions have locked are skipped and tried again later, so that no deadlock arises,
whatever the caller's transaction has locked. Only for a task of several workers does it wait, once
it holds all running leases of that task.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import QuerySet
from django.db.transaction import atomic

from taskqueue.core.states import TaskStatus
from taskqueue.declarations.time_kinds import Moment
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.audit import person
from taskqueue.engine.control.changes import moment_of
from taskqueue.engine.control.filters import TaskFilter
from taskqueue.engine.control.locking import Selection
from taskqueue.engine.control.mutable_options import check_changes
from taskqueue.engine.control.task_verbs import bulk_verb
from taskqueue.engine.control.verb import Each
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.lost import is_held_by_lost_worker, lost_attempts
from taskqueue.models import Task

# The most tasks of one transaction.
CHUNK = 500
# How often a chunk retries tasks that others had locked, and the seconds between tries.
TRIES, PAUSE = 4, 0.05


class BulkOutcome(NamedTuple):
    """How many tasks matched the filter, and how many of them were changed."""

    matched: int
    done: int

    @property
    def refused(self) -> int:
        """Tasks whose status did not allow the verb, or that changed meanwhile."""
        return self.matched - self.done


def dry_run(
    which: TaskFilter,
    verb: str,
    *,
    changes: Mapping[str, Any] | None = None,
    run_after: Moment | None = None,
) -> BulkOutcome:
    """Count the matching tasks and those that the verb would change; write nothing.

    `verb` is one of `cancel`, `stop`, `retry`, `run_now`, `reschedule`, `update`, `delete`,
    `duplicate`. Raises ValueError for another verb, and `InvalidTask` for `changes` or `run_after`
    that the verb would refuse; whether they fit each task is not checked.
    """
    known = bulk_verb(verb)
    connection = project_connection()
    if changes is not None:
        check_changes(changes)
    if run_after is not None:
        moment_of(run_after, dialect_for(connection).now(connection))
    tasks = which.tasks(connection)
    statuses = sorted(known.statuses_among(which.statuses))
    would = known.fitting(connection, tasks.filter(status__in=statuses), statuses)
    return BulkOutcome(tasks.count(), would.count())


def refused_of_workflows(which: TaskFilter, verb: str) -> tuple[int, UUID | None]:
    """Count the matching tasks that the verb refuses because a workflow owns them.

    Also return one of their workflows.
    """
    known = bulk_verb(verb)
    statuses = known.statuses_among(which.statuses) & known.not_in_workflow
    if not statuses:
        return 0, None
    tasks = which.tasks(project_connection())
    owned = tasks.filter(step__isnull=False, status__in=sorted(statuses))
    example = owned.values_list("step__workflow_id", flat=True).first()
    return (0, None) if example is None else (owned.count(), example)


def count_held_by_lost(which: TaskFilter, verb: str) -> int:
    """Count the matching tasks of lost workers whose attempts the verb would end."""
    known = bulk_verb(verb)
    statuses = known.statuses_among(which.statuses)
    if not known.ends_attempt or TaskStatus.RUNNING not in statuses:
        return 0
    connection = project_connection()
    if not lost_attempts(connection, limit=1):
        return 0  # The usual case, without looking at the tasks.
    return which.tasks(connection).filter(is_held_by_lost_worker(connection)).count()


def act_on_many(
    which: TaskFilter, verb: str, *, by: object = "", reason: str = "", **arguments: Any
) -> BulkOutcome:
    """Apply a verb to all these tasks; each chunk commits, unless the caller has a transaction."""
    known = bulk_verb(verb)
    connection = project_connection()
    selection = Selection(
        connection=connection,
        ids=(),
        # Checked again under the lock: a task that was ready when it was found may be running by
        # now.
        statuses=known.statuses_among(which.statuses),
        person=person(by, reason),
        is_bulk=True,
    )
    matched = done = 0
    for ids in _chunks(which.tasks(connection)):
        matched += len(ids)
        done += _do(replace(selection, ids=ids), partial(known.each, **arguments))
    return BulkOutcome(matched, done)


def _do(selection: Selection, each: Each) -> int:
    """Apply the verb to a chunk, and again to tasks that others had locked.

    Return how many were done.
    """
    done = 0
    for number in range(TRIES):
        if number:
            time.sleep(PAUSE)
        with atomic(using=selection.connection.alias):
            done_now = frozenset(each(selection))
        done += len(done_now)
        missed = selection.of(set(selection.ids) - done_now).rows()
        left = missed.filter(status__in=sorted(selection.statuses)).values_list("id", flat=True)
        selection = replace(selection, ids=list(left))
        if not selection.ids:
            break
    return done


def _chunks(tasks: QuerySet[Task]) -> Iterator[list[UUID]]:
    """Yield the ids in order, without tasks that are enqueued from now on, so that it ends."""
    ids = tasks.order_by("id").values_list("id", flat=True)
    last = ids.last()
    rest = ids.filter(id__lte=last) if last is not None else ids.none()
    chunk = list(rest[:CHUNK])
    while chunk:
        yield chunk
        chunk = list(rest.filter(id__gt=chunk[-1])[:CHUNK])
