"""The terms of a live task: which options may change after its enqueue, and how."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.conf import get_settings
from taskqueue.core.suggestions import nearest_option
from taskqueue.declarations import snapshots
from taskqueue.declarations.options import Options, check_options, check_together
from taskqueue.engine.rows import apart_columns
from taskqueue.exceptions import InvalidTask
from taskqueue.models import Task

COLUMNS = (
    "priority", "queue_name", "worker_names", "lease_duration", "ping_interval", "max_attempts",
    "max_crashes", "crash_delay", "retention",
)  # fmt: skip
"""Options that stand in columns of their own."""
SNAPSHOT = ("timeout", "backoff")
"""Options that travel in the snapshot."""
TERMS = frozenset({*COLUMNS, *SNAPSHOT})
FITTED = ("lease_duration", "ping_interval", "workers", "worker_names", "broadcast")
"""What a task has that terms have to fit."""
OPTIONS = frozenset(field.name for field in fields(Options))
DEFAULTS = {
    "max_attempts": "MAX_ATTEMPTS",
    "max_crashes": "MAX_CRASHES",
    "crash_delay": "CRASH_DELAY",
}
"""The settings that None stands for, where a task keeps their value."""


def check_terms(changes: Mapping[str, Any]) -> dict[str, Any]:
    """The changes in their normal form. Raises `InvalidTask`, naming what may change."""
    for name in changes:
        if name in OPTIONS - TERMS:
            raise InvalidTask(
                f"{name} cannot be changed after the enqueue. Choose from {sorted(TERMS)}."
            )
        if name not in TERMS:
            near = nearest_option(name, TERMS)
            hint = f"Did you mean {near!r}?" if near else f"Choose from {sorted(TERMS)}."
            raise InvalidTask(f"{name!r} of a task does not change after its enqueue. {hint}")
    if not changes:
        raise InvalidTask(f"Nothing to change: give at least one of {sorted(TERMS)}.")
    checked = check_options(changes, declared=False)
    if not snapshots.is_storable(checked.get("backoff")):
        raise InvalidTask("backoff must be a policy: a callable belongs to the definition.")
    lease, ping = checked.get("lease_duration"), checked.get("ping_interval")
    check_together(Options(lease_duration=lease, ping_interval=ping), name="The terms")
    return checked


def refusals(
    connection: BaseDatabaseWrapper, ids: Sequence[UUID], changes: Mapping[str, Any]
) -> dict[UUID, str]:
    """Those of the tasks that the terms do not fit, and why; nothing is locked."""
    terms = check_terms(changes)
    found = {}
    for task in Task.objects.using(connection.alias).filter(id__in=ids).only("id", *FITTED):
        try:
            _check_fit(task, terms)
        except InvalidTask as error:
            found[task.id] = str(error)
    return found


def apply_terms(connection: BaseDatabaseWrapper, task: Task, terms: Mapping[str, Any]) -> str:
    """Write checked terms to a locked task; what changed, in words, empty if nothing did.

    Raises `InvalidTask` where they do not fit the task.
    """
    _check_fit(task, terms)
    values = {name: _value(name, terms[name]) for name in COLUMNS if name in terms}
    if "worker_names" in terms:
        values |= _apart_values(task, terms["worker_names"])
    if not terms.keys().isdisjoint(SNAPSHOT):
        values["options"] = _snapshot(task, terms)
    changed = {name: value for name, value in values.items() if getattr(task, name) != value}
    if not changed:
        return ""
    Task.objects.using(connection.alias).filter(id=task.id).update(**changed)
    shown = [name for name in changed if name in COLUMNS]
    words = [f"{name}: {_shown(getattr(task, name))} to {_shown(changed[name])}" for name in shown]
    words += [f"{name}: {_shown(terms[name])}" for name in SNAPSHOT if name in terms]
    return ", ".join(words)


def _check_fit(task: Task, terms: Mapping[str, Any]) -> None:
    if task.broadcast and terms.get("worker_names") is not None:
        raise InvalidTask(f"Task {task.id} is a broadcast: its workers are those it found alive.")
    options = Options(
        lease_duration=terms.get("lease_duration", task.lease_duration),
        ping_interval=terms.get("ping_interval", task.ping_interval),
        workers=1 if task.broadcast else task.workers,
        worker_names=None
        if task.broadcast
        else _names(terms.get("worker_names", task.worker_names)),
    )
    check_together(options, name=f"Task {task.id}")


def _names(names: Any) -> tuple[str, ...] | None:
    return None if names is None else tuple(names)


def _value(name: str, value: Any) -> Any:
    if value is None and name in DEFAULTS:
        return getattr(get_settings(), DEFAULTS[name])
    return list(value) if isinstance(value, tuple) else value


def _apart_values(task: Task, names: tuple[str, ...] | None) -> dict[str, Any]:
    """Which claim takes the task: who may run it decides, not how many have."""
    if task.broadcast:
        return {"worker_names": task.worker_names}
    columns = apart_columns(workers=task.workers, worker_names=names, broadcast=False)
    return {"route": columns.route, "pinned_to": columns.pinned_to}


def _snapshot(task: Task, terms: Mapping[str, Any]) -> dict[str, Any]:
    snapshot = {name: value for name, value in task.options.items() if name not in terms}
    if terms.get("timeout") is not None:
        snapshot["timeout"] = terms["timeout"].total_seconds()
    if terms.get("backoff") is not None:
        snapshot["backoff"] = terms["backoff"].snapshot()
    return snapshot


def _shown(value: Any) -> str:
    if isinstance(value, timedelta):
        return f"{value.total_seconds():g} s"
    return "none" if value is None else str(value)
