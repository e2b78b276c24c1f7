"""Changing options of a task after its enqueue, while it has not finished."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.conf import get_settings
from taskqueue.core.suggestions import did_you_mean_option
from taskqueue.declarations import snapshots
from taskqueue.declarations.option import Use
from taskqueue.declarations.option_forms import option_to_json
from taskqueue.declarations.options import (
    OPTIONS,
    Options,
    check_options,
    options_for,
)
from taskqueue.declarations.placement import partition_of
from taskqueue.declarations.together import check_together
from taskqueue.engine.specs import claim_columns
from taskqueue.exceptions import InvalidTask
from taskqueue.models import Task

MUTABLE = options_for(Use.CHANGE)
COLUMNS = tuple(name for name, option in MUTABLE.items() if option.carried == "column")
SNAPSHOT = tuple(name for name, option in MUTABLE.items() if option.carried == "snapshot")
# Columns of a task that are checked together with a change.
TOGETHER = ("lease_duration", "ping_interval", "workers", "worker_names", "broadcast")


def check_changes(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the changes in their normal form. Raises `InvalidTask`, naming what may change."""
    for name in changes:
        if name in MUTABLE:
            continue
        if name in OPTIONS:
            raise InvalidTask(
                f"{name} cannot be changed after the enqueue. Choose from {sorted(MUTABLE)}."
            )
        hint = did_you_mean_option(name, MUTABLE, otherwise=f"Choose from {sorted(MUTABLE)}.")
        raise InvalidTask(f"{name!r} is not an option that can change after the enqueue.{hint}")
    if not changes:
        raise InvalidTask(f"Nothing to change: give at least one of {sorted(MUTABLE)}.")
    checked = check_options(changes, declared=False)
    if not snapshots.is_storable(checked.get("backoff")):
        raise InvalidTask("backoff must be a policy: a callable belongs to the definition.")
    lease, ping = checked.get("lease_duration"), checked.get("ping_interval")
    check_together(Options(lease_duration=lease, ping_interval=ping), name="The change")
    return checked


def refusals(
    connection: BaseDatabaseWrapper, ids: Sequence[UUID], changes: Mapping[str, Any]
) -> dict[UUID, str]:
    """Return the tasks that the changes do not fit, and why; nothing is locked."""
    checked = check_changes(changes)
    reasons = {}
    for task in Task.objects.using(connection.alias).filter(id__in=ids).only("id", *TOGETHER):
        try:
            _check_fit(task, checked)
        except InvalidTask as error:
            reasons[task.id] = str(error)
    return reasons


def apply_changes(connection: BaseDatabaseWrapper, task: Task, checked: Mapping[str, Any]) -> str:
    """Write checked changes to a locked task; return what changed, in words, empty if nothing did.

    Raises `InvalidTask` where they do not fit the task.
    """
    _check_fit(task, checked)
    values = {name: _column_value(name, checked[name]) for name in COLUMNS if name in checked}
    if task.limits is not None and "queue_name" in values:
        values["partition"] = partition_of(values["queue_name"], task.limits)
    if "worker_names" in checked:
        values |= _routing_columns(task, checked["worker_names"])
    if not checked.keys().isdisjoint(SNAPSHOT):
        values["options"] = _snapshot(task, checked)
    changed = {name: value for name, value in values.items() if getattr(task, name) != value}
    if not changed:
        return ""
    Task.objects.using(connection.alias).filter(id=task.id).update(**changed)
    words = [
        f"{name}: {_in_words(getattr(task, name))} to {_in_words(changed[name])}"
        for name in changed
        if name in COLUMNS
    ]
    words += [f"{name}: {_in_words(checked[name])}" for name in SNAPSHOT if name in checked]
    return ", ".join(words)


def _check_fit(task: Task, checked: Mapping[str, Any]) -> None:
    if task.broadcast and checked.get("worker_names") is not None:
        raise InvalidTask(f"Task {task.id} is a broadcast: its workers are those it found alive.")
    if task.limits is not None and checked.get("worker_names") is not None:
        raise InvalidTask(f"Task {task.id} is limited, which excludes worker_names.")
    names = None if task.broadcast else checked.get("worker_names", task.worker_names)
    options = Options(
        lease_duration=checked.get("lease_duration", task.lease_duration),
        ping_interval=checked.get("ping_interval", task.ping_interval),
        workers=1 if task.broadcast else task.workers,
        worker_names=None if names is None else tuple(names),
    )
    check_together(options, name=f"Task {task.id}")


def _column_value(name: str, value: Any) -> Any:
    stored = OPTIONS[name].column_value(value, get_settings())
    return list(stored) if isinstance(stored, tuple) else stored


def _routing_columns(task: Task, names: tuple[str, ...] | None) -> dict[str, Any]:
    """Return the columns that choose the claim: who may run the task decides, not how many have."""
    if task.broadcast:
        return {"worker_names": task.worker_names}
    if task.limits is not None:
        return {"route": task.route}
    columns = claim_columns(workers=task.workers, worker_names=names, broadcast=False)
    return {name: columns[name] for name in ("route", "pinned_to")}


def _snapshot(task: Task, checked: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in task.options.items() if name not in checked}
    changed = {name: checked[name] for name in SNAPSHOT if checked.get(name) is not None}
    return kept | {name: option_to_json(value) for name, value in changed.items()}


def _in_words(value: Any) -> str:
    if isinstance(value, timedelta):
        return f"{value.total_seconds():g} s"
    return "none" if value is None else str(value)
