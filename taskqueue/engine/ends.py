"""Announce the ends of tasks.

Every change to a final status goes through `announce`, or is counted with `count_for_statement`:
from recording (`engine.record`), from the ends below, and from tasks of several workers
(`engine.multi_worker`). Each end of a task is announced once, in the transaction that ends it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.conf import get_settings
from taskqueue.core.states import TaskStatus
from taskqueue.engine.connections import transaction
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.retention import EndPolicy, Retention
from taskqueue.engine.rows import Ended, RollupRow
from taskqueue.engine.statement import Moment
from taskqueue.engine.step_ends import note_ends
from taskqueue.engine.tally import Tally
from taskqueue.models import Task

# When the next deadline or expiry comes of a task that nobody runs.
NEXT_END = Moment.of("""
    SELECT min(ends_at)
    FROM (
        SELECT min(deadline_at) AS ends_at
        FROM taskqueue_task
        WHERE deadline_at IS NOT NULL
            AND status IN ('blocked', 'ready', 'retrying', 'scheduled')
        UNION ALL
        SELECT min(expires_at)
        FROM taskqueue_task
        WHERE expires_at IS NOT NULL AND started_at IS NULL
            AND status IN ('blocked', 'ready', 'retrying', 'scheduled')
    ) AS ends
""")


def announce(
    connection: BaseDatabaseWrapper, ended: Iterable[Ended], *, tally: Tally | None = None
) -> None:
    """Tell the tally and the workflows that these tasks have ended.

    Writes the counts that the tally holds. Without a tally, the tasks are counted in new rows.
    """
    ended = list(ended)
    tally = tally or Tally()
    tally.add_ends(ended)
    tally.write(connection)
    note_ends(connection, ended)


def count_for_statement(ended: Iterable[Ended], *, tally: Tally) -> list[RollupRow]:
    """Tell the tally of ended tasks of no workflow; the statement that ends them writes its counts.

    Return these counts. The caller guards the transaction for the tally.
    """
    tally.add_ends(ended)
    return tally.take()


def end_overdue(
    connection: BaseDatabaseWrapper, *, limit: int, policy: EndPolicy, tally: Tally
) -> list[Ended]:
    """Fail tasks past their deadline and cancel expired ones, if nobody runs them."""
    with tally.guard(), transaction(connection):
        ended = dialect_for(connection).end_overdue(connection, limit=limit, policy=policy)
        announce(connection, ended, tally=tally)
    return ended


def cancel_waiting(connection: BaseDatabaseWrapper, tasks: Sequence[Task], *, reason: str) -> None:
    """Cancel locked tasks that nobody runs, in the caller's transaction."""
    now = dialect_for(connection).now(connection)
    kept_for = get_settings().RETENTION["cancelled"]
    alike: dict[tuple[datetime | None, bool], list[UUID]] = {}
    for task in tasks:
        retention = Retention.of(task)
        end = retention.prune_after(now, kept_for), retention.keeps_key
        alike.setdefault(end, []).append(task.id)
    for (prune_after, keeps_key), ids in alike.items():
        Task.objects.using(connection.alias).filter(id__in=ids).update(
            status=TaskStatus.CANCELLED,
            finished_at=now,
            error_message=reason,
            prune_after=prune_after,
            holds_unique_key=keeps_key,
        )
    announce(
        connection,
        [
            Ended(str(task.id), task.queue_name, task.name, TaskStatus.CANCELLED, task.step_id)
            for task in tasks
        ],
    )
