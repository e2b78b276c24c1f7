"""Change a task after its enqueue: options until it has finished, the rest while it waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.conf import get_settings
from taskqueue.core.refusals import refusal as _
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
from taskqueue.engine.control.audit_text import told_arguments, told_metadata
from taskqueue.engine.control.edits import (
    EDITED_COLUMNS,
    edited_call,
    edited_columns,
    require_waiting,
)
from taskqueue.engine.specs import claim_columns
from taskqueue.exceptions import InvalidTask, TransitionRefused
from taskqueue.models import Task

# Options that can be changed only while the task waits.
EDITED = options_for(Use.EDIT)
MUTABLE = options_for(Use.CHANGE) | EDITED
COLUMNS = tuple(name for name, option in MUTABLE.items() if option.carried == "column")
SNAPSHOT = tuple(name for name, option in MUTABLE.items() if option.carried == "snapshot")
# Columns of a task that are checked together with a change.
TOGETHER = ("lease_duration", "ping_interval", "workers", "worker_names", "broadcast")
# The columns that `_check_fit` reads.
FITTED = (*TOGETHER, "limits", "options")


@dataclass(frozen=True, kw_only=True)
class NewCall:
    """Other arguments for a task; with None the task keeps its own."""

    args: Sequence[Any] | None = None
    kwargs: Mapping[str, Any] | None = None

    @property
    def parts(self) -> list[str]:
        """The parts of a task that this changes."""
        given = (self.args, self.kwargs) != (None, None)
        return ["arguments"] if given else []


NO_CALL = NewCall()


def check_changes(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the changes in their normal form.

    Raises `InvalidTask`, listing the options that may change.
    """
    for name in changes:
        if name in MUTABLE:
            continue
        if name in OPTIONS:
            raise InvalidTask(_(
                "{name} cannot be changed after the enqueue. Choose from {names}.",
                name=name, names=sorted(MUTABLE),
            ))  # fmt: skip
        hint = did_you_mean_option(name, MUTABLE, otherwise=f"Choose from {sorted(MUTABLE)}.")
        raise InvalidTask(_(
            "{name!r} is not an option that can change after the enqueue.{hint}",
            name=name, hint=hint,
        ))  # fmt: skip
    if not changes:
        raise InvalidTask(_(
            "Nothing to change: give at least one of {names}.", names=sorted(MUTABLE)
        ))  # fmt: skip
    checked = check_options(changes, declared=False)
    if not snapshots.is_storable(checked.get("backoff")):
        raise InvalidTask(_("backoff must be a policy: a callable belongs to the definition."))
    lease, ping = checked.get("lease_duration"), checked.get("ping_interval")
    check_together(Options(lease_duration=lease, ping_interval=ping), name="The change")
    return checked


def refusals(
    connection: BaseDatabaseWrapper, ids: Sequence[UUID], changes: Mapping[str, Any]
) -> dict[UUID, str]:
    """Return the tasks that the changes do not fit, with the reasons. Nothing is locked."""
    checked = check_changes(changes)
    reasons = {}
    columns = ("id", "status", "metadata", "started_at", *FITTED)
    for task in Task.objects.using(connection.alias).filter(id__in=ids).only(*columns):
        try:
            require_waiting(task, [name for name in checked if name in EDITED])
            _check_fit(task, checked)
            edited_columns(connection, task, checked)
        except (InvalidTask, TransitionRefused) as error:
            reasons[task.id] = str(error)
    return reasons


