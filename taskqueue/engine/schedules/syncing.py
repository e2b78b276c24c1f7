"""Write the declared schedules to the database, and mark removed ones.

The code decides everything about them except whether they are paused. The declarations of the
worker that started last apply.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet
from django.db.transaction import atomic

from taskqueue.declarations.declared_schedules import named
from taskqueue.declarations.scheduled import check_jitter
from taskqueue.declarations.workflows.scheduling import Target, all_targets, check_target
from taskqueue.engine.connections import installed, orm_transaction, project_connection
from taskqueue.engine.control.audit import Act, Person, audit
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.schedules.advancing import NOT_SERVED, RESULT
from taskqueue.engine.schedules.editing import (
    apply,
    begin,
    differing,
    fields_of,
    new_schedule,
    runs,
    scheduled_of,
    snapshot_of,
    target_of,
)
from taskqueue.engine.sessions import take_write_lock
from taskqueue.exceptions import InvalidSchedule
from taskqueue.models import Schedule, Worker
from taskqueue.models.schedule import ScheduleSource
from taskqueue.models.worker import WorkerStatus

CODE = Person("taskqueue", "declared in code")
LIVE = (WorkerStatus.RUNNING, WorkerStatus.QUIET, WorkerStatus.STOPPING)


@dataclass(kw_only=True)
class Synced:
    """The changes of a synchronisation, by the names of schedules."""

    created: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    # Warnings: which declarations cannot work, and why.
    refused: list[str] = field(default_factory=list)


def sync_schedules(*, worker: str = "") -> Synced:
    """Create and change schedules to match the declarations in the code.

    `worker` is the name of the live worker that runs this code. A declaration that cannot work is
    reported, and its row stays as it is. A changed rule counts from now on; times of the old rule
    are served first. A schedule that was created at run time is never changed by a declaration with
    its name.
    """
    declared = [(target, *schedule) for target in all_targets() for schedule in named(target)]
    synced = Synced()
    names: dict[str, None] = {}
    connection = project_connection()
    rows = Schedule.objects.using(connection.alias)
    known = {row.name: row for row in rows.filter(source=ScheduleSource.CODE).defer(*RESULT)}
    for target, name, scheduled in declared:
        is_taken = isinstance(name, str) and name in names
        if isinstance(name, str):
            names[name] = None  # If the declaration cannot work, its row is left as it is.
        try:
            with _readable():
                check_target(scheduled, target)
                check_jitter(scheduled)
                fields = fields_of(scheduled, target)
            if is_taken:
                raise InvalidSchedule("Another schedule has that name: give one another name=.")
            row = known.get(name)
            # Take no lock if there is nothing to do.
            if row is None or row.removed_at is not None or differing(row, fields):
                _sync_one(name, fields, synced)
        except InvalidSchedule as error:
            synced.refused.append(f"{name}: {error}")
    if worker:
        workers = Worker.objects.using(connection.alias).filter(name=worker)
        workers.update(schedules=list(names))
    if names:
        now = dialect_for(connection).now(connection)
        rows.filter(source=ScheduleSource.CODE, name__in=list(names)).update(declared_at=now)
    synced.removed = rest_undeclared(connection, besides=list(names))
    _refresh(connection)
    return synced


@contextmanager
def _readable() -> Iterator[None]:
    """Turn any error into `InvalidSchedule`: one schedule must not hold back the others."""
    try:
        yield
    except InvalidSchedule:
        raise
    except Exception as error:
        raise InvalidSchedule(f"It cannot be read ({type(error).__name__}).") from error


def _sync_one(name: str, fields: dict[str, Any], synced: Synced) -> None:
    connection = project_connection()
    rows = Schedule.objects.using(connection.alias)
    with atomic(using=connection.alias):
        take_write_lock(connection)
        known = rows.select_for_update().filter(name=name).first()
        now = dialect_for(connection).now(connection)
        if known is None:
            # Two workers may start at once: the second finds that the first has done it.
            row = new_schedule(name, ScheduleSource.CODE, fields, now)
            rows.bulk_create([row], ignore_conflicts=True)
            known = rows.select_for_update().get(name=name)
            if known.created_at != now:
                return
            begin(connection, known, now)
            audit(connection, "schedule", "create", [Act(name)], person=CODE)
            synced.created.append(name)
            return
        if known.source != ScheduleSource.CODE:
            raise InvalidSchedule(
                f"A schedule of that name was created at run time for {known.task_name}. Delete "
                "that one, or give the declared one another name=."
            )
        changed = apply(connection, known, fields, now=now)
        if changed:
            detail = ", ".join(changed)
            audit(connection, "schedule", "edit", [Act(name, detail=detail)], person=CODE)
            synced.changed.append(name)


def rest_undeclared(
    connection: BaseDatabaseWrapper, *, besides: Sequence[str] | None = None
) -> list[str]:
    """Deactivate schedules that no live worker's code declares. Return their names.

    Nothing is deactivated while the declarations of some live worker are unknown, or if no worker
    is alive and the caller does not say what is declared in `besides`.
    """
    with installed(connection):
        if not _undeclared(connection, besides):  # The usual case, without locks.
            return []
        with orm_transaction(connection):
            take_write_lock(connection)
            list(_declared_rows(connection).order_by("id").select_for_update().values_list("id"))
            gone = _undeclared(connection, besides)
            now = dialect_for(connection).now(connection)
            _declared_rows(connection).filter(name__in=gone).update(removed_at=now)
            person = CODE._replace(reason="no longer declared in code")
            audit(connection, "schedule", "remove", map(Act, gone), person=person)
            return gone


def _declared_rows(connection: BaseDatabaseWrapper) -> QuerySet[Schedule]:
    rows = Schedule.objects.using(connection.alias)
    return rows.filter(source=ScheduleSource.CODE, removed_at=None)


def _undeclared(connection: BaseDatabaseWrapper, besides: Sequence[str] | None) -> list[str]:
    """Return the declared schedules that no code declares any more, as far as is known.

    A schedule that was declared after every live worker had started is kept: the workers that will
    declare it may not have started yet.
    """
    rows = list(_declared_rows(connection).order_by("id").only("name", "declared_at"))
    if not rows:
        return []
    now = dialect_for(connection).now(connection)
    workers = Worker.objects.using(connection.alias).filter(status__in=LIVE)
    lean = workers.only("schedules", "seen_at", "lease_seconds", "started_at")
    live = [worker for worker in lean if not worker.is_silent(now)]
    is_known = all(worker.schedules is not None for worker in live)
    if not is_known or (not live and besides is None):
        return []
    known = set(besides or ()).union(*(worker.schedules or () for worker in live))
    started_at = max((worker.started_at for worker in live), default=None)
    return [
        row.name
        for row in rows
        if row.name not in known
        and (
            besides is not None
            or row.declared_at is None
            or (started_at is not None and started_at > row.declared_at)
        )
    ]


def _refresh(connection: BaseDatabaseWrapper) -> None:
    """Update what the runs of other schedules share to this code, if it knows what they run."""
    rows = Schedule.objects.using(connection.alias).filter(source=ScheduleSource.ROW)
    for schedule in list(rows.order_by("id").defer(*RESULT)):
        target = target_of(schedule)
        stored = (schedule.request, schedule.trouble)
        if target is None or _request_now(schedule, target) == stored:
            continue
        with atomic(using=connection.alias):
            take_write_lock(connection)
            # Somebody may have edited it since it was read.
            locked = rows.filter(id=schedule.id).select_for_update().defer(*RESULT).first()
            if locked is not None and runs(locked, target):
                request, trouble = _request_now(locked, target)
                rows.filter(id=locked.id).update(request=request, trouble=trouble)


def _request_now(schedule: Schedule, target: Target) -> tuple[dict[str, Any], str]:
    """Return the request of its runs by this code; or the stored one, and why it is kept."""
    trouble = schedule.trouble if schedule.trouble.startswith(NOT_SERVED) else ""
    try:
        with _readable():
            return snapshot_of(scheduled_of(schedule), target), trouble
    except InvalidSchedule as error:
        return schedule.request, str(error)
