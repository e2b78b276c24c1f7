"""Bringing the limits that the code declares to the database, and what waits already under them.

What the code of the worker that started last says, holds, but for what people have set instead.
"""

from __future__ import annotations

import json
import logging
from operator import itemgetter
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import atomic

from taskqueue.core.states import PENDING
from taskqueue.declarations.definition import BaseDefinition, registry
from taskqueue.declarations.limits import Concurrency, Rate
from taskqueue.declarations.placement import declared
from taskqueue.engine.connections import project_connection
from taskqueue.engine.limits.changing import look_again
from taskqueue.engine.sessions import take_write_lock
from taskqueue.exceptions import TaskQueueError
from taskqueue.models import Limit, Task
from taskqueue.models.task import Route

logger = logging.getLogger("taskqueue.engine")

# Tasks of one transaction.
BATCH = 500
# What a declared limit may say, and what holds where it does not.
COLUMNS = {"per": "key", "concurrency": None, "rate": None, "seconds": None, "smooth": False}


def sync_limits() -> None:
    """Write the numbers of declared limits, and place what waits since before its limit was new.

    A limit that no code declares any more stays for the tasks that name it.
    """
    connection = project_connection()
    for definition in registry.all():
        if definition.limits is None:
            continue
        own: list[Concurrency | Rate] = [
            *definition.limits.concurrency,
            *definition.limits.rate,
        ]
        # In the order in which claims make them.
        limits = sorted((declared(limit, definition.name) for limit in own), key=itemgetter("name"))
        with atomic(using=connection.alias):
            new = [_write(connection, limit) for limit in limits]
        if any(new):
            place_waiting(connection, definition)


def _write(connection: BaseDatabaseWrapper, each: dict[str, Any]) -> bool:
    """Write one limit; whether it was not there before."""
    take_write_lock(connection)
    rows = Limit.objects.using(connection.alias)
    values = {column: each.get(column, default) for column, default in COLUMNS.items()}
    limit = rows.select_for_update().filter(name=each["name"]).first()
    if limit is None:
        _, is_new = rows.get_or_create(name=each["name"], defaults=values)
        return is_new
    changed = {name: value for name, value in values.items() if getattr(limit, name) != value}
    if changed:
        had_rate = limit.rate
        rows.filter(id=limit.id).update(**changed)
        limit.rate = values["rate"] or had_rate
        look_again(connection, limit)
    return False


def place_waiting(connection: BaseDatabaseWrapper, definition: BaseDefinition[Any, Any]) -> int:
    """Bring tasks that wait under the limits of their definition; how many.

    In short transactions, skipping what others hold. Until its turn comes a task is not limited.
    """
    number, last = 0, None
    while True:
        with atomic(using=connection.alias):
            take_write_lock(connection)
            rows = Task.objects.using(connection.alias).filter(
                name=definition.name, status__in=sorted(PENDING), route=Route.ORDINARY.value
            )
            if last is not None:
                rows = rows.filter(id__gt=last)
            found = list(
                rows.order_by("id")
                .select_for_update(skip_locked=True)
                .only("id", "args", "kwargs", "queue_name")[:BATCH]
            )
            for task in found:
                number += _place(connection, definition, task)
        if not found:
            return number
        last = found[-1].id


def _place(
    connection: BaseDatabaseWrapper, definition: BaseDefinition[Any, Any], task: Task
) -> bool:
    """Place one locked task; whether it is limited."""
    own = definition.using(queue_name=task.queue_name)
    stored = json.dumps(task.args), json.dumps(task.kwargs)
    try:
        placement = own.place(tuple(task.args), task.kwargs, stored=stored)
    except Exception as error:  # The key is the project's, and may not know the arguments.
        reason = str(error) if isinstance(error, TaskQueueError) else type(error).__name__
        logger.warning("Task not limited task=%s reason=%s", task.id, reason)
        return False
    if placement is None:
        return False
    Task.objects.using(connection.alias).filter(id=task.id).update(
        partition=placement.partition,
        limits=json.loads(placement.limits),
        route=Route.PARTITION.value,
    )
    return True