def apply_changes(
    connection: BaseDatabaseWrapper,
    task: Task,
    checked: Mapping[str, Any],
    call: NewCall = NO_CALL,
) -> str:
    """Write checked changes to a locked task. Return what changed, in words; empty if nothing did.

    Raises `InvalidTask` if the changes do not fit the task, `TransitionRefused` if it is running
    and they are only for waiting tasks, and the errors of an enqueue for the arguments.
    """
    require_waiting(task, call.parts + [name for name in checked if name in EDITED])
    _check_fit(task, checked)
    values = {name: _column_value(name, checked[name]) for name in COLUMNS if name in checked}
    if task.limits is not None and "queue_name" in values:
        values["partition"] = partition_of(values["queue_name"], task.limits)
    if "worker_names" in checked:
        values |= _routing_columns(task, checked["worker_names"])
    if not checked.keys().isdisjoint(SNAPSHOT):
        values["options"] = _snapshot(task, checked)
    values |= edited_columns(connection, task, checked)
    changed = {name: value for name, value in values.items() if getattr(task, name) != value}
    words = [
        f"{name}: {_in_words(getattr(task, name))} to {_in_words(changed[name])}"
        for name in changed
        if name in COLUMNS
    ]
    own = values.get("options", task.options)
    words += [
        f"{name}: {_in_words(checked[name])}"
        for name in SNAPSHOT
        if name in checked and task.options.get(name) != own.get(name)
    ]
    words += [
        f"{name}: {_in_words(getattr(task, column))} to {_in_words(changed[column])}"
        for name, column in EDITED_COLUMNS.items()
        if column in changed and column != "metadata"
    ]
    if "metadata" in changed:
        words.append(told_metadata(task.metadata, changed["metadata"]))
    if call.parts:
        queue_name = values.get("queue_name", task.queue_name)
        columns, differences, definition = edited_call(
            task, call.args, call.kwargs, queue_name=queue_name
        )
        changed |= columns
        words += told_arguments(differences, definition) if columns else []
    if changed:
        Task.objects.using(connection.alias).filter(id=task.id).update(**changed)
    return ", ".join(words)


def _check_fit(task: Task, checked: Mapping[str, Any]) -> None:
    if task.broadcast and checked.get("worker_names") is not None:
        raise InvalidTask(_(
            "Task {task} is a broadcast: its workers are those it found alive.", task=task.id
        ))  # fmt: skip
    if task.limits is not None and checked.get("worker_names") is not None:
        raise InvalidTask(_("Task {task} is limited, which excludes worker_names.", task=task.id))
    names = None if task.broadcast else checked.get("worker_names", task.worker_names)
    retry_on = checked.get("retry_on", task.options.get("retry_on", "any"))
    options = Options(
        lease_duration=checked.get("lease_duration", task.lease_duration),
        ping_interval=checked.get("ping_interval", task.ping_interval),
        workers=1 if task.broadcast else task.workers,
        worker_names=None if names is None else tuple(names),
        retry_on=retry_on,
    )
    check_together(options, name=f"Task {task.id}")
    if "retry_on" in checked and retry_on == "same" and (task.broadcast or task.limits is not None):
        raise InvalidTask(_(
            "Task {task} is a broadcast or limited, which excludes retry_on='same'.", task=task.id
        ))  # fmt: skip


def _column_value(name: str, value: Any) -> Any:
    stored = OPTIONS[name].column_value(value, get_settings())
    return list(stored) if isinstance(stored, tuple) else stored


def _routing_columns(task: Task, names: tuple[str, ...] | None) -> dict[str, Any]:
    """Return the columns that decide which claim takes the task.

    They depend on who may run it, not on how many workers have run it.
    """
    if task.broadcast:
        return {"worker_names": task.worker_names}
    if task.limits is not None:
        return {"route": task.route}
    columns = claim_columns(workers=task.workers, worker_names=names, broadcast=False)
    return {name: columns[name] for name in ("route", "pinned_to")}


def _snapshot(task: Task, checked: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in task.options.items() if name not in checked}
    changed = {
        name: checked[name]
        for name in SNAPSHOT
        if name in checked and checked[name] != OPTIONS[name].default
    }
    return kept | {name: option_to_json(value) for name, value in changed.items()}


def _in_words(value: Any) -> str:
    if isinstance(value, timedelta):
        return f"{value.total_seconds():g} s"
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, tuple):
        return str(option_to_json(value))
    return "none" if value is None else str(value)
