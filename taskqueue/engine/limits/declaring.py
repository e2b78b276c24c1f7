"""Write the declared limits to the database, and apply them to waiting tasks.

The declarations of the worker that started last apply, except for numbers that people override.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from operator import itemgetter
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import atomic

from taskqueue.core.states import PENDING
from taskqueue.declarations.definition import BaseDefinition, registry
from taskqueue.declarations.placement import declared_limits
from taskqueue.engine.connections import project_connection
from taskqueue.engine.limits.changing import look_again
from taskqueue.engine.limits.plans import is_placed_by, plan_of
from taskqueue.engine.notify import ANYWHERE, wake
from taskqueue.engine.sessions import take_write_lock
from taskqueue.exceptions import TaskQueueError
from taskqueue.models import Limit, LimitPlan, Task
from taskqueue.models.task import Route

logger = logging.getLogger("taskqueue.engine")

# The most tasks of one transaction.
BATCH = 500
# The settings that a declared limit may have, and their defaults.
COLUMNS = {"per": "key", "concurrency": None, "rate": None, "seconds": None, "smooth": False}


def sync_limits() -> None:
    """Write the numbers of declared limits, and apply changed limits to the tasks that wait.

    The plan of a definition is written only once all of its waiting tasks were placed by it, so
    that if this worker ends early, the next one does the rest. A limit that no code declares any
    more is kept for tasks whose call named it.
    """
    connection = project_connection()
    plans = dict(LimitPlan.objects.using(connection.alias).values_list("name", "plan"))
    for definition in registry.all():
        before, plan = plans.get(definition.name), plan_of(definition)
        if before is None and plan is None:
            continue
        # In the order in which claims make them.
        limits = sorted(declared_limits(definition.limits, definition.name), key=itemgetter("name"))
        with atomic(using=connection.alias):
            for limit in limits:
                _write(connection, limit)
        if plan != before:
            place_waiting(connection, definition, before)
            _keep(connection, definition.name, plan)


def _write(connection: BaseDatabaseWrapper, each: dict[str, Any]) -> None:
    """Write one limit."""
    take_write_lock(connection)
    rows = Limit.objects.using(connection.alias)
    values = {column: each.get(column, default) for column, default in COLUMNS.items()}
    limit = rows.select_for_update().filter(name=each["name"]).first()
    if limit is None:
        # Workers that start together all find it missing.
        rows.bulk_create([Limit(name=each["name"], **values)], ignore_conflicts=True)
        return
    changed = {name: value for name, value in values.items() if getattr(limit, name) != value}
    if changed:
        had_rate = limit.rate
        rows.filter(id=limit.id).update(**changed)
        limit.rate = values["rate"] or had_rate
        look_again(connection, limit)


def _keep(connection: BaseDatabaseWrapper, name: str, plan: Mapping[str, Any] | None) -> None:
    """Record that all waiting tasks are placed as the plan says."""
    rows = LimitPlan.objects.using(connection.alias)
    if plan is None:
        rows.filter(name=name).delete()
    else:
        rows.bulk_create(
            [LimitPlan(name=name, plan=plan)],
            update_conflicts=True,
            unique_fields=["name"],
            update_fields=["plan"],
        )


def place_waiting(
    connection: BaseDatabaseWrapper,
    definition: BaseDefinition[Any, Any],
    before: Mapping[str, Any] | None = None,
) -> int:
    """Put waiting tasks under the limits of their definition. Return how many tasks changed.

    These are tasks without limits, and tasks that the definition placed by the plan `before`. It
    runs in short transactions that skip tasks locked by others. Until it is placed, a task keeps
    its old limits.
    """
    number, last = 0, None
    routes = [Route.ORDINARY.value, *([] if before is None else [Route.PARTITION.value])]
    while True:
        with atomic(using=connection.alias):
            take_write_lock(connection)
            rows = Task.objects.using(connection.alias).filter(
                name=definition.name, status__in=sorted(PENDING), route__in=routes
            )
            if last is not None:
                rows = rows.filter(id__gt=last)
            found = list(
                rows.order_by("id")
                .select_for_update(skip_locked=True)
                .only("id", "args", "kwargs", "queue_name", "route", "partition", "limits")[:BATCH]
            )
            moved = sum(
                _place(connection, definition, task)
                for task in found
                if task.route == Route.ORDINARY or (before and is_placed_by(before, task))
            )
            if moved:
                wake(connection, ANYWHERE)
        number += moved
        if not found:
            return number
        last = found[-1].id


def _place(
    connection: BaseDatabaseWrapper, definition: BaseDefinition[Any, Any], task: Task
) -> bool:
    """Place one locked task. Return whether its limits have changed."""
    own = definition.using(queue_name=task.queue_name)
    stored = json.dumps(task.args), json.dumps(task.kwargs)
    try:
        placement = own.place(tuple(task.args), task.kwargs, stored=stored)
    except Exception as error:  # The project's key function may fail.
        reason = str(error) if isinstance(error, TaskQueueError) else type(error).__name__
        logger.warning("Task not limited anew task=%s reason=%s", task.id, reason)
        return False
    limits = None if placement is None else json.loads(placement.limits)
    if limits == task.limits:
        return False
    Task.objects.using(connection.alias).filter(id=task.id).update(
        partition=None if placement is None else placement.partition,
        limits=limits,
        route=Route.ORDINARY.value if placement is None else Route.PARTITION.value,
    )
    return True
