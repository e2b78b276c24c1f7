"""Writing the handlers that the code declares to the database, and ending removed ones."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.declarations.handlers import Handler, declared
from taskqueue.engine.connections import orm_transaction, project_connection
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.events.handling import stored
from taskqueue.engine.events.subscribing import subscribe, unsubscribe
from taskqueue.engine.making_specs import spec_of
from taskqueue.engine.statement import Fact
from taskqueue.models import Subscription, Worker
from taskqueue.models.event import Subscriber
from taskqueue.models.worker import WorkerStatus

LIVE = (WorkerStatus.RUNNING, WorkerStatus.QUIET, WorkerStatus.STOPPING)
HAS_HANDLERS = Fact.of("""
    EXISTS (SELECT 1 FROM taskqueue_subscription WHERE subscriber = 'handler')
""")


def sync_handlers() -> None:
    """Subscribe the handlers that the code declares; rows that are up to date are not touched.

    Patterns, filters and options of the worker that started last apply.
    """
    connection = project_connection()
    rows = Subscription.objects.using(connection.alias).filter(subscriber=Subscriber.HANDLER)
    known = {(row.subject, row.place): row for row in rows}
    for name, handlers in declared().items():
        for place, handler in enumerate(handlers):
            row = known.pop((name, place), None)
            if row is None or not _is_alike(row, handler):
                _subscribe(connection, name, handler, place)
    # Further subscriptions of a declared definition: it used to have more of them.
    for (name, _), row in known.items():
        if name in declared():
            row.delete(using=connection.alias)
    now = dialect_for(connection).now(connection)
    rows.filter(subject__in=list(declared())).update(declared_at=now)
    end_undeclared(connection)


def subscribe_handlers(connection: BaseDatabaseWrapper, names: Iterable[str]) -> list[str]:
    """Subscribe these declared handlers; return the names of those that were not subscribed."""
    rows = Subscription.objects.using(connection.alias).filter(subscriber=Subscriber.HANDLER)
    before = set(rows.values_list("subject", flat=True))
    fresh = [name for name in names if name not in before]
    for name in fresh:
        for place, handler in enumerate(declared()[name]):
            _subscribe(connection, name, handler, place)
    return fresh


def end_undeclared(connection: BaseDatabaseWrapper) -> None:
    """End subscriptions of handlers that no live worker's code declares any more.

    A worker declares its handlers when it starts. So if a handler was not declared since all live
    workers started and made their declarations, no worker's code contains it.
    """
    with orm_transaction(connection):
        rows = Subscription.objects.using(connection.alias).filter(subscriber=Subscriber.HANDLER)
        if not rows.exists():
            return
        now = dialect_for(connection).now(connection)
        workers = Worker.objects.using(connection.alias).filter(status__in=LIVE)
        live = [worker for worker in workers if not worker.is_silent(now)]
        if not live or any(worker.schedules is None for worker in live):
            return
        gone = rows.filter(declared_at__lt=min(worker.started_at for worker in live))
        if subjects := sorted(set(gone.values_list("subject", flat=True))):
            unsubscribe(connection, Subscriber.HANDLER, *subjects)


def _subscribe(connection: BaseDatabaseWrapper, name: str, handler: Handler, place: int) -> None:
    further = {"request": stored(spec_of(handler.definition))}
    subscribe(connection, Subscriber.HANDLER, name, handler.wanted, place=place, further=further)


def _is_alike(row: Subscription, handler: Handler) -> bool:
    columns = {**handler.wanted.columns, "request": stored(spec_of(handler.definition))}
    return all(getattr(row, name) == value for name, value in columns.items())
