"""Bringing the schedules that the code declares to the database, and resting removed ones.

The code says all of them but whether they are paused. What the code of the worker that started last
says, holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet
from django.db.transaction import atomic

from taskqueue.definitions import Definition, registry
from taskqueue.engine.connections import installed, orm_transaction, project_connection
from taskqueue.engine.control.audit import Act, Person, audit
from taskqueue.engine.schedules.advancing import RESULT
from taskqueue.engine.schedules.editing import apply, begin, differing, fields_of, scheduled_of
from taskqueue.engine.schedules.snapshots import snapshot_of
from taskqueue.engine.wording import wording_for
from taskqueue.exceptions import InvalidSchedule
from taskqueue.models import Schedule, Worker
from taskqueue.models.schedule import ScheduleSource
from taskqueue.models.worker import WorkerStatus
from taskqueue.scheduled import Scheduled, named

CODE = Person("taskqueue", "declared in code")
LIVE = (WorkerStatus.RUNNING, WorkerStatus.QUIET, WorkerStatus.STOPPING)


@dataclass(kw_only=True)
class Synced:
    """What a synchronisation changed, by the names of schedules."""

    created: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    """Sentences: which declarations cannot work, and why."""


def declared() -> Iterator[tuple[str, Scheduled, Definition[Any, Any]]]:
    """Every schedule that stands beside a task, by name."""
    for definition in registry.all():
        for name, scheduled in named(definition):
            yield name, scheduled, definition


def sync_schedules(*, worker: str = "") -> Synced:
    """Create and change schedules so that they are as the code declares them.

    `worker` is the name of the live worker whose code that is. What cannot work is left out and
    reported, and its row left as it is. A changed rule counts from now on; before that the old
    one is served. A schedule that was created at run time is never changed by a declaration of
    its name.
    """
    synced = Synced()
    names: dict[str, None] = {}
    rows = Schedule.objects.using(project_connection().alias)
    known = {row.name: row for row in rows.filter(source=ScheduleSource.CODE).defer(*RESULT)}
    for name, scheduled, definition in declared():
        if name in names:
            synced.refused.append(f"Two schedules are named {name!r}: give one another name=.")
            continue
        names[name] = None
        try:
            scheduled.check(definition)
            fields = fields_of(scheduled, definition)
            if not _is_as_declared(known.get(name), fields):
                _sync_one(name, fields, synced)
        except InvalidSchedule as error:
            synced.refused.append(f"{name}: {error}")
    connection = project_connection()
    if worker:
        workers = Worker.objects.using(connection.alias).filter(name=worker)
        workers.update(schedules=list(names))
    synced.removed = rest_undeclared(connection, besides=list(names))
    _refresh(connection)
    return synced


def _is_as_declared(row: Schedule | None, fields: dict[str, Any]) -> bool:
    """Whether there is nothing to do, so that nobody needs to be kept waiting by a lock."""
    return row is not None and row.removed_at is None and not differing(row, fields)


def _sync_one(name: str, fields: dict[str, Any], synced: Synced) -> None:
    connection = project_connection()
    rows = Schedule.objects.using(connection.alias)
    with atomic(using=connection.alias):
        _take_write_lock(connection)
        known = rows.select_for_update().filter(name=name).first()
        now = wording_for(connection).now(connection)
        if known is None:
            # Two workers may start at once: who comes second finds it as it should be.
            rows.bulk_create([_new(name, now, fields)], ignore_conflicts=True)
            known = rows.select_for_update().get(name=name)
            if known.created_at != now:
                return
            begin(connection, known, now)
            audit(connection, "create schedule", [Act(name)], person=CODE)
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
            audit(connection, "edit schedule", [Act(name, detail=detail)], person=CODE)
            synced.changed.append(name)


def _take_write_lock(connection: BaseDatabaseWrapper) -> None:
    """On SQLite, before anything is read: a transaction that has read may not write any more."""
    if connection.vendor == "sqlite":
        Schedule.objects.using(connection.alias).filter(id=-1).update(trouble="")


def _new(name: str, now: datetime, fields: dict[str, Any]) -> Schedule:
    return Schedule(
        name=name, source=ScheduleSource.CODE, created_at=now, changed_at=now, served_until=now,
        **fields,
    )  # fmt: skip


def rest_undeclared(
    connection: BaseDatabaseWrapper, *, besides: Sequence[str] | None = None
) -> list[str]:
    """Let schedules rest that no live worker's code declares; their names.

    Nothing rests while it is not known what some live worker declares, or while none lives and
    nobody says what is declared `besides`.
    """
    with installed(connection):
        if not _undeclared(connection, besides):  # As ever: nobody needs to be kept waiting.
            return []
        with orm_transaction(connection):
            _take_write_lock(connection)
            list(_declared_rows(connection).order_by("id").select_for_update().values_list("id"))
            gone = _undeclared(connection, besides)
            now = wording_for(connection).now(connection)
            _declared_rows(connection).filter(name__in=gone).update(removed_at=now)
            person = CODE._replace(reason="no longer declared in code")
            audit(connection, "remove schedule", map(Act, gone), person=person)
            return gone


def _declared_rows(connection: BaseDatabaseWrapper) -> QuerySet[Schedule]:
    rows = Schedule.objects.using(connection.alias)
    return rows.filter(source=ScheduleSource.CODE, removed_at=None)


def _undeclared(connection: BaseDatabaseWrapper, besides: Sequence[str] | None) -> list[str]:
    """The names of declared schedules that no code declares any more, as far as is known."""
    names = list(_declared_rows(connection).order_by("id").values_list("name", flat=True))
    if not names:
        return []
    now = wording_for(connection).now(connection)
    declared = _declared_by_live(connection, now)
    if declared is None or (not declared and besides is None):
        return []
    known = set(besides or ()).union(*declared)
    return [name for name in names if name not in known]


def _declared_by_live(connection: BaseDatabaseWrapper, now: datetime) -> list[list[str]] | None:
    """What each live worker's code declares; None if that is not known of all."""
    live = Worker.objects.using(connection.alias).filter(status__in=LIVE)
    declared: list[list[str]] = []
    for worker in live.only("schedules", "seen_at", "lease_seconds"):
        if worker.seen_at + timedelta(seconds=worker.lease_seconds) <= now:
            continue
        if worker.schedules is None:
            return None
        declared.append(worker.schedules)
    return declared


def _refresh(connection: BaseDatabaseWrapper) -> None:
    """Bring what the tasks of other schedules share up to the code, where it knows the task."""
    rows = Schedule.objects.using(connection.alias).filter(source=ScheduleSource.ROW)
    for schedule in rows.order_by("id").defer(*RESULT):
        definition = registry.find(schedule.task_name)
        if definition is None:
            continue
        try:
            request = snapshot_of(scheduled_of(schedule), definition)
        except InvalidSchedule as error:
            rows.filter(id=schedule.id).update(trouble=str(error))
            continue
        if request != schedule.request:
            rows.filter(id=schedule.id).update(request=request)
